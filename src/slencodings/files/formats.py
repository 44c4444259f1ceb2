"""Files to tables: what is in the file, and which column is what."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import json
import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from slencodings.choices import TableFormat, words
from slencodings.tables.engines import (
    check_names,
)
from slencodings.tables.rows import Reading

if TYPE_CHECKING:
    import duckdb

    Connection: TypeAlias = duckdb.DuckDBPyConnection
    Relation: TypeAlias = duckdb.DuckDBPyRelation

# The usual names of columns, the likeliest first; compared without case and punctuation.
USUAL_NAMES = {
    "item": "item task example unit instance sample document doc post image sentence question text",
    "annotator": "annotator worker rater coder labeler labeller judge participant subject user",
    "label": "label answer response annotation judgment judgement choice vote class rating",
    "confidence": "confidence certainty sureness",
    "uncertainty": "uncertainty doubt",
    "reliability": "reliability trust skill",
}
NUMBERS = ("confidence", "uncertainty", "reliability")
# What other programs write in a column of numbers where there is none.
NO_NUMBER = ("", "na", "n/a", "nan", "null", "none")
# The types of JSON values that one column can hold, and the column's type.
JSON_TYPES = (
    ({"VARCHAR"}, "VARCHAR"),
    ({"BIGINT", "UBIGINT"}, "BIGINT"),
    ({"BIGINT", "UBIGINT", "DOUBLE"}, "DOUBLE"),
    ({"BOOLEAN"}, "BOOLEAN"),
    ({"ARRAY"}, "DOUBLE[]"),
)
_LINES: dict[str, Any] = {"jsonl": "newline_delimited", "json": "auto"}
# How much of a file is looked at to tell what it is.
HEAD = 1 << 16


def find_columns(names: Sequence[str]) -> dict[str, str]:
    """Guess which column plays which role by its name.

    >>> find_columns(["Task ID", "WorkerId", "answer", "notes"])
    {'item': 'Task ID', 'annotator': 'WorkerId', 'label': 'answer'}
    """
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in reversed(names)}
    found: dict[str, str] = {}
    for role, usual in USUAL_NAMES.items():
        forms = [w + end for w in usual.split() for end in ("", "id", "name")]
        match = next((plain[form] for form in forms if form in plain), None)
        if match is not None:
            found[role] = match
    return found


def choose_columns(names: Sequence[str], reading: Reading) -> Reading:
    """The reading with a column, columns or a number for each role: as given, the rest by name."""
    given = {role: _meant(role, spec, names) for role, spec in reading.columns.items()}
    taken = [name for spec in given.values() for name in columns_of(spec)]
    for name in taken:
        if taken.count(name) > 1:
            roles = [f"`{role}`" for role, spec in given.items() if name in columns_of(spec)]
            raise ValueError(
                f"a column can be one thing; {name!r} came as {' and '.join(roles)}. "
                f"The columns are {listed(names)}."
            )
    found = find_columns([name for name in names if name not in taken])
    if given.keys() & {"confidence", "uncertainty"}:
        found = {r: name for r, name in found.items() if r not in ("confidence", "uncertainty")}
    elif "confidence" in found:
        found.pop("uncertainty", None)
    chosen = found | given
    for role in ("item", "label"):
        if role not in chosen:
            raise ValueError(
                f"no column looks like the {role}; the columns are {listed(names)}. "
                f"Name it: {role}='COLUMN'."
            )
    check_names(names, [(role, name) for role, c in chosen.items() for name in columns_of(c)])
    return replace(reading, **chosen)


def shown(reading: Reading) -> str:
    """Which column plays which role, as people write it."""
    return ", ".join(
        f"{role} = {', '.join(columns_of(spec)) or spec}" for role, spec in reading.columns.items()
    )


def number_columns(reading: Reading) -> list[str]:
    """The columns that must hold numbers."""
    numbers = [name for role in NUMBERS for name in columns_of(getattr(reading, role))]
    return numbers + (list(reading.label) if isinstance(reading.label, list) else [])


def listed(names: Sequence[str]) -> str:
    """Some names of columns; a file of another kind may have thousands, or a very long one."""
    shown = [repr(name if len(name) <= 60 else name[:60] + "...") for name in names[:20]]
    return ", ".join(shown) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _meant(role: str, spec: Any, names: Sequence[str]) -> Any:
    """The name of a column where there is one; else a number for all, or names with commas."""
    if not isinstance(spec, str) or spec in names:
        return spec
    if role == "label" and "," in spec:
        return [name.strip() for name in spec.split(",")]
    with suppress(ValueError):
        return float(spec) if role in NUMBERS else spec
    return spec


def columns_of(spec: Any) -> list[str]:
    """The columns that a role is read from: none if it is a number."""
    return (
        [spec]
        if isinstance(spec, str)
        else cast("list[str]", spec if isinstance(spec, list) else [])
    )


def format_of(path: Path) -> TableFormat:
    """The format of a file, by its name or else by how it begins."""
    if known := format_by_name(path):
        return known
    head = beginning(path)
    if head[:4] == b"PAR1":
        return "parquet"
    first = text_of(path, head).lstrip()[:1]
    return "jsonl" if first == "{" else "json" if first == "[" else "csv"


def format_by_name(path: PurePath) -> TableFormat | None:
    """The format that the name of a file says, if it does."""
    suffixes = [s.lower() for s in path.suffixes[-2:] if s.lower() != ".gz"]
    known = {f".{f}": f for f in words(TableFormat)} | {".pq": "parquet", ".ndjson": "jsonl"}
    return cast("TableFormat | None", known.get(suffixes[-1])) if suffixes else None


def beginning(path: Path) -> bytes:
    """The first bytes of a file, unpacked."""
    try:
        with gzip.open(path) if is_gzip(path) else path.open("rb") as file:
            return file.read(HEAD)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{path.name} is gzipped and damaged: {error}. Copy or download it again."
        ) from error


def is_gzip(path: Path) -> bool:
    """Whether a file is gzipped, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def text_of(path: Path, head: bytes) -> str:
    """The first bytes of a file as text, whole lines if there are any."""
    wide = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    if b"\x00" in head and not wide:
        raise ValueError(
            f"{path.name} must be CSV, TSV, Parquet or JSONL; it is a binary file of another kind "
            f"(it begins with {head[:8]!r}). Export it to one of these first."
        )
    try:
        return (head[: head.rfind(b"\n") + 1] or head).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path.name} must be UTF-8; line {line} is not (it has {head[error.start :][:1]!r}). "
            + convert(path.name, "UTF-16" if wide else "LATIN1")
        ) from error


