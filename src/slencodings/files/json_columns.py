"""JSON values as plain columns, each of one type."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from slencodings.annotations import counted
from slencodings.files.locate import Connection, Relation
from slencodings.files.write import quote
from slencodings.tables.roles import check_names

# The types of JSON values that one column can hold, and the column's type.
JSON_TYPES = (
    ({"VARCHAR"}, "VARCHAR"),
    ({"BIGINT", "UBIGINT"}, "BIGINT"),
    ({"BIGINT", "UBIGINT", "DOUBLE"}, "DOUBLE"),
    ({"BOOLEAN"}, "BOOLEAN"),
    ({"ARRAY"}, "VARCHAR[]"),
)


def json_keys(
    connection: Connection, files: Sequence[str], format: Any, compression: Any
) -> dict[str, list[str]]:
    """The keys of the JSON objects in each file, but for "", which names no column."""
    names: Any = [glob.escape(file) for file in files]
    documents = connection.read_json(
        names,
        format=format,
        compression=compression,
        records="false",
        columns={"json": "JSON"},
        filename=True,
    )
    rows = documents.project("filename, unnest(json_keys(json)) AS key").filter("key <> ''")
    found: dict[str, list[str]] = {file: [] for file in files}
    for file, key in rows.distinct().order("key").fetchall():
        found[file].append(key)
    for file, keys in found.items():
        if not keys:
            name = PurePath(file).name
            raise ValueError(f"{name} must hold JSON objects, one each annotation; none came.")
        check_names(keys, [])
    return found


def from_json(relation: Relation, numbers: Sequence[str], texts: Sequence[str]) -> Relation:
    """JSON values as plain columns; numbers stay text here, as they do from a CSV file.

    Values of several types are refused: 1 and "1" are two items, and no column holds both. In
    columns that are `texts`, what is no plain value is text.
    """
    # What names of folders hold is text already.
    found = zip(relation.columns, map(str, relation.types), strict=True)
    coded = [name for name, type in found if type == "JSON"]
    types = ", ".join(f"list(DISTINCT json_type({quote(n)}))" for n in coded) or "1"
    plain = [quote(name) for name in relation.columns if name not in coded]
    for name, found in zip(coded, relation.aggregate(types).fetchall()[0], strict=False):
        came = {t for t in found or () if t not in (None, "NULL")}
        type = next((type for allowed, type in JSON_TYPES if came <= allowed), None)
        if type == "VARCHAR[]" and _holds_numbers(relation, name):
            type = "DOUBLE[]"
        if name in numbers or (name in texts and type in (None, "VARCHAR[]")):
            type = "VARCHAR"
        if type is None:
            raise ValueError(_mixed(relation, name))
        plain.append(f"CAST({quote(name)}->>'$' AS {type}) AS {quote(name)}")
    return relation.project(", ".join(plain))


def _holds_numbers(relation: Relation, name: str) -> bool:
    """Whether lists in a column of JSON hold numbers, as far as they hold anything."""
    inner = relation.project(f"unnest(json_extract({quote(name)}, '$[*]')) AS x")
    words = inner.filter("json_type(x) NOT IN ('BIGINT', 'UBIGINT', 'DOUBLE', 'NULL')")
    return not words.limit(1).fetchall()


def _mixed(relation: Relation, name: str) -> str:
    words = {"VARCHAR": "text", "BOOLEAN": "true or false", "ARRAY": "lists", "OBJECT": "objects"}
    x = quote(name)
    rows = relation.project(f"row_number() OVER () AS row, {x} AS x, json_type({x}) AS type")
    found = rows.filter("type <> 'NULL'").aggregate(
        "type, count(*), min(row), arg_min(x, row)", "type"
    )
    came = [
        f"{counted(count, 'row')} with {words.get(type, 'numbers')}, first {value} in row {row} of "
        "the data"
        for type, count, row, value in sorted(found.fetchall(), key=lambda kind: kind[2])
    ]
    return (
        f"column {name!r} must hold values of one type; {'; '.join(came)} came. "
        'Write them all alike, for example as text: "1".'
    )
