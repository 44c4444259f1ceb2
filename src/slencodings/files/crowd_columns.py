"""What other columns of a crowd tell: of items, of what is true of them, and of annotators.

And what annotators cost, from a file.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted, plainly
from slencodings.files.duckdb import opened, plain_errors
from slencodings.files.exports.judges import TOKENS
from slencodings.files.locate import QUESTION, Connection, Relation, Source, converted
from slencodings.files.scan import Table, item_parts, scan
from slencodings.files.times import read_times
from slencodings.files.values import join_item, typed
from slencodings.files.write import quote
from slencodings.opinion import Codes, Floats
from slencodings.progress import Say
from slencodings.tables.roles import Reading, choose_columns, find_columns, listed, nearest

# Other names for what something costs.
_COST = ("cost", "costs", "price", "rate", "wage", "fee")


class Columns(NamedTuple):
    """A crowd that was read, and the table with all columns of it.

    Attributes
    ----------
    asked_item : what was typed for the item, which several columns may name together
    reading : as it was read
    """

    table: Table
    asked_item: str | None
    reading: Reading
    annotations: Annotations
    say: Say

    def of_items(self, names: Sequence[str], texts: Sequence[str] = ()) -> Relation:
        """Some columns beside that of items."""
        item = str(self.reading.item)
        parts = item_parts(self.asked_item, self.table.names)
        relation = self.table.pick([*(parts or [item]), *names], texts=texts)
        return join_item(relation, parts, item) if parts else relation

    def check_column(self, name: str, what: str, parameter: str = "") -> None:
        """Refuse a column that is not there, whatever it is for."""
        if name not in self.table.names:
            near = nearest(name, self.table.names)
            meant = f"{parameter}={near!r}" if parameter else repr(near)
            raise ValueError(
                f"there is no column {name!r} {what}; the columns are {listed(self.table.names)}."
                + (f" Did you mean {meant}?" if near else "")
            )

    def annotator_for(self, what: str) -> str:
        """The column of annotators, without which something makes no sense."""
        if self.reading.annotator is None:
            raise ValueError(
                f"{what}, and no column says who annotated. Name it: annotator='COLUMN'."
            )
        return self.reading.annotator


def sets_of_questions(more: Columns) -> tuple[Codes, list[str]] | tuple[None, None]:
    """Which questions such as "7 / sports" are about the same item, (N,), and what they ask."""
    if QUESTION not in more.table.names:
        return None, None
    rows = more.table.pick([str(more.reading.item), QUESTION], texts=[QUESTION])
    label = {name: str(asked) for name, asked in rows.distinct().fetchall()}
    names = more.annotations.items.tolist()
    items = [str(name).removesuffix(f" / {label[name]}") for name in names]
    return np.unique(items, return_inverse=True)[1], [label[name] for name in names]


def groups_of_annotators(more: Columns, group: str) -> list[str | None]:
    """The group of each annotator, (M,)."""
    annotator = more.annotator_for("`group` is of annotators")
    more.check_column(group, "for `group`", "group")
    instead = "keep a column that does, such as the group at the start"
    of = _values_of_annotators(more, annotator, group, "group", instead)
    return [of.get(str(name)) for name in more.annotations.annotators.tolist()]


def times_of(more: Columns, time: str, *, named: bool) -> NDArray[Any] | None:
    """When each annotation was made, (R,); what was not `named` may be nothing of the kind."""
    reading = more.reading
    # What is found by its name may have another role; what was named must hold times.
    if not named and time in dict(reading.wanted).values():
        return None
    more.check_column(time, "of times", "time")
    if reading.annotator is None and not named:
        return None
    annotator = more.annotator_for("`time` is of what somebody said")
    rows = more.of_items([annotator, time], [time])
    roles = str(reading.item), annotator
    return read_times(rows, roles, time, more.annotations, named=named, say=more.say)


def fields_of_items(more: Columns, names: Sequence[str]) -> dict[str, list[str | None]]:
    """What columns tell of each item, as text; of several values the first in their order."""
    if not names:
        return {}
    for name in names:
        more.check_column(name, "to show")
    texts = ", ".join(f"min({quote(n)}::VARCHAR), count(DISTINCT {quote(n)})" for n in names)
    item = quote(str(more.reading.item))
    rows = more.of_items(names, names).aggregate(f"{item}, {texts}", item).fetchall()
    found = {row[0]: row[1:] for row in rows}
    nothing = (None, 0) * len(names)
    values = [found.get(name, nothing) for name in more.annotations.items.tolist()]
    for n, name in enumerate(names):
        several = sum(row[2 * n + 1] > 1 for row in values)
        if several:
            more.say(
                "note", f"{counted(several, 'item')} with several {name!r}; the first is shown"
            )
    return {name: [row[2 * n] for row in values] for n, name in enumerate(names)}


def lacks_some(rows: Relation, column: str, label: str) -> bool:
    """Whether some who answered did not say how sure they are, as people beside models do not."""
    x = quote(column)
    ((some, all),) = rows.aggregate(
        f"count({x}) FILTER ({quote(label)} IS NOT NULL), count({quote(label)})"
    ).fetchall()
    return 0 < some < all


def read_sources(more: Columns, columns: Sequence[str]) -> dict[str, Floats]:
    """Confidence in [0, 1] of each annotation, (R,), NaN where there is none, by column.

    What tokens tell is one, where it is there. Of who answered an item several times, the mean.
    """
    a, item = more.annotations, str(more.reading.item)
    who, found = more.reading.annotator or item, dict[str, Floats]()
    if TOKENS in more.table.names and TOKENS not in columns:
        columns = [*columns, TOKENS]
    for column in columns:
        more.check_column(column, "for `sources`", "sources")
    for column in columns:
        rows = more.table.pick([item, who, column], texts=[column])
        text = f"nullif(trim({quote(column)}::VARCHAR), '')"
        x = f"try_cast({text} AS DOUBLE)"
        ((bad, example),) = rows.aggregate(
            f"count({text}) - count(CASE WHEN {x} BETWEEN 0 AND 1 THEN 1 END), "
            f"min(CASE WHEN {x} BETWEEN 0 AND 1 THEN NULL ELSE {text} END)"
        ).fetchall()
        if bad:
            raise ValueError(
                "`sources` of confidence must be numbers in [0, 1]; column "
                f"{column!r} has {counted(bad, 'row')} with something else, such as {example!r}. "
                "Divide a scale by its highest level first."
            )
        means = rows.aggregate(
            f"{quote(item)}, {quote(who)}, avg({x})", f"{quote(item)}, {quote(who)}"
        ).fetchall()
        known = {(i, m): c for i, m, c in means if c is not None}
        items, people = a.items.tolist(), a.annotators.tolist()
        each = (known.get((items[i], people[m])) for i, m in zip(a.item, a.annotator, strict=True))
        found[column] = np.asarray([np.nan if c is None else c for c in each], dtype=float)
    return found


def choose_scored(more: Columns, scored: str) -> list[Any]:
    """The annotators whose votes are predicted, for `learn_crowd(scored=...)`.

    Parameters
    ----------
    scored : annotators with commas, also patterns such as gpt*; or COLUMN=VALUE, several values
        with commas, of a column that says the same in all rows of an annotator
    """
    names, annotators = more.table.names, more.annotations.annotators.tolist()
    by = more.annotator_for("`scored` says whose votes are predicted")
    column, equals, words = scored.partition("=")
    column = column.strip()
    if equals and column in names:
        values = _values_of_annotators(more, by, column, "scored", "scored='ann,bob'")
        wanted, known = _words(words), sorted(set(values.values()))
        for word in wanted:
            if word not in known:
                raise ValueError(
                    f"`scored` needs a value of the column {column!r}; {word!r} came. It has "
                    f"{listed(known)}."
                )
        chosen = [name for name in annotators if values.get(str(name)) in wanted]
    else:
        chosen = _by_name(_words(scored), annotators, names)
    more.say("scored", f"votes by {len(chosen):,} of {counted(len(annotators), 'annotator')}")
    return chosen


def _words(text: str) -> list[str]:
    """Words between commas; one that has a comma itself stands in double quotes."""
    return [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [""])]


def _by_name(
    patterns: Sequence[str], annotators: Sequence[Any], columns: Sequence[str]
) -> list[Any]:
    names = [str(name) for name in annotators]
    for pattern in patterns:
        if pattern not in names and not any(fnmatchcase(name, pattern) for name in names):
            near = nearest(pattern, names)
            raise ValueError(
                "`scored` must name annotators, also by patterns such as 'gpt*', or be "
                f"COLUMN=VALUE; {pattern!r} is none of the {counted(len(names), 'annotator')}"
                + (f". Did you mean scored={near!r}?" if near else f" ({listed(names)})")
                + (f" The columns are {listed(columns)}." if "=" in pattern else "")
            )
    # A name may have a bracket or a star itself, so it also stands for itself.
    return [
        name
        for name, text in zip(annotators, names, strict=True)
        if text in patterns or any(fnmatchcase(text, pattern) for pattern in patterns)
    ]


def _values_of_annotators(
    more: Columns, annotator: str, column: str, role: str, instead: str
) -> dict[str, str]:
    """What a column says of each annotator, as text; nothing where it is empty.

    `role` is what it is for, and `instead` what else may be typed, for the message where it says
    several things of one.
    """
    who, what = quote(annotator), quote(column)
    rows = more.table.pick([annotator, column], texts=[column])
    found = rows.aggregate(
        f"{who}::VARCHAR, min({what}::VARCHAR), count(DISTINCT {what}::VARCHAR)", who
    ).fetchall()
    several = sorted(str(name) for name, _, n in found if n > 1)
    if several:
        raise ValueError(
            f"a column for `{role}` must say the same in all rows of an annotator; {column!r} does "
            f"not for {counted(len(several), 'annotator')}, first {several[0]!r}. Instead: "
            f"{instead}."
        )
    return {name: value for name, value, n in found if n == 1}


def read_gold(connection: Connection, folder: Path, more: Columns, gold: str) -> Floats:
    """What is true of each item, (N, K), NaN where nothing is known; see `read_crowd`."""
    names, a = more.table.names, more.annotations
    soft = gold not in names
    columns = [name.strip() for name in gold.split(",")] if soft else [gold]
    if set(columns) <= set(names):
        relation = more.of_items(columns)
        relation = typed(relation, columns) if soft else relation
        return _placed(relation, str(more.reading.item), columns, a, soft=soft, one=True)
    if not Path(gold).is_file():
        raise ValueError(
            f"`gold` must be a column, columns with commas, or a file; {gold!r} came. "
            f"The columns are {', '.join(map(repr, names[:20]))}."
        )
    other = converted(Source(Path(gold).name, [gold]), Reading(), folder, more.say)
    with plain_errors(other):
        there = scan(connection, other)
        chosen = choose_columns(there.names, Reading())
        item, label = str(chosen.item), str(chosen.label)
        return _placed(there.pick([item, label]), item, [label], a, soft=False, one=False)


def _placed(
    relation: Relation, item: str, columns: list[str], a: Annotations, *, soft: bool, one: bool
) -> Floats:
    """Gold as shares of labels, in the order of the crowd's items and labels."""
    N, K = len(a.items), len(a.labels)
    if soft and len(columns) != K:
        raise ValueError(
            f"`gold` needs a column for each of the {K} labels, in their order; "
            f"{len(columns)} came. The labels are {', '.join(map(plainly, a.labels))}."
        )
    place = {name: n for n, name in enumerate(a.items.tolist())}
    named = ", ".join(map(quote, [item, *columns]))
    rows = [row for row in relation.project(named).distinct().fetchall() if None not in row]
    rows = [row for row in rows if row[0] in place]
    several = [name for name, n in Counter(row[0] for row in rows).items() if n > 1]
    if one and several:
        raise ValueError(
            f"`gold` must say the same in all rows of an item; of {counted(len(several), 'item')} "
            f"there are several, first {min(several)!r}."
        )
    names = {name: k for k, name in enumerate(a.labels.tolist())}
    strange = sorted({row[1] for row in rows if not soft} - names.keys())
    if strange:
        raise ValueError(
            f"`gold` has {counted(len(strange), 'label')} that nobody gave, first {strange[0]!r}. "
            "Name all labels that there are: labels=[...]"
        )
    truth = np.zeros((N, K))
    for name, *values in rows:
        truth[place[name]] += values if soft else np.eye(K)[names[values[0]]]
    total = truth.sum(axis=1, keepdims=True)
    return np.where(total > 0, truth / (1 if soft else np.where(total > 0, total, 1)), np.nan)


def read_costs(source: str) -> dict[str, float]:
    """What an annotation of each annotator costs, by name, for `triage(costs=...)`.

    A table with a column of annotators, found by its usual names, and one called cost or price.
    """
    with opened(source, Reading()) as (_, table):
        who = find_columns(table.names).get("annotator")
        cost = next((name for name in table.names if name.strip().lower() in _COST), None)
        if who is None or cost is None:
            raise ValueError(
                "`costs` must be a table with the columns annotator and cost; the columns are "
                f"{listed(table.names)}."
            )
        pairs = typed(table.pick([who, cost], [cost]), [cost]).fetchall()
    costs = {str(name): value for name, value in pairs if name is not None and value is not None}
    if len(costs) < len(pairs):
        raise ValueError(
            f"`costs` must name each annotator once, with a cost; {counted(len(pairs), 'row')} "
            f"came for {counted(len(costs), 'annotator')}."
        )
    return costs
