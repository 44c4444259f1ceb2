"""What is written, all of it or nothing: where it may be, scratch, and files that take their place.

A place where nothing can be is refused before any work is done.

Scratch is gone at the end, or with the next run where its owner was killed. It is locked as long
as it is in use. The lock of a process ends with it, however it ends, so scratch that can be locked
is nobody's any more. Where there are no locks, none is taken for dead.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

import duckdb

from slencodings.annotations import counted
from slencodings.choices import CsvStyle
from slencodings.files.beside import ABOUT, BESIDE
from slencodings.files.excel import check_workbook, write_csv, write_workbook
from slencodings.progress import Say

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# Plain values by name.
AnyRow: TypeAlias = Mapping[str, object]
# How DuckDB writes each kind of file.
WRITERS = {
    # Of numbers that all differ a dictionary would take longer to try than they take to write, and
    # zstd two thirds more time for a tenth fewer bytes.
    ".parquet": "FORMAT parquet, DICTIONARY_SIZE_LIMIT 1000",
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
    ".xlsx": "xlsx",
}
# A store is kept for long, and the sums in it repeat each other.
STORED = f"{WRITERS['.parquet']}, COMPRESSION zstd"

AMOUNT = re.compile(r"\d+(\.\d+)? ?[KMGT]i?B", re.IGNORECASE)
# No room, no more that one may have, too large, a broken disk.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_WHAT_NOW = (
    "What was there before is untouched. "
    "Free some space, choose another place, or set TMPDIR for scratch files."
)
# DuckDB makes room in a scratch file by `truncate`, which a full disk may refuse first.
_FAILED_WRITE = re.compile(r'Could not (?:write|truncate) file \\?"(.*?)\\?": ([^"]+)')


def check_target(
    target: str, source: str | Sequence[str], *outputs: str, style: CsvStyle = "plain"
) -> str:
    """How to write the target, or an error before any work is done."""
    if target == "-":
        check_style(style, "standard output")
        return WRITERS[".csv"]
    path = Path(target)
    if path.is_dir():
        raise IsADirectoryError(
            f"the output must be a file; {target!r} is a folder. "
            f"Name a file in it: {shlex.quote(str(path / 'targets.parquet'))}"
        )
    packed = path.suffix.lower() == ".gz"
    suffix = (Path(path.stem).suffix if packed else path.suffix).lower()
    if suffix not in WRITERS or (packed and suffix in (".parquet", ".xlsx")):
        raise ValueError(
            f"the name of the output chooses its format: {', '.join(WRITERS)} (also with .gz, "
            f"except Parquet and .xlsx); {path.name!r} came."
        )
    check_style(style, path.suffix.lower())
    if suffix == ".xlsx":
        check_workbook()
    if "://" not in target:  # Whether an object can be there is asked elsewhere.
        check_place(target, source, *outputs)
    return style if style != "plain" else WRITERS[suffix] + ", COMPRESSION gzip" * packed


def check_folder(target: str, source: str | Sequence[str]) -> str:
    """How to write the files of a folder that is not there yet, or an error before any work."""
    path = Path(target)
    suffix = path.suffix.lower() or ".parquet"
    if target == "-" or suffix not in WRITERS or suffix == ".xlsx":
        kinds = ", ".join(kind for kind in WRITERS if kind != ".xlsx")
        raise ValueError(
            "parts go into a folder, whose name may choose the format of its files: "
            f"{kinds}, or Parquet without an ending; {target!r} came."
        )
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise FileExistsError(
            f"the output must not be there yet; {target!r} is. Remove it, or name another."
        )
    if not path.is_dir():
        check_place(target, source)
    return WRITERS[suffix]


def check_style(style: CsvStyle, kind: str) -> None:
    """Refuse a style of CSV for what is none."""
    if style != "plain" and kind != ".csv":
        raise ValueError(f"csv_style={style!r} is for a file that ends in .csv; {kind} came.")


def check_finite(writer: str, smoothing: float | None, values: Sequence[str]) -> None:
    """Refuse infinite evidence where it cannot be written."""
    if smoothing == 0 and "json" in writer and {"evidence", "alpha"} & {*values}:
        raise ValueError(
            "JSON cannot hold the infinite evidence of certain annotations; smoothing=0 came. "
            "Write .parquet or .csv, or pass a smoothing such as 0.01."
        )


def check_place(target: str, source: str | Sequence[str], *outputs: str) -> None:
    """Refuse a place where no file can be written, or that of an input or another output."""
    path = Path(target)
    if "://" in target:
        raise ValueError(
            f"the output must be on this machine; {target!r} is not. Name a file here, and copy it "
            "there afterwards."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"the output needs a folder that is there; {str(path.parent)!r} is not. "
            f"Make it first: mkdir -p {shlex.quote(str(path.parent))}"
        )
    if path.is_dir():
        raise IsADirectoryError(f"the output must be a file; {target!r} is a folder. Name another.")
    inputs = [source] if isinstance(source, str) else list(source)
    for other in [*inputs, *outputs]:
        if path == Path(other) or (path.exists() and Path(other).exists() and path.samefile(other)):
            what = "its own input" if other in inputs else "the other output"
            raise ValueError(f"the output must not replace {what} {other!r}. Name another.")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise PermissionError(
            f"the output {target!r} cannot be written: {error.strerror}. Choose another place."
        ) from error


@contextmanager
def disk_errors(target: str = "what was made") -> Generator[None]:
    """What goes wrong while writing, in words for people."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        raise OSError(f"{target} could not be written: {error.strerror}. {_WHAT_NOW}") from error
    except duckdb.Error as error:
        if not is_of_disk(error):
            raise
        found = _FAILED_WRITE.search(str(error))
        what = f"{found[1]} could not be written: {found[2]}" if found else "the disk is full"
        raise OSError(f"{what}. {_WHAT_NOW}") from error


