"""Potato: answers by schema, in a file or a folder for each annotator, or exported together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slencodings.files.exports.answers import Answer, Reader, as_integer, chosen
from slencodings.files.exports.fields import identity, is_nothing, object_in, person
from slencodings.files.exports.record import Exported, Json, Name, Object, Record, shown
from slencodings.tables.roles import find_columns

STATE = "instance_id_to_label_to_value"
FREE = ("text_box", "free_response", "textbox")
# What a widget stores to say that its label was chosen, beside the label itself, or was not.
ON = (True, "true", "True", "on", 1, "1")
OFF = (False, "false", "False")


class _Given(NamedTuple):
    """What an annotator put into one schema about an item: values by label."""

    annotation: str | tuple[str, str]
    item: Name
    annotator: Name | None
    schema: str
    values: Object
    where: str


def _dialect(record: Object) -> str | None:
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


def _answers(export: Exported) -> Iterator[Answer]:
    """A schema is a question."""
    if export.item is not None:
        raise ValueError(
            f"Potato keeps nothing of an item but its id; {export.item!r} came for `item`. "
            "Leave it out."
        )
    read = {
        "potato annotated_instances": _instances,
        "potato user_state": _state,
        "potato jsonl": _jsonl,
    }.get(export.dialect, _row_of_table)
    given = [g for record in export.records for g in read(record)]
    # A schema of one name with many values (a slider, a menu) is answered by its values.
    names: dict[str, set[str]] = {}
    marks: dict[str, bool] = {}
    for g in given:
        names.setdefault(g.schema, set()).update(g.values)
        only = all(v in (*ON, *OFF, name) or is_nothing(v) for name, v in g.values.items())
        marks[g.schema] = marks.get(g.schema, True) and only
    for g in given:
        by_value = len(names[g.schema]) == 1 and not marks[g.schema]
        kind, labels = "choice", tuple[Name, ...]()
        if "_spans" in g.values or "_data" in g.values:
            kind = "spans"
        elif any(name in FREE for name in g.values):
            kind = "free text"
        elif by_value:
            labels = chosen([as_integer(v) for v in g.values.values()], g.where, g.schema)
        else:
            labels = tuple(n for n, v in g.values.items() if not is_nothing(v) and v not in OFF)
        if labels or kind != "choice":
            several = False if by_value else None
            yield Answer(g.annotation, g.schema, g.item, g.annotator, labels, None, several, kind)
        else:
            export.left_out["unanswered questions"] += 1


READER = Reader(
    [
        {"id", "label_annotations"},
        {STATE, "user_id"},
        {"instance_id", "user_id", "labels"},
        {"instance_id", "user_id", "*.*"},
        {"instance_id", "user", "*:::*"},
    ],
    _dialect,
    _answers,
)


def _schemas(labels: Object) -> Iterator[tuple[str, Object]]:
    for schema, given in labels.items():
        inside = given.get("labels") if isinstance(given, dict) else None
        found = inside if isinstance(inside, dict) else given
        values: Object = found if isinstance(found, dict) else {"": found}
        nested = any(isinstance(v, dict | list) for v in values.values())
        yield schema, {"_data": values} if nested else values


def _instances(record: Record) -> Iterator[_Given]:
    where, _, row, part = record
    who, name = part.folder or None, identity(row.get("id"), "id", where)
    return _labels_and_spans(record, name, who, "label_annotations", "span_annotations")


def _jsonl(record: Record) -> Iterator[_Given]:
    where, _, row, _ = record
    name = identity(row.get("instance_id"), "instance_id", where)
    return _labels_and_spans(record, name, person(row.get("user_id"), where), "labels", "spans")


def _labels_and_spans(
    record: Record, name: Name, who: Name | None, labels: str, spans: str
) -> Iterator[_Given]:
    where, _, row, _ = record
    for schema, values in _schemas(object_in(row, labels, where)):
        yield _Given(where, name, who, schema, values, where)
    for schema, marked in object_in(row, spans, where).items():
        if marked:
            yield _Given(where, name, who, schema, {"_spans": True}, where)


def _state(record: Record) -> Iterator[_Given]:
    """The state of one annotator: pairs of a label and its value, or objects by schema."""
    where, _, row, _ = record
    who = person(row.get("user_id"), where)
    for item, given in object_in(row, STATE, where).items():
        by_schema = _by_schema(given, item, where) if isinstance(given, list) else given
        if not isinstance(by_schema, dict):
            raise ValueError(
                f"{where}: the answers about {item!r} must be a list or an object; "
                f"{shown(given)} came."
            )
        for schema, values in _schemas(by_schema):
            yield _Given((where, item), item, who, schema, values, where)


def _by_schema(pairs: list[Json], item: str, where: str) -> Object:
    found: dict[str, Object] = {}
    for pair in pairs:
        label, value = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
        known: Object = label if isinstance(label, dict) else {}
        schema, name = known.get("schema"), known.get("name")
        if not isinstance(schema, str) or not isinstance(name, str):
            raise ValueError(
                f"{where}: an answer must be a pair of a label and its value; {shown(pair)} came "
                f"for item {item!r}."
            )
        found.setdefault(schema, {})[name] = value
    return {**found}


def _row_of_table(record: Record) -> Iterator[_Given]:
    """One row an item and annotator, with a column for each label of each schema."""
    where, _, row, _ = record
    split = ":::" if "user" in row else "."
    found: dict[str, Object] = {}
    for column, value in row.items():
        schema, _, label = column.partition(split)
        if label and not is_nothing(value) and not label.startswith("_room"):
            found.setdefault(schema, {})[label] = value
    name = identity(row.get("instance_id"), "instance_id", where)
    who = person(row.get("user_id", row.get("user")), where)
    for schema, values in found.items():
        yield _Given(where, name, who, schema, values, where)
