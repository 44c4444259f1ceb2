"""Potato: answers by schema, in a file or a folder for each annotator, or exported together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from slencodings.files.exports.answers import Answer, chosen, whole
from slencodings.files.exports.load import Record, identity, is_nothing, member, person, shown
from slencodings.files.formats import find_columns

STATE = "instance_id_to_label_to_value"
FREE = ("text_box", "free_response", "textbox")
# What a widget stores to say that its label was chosen, beside the label itself.
OFF = (False, "false", "False")
MARKS = (True, "true", "True", "on", 1, "1")


class _Given(NamedTuple):
    annotation: Any
    item: Any
    annotator: Any
    schema: str
    values: dict[str, Any]
    where: str


def dialect(record: dict[str, Any]) -> str | None:
    """The dialect of Potato that a record is in."""
    if isinstance(record.get("label_annotations"), dict) and "id" in record:
        return "potato annotated_instances"
    if STATE in record and "user_id" in record:
        return "potato user_state"
    if {"instance_id", "user_id"} <= record.keys() and isinstance(record.get("labels"), dict):
        return "potato jsonl"
    dotted = any("." in name for name in record) and "label" not in find_columns(list(record))
    if {"instance_id", "user_id"} <= record.keys() and dotted:
        return "potato csv"
    if {"instance_id", "user"} <= record.keys() and any(":::" in name for name in record):
        return "potato v1 csv"
    return None


def answers(
    records: Iterable[Record], dialect: str, left_out: Counter[str], item: str | None
) -> Iterator[Answer]:
    """The answers in an export: a schema is a question."""
    if item is not None:
        raise ValueError(
            f"Potato keeps nothing of an item but its id; {item!r} came for `item`. Leave it out."
        )
    read = {
        "potato annotated_instances": _instances,
        "potato user_state": _state,
        "potato jsonl": _jsonl,
    }.get(dialect, _table)
    given = [g for record in records for g in read(record)]
    # A schema of one name with many values (a slider, a menu) is answered by its values.
    names: dict[str, set[str]] = {}
    marks: dict[str, bool] = {}
    for g in given:
        names.setdefault(g.schema, set()).update(g.values)
        only = all(_is_mark(name, value) for name, value in g.values.items())
        marks[g.schema] = marks.get(g.schema, True) and only
    for g in given:
        by_value = len(names[g.schema]) == 1 and not marks[g.schema]
        kind = "choice"
        if "_spans" in g.values or "_data" in g.values:
            kind, labels = "spans", ()
        elif any(name in FREE for name in g.values):
            kind, labels = "free text", ()
        elif by_value:
            labels = chosen([whole(v) for v in g.values.values()], g.where, g.schema)
        else:
            labels = tuple(n for n, v in g.values.items() if not is_nothing(v) and v not in OFF)
        if labels or kind != "choice":
            several = False if by_value else None
            yield Answer(g.annotation, g.schema, g.item, g.annotator, labels, None, several, kind)
        else:
            left_out["unanswered questions"] += 1


def _is_mark(name: str, value: Any) -> bool:
    return value in MARKS or value in OFF or value == name or is_nothing(value)


def _schemas(labels: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for schema, values in labels.items():
        if isinstance(values, dict) and isinstance(values.get("labels"), dict):
            values = values["labels"]
        values = values if isinstance(values, dict) else {"": values}
        if any(isinstance(v, dict | list) for v in values.values()):
            values = {"_data": values}
        yield schema, values


def _instances(record: Record) -> Iterator[_Given]:
    where, _, row, part = record
    who, name = part.folder or None, identity(row.get("id"), "id", where)
    for schema, values in _schemas(member(row, "label_annotations", dict, where)):
        yield _Given(where, name, who, schema, values, where)
    for schema in _spans(member(row, "span_annotations", dict, where)):
        yield _Given(where, name, who, schema, {"_spans": True}, where)


def _spans(given: dict[str, Any]) -> list[str]:
    return [schema for schema, spans in given.items() if spans]


def _jsonl(record: Record) -> Iterator[_Given]:
    where, _, row, _ = record
    name = identity(row.get("instance_id"), "instance_id", where)
    who = person(row.get("user_id"), where)
    for schema, values in _schemas(member(row, "labels", dict, where)):
        yield _Given(where, name, who, schema, values, where)
    for schema in _spans(member(row, "spans", dict, where)):
        yield _Given(where, name, who, schema, {"_spans": True}, where)


def _state(record: Record) -> Iterator[_Given]:
    """The state of one annotator: pairs of a label and its value, or objects by schema."""
    where, _, row, _ = record
    who = person(row.get("user_id"), where)
    for item, said in member(row, STATE, dict, where).items():
        if isinstance(said, list):
            by_schema: dict[str, Any] = {}
            for pair in said:
                schema, name, value = _pair(pair, item, where)
                by_schema.setdefault(schema, {})[name] = value
            said = by_schema
        if not isinstance(said, dict):
            raise ValueError(
                f"{where}: the answers about {item!r} must be a list or an object; "
                f"{shown(said)} came."
            )
        for schema, values in _schemas(said):
            yield _Given((where, item), item, who, schema, values, where)


def _pair(pair: Any, item: str, where: str) -> tuple[str, str, Any]:
    label = pair[0] if isinstance(pair, list) and len(pair) == 2 else None
    schema, name = map(label.get, ("schema", "name")) if isinstance(label, dict) else (0, 0)
    if not isinstance(schema, str) or not isinstance(name, str):
        raise ValueError(
            f"{where}: an answer must be a pair of a label and its value; {shown(pair)} came for "
            f"item {item!r}."
        )
    return schema, name, pair[1]


def _table(record: Record) -> Iterator[_Given]:
    """One row an item and annotator, with a column for each label of each schema."""
    where, _, row, _ = record
    split = ":::" if "user" in row else "."
    found: dict[str, dict[str, Any]] = {}
    for column, value in row.items():
        schema, _, label = column.partition(split)
        if label and not is_nothing(value) and not label.startswith("_room"):
            found.setdefault(schema, {})[label] = value
    name = identity(row.get("instance_id"), "instance_id", where)
    who = person(row.get("user_id", row.get("user")), where)
    for schema, values in found.items():
        yield _Given(where, name, who, schema, values, where)
