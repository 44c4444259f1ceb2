"""How much slower than the engine's own group-by is fusing? Ratios inside one run.

Every case runs in a process of its own, so that peak memory is its own, and the cases take turns,
so that a busy machine slows them alike. `--write` keeps the table in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

COLUMNS = {
    "item": "item",
    "label": "label",
    "uncertainty": "uncertainty",
    "reliability": "reliability",
}
# case: (compared with, most times as slow, most times the memory)
LIMITS: dict[str, tuple[str, float | None, float | None]] = {
    "polars fuse_table": ("polars GROUP BY", 1.15, 1.7),
    "polars fuse_table, exact limits": ("polars GROUP BY", None, None),
    "polars fuse_table, long": ("polars GROUP BY", None, None),
    "duckdb fuse_table": ("duckdb GROUP BY", 1.4, 1.7),
    "duckdb fuse_table, exact limits": ("duckdb GROUP BY", 2.0, 1.7),
    "duckdb fuse_table, long": ("duckdb GROUP BY", None, None),
    "pandas in memory": ("polars in memory", 2.0, None),
    "numpy fuse": ("numpy bare sums", 3.0, None),
    "import slencodings": ("import numpy", None, None),
    "sle --help": ("import typer", 2.5, None),
}


def make_data(path: Path, rows: int) -> None:
    """Annotations of rows / 10 items by 1,000 annotators, 5 labels, one in 100 rows certain."""
    import duckdb

    duckdb.sql(
        f"""
        COPY (
            SELECT (random() * {rows // 10})::BIGINT AS item,
                   (random() * 999)::BIGINT AS annotator,
                   substr('abcde', 1 + (random() * 4.999)::INT % 5, 1) AS label,
                   if(range % 100 = 0, 0, random() * 0.9) AS uncertainty,
                   if(range % 100 = 0, 1, 0.1 + random() * 0.8) AS reliability
            FROM range({rows})
        ) TO '{path}' (FORMAT parquet)
        """
    )


def polars_group_by(path: Path) -> Callable[[], Any]:
    import polars as pl

    query = pl.scan_parquet(path).group_by("item", "label").agg(pl.col("reliability").sum())
    return lambda: query.collect(engine="streaming")


def polars_fuse(path: Path, **how: Any) -> Callable[[], Any]:
    import polars as pl

    import slencodings as sle

    table = pl.scan_parquet(path)
    return lambda: sle.fuse_table(table, **COLUMNS, **how).collect(engine="streaming")


def duckdb_group_by(path: Path) -> Callable[[], Any]:
    import duckdb

    sql = f"SELECT item, label, sum(reliability) AS w FROM '{path}' GROUP BY ALL"
    return lambda: duckdb.sql(f"CREATE TEMP TABLE result AS {sql}")


def duckdb_fuse(path: Path, **how: Any) -> Callable[[], Any]:
    import duckdb

    import slencodings as sle

    def run() -> None:
        opinions = sle.fuse_table(duckdb.read_parquet(str(path)), **COLUMNS, **how)
        duckdb.sql("CREATE TEMP TABLE result AS FROM opinions")
        del opinions

    return run


def in_memory(path: Path, kind: str) -> Callable[[], Any]:
    import polars as pl

    import slencodings as sle

    polars = pl.read_parquet(path, columns=list(COLUMNS.values()))
    table = polars.to_pandas() if kind == "pandas" else polars
    return lambda: sle.fuse_table(table, **COLUMNS)


def numpy_opinions() -> Any:
    import numpy as np

    import slencodings as sle

    rng = np.random.default_rng(0)
    y = np.eye(5)[rng.integers(0, 5, (1_000_000, 5))]
    return sle.encode(y, rng.random((1_000_000, 5)))


def numpy_sums() -> Callable[[], Any]:
    said = numpy_opinions()
    return lambda: (said.belief.sum(axis=1), said.uncertainty.sum(axis=1))


def numpy_fuse() -> Callable[[], Any]:
    import slencodings as sle

    said = numpy_opinions()
    return lambda: sle.fuse(said)


def command(*arguments: str) -> Callable[[], Any]:
    return lambda: subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)


def case(name: str, data: Path) -> Callable[[], Any]:
    python = sys.executable
    return {
        "polars GROUP BY": lambda: polars_group_by(data),
        "polars fuse_table": lambda: polars_fuse(data),
        "polars fuse_table, exact limits": lambda: polars_fuse(data, smoothing=0),
        "polars fuse_table, long": lambda: polars_fuse(data, form="long"),
        "duckdb GROUP BY": lambda: duckdb_group_by(data),
        "duckdb fuse_table": lambda: duckdb_fuse(data),
        "duckdb fuse_table, exact limits": lambda: duckdb_fuse(data, smoothing=0),
        "duckdb fuse_table, long": lambda: duckdb_fuse(data, form="long"),
        "polars in memory": lambda: in_memory(data, "polars"),
        "pandas in memory": lambda: in_memory(data, "pandas"),
        "numpy bare sums": numpy_sums,
        "numpy fuse": numpy_fuse,
        "import numpy": lambda: command(python, "-c", "import numpy"),
        "import slencodings": lambda: command(python, "-c", "import numpy, slencodings.tables"),
        "import typer": lambda: command(python, "-c", "import typer"),
        "sle --help": lambda: command(str(Path(python).with_name("sle")), "--help"),
    }[name]()


def peak_megabytes() -> float:
    """Not `ru_maxrss`, which begins at the peak of the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def measure(name: str, data: Path) -> dict[str, float]:
    """Seconds and peak megabytes of one run of one case, in this process."""
    run = case(name, data)
    taken: list[float] = []
    # The first pass over fresh arrays pays for their memory, on both sides of the comparison.
    for _ in range(3 if name.startswith("numpy") else 1):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return {
        "seconds": min(taken),
        "megabytes": peak_megabytes(),
    }


def take_turns(names: list[str], data: Path, repeats: int) -> dict[str, list[dict[str, float]]]:
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for turn in range(repeats):
        for name in names:
            print(f"\r{turn + 1}/{repeats} {name:40}", end="", file=sys.stderr, flush=True)
            out = subprocess.run(
                [sys.executable, __file__, "--case", name, "--data", str(data)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            runs[name].append(json.loads(out.splitlines()[-1]))
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return runs


def ratios(runs: list[dict[str, float]], floor: list[dict[str, float]], what: str) -> list[float]:
    """One ratio per turn, so that both sides met the same machine."""
    return [a[what] / b[what] for a, b in zip(runs, floor, strict=True)]


def table(runs: dict[str, list[dict[str, float]]]) -> list[str]:
    lines = [
        "| case | seconds | compared with | times as slow (spread) | at most "
        "| times the memory | at most |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (floor, slow, much) in LIMITS.items():
        if name not in runs:
            continue
        times = ratios(runs[name], runs[floor], "seconds")
        memory = statistics.median(ratios(runs[name], runs[floor], "megabytes"))
        lines.append(
            f"| {name} | {statistics.median(r['seconds'] for r in runs[name]):.2f} | {floor} | "
            f"{statistics.median(times):.2f} ({min(times):.2f}-{max(times):.2f}) | "
            f"{slow or ''} | {f'{memory:.2f}' if much else ''} | {much or ''} |"
        )
    return lines


def large(rows: int, data: Path) -> list[str]:
    """Seconds and memory of many rows: DuckDB, and Polars for comparison."""
    runs = take_turns(["duckdb GROUP BY", "duckdb fuse_table", "polars fuse_table"], data, 1)
    return [
        f"| {rows:,} rows | seconds | peak memory |",
        "|---|---|---|",
        *(
            f"| {name} | {run['seconds']:.1f} | {run['megabytes'] / 1000:.1f} GB |"
            for name, (run,) in runs.items()
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--large", type=int, default=0, help="also this many rows, once")
    parser.add_argument("--write", action="store_true", help="keep the table in the README here")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        print(json.dumps(measure(asked.case, asked.data)))
        return
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "crowd.parquet"
        make_data(data, asked.rows)
        names = list(
            dict.fromkeys(n for case, (floor, _, _) in LIMITS.items() for n in (floor, case))
        )
        lines = table(take_turns(names, data, asked.repeats))
        if asked.large:
            make_data(data, asked.large)
            lines += ["", *large(asked.large, data)]
    packages = ", ".join(f"{p} {version(p)}" for p in ("duckdb", "polars", "pandas", "numpy"))
    about = (
        f"{asked.rows:,} annotations of {asked.rows // 10:,} items, 5 labels, confidence and "
        f"reliability; {asked.repeats} turns, medians; {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, {packages}."
    )
    print("\n".join([about, "", *lines]))
    if asked.write:
        write(about, lines)


def write(about: str, lines: list[str]) -> None:
    page = Path(__file__).with_name("README.md")
    head, _, rest = page.read_text().partition("<!-- table -->\n")
    _, _, tail = rest.partition("<!-- end -->\n")
    made = "\n".join([about, "", *lines, ""])
    page.write_text(f"{head}<!-- table -->\n{made}<!-- end -->\n{tail}")


if __name__ == "__main__":
    main()
