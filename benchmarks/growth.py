"""How do seconds grow with annotations, labels, annotators, and annotations per item?

The methods that learn from the crowd do ten rounds each, so that one round is compared with one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from benchmarks.turns import Group, Run

ENGINES = ("duckdb fuse_table", "polars fuse_table")
METHODS = ("dawid_skene, 10 iterations", "mace, 1 x 10", "crowdtruth, 10 iterations")
# What the verbs of the command line do once a crowd is read.
VERBS = ("learn_crowd", "describe_annotators", "triage", "summarise", "compare")

# The size of tables and of crowds, but for what grows.
TABLE = {"rows": 1_000_000, "labels": 5, "per_item": 10, "annotators": 1000}
CROWD = {"rows": 100_000, "labels": 5, "per_item": 5, "annotators": 1000}
# With 100 labels and 1,000 annotators there is little else than confusions.
FEW = {"rows": 10_000, "labels": 5, "per_item": 5, "annotators": 100}


class Sweep(NamedTuple):
    """What grows: a column of the rows, in words, for which cases; over how many upper decades.

    fixed : the size of all that does not grow
    until : the exponent is of sizes up to here; with more, something else is done
    """

    column: str
    words: str
    cases: tuple[str, ...]
    fixed: dict[str, int]
    decades: float = 2
    until: float = math.inf


SWEEPS = (
    Sweep("rows", "annotations", ENGINES, TABLE),
    Sweep("labels", "labels", ENGINES, TABLE),
    Sweep("per_item", "annotations per item", ENGINES, TABLE, 3),
    Sweep("rows", "annotations", METHODS, CROWD),
    Sweep("rows", "annotations", VERBS, CROWD),
    # Of more than 100 labels it is not learned what people say where one of them is true.
    Sweep("labels", "labels", VERBS, FEW, until=100),
    Sweep("annotators", "annotators", VERBS, CROWD),
)
SIZES = {
    "rows": (100_000, 1_000_000, 10_000_000),
    "labels": (2, 5, 20, 100),
    "per_item": (1, 10, 100, 1000),
}


def plan(full: bool) -> list[Group]:
    groups = []
    for case in ENGINES:
        # All sizes in one turn, so that each turn has its exponent.
        sizes = [TABLE | {column: n} for column, all_n in SIZES.items() for n in all_n]
        sizes += [TABLE | {"rows": 100_000_000}] if full else []
        runs = dict.fromkeys(Run(case, **size) for size in sizes)
        groups.append(Group("growth", "encode", tuple(runs), 2, "parquet"))
    for case in METHODS:
        rows = [10_000, 100_000, 1_000_000, *([10_000_000] if full else [])]
        runs = tuple(Run(case, **(CROWD | {"rows": n})) for n in rows)
        groups.append(Group("growth", "aggregate", runs, 2, "npz"))
    for case in VERBS:
        # They take up to minutes, so each size is kept by itself.
        runs = dict.fromkeys(Run(case, **size) for size in _crowds(full))
        groups += [Group("growth", "aggregate", (run,), 1, "npz") for run in runs]
    return groups


def _crowds(full: bool) -> list[dict[str, int]]:
    """The crowds that a verb is given: more annotations, then labels, then annotators."""
    rows = [10_000, 100_000, *([1_000_000, 10_000_000] if full else [])]
    labels = (2, 5, 20, 100, 1000) if full else (2, 5, 20)
    annotators = (10, 1000, 100_000) if full else (10, 1000)
    return [
        *(CROWD | {"rows": n} for n in rows),
        *(FEW | {"labels": n} for n in labels),
        *(CROWD | {"annotators": n} for n in annotators),
    ]