def is_of_disk(error: Exception) -> bool:
    """Whether an engine could not write, be it to its scratch files."""
    return bool(_FAILED_WRITE.search(str(error))) or "max_temp_directory_size" in str(error)


@contextmanager
def workspace(memory: str | None = None) -> Generator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """A scratch database on disk, gone at the end; past so much memory it spills to disk."""
    if memory is not None and not AMOUNT.fullmatch(memory):
        raise ValueError(f"`memory` must be an amount such as 2GB or 500MB; {memory!r} came.")
    with scratch_folder() as folder:
        # Of threads that only write some wait for each other for ever where the disk is full.
        config: dict[str, Any] = {"temp_directory": str(folder), "async_threads": 0}
        config |= {} if memory is None else {"memory_limit": memory}
        with duckdb.connect(str(folder / "scratch.duckdb"), config=config) as connection:
            # Without a bar DuckDB does not say how far it is; we draw our own.
            connection.execute("SET enable_progress_bar = true")
            connection.execute("SET enable_progress_bar_print = false")
            try:
                yield connection, folder
            except RuntimeError as error:
                # What DuckDB makes of Ctrl-C while the main thread waits for its answer.
                if str(error) != "Query interrupted":
                    raise
                raise KeyboardInterrupt from error


@contextmanager
def writing(
    connection: duckdb.DuckDBPyConnection,
    relation: duckdb.DuckDBPyRelation,
    target: Path | None,
    writer: str,
    about: AnyRow,
    beside: Mapping[Path, str] | None = None,
    *,
    in_order: bool = True,
) -> Generator[int]:
    """Write a relation in the order of its identifiers, or as it comes, and count its rows.

    At the end it takes its place, with what is told `about` it and the texts of files `beside` it:
    all of that, or nothing.
    """
    assert target is not None, "there is something to write"
    # DuckDB finds the variable by its name.
    _relation = _sorted(relation) if in_order else relation
    texts = dict(beside or {})
    if writer in (WRITERS[".parquet"], STORED):
        described = literal(json.dumps(about, default=str))
        writer += f", KV_METADATA {{slencodings: {described}}}"
    elif writer != WRITERS[".xlsx"]:
        # CSV and JSONL have no place to say how they were made.
        texts[Path(f"{target}{BESIDE}")] = json.dumps(about, indent=1, default=str)
    with replacing(target) as path, ExitStack() as stack:
        for other, text in texts.items():
            new = stack.enter_context(replacing(other))
            new.write_text(text + "\n", encoding="utf-8")
        if writer == WRITERS[".xlsx"] or writer in get_args(CsvStyle):
            found = connection.execute("FROM _relation")
            parts: Iterator[list[Any]] = iter(partial(found.fetchmany, 10_000), [])
            rows = chain.from_iterable(parts)
            yield write_for_people(path, relation.columns, rows, writer, about)
            return
        # We write beside the target ourselves; DuckDB would do so once more.
        copy = f"COPY (FROM _relation) TO {literal(str(path))} ({writer}, USE_TMP_FILE false)"
        with in_any_order(connection, any_order=not in_order):
            count = connection.execute(copy).fetchall()[0][0]
        yield count


