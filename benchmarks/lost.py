"""A worker is lost while Spark encodes many rows: is all of it there once, and what did it cost?

`python -m benchmarks.lost --write` encodes 100 million annotations on three workers of this machine
(`local-cluster`), of which one is killed while opinions are written. The result is compared with
DuckDB's of the same files, item by item. The row is kept, and its table put into docs/scale.md.
`--rows 1000000` is to see that it works.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.moved import PER_ITEM, crowd, stages
from benchmarks.turns import FOLDER, Row

ROWS, LABELS, FILES, WORKERS = 100_000_000, 5, 32, 3
MEGABYTES = 2048  # of each worker
KEPT = FOLDER / "lost.json"
NAMES = [f"l{k}" for k in range(LABELS)]


@contextmanager
def session(folder: Path) -> Generator[Any]:
    """A Spark whose workers are processes of their own, with all that they write in the folder."""
    import pyspark
    from pyspark.sql import SparkSession

    # Logs of workers are written where Spark is installed, so that is a folder of links.
    home, installed = folder / "spark", Path(pyspark.__file__).parent
    home.mkdir()
    for place in installed.iterdir():
        (home / place.name).symlink_to(place)
    os.environ["SPARK_HOME"], os.environ["SPARK_LOCAL_IP"] = str(home), "127.0.0.1"
    os.environ["SPARK_LOCAL_DIRS"] = str(folder / "shuffled")
    build = SparkSession.builder.master(f"local-cluster[{WORKERS},1,{MEGABYTES}]").appName("lost")
    for name, value in {
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.executor.memory": f"{MEGABYTES}m",
        "spark.sql.shuffle.partitions": FILES,
        # A task for each file and each part, however few rows there are.
        "spark.sql.files.openCostInBytes": str(1 << 27),
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }.items():
        build = build.config(name, value)
    spark = build.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def workers(application: str) -> list[int]:
    """The processes that work for an application of ours."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # It has ended meanwhile.
            continue
        if application in words and any("ExecutorBackend" in word for word in words):
            found.append(int(place.name))
    return sorted(found)


def kill_while_writing(spark: Any, target: Path, found: Row) -> None:
    """Kill a worker when a third of the opinions is written, and say how it was then."""
    while True:
        writing = [one for one in stages(spark) if one["shuffleReadBytes"] and one["outputBytes"]]
        if any(one["numCompleteTasks"] * 3 >= one["numTasks"] for one in writing):
            break
        time.sleep(0.1)
    known = workers(spark.sparkContext.applicationId)
    os.kill(known[0], signal.SIGKILL)
    found |= {"killed": 1, "before": len(known), "target_there": target.exists()}


def encoded(folder: Path, source: Path) -> Row:
    """What it took to encode all of the source with a worker killed, and what came of it."""
    from slencodings.files.spark import encode_files
    from slencodings.tables.fuse import Fusing
    from slencodings.tables.roles import Reading

    target, found = folder / "targets.parquet", dict[str, Any]()
    with session(folder) as spark:
        told = spark, target, found
        threading.Thread(target=kill_while_writing, args=told, daemon=True).start()
        start = time.perf_counter()
        reading = Reading(labels=NAMES)
        about = encode_files(str(source), str(target), reading, Fusing(weigh="stated"))
        seconds = time.perf_counter() - start
        spark._jsc.sc().listenerBus().waitUntilEmpty()
        all_stages = stages(spark)
    beside = sorted(path.name for path in folder.glob("targets*"))
    inside = [path.name for path in target.iterdir() if not path.name.startswith(("part-", "."))]
    return {
        "rows": about["rows"],
        "written_rows": about["written"],
        "seconds": round(seconds, 1),
        "cpu": round(sum(stage["executorCpuTime"] for stage in all_stages) / 1e9, 1),
        "tasks": sum(stage["numCompleteTasks"] for stage in all_stages),
        "failed": sum(stage["numFailedTasks"] for stage in all_stages),
        "attempts": len(all_stages),
        "read": sum(file.stat().st_size for file in source.glob("*.parquet")),
        "sent": sum(stage["shuffleWriteRecords"] for stage in all_stages),
        "bytes": sum(stage["shuffleWriteBytes"] for stage in all_stages),
        "written": sum(file.stat().st_size for file in target.glob("*.parquet")),
        "killed": 0,
        "beside": beside,
        "inside": sorted(inside),
        **found,
    }


