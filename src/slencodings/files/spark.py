"""From files of annotations to a folder of opinions, on a Spark cluster.

The same expression as everywhere, so the workers need neither Python nor this package. The result
is written beside its final name and then renamed, so there is never half a folder under that name.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

import narwhals as nw

from slencodings.annotations import some
from slencodings.files.hadoop import (
    exists,
    find_files,
    read_table,
    reason,
    spark_format,
    without_dots,
    write,
)
from slencodings.files.job import choose_weighing, fuse_in_place, refuse_calibrated
from slencodings.files.write import tell_written
from slencodings.progress import Say
from slencodings.tables.checks import Problem, any_of, refuse_problems
from slencodings.tables.engines import Frame
from slencodings.tables.fuse import Fusing, Metadata
from slencodings.tables.roles import Reading

# Seconds: to reach the master, and to wait for a worker when there is none.
REACH, PATIENCE = 15.0, 120.0
_PROBLEM, _UNLABELLED = "sle_problem", "sle_unlabelled"


def encode_files(
    source: str | Sequence[str],
    target: str,
    reading: Reading | None = None,
    fusing: Fusing | None = None,
    *,
    master: str | None = None,
    patience: float = PATIENCE,
    say: Say = lambda what, text: None,
) -> Metadata:
    """Fuse files of annotations into a folder of opinions with Spark, and return how it was done.

    Parameters
    ----------
    source : files, folders or patterns such as `crowd/*.parquet`: Parquet, CSV, TSV or JSONL
    target : a folder that is not there yet; its name ends in .parquet or .csv
    master : such as spark://host:7077 or local[*]; else the session that runs, or what
        spark-submit says
    patience : seconds to wait for a worker when there is none
    """
    reading, fusing = reading or Reading(), fusing or Fusing()
    writer = _writer(target)
    refuse_calibrated(reading, "in the memory of one machine, not by Spark")
    weighing = choose_weighing(reading, fusing, say)
    sources = [source] if isinstance(source, str) else list(source)
    with session(master) as spark, _watched(spark, patience, target):
        if exists(spark, target):
            raise FileExistsError(
                f"the output must not be there yet; {target!r} is. Remove it, or name another."
            )
        files = find_files(spark, sources)
        format = spark_format(files, reading.format)
        table, found = read_table(
            spark, files, format, reading, learned=weighing.how != "stated", say=say
        )
        table, plain = without_dots(table, found)
        later = _Later(table)
        rows, frame, describe = fuse_in_place(
            table,
            plain,
            fusing,
            weighing,
            name=some(sources, str),
            source={"source": sources, "files": len(files)},
            named=found,
            check=later.check,
            say=say,
        )

        def checked() -> Metadata:
            rows.counts.update(later.counts())
            return describe()

        about = write(spark, frame.to_native(), target, writer, checked)
    tell_written(target, about, say)
    return about


@dataclass
class _Later:
    """A check of a table whose rows Spark goes through but once, to fuse them."""

    table: Any
    seen: Any = field(init=False)
    recount: Callable[[], dict[str, int]] = field(init=False)

    def check(
        self, frame: Frame, problems: list[Problem], first: str
    ) -> tuple[Frame, dict[str, int]]:
        """The rows, which are counted wherever they are first used; as `checks.Check`."""
        sql: Any = import_module("pyspark.sql")
        self.seen = sql.Observation()
        self.recount = lambda: refuse_problems(frame, problems, first)
        marked = frame.with_columns(
            any_of(problems).cast(nw.Int64).alias(_PROBLEM),
            nw.col(first).is_null().cast(nw.Int64).alias(_UNLABELLED),
        ).to_native()
        count, add, one = sql.functions.count, sql.functions.sum, sql.functions.lit(1)
        counted = [count(one).alias("rows"), *(add(c).alias(c) for c in (_PROBLEM, _UNLABELLED))]
        observed = nw.from_native(marked.observe(self.seen, *counted))
        return observed.drop(_PROBLEM, _UNLABELLED), {}

    def counts(self) -> dict[str, int]:
        """What was counted; an error that shows the first problem if there are any.

        Who takes over from a worker that is lost counts its rows again. Then, and where something
        is wrong, all are gone through once more.
        """
        found, rows = self.seen.get, self.table.count()
        if rows == 0 or found.get("rows") != rows or found.get(_PROBLEM):
            return self.recount()
        return {"rows": rows, "unlabelled": int(found.get(_UNLABELLED) or 0)}


def _writer(target: str) -> str:
    """How to write the target, or an error before any work is done."""
    suffix = PurePosixPath(target).suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise ValueError(
            "the name of the output chooses its format: .parquet or .csv, each a folder; "
            f"{target!r} came."
        )
    return suffix[1:]


@contextmanager
def session(master: str | None = None) -> Generator[Any]:
    """The session that runs, or a new one that is stopped at the end."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ImportError(
            "Spark is not installed here. Install it: pip install 'slencodings[spark]'"
        ) from error
    # Sessions are known to the thread that made them, and the context to all.
    if running := SparkContext._active_spark_context:  # pyright: ignore[reportPrivateUsage]
        if master not in (None, running.master):
            raise ValueError(
                f"a session with {running.master} runs in this process; master={master!r} came. "
                "Stop that one first, or leave master out."
            )
        yield SparkSession.builder.getOrCreate()
        return
    _check_java()
    _check_master(master)
    builder = SparkSession.builder.appName("slencodings")
    builder = builder if master is None else builder.master(master)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise ConnectionError(
            f"Spark did not start with master {master or 'of spark-submit'}: {reason(error)}"
        ) from error
    try:
        yield spark
    finally:
        spark.stop()


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java", path=os.path.join(home, "bin") if home else None):
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise FileNotFoundError(
            f"Spark needs Java 17 or newer; there is no `java` {where}. Install it, for example "
            "apt install openjdk-17-jre-headless, or set JAVA_HOME."
        )


