"""DuckDB at work on files: how far it is, how it is stopped, and what it says that it cannot do."""

from __future__ import annotations

import ctypes
import json
import threading
import zlib
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, get_args

import duckdb

from slencodings.choices import Format, TableFormat
from slencodings.files.locate import Connection, Source, converted, locate
from slencodings.files.readable import unpacked
from slencodings.files.scan import OTHER_ENCODING, Table, Tell, common_format, scan
from slencodings.files.write import disk_errors, is_of_disk, workspace
from slencodings.progress import Progress, Say
from slencodings.tables.roles import Reading

T = TypeVar("T")
# Errors of DuckDB that no file can cause.
NOT_THE_FILE = (
    duckdb.InterruptException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
)


def watch(connection: Connection, work: Callable[[Tell], T], progress: Progress) -> T:
    """Do the work in a thread and tell how far it is; DuckDB does not hear signals by itself."""
    steps: list[tuple[Any, ...]] = [("reading", None, "")]
    worker: list[int] = []

    def begin() -> T:
        worker.append(threading.get_ident())
        return work(lambda *step: steps.append(step))

    with ThreadPoolExecutor(1) as pool:
        # A pool that is stopped while its thread starts does not wait for it: nothing is at work.
        pool.submit(int).result()
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


@contextmanager
def opened(
    source: str | Sequence[str], reading: Reading, say: Say = lambda what, text: None
) -> Generator[tuple[str, Table]]:
    """Files as one table, and what people call them, for as long as it is read."""
    with disk_errors(), workspace() as (connection, folder):
        found = converted(locate(connection, source, folder), reading, folder, say)
        with plain_errors(found, reading.format):
            yield found.name, scan(connection, found, reading.format)


@contextmanager
def plain_errors(source: Source, asked: Format | None = None) -> Generator[None]:
    """What DuckDB says of files it cannot read, in words for people."""
    try:
        yield
    # DuckDB cuts long messages, be it within a character, which Python then cannot read.
    except (duckdb.Error, UnicodeDecodeError) as error:
        if isinstance(error, NOT_THE_FILE) or is_of_disk(error):
            raise
        if isinstance(error, duckdb.InternalException) and not _ends_its_reader(source, asked):
            raise
        if isinstance(error, duckdb.OutOfMemoryException):
            raise MemoryError(
                f"{source.name} needs more memory than it may have: {brief(error)} "
                "Allow it more, memory='4GB', close other programs, or split the file by item."
            ) from error
        format = common_format(source, asked)
        files = source.files if format == "jsonl" and source.local else []
        why = next(filter(None, (_broken_line(Path(file)) for file in files)), brief(error))
        what_next = "Repair it or copy it again, or name its `format` if that is another: "
        what_next += ", ".join(get_args(TableFormat)) + "."
        if "utf-8" in why.lower():
            what_next = OTHER_ENCODING
        raise ValueError(
            f"{source.name} cannot be read as {format.upper()}: {why} {what_next}"
        ) from error
    except RuntimeError as error:
        if "conversion error" not in str(error):
            raise
        raise ValueError(
            f"{source.name} is damaged: the name of a column is no text. Copy it again."
        ) from error


def _ends_its_reader(source: Source, asked: Format | None) -> bool:
    """Whether Parquet files alone, without what we ask of them, are more than DuckDB can take."""
    if common_format(source, asked) != "parquet":
        return False
    with duckdb.connect() as another:  # The one that failed answers nothing any more.
        try:
            read = another.read_parquet(list(source.files))
            read.aggregate("bit_xor(hash(COLUMNS(*)))").fetchall()  # all of it, and little memory
        except duckdb.InternalException:
            return True
    return False


def brief(error: Exception) -> str:
    """The lines of an engine's message that a person can use."""
    cut = isinstance(error, UnicodeDecodeError)
    text = error.object.decode(errors="ignore") if cut else str(error)
    text = text.split("Stack Trace")[0].split("Possible")[0].split("Try ")[0]
    if "state machine" in text:
        return "its quotes or its ends of lines do not follow the rules of CSV."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [x if len(x) < 160 else f"{x[:80]} ... {x[-60:]}" for x in lines]
    lines[0] = lines[0].split(" Error: ", 1)[-1]
    text = "; ".join(dict.fromkeys([*lines[:2], lines[-1]]))
    return text if text.endswith(".") else text + "."


def _broken_line(path: Path) -> str:
    """The first line of a JSONL file that is not JSON, in words; nothing if all are.

    DuckDB counts lines differently in different messages.
    """
    damaged = suppress(EOFError, zlib.error)
    with damaged, unpacked(path) as file:
        for number, line in enumerate(file, 1):
            try:
                json.loads(line.strip() or "null")
            except UnicodeDecodeError:
                return f"line {number} is not UTF-8."
            except json.JSONDecodeError as error:
                start = line[:60].decode(errors="replace").rstrip()
                why = error.msg.removesuffix(" starting at").removesuffix(" at")
                return f"line {number} is not JSON, {why} at column {error.colno}: {start!r}."
            except RecursionError:
                return f"line {number} is nested too deeply."
            except ValueError as error:
                return f"line {number} cannot be read, {error}."
    return ""