def convert(name: str, encoding: str = "LATIN1") -> str:
    """What to type to make a file UTF-8."""
    return f"Convert it first: iconv -f {encoding} -t UTF-8 {name} > utf8-{name}"


class Head(NamedTuple):
    """How a file is to be read: whether it is packed, and the delimiter and columns of CSV."""

    compression: Literal["gzip", "none", "auto_detect"]
    delimiter: str = ""
    names: tuple[str, ...] = ()


def look(path: Path, format: TableFormat) -> Head:
    """Tell how a file on this machine is to be read by how it begins, or refuse it."""
    packed = is_gzip(path)
    if format == "parquet":
        if packed:
            raise ValueError(
                f"{path.name} is a gzipped Parquet file, which cannot be read in parts. "
                f"Unpack it first: gunzip {path.name}"
            )
        return Head("none")
    head, compression = beginning(path), "gzip" if packed else "none"
    text = text_of(path, head)
    if format in ("jsonl", "json"):
        _check_json(path, head, text)
        return Head(compression)
    delimiter, names = header(path.name, text, "\t" if format == "tsv" else ",;\t|")
    return Head(compression, delimiter, tuple(names))


def json_keys(
    connection: Connection, files: Sequence[str], format: TableFormat, head: Head
) -> dict[str, list[str]]:
    """The keys of the JSON objects in each file."""
    names: Any = [glob.escape(file) for file in files]
    whole = connection.read_json(
        names,
        format=_LINES[format],
        compression=head.compression,
        records="false",
        columns={"json": "JSON"},
        filename=True,
    )
    rows = whole.project("filename, unnest(json_keys(json)) AS key").distinct().order("key")
    found: dict[str, list[str]] = {file: [] for file in files}
    for file, key in rows.fetchall():
        found[file].append(key)
    for file, keys in found.items():
        if not keys:
            name = PurePath(file).name
            raise ValueError(f"{name} must hold JSON objects, one each annotation; none came.")
        check_names(keys, [])
    return found


def read_files(
    connection: Connection,
    files: Sequence[str],
    format: TableFormat,
    head: Head,
    *,
    folders: bool = False,
) -> Relation:
    """A lazy relation over files that have the same head; `folders` may hold columns as well.

    Text stays text, so that the item 007 stays 007.
    """
    names: Any = [glob.escape(file) for file in files]
    hive: dict[str, Any] = {"hive_partitioning": folders, "hive_types_autocast": False}
    if format == "parquet":
        listed = ", ".join("'" + name.replace("'", "''") + "'" for name in names)
        how = ", ".join(f"{option} = {value}" for option, value in hive.items())
        return connection.sql(f"FROM read_parquet([{listed}], {how})")
    hive["compression"] = head.compression
    if format in ("jsonl", "json"):
        columns = dict.fromkeys(head.names, "JSON")
        return connection.read_json(names, format=_LINES[format], columns=columns, **hive)
    # All is said here, because DuckDB guesses another delimiter when one row is ragged.
    return connection.read_csv(
        names,
        header=True,
        auto_detect=False,
        columns=dict.fromkeys(head.names, "VARCHAR"),
        delimiter=head.delimiter,
        quotechar='"',
        escapechar='"',
        **hive,
    )


