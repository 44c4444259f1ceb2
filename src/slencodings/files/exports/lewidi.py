"""LeWiDi, Learning With Disagreements: the data of the shared tasks of 2023 and 2025."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from slencodings.files.exports.answers import Answer, Reader, as_integer, chosen
from slencodings.files.exports.fields import identity
from slencodings.files.exports.record import Exported, Json, Object, Record, shown

MARKS = {"annotation task", "annotations", "annotators"}


def _dialect(record: Object) -> str | None:
    if not record.keys() >= MARKS:
        return None
    return "lewidi 2025" if isinstance(record["annotations"], dict) else "lewidi 2023"


def _answers(export: Exported) -> Iterator[Answer]:
    """A task is a question."""
    if export.item is not None:
        raise ValueError(
            f"items of LeWiDi are known by their key alone; {export.item!r} came for "
            "`item`. Leave it out."
        )
    # Every label of a file must be known before it can be told whether all are numbers.
    found = [answer for record in export.records for answer in _annotations(record)]
    numbers = all(isinstance(as_integer(x), int) for answer in found for x in answer.labels)
    for answer in found:
        if not answer.labels:
            export.left_out["annotations without a label"] += 1
        elif numbers:
            yield answer._replace(labels=tuple(map(as_integer, answer.labels)))
        else:
            yield answer


READER = Reader([MARKS], _dialect, _answers)


def _annotations(record: Record) -> Iterator[Answer]:
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
        labels = [label.strip() for label in given.split(",")] if given.strip() else []
        if len(labels) != len(names):
            raise ValueError(
                f"{where}: there must be an annotation for each annotator; {len(labels)} "
                f"annotations and {len(names)} annotators came. Download the data set again."
            )
        pairs: Iterable[tuple[str, Json]] = zip(names, labels, strict=True)
    elif isinstance(given, dict):
        pairs = given.items()
    else:
        raise ValueError(
            f"{where}: 'annotations' must be text (2023) or an object (2025); {shown(given)} came."
        )
    for name, label in pairs:
        # 2025 writes several labels of one annotator with commas between them.
        if isinstance(label, str):
            label = [x.strip() for x in label.split(",")]
        yield Answer((where, name), task, item, name, chosen(label, where, task), None, None)
