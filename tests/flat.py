"""Files encoded and read by flat options, as people type them, instead of values."""

from dataclasses import fields
from typing import Any

from slencodings.files import crowd, database, encode, spark
from slencodings.tables.fuse import Fusing
from slencodings.tables.roles import Reading


def values(options: dict[str, Any]) -> tuple[Reading, Fusing, dict[str, Any]]:
    """The options of reading and of fusing, and those that are neither."""
    options = options.pop("columns", {}) | options
    given = [
        {field.name: options.pop(field.name) for field in fields(kind) if field.name in options}
        for kind in (Reading, Fusing)
    ]
    return Reading(**given[0]), Fusing(**given[1]), options


def encode_file(source: Any, target: Any = None, **options: Any) -> dict[str, Any]:
    reading, fusing, rest = values(options)
    return encode.encode_file(source, target, reading, fusing, **rest)


def encode_as_stated(source: Any, target: Any = None, **options: Any) -> dict[str, Any]:
    """Annotations weighed by what came with them: the numbers of `fuse_table` without a crowd."""
    return encode_file(source, target, **({"weigh": "stated"} | options))


def encode_on_spark(source: Any, target: str, **options: Any) -> dict[str, Any]:
    reading, fusing, rest = values(options)
    return spark.encode_files(source, target, reading, fusing, **rest)


def read_crowd(source: Any, **options: Any) -> crowd.ReadCrowd:
    reading, _, rest = values(options)
    return crowd.read_crowd(source, reading, **rest)


def encode_in_database(
    address: str, table: str, target: str | None = None, **options: Any
) -> dict[str, Any]:
    reading, fusing, rest = values(options)
    return database.encode_table(address, table, target, reading, fusing, **rest)
