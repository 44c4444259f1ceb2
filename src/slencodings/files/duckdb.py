"""DuckDB at work on a file: what it reads, how far it is, how it is stopped, what it says."""

from __future__ import annotations

import ctypes
import glob
import json
import re
import shlex
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import duckdb

from slencodings.choices import Format, TableFormat, words
from slencodings.files import formats as readers
from slencodings.files.formats import columns_of
from slencodings.files.locate import Source, scan
from slencodings.files.scratch import scratch_folder
from slencodings.files.write import is_of_disk
from slencodings.tables.rows import Reading

Connection: TypeAlias = duckdb.DuckDBPyConnection
Relation: TypeAlias = duckdb.DuckDBPyRelation
# Called with a word for what is told, and the text.
Say: TypeAlias = Callable[[str, str], None]
# Called when a step begins: its name, how much there is to do if that is known, and of what; and
# again with how much is done, where that is not for DuckDB to say.
Step: TypeAlias = Callable[..., None]
# Called while a step runs: its name, how much is done, how much there is to do, and of what.
Progress: TypeAlias = Callable[[str, float, float | None, str], None]

AMOUNT = re.compile(r"\d+(\.\d+)? ?[KMGT]i?B", re.IGNORECASE)
# Errors of DuckDB that no file can cause.
NOT_THE_FILE = (
    duckdb.InterruptException,
    duckdb.InternalException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
)


@contextmanager
def workspace(memory: str | None = None) -> Generator[tuple[Connection, Path]]:
    """A scratch database on disk, gone at the end; past so much memory it spills to disk."""
    if memory is not None and not AMOUNT.fullmatch(memory):
        raise ValueError(f"`memory` must be an amount such as 2GB or 500MB; {memory!r} came.")
    with scratch_folder() as folder:
        connection = duckdb.connect(str(folder / "scratch.duckdb"))
        try:
            connection.execute(f"SET temp_directory = {literal(str(folder))}")
            if memory is not None:
                connection.execute(f"SET memory_limit = {literal(memory)}")
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
    steps: list[tuple[Any, ...]] = [("reading", None, "")]
    worker: list[int] = []

    def begin() -> dict[str, Any]:
        worker.append(threading.get_ident())
        return work(lambda *step: steps.append(step))

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(begin)
        try:
            while wait([future], timeout=0.1).not_done:
                what, total, unit, *done = steps[-1]
                share = max(0.0, connection.query_progress() / 100)
                progress(what, done[0] if done else share * (total or 0), total, unit)
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


def read(connection: Connection, source: Source, reading: Reading) -> tuple[Relation, Reading]:
    """The columns that play a role, as a relation, and the reading that says which they are."""
    for file in source.files if source.local else ():
        if is_store(connection, Path(file)):
            name = PurePath(file).name
            raise ValueError(
                f"annotations are needed; {name} is a store of evidence, which has only their "
                f"sums. Its opinions: sle encode {shlex.quote(name)} -o OUT"
            )
    format = source.format(reading.format)
    table = scan(connection, source, format)
    reading = readers.choose_columns(table.names, reading)
    relation = table.pick(name for spec in reading.columns.values() for name in columns_of(spec))
    numbers = readers.number_columns(reading)
    if format in ("jsonl", "json"):
        relation = readers.from_json(relation, numbers)
    if format != "parquet":
        connection.execute("CREATE TABLE crowd AS FROM relation")
        relation = connection.table("crowd")
    return readers.typed(relation, numbers), reading


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
def plain_errors(source: Source, asked: Format | None = None) -> Generator[None]:
    """What DuckDB says of files it cannot read, in words for people."""
    format = source.format(asked)
    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, NOT_THE_FILE) or is_of_disk(error):
            raise
        if isinstance(error, duckdb.OutOfMemoryException):
            raise MemoryError(
                f"{source.name} needs more memory than it may have: {brief(error)} "
                "Allow it more, memory='4GB', close other programs, or split the file by item."
            ) from error
        files = source.files if format == "jsonl" and source.local else []
        why = next(filter(None, (readers.broken_line(Path(file)) for file in files)), brief(error))
        what_next = "Repair it or copy it again, or name its `format` if that is another: "
        what_next += ", ".join(words(TableFormat)) + "."
        if "utf-8" in why.lower():
            what_next = readers.convert(source.name)
        raise ValueError(
            f"{source.name} cannot be read as {format.upper()}: {why} {what_next}"
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
