"""How do seconds grow with rows, with labels, and with annotations per item?

The methods that learn from the crowd do ten rounds each, so that one round is compared with one.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.turns import Group, Run

ENGINES = ("duckdb fuse_table", "polars fuse_table")
METHODS = ("dawid_skene, 10 iterations", "mace, 1 x 10", "crowdtruth, 10 iterations")
# What the verbs of the command line do once a crowd is read.
VERBS = ("learn_crowd", "describe_annotators", "triage", "summarise", "compare")
# Comparing takes minutes at 100,000, and all of that again for each decade.
_SLOW = ("summarise", "compare")


class Sweep(NamedTuple):
    """What grows: a column of the rows, in words, for which cases; over how many upper decades."""

    column: str
    words: str
    cases: tuple[str, ...]
    decades: float = 2


SWEEPS = (
    Sweep("rows", "annotations", ENGINES),
    Sweep("labels", "labels", ENGINES),
    Sweep("per_item", "annotations per item", ENGINES, 3),
    Sweep("rows", "annotations", METHODS),
    Sweep("rows", "annotations", VERBS),
)
# The size that all sweeps over tables share.
MIDDLE = {"rows": 1_000_000, "labels": 5, "per_item": 10, "annotators": 1000}
SIZES = {
    "rows": (100_000, 1_000_000, 10_000_000),
    "labels": (2, 5, 20, 100),
    "per_item": (1, 10, 100, 1000),
}


def plan(full: bool) -> list[Group]:
    groups = []
    for case in ENGINES:
        # All sizes in one turn, so that each turn has its exponent.
        sizes = [MIDDLE | {column: n} for column, all_n in SIZES.items() for n in all_n]
        sizes += [MIDDLE | {"rows": 100_000_000}] if full else []
        runs = dict.fromkeys(Run(case, **size) for size in sizes)
        groups.append(Group("growth", "encode", tuple(runs), 2, "parquet"))
    for case in METHODS:
        rows = [10_000, 100_000, 1_000_000, *([10_000_000] if full else [])]
        runs = tuple(Run(case, n, 5, 5, 1000) for n in rows)
        groups.append(Group("growth", "aggregate", runs, 2, "npz"))
    for case in VERBS:
        rows = [10_000, 100_000, *([1_000_000] if full and case not in _SLOW else [])]
        runs = tuple(Run(case, n, 5, 5, 1000) for n in rows)
        groups.append(Group("growth", "aggregate", runs, 1, "npz"))
    return groups
