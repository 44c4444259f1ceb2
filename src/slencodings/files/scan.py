"""Files as one table: of which format they are, which columns they have, and which are chosen.

How each is to be read is told by its name and by how it begins.
"""

from __future__ import annotations

import csv
import glob
import gzip
import io
import re
import shlex
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import duckdb

from slencodings.choices import Format, TableFormat
from slencodings.files.json_columns import from_json, json_keys
from slencodings.files.locate import SUFFIXES, Connection, Relation, Source, is_store
from slencodings.files.readable import WORKBOOKS, is_gzip, unpacked
from slencodings.progress import Say
from slencodings.tables.roles import NUMBERS, Reading, check_names, choose_columns

# Called when a step begins: its name, how much there is to do if that is known, and of what; and
# again with how much is done, where that is not for DuckDB to say.
Tell: TypeAlias = Callable[..., None]
# The formats that are JSON, as DuckDB calls them.
LINES: dict[str, Any] = {"jsonl": "newline_delimited", "json": "auto"}
OTHER_ENCODING = "Say which encoding it has: encoding='cp1252'."
# How much of a file is looked at to tell what it is.
HEAD = 1 << 16


class Picked(NamedTuple):
    """The columns of files that play a role, not yet read.

    Attributes
    ----------
    table : all that the files have
    relation : these columns, of text those that are to be `numbers` as well
    reading : which column plays which role
    parts : the columns that name an item together, if several do
    found : whether the column of items was found by its name
    """

    table: Table
    relation: Relation
    reading: Reading
    numbers: list[str]
    parts: list[str]
    found: bool


def choose(
    connection: Connection,
    source: Source,
    reading: Reading,
    *,
    learned: bool = False,
    used: Sequence[str] = (),
    table: Table | None = None,
    say: Say,
    step: Tell,
) -> Picked:
    """The columns that play a role, whose values `read_chosen` reads.

    `learned`: what annotators are worth is learned, so a column of reliability is not looked for.
    `used`: columns that are read for something else, such as gold.
    `table`: of these files, if they were looked at before.
    """
    size = sum(Path(file).stat().st_size for file in source.files) if source.local else None
    step("reading", size and size / 1e6, "MB")
    for file in source.files if source.local else ():
        if is_store(connection, Path(file)):
            name = PurePath(file).name
            raise ValueError(
                f"annotations are needed; {name} is a store of evidence, which has only their "
                f"sums. Its opinions: sle encode {shlex.quote(name)} -o OUT"
            )
    table = scan(connection, source, reading.format) if table is None else table
    found, parts = reading.item is None, item_parts(reading.item, table.names)
    check_names(table.names, [("item", name) for name in parts])
    used = [*used, *source.known, *reading.keep, *parts]
    if parts:
        reading = replace(
            reading, item=_joined_name(parts, table.names), keep=[*parts, *reading.keep]
        )
    made = [str(reading.item)] if parts else []
    reading = choose_columns([*table.names, *made], reading, learned=learned, used=used, say=say)
    check_names(table.names, [("keep", name) for name in reading.keep])
    numbers = number_columns(reading)
    played = [name for _, name in reading.wanted if name not in made]
    texts = [name for name in reading.keep if name not in played]
    relation = table.pick([*played, *texts], numbers, texts)
    return Picked(table, relation, reading, numbers, parts, found)


def scan(
    connection: Connection,
    source: Source,
    asked: Format | None = None,
    numbers: Sequence[str] = (),
) -> Table:
    """A lazy table over files, and what each of them has; of CSV some columns as `numbers`."""
    format = common_format(source, asked)
    schemas: dict[str, dict[str, str]] = {}
    parts: list[Relation] = []

    def alike(file: str) -> tuple[Head, list[str]]:
        # DuckDB wants the same columns in all names of folders that it reads at once.
        columns = [part.split("=")[0] for part in PurePath(file).parts if "=" in part]
        return head_of(connection, source.local, format, file), columns

    for (head, _), run in groupby(source.files, alike):
        files = list(run)
        keys: dict[str, list[str]] = {}
        if format in LINES:
            keys = json_keys(connection, files, LINES[format], head.compression)
            head = head._replace(names=tuple(sorted({k for each in keys.values() for k in each})))
        part = _read_files(connection, files, format, head, numbers, folders=source.folders)
        parts.append(part)
        types = dict(zip(part.columns, map(str, part.types), strict=True))
        for file in files:
            # A key may be missing from some rows of a JSON file, but not from all.
            lacks: set[str] = set(head.names) - set(keys[file]) if keys else set()
            schemas[file] = {name: type for name, type in types.items() if name not in lacks}
    return Table(format, schemas, parts)


