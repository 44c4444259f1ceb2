"""What does a cluster move? Bytes through Spark's shuffle, by the figures that Spark keeps.

Bytes do not depend on how busy the machine is, so each case runs once: `python -m benchmarks.moved
--write` keeps the rows and puts their table into docs/scale.md, and what a cluster would need.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import urllib.request
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.turns import FOLDER, Row, by_turn, read

ROWS, PER_ITEM, FILES = 2_000_000, 10, 16
LABELS = (2, 5, 20)
KEPT = FOLDER / "moved.json"
HEAD = (
    "| labels | rows of an item | form | bytes read | rows sent | bytes sent | bytes written |",
    "|---|---|---|---|---|---|---|",
)


def crowd(
    folder: Path,
    labels: int,
    together: bool,
    *,
    rows: int = ROWS,
    files: int = FILES,
    least: int = 0,
) -> None:
    """Annotations in several files, with all rows of an item in one of them or in any.

    least : of a hundredth, the lowest reliability; from 1 on every annotation is worth something
    """
    import duckdb

    order = f"range // {PER_ITEM}" if together else f"(range * 7919) % {rows // PER_ITEM}"
    for n in range(files):
        first, last = n * rows // files, (n + 1) * rows // files
        duckdb.sql(
            f"""
            COPY (
                SELECT {order} AS item, 'l' || (hash(range, 2) % {labels}) AS label,
                       hash(range, 3) % 100 / 100 AS uncertainty,
                       ({least} + hash(range, 4) % {100 - least}) / 100 AS reliability
                FROM range({first}, {last})
            ) TO '{folder}/{n:02}.parquet' (FORMAT parquet)
            """
        )


def session() -> Any:
    """A Spark of this machine that reads every file apart, as a cluster does with large ones."""
    from pyspark.sql import SparkSession

    build = SparkSession.builder.master("local[2]").appName("moved")
    for name, value in {
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": FILES,
        "spark.sql.files.maxPartitionBytes": "64k",
        "spark.sql.files.openCostInBytes": "64k",
    }.items():
        build = build.config(name, value)
    return build.getOrCreate()


def stages(spark: Any) -> list[dict[str, Any]]:
    """What Spark says of all stages so far."""
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def measure(spark: Any, source: Path, form: str, target: Path) -> Row:
    """What is moved by writing the opinions of a folder, or the evidence."""
    import slencodings as sle

    columns = {name: name for name in ("item", "label", "uncertainty", "reliability")}
    table = sle.fuse_table(spark.read.parquet(str(source)), **columns, form=form)
    before = {stage["stageId"] for stage in stages(spark)}
    table.write.parquet(str(target))
    new = [stage for stage in stages(spark) if stage["stageId"] not in before]
    return {
        "read": sum(file.stat().st_size for file in source.glob("*.parquet")),
        "sent": sum(stage["shuffleWriteRecords"] for stage in new),
        "bytes": sum(stage["shuffleWriteBytes"] for stage in new),
        "written": sum(file.stat().st_size for file in target.glob("*.parquet")),
    }


def rows() -> Iterator[Row]:
    """All cases, one after the other."""
    spark = session()
    with tempfile.TemporaryDirectory() as name:
        for labels, together in product(LABELS, (False, True)):
            source = Path(name) / f"{labels}-{together}"
            source.mkdir()
            crowd(source, labels, together)
            for form in ("wide", "evidence"):
                found = measure(spark, source, form, source / f"{form}.out")
                yield {"labels": labels, "together": together, "form": form} | found
    spark.stop()


def table(rows: list[Row]) -> str:
    """Rows by annotation and by item."""
    lines = [
        f"| {row['labels']} | {'in one file' if row['together'] else 'in many files'} | "
        f"{row['form']} | {row['read'] / ROWS:.1f} | {row['sent'] / ROWS:.2f} | "
        f"{row['bytes'] / ROWS:.1f} | {row['written'] * PER_ITEM / ROWS:.0f} |"
        for row in rows
    ]
    return "\n".join([*HEAD, *lines])


def sizing(rows: list[Row], seconds: float, of: int, cores: int) -> str:
    """What clusters need for 5 labels in the wide form, if so many rows took Spark so long here."""
    spread, together = (
        next(row for row in rows if (row["labels"], row["together"], row["form"]) == (5, x, "wide"))
        for x in (False, True)
    )
    lines = [
        "| annotations | read | sent, in many files | in one file | sums | written | core hours "
        "| cores for 10 minutes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for n in (10**8, 10**9, 10**10):
        hours = n * seconds * cores / of / 3600
        sizes = (
            3 * spread["read"] * n / ROWS,  # passes
            spread["bytes"] * n / ROWS,
            together["bytes"] * n / ROWS,
            8 * (1 + 5) * n / PER_ITEM,
            spread["written"] * n / ROWS,
        )
        cells = [f"{n:,}", *(f"{x / 1e9:,.3g} GB" for x in sizes)]
        lines.append("| " + " | ".join([*cells, f"{hours:.2g}", f"{max(1, hours * 6):.0f}"]) + " |")
    return "\n".join(lines)


def parts() -> dict[str, str]:
    """The tables of docs/scale.md, from the rows that are kept."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    found = read(FOLDER / "full.parquet")
    size, cores = 10_000_000, found[0]["cores"]
    seconds = statistics.median(by_turn(found, "spark fuse_table", rows=size).values())
    return {"moved": table(kept), "sizing": sizing(kept, seconds, size, cores)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="the tables into docs/scale.md")
    parser.add_argument("--kept", action="store_true", help="from the rows that are kept")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    found = json.loads(KEPT.read_text(encoding="utf-8")) if given.kept else list(rows())
    print(table(found))
    if given.write:
        from experiments.tables import place

        KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        place("scale.md", parts())


if __name__ == "__main__":
    main()