def _check_master(master: str | None) -> None:
    """Refuse a master that nobody listens at; Spark itself would try for minutes."""
    if master is None or not master.startswith(("spark://", "sc://")):
        return
    if master.startswith("sc://"):
        raise ValueError(
            f"files need a master such as spark://host:7077; {master!r} came, and Spark Connect "
            "cannot rename what it wrote. Use sle.fuse_table on its tables instead."
        )
    why = ""
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=REACH).close()
            return
        except (OSError, ValueError) as error:
            why = str(error)
    raise ConnectionError(
        f"no Spark master answers at {master}: {why}. Is it running, and is this its URL, as its "
        "log and its web page say?"
    )


@contextmanager
def _watched(spark: Any, patience: float, target: str) -> Generator[None]:
    """Give up when there has been no worker for so long; say in words what Spark could not do."""
    context = spark.sparkContext
    done, lost = threading.Event(), threading.Event()

    def watch() -> None:
        seen = time.monotonic()
        while not done.wait(0.5):
            with suppress(Exception):  # A context that has stopped tells nothing.
                # The driver is one of them.
                if context._jsc.sc().getExecutorMemoryStatus().size() > 1:
                    seen = time.monotonic()
            if time.monotonic() - seen > patience:
                lost.set()
                with suppress(Exception):
                    context.cancelAllJobs()

    watcher = threading.Thread(target=watch, daemon=True)
    if not context.master.startswith("local"):
        watcher.start()
    try:
        yield
    except Exception as error:
        nothing = f"Nothing was written to {target!r}."
        if lost.is_set():
            raise ConnectionError(
                f"Spark has had no worker for {patience:g} seconds at {context.master}. Start "
                f"workers with memory and cores to spare, then run this again. {nothing}"
            ) from error
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        raise OSError(f"Spark could not finish: {reason(error)} {nothing}") from error
    finally:
        done.set()
