"""`fuse_table` in PostgreSQL against the database's own group-by of the same sums, in turns.

    python -m benchmarks.databases postgresql://me@host/database --rows 2000000

Each turn makes a temporary table of the opinions: by SQL that is written by hand, by the query of
`fuse_table`, and by `fuse_table` with its checks.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import ibis

import slencodings as sle

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=5)
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
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(given.turns):
        for way, query in ways.items():
            start = time.perf_counter()
            database.raw_sql(f"CREATE TEMP TABLE sle_out AS {query()}")
            seconds[way].append(time.perf_counter() - start)
            database.raw_sql("DROP TABLE sle_out")
    hand = statistics.median(seconds["by hand"])
    for way, took in seconds.items():
        median = statistics.median(took)
        print(f"{way:<28} {median:7.2f} s {median / hand:6.2f}x  {[round(x, 2) for x in took]}")
    database.raw_sql("DROP TABLE sle_bench")


if __name__ == "__main__":
    main()
