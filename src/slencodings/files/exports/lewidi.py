"""LeWiDi, Learning With Disagreements: the data of the shared tasks of 2023 and 2025."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from slencodings.files.exports.answers import Answer, chosen, whole
from slencodings.files.exports.load import Record, identity, shown


def dialect(record: dict[str, Any]) -> str | None:
    """The dialect of LeWiDi that a record is in."""
    if not {"annotation task", "annotations", "annotators"} <= record.keys():
        return None
    return "lewidi 2025" if isinstance(record["annotations"], dict) else "lewidi 2023"


def answers(
    records: Iterable[Record], dialect: str, left_out: Counter[str], item: str | None
) -> Iterator[Answer]:
    """The answers in a data set; a task is a question."""
    if item is not None:
        raise ValueError(
            f"items of LeWiDi are known by their key alone; {item!r} came for `item`. Leave it out."
        )
    # Every label of a file must be known before it can be told whether all are numbers.
    found = [row for record in records for row in _annotations(record, left_out)]
    numbers = all(isinstance(whole(label), int) for *_, labels in found for label in labels)
    for where, task, name, who, labels in found:
        known = tuple(map(whole, labels)) if numbers else labels
        if not known:
            left_out["annotations without a label"] += 1
            continue
        yield Answer(where, task, name, who, known, None, None)


def _annotations(
    record: Record, left_out: Counter[str]
) -> Iterator[tuple[Any, str, Any, str, tuple[Any, ...]]]:
    where, key, row, _ = record
    task, given, people = map(row.get, ("annotation task", "annotations", "annotators"))
    if not isinstance(task, str) or not isinstance(people, str):
        raise ValueError(
            f"{where}: 'annotation task' and 'annotators' must be text; {shown(task)} and "
            f"{shown(people)} came. Download the data set again."
        )
    item = identity(row.get("id") if key is None else key, "an item's key", where)
    names = [name.strip() for name in people.split(",") if name.strip()]
    if isinstance(given, str):
        said = [label.strip() for label in given.split(",")] if given.strip() else []
        if len(said) != len(names):
            raise ValueError(
                f"{where}: there must be an annotation for each annotator; {len(said)} annotations "
                f"and {len(names)} annotators came. Download the data set again."
            )
        pairs: Iterable[tuple[str, Any]] = zip(names, said, strict=True)
    elif isinstance(given, dict):
        pairs = given.items()
    else:
        raise ValueError(
            f"{where}: 'annotations' must be text (2023) or an object (2025); {shown(given)} came."
        )
    for name, label in pairs:
        # 2025 writes several labels of one annotator with commas between them.
        label = [x.strip() for x in label.split(",")] if isinstance(label, str) else label
        labels = chosen(label, where, task)
        yield (where, name), task, item, name, labels
