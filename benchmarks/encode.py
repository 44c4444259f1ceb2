"""How much slower than the engine's own group-by is fusing?

Each engine runs `GROUP BY item, label SUM(w)` and `fuse_table` with all of its checks; the command
line is set against DuckDB's own COPY of that group-by.
"""

from __future__ import annotations

import shlex
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.crowds import few
from benchmarks.turns import (
    Comparison,
    Group,
    Row,
    Run,
    Step,
    alternate,
    answer,
    command,
    peak_megabytes,
    row,
    stem,
    timed,
)

COLUMNS = {name: name for name in ("item", "label", "uncertainty", "reliability")}
ENGINES = ("polars", "duckdb", "pandas", "pandas of Arrow", "pyarrow", "dask", "spark", "numpy")
USUAL, MOST = 10_000_000, 100_000_000
NUMPY = (5_000_000, 5, 5, 5)
MOST_WIDE = 20  # labels; `sle encode` writes the long form beyond it, and so do cases here
COMPARED = (
    Comparison("polars fuse_table", "polars GROUP BY", 1.15, memory=1.7, at=USUAL),
    Comparison("polars fuse_table, exact limits", "polars GROUP BY"),
    Comparison("polars fuse_table, long", "polars GROUP BY"),
    Comparison("duckdb fuse_table", "duckdb GROUP BY", 1.4, memory=1.7, at=USUAL),
    Comparison("duckdb fuse_table, exact limits", "duckdb GROUP BY", 2.0, memory=1.7, at=USUAL),
    Comparison("duckdb fuse_table, long", "duckdb GROUP BY"),
    Comparison("pandas fuse_table", "pandas GROUP BY"),
    Comparison("pandas fuse_table", "polars in memory fuse_table", 2.0, at=USUAL),
    Comparison("pandas of Arrow fuse_table", "pandas of Arrow GROUP BY"),
    Comparison("pyarrow fuse_table", "pyarrow GROUP BY"),
    Comparison("dask fuse_table", "dask GROUP BY"),
    Comparison("spark fuse_table", "spark GROUP BY"),
    Comparison("sle encode", "duckdb COPY of GROUP BY"),
    Comparison("sle encode --weigh stated", "duckdb COPY of GROUP BY", 1.4, memory=1.3, at=USUAL),
    Comparison(
        "sle encode --weigh stated, CSV", "duckdb COPY of GROUP BY, CSV", 1.3, memory=1.3, at=USUAL
    ),
    Comparison("sle encode --engine spark", "Spark's GROUP BY and write", 1.5, at=USUAL),
    Comparison("numpy fuse", "numpy bare sums", 3.0),
)
# On the largest table: at most so many times as slow as DuckDB's own, and so many megabytes.
LARGE = (
    Comparison("duckdb GROUP BY", ""),
    Comparison("duckdb COPY of GROUP BY", ""),
    Comparison("duckdb fuse_table", "duckdb GROUP BY", 1.8, megabytes=4500),
    Comparison("polars fuse_table", "duckdb GROUP BY"),
    Comparison("sle encode --weigh stated", "duckdb COPY of GROUP BY", 1.2, megabytes=4500),
    Comparison(
        "sle encode --weigh stated --memory 2GB", "duckdb COPY of GROUP BY", 2.0, megabytes=2500
    ),
    Comparison("sle encode", "duckdb COPY of GROUP BY", megabytes=4500),
)


