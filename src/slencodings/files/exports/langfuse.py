"""Langfuse: scores of traces, by people in annotation queues and by evaluators."""

from __future__ import annotations

from collections.abc import Iterator

from slencodings.files.exports.answers import Answer, Reader, as_integer
from slencodings.files.exports.fields import as_object, first, identity, is_nothing, list_in, moment
from slencodings.files.exports.judges import FAILED, as_label, sureness
from slencodings.files.exports.record import Exported, Json, Name, Object

# What a score is of, the most particular first; and how the web page names columns in its CSV.
SUBJECTS = ("observationId", "traceId", "sessionId", "datasetRunId")
MARKS = ("dataType", "source", "name")


def _flat(record: Object) -> Object:
    """The names of the interface, whichever way they were written."""
    return {_camel(name): value for name, value in record.items()}


def _camel(name: str) -> str:
    first, *rest = name.replace(" ", "_").split("_")
    return (first[:1].lower() + first[1:]) + "".join(word[:1].upper() + word[1:] for word in rest)


def _dialect(record: Object) -> str | None:
    page = record.get("data")
    if isinstance(page, list) and page and isinstance(page[0], dict):
        record = page[0]
    row = _flat(record)
    subject = any(name in row for name in (*SUBJECTS, "subject"))
    return "langfuse scores" if subject and all(name in row for name in MARKS) else None


def _answers(export: Exported) -> Iterator[Answer]:
    """The name of a score is a question; who gave it is a person, or the evaluator."""
    for where, _, record, _ in export.records:
        page = list_in(record, "data", where) if "data" in record else [record]
        for n, score in enumerate(page, 1):
            at = f"{where}, score {n}" if "data" in record else where
            yield from _score(_flat(as_object(score, "a score", at)), at, export)


def _score(row: Object, where: str, export: Exported) -> Iterator[Answer]:
    subject = row.get("subject")
    of = subject.get("id") if isinstance(subject, dict) else None
    found = first(*map(row.get, SUBJECTS))
    named = row.get(export.item) if export.item else of if found is None else found
    name = identity(named, export.item or "a trace", where)
    question = str(row.get("name"))
    if str(row.get("dataType")).upper() in ("TEXT", "CORRECTION"):
        yield Answer(where, question, name, None, (), kind="free text")
        return
    label = as_label(_value(row), where)
    if label is None:
        export.left_out[FAILED] += 1
        yield Answer(where, question, name, None, (), failed=True)
        return
    metadata = row.get("metadata")
    details: Object = metadata if isinstance(metadata, dict) else {}
    judge = _judge(row, details, question, where)
    time = moment(row.get("timestamp"))
    yield Answer(where, question, name, judge, (label,), time=time)
    yield from sureness({"confidence": details.get("confidence")}, where, name, judge)


def _value(row: Object) -> Json:
    """Of categories and yes or no the word, else the number."""
    word = row.get("stringValue")
    value = row.get("value")
    if str(row.get("dataType")).upper() == "NUMERIC" or is_nothing(word):
        return as_integer(value)
    return word


def _judge(row: Object, metadata: Object, question: str, where: str) -> Name:
    """A person by id; an evaluator by the model that it names, else by its score."""
    person = row.get("authorUserId")
    if not is_nothing(person):
        return identity(person, "authorUserId", where)
    model = first(metadata.get("model"), metadata.get("judge"))
    source = str(row.get("source")).lower()
    return identity(model, "a model", where) if model is not None else f"{source}:{question}"


READER = Reader(
    [
        {"name", "source", "dataType"},
        {"name", "source", "data_type"},
        {"[].name", "[].source", "[].dataType"},
    ],
    _dialect,
    _answers,
)