class Table(NamedTuple):
    """Files as one table, whose columns may differ where nobody reads them.

    Attributes
    ----------
    format : of all files
    schemas : for each file its columns and their types
    parts : one for each run of files that have the same columns
    """

    format: TableFormat
    schemas: dict[str, dict[str, str]]
    parts: list[Relation]

    @property
    def names(self) -> list[str]:
        """The columns of all files."""
        return list(dict.fromkeys(name for schema in self.schemas.values() for name in schema))

    def pick(
        self, names: Iterable[str], numbers: Sequence[str] = (), texts: Sequence[str] = ()
    ) -> Relation:
        """Some columns, which must be alike in all files; those of no file are left to others.

        Of JSON, numbers stay text here, as they are in a CSV file; `texts` may hold anything.
        """
        names = list(dict.fromkeys(names))
        common_types(self.schemas, names)
        picked = (part.select(*map(duckdb.ColumnExpression, names)) for part in self.parts)
        relation = reduce(lambda rows, part: rows.union(part), picked)
        return from_json(relation, numbers, texts) if self.format in LINES else relation


def common_types(schemas: Mapping[str, Mapping[str, str]], names: Sequence[str]) -> dict[str, str]:
    """The types of columns, which must be there in all files and of one type."""
    types: dict[str, str] = {}
    for name in names:
        found: dict[str | None, list[str]] = {}
        for file, schema in schemas.items():
            found.setdefault(schema.get(name), []).append(file)
        if len(found) > 1:
            came = [
                f"{'missing' if type is None else type} in {len(these)}, such as {these[0]}"
                for type, these in sorted(found.items(), key=lambda kind: -len(kind[1]))
            ]
            raise ValueError(
                f"column {name!r} must be alike in all {len(schemas)} files; it is "
                f"{'; '.join(came)}. Leave out or repair the files that differ."
            )
        types[name] = str(next(iter(found)))
    return types


def _read_files(
    connection: Connection,
    files: Sequence[str],
    format: TableFormat,
    head: Head,
    numbers: Sequence[str],
    *,
    folders: bool = False,
) -> Relation:
    """A lazy relation over files that have the same head; `folders` may hold columns as well.

    Text stays text, so that the item 007 stays 007, but for columns of CSV that are `numbers`.
    """
    names: Any = [glob.escape(file) for file in files]
    hive: dict[str, Any] = {"hive_partitioning": folders, "hive_types_autocast": False}
    if format == "parquet":
        how = ", ".join(f"{option} = {value}" for option, value in hive.items())
        return connection.sql(f"FROM read_parquet({duckdb.ConstantExpression(names)}, {how})")
    hive["compression"] = head.compression
    if format in LINES:
        columns = dict.fromkeys(head.names, "JSON")
        return connection.read_json(names, format=LINES[format], columns=columns, **hive)
    # All is said here, because DuckDB guesses another delimiter when one row is ragged.
    return connection.read_csv(
        names,
        header=True,
        auto_detect=False,
        columns={name: "DOUBLE" if name in numbers else "VARCHAR" for name in head.names},
        delimiter=head.delimiter,
        quotechar='"',
        escapechar='"',
        **hive,
    )


def number_columns(reading: Reading) -> list[str]:
    """The columns that must hold numbers."""
    numbers = {*NUMBERS, "label"} if isinstance(reading.label, list) else {*NUMBERS}
    return [name for role, name in reading.wanted if role in numbers]


def item_parts(item: Any, names: Sequence[str]) -> list[str]:
    """The columns that name an item together; none if one does."""
    if not isinstance(item, str) or item in names or "," not in item:
        return []
    return [name.strip() for name in item.split(",")]


def _joined_name(parts: Sequence[str], names: Sequence[str]) -> str:
    """What the column of items that several columns name is called."""
    taken = {name.casefold() for name in names}
    choices = ["item", "_".join(parts)]
    while choices[-1].casefold() in taken:
        choices.append(choices[-1] + "_")
    return next(name for name in choices if name.casefold() not in taken)


def common_format(source: Source, asked: Format | None = None) -> TableFormat:
    """The one format of all files: as asked, by their names, or else by how they begin."""
    if asked in get_args(TableFormat):
        return cast("TableFormat", asked)
    known = format_of if source.local else _format_by_name
    found = {known(file): file for file in reversed(source.files)}
    if None in found:
        raise ValueError(
            f"the names of files must say their format, {', '.join(SUFFIXES)}; "
            f"{found[None]!r} does not. Name the `format`."
        )
    if len(found) > 1:
        came = " and ".join(f"{file} is {str(f).upper()}" for f, file in sorted(found.items()))
        raise ValueError(
            f"all files must be of one format; {came}. Name those of one kind with a pattern, "
            "such as 'folder/*.parquet'."
        )
    return cast("TableFormat", next(iter(found)))


