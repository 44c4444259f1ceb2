"""`fuse_table` in PostgreSQL against the database's own group-by of the same sums, in turns.

    python -m benchmarks.databases postgresql://me@host/database --rows 2000000

Each turn makes a temporary table of the opinions: by SQL that is written by hand, by the query of
`fuse_table`, and by `fuse_table` with its checks. With `--processor` seconds are those of
processors, of this process and of a server on this machine, whose queries then take one process
each: a busy machine changes them little. `--write` keeps them in rows/databases.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis

import slencodings as sle
from benchmarks.turns import FOLDER, Row, with_spread

KEPT = FOLDER / "databases.json"

LABELS = ["a", "b", "c", "d", "e"]
ROWS = """
CREATE TABLE sle_bench AS SELECT
    (i * 7919 % {items}) AS item, (i * 104729 % 500) AS annotator,
    (ARRAY['a','b','c','d','e'])[1 + (i * 31 % 5)] AS label, (i * 17 % 100) / 100.0::float8 AS sure
FROM generate_series(1::bigint, {rows}) AS i
"""


def by_hand() -> str:
    """The same opinions as SQL that a person would write."""
    worth = "(0.99::float8 * sure / (1 - 0.99::float8 * sure))"
    sums = ", ".join(f"sum(CASE WHEN label = '{k}' THEN {worth} ELSE 0 END) AS {k}" for k in LABELS)
    total = " + ".join(LABELS)
    b = ", ".join(f"{k} / (1 + {total}) AS belief_{k}" for k in LABELS)
    p = ", ".join(f"({k} + 0.2::float8) / (1 + {total}) AS probability_{k}" for k in LABELS)
    u = f"1 / (1 + {total}) AS uncertainty"
    sums = f"SELECT item, {sums} FROM sle_bench GROUP BY item"
    return f"SELECT item, {b}, {u}, {p} FROM ({sums}) AS sums"


def processor_clock(database: Any) -> Callable[[], float]:
    """Seconds of processors that this process and the server's for this connection have taken."""
    database.raw_sql("SET max_parallel_workers_per_gather = 0")
    (process,) = database.raw_sql("SELECT pg_backend_pid()").fetchone()

    def clock() -> float:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks = int(words[11]) + int(words[12])
        return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")

    return clock


def measure(
    database: Any, ways: dict[str, Callable[[], str]], given: argparse.Namespace
) -> list[Row]:
    """The seconds that each way takes, in turns."""
    clock = processor_clock(database) if given.processor else time.perf_counter
    rows = list[Row]()
    for turn in range(given.turns):
        for way, query in ways.items():
            start = clock()
            database.raw_sql(f"CREATE TEMP TABLE sle_out AS {query()}")
            about = {"way": way, "rows": given.rows, "turn": turn, "processor": given.processor}
            rows.append(about | {"seconds": round(clock() - start, 3)})
            database.raw_sql("DROP TABLE sle_out")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--processor", action="store_true", help="seconds of processors")
    parser.add_argument("--write", action="store_true", help="rows that are kept")
    given = parser.parse_args()
    database: Any = ibis.connect(given.address)
    database.raw_sql("DROP TABLE IF EXISTS sle_bench")
    database.raw_sql(ROWS.format(rows=given.rows, items=given.rows // 5))
    database.raw_sql("ANALYZE sle_bench")
    table = database.table("sle_bench")
    roles = {"item": "item", "label": "label", "confidence": "sure"}
    lazy = database.compile(sle.fuse_table(table, **roles, labels=LABELS))
    ways = {
        "by hand": by_hand,
        "fuse_table": lambda: lazy,
        "with checks, labels named": lambda: database.compile(
            sle.fuse_table(table, **roles, labels=LABELS)
        ),
        "with checks, labels found": lambda: database.compile(sle.fuse_table(table, **roles)),
    }
    rows = measure(database, ways, given)
    database.raw_sql("DROP TABLE sle_bench")
    for way in ways:
        took = [row["seconds"] for row in rows if row["way"] == way]
        hand = [row["seconds"] for row in rows if row["way"] == "by hand"]
        ratios = [x / y for x, y in zip(took, hand, strict=True)]
        print(f"{way:<28} {statistics.median(took):7.2f} s {with_spread(ratios)}")
    if given.write:
        kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else []
        same = (given.rows, given.processor)
        kept = [row for row in kept if (row["rows"], row["processor"]) != same]
        KEPT.write_text(json.dumps([*kept, *rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
