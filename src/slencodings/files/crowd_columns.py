"""What other columns of a crowd tell: of items, of annotators, of when and how sure they were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted
from slencodings.files.locate import QUESTION, Relation
from slencodings.files.scan import Table, item_parts
from slencodings.files.scored import values_of_annotators
from slencodings.files.times import read_times
from slencodings.files.values import join_item
from slencodings.files.write import quote
from slencodings.opinion import Codes, Floats
from slencodings.progress import Say
from slencodings.tables.roles import Reading, listed, nearest


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
    if more.reading.annotator is None:
        raise ValueError(
            "`group` is of annotators, and no column says who annotated. "
            "Name it: annotator='COLUMN'."
        )
    more.check_column(group, "for `group`", "group")
    instead = "keep a column that does, such as the group at the start"
    of = values_of_annotators(more.table, more.reading.annotator, group, "group", instead)
    return [of.get(str(name)) for name in more.annotations.annotators.tolist()]


def times_of(more: Columns, time: str, *, named: bool) -> NDArray[Any] | None:
    """When each annotation was made, (R,); what was not `named` may be nothing of the kind."""
    reading = more.reading
    # What is found by its name may have another role; what was named must hold times.
    if not named and time in dict(reading.wanted).values():
        return None
    more.check_column(time, "of times", "time")
    if reading.annotator is None and named:
        raise ValueError(
            "`time` is of what somebody said, and no column says who annotated. "
            "Name it: annotator='COLUMN'."
        )
    if reading.annotator is None:
        return None
    roles = str(reading.item), reading.annotator
    rows = more.of_items([reading.annotator, time], [time])
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


def read_sources(
    table: Table, item: str, annotator: str | None, columns: Sequence[str], a: Annotations
) -> dict[str, Floats]:
    """Confidence in [0, 1] of each annotation, (R,), NaN where there is none, by column.

    Of who answered an item several times, the mean.
    """
    found: dict[str, Floats] = {}
    for column in columns:
        who = annotator or item
        rows = table.pick([item, who, column], texts=[column])
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