def header(name: str, text: str, delimiters: str) -> tuple[str, list[str]]:
    """The delimiter and the column names of a CSV file, from its first line."""
    first = text.split("\n", 1)[0]
    delimiter = max(delimiters, key=first.count)
    lines = csv.reader(io.StringIO(text, newline=None), delimiter=delimiter)
    names: list[str] = next(lines, [])
    if not any(names):
        raise ValueError(f"the first line of {name} must name the columns; it is empty.")
    # An index without a name is what pandas puts first.
    names = [column or f"column{i}" for i, column in enumerate(names)]
    for column in names:
        if names.count(column) > 1:
            raise ValueError(
                f"column names must differ; {column!r} came {names.count(column)} times in "
                f"{name}. Rename all but one."
            )
    check_names(names, [])
    return delimiter, names


def _check_json(path: Path, head: bytes, text: str) -> None:
    """Refuse what DuckDB would not explain, and an array cut off after a comma, which it reads."""
    if head.startswith(b"\xef\xbb\xbf"):
        raise ValueError(
            f"{path.name} begins with a byte order mark, which JSON must not have. "
            f"Cut it off first: tail -c +4 {path.name} > clean-{path.name}"
        )
    if is_gzip(path) or text.lstrip()[:1] != "[":
        return
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - HEAD))
        end = file.read().rstrip()[-1:]
    if end != b"]":
        raise ValueError(
            f"{path.name} is cut off: a JSON array ends with ]; {end.decode(errors='replace')!r} "
            "came. Copy or download it again."
        )


def broken_line(path: Path) -> str:
    """The first line of a JSONL file that is not JSON, in words; nothing if all are.

    DuckDB counts lines differently in different messages.
    """
    damaged = suppress(EOFError, zlib.error)
    with damaged, gzip.open(path) if is_gzip(path) else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                json.loads(line.strip() or "null")
            except UnicodeDecodeError:
                return f"line {number} is not UTF-8."
            except json.JSONDecodeError as error:
                start = line[:60].decode(errors="replace").rstrip()
                return f"line {number} is not JSON, {error.msg} at {error.colno}: {start!r}."
    return ""


def from_json(relation: Relation, numbers: Sequence[str]) -> Relation:
    """JSON values as plain columns; numbers stay text here, as they do from a CSV file.

    Values of several types are refused: 1 and "1" are two items, and no column holds both.
    """
    # What names of folders hold is text already.
    found = zip(relation.columns, map(str, relation.types), strict=True)
    coded = [name for name, type in found if type == "JSON"]
    types = ", ".join(f"list(DISTINCT json_type({quote(n)}))" for n in coded) or "1"
    plain = [quote(name) for name in relation.columns if name not in coded]
    for name, found in zip(coded, relation.aggregate(types).fetchall()[0], strict=False):
        came = {t for t in found or () if t not in (None, "NULL")}
        type = next((type for allowed, type in JSON_TYPES if came <= allowed), None)
        if name in numbers:
            type = "VARCHAR"
        if type is None:
            raise ValueError(_mixed(relation, name))
        plain.append(f"CAST({quote(name)}->>'$' AS {type}) AS {quote(name)}")
    return relation.project(", ".join(plain))


def _mixed(relation: Relation, name: str) -> str:
    words = {"VARCHAR": "text", "BOOLEAN": "true or false", "ARRAY": "lists", "OBJECT": "objects"}
    x = quote(name)
    rows = relation.project(f"row_number() OVER () - 1 AS row, {x} AS x, json_type({x}) AS type")
    found = rows.filter("type <> 'NULL'").aggregate(
        "type, count(*), min(row), arg_min(x, row)", "type"
    )
    came = [
        f"{count} rows with {words.get(type, 'numbers')}, first {value} at row {row} (from 0)"
        for type, count, row, value in sorted(found.fetchall(), key=lambda kind: kind[2])
    ]
    return (
        f"column {name!r} must hold values of one type; {'; '.join(came)} came. "
        'Write them all alike, for example as text: "1".'
    )


def typed(relation: Relation, numbers: Sequence[str]) -> Relation:
    """The relation with text turned into numbers in some columns; other words are refused."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    for name in numbers:
        if types.get(name) != "VARCHAR":
            continue
        text, none = quote(name), ", ".join(f"'{word}'" for word in NO_NUMBER)
        number = f"TRY_CAST({text} AS DOUBLE)"
        wrong = f"{text} IS NOT NULL AND {number} IS NULL AND lower(trim({text})) NOT IN ({none})"
        numbered = relation.project(
            f"row_number() OVER () - 1 AS row, {text} AS value, {wrong} AS wrong"
        )
        bad = numbered.filter("wrong")
        count, row, value = bad.aggregate("count(*), min(row), arg_min(value, row)").fetchall()[0]
        if count:
            raise ValueError(
                f"column {name!r} must hold numbers; {count} rows do not, first {value!r} at row "
                f"{row} (from 0). Map its words to numbers first, or name another column."
            )
        relation = relation.project(f"* REPLACE ({number} AS {text})")
    return relation


def quote(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
