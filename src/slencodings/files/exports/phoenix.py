"""Arize Phoenix: annotations of spans and traces, by people, code and language models."""

from __future__ import annotations

from collections.abc import Iterator

from slencodings.files.exports.answers import Answer, Reader, as_integer
from slencodings.files.exports.fields import as_object, first, identity, list_in, object_in
from slencodings.files.exports.judges import FAILED, as_label, sureness
from slencodings.files.exports.record import Exported, Name, Object

# What is annotated, the most particular first; tables of the client begin with the last.
SUBJECTS = ("span_id", "trace_id", "session_id", "context.span_id")
# How the client's tables call the parts of a result.
PREFIX = "result."


def _annotations_in(record: Object, where: str) -> list[Object]:
    if "data" not in record:
        return [record]
    return [as_object(row, "an annotation", where) for row in list_in(record, "data", where)]


def _question(row: Object) -> str | None:
    name = row.get("name", row.get("annotation_name"))
    return name if isinstance(name, str) else None


def _dialect(record: Object) -> str | None:
    page = record.get("data")
    row = page[0] if isinstance(page, list) and page else record
    if not isinstance(row, dict) or "annotator_kind" not in row or _question(row) is None:
        return None
    return "phoenix annotations" if any(name in row for name in SUBJECTS) else None


def _answers(export: Exported) -> Iterator[Answer]:
    """The name of an annotation is a question; a judge is known by its identifier or model."""
    for where, _, record, _ in export.records:
        for n, row in enumerate(_annotations_in(record, where), 1):
            at = f"{where}, annotation {n}" if "data" in record else where
            yield from _annotation(row, at, export)


def _annotation(row: Object, where: str, export: Exported) -> Iterator[Answer]:
    named = row.get(export.item) if export.item else first(*map(row.get, SUBJECTS))
    name = identity(named, export.item or "span_id", where)
    nested = object_in(row, "result", where)
    result = nested or {
        key.removeprefix(PREFIX): value for key, value in row.items() if key.startswith(PREFIX)
    }
    label = as_label(first(result.get("label"), as_integer(result.get("score"))), where)
    question = str(_question(row))
    if label is None:
        export.left_out[FAILED] += 1
        yield Answer(where, question, name, None, (), failed=True)
        return
    metadata = row.get("metadata")
    details: Object = metadata if isinstance(metadata, dict) else {}
    judge = _judge(row, details, question, where)
    yield Answer(where, question, name, judge, (label,))
    yield from sureness({"confidence": details.get("confidence")}, where, name, judge)


def _judge(row: Object, metadata: Object, question: str, where: str) -> Name:
    """A person by id; a model by what it is called; else by kind and question."""
    model = first(metadata.get("model"), metadata.get("judge"))
    found = first(row.get("user_id"), model, row.get("identifier"))
    kind = str(row.get("annotator_kind")).lower()
    return f"{kind}:{question}" if found is None else identity(found, "an annotator", where)


READER = Reader(
    [
        {"annotator_kind", "name"},
        {"annotator_kind", "annotation_name"},
        {"[].annotator_kind", "[].name"},
    ],
    _dialect,
    _answers,
)
