"""DuckDB at work on a file: what it reads, how far it is, how it is stopped, what it says."""

from __future__ import annotations

import ctypes
import difflib
import glob
import json
import shlex
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

from slencodings import readers
from slencodings.readers import Format, columns_of, quote

Connection: TypeAlias = duckdb.DuckDBPyConnection
Relation: TypeAlias = duckdb.DuckDBPyRelation
# Called with a word for what is told, and the text.
Say: TypeAlias = Callable[[str, str], None]
# Called when a step begins: its name, how much there is to do if that is known, and of what.
Step: TypeAlias = Callable[[str, float | None, str], None]
# Called while a step runs: its name, how much is done, how much there is to do, and of what.
Progress: TypeAlias = Callable[[str, float, float | None, str], None]

# Errors of DuckDB that no file can cause.
NOT_THE_FILE = (
    duckdb.InterruptException,
    duckdb.InternalException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
)


@contextmanager
def workspace() -> Iterator[tuple[Connection, Path]]:
    """A scratch database on disk, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="slencodings-") as name:
        folder = Path(name)
        connection = duckdb.connect(str(folder / "scratch.duckdb"))
        try:
            connection.execute(f"SET temp_directory = {literal(name)}")
            # Without a bar DuckDB does not say how far it is; we draw our own.
            connection.execute("SET enable_progress_bar = true")
            connection.execute("SET enable_progress_bar_print = false")
            yield connection, folder
        finally:
            connection.close()


def watch(
    connection: Connection, work: Callable[[Step], dict[str, Any]], progress: Progress
) -> dict[str, Any]:
    """Do the work in a thread and tell how far it is; DuckDB does not hear signals by itself."""
    steps: list[tuple[str, float | None, str]] = [("reading", None, "")]
    worker: list[int] = []

    def begin() -> dict[str, Any]:
        worker.append(threading.get_ident())
        return work(lambda *step: steps.append(step))

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(begin)
        try:
            while wait([future], timeout=0.1).not_done:
                what, total, unit = steps[-1]
                share = max(0.0, connection.query_progress() / 100)
                progress(what, share * (total or 0), total, unit)
        except BaseException:
            # Learning is no query, and is stopped by an error that comes out of nowhere.
            if steps[-1][0] == "learning":
                stop = ctypes.pythonapi.PyThreadState_SetAsyncExc
                stop(ctypes.c_ulong(worker[0]), ctypes.py_object(KeyboardInterrupt))
            # Between two queries there is nothing to interrupt, so it is said until it is heard.
            while not future.done():
                connection.interrupt()
                wait([future], timeout=0.05)
            raise
        return future.result()


def find(source: str, folder: Path) -> Path:
    """The path of a source; what comes through a pipe is first copied into the folder."""
    path = Path(source)
    if path.is_dir():
        raise IsADirectoryError(
            f"the input must be a file; {source!r} is a folder. Name one in it."
        )
    if source == "-" or (path.exists() and not path.is_file()):
        copy = folder / "stdin"
        with (
            copy.open("wb") as file,
            sys.stdin.buffer if source == "-" else path.open("rb") as pipe,
        ):
            shutil.copyfileobj(pipe, file)
        path = copy
    elif not path.exists():
        here = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, here, 1)
        meant = f" Did you mean {str(path.with_name(near[0]))!r}?" if near else ""
        raise FileNotFoundError(f"there is no file {source!r}.{meant}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty; at least a header and one row are needed.")
    return path


def read(
    connection: Connection, path: Path, format: Format, columns: Mapping[str, Any]
) -> tuple[Relation, dict[str, Any]]:
    """The columns that play a role, as a relation, and which they are."""
    if is_store(connection, path):
        raise ValueError(
            f"annotations are needed; {path.name} is a store of evidence, which has only their "
            f"sums. Its opinions: sle encode {shlex.quote(path.name)} -o OUT"
        )
    relation = readers.scan(connection, path, format)
    chosen = readers.choose_columns(relation.columns, columns)
    named = dict.fromkeys(name for spec in chosen.values() for name in columns_of(spec))
    relation = relation.project(", ".join(quote(name) for name in named))
    numbers = [name for role in readers.NUMBERS for name in columns_of(chosen.get(role))]
    numbers += chosen["label"] if isinstance(chosen["label"], list) else []
    if format in ("jsonl", "json"):
        relation = readers.from_json(relation, numbers)
    if format != "parquet":
        connection.execute("CREATE TABLE crowd AS FROM relation")
        relation = connection.table("crowd")
    return readers.typed(relation, numbers), chosen


def metadata(connection: Connection, path: Path) -> dict[str, Any]:
    """What we have written about a Parquet file into itself; nothing if it is not ours."""
    query = "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'slencodings'"
    found = connection.execute(query, [glob.escape(str(path))]).fetchall()
    return json.loads(found[0][0]) if found else {}


def is_store(connection: Connection, path: Path) -> bool:
    """Whether a file is a store of evidence, of whatever kind."""
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return False
    with suppress(duckdb.Error):  # Whoever reads it says what is wrong with it.
        return "store" in metadata(connection, path)
    return False


@contextmanager
def plain_errors(path: Path, format: Format) -> Iterator[None]:
    """What DuckDB says of a file it cannot read, in words for people."""
    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, NOT_THE_FILE) or "Could not write" in str(error):
            raise
        if isinstance(error, duckdb.OutOfMemoryException):
            raise MemoryError(
                f"{path.name} needs more memory than there is: {brief(error)} "
                "Close other programs, or split the file by item."
            ) from error
        why = (readers.broken_line(path) if format == "jsonl" else "") or brief(error)
        what_next = "Repair it or copy it again, or name its format if that is another: --format "
        what_next += "|".join(readers.FORMATS) + "."
        if "utf-8" in why.lower():
            what_next = readers.convert(path.name)
        raise ValueError(
            f"{path.name} cannot be read as {format.upper()}: {why} {what_next}"
        ) from error


def brief(error: Exception) -> str:
    """The lines of an engine's message that a person can use."""
    text = str(error).split("Possible")[0].split("Try ")[0]
    if "state machine" in text:
        return "its quotes or its ends of lines do not follow the rules of CSV."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [x if len(x) < 160 else f"{x[:80]} ... {x[-60:]}" for x in lines]
    lines[0] = lines[0].split(" Error: ", 1)[-1]
    text = "; ".join(dict.fromkeys([*lines[:2], lines[-1]]))
    return text if text.endswith(".") else text + "."


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"