def _sorted(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """In the order of items, and of labels where these have rows of their own."""
    order = [c for c in relation.columns[:2] if c in (relation.columns[0], "label")]
    return relation.sort(*map(duckdb.ColumnExpression, order))


@contextmanager
def in_any_order(connection: duckdb.DuckDBPyConnection, *, any_order: bool) -> Generator[None]:
    """Let all threads write what they have, whichever is first."""
    if not any_order:
        yield
        return
    connection.execute("SET preserve_insertion_order = false")
    try:
        yield
    finally:  # Rows are numbered in the order of files.
        connection.execute("SET preserve_insertion_order = true")


@contextmanager
def writing_parts(
    connection: duckdb.DuckDBPyConnection,
    relation: duckdb.DuckDBPyRelation,
    target: Path,
    writer: str,
    about: AnyRow,
    by: Sequence[str],
    beside: Mapping[Path, str] | None = None,
) -> Generator[int]:
    """Write a relation as a folder of parts, day=2026-11-16/part-0.parquet, and count its rows.

    At the end the folder takes its place with all that is in it and with the files `beside` it, or
    nothing does. What is told `about` it lies in it under a name that readers of folders skip.
    """
    _relation = _sorted(relation)
    suffix = next(kind for kind, how in WRITERS.items() if how == writer)
    connection.execute("CREATE TABLE sle_parts AS FROM _relation")
    threads = connection.execute("SELECT current_setting('threads')").fetchall()[0][0]
    with replacing_folder(target) as folder, ExitStack() as stack:
        for other, text in (beside or {}).items():
            new = stack.enter_context(replacing(other))
            new.write_text(text + "\n", encoding="utf-8")
        # One thread writes one file a part, and keeps the order.
        connection.execute("SET threads = 1")
        columns = ", ".join(map(quote, by))
        written = connection.execute(
            f"COPY sle_parts TO {literal(str(folder))} ({writer}, PARTITION_BY ({columns}), "
            f"FILENAME_PATTERN 'part-{{i}}', FILE_EXTENSION {literal(suffix[1:])}, "
            "OVERWRITE_OR_IGNORE)"
        ).fetchall()[0][0]
        connection.execute(f"SET threads = {threads}")
        text = json.dumps(about, indent=1, default=str)
        (folder / ABOUT).write_text(text + "\n", encoding="utf-8")
        yield written


def write_for_people(
    path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], writer: str, about: AnyRow
) -> int:
    """Write rows as a workbook or in a style of CSV, and count them."""
    if writer == WRITERS[".xlsx"]:
        return write_workbook(path, names, rows, about)
    return write_csv(path, names, rows, cast("CsvStyle", writer))


_ASKED = {
    "votes": "probability that the next person says it",
    "truth": "probability that it is true",
}


