"""From a file of annotations to a crowd in memory, for methods that learn from all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, by_annotators, counted, plainly
from slencodings.files.duckdb import plain_errors, watch
from slencodings.files.keep import item_parts, join_item
from slencodings.files.locate import (
    QUESTION,
    Connection,
    Source,
    converted,
    locate,
    read_tool,
)
from slencodings.files.scan import Relation, Step, Table, quote, read, scan, typed
from slencodings.files.scored import choose_scored, values_of_annotators
from slencodings.files.sources import TOKENS, lacks_some, read_sources
from slencodings.files.times import find_time, read_times
from slencodings.files.write import disk_errors, workspace
from slencodings.opinion import Codes, Floats
from slencodings.progress import Progress, Say
from slencodings.tables.arrays import read_annotations
from slencodings.tables.roles import (
    NUMBERS,
    Reading,
    choose_columns,
    columns_of,
    listed,
    nearest,
)


class Crowd(NamedTuple):
    """Who said what, and what is true.

    Attributes
    ----------
    annotations : Annotations; confidence taken at its word where its scale is known
    truth : (N, K), what is known to be true of each item, NaN where nothing is; None if not asked
    fields : other columns, a text or None for each item, (N,), by name
    scored : the annotators whose votes are predicted, None for everybody
    group : of each annotator, (M,), None for who has none; None if not asked
    times : when each annotation was made, (R,), as `read_times` has it; None if nothing tells
    sources : confidence of each annotation, (R,), by where it is from; None if not asked
    sets : where several labels could be chosen, which of the yes or no questions are about one
        item, (N,); None else
    questions : the label that each of those asks, (N,)
    """

    annotations: Annotations
    truth: Floats | None
    fields: dict[str, list[str | None]]
    scored: list[Any] | None
    group: list[str | None] | None = None
    times: NDArray[Any] | None = None
    sources: dict[str, Floats] | None = None
    sets: Codes | None = None
    questions: list[str] | None = None


def read_crowd(
    source: str | Sequence[str],
    reading: Reading | None = None,
    *,
    gold: str | None = None,
    show: Sequence[str] = (),
    scored: str | None = None,
    group: str | None = None,
    time: str | bool = False,
    sources: Sequence[str] | None = None,
    learned: bool = True,
    say: Say = lambda what, text: None,
    progress: Progress = lambda what, done, total, unit: None,
) -> Crowd:
    """Read whole files of annotations.

    Without a scale of confidence, values in [0, 1] are taken at their word, and others only by
    their order. Of `missing`, "trust" makes no sense here.

    Parameters
    ----------
    gold : a column of true labels; K columns of probabilities with commas, in the order of the
        labels; or a file with a column for the item and one for the label
    show : other columns that tell of items, such as their text
    scored : whose votes are predicted, as in `choose_scored`
    group : a column that says of each annotator in which group they are
    time : a column that tells when annotations were made; True to find it by its name
    sources : columns of confidence in [0, 1], which only some need to have; then `confidence` that
        some lack is such a column too, and so is what readers of judges found of tokens
    learned : whether what annotators are worth is learned, so that reliability is read if its
        column is named, and is not looked for
    """
    asked = reading or Reading()
    with disk_errors(), workspace() as (connection, folder):
        found = locate(connection, source, folder)
        found, asked = read_tool(found, asked, folder, say)

        def work(step: Step) -> Crowd:
            with plain_errors(found, asked.format):
                used = [*(name.strip() for name in (gold or "").split(",")), gold or "", *show]
                when = time if isinstance(time, str) else None
                if time is True:
                    when = find_time(scan(connection, found, asked.format).names)
                used += [(scored or "").partition("=")[0].strip(), group or "", when or ""]
                used += sources or [TOKENS]
                rows, reading = read(
                    connection, found, asked, learned=learned, used=used, say=say, step=step
                )
                step("checking", None, "")
                told = list(sources or [])
                stated = reading.confidence if sources is not None else None
                if isinstance(stated, str) and lacks_some(rows, stated, str(reading.label)):
                    told.insert(0, stated)
                    say("note", f"{stated!r} is not of all annotations, so it weighs none of them")
                    reading = replace(reading, confidence=None)
                a = read_annotations(_complete(rows, reading, say), reading)
            if reading.confidence_scale is None and a.stated is not None:
                _note_scale(a.stated, say)
            people = by_annotators(len(a.annotators) if a.named else None)
            say(
                "read",
                f"{found.name}: {counted(len(a.item), 'annotation')} of "
                f"{counted(len(a.items), 'item')}{people}, {counted(len(a.labels), 'label')}",
            )
            _note_repeated(a, say)
            truth = None
            if gold is not None:
                other = Source(Path(gold).name, [gold])
                if Path(gold).is_file():
                    other = converted(other, Reading(), folder, say)
                truth = _truth(connection, found, asked, gold, other, str(reading.item), a)
            heard: list[Any] | None = None
            if scored is not None:
                table = scan(connection, found, asked.format)
                heard = choose_scored(table, reading.annotator, scored, a.annotators.tolist())
                say(
                    "scored",
                    f"votes by {len(heard):,} of {counted(len(a.annotators), 'annotator')}",
                )
            fields: dict[str, list[str | None]] = {}
            if show:
                table = scan(connection, found, asked.format)
                fields = _fields(table, list(show), asked.item, str(reading.item), a, say)
            table = scan(connection, found, asked.format)
            groups = None if group is None else _groups(table, reading.annotator, group, a)
            times = None
            # What is found by its name may have another role; what was named must hold times.
            if when is not None and (time is not True or when not in dict(reading.wanted).values()):
                times = _times(table, when, asked.item, reading, a, named=time is not True, say=say)
            by_source = None
            if sources is not None:
                told += [TOKENS] if TOKENS in table.names and TOKENS not in told else []
                by_source = read_sources(table, str(reading.item), reading.annotator, told, a)
            # A reader of exports says which label a yes or no is about.
            several = QUESTION in table.names and QUESTION in found.known
            sets = _sets(table, str(reading.item), a) if several else (None, None)
            return Crowd(a, truth, fields, heard, groups, times, by_source, *sets)

        return watch(connection, work, progress)


def _sets(table: Table, item: str, a: Annotations) -> tuple[Codes, list[str]]:
    """Which questions such as "7 / sports" are about the same item, (N,), and what they ask."""
    rows = table.pick([item, QUESTION], texts=[QUESTION]).distinct().fetchall()
    label = {name: str(asked) for name, asked in rows}
    names = a.items.tolist()
    items = [str(name).removesuffix(f" / {label[name]}") for name in names]
    return np.unique(items, return_inverse=True)[1], [label[name] for name in names]


def _groups(table: Table, annotator: str | None, group: str, a: Annotations) -> list[str | None]:
    """The group of each annotator, (M,)."""
    if annotator is None:
        raise ValueError(
            "`group` is of annotators, and no column says who annotated. "
            "Name it: annotator='COLUMN'."
        )
    if group not in table.names:
        near = nearest(group, table.names)
        raise ValueError(
            f"there is no column {group!r} for `group`; the columns are {listed(table.names)}."
            + (f" Did you mean group={near!r}?" if near else "")
        )
    instead = "keep a column that does, such as the group at the start"
    of = values_of_annotators(table, annotator, group, "group", instead)
    return [of.get(str(name)) for name in a.annotators.tolist()]


def _complete(crowd: Relation, reading: Reading, say: Say) -> Relation:
    """The rows that have every number, if the others are to be dropped."""
    numbers = [name for role in NUMBERS for name in columns_of(getattr(reading, role))]
    if reading.missing != "drop" or not numbers:
        return crowd
    there = [f"({quote(n)} IS NOT NULL AND NOT isnan({quote(n)}::DOUBLE))" for n in numbers]
    kept = crowd.filter(" AND ".join(there))
    (before,), (after,) = (rows.aggregate("count(*)").fetchall()[0] for rows in (crowd, kept))
    if before > after:
        rows = counted(before - after, "row")
        say("note", f"{rows} without {' or '.join(numbers)} left out (--missing drop)")
    return kept


def _note_repeated(a: Annotations, say: Say) -> None:
    """Tell if somebody said something about an item more than once."""
    if a.named:
        pairs = np.unique(a.item * len(a.annotators) + a.annotator)
        if repeated := len(a.item) - len(pairs):
            say(
                "note",
                f"{counted(repeated, 'annotation')} more of an (item, annotator) pair that has "
                "one; --duplicates average|first|last|error changes that",
            )


def _note_scale(stated: Floats, say: Say) -> None:
    """Tell if confidence is on a scale whose ends nobody named."""
    low, high = stated.min(initial=np.inf), stated.max(initial=-np.inf)
    if low < 0 or high > 1:
        say(
            "note",
            f"confidence runs from {low:g} to {high:g}; its worth is learned, and "
            f"--confidence-scale {low:g}-{high:g} also takes it at its word",
        )


def _truth(
    connection: Connection,
    source: Source,
    asked: Reading,
    gold: str,
    known: Source,
    item: str,
    a: Annotations,
) -> Floats:
    """What is true of each item (N, K), from columns of the same file or from another file."""
    here = scan(connection, source, asked.format)
    soft = gold not in here.names
    columns = [name.strip() for name in gold.split(",")] if soft else [gold]
    if not set(columns) <= set(here.names):
        if not Path(gold).is_file():
            raise ValueError(
                f"--gold must be a column, columns with commas, or a file; {gold!r} came. "
                f"The columns are {', '.join(map(repr, here.names[:20]))}."
            )
        with plain_errors(known):
            there = scan(connection, known)
            chosen = choose_columns(there.names, Reading())
            item, label = str(chosen.item), str(chosen.label)
            return _placed(there.pick([item, label]), item, [label], a, soft=False, one=False)
    relation = _of_items(here, asked.item, item, columns)
    if soft:
        relation = typed(relation, columns)
    return _placed(relation, item, columns, a, soft=soft, one=True)


def _of_items(
    table: Table, asked: str | None, item: str, names: Sequence[str], texts: Sequence[str] = ()
) -> Relation:
    """Some columns beside that of items, which several columns may name together."""
    parts = item_parts(asked, table.names)
    relation = table.pick([*(parts or [item]), *names], texts=texts)
    return join_item(relation, parts, item) if parts else relation


def _times(
    table: Table,
    time: str,
    asked: str | None,
    reading: Reading,
    a: Annotations,
    *,
    named: bool,
    say: Say,
) -> NDArray[Any] | None:
    """When each annotation was made, (R,)."""
    if time not in table.names:
        near = nearest(time, table.names)
        hint = f" Did you mean time={near!r}?" if near else ""
        raise ValueError(
            f"there is no column {time!r} of times; the columns are {listed(table.names)}.{hint}"
        )
    if reading.annotator is None and named:
        raise ValueError(
            "`time` is of what somebody said, and no column says who annotated. "
            "Name it: annotator='COLUMN'."
        )
    if reading.annotator is None:
        return None
    item, annotator = str(reading.item), reading.annotator
    rows = _of_items(table, asked, item, [annotator, time], [time])
    return read_times(rows, (item, annotator), time, a, named=named, say=say)


def _fields(
    table: Table, names: list[str], asked: str | None, item: str, a: Annotations, say: Say
) -> dict[str, list[str | None]]:
    """What columns tell of each item, as text; of several values the first in their order."""
    for name in names:
        if name not in table.names:
            near = nearest(name, table.names)
            hint = f" Did you mean {near!r}?" if near else ""
            raise ValueError(
                f"there is no column {name!r} to show; the columns are {listed(table.names)}.{hint}"
            )
    texts = ", ".join(f"min({quote(n)}::VARCHAR), count(DISTINCT {quote(n)})" for n in names)
    columns = _of_items(table, asked, item, names, names)
    rows = columns.aggregate(f"{quote(item)}, {texts}", quote(item)).fetchall()
    found = {row[0]: row[1:] for row in rows}
    nothing = (None, 0) * len(names)
    values = [found.get(name, nothing) for name in a.items.tolist()]
    for n, name in enumerate(names):
        several = sum(row[2 * n + 1] > 1 for row in values)
        if several:
            say("note", f"{counted(several, 'item')} with several {name!r}; the first is shown")
    return {name: [row[2 * n] for row in values] for n, name in enumerate(names)}


def _placed(
    relation: Relation, item: str, columns: list[str], a: Annotations, *, soft: bool, one: bool
) -> Floats:
    """Gold as shares of labels, in the order of the crowd's items and labels."""
    N, K = len(a.items), len(a.labels)
    if soft and len(columns) != K:
        raise ValueError(
            f"--gold needs a column for each of the {K} labels, in their order; "
            f"{len(columns)} came. The labels are {', '.join(map(plainly, a.labels))}."
        )
    place = {name: n for n, name in enumerate(a.items.tolist())}
    named = ", ".join(map(quote, [item, *columns]))
    rows = [row for row in relation.project(named).distinct().fetchall() if None not in row]
    rows = [row for row in rows if row[0] in place]
    several = [name for name, n in Counter(row[0] for row in rows).items() if n > 1]
    if one and several:
        raise ValueError(
            f"--gold must say the same in all rows of an item; of {counted(len(several), 'item')} "
            f"there are several, first {min(several)!r}."
        )
    names = {name: k for k, name in enumerate(a.labels.tolist())}
    strange = sorted({row[1] for row in rows if not soft} - names.keys())
    if strange:
        raise ValueError(
            f"--gold has {counted(len(strange), 'label')} that nobody gave, first {strange[0]!r}. "
            "Name all labels that there are: --labels A,B,..."
        )
    truth = np.zeros((N, K))
    for name, *values in rows:
        truth[place[name]] += values if soft else np.eye(K)[names[values[0]]]
    total = truth.sum(axis=1, keepdims=True)
    return np.where(total > 0, truth / (1 if soft else np.where(total > 0, total, 1)), np.nan)
