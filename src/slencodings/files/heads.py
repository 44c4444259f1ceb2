"""Of which format files are and how each is to be read, by its name and by how it begins."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import re
import zlib
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple, cast, get_args

from slencodings.choices import Format, TableFormat
from slencodings.files.locate import SUFFIXES, Connection, Source
from slencodings.files.readable import is_gzip, unpacked
from slencodings.tables.roles import check_names

# The formats that are JSON, as DuckDB calls them.
LINES: dict[str, Any] = {"jsonl": "newline_delimited", "json": "auto"}
OTHER_ENCODING = "Say which encoding it has: encoding='cp1252'."
# How much of a file is looked at to tell what it is.
HEAD = 1 << 16


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
    delimiter, names = header(path.name, text, "\t" if format == "tsv" else ",;\t|")
    return Head(compression, delimiter, tuple(names))


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
            f"{path.name} must be CSV, TSV, Parquet, JSONL or .xlsx; it is a binary file of "
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
    check_names(names, [])
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
