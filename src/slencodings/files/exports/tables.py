"""Tables that bear no mark: long, also with several labels in a cell, wide, and of counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from slencodings.annotations import counted
from slencodings.files.exports.answers import MOST_ROWS, Answer, Export, chosen, export, tabulate
from slencodings.files.exports.fields import SEPARATORS, identity, is_nothing, person, split_cell
from slencodings.files.exports.record import Json, Name, Record, shown
from slencodings.tables.roles import check_names, find_columns, listed


def item_column(names: Sequence[str]) -> str | None:
    """The column that names the item, by its usual names; an id goes before a text."""
    by_id = (n for n in names if n.lower() in ("id", "uid", "idx"))
    return next(by_id, None) or find_columns(names).get("item")


def long(records: Iterable[Record], who: str, item: str | None) -> Export:
    """A long table, its columns found by their names."""
    kept = list(records)
    names = list(kept[0].value)
    found = find_columns(names) | ({"item": item} if item else {})
    if not {"item", "label"} <= found.keys() or not set(found.values()) <= set(names):
        raise ValueError(
            f"{who} must have a column for the item and one for the label, or be the export of a "
            f"tool; its columns are {listed(names)}. Rename two of them, or say "
            "format='wide' for a column per annotator, 'counts' for a column per label."
        )
    roles = [r for r in ("item", "annotator", "label", "confidence") if r in found]
    columns: dict[str, list[Any]] = {role: [] for role in roles}
    for record in kept:
        for role in roles:
            value = record.value.get(found[role])
            if isinstance(value, list | dict):
                raise ValueError(
                    f"{record.where}: {found[role]!r} must be text or a number for each row; "
                    f"{shown(value)} came."
                )
            columns[role].append(value)
    notes = [", ".join(f"{role} = {found[role]!r}" for role in roles)]
    return export("long table", columns, notes, who)


def several(
    records: Iterable[Record],
    who: str,
    given: Mapping[str, str | None],
    question: str | None,
    separator: str | None = None,
) -> Export:
    """A long table whose cells hold several labels: a yes or no to each label."""
    kept = list(records)
    names = list(kept[0].value)
    known = {role: name for role, name in given.items() if name is not None}
    found = find_columns([name for name in names if name not in known.values()]) | known
    check_names(names, [(role, name) for role, name in found.items()])
    if not {"item", "label"} <= found.keys():
        raise ValueError(
            f"{who} must have a column for the item and one for the labels; its columns are "
            f"{listed(names)}. Name them: item='COLUMN', label='COLUMN'."
        )
    label, sure, left_out = found["label"], found.get("confidence"), Counter[str]()
    cells = [record.value.get(label) for record in kept]
    texts = [cell for cell in cells if isinstance(cell, str)]
    if separator is None:
        separator = next((s for s in SEPARATORS if any(s in text for text in texts)), None)
    played = {found.get(role) for role in ("item", "annotator", "label", "confidence")}
    extra = [name for name in names if name not in played]
    answers: list[Answer] = []
    for n, (record, cell) in enumerate(zip(kept, cells, strict=True)):
        where, _, row, _ = record
        if _is_blank(cell):
            left_out["answers without a label"] += 1
            continue
        about = identity(row.get(found["item"]), repr(found["item"]), where, "Every row needs one.")
        by = person(row.get(found.get("annotator", "")), where)
        labels: Json | list[str] = split_cell(cell, separator) if isinstance(cell, str) else cell
        chose = chosen(labels, where, label)
        beside = {x: v for x in extra if not isinstance(v := row.get(x), list | dict)}
        answers.append(Answer(n, label, about, by, chose, None, several=True, beside=beside))
        if sure is not None and not _is_blank(stated := row.get(sure)):
            answers.append(Answer(n, sure, about, by, chosen(stated, where, sure)))
    return tabulate(
        answers, who=who, tool="a table with several labels in a cell", question=question,
        confidence=sure, left_out=left_out,
    )  # fmt: skip


def wide(
    records: Iterable[Record], who: str, item: str | None, annotators: Sequence[str] | None
) -> Export:
    """A column for each annotator: what is in a cell is what they said of the row's item."""
    kept, item, names = _cells(records, who, item, annotators, "annotators")
    columns: dict[str, list[Any]] = {"item": [], "annotator": [], "label": []}
    given: dict[str, set[Name]] = {name: set() for name in names}
    empty = 0
    for where, _, row, _ in kept:
        about = identity(row.get(item), repr(item), where, "Every row needs one.")
        for name in names:
            if _is_blank(label := row.get(name)):
                empty += 1
                continue
            if not isinstance(label, str | int | float):
                raise ValueError(f"{where}: {name!r} must hold one label; {shown(label)} came.")
            given[name].add(label)
            columns["item"].append(about)
            columns["annotator"].append(name)
            columns["label"].append(label)
    uses = Counter(label for labels in given.values() for label in labels)
    odd = [name for name, some in given.items() if some and all(uses[x] == 1 for x in some)]
    if annotators is None and odd:
        raise ValueError(
            f"{who}: annotators must have labels in common; columns "
            f"{listed(odd)} share none with the others. "
            "Say which columns are annotators: annotators=['ann', 'bob']."
        )
    notes = [f"annotators are the columns {listed(names)}"]
    notes += [f"{counted(empty, 'cell')} without a label (empty, or NA) left out"] if empty else []
    return export("wide table", columns, notes, who)


