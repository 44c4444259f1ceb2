"""Flat rows, kept as Parquet: what this version of the package measured is not measured again."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from rich.console import Console
from rich.progress import track

import slencodings

FOLDER = Path(__file__).parent / "rows"
COLUMNS = {
    "experiment": pl.String,
    "setting": pl.String,
    "annotations": pl.String,  # all or filtered
    "method": pl.String,
    "seed": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "version": pl.String,
}
# Of networks on real data: what reads texts or images, and how it is trained.
MORE_COLUMNS = {"encoder": pl.String, "plan": pl.String}
_TYPES = COLUMNS | MORE_COLUMNS
# Seconds between two savings, so that a kill costs little work and saving little time.
_SAVE_EVERY = 10.0

Row = dict[str, Any]
Job = dict[str, Any]
T = TypeVar("T")


def read(path: Path) -> pl.DataFrame:
    """The rows that are kept in a file; none where there is no file."""
    return pl.read_parquet(path) if path.exists() else pl.DataFrame(schema=COLUMNS)


def keep(
    path: Path,
    run: Callable[..., Iterable[Row]],
    jobs: list[Job],
    *,
    workers: int | None = None,
    measure: bool = True,
) -> pl.DataFrame:
    """Run the jobs that have no rows of this version yet, keep all rows, and return the jobs' rows.

    Rows of another version are replaced when their job is run again; until then they stay.

    Parameters
    ----------
    run : called with a job as keyword arguments; a function of a module, as other processes call it
    jobs : columns and values by which the rows of a job are known, the same columns for all
    workers : processes; as many as there are processors when absent
    measure : whether to run them at all; else what is there is returned
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    kept, names = read(path), list(jobs[0])
    # Rows of before a column was there are known by less, and so are other rows.
    lacking = [name for name in names if name not in kept.columns]
    kept = kept.with_columns(pl.lit(None, _TYPES[name]).alias(name) for name in lacking)
    there = set(_current(kept).select(names).unique().iter_rows())
    todo = [job for job in jobs if measure and tuple(job.values()) not in there]
    new: list[Row] = []
    saved = time.monotonic()
    try:
        for rows in _results(run, todo, workers):
            new += rows
            if time.monotonic() - saved > _SAVE_EVERY:
                _save(path, kept, new, names)
                saved = time.monotonic()
    finally:
        # What is done when somebody presses Ctrl-C is not done again.
        if new:
            _save(path, kept, new, names)
    wanted = pl.DataFrame(jobs, schema={name: _TYPES[name] for name in names})
    # What is only shown may be of an earlier version.
    found = _current(read(path)) if measure else kept
    return found.join(wanted, on=names, how="semi")


def _results(
    run: Callable[..., Iterable[Row]], todo: list[Job], workers: int | None
) -> Iterable[list[Row]]:
    """The rows of each job, in the order in which they come."""
    if not todo:
        return
    n = min(workers or os.cpu_count() or 1, len(todo))
    if n == 1:
        yield from (_run(run, job) for job in _watched(todo, len(todo)))
        return
    # Threads of libraries do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n, mp_context=context) as pool:
        futures = [pool.submit(_run, run, job) for job in todo]
        try:
            for future in _watched(as_completed(futures), len(todo)):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _watched(work: Iterable[T], total: int) -> Iterable[T]:
    """The same, with a bar and the time left if somebody is watching."""
    return track(
        work,
        description=f"{total:,} runs",
        total=total,
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )


def _run(run: Callable[..., Iterable[Row]], job: Job) -> list[Row]:
    return [row | {"version": slencodings.__version__} for row in run(**job)]


def _current(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that were measured with this version of the package."""
    return rows.filter(pl.col("version") == slencodings.__version__)


def _save(path: Path, kept: pl.DataFrame, new: list[Row], names: list[str]) -> None:
    """Replace the file by one with the new rows, in an order that does not depend on luck."""
    fresh = pl.DataFrame(new, schema_overrides={k: _TYPES[k] for k in new[0] if k in _TYPES})
    old = kept.join(fresh, on=names, how="anti")
    whole = pl.concat([old, fresh], how="diagonal").sort(pl.exclude("value"))
    part = path.with_suffix(".part")
    whole.write_parquet(part, compression="zstd", statistics=False)
    part.replace(path)
