"""doccano: one record a document, in one file for all annotators or one for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from slencodings.files.exports.answers import Answer, chosen
from slencodings.files.exports.load import Record, identity, member, person, shown

TEXTS = ("text", "data", "filename", "image")
LABELS = ("label", "labels", "cats")


def dialect(record: dict[str, Any]) -> str | None:
    """The dialect of doccano that a record is in."""
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
    marked = any(isinstance(record.get(name), list) for name in ("entities", "bbox"))
    return "doccano jsonl" if marked and "Comments" in record else None


def _is_old(given: Any) -> bool:
    """Version 1.2 and before tells the user of each annotation."""
    first = given[0] if isinstance(given, list) and given else None
    return isinstance(first, dict) and {"user", "label"} <= first.keys()


def answers(
    records: Iterable[Record], dialect: str, left_out: Counter[str], item: str | None
) -> Iterator[Answer]:
    """The answers in an export; an annotator is known by the file, where there are several."""
    for where, _, record, part in records:
        hint = "Export it again, or name a field that tells documents apart: item=FIELD."
        name = identity(record.get(item or "id"), item or "id", where, hint)
        if dialect == "doccano annotations":
            yield from _old(record, name, where)
            continue
        # A project that is worked on together is written to all.jsonl, without names.
        stem = Path(part.name).stem
        who = stem if part.folder and stem != "all" else None
        question = next((n for n in LABELS if n in record), None)
        if question is None:
            yield Answer(where, "entities", name, who, (), kind="spans")
            continue
        given = record[question]
        if isinstance(given, str):
            given = given.split("#") if given else []
        given = [] if given is None else given
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
            left_out["documents without labels"] += 1


def _old(record: dict[str, Any], name: Any, where: str) -> Iterator[Answer]:
    said: dict[Any, list[Any]] = {}
    marked = False
    for given in member(record, "annotations", list, where):
        if not isinstance(given, dict):
            raise ValueError(f"{where}: an annotation must be an object; {shown(given)} came.")
        marked = marked or "start_offset" in given
        said.setdefault(person(given.get("user"), where), []).append(
            given.get("label", given.get("text"))
        )
    for user, labels in said.items():
        kind = "spans" if marked else "choice"
        found = () if marked else chosen(labels, where, "label")
        yield Answer((where, user), "label", name, user, found, None, None, kind)
