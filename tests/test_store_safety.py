"""What a store is and is not, one process at a time, and all or nothing."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crowd_files import ROLES, Table, as_bytes, assert_same_table, doubtful_table
from flat import encode_file, read_crowd
from storing import BOTH, MORE, about, add, assert_refused, opinions, part

import slencodings
from slencodings.files.store.batches import alone

# Files that are no stores, or not any more


def test_an_output_is_needed(tmp_path: Path):
    with pytest.raises(ValueError, match=r"an output is needed.*neither came"):
        encode_file(str(tmp_path / "new.csv"), columns={})


def test_a_store_is_a_parquet_file_of_its_own(tmp_path: Path):
    into = str(tmp_path / "store.csv")
    assert_refused(tmp_path, "a store is a Parquet file; 'store.csv' came", BOTH, into=into)
    words = r"locked while it is added to, .*; 's3://b/s.parquet' came.* with into='s.parquet'"
    assert_refused(tmp_path, words, BOTH, into="s3://b/s.parquet")
    into = str(tmp_path / "new.parquet")
    with pytest.raises(ValueError, match="must not replace its own input"):
        add(tmp_path, as_bytes(BOTH, "parquet"), "new.parquet", into=into)
    into = str(tmp_path / "store.parquet")
    assert_refused(tmp_path, "must not replace the other output", BOTH, target=into)


def test_other_files_are_not_taken_for_stores(tmp_path: Path):
    (tmp_path / "crowd.csv").write_bytes(as_bytes(BOTH))
    store = tmp_path / "store.parquet"
    encode_file(str(tmp_path / "crowd.csv"), str(store), columns={})
    assert_refused(tmp_path, "store.parquet is a file of another kind, not a store", MORE)
    store.write_bytes(as_bytes(BOTH, "parquet"))
    assert_refused(tmp_path, "store.parquet is a file of another kind, not a store", MORE)


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "middle"])
def test_a_damaged_store_is_left_as_it_is(tmp_path: Path, damage: str):
    add(tmp_path, doubtful_table())
    store = tmp_path / "store.parquet"
    content = bytearray(store.read_bytes())
    content[4:40] = content[4:40] if damage != "middle" else bytes(36)
    length = {"cut": len(content) // 2, "empty": 0}.get(damage, len(content))
    store.write_bytes(b"item,label\n" if damage == "text" else bytes(content[:length]))
    words = "store.parquet cannot be read as a store: .* Nothing was changed. Take the last copy"
    assert_refused(tmp_path, words, doubtful_table(seed=1))


def rewritten(folder: Path, **changes: Any) -> None:
    """The store with other metadata."""
    said = {k: v for k, v in (about(folder) | changes).items() if v is not ...}
    table = pq.read_table(folder / "store.parquet")
    table = table.replace_schema_metadata({b"slencodings": json.dumps(said).encode()})
    pq.write_table(table, folder / "store.parquet")


@pytest.mark.parametrize(("kind", "crowd"), [(4, None), (1, {"worth": [1.0]})], ids=str)
def test_a_store_of_another_kind_is_left_as_it_is(tmp_path: Path, kind: int, crowd: Any):
    add(tmp_path, BOTH)
    rewritten(tmp_path, store=kind, version="9.0", crowd=..., trust=crowd)
    words = (
        f"a store of kind {kind}, written by slencodings 9.0; .* knows kinds 2 and 3, and kind 1 "
        "if nothing was learned. Nothing was"
    )
    assert_refused(tmp_path, words, MORE)
    with pytest.raises(ValueError, match=words):
        opinions(tmp_path)


def test_a_store_of_the_first_kind_goes_on_if_nothing_was_learned(tmp_path: Path):
    add(tmp_path, BOTH)
    rewritten(tmp_path, store=1, crowd=..., trust=None)
    add(tmp_path, MORE)
    assert about(tmp_path)["store"] == 2
    (anew := tmp_path / "anew").mkdir()
    for batch in (BOTH, MORE):
        add(anew, batch)
    assert_same_table(opinions(tmp_path), opinions(anew))


def test_a_store_is_not_taken_for_annotations(tmp_path: Path):
    add(tmp_path, BOTH)
    content = (tmp_path / "store.parquet").read_bytes()
    words = "annotations are needed; old.parquet is a store of evidence, .* sle encode old.parquet"
    assert_refused(tmp_path, words, content, name="old.parquet")
    with pytest.raises(ValueError, match=r"annotations are needed; store.parquet is a store"):
        read_crowd(str(tmp_path / "store.parquet"), columns={})
    with pytest.raises(ValueError, match=r"store.parquet is a store, .*; label='label' came"):
        opinions(tmp_path, columns={"label": "label"})
    with pytest.raises(ValueError, match=r"store.parquet is a store, .*; labels=\['a'\] came"):
        opinions(tmp_path, labels=["a"])


# One at a time


def test_only_one_process_adds_at_a_time(tmp_path: Path):
    add(tmp_path, BOTH)
    with alone(tmp_path / "store.parquet"):
        assert_refused(tmp_path, "store.parquet is being added to by another process", MORE)
        assert opinions(tmp_path)["item"] == ["a"]
    (tmp_path / "targets.parquet").unlink()
    add(tmp_path, MORE)
    assert [p.name for p in tmp_path.iterdir()] == ["store.parquet"]


def test_a_lock_whose_file_was_taken_away_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import fcntl

    lock, real, calls = tmp_path / ".store.parquet.lock", fcntl.flock, []

    def flock(handle: int, how: int) -> None:
        # As if another process had ended between our opening the file and our locking it.
        calls.append(handle)
        if len(calls) == 1:
            lock.unlink()
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with alone(tmp_path / "store.parquet"):
        assert len(calls) == 2
        with pytest.raises(BlockingIOError), alone(tmp_path / "store.parquet"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_where_files_cannot_be_locked_nothing_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert_refused(tmp_path, "needs file locks, which this system does not have", BOTH)


@pytest.mark.slow
def test_no_update_is_lost_among_many_at_once(tmp_path: Path):
    table = doubtful_table()
    add(tmp_path, part(table, range(20)))

    def insist(k: int) -> None:
        for _ in range(10_000):
            try:
                add(tmp_path, part(table, range(20 + 10 * k, 30 + 10 * k)), f"{k}.csv")
            except BlockingIOError:
                continue
            return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insist, range(4)))
    assert_same_table(opinions(tmp_path), slencodings.fuse_table(table, **ROLES))


# All or nothing


KILLED = """
import os, pathlib, signal, sys
from slencodings.files.encode import encode_file
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
{patch}
encode_file("new.csv", "out.csv", into="store.parquet")
"""
MOMENTS = {
    "before the new store is safe on disk": "os.fsync = die",
    "before it takes its place": "pathlib.Path.replace = die",
    "before the lock is given back": "pathlib.Path.unlink = die",
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_leaves_the_old_store_or_the_new_one_and_no_lock(tmp_path: Path, moment: str):
    add(tmp_path, doubtful_table())
    before = (tmp_path / "store.parquet").read_bytes()
    (tmp_path / "new.csv").write_bytes(
        as_bytes(MORE | {"confidence": [1, 1], "reliability": [1, 1]})
    )
    code = KILLED.format(patch=MOMENTS[moment])
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert run.returncode == -signal.SIGKILL
    after = (tmp_path / "store.parquet").read_bytes()
    assert (after == before) == ("the lock" not in moment)
    assert (tmp_path / ".store.parquet.lock").exists()
    more = doubtful_table(seed=1)
    add(tmp_path, more)
    assert len(about(tmp_path)["batches"]) == 2 + ("the lock" in moment)
    assert not (tmp_path / ".store.parquet.lock").exists()


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_store(tmp_path: Path):
    add(tmp_path, BOTH)
    before = (tmp_path / "store.parquet").read_bytes()
    items = np.random.default_rng(0).permutation(100_000)
    pq.write_table(pa.table({"item": items.astype(str), "label": ["no"] * 100_000}), tmp_path / "n")
    # No file may grow past 100 kB.
    small = ("bash", "-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "bash")
    command = [*small, sys.executable, "-m", "slencodings.cli", "encode", "n"]
    run = subprocess.run(
        [*command, "--into", "store.parquet"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    assert "could not be written: File too large. What was there before is untouched" in run.stderr
    assert "nanobind" not in run.stderr
    assert (tmp_path / "store.parquet").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["n", "store.parquet"]


def test_if_opinions_cannot_be_written_nothing_is_added(tmp_path: Path):
    add(tmp_path, BOTH)
    # Two columns of one name, but for case.
    words = "columns of the wide form must differ by more than case"
    table: Table = {"item": ["a"], "label": ["NO"]}
    assert_refused(tmp_path, words, table, target=str(tmp_path / "out.parquet"))


def test_infinite_evidence_is_not_written_as_json(tmp_path: Path):
    how: dict[str, Any] = {"values": ["alpha"], "target": str(tmp_path / "out.jsonl")}
    assert_refused(tmp_path, "JSON cannot hold", BOTH, smoothing=0.0, **how)
