"""Argilla: records of versions 1 and 2, nested, flat, or as rows of a data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from slencodings.files.exports.answers import Answer, Reader, chosen
from slencodings.files.exports.fields import as_object, identity, list_in, object_in, person
from slencodings.files.exports.record import Exported, Json, Name, Object

# What stands beside a response in a row of a data set of version 1.
RESPONSE = {"user_id", "value", "status"}
OLD = {"annotation", "annotation_agent", "prediction"}
# A question, a user, the status of the response, and its value.
Given: TypeAlias = Iterator[tuple[str, Json, Json, Json]]


def _dialect(record: Object) -> str | None:
    if {"fields", "responses"} <= record.keys():
        return "argilla v1" if isinstance(record["responses"], list) else "argilla v2"
    if any(name.endswith(".responses.users") for name in record):
        return "argilla v2 flat"
    if record.keys() >= OLD:
        return "argilla v1 text classification"
    return "argilla v1 rows" if _row_questions(record) else None


def _row_questions(record: Object) -> list[str]:
    """The questions of a row in a data set of version 1: lists of user, value and status."""
    return [name for name, given in record.items() if _is_responses(given)]


def _is_responses(given: Json) -> bool:
    first = given[0] if isinstance(given, list) and given else None
    return isinstance(first, dict) and first.keys() >= RESPONSE


def _answers(export: Exported) -> Iterator[Answer]:
    """Those that were submitted."""
    read = {
        "argilla v1": _in_list,
        "argilla v2": _nested,
        "argilla v2 flat": _flat,
        "argilla v1 rows": _responses,
        "argilla v1 text classification": _old,
    }[export.dialect]
    for where, key, record, _ in export.records:
        inside = [object_in(record, n, where) for n in ("fields", "metadata")]
        name = _item(record, inside, export.item, key, where)
        if record.get("suggestions") or record.get("prediction"):
            export.left_out["records with suggestions by models"] += 1
        none = True
        for question, by, status, value in read(record, where):
            none, user = False, person(by, where)
            if status not in (None, "submitted"):
                export.left_out[f"responses with status {status!s:.20}"] += 1
            elif value is not None:
                labels, several, kind = _value(value, where, question)
                yield Answer((where, user), question, name, user, labels, None, several, kind)
        export.left_out["records without responses"] += none


READER = Reader(
    [{"fields", "responses"}, {"*.responses.users"}, OLD, {f"[].{name}" for name in RESPONSE}],
    _dialect,
    _answers,
)


def _item(
    record: Object, inside: list[Object], item: str | None, key: str | None, where: str
) -> Name:
    """The id of a record: its own, that of the server, or a field that is named."""
    if item is not None:
        places = [p[item] for p in (record, *inside) if item in p]
        if not places:
            raise ValueError(
                f"{where}: there is no {item!r} for `item`; the fields are "
                f"{sorted(f for p in inside for f in p) or sorted(record)}."
            )
        found = places[0]
    else:
        ids = [record.get(n) for n in ("id", "external_id", "_server_id")]
        found = next((i for i in [*ids, key] if i is not None), None)
    return identity(found, "a record's id", where, "Name a field that tells them: item=FIELD.")


def _nested(record: Object, where: str) -> Given:
    responses = object_in(record, "responses", where)
    for question in responses:
        for given in list_in(responses, question, where):
            yield question, *_response(as_object(given, "a response", where))


def _response(given: Object) -> tuple[Json, Json, Json]:
    return given.get("user_id"), given.get("status"), given.get("value")


def _in_list(record: Object, where: str) -> Given:
    for each in list_in(record, "responses", where):
        response = as_object(each, "a response", where)
        user, status, _ = _response(response)
        for question, given in object_in(response, "values", where).items():
            yield question, user, status, given.get("value") if isinstance(given, dict) else given


def _flat(record: Object, where: str) -> Given:
    for name in record:
        if not name.endswith(".responses.users"):
            continue
        base = name.removesuffix(".users")
        users, values = list_in(record, name, where), list_in(record, base, where)
        status = list_in(record, f"{base}.status", where) or [None] * len(users)
        if not len(users) == len(values) == len(status):
            raise ValueError(
                f"{where}: {base!r} must have one value for each user; {len(values)} values and "
                f"{len(users)} users came. Export the records again."
            )
        for user, state, value in zip(users, status, values, strict=True):
            yield base.removesuffix(".responses"), user, state, value


def _responses(record: Object, where: str) -> Given:
    for question in _row_questions(record):
        for given in list_in(record, question, where):
            yield question, *_response(as_object(given, "a response", where))


def _old(record: Object, where: str) -> Given:
    """Version 1 before feedback: one annotation a record, by one agent."""
    if record.get("annotation") is not None:
        yield "annotation", record.get("annotation_agent"), None, record["annotation"]


def _value(value: Json, where: str, question: str) -> tuple[tuple[Name, ...], bool, str]:
    """The labels of a value: one, several in a list, or none if it is a span or a ranking."""
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        ranked = any(isinstance(v, dict) and "rank" in v for v in value)
        return (), False, "a ranking" if ranked else "spans"
    return chosen(value, where, question), isinstance(value, list), "choice"
