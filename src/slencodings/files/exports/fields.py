"""What is in a record: values of JSON, checked to be of the kind that they must be."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, TypeGuard, cast

from slencodings.files.exports.record import Json, Name, Object, shown

# Between labels that stand in one cell.
SEPARATORS = (";", "|", ",")
OTHER_VERSION = " Is this an export of another version? Export it again as the documentation says."


def is_nothing(value: object) -> bool:
    """Whether a value is none: null, NaN, or text of no length."""
    return value is None or value == "" or (isinstance(value, float) and value != value)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number, which yes and no are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def first(*values: Json) -> Json:
    """The first value that there is; None if there is none."""
    return next((value for value in values if not is_nothing(value)), None)


def as_object(value: Json, what: str, where: str, hint: str = "") -> Object:
    """What must be an object."""
    if not isinstance(value, dict):
        raise ValueError(f"{where}: {what} must be an object; {shown(value)} came.{hint}")
    return value


def object_in(record: Object, name: str, where: str) -> Object:
    """A member of a record that must be an object, an empty one where it is null or missing."""
    value = record.get(name)
    return {} if value is None else as_object(value, repr(name), where, OTHER_VERSION)


def list_in(record: Object, name: str, where: str) -> list[Json]:
    """A member of a record that must be a list, an empty one where it is null or missing."""
    value = record.get(name)
    if value is None or isinstance(value, list):
        return value or []
    raise ValueError(f"{where}: {name!r} must be a list; {shown(value)} came.{OTHER_VERSION}")


def identity(value: Json, what: str, where: str, hint: str = "Export it again.") -> Name:
    """The name of an item or annotator: text or a number."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return value
    raise ValueError(f"{where}: {what} must be text or a whole number; {shown(value)} came. {hint}")


def person(value: Json, where: str) -> Name | None:
    """The name of an annotator, None where the tool does not tell."""
    return None if is_nothing(value) else identity(value, "an annotator's name", where)


def moment(value: Json) -> str | None:
    """When something was said, as it was written; None where the tool does not tell."""
    known = isinstance(value, str | int | float) and not is_nothing(value)
    return str(value) if known else None


def split_cell(cell: str, separator: str | None = None) -> list[str]:
    """The labels in a cell: of a JSON list, or between separators.

    >>> split_cell('["a, b", "c"]'), split_cell("a; c"), split_cell("a, b;c"), split_cell("a")
    (['a, b', 'c'], ['a', 'c'], ['a, b', 'c'], ['a'])
    """
    if cell.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            return [str(x) for x in cast("list[Any]", json.loads(cell))]
    found = separator or next((s for s in SEPARATORS if s in cell), None)
    return [part.strip() for part in cell.split(found) if part.strip()] if found else [cell]
