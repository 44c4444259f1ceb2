"""Tables that are not long: a column for each annotator, a column for each label, lists in rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from slencodings.files.exports.answers import MOST_ROWS, Answer, Export, chosen, export
from slencodings.files.exports.load import Record, identity, is_nothing, person, shown
from slencodings.files.formats import find_columns


def rows(source: Any, who: str) -> Iterator[tuple[str | None, Any]]:
    """What is in memory, row by row, with the key of a row where it has one.

    A list of records, records by their key, one record, columns by their name, a data set of
    Hugging Face, or a data frame.
    """
    if isinstance(source, list | tuple):
        yield from ((None, value) for value in source)
    elif isinstance(source, Mapping):
        yield from _mapping(source, who)
    elif hasattr(source, "column_names") and hasattr(source, "features"):
        yield from ((None, row) for row in _dataset(source))
    else:
        try:
            frame: Any = nw.from_native(source)
        except TypeError:
            raise TypeError(
                "an export must be a file, a data set, a data frame, a list of records or a dict "
                f"of columns; {type(source).__name__} came."
            ) from None
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        for row in frame.iter_rows(named=True):
            yield None, {str(name): _python(value) for name, value in row.items()}


def _mapping(source: Mapping[Any, Any], who: str) -> Iterator[tuple[str | None, Any]]:
    values = list(source.values())
    if any(hasattr(value, "column_names") for value in values):
        raise ValueError(
            f"{who} must be one data set; a dict of {list(source)} came. "
            f"Choose one: dataset[{next(iter(source))!r}]."
        )
    if values and all(isinstance(value, dict) for value in values):
        yield from source.items()
    elif all(isinstance(v, list | tuple | np.ndarray) for v in values):
        sizes = {name: len(column) for name, column in source.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"{who}: columns must be equally long; {sizes} came.")
        for row in zip(*values, strict=True):
            yield None, {str(n): _python(v) for n, v in zip(source, row, strict=True)}
    else:
        yield None, source


def _python(value: Any) -> Any:
    """A value of NumPy or pandas as Python's own."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    return None if isinstance(value, float) and value != value else value


def _dataset(source: Any) -> Iterator[dict[str, Any]]:
    """The rows of a data set of Hugging Face, classes by their names."""
    features = dict(source.features or {})
    named = {n: f for n, f in features.items() if hasattr(_inner(f), "int2str")}
    for row in source:
        plain = {n: _python(v) for n, v in row.items()}
        yield {n: _decoded(v, named[n]) if n in named else v for n, v in plain.items()}


def _inner(feature: Any) -> Any:
    """The feature of the elements of a list."""
    return feature[0] if isinstance(feature, list) else getattr(feature, "feature", feature)


def _decoded(value: Any, feature: Any) -> Any:
    name = _inner(feature).int2str
    if isinstance(value, list):
        return [None if v is None or v < 0 else name(v) for v in value]
    return None if value is None or value < 0 else name(value)


def dialect(record: dict[str, Any]) -> str | None:
    """Whether a row holds lists of annotators and of what they said."""
    lists = [isinstance(record.get(name), list) for name in _list_columns(record)]
    return "rows with lists" if len(lists) == 2 and all(lists) else None


def _list_columns(record: dict[str, Any]) -> tuple[str, str] | tuple[()]:
    people = [n for n in ("annotators", "annotator_ids", "workers", "worker_ids") if n in record]
    said = [n for n in ("annotations", "labels", "answers", "label") if n in record]
    return (people[0], said[0]) if people and said else ()


def answers(
    records: Iterable[Record], dialect: str, left_out: Counter[str], item: str | None
) -> Iterator[Answer]:
    """The answers in rows with lists, one element for each annotator."""
    for where, _, row, _ in records:
        people, said = _list_columns(row) or ("annotators", "annotations")
        who, labels = row.get(people), row.get(said)
        if not isinstance(who, list) or not isinstance(labels, list) or len(who) != len(labels):
            raise ValueError(
                f"{where}: {people!r} and {said!r} must be equally long lists; {shown(who)} and "
                f"{shown(labels)} came."
            )
        column = item or _item_column(list(row))
        hint = f"The columns are {', '.join(map(repr, list(row)[:20]))}: item=COLUMN."
        name = identity(row.get(column or ""), repr(column or "an id"), where, hint)
        for n, (annotator, label) in enumerate(zip(who, labels, strict=True)):
            found = chosen(label, where, said)
            several = isinstance(label, list)
            if found or several:
                yield Answer((where, n), said, name, person(annotator, where), found, None, several)
            else:
                left_out["annotations without a label"] += 1