def tell_written(place: str, about: Mapping[str, Any], say: Say) -> None:
    """Tell what was written: how much, how opinions were made and what they mean."""
    stated = "probability by votes as stated"
    how = f"{about['form']}: {stated}, {about['operator']}, smoothing {about['smoothing']:g}"
    if "reading" in about:
        weights = {"learned": "learned weights"}.get(about["weigh"], f"weights of {about['weigh']}")
        weights = weights if about["crowd"]["losses"] else "one count each"
        how = f"{about['form']}: {_ASKED[about['reading']]}, {weights}"
    say("wrote", f"{place}: {counted(about['written'], 'row')}, {how}")


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def quote(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A new file to fill, which replaces `path` at the end, or is gone if that fails."""
    name, path = str(path), path.resolve()  # A link stays, and what it points to is replaced.
    with disk_errors(name), scratch_file(path) as new:
        yield new
        with new.open("rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        new.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask)
        new.replace(path)


@contextmanager
def replacing_folder(path: Path) -> Generator[Path]:
    """A new folder to fill, which takes its place at the end, or is gone if that fails.

    What is there already must be an empty folder.
    """
    name, path = str(path), path.resolve()
    beside = _owned(f".{path.name}.slencodings-", path.suffix, path.parent, tempfile.mkdtemp)
    with disk_errors(name), beside as new:
        yield new
        for file in [file for file in new.rglob("*") if file.is_file()]:
            with file.open("rb") as written:
                os.fsync(written.fileno())
        umask = os.umask(0)
        os.umask(umask)
        new.chmod(0o777 & ~umask)
        new.replace(path)


@contextmanager
def scratch_file(target: Path) -> Generator[Path]:
    """A new file beside a target, to fill and to rename."""
    # That of other targets is left alone: machines that share a disk may not share its locks.
    with _owned(f".{target.name}.slencodings-", target.suffix, target.parent, _new_file) as path:
        yield path


@contextmanager
def scratch_folder() -> Generator[Path]:
    """A new folder in the one for what is temporary, which TMPDIR names."""
    machine, folder = re.sub(r"\W", "-", platform.node()), Path(tempfile.gettempdir())
    with _owned(f"slencodings-{machine}-", "", folder, tempfile.mkdtemp) as path:
        yield path


def _new_file(suffix: str, prefix: str, folder: str) -> str:
    """As `tempfile.mkdtemp` makes a folder."""
    handle, name = tempfile.mkstemp(suffix, prefix, folder)
    os.close(handle)
    return name


@contextmanager
def _owned(
    prefix: str, suffix: str, folder: Path, make: Callable[[str, str, str], str]
) -> Generator[Path]:
    alike = re.compile(re.escape(prefix) + "[a-z0-9_]{8}" + re.escape(suffix))
    with suppress(OSError):  # A folder may be for writing only.
        for path in [path for path in folder.iterdir() if alike.fullmatch(path.name)]:
            _remove_if_dead(path)
    path = Path(make(suffix, prefix, str(folder)))
    while (lock := _lock(path, wait=True)) is None and not path.exists():
        # Another run took it for dead before it was locked.
        path = Path(make(suffix, prefix, str(folder)))
    try:
        yield path
    finally:
        _remove(path)
        if lock is not None:
            os.close(lock)


def _remove_if_dead(path: Path) -> None:
    if (lock := _lock(path, wait=False)) is not None:
        _remove(path)
        os.close(lock)


def _lock(path: Path, *, wait: bool) -> int | None:
    """Lock a file or folder until what is returned is closed; None if that cannot be had."""
    if fcntl is None:
        return None
    with suppress(OSError):
        # Disks on a network lock files for those who may write, and folders for nobody.
        handle = os.open(path, os.O_NOFOLLOW | (os.O_RDONLY if path.is_dir() else os.O_RDWR))
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # Its owner may have renamed or removed it since it was opened.
            if os.path.samestat(os.fstat(handle), os.lstat(path)):
                return handle
        os.close(handle)
    return None


def _remove(path: Path) -> None:
    """What cannot be removed now is left to the next run."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