def _is_blank(cell: Json) -> bool:
    """Whether a cell of a table holds nothing, in the words of pandas and R."""
    return is_nothing(cell) or (isinstance(cell, str) and cell in ("NA", "NaN", "nan", "<NA>"))


def counts(
    records: Iterable[Record], who: str, item: str | None, labels: Sequence[str] | None
) -> Export:
    """A column for each label: how often it was given. A count of n is n annotations by nobody."""
    kept, item, names = _cells(records, who, item, labels, "labels")
    table = [[_count(record, name) for name in names] for record in kept]
    total = sum(map(sum, table))
    if total > MOST_ROWS:
        raise ValueError(
            f"{who}: counts make a row for each annotation; {total:,} are more than "
            f"{MOST_ROWS:,}. Divide the counts, or pass their shares as soft labels: "
            "fuse_table(table, label=['yes', 'no'], ...)."
        )
    columns: dict[str, list[Any]] = {"item": [], "label": []}
    for record, row in zip(kept, table, strict=True):
        about = identity(record.value.get(item), repr(item), record.where, "Every row needs one.")
        for name, n in zip(names, row, strict=True):
            columns["item"] += [about] * n
            columns["label"] += [name] * n
    notes = [f"labels are the columns {listed(names)}"]
    none = sum(not any(row) for row in table)
    notes += [f"{counted(none, 'item')} without counts left out"] if none else []
    return export("count table", columns, notes, who)


def _count(record: Record, name: str) -> int:
    """A count, which is whole; nothing is none."""
    value = record.value.get(name)
    if _is_blank(value):
        return 0
    number = -1.0
    if isinstance(value, str | int | float):
        with suppress(ValueError, OverflowError):
            number = float(value)
    if number < 0 or not number.is_integer():
        raise ValueError(
            f"{record.where}: {name!r} must be a count, 0 or 1 or 2 ...; {shown(value)} came. "
            "Name the columns that are labels: labels=['yes', 'no']; shares are soft labels: "
            "fuse_table(table, label=['yes', 'no'], ...)."
        )
    return int(number)


def _cells(
    records: Iterable[Record],
    who: str,
    item: str | None,
    wanted: Sequence[str] | None,
    role: str,
) -> tuple[list[Record], str, list[str]]:
    """The rows, the column of the item, and the columns that are annotators or labels."""
    kept = list(records)
    names = list(kept[0].value) if kept else []
    item = item or item_column([n for n in names if n not in (wanted or ())])
    if item not in names:
        came = "none" if item is None else repr(item)
        raise ValueError(
            f"{who} must have a column for the item; {came} came, and the columns are "
            f"{listed(names) or 'none'}. Name it: item='COLUMN'."
        )
    rest = [name for name in names if name != item]
    missing = [name for name in wanted or () if name not in rest]
    if missing or len(rest) < 2:
        raise ValueError(
            f"{who} must have two or more columns for the {role}; {missing or rest} came, and "
            f"the columns beside the item are {listed(rest) or 'none'}. Name "
            f"them: {role}=['A', 'B', ...]."
        )
    return kept, item, list(wanted or rest)
