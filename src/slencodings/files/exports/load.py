"""Files of any size to records, one at a time, and the tool that wrote them by what these bear.

They are JSON, JSONL, CSV and Parquet, zipped or not.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import cache, lru_cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, get_args

from slencodings.choices import Tool
from slencodings.files.beside import tells_about_others
from slencodings.files.exports.answers import Reader
from slencodings.files.exports.record import ExportFile, Json, Keyed, Object, Record, shown
from slencodings.files.readable import check_unpacked, unpacked

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# How much is read at a time, and the largest record, in characters. Files may be of any size.
CHUNK, LARGEST = 1 << 20, 1 << 28
NO_SPACE = re.compile(r"[^ \t\r\n]")
# What Python's unpackers say of files that were cut or altered.
DAMAGE = (EOFError, gzip.BadGzipFile, lzma.LZMAError, struct.error, zipfile.BadZipFile, zlib.error)
ENDINGS = (".json", ".jsonl", ".csv", ".tsv")
POTATO_FILES = ("annotated_instances.jsonl", "user_state.json")
# An object of records by their id has such records; other objects are one record.
BY_ID = ({"annotations", "annotators"}, {"fields", "responses"})
# The most particular first: a record is of the first tool that knows it.
READERS: dict[str, Reader] = {
    tool: import_module(f"{__package__}.{tool.replace('-', '_')}").READER for tool in get_args(Tool)
}
_ZONED = "TIMESTAMP WITH TIME ZONE"
# How many records are looked at to tell what a file is, and how large the first may be.
LOOKED_AT, LARGEST_FIRST = 50, 1 << 24


def recognise(path: str | Path) -> str | None:
    """The tool whose export a file is, by its content; None for tables that are long already.

    Wide tables and tables of counts have no mark of their own, and are read by `format` alone.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "anything.txt"
    >>> _ = file.write_text('{"_input_hash": 1, "label": "SPAM", "answer": "accept"}')
    >>> recognise(file)
    'prodigy'
    >>> _ = file.write_text("item,annotator,label\\n1,ann,yes\\n")
    >>> recognise(file)
    """
    # What cannot be read is no export here; whoever reads it says what is wrong with it.
    with suppress(ValueError, OSError):
        _, found = look(records(parts(Path(path))[0], str(path), LARGEST_FIRST))
        return None if found is None else found.tool
    return None


class Dialect(NamedTuple):
    """The tool that wrote a record, and the tool and dialect in words."""

    tool: str
    words: str


def look(stream: Iterator[Record]) -> tuple[Record | None, Dialect | None]:
    """The first record, or the first that tells its dialect, and that."""
    first = None
    for record in islice(stream, LOOKED_AT):
        if found := dialect_of(record.value):
            return record, found
        first = first or record
    return first, None


def dialect_of(value: Object) -> Dialect | None:
    """The dialect of a record; only tools whose marks it bears are asked."""
    # A record of a list tells what those after it have.
    inside = (v[0] for v in value.values() if isinstance(v, list) and v)
    nested = {f"[].{name}" for first in inside if isinstance(first, dict) for name in first}
    for tool in _marked((*value, *nested)):
        known = READERS[tool].dialect
        if found := known if isinstance(known, str) else known(value):
            return Dialect(tool, found)
    return None


@lru_cache(1024)
def _marked(names: tuple[str, ...]) -> tuple[str, ...]:
    """The tools whose marks are among the names: most records of a file have the same."""

    def there(mark: str) -> bool:
        return any(fnmatchcase(n, mark) for n in names) if "*" in mark else mark in names

    bears = {
        tool: any(all(map(there, m)) for m in reader.marks) for tool, reader in READERS.items()
    }
    return tuple(tool for tool, yes in bears.items() if yes)


def parts(path: Path) -> list[ExportFile]:
    """The files of an export: one, those in a zip file, or those in a folder."""
    if path.is_dir():
        files = [p for p in sorted(path.rglob("*")) if p.suffix in ENDINGS]
        files = [p for p in files if not tells_about_others(p.name)]
        found = [ExportFile(p.name, p.parent.name, partial(unpacked, p), p) for p in files]
    elif not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}.")
    elif (members := _members(path)) is not None:
        inside = {name: Path(name) for name in members if Path(name).suffix in ENDINGS}
        found = [
            ExportFile(p.name, p.parent.name or path.stem, partial(_member, path, name))
            for name, p in inside.items()
        ]
    else:
        return [ExportFile(path.name, "", partial(unpacked, path), path)]
    if not found:
        raise ValueError(f"{path.name} must hold files of JSON, JSONL or CSV; none is in it.")
    # Potato keeps the same answers in several files of each annotator's folder.
    # Inspect keeps the samples of an evaluation in a folder, beside summaries of the same.
    if any(part.name == "header.json" for part in found):
        found = [part for part in found if part.folder == "samples"] or found
    named = next((n for n in POTATO_FILES if any(part.name == n for part in found)), None)
    return [part for part in found if named in (None, part.name)]


def _members(path: Path) -> list[str] | None:
    """The names in a zip file; None if it is none."""
    with _plain_errors(path.name, packed=True):
        if not zipfile.is_zipfile(path):
            return None
        with zipfile.ZipFile(path) as archive:
            check_unpacked(path, sum(part.file_size for part in archive.infolist()))
            return sorted(archive.namelist())


def _member(path: Path, name: str) -> IO[bytes]:
    with _plain_errors(f"{name} in {path.name}", packed=True):
        archive = zipfile.ZipFile(path)
        if archive.getinfo(name).flag_bits & 1:
            raise ValueError(f"{name} in {path.name} is locked with a password. Unpack it first.")
        return archive.open(name)


def records(part: ExportFile, who: str, largest: int = LARGEST) -> Iterator[Record]:
    """The records of one file, read as they are needed; `who` names the file in messages."""
    with _plain_errors(who, part.name, packed=part.path is None):
        with part.open() as file:
            start = file.read(4)
        if start == b"PAR1" and part.path is not None:
            values: Iterable[Keyed] = _parquet(part.path)
        else:
            values = _text_records(part, who, largest)
        for n, (key, value) in enumerate(values, 1):
            where = f"{who}, record {n}"
            if not isinstance(value, dict):
                raise ValueError(f"{where}: a record must be a JSON object; {shown(value)} came.")
            yield Record(where, key, value, part)


@contextmanager
def _plain_errors(who: str, name: str | None = None, *, packed: bool) -> Generator[None]:
    """Errors of decoders and unpackers, in words for people; `name` is of a file of text."""
    try:
        yield
    except NotImplementedError as error:
        raise ValueError(
            f"{who} is packed in a way that is not known here: {error}. Unpack it first."
        ) from error
    except UnicodeDecodeError as error:
        if name is None:
            raise _damaged(who, error) from error
        bad = error.object[error.start : error.start + 1]
        raise ValueError(
            f"{who} must be UTF-8, or UTF-16 with a byte order mark; it has {bad!r} where that "
            f"makes no text. Convert it first: iconv -f LATIN1 -t UTF-8 {name} > utf8-{name}"
        ) from error
    except DAMAGE as error:
        raise _damaged(who, error) from error
    except OSError as error:
        # Places outside of the file, or what bz2 cannot unpack.
        if not packed:
            raise
        raise _damaged(who, error) from error


def _damaged(who: str, error: Exception) -> ValueError:
    return ValueError(f"{who} is packed and damaged: {error}. Copy it again.")


def _text_records(part: ExportFile, who: str, largest: int) -> Iterator[Keyed]:
    with part.open() as file:
        head = file.read(4096)
    wide = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    if b"\x00" in head and not wide:
        raise ValueError(
            f"{who} must be JSON, JSONL, CSV or Parquet; it is a binary file of another kind "
            f"(it begins with {head[:8]!r}). Export it to one of these."
        )
    encoding = "utf-16" if wide else "utf-8-sig"
    with part.open() as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        start = text.read(CHUNK)
        while start.isspace():
            start = text.read(CHUNK)
        first = start.lstrip()[:1]
        if not first:
            if part.folder:
                return  # One annotator of many who has not begun.
            raise ValueError(f"{who} is empty. Export it again.")
        if first in "[{":
            yield from _json(_Scanner(start, text, who, largest))
        else:
            text.seek(0)
            for row in _csv(text, who):
                yield None, row


class _Scanner:
    """JSON values of a text, one after another, of which only the present one is kept."""

    def __init__(self, start: str, file: IO[str], who: str, largest: int) -> None:
        self.text, self.at, self.count = start, 0, 1
        self.file, self.who, self.largest = file, who, largest
        self.decode: Callable[[str, int], tuple[Json, int]] = json.JSONDecoder().raw_decode

    def more(self) -> bool:
        """Read on: as much again as is waiting, so that no long value is scanned often."""
        waiting = self.text[self.at :]
        if len(waiting) > self.largest:
            raise ValueError(
                f"{self.where()} is larger than {self.largest >> 20} MB, or its end is missing. "
                "Leave out the data that it holds (images as text?) when you export."
            )
        read = self.file.read(max(CHUNK, len(waiting)))
        self.text, self.at = waiting + read, 0
        return bool(read)

    def where(self) -> str:
        return f"{self.who}, record {self.count}"

    def peek(self) -> str:
        """The next character that is no space; nothing at the end."""
        while not (found := NO_SPACE.search(self.text, self.at)):
            self.at = len(self.text)
            if not self.more():
                return ""
        self.at = found.start()
        return found.group()

    def value(self) -> Json:
        """The next value; at the end of the text, what is wrong."""
        self.peek()
        while True:
            try:
                value, end = self.decode(self.text, self.at)
            except json.JSONDecodeError as error:
                # Only an error at the end of what was read can come from more being there.
                near = error.msg.startswith("Unterminated") or error.pos > len(self.text) - 20
                near_it = self.text[max(0, error.pos - 20) : error.pos + 20]
                at_end = error.pos >= len(self.text.rstrip())
                if near and self.more():
                    continue
                if at_end or (near and self.text.rstrip()[-1:] not in ("}", "]")):
                    raise ValueError(self.cut_off()) from None
                raise ValueError(
                    f"{self.where()} is not JSON: {error.msg}, near {near_it!r}. "
                    "Repair that place, or export the file again."
                ) from None
            except (RecursionError, ValueError) as error:
                why = "it is nested too deeply" if isinstance(error, RecursionError) else error
                raise ValueError(
                    f"{self.where()} cannot be read: {why}. No annotation tool writes that."
                ) from None
            # A number may go on in what is not yet read.
            if end == len(self.text) and not isinstance(value, dict | list | str) and self.more():
                continue
            self.at = end
            return value

    def take(self, wanted: str, after: str) -> str:
        """The next character, which must be one of these."""
        found = self.peek()
        if not found:
            raise ValueError(self.cut_off())
        if found not in wanted:
            came = self.text[self.at : self.at + 20]
            raise ValueError(
                f"{self.where()} is not JSON: {' or '.join(wanted)} must follow {after}; {came!r} "
                "came. Repair that place, or export the file again."
            )
        self.at += 1
        return found

    def cut_off(self) -> str:
        return (
            f"{self.who} is cut off in record {self.count}: the file ends inside it. "
            "Export it again, or copy it again."
        )


def _json(scan: _Scanner) -> Iterator[Keyed]:
    """The elements of an array; the members of an object by id; or one object after another."""
    if scan.peek() == "[":
        scan.at += 1
        if scan.peek() != "]":
            while True:
                yield None, scan.value()
                if scan.take(",]", "a record") == "]":
                    break
                scan.count += 1
        else:
            scan.at += 1
        if scan.peek():
            raise ValueError(
                f"{scan.who} must end with ]; more came after it, {scan.text[scan.at :][:20]!r}. "
                "Two files in one? Export each project to a file of its own."
            )
        return
    yield from _object(scan)
    while scan.peek():
        scan.count += 1
        yield None, scan.value()


def _object(scan: _Scanner) -> Iterator[Keyed]:
    """The first object: its members if they are records, else the object itself."""
    scan.take("{", "nothing")
    found: Object = {}
    by_id = False
    while scan.peek() != "}":
        key = str(scan.value())
        scan.take(":", "a name")
        value = scan.value()
        if not found and isinstance(value, dict):
            by_id = any(keys <= value.keys() for keys in BY_ID)
        if by_id:
            yield key, value
            scan.count += 1
        else:
            found[key] = value
        if scan.take(",}", "a value") == "}":
            break
    else:
        scan.at += 1
    if not by_id:
        yield None, found


def _csv(text: IO[str], who: str) -> Iterator[Object]:
    """The rows of a table of text, by the names in its first line."""
    # The limit is the module's, and a text of more than 128 kB is no error.
    limit = csv.field_size_limit(LARGEST)
    try:
        first = next(line for line in text if line.strip())
        delimiter = max(",;\t|", key=first.count)
        text.seek(0)
        rows = csv.reader(text, delimiter=delimiter, strict=True)
        names = next(row for row in rows if row)
        if twice := [n for n in names if names.count(n) > 1]:
            raise ValueError(f"{who}: column names must differ; {twice[0]!r} came twice.")
        for n, row in enumerate(rows, 1):
            if row and len(row) != len(names):
                raise ValueError(
                    f"{who}, record {n} must have {len(names)} cells, one for each column; "
                    f"{len(row)} came. Is the file cut off, or a quote missing?"
                )
            if row:
                yield dict(zip(names, row, strict=True))
    except csv.Error as error:
        raise ValueError(f"{who} is not CSV: {error}. Export it again.") from error
    finally:
        csv.field_size_limit(limit)


@cache
def _engine() -> DuckDBPyConnection:
    """One for the process: to begin takes far longer than to look at a file."""
    import duckdb

    return duckdb.connect()


def _parquet(path: Path) -> Iterator[Keyed]:
    import glob

    import duckdb

    from slencodings.files.write import quote

    with _engine().cursor() as connection:
        try:
            name = [glob.escape(str(path))]
            columns = connection.execute("DESCRIBE FROM read_parquet(?)", name).fetchall()
            # As text: DuckDB hands out times with a zone by pytz, which may not be installed.
            texts = ", ".join(
                f"CAST({quote(column)} AS {type.replace(_ZONED, 'VARCHAR')}) AS {quote(column)}"
                for column, type, *_ in columns
                if _ZONED in type
            )
            taken = f"* REPLACE ({texts})" if texts else "*"
            found = connection.execute(f"SELECT {taken} FROM read_parquet(?)", name)
        except duckdb.Error as error:
            _engine.cache_clear()  # One that a file has ended answers nothing any more.
            why = str(error).splitlines()[0]
            raise ValueError(
                f"{path.name} cannot be read as Parquet: {why}. Copy it again."
            ) from None
        names = [column[0] for column in found.description or ()]
        while some := found.fetchmany(10_000):
            yield from ((None, dict(zip(names, row, strict=True))) for row in some)
