"""The data that the cases are given, made of nothing but its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.turns import Row, Run, answer


def make(runs: list[Run], turns: list[int], path: Path) -> list[Row]:
    """Write the data of the first run, as its ending says."""
    {".parquet": as_table, ".csv": as_table, ".npz": as_codes}[path.suffix](runs[0], path)
    return []


def as_table(run: Run, path: Path) -> None:
    """Every item so often, in no order; one in 100 annotations is certain.

    Hashes in place of random numbers, so that it is the same table everywhere.
    """
    import duckdb

    rows, labels, per_item, annotators = run[1:]
    items = rows // per_item
    # A prime that is no factor of the number of items leads to each of them in turn.
    duckdb.sql(
        f"""
        COPY (
            SELECT (range * 7919) % {items} AS item,
                   (hash(range, 1) % {annotators})::BIGINT AS annotator,
                   'l' || (hash(range, 2) % {labels}) AS label,
                   if(range % 100 = 0, 0, hash(range, 3) % 9000 / 10000) AS uncertainty,
                   if(range % 100 = 0, 1, 0.1 + hash(range, 4) % 8000 / 10000) AS reliability
            FROM range({rows})
        ) TO '{path}';
        COPY (FROM '{path}' LIMIT 1000) TO '{few(path)}'
        """
    )


def few(path: Path) -> Path:
    """Where some rows of a table are, for a first look at them."""
    return path.with_stem(f"{path.stem}-few")


def as_codes(run: Run, path: Path) -> None:
    """So many different annotators for each item, who are right more or less often.

    Annotators and labels are numbered as they first appear: crowd-kit's MACE mixes them up
    otherwise, and nobody else minds.
    """
    import numpy as np

    rows, labels, per_item, annotators = run[1:]
    N = rows // per_item
    rng = np.random.default_rng(13)
    people = np.empty((N, per_item), dtype=int)
    for k, last in enumerate(range(annotators - per_item, annotators)):
        # Floyd's way to draw without replacement.
        drawn = rng.integers(0, last + 1, N)
        taken = np.any(people[:, :k] == drawn[:, None], axis=1)
        people[:, k] = np.where(taken, last, drawn)
    item, annotator = np.repeat(np.arange(N), per_item), people.ravel()
    truth, skill = rng.integers(0, labels, N), rng.beta(6, 3, annotators)
    right = rng.random(rows) < skill[annotator]
    label = np.where(right, truth[item], rng.integers(0, labels, rows))

    def in_order(codes: Any) -> Any:
        _, first, place = np.unique(codes, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[place]

    np.savez(path, item=item, annotator=in_order(annotator), label=in_order(label))


if __name__ == "__main__":
    answer(make)