def format_of(file: str) -> TableFormat:
    """The format of a file, by its name or else by how it begins."""
    if known := _format_by_name(file):
        return known
    path = Path(file)
    head = _beginning(path)
    if head[:4] == b"PAR1":
        return "parquet"
    first = text_of(path, head).lstrip()[:1]
    return "jsonl" if first == "{" else "json" if first == "[" else "csv"


def _format_by_name(file: str) -> TableFormat | None:
    """The format that the name of a file says, if it does."""
    suffixes = [s.lower() for s in PurePath(file).suffixes[-2:] if s.lower() != ".gz"]
    known = {f".{f}": f for f in get_args(TableFormat)} | {".pq": "parquet", ".ndjson": "jsonl"}
    return cast("TableFormat | None", known.get(suffixes[-1])) if suffixes else None


class Head(NamedTuple):
    """How a file is to be read: whether it is packed, and the delimiter and columns of CSV."""

    compression: Literal["gzip", "none", "auto_detect"]
    delimiter: str = ""
    names: tuple[str, ...] = ()


def head_of(connection: Connection, local: bool, format: TableFormat, file: str) -> Head:
    """How a file is to be read; files with the same head are read together."""
    if local:
        head = _look(Path(file), format)
    elif format in ("csv", "tsv"):
        query = "SELECT Delimiter, [c.name FOR c IN Columns] FROM sniff_csv(?)"
        delimiter, names = connection.execute(query, [glob.escape(file)]).fetchall()[0]
        head = Head("auto_detect", delimiter, tuple(names))
    else:
        head = Head("auto_detect")
    if format == "parquet":
        relation = connection.read_parquet(glob.escape(file), hive_partitioning=False)
        head = head._replace(names=(*relation.columns, *map(str, relation.types)))
    return head


def _look(path: Path, format: TableFormat) -> Head:
    """Tell how a file on this machine is to be read by how it begins, or refuse it."""
    packed = is_gzip(path)
    if format == "parquet":
        if packed:
            raise ValueError(
                f"{path.name} is a gzipped Parquet file, which cannot be read in parts. "
                f"Unpack it first: gunzip {path.name}"
            )
        return Head("none")
    head, compression = _beginning(path), "gzip" if packed else "none"
    text = text_of(path, head)
    if format in LINES:
        _check_json(path, text)
        return Head(compression)
    delimiter, names = header(_name(path), text, "\t" if format == "tsv" else ",;\t|")
    return Head(compression, delimiter, tuple(names))


def _name(path: Path) -> str:
    """What people call a file: a copy of a sheet has the name of its workbook."""
    copied = path.suffix == ".csv" and Path(path.stem).suffix.lower() in WORKBOOKS
    return path.stem if copied else path.name


def _beginning(path: Path) -> bytes:
    """The first bytes of a file, unpacked."""
    try:
        with unpacked(path) as file:
            return file.read(HEAD)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{path.name} is gzipped and damaged: {error}. Copy or download it again."
        ) from error


def text_of(path: Path, head: bytes) -> str:
    """The first bytes of a file as text, whole lines if there are any."""
    if b"\x00" in head:
        raise ValueError(
            f"{_name(path)} must be CSV, TSV, Parquet, JSONL or .xlsx; it is a binary file of "
            f"another kind (it begins with {head[:8]!r}). Export it to one of these first."
        )
    try:
        return (head[: head.rfind(b"\n") + 1] or head).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path.name} must be UTF-8; line {line} is not (it has {head[error.start :][:1]!r}). "
            f"{OTHER_ENCODING}"
        ) from error


def header(name: str, text: str, delimiters: str) -> tuple[str, list[str]]:
    """The delimiter and the column names of a CSV file, from its first line."""
    # What stands in quotes may have any of them.
    first = re.sub('"[^"]*"', "", text).split("\n", 1)[0]
    delimiter = max(delimiters, key=first.count)
    lines = csv.reader(io.StringIO(text, newline=None), delimiter=delimiter)
    names: list[str] = next(lines, list[str]())
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
    if len({column.casefold() for column in names}) < len(names):
        check_names(names, [])  # says which
    return delimiter, names


def _check_json(path: Path, text: str) -> None:
    """Refuse an array cut off after a comma, which DuckDB reads."""
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