def plan(full: bool) -> list[Group]:
    groups = compared(USUAL if full else USUAL // 10, 3)
    if full:
        cases = dict.fromkeys(one.case for one in LARGE)
        runs = tuple(Run(case, MOST, 5, 10, 1000) for case in cases)
        groups.append(Group("encode", "encode", runs, 2, "parquet"))
    return groups


def compared(rows: int, turns: int) -> list[Group]:
    """A group for each engine: its floors, and what is compared with them."""
    groups: dict[str, dict[str, None]] = {}
    for case, floor, *_ in COMPARED:
        groups.setdefault(_engine(case), {}).update({floor: None, case: None})
    return [
        Group(
            "encode",
            "encode",
            tuple(
                Run(case, *(NUMPY if engine == "numpy" else (rows, 5, 10, 1000))) for case in cases
            ),
            turns,
            {"numpy": "", "CSV": "csv"}.get(engine, "parquet"),
            together=engine == "spark",
        )
        for engine, cases in groups.items()
    ]


def _engine(case: str) -> str:
    """Whose floor a case has: a library's, or for commands that of what they read or start."""
    named = [engine for engine in reversed(ENGINES) if case.startswith(engine)]
    commands = [what for what in ("CSV", "--engine spark") if case.endswith(what)]
    return [*named, *commands, "sle encode"][0]


# -- the cases ---------------------------------------------------------------------------------
# Each takes the path of a table, gets ready, and gives the step that is timed.


def polars_group_by(path: Path) -> Step:
    import polars as pl

    query = pl.scan_parquet(path).group_by("item", "label").agg(pl.col("reliability").sum())
    return lambda: query.collect(engine="streaming")


def polars_fuse(path: Path, **how: Any) -> Step:
    import polars as pl

    import slencodings as sle

    table = pl.scan_parquet(path)
    return lambda: sle.fuse_table(table, **COLUMNS, **how).collect(engine="streaming")


def duckdb_group_by(path: Path) -> Step:
    import duckdb

    sql = f"SELECT item, label, sum(reliability) AS w FROM '{path}' GROUP BY ALL"
    return lambda: duckdb.sql(f"CREATE OR REPLACE TEMP TABLE result AS {sql}")


def duckdb_fuse(path: Path, **how: Any) -> Step:
    import duckdb

    import slencodings as sle

    def step() -> None:
        opinions = sle.fuse_table(duckdb.read_parquet(str(path)), **COLUMNS, **how)
        duckdb.sql("CREATE OR REPLACE TEMP TABLE result AS FROM opinions")
        del opinions

    return step


def in_memory(path: Path, kind: str) -> Any:
    """The columns that are used, as a table of a library."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=list(COLUMNS))
    if kind == "pyarrow":
        return table
    if kind == "polars":
        import polars as pl

        return pl.from_arrow(table)
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype if kind == "pandas of Arrow" else None)


def memory_fuse(path: Path, kind: str) -> Step:
    import slencodings as sle

    table = in_memory(path, kind)
    return lambda: sle.fuse_table(table, **COLUMNS)


def pandas_group_by(path: Path, kind: str) -> Step:
    table = in_memory(path, kind)
    # Sorting, its default, would only make the floor slower.
    return lambda: table.groupby(["item", "label"], sort=False)["reliability"].sum()


def pyarrow_group_by(path: Path) -> Step:
    table = in_memory(path, "pyarrow")
    return lambda: table.group_by(["item", "label"]).aggregate([("reliability", "sum")])


def dask_group_by(path: Path) -> Step:
    import dask.dataframe as dd

    columns = ["item", "label", "reliability"]
    table = dd.read_parquet(path, columns=columns)
    return lambda: table.groupby(["item", "label"])["reliability"].sum().compute()


def dask_fuse(path: Path) -> Step:
    import dask.dataframe as dd

    import slencodings as sle

    table = dd.read_parquet(path, columns=list(COLUMNS))
    return lambda: sle.fuse_table(table, **COLUMNS).compute()


def numpy_opinions() -> Any:
    """Five annotations of each of a million items, five labels."""
    import numpy as np

    import slencodings as sle

    rng = np.random.default_rng(0)
    y = np.eye(5)[rng.integers(0, 5, (1_000_000, 5))]
    return sle.encode(y, rng.random((1_000_000, 5)))


def numpy_sums(_: Path) -> Step:
    said = numpy_opinions()
    return lambda: (said.belief.sum(axis=1), said.uncertainty.sum(axis=1))


def numpy_fuse(_: Path) -> Step:
    import slencodings as sle

    said = numpy_opinions()
    return lambda: sle.fuse(said)


def copy(path: Path) -> list[str]:
    sql = f"SELECT item, label, sum(reliability) AS w FROM '{path}' GROUP BY ALL"
    sql = f"COPY ({sql}) TO '{path}.out.parquet' (FORMAT parquet)"
    return [sys.executable, "-c", f"import duckdb; duckdb.sql({sql!r})"]


def spark_write(path: Path) -> list[str]:
    lines = [
        "from pyspark.sql import SparkSession",
        "spark = SparkSession.builder.master('local[2]').getOrCreate()",
        "spark.sparkContext.setLogLevel('ERROR')",
        f"table = spark.read.parquet({str(path)!r}).groupBy('item', 'label')",
        f"table.agg({{'reliability': 'sum'}}).write.mode('overwrite').parquet('{path}.spark')",
    ]
    return [sys.executable, "-c", "\n".join(lines)]


def sle_encode(path: Path, *more: str) -> list[str]:
    program = str(Path(sys.executable).with_name("sle"))
    return [program, "encode", str(path), "-o", f"{path}.out.parquet", "--quiet", *more]


def sle_on_spark(path: Path) -> list[str]:
    """The folder that it writes must not be there before."""
    words = sle_encode(path, "--engine", "spark", "--master", "local[2]", "--weigh", "stated")
    words[words.index("-o") + 1] = target = f"{path}.sle.parquet"
    return ["sh", "-c", f"rm -rf '{target}' && exec {shlex.join(words)}"]


CASES: dict[str, Callable[..., Step]] = {
    "polars GROUP BY": polars_group_by,
    "polars fuse_table": polars_fuse,
    "polars fuse_table, exact limits": partial(polars_fuse, smoothing=0),
    "polars fuse_table, long": partial(polars_fuse, form="long"),
    "duckdb GROUP BY": duckdb_group_by,
    "duckdb fuse_table": duckdb_fuse,
    "duckdb fuse_table, exact limits": partial(duckdb_fuse, smoothing=0),
    "duckdb fuse_table, long": partial(duckdb_fuse, form="long"),
    "polars in memory fuse_table": partial(memory_fuse, kind="polars"),
    "pandas GROUP BY": partial(pandas_group_by, kind="pandas"),
    "pandas fuse_table": partial(memory_fuse, kind="pandas"),
    "pandas of Arrow GROUP BY": partial(pandas_group_by, kind="pandas of Arrow"),
    "pandas of Arrow fuse_table": partial(memory_fuse, kind="pandas of Arrow"),
    "pyarrow GROUP BY": pyarrow_group_by,
    "pyarrow fuse_table": partial(memory_fuse, kind="pyarrow"),
    "dask GROUP BY": dask_group_by,
    "dask fuse_table": dask_fuse,
    "numpy bare sums": numpy_sums,
    "numpy fuse": numpy_fuse,
}
COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "duckdb COPY of GROUP BY": copy,
    "sle encode": sle_encode,
    "sle encode --weigh stated": lambda path: sle_encode(path, "--weigh", "stated"),
    "sle encode --weigh stated --memory 2GB": lambda path: sle_encode(
        path, "--weigh", "stated", "--memory", "2GB"
    ),
    "duckdb COPY of GROUP BY, CSV": copy,
    "sle encode --weigh stated, CSV": lambda path: sle_encode(path, "--weigh", "stated"),
    "Spark's GROUP BY and write": spark_write,
    "sle encode --engine spark": sle_on_spark,
}


def measure(runs: list[Run], turns: list[int], folder: Path) -> list[Row]:
    """One case once; or Spark's in turns, as its session takes longer than the work."""
    warnings.simplefilter("ignore")
    if runs[0].case.startswith("spark"):
        return with_spark(runs, turns, folder)
    (run,), (turn,) = runs, turns
    path = folder / f"{stem(run)}.{'csv' if run.case.endswith('CSV') else 'parquet'}"
    if run.case in COMMANDS:
        seconds, megabytes = command(*COMMANDS[run.case](path))
        return [row(run, turn, seconds, megabytes=megabytes)]
    make = CASES[run.case]
    if run.labels > MOST_WIDE:
        make = partial(make, form="long")
    # What libraries put off until their first use is paid for here, on both sides.
    make(few(path))()
    step = make(path)
    # The first pass over fresh arrays pays for their memory.
    repeats = 3 if run.case.startswith("numpy") else 1
    seconds = min(timed(step)[0] for _ in range(repeats))
    return [row(run, turn, seconds, megabytes=peak_megabytes())]


def with_spark(runs: list[Run], turns: list[int], folder: Path) -> list[Row]:
    """In one warm session on two threads; results go nowhere, as for Spark's own benchmarks."""
    from pyspark.sql import SparkSession

    import slencodings as sle

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    table = spark.read.parquet(str(folder / f"{stem(runs[0])}.parquet"))
    makes = {
        "spark GROUP BY": lambda: table.groupBy("item", "label").agg({"reliability": "sum"}),
        "spark fuse_table": lambda: sle.fuse_table(table, **COLUMNS),
    }

    def step(case: str) -> None:
        makes[case]().write.format("noop").mode("overwrite").save()

    try:
        steps = [partial(step, run.case) for run in runs]
        return alternate(runs, steps, turns, time.perf_counter)
    finally:
        spark.stop()


if __name__ == "__main__":
    answer(measure)
