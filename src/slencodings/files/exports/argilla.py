"""Argilla: records of versions 1 and 2, nested, flat, or as rows of a data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from slencodings.files.exports.answers import Answer, chosen
from slencodings.files.exports.load import Record, identity, member, person, shown


def dialect(record: dict[str, Any]) -> str | None:
    """The dialect of Argilla that a record is in."""
    if {"fields", "responses"} <= record.keys():
        return "argilla v1" if isinstance(record["responses"], list) else "argilla v2"
    if any(name.endswith(".responses.users") for name in record):
        return "argilla v2 flat"
    if {"annotation", "annotation_agent", "prediction"} <= record.keys():
        return "argilla v1 text classification"
    return "argilla v1 rows" if _row_questions(record) else None


def _row_questions(record: dict[str, Any]) -> list[str]:
    """The questions of a row in a data set of version 1: lists of user, value and status."""
    return [name for name, given in record.items() if _is_response(given)]


def _is_response(given: Any) -> bool:
    first = given[0] if isinstance(given, list) and given else None
    return isinstance(first, dict) and {"user_id", "value", "status"} <= first.keys()


def answers(
    records: Iterable[Record], dialect: str, left_out: Counter[str], item: str | None
) -> Iterator[Answer]:
    """The answers in an export: those that were submitted."""
    read = {
        "argilla v1": _listed,
        "argilla v2": _nested,
        "argilla v2 flat": _flat,
        "argilla v1 rows": _rows,
        "argilla v1 text classification": _old,
    }[dialect]
    for where, key, record, _ in records:
        inside = [member(record, n, dict, where) for n in ("fields", "metadata")]
        name = _item(record, inside, item, key, where)
        if record.get("suggestions") or record.get("prediction"):
            left_out["records' suggestions by models"] += 1
        none = True
        for question, user, status, value in read(record, where):
            none, user = False, person(user, where)
            if status not in (None, "submitted"):
                left_out[f"responses that are {status!s:.20}"] += 1
            elif value is not None:
                labels, several, kind = _value(value, where, question)
                yield Answer((where, user), question, name, user, labels, None, several, kind)
        left_out["records without responses"] += none


def _item(
    record: dict[str, Any], inside: list[dict[str, Any]], item: str | None, key: Any, where: str
) -> Any:
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


Given = Iterator[tuple[str, Any, Any, Any]]


def _nested(record: dict[str, Any], where: str) -> Given:
    for question in member(record, "responses", dict, where):
        for given in member(record["responses"], question, list, where):
            yield question, *_response(given, where)


def _response(given: Any, where: str) -> tuple[Any, Any, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"{where}: a response must be an object; {shown(given)} came.")
    return given.get("user_id"), given.get("status"), given.get("value")


def _listed(record: dict[str, Any], where: str) -> Given:
    for response in member(record, "responses", list, where):
        user, status, _ = _response(response, where)
        for question, given in member(response, "values", dict, where).items():
            yield question, user, status, given.get("value") if isinstance(given, dict) else given


def _flat(record: dict[str, Any], where: str) -> Given:
    for name in record:
        if not name.endswith(".responses.users"):
            continue
        base = name.removesuffix(".users")
        users, values = member(record, name, list, where), member(record, base, list, where)
        status = member(record, f"{base}.status", list, where) or [None] * len(users)
        if not len(users) == len(values) == len(status):
            raise ValueError(
                f"{where}: {base!r} must have one value for each user; {len(values)} values and "
                f"{len(users)} users came. Export the records again."
            )
        for user, state, value in zip(users, status, values, strict=True):
            yield base.removesuffix(".responses"), user, state, value


def _rows(record: dict[str, Any], where: str) -> Given:
    for question in _row_questions(record):
        for given in record[question]:
            yield question, *_response(given, where)


def _old(record: dict[str, Any], where: str) -> Given:
    """Version 1 before feedback: one annotation a record, by one agent."""
    if record.get("annotation") is not None:
        yield "annotation", record.get("annotation_agent"), None, record["annotation"]


def _value(value: Any, where: str, question: str) -> tuple[tuple[Any, ...], bool, str]:
    """The labels of a value: one, several in a list, or none if it is a span or a ranking."""
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        ranked = any(isinstance(v, dict) and "rank" in v for v in value)
        return (), False, "a ranking" if ranked else "spans"
    return chosen(value, where, question), isinstance(value, list), "choice"
