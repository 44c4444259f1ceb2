"""Scratch of the dead is removed by the next run, and that of the living is not."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from slencodings.files import write as scratch
from slencodings.files.duckdb import watch
from slencodings.files.write import replacing, scratch_file, scratch_folder, workspace

fcntl = pytest.importorskip("fcntl")

WRITER = """
import sys, time
from pathlib import Path
from slencodings.files.write import replacing
with replacing(Path("out.csv")) as new:
    new.write_text("half")
    print("ready", flush=True)
    sys.stdin.readline()
    new.write_text("whole")
"""
WORKER = """
import sys
from slencodings.files.write import workspace
with workspace() as (connection, folder):
    connection.execute("CREATE TABLE t AS FROM range(100000)")
    connection.execute("CHECKPOINT")
    print("ready", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def running(code: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that is in the middle of its work."""
    pipe = subprocess.PIPE
    run = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder)},
        stdin=pipe,
        stdout=pipe,
        text=True,
    )
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        yield run
    finally:
        run.kill()
        run.communicate()


def kill(run: "subprocess.Popen[Any]") -> None:
    run.kill()
    assert run.wait() == -signal.SIGKILL


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for what is temporary."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_half_a_file_of_the_dead_is_removed_and_that_of_the_living_is_not(tmp_path: Path):
    target = tmp_path / "out.csv"
    target.write_text("old")
    with running(WRITER, tmp_path) as dead, running(WRITER, tmp_path) as living:
        assert len(names(tmp_path)) == 3
        kill(dead)
        assert target.read_text() == "old"
        with replacing(target) as new:
            assert len(names(tmp_path)) == 3  # the old one, that of the living, and ours
            new.write_text("new")
        assert target.read_text() == "new"
        assert len(names(tmp_path)) == 2
        living.communicate("go on\n")
        assert living.returncode == 0
    assert names(tmp_path) == {"out.csv"}
    assert target.read_text() == "whole"


def test_the_scratch_database_of_the_dead_is_removed_and_that_of_the_living_is_not(temporary: Path):
    with running(WORKER, temporary) as dead:
        (of_dead,) = names(temporary)
        assert (temporary / of_dead / "scratch.duckdb").stat().st_size > 100_000
        with running(WORKER, temporary) as living:
            (of_living,) = names(temporary) - {of_dead}
            kill(dead)
            with workspace() as (_, folder):
                assert names(temporary) == {of_living, folder.name}
            living.communicate("go on\n")
            assert living.returncode == 0
    assert names(temporary) == set()


def test_after_a_kill_of_sle_encode_the_next_leaves_nothing_but_its_output(tmp_path: Path):
    rows = "SELECT range AS item, range % 3 AS label FROM range(200_000)"
    duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path / 'crowd.parquet'}' (FORMAT parquet)")
    (tmp_path / "out.csv").write_text("old")
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "slencodings.cli", "encode", "crowd.parquet", "-o", "out.csv"]
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    run = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    while not list(tmp_path.glob(".out.csv.slencodings-*")):
        assert run.poll() is None
        time.sleep(0.001)
    kill(run)
    assert (tmp_path / "out.csv").read_text() == "old"
    assert len(names(tmp_path / "tmp")) == 1
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert names(tmp_path) == {"crowd.parquet", "out.csv", "out.csv.meta.json", "tmp"}
    assert names(tmp_path / "tmp") == set()


def test_what_only_looks_alike_is_left(temporary: Path):
    mine = temporary / "mine"
    mine.mkdir()
    (temporary / ".out.csv.slencodings-linked00.csv").symlink_to(mine)
    ours = scratch.platform.node()
    for name in (
        "slencodings-report",
        f"slencodings-{ours}-results",
        f"slencodings-{ours}_12345678",
    ):
        (temporary / name).mkdir()
    for name in (
        ".out.csv.swp",
        ".out.csv.lock",
        ".out.csv.slencodings-12345678.parquet",
        ".out.csv.slencodings-123456789.csv",
        ".outxcsv.slencodings-12345678.csv",
        ".out.csv.meta.json.slencodings-12345678.json",  # of another target
        "out.csv.slencodings-12345678.csv",
    ):
        (temporary / name).touch()
    before = names(temporary)
    with replacing(temporary / "out.csv"), scratch_folder():
        pass
    assert names(temporary) == before | {"out.csv"}


@pytest.mark.parametrize("target", ["a[b].csv", "*", "no suffix", "ä ☃.jsonl.gz"])
def test_any_name_has_scratch_of_its_own(tmp_path: Path, target: str):
    with scratch_file(tmp_path / target) as path:
        left = path.read_bytes()
        name = path.name
    (tmp_path / name).write_bytes(left)
    with scratch_file(tmp_path / f"{target}x"), scratch_file(tmp_path / f"x{target}"):
        assert name in names(tmp_path)
    with scratch_file(tmp_path / target):
        assert name not in names(tmp_path)


def test_what_was_just_renamed_is_not_taken_for_the_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Another run finds scratch, and its owner renames it before it is looked at closer."""
    with scratch_file(tmp_path / "out") as path:
        path.write_text("whole")
        handle = os.open(path, os.O_RDWR)
        monkeypatch.setattr(scratch.os, "open", lambda *_: handle)
        path.rename(tmp_path / "out")
    scratch._remove_if_dead(path)
    assert (tmp_path / "out").read_text() == "whole"
    assert names(tmp_path) == {"out"}


@pytest.mark.parametrize("kind", [scratch_folder, lambda: scratch_file(Path("out"))])
def test_scratch_that_is_taken_for_dead_before_it_is_locked_is_made_again(
    kind: Callable[[], AbstractContextManager[Path]],
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(temporary)
    real, removed = scratch._lock, list[Path]()

    def late(path: Path, *, wait: bool) -> int | None:
        if wait and not removed:
            scratch._remove_if_dead(path)
            removed.append(path)
        return real(path, wait=wait)

    monkeypatch.setattr(scratch, "_lock", late)
    with kind() as path:
        assert path.exists()
        assert [path.name] != [p.name for p in removed]
        assert names(temporary) == {path.name}
        scratch._remove_if_dead(path)
        assert path.exists()


def test_where_there_are_no_locks_nothing_is_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise OSError("no locks available")

    old = tmp_path / ".out.csv.slencodings-12345678.csv"
    for name, value in (("fcntl.flock", refuse), ("fcntl", None)):
        old.touch()
        with monkeypatch.context() as patch:
            patch.setattr(f"slencodings.files.write.{name}", value)
            with replacing(tmp_path / "out.csv") as new:
                new.write_text(name)
        assert (tmp_path / "out.csv").read_text() == name
        assert names(tmp_path) == {"out.csv", old.name}


def test_many_runs_at_once_take_nothing_from_each_other(tmp_path: Path):
    code = """
from pathlib import Path
from slencodings.files.write import replacing, scratch_folder
for i in range(150):
    with replacing(Path("out")) as new, scratch_folder() as folder:
        (folder / "spill").write_text("x")
        new.write_text(str(i) * 100)
        assert (folder / "spill").exists()
"""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment)
        for _ in range(4)
    ]
    assert [run.wait() for run in runs] == [0] * 4
    assert names(tmp_path) == {"out"}
    assert (tmp_path / "out").read_text() == "149" * 100


def test_ctrl_c_is_heard_while_the_main_thread_waits_for_an_answer():
    query = "SELECT count(*) FROM range(100000000) AS a, range(2) AS b WHERE hash(a, b) = 0"
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)
    stop = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))

    def ask(connection: Any) -> None:
        stop.start()
        connection.sql(query).fetchall()

    try:
        with pytest.raises(KeyboardInterrupt), workspace() as (connection, folder):
            ask(connection)
    finally:
        stop.cancel()
        signal.signal(signal.SIGINT, heard)
    assert not folder.exists()


def test_ctrl_c_while_the_thread_that_works_is_started_leaves_nothing_at_work(
    monkeypatch: pytest.MonkeyPatch,
):
    start, at_work = threading.Thread.start, []

    def interrupted(self: threading.Thread) -> None:
        start(self)
        raise KeyboardInterrupt

    with workspace() as (connection, _):
        monkeypatch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            watch(connection, lambda step: at_work.append(step), lambda *_: None)
        monkeypatch.undo()
        time.sleep(0.05)
    assert at_work == []


def test_other_errors_come_out_of_a_workspace_as_they_are():
    with pytest.raises(RuntimeError, match="another"), workspace():
        raise RuntimeError("another")
