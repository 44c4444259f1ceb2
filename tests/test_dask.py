"""Dask: a real cluster of two worker processes on this machine, the light second engine."""

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crowd_files import Roles, assert_same_table
from dask_process import run_dask
from strategies import assert_close

from slencodings import discount, encode, fuse, fuse_table, smooth

distributed = pytest.importorskip("distributed", reason="pip install 'slencodings[tables]'")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from distributed.utils import get_mp_context

pytestmark = [
    # JAX, which other tests import, warns whoever starts a process.
    pytest.mark.filterwarnings(r"ignore:os.fork\(\) was called:RuntimeWarning"),
]

HERE = "127.0.0.1"
ROWS, ITEMS, PARTS = 20_000, 500, 4
ROLES: Roles = {
    "item": "item",
    "label": "label",
    "confidence": "confidence",
    "reliability": "reliability",
}
LABELS = ["cat", "dog", "eel"]


def many(rows: int, items: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "item": rng.integers(0, items, rows),
            "label": np.asarray(LABELS)[rng.integers(0, 3, rows)],
            "confidence": rng.random(rows),
            "reliability": rng.random(rows),
        }
    )


def until(true: Callable[[], Any], seconds: float = 120) -> None:
    """Wait for it; the time is a bound for a broken test, not part of it."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.1)  # What begins is slowed down by each question whether it has.


@pytest.fixture(scope="module")
def forking() -> Iterator[None]:
    """Its processes are forked from one that has imported what takes seconds to import.

    That of documents.py, if it runs, is stopped before: Python has one of them, and they differ.
    """
    server: Any = forkserver._forkserver
    server._stop()
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        # Not all that workers need is among what Dask itself has imported there.
        get_mp_context().set_forkserver_preload(["distributed", "dask.dataframe", "dask_process"])
        yield
    server._stop()


@pytest.fixture(scope="module")
def client(forking: None) -> Iterator[Any]:
    """Two processes of one thread each, started again by Dask when they die."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host=HERE,
            dashboard_address=f"{HERE}:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return many(ROWS, ITEMS)