def _item_column(names: Sequence[str]) -> str | None:
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
            f"tool; its columns are {', '.join(map(repr, names[:20]))}. Rename two of them, or say "
            "format='wide' for a column per annotator, 'counts' for a column per label."
        )
    roles = [r for r in ("item", "annotator", "label", "confidence") if r in found]
    columns: dict[str, list[Any]] = {role: [] for role in roles}
    for record in kept:
        for role in roles:
            value = record.value.get(found[role])
            if isinstance(value, list | tuple | dict):
                raise ValueError(
                    f"{record.where}: {found[role]!r} must be text or a number for each row; "
                    f"{shown(value)} came."
                )
            columns[role].append(value)
    notes = [", ".join(f"{role} = {found[role]!r}" for role in roles)]
    return export("long table", columns, notes, who)


def wide(
    records: Iterable[Record], who: str, item: str | None, annotators: Sequence[str] | None
) -> Export:
    """A column for each annotator: what is in a cell is what they said of the row's item."""
    kept, item, names = _cells(records, who, item, annotators, "annotators")
    columns: dict[str, list[Any]] = {"item": [], "annotator": [], "label": []}
    said: dict[str, set[Any]] = {name: set() for name in names}
    empty = 0
    for where, _, row, _ in kept:
        about = identity(row.get(item), repr(item), where, "Every row needs one.")
        for name in names:
            if _is_blank(label := row.get(name)):
                empty += 1
                continue
            if not isinstance(label, str | int | float):
                raise ValueError(f"{where}: {name!r} must hold one label; {shown(label)} came.")
            said[name].add(label)
            for column, value in zip(columns.values(), (about, name, label), strict=True):
                column.append(value)
    uses = Counter(label for labels in said.values() for label in labels)
    odd = [name for name, some in said.items() if some and all(uses[x] == 1 for x in some)]
    if annotators is None and odd:
        raise ValueError(
            f"{who}: annotators must have labels in common; columns "
            f"{', '.join(map(repr, odd[:10]))} share none with the others. "
            "Say which columns are annotators: annotators=['ann', 'bob']."
        )
    notes = [f"annotators are the columns {', '.join(map(repr, names[:10]))}"]
    notes += [f"{empty:,} cells without a label (empty, or NA) left out"] if empty else []
    return export("wide table", columns, notes, who)


def _is_blank(cell: Any) -> bool:
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
    notes = [f"labels are the columns {', '.join(map(repr, names[:10]))}"]
    none = sum(not any(row) for row in table)
    notes += [f"{none:,} items without counts left out"] if none else []
    return export("count table", columns, notes, who)


def _count(record: Record, name: str) -> int:
    """A count, which is whole; nothing is none."""
    value = record.value.get(name)
    if _is_blank(value):
        return 0
    try:
        number = float(value or 0)
        whole = number.is_integer() and number >= 0
    except (TypeError, ValueError, OverflowError):
        number, whole = 0.0, False
    if not whole:
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
    item = item or _item_column([n for n in names if n not in (wanted or ())])
    if item not in names:
        raise ValueError(
            f"{who} must have a column for the item; {item!r} came, and the columns are "
            f"{', '.join(map(repr, names[:20])) or 'none'}. Name it: item=COLUMN."
        )
    others = [name for name in names if name != item]
    missing = [name for name in wanted or () if name not in others]
    if missing or len(others) < 2:
        raise ValueError(
            f"{who} must have two or more columns for the {role}; {missing or others} came, and "
            f"the columns beside the item are {', '.join(map(repr, others[:20])) or 'none'}. Name "
            f"them: {role}=[...]."
        )
    return kept, item, list(wanted or others)
