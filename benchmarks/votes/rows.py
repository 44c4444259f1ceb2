"""Rows: one for each crowd, method and score, so that what was measured is not measured again.

A row has sums over 50 blocks of items and what they are sums over, so that any two methods can be
compared in pairs, whenever they were measured.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.votes.crowds import Crowd
from benchmarks.votes.methods import Method
from benchmarks.votes.score import SCORES, score
from slencodings.opinion import Floats

PATH = Path(__file__).parents[1] / "rows" / "votes.parquet"
COLUMNS = {
    "crowd": pl.String,
    "method": pl.String,
    "score": pl.String,
    "sums": pl.List(pl.Float32),
    "counts": pl.List(pl.Float32),
    "seconds": pl.Float64,  # of a processor, for all fits and scores
    "failed": pl.String,  # why there are no sums
    "version": pl.String,
    "data": pl.String,
    "items": pl.Int64,
    "annotators": pl.Int64,
    "labels": pl.Int64,
    "annotations": pl.Int64,
}
KEY = ("crowd", "method", "version", "data")


def read(path: Path) -> pl.DataFrame:
    """The rows of a file; none where there is no file."""
    return pl.read_parquet(path) if path.exists() else pl.DataFrame(schema=COLUMNS)


def keep(
    path: Path,
    crowds: Mapping[str, Callable[[], Crowd]],
    methods: Mapping[str, Method],
    *,
    seconds: int,
    again: bool = False,
) -> pl.DataFrame:
    """Score what has no rows of its version yet, and give all rows of these crowds and methods."""
    kept, data = read(path), list[str]()
    for name, load in crowds.items():
        try:
            crowd = load()
        except FileNotFoundError as missing:
            print(f"without {name}: {missing}", file=sys.stderr)
            continue
        data.append(crowd.fingerprint)
        there = set() if again else {*kept.select(KEY).unique().iter_rows()}
        for method_name, method in methods.items():
            key = (name, method_name, method.version, crowd.fingerprint)
            if key not in there and method.suits(crowd.annotations):
                new = measured(dict(zip(KEY, key, strict=True)), method, crowd, seconds)
                kept = _save(path, kept, new)
    asked = pl.col("crowd").is_in([*crowds]), pl.col("method").is_in([*methods])
    return kept.filter(*asked, pl.col("data").is_in(data))


def all_rows(path: Path, measured: pl.DataFrame) -> pl.DataFrame:
    """What is kept, whoever measured it; of the crowds just measured only the same items."""
    kept = read(path)
    same = kept.join(measured, on=["crowd", "data"], how="semi")
    others = kept.join(measured, on="crowd", how="anti")
    if left := len(kept) - len(same) - len(others):
        print(f"without {left} rows of other items of these crowds", file=sys.stderr)
    return pl.concat([same, others]).sort("crowd", "method", "score")


def _save(path: Path, kept: pl.DataFrame, new: list[dict[str, Any]]) -> pl.DataFrame:
    """All rows, the new ones in place of those of the same crowd and method; whole or not."""
    fresh = pl.DataFrame(new, schema=COLUMNS)
    old = kept.join(fresh, on=["crowd", "method"], how="anti")
    rows = pl.concat([old, fresh]).sort("crowd", "method", "score")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    rows.write_parquet(part, compression="zstd")
    part.replace(path)
    return rows


def measured(
    key: dict[str, str], method: Method, crowd: Crowd, seconds: int
) -> list[dict[str, Any]]:
    """The rows of a method on a crowd; one that says why if it fails or takes too long."""
    a = crowd.annotations
    about = {
        **key,
        "items": len(a.items),
        "annotators": len(a.annotators),
        "labels": len(a.labels),
        "annotations": len(a.item),
    }
    print(f"{key['crowd']}: {key['method']}", file=sys.stderr)
    start = time.process_time()
    try:
        with _at_most(seconds):
            found = score(method, a, crowd.truth)
    except Exception as error:  # other people's code fails in many ways
        why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return [about | {"score": name, "failed": why} for name in SCORES]
    spent = time.process_time() - start
    return [
        about | {"score": name, "sums": s, "counts": n, "seconds": spent}
        for name, s, n in zip(SCORES, found.sums.tolist(), found.counts.tolist(), strict=True)
        if sum(n) > 0
    ]


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Give up after so long on a processor; where there are no such signals, never."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def blocks(rows: pl.DataFrame) -> tuple[list[str], Floats, Floats]:
    """The methods of a crowd and score, and sums and counts of their blocks, (BLOCKS, methods)."""
    rows = rows.filter(pl.col("failed").is_null())
    sums, counts = (np.asarray(rows[name].to_list(), dtype=float).T for name in ("sums", "counts"))
    return rows["method"].to_list(), sums, counts