@pytest.fixture(scope="module")
def folder(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowd")
    for i in range(PARTS):
        each = ROWS // PARTS
        pq.write_table(rows.slice(i * each, each), folder / f"part{i}.parquet")
    return folder


@pytest.fixture(scope="module")
def expected(rows: pa.Table) -> pl.DataFrame:
    return fuse_table(pl.from_arrow(rows), **ROLES)


def assert_fused_alike(found: pd.DataFrame, expected: pl.DataFrame) -> None:
    by_item = found.sort_values("item")
    assert_same_table(by_item.to_dict("list"), expected.to_dict(as_series=False))


def test_rows_in_many_files_are_fused_as_polars_and_arrays_do(
    client: Any, rows: pa.Table, folder: Path, expected: pl.DataFrame
) -> None:
    table = fuse_table(dd.read_parquet(folder), **ROLES)  # the labels are found, too
    assert type(table) is dd.DataFrame
    found = table.compute()
    assert len(client.scheduler_info()["workers"]) == 2
    assert_fused_alike(found, expected)
    # Item 7 by the equations in turn: 5, 4, 11 and 6.
    said = pl.DataFrame(rows).filter(pl.col("item") == 7)
    y = np.asarray(LABELS) == said["label"].to_numpy()[:, None]
    opinion = encode(y.astype(float), 1 - said["confidence"].to_numpy())
    opinion = fuse(smooth(discount(opinion, said["reliability"].to_numpy()), 0.01))
    here = found[found["item"] == 7]
    assert_close(here[[f"belief_{k}" for k in LABELS]].to_numpy()[0], opinion.belief)
    assert_close(here["uncertainty"].to_numpy()[0], opinion.uncertainty)


DEALT: dict[str, Callable[[Any], Any]] = {
    "as one": lambda table: table.repartition(npartitions=1),
    "by label, some empty": lambda table: table.shuffle("label", npartitions=5),
}


@pytest.mark.parametrize("dealt", DEALT)
def test_no_result_depends_on_partitions(dealt: str) -> None:
    """In this process: it is about how rows are dealt, not about who has them."""
    rows = many(5_000, 300)
    with dask.config.set({"scheduler": "sync", "dataframe.shuffle.method": "tasks"}):
        table = DEALT[dealt](dd.from_pandas(rows.to_pandas(), npartitions=3, sort=False))
        opinions = fuse_table(table, labels=LABELS, **ROLES)
        assert_fused_alike(opinions.compute(), fuse_table(pl.from_arrow(rows), **ROLES))


class Gate:
    """The last partition of a table, which is worked on for as long as the gate is closed."""

    def __init__(self, folder: Path, table: Any) -> None:
        self.closed, self.reached = closed, reached = folder / "closed", folder / "reached"
        last = table.npartitions - 1

        def wait(part: pd.DataFrame, partition_info: Any = None) -> pd.DataFrame:
            if partition_info and partition_info["number"] == last and closed.exists():
                reached.with_suffix(".new").write_text(str(os.getpid()))
                reached.with_suffix(".new").rename(reached)
                while closed.exists():
                    time.sleep(0.02)
            return part

        self.table = table.map_partitions(wait, meta=table._meta)

    @contextmanager
    def holding(self, client: Any, opinions: Any) -> Iterator[tuple[Any, int]]:
        """The job that is in the middle, and the process of the worker at the gate."""
        self.closed.touch()
        job = client.compute(opinions)
        try:
            until(lambda: self.reached.exists() or job.done())
            yield job, int(self.reached.read_text())
        finally:
            job.release()  # what failed would fail again
            self.reached.unlink(missing_ok=True)
            self.closed.unlink(missing_ok=True)


@pytest.mark.parametrize("lost", ["at work", "with results"])
def test_the_work_survives_the_loss_of_a_worker(
    client: Any, folder: Path, expected: pl.DataFrame, tmp_path: Path, lost: str
) -> None:
    gate = Gate(tmp_path, dd.read_parquet(folder))
    opinions = fuse_table(gate.table, labels=LABELS, **ROLES)
    client.wait_for_workers(2, timeout=120)
    pids = {pid: worker for worker, pid in client.run(os.getpid).items()}
    with gate.holding(client, opinions) as (job, busy):
        (other,) = set(pids) - {busy}
        until(lambda: client.has_what()[pids[other]])
        dead = busy if lost == "at work" else other
        os.kill(dead, signal.SIGKILL)
        until(lambda: pids[dead] not in client.scheduler_info()["workers"])
        assert not job.done()
        gate.closed.unlink()
        assert_fused_alike(job.result(timeout=120), expected)


DRIFTS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a column is missing": lambda table: table.drop_columns("confidence"),
    "numbers are words": lambda table: table.set_column(
        2, "confidence", pa.array(["sure"] * len(table))
    ),
}


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("drift", DRIFTS)
def test_files_that_differ_are_refused_by_dask(drift: str, tmp_path: Path) -> None:
    rows = many(100, 10)
    pq.write_table(rows, tmp_path / "a.parquet")
    pq.write_table(DRIFTS[drift](rows), tmp_path / "b.parquet")
    with pytest.raises(Exception, match=r"confidence|sure"):
        fuse_table(dd.read_parquet(tmp_path), **ROLES).compute()


def start(folder: Path, name: str, *options: str) -> Any:
    """A process of Dask's command line; its workers are not started again."""
    at = ["--scheduler-file", str(folder / "at.json"), "--dashboard-address", f"{HERE}:0"]
    words = [name, "--host", HERE, *at, *options]
    config = {"distributed.scheduler.no-workers-timeout": "1s"}
    log = str(folder / f"{name}.log")
    process = get_mp_context().Process(target=run_dask, args=(words, config, log))
    process.start()
    return process


@pytest.mark.usefixtures("forking")
def test_workers_lost_for_good_and_a_lost_scheduler_are_errors(tmp_path: Path) -> None:
    small = {"item": list("abcabcab"), "label": list("xyxyxyxx")}
    gate = Gate(tmp_path, dd.from_pandas(pd.DataFrame(small), npartitions=2, sort=False))
    with dask.config.set(scheduler="sync"):
        opinions = fuse_table(gate.table, item="item", label="label", labels=["x", "y"])
    worker = ["worker", "--no-nanny", "--nthreads", "1"]
    running = [start(tmp_path, "scheduler", "--port", "0"), start(tmp_path, *worker)]
    try:
        until((tmp_path / "at.json").exists)
        client = distributed.Client(scheduler_file=str(tmp_path / "at.json"), set_as_default=False)
        with closing(client):
            with gate.holding(client, opinions) as (job, pid):
                assert pid == running[1].pid
                running[1].kill()
                words = r"timed out after 1.00 s waiting without any running workers"
                with pytest.raises(distributed.scheduler.NoWorkerError, match=words):
                    job.result(timeout=120)
            running.append(start(tmp_path, *worker))
            client.wait_for_workers(1, timeout=120)
            with gate.holding(client, opinions) as (job, _):
                running[0].kill()
                words = r"(?s)connection-lost.*Client lost the connection to the scheduler"
                with pytest.raises(CancelledError, match=words):
                    job.result(timeout=120)
    finally:
        for process in running:
            process.kill()
            process.join()