def compared(folder: Path, source: Path) -> Row:
    """Items of the targets and of DuckDB's sums by hand, and the largest difference of a number.

    The difference is relative for uncertainty, 1 / (1 + sum of what annotations are worth). A lost
    annotation is worth at least 1e-4 of at most 990 for an item, so it would show as 1e-7.
    """
    import duckdb

    database = duckdb.connect(config={"memory_limit": "5GB", "temp_directory": str(folder)})
    sums = ", ".join(f"sum(w) FILTER (label = '{name}') AS {name}" for name in NAMES)
    sums = f"""
        SELECT item, {sums}, sum(w) AS total
        FROM (SELECT *, .99 * reliability * (1 - uncertainty) AS b, b / (1 - b) AS w
              FROM '{source}/*.parquet') GROUP BY item"""
    apart = ["abs(u.uncertainty * (1 + total) - 1)"]
    for name in NAMES:
        b = f"ifnull({name}, 0) / (1 + total)"
        apart.append(f"abs(belief_{name} - {b})")
        apart.append(f"abs(probability_{name} - {b} - 1 / {LABELS} / (1 + total))")
    (found,) = database.sql(
        f"""
        SELECT count(*), count(s.item), count(u.item), max(greatest({", ".join(apart)}))
        FROM ({sums}) AS s FULL JOIN '{folder}/targets.parquet/*.parquet' AS u USING (item)"""
    ).fetchall()
    return dict(zip(("pairs", "items", "found", "difference"), found, strict=True))


def check(row: Row, rows: int) -> None:
    """Stop where anything is missing, there twice or half written, or no worker was killed."""
    items = rows // PER_ITEM
    wanted = {
        "rows": rows,
        "killed": 1,
        "before": WORKERS,
        "target_there": False,
        **dict.fromkeys(("written_rows", "pairs", "items", "found"), items),
        "beside": ["targets.parquet"],
        "inside": ["_SUCCESS", "_slencodings.json"],
    }
    wrong = {name: row.get(name) for name, value in wanted.items() if row.get(name) != value}
    if wrong or not row["difference"] < 1e-9:
        raise SystemExit(f"it is not all there once: {wrong}, difference {row['difference']}")


def measured(rows: int, folder: Path) -> Row:
    """The row of so many annotations, all of which came out once."""
    source = folder / "crowd"
    source.mkdir()
    crowd(source, LABELS, False, rows=rows, files=FILES, least=1)
    row = encoded(folder, source) | compared(folder, source)
    print(json.dumps(row), flush=True)
    check(row, rows)
    return row


def table(row: Row) -> str:
    """What it was, line by line."""
    again = row["sent"] - row["rows"]
    lines = {
        "annotations read": f"{row['rows']:,}, {row['read'] / 1e9:.2f} GB of Parquet",
        "rows sent": f"{row['sent']:,}, {again / 1e6:.1f} million of them because of the loss",
        "bytes sent": f"{row['bytes'] / 1e9:.2f} GB, {row['bytes'] / row['sent']:.1f} for each row",
        "opinions written": f"{row['written_rows']:,}, {row['written'] / 1e9:.2f} GB of Parquet",
        "items there once, and in DuckDB's result": f"{row['pairs']:,}",
        "largest difference from DuckDB's numbers": f"{row['difference']:.0e}",
        "tasks that came to their end; that failed": f"{row['tasks']}; {row['failed']}",
        "processor seconds of tasks": f"{row['cpu']:.0f}",
    }
    head = [f"| {row['before']} workers, {row['killed']} killed | |", "|---|---|"]
    return "\n".join([*head, *(f"| {what} | {found} |" for what, found in lines.items())])


def parts() -> dict[str, str]:
    """The table of docs/scale.md, from the row that is kept."""
    return {"lost": table(json.loads(KEPT.read_text(encoding="utf-8")))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rows and the table of docs/scale.md")
    parser.add_argument("--rows", type=int, default=ROWS, help="a multiple of ten")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    with tempfile.TemporaryDirectory(prefix="lost-") as name:
        row = measured(given.rows, Path(name))
    print(table(row))
    if given.write:
        from experiments.tables import place

        KEPT.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
        place("scale.md", parts())


if __name__ == "__main__":
    main()
