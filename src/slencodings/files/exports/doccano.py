"""doccano: one record a document, in one file for all annotators or one for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from slencodings.files.exports.answers import Answer, Reader, chosen
from slencodings.files.exports.fields import as_object, identity, list_in, person
from slencodings.files.exports.record import Exported, Json, Name, Object, shown

TEXTS = ("text", "data", "filename", "image")
LABELS = ("label", "labels", "cats")
# Spans of text, and boxes in images.
SPANS = ("entities", "bbox")


def _dialect(record: Object) -> str | None:
    if "id" not in record or not any(name in record for name in TEXTS):
        return None
    if _is_old(record.get("annotations")):
        return "doccano annotations"
    labels = [record[name] for name in LABELS if name in record]
    if len(labels) == 1 and isinstance(labels[0], str) and "Comments" in record:
        return "doccano csv"
    if len(labels) == 1 and isinstance(labels[0], list) and labels[0]:
        # Lists of numbers are soft labels of a table that is not doccano's.
        return "doccano jsonl" if all(isinstance(x, str | list) for x in labels[0]) else None
    marked = any(isinstance(record.get(name), list) for name in SPANS)
    return "doccano jsonl" if marked and "Comments" in record else None


def _is_old(given: Json) -> bool:
    """Version 1.2 and before tells the user of each annotation."""
    first = given[0] if isinstance(given, list) and given else None
    return isinstance(first, dict) and {"user", "label"} <= first.keys()


def _answers(export: Exported) -> Iterator[Answer]:
    """An annotator is known by the file, where there are several."""
    item = export.item or "id"
    for where, _, record, part in export.records:
        hint = "Export it again, or name a field that tells documents apart: item=FIELD."
        name = identity(record.get(item), item, where, hint)
        if export.dialect == "doccano annotations":
            yield from _old(record, name, where)
            continue
        # A project that is worked on together is written to all.jsonl, without names.
        stem = Path(part.name).stem
        who = stem if part.folder and stem != "all" else None
        question = next((n for n in LABELS if n in record), None)
        if question is None:
            yield Answer(where, "entities", name, who, (), kind="spans")
            continue
        given: Json = record[question] or []
        if isinstance(given, str):
            given = [*given.split("#")]
        if not isinstance(given, list):
            raise ValueError(
                f"{where}: {question!r} must be a list of labels; {shown(given)} came. "
                "Is this a table of another tool? Then read it without a format."
            )
        if any(isinstance(x, list) for x in given):
            yield Answer(where, question, name, who, (), kind="spans")
        elif given:
            yield Answer(where, question, name, who, chosen(given, where, question), None, None)
        else:
            export.left_out["documents without labels"] += 1


READER = Reader(
    [{"id", text, name} for text in TEXTS for name in ("annotations", *LABELS, *SPANS)],
    _dialect,
    _answers,
    plain=({"id", "label"}, "doccano csv"),
)


def _old(record: Object, name: Name, where: str) -> Iterator[Answer]:
    by_user: dict[Name | None, list[Json]] = {}
    marked = False
    for each in list_in(record, "annotations", where):
        given = as_object(each, "an annotation", where)
        marked = marked or "start_offset" in given
        user = person(given.get("user"), where)
        by_user.setdefault(user, []).append(given.get("label", given.get("text")))
    for user, labels in by_user.items():
        kind = "spans" if marked else "choice"
        found = () if marked else chosen(labels, where, "label")
        yield Answer((where, user), "label", name, user, found, None, None, kind)
