"""Kills of `sle` at random moments: files are old or new, and the next run cleans up."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

from slencodings import fuse_table
from slencodings.files.encode import encode_file
from torture import fail, tell

Rng = np.random.Generator
STOPS = (signal.SIGKILL, signal.SIGTERM)
# Ends of a process by these: killed, killed before it could listen, and told to stop.
STOPPED = (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM)
# How many kills a turn makes of one command before it goes to the next.
IN_A_ROW = 8
ITEMS, LABELS = 60_000, ("no", "yes")


class Command(NamedTuple):
    """Words of a command in two versions, so that old and new files differ, and its files.

    `whole` asserts that such a file can be read to its end, and gives what tells versions apart.
    """

    words: Callable[[int], list[str]]
    files: dict[str, Callable[[Path], object]]


def page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")


def model(path: Path) -> None:
    from slencodings.torch import SLEClassifier

    SLEClassifier().load(path)


def rows(path: Path) -> object:
    return (
        duckdb.read_parquet(str(path)).aggregate("count(*), bit_xor(hash(COLUMNS(*)))").fetchall()
    )


def scores(path: Path) -> None:
    assert json.loads(path.read_text())["rows"]


COMMANDS = {
    "encode to CSV": Command(
        lambda v: ["encode", "big.parquet", "-o", "out.csv", "--smoothing", ("0.01", "0.5")[v]],
        {"out.csv": Path.read_bytes, "out.csv.meta.json": Path.read_bytes},
    ),
    "encode to Parquet": Command(
        lambda v: ["encode", "big.csv", "-o", "out.parquet", "--smoothing", ("0.01", "0.5")[v]],
        {"out.parquet": rows},
    ),
    "encode by learned weights": Command(
        lambda v: [
            "encode", "small.csv", "-o", "learned.csv", "--reading", ("votes", "truth")[v],
            "--save-crowd", "crowd.json",
        ],
        {"learned.csv": Path.read_bytes, "crowd.json": Path.read_bytes},
    ),
    "train": Command(
        lambda v: [
            "train", "small.csv", "--features", "features.npz", "--epochs", "3", "--seed", str(v),
            "--model", "m.safetensors", "--predictions", "p.csv", "-o", "scores.json",
        ],
        {"m.safetensors": model, "p.csv": Path.read_bytes, "scores.json": scores},
    ),
    "report": Command(
        lambda v: ["report", "small.csv", "-o", "page.html", "--conflict", ("0.2", "0.3")[v]],
        {"page.html": page},
    ),
}  # fmt: skip


def turn(seed: int, until: float) -> None:
    """All commands in turn, in a folder of their own."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        os.environ |= {"TMPDIR": str(folder / "tmp"), "OMP_NUM_THREADS": "1"}
        tempfile.tempdir = None
        os.chdir(folder)
        crowds(rng)
        kinds = rng.permutation([*COMMANDS, "encode --into"]).tolist()
        for kind in cycle(kinds):
            if time.monotonic() > until:
                break
            try:
                if kind == "encode --into":
                    kill_adding(rng, until)
                else:
                    kill_writing(rng, kind, until)
            except Exception:
                left = sorted(str(p) for p in Path().rglob("*"))
                fail(f"kills of {kind}; here are {left}\n{traceback.format_exc()}")
        os.chdir("/")


def crowds(rng: Rng) -> None:
    """A crowd whose output takes a while to write, and one that is soon learned from."""
    made = f"SELECT range AS item, range % 7 AS annotator, range % 3 AS label FROM range({ITEMS})"
    duckdb.execute(f"COPY ({made}) TO 'big.parquet'")
    duckdb.execute(f"COPY ({made}) TO 'big.csv'")
    item = np.repeat(np.arange(30), 4)
    said = {
        "item": item,
        "annotator": np.tile(np.arange(4), 30),
        "label": np.asarray(LABELS)[((rng.random(120) < 0.8) == item % 2).astype(int)],
    }
    lines = zip(*said.values(), strict=True)
    text = "".join(",".join(map(str, line)) + "\n" for line in lines)
    Path("small.csv").write_text(",".join(said) + "\n" + text)
    np.savez("features.npz", item=np.arange(30).astype(str), X=rng.normal(size=(30, 5)))


def start(words: list[str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "slencodings.cli", *words, "-q"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def complete(words: list[str]) -> str:
    """A run that nobody kills, and what it says if it refuses."""
    run = start(words)
    said = run.communicate()[1]
    assert (run.returncode, bool(said)) in ((0, False), (1, True)), (run.returncode, said)
    return said


def kill(rng: Rng, what: str, words: list[str], target: str, usual: float) -> bool:
    """Whether a run was killed: at any time, or as soon as there is half a file, or a bit later."""
    run = start(words)
    begun = time.monotonic()
    if rng.random() < 0.5:
        time.sleep(rng.uniform(0, usual))
    else:
        while run.poll() is None and not any(Path().glob(f".{target}.slencodings-*")):
            time.sleep(0.0005)
        time.sleep(rng.choice([0, rng.uniform(0, usual / 10)]))
    stop = STOPS[rng.integers(2)]
    run.send_signal(stop)
    said = run.communicate()[1]
    assert "Traceback" not in said, said
    assert run.returncode in (0, *STOPPED), (run.returncode, said)
    assert time.monotonic() - begun < 20 * usual + 60
    died = run.returncode in STOPPED
    tell(f"kills of {what}" if died else "signals that came too late")
    if died:
        tell(f"of which by {stop.name}")
    return died


def assert_no_scratch() -> None:
    """Nothing is left of anybody who died."""
    left = [*Path("tmp").glob("slencodings-*"), *Path().glob(".*")]
    assert not left, left


def kill_writing(rng: Rng, kind: str, until: float) -> None:
    """Files that are there stay as they are, or are those of the other version."""
    words, files = COMMANDS[kind]

    def completed(version: int) -> list[object]:
        said = complete(words(version))
        assert not said, said
        return [read(Path(name)) for name, read in files.items()]

    old = completed(0)
    begun = time.monotonic()
    new = completed(1)
    usual = time.monotonic() - begun
    for i in range(IN_A_ROW):
        if time.monotonic() > until:
            break
        kill(rng, kind, words(i % 2), str(rng.choice([*files])), usual)
        for (name, read), *whole in zip(files.items(), old, new, strict=True):
            assert read(Path(name)) in whole, f"{name} is neither old nor new"
    assert completed(0) == old, "the next run writes something else"
    assert_no_scratch()


def kill_adding(rng: Rng, until: float) -> None:
    """A store of some batches; a kill adds all of the next batch or nothing of it."""
    Path("store.parquet").unlink(missing_ok=True)
    batches: list[dict[str, list[Any]]] = []
    usual, opinions = 2.0, ["-o", "out.csv"] if rng.random() < 0.5 else []
    for i in range(IN_A_ROW):
        if time.monotonic() > until:
            break
        n = int(rng.integers(1, ITEMS))
        item = rng.permutation(ITEMS)[:n].astype(str)
        batch = {"item": item.tolist(), "label": rng.choice(LABELS, n).tolist()}
        text = "".join(f"{x},{y}\n" for x, y in zip(*batch.values(), strict=True))
        Path(f"{i}.csv").write_text("item,label\n" + text)
        words = ["encode", f"{i}.csv", "--into", "store.parquet", "--labels", ",".join(LABELS)]
        words += opinions
        died = kill(rng, "encode --into", words, "store.parquet", usual)
        added = assert_store(batches, batch)
        begun = time.monotonic()
        said = complete(words)
        usual = time.monotonic() - begun
        assert added or died
        assert ("already" in said) == added, said
        batches.append(batch)
        assert assert_store(batches[:-1], batch)
        if not said:
            assert_no_scratch()
    for path in [*Path().glob("[0-9].csv"), *Path().glob("out.csv*")]:
        path.unlink()


def assert_store(batches: list[dict[str, list[Any]]], new: dict[str, list[Any]]) -> bool:
    """The sums are those of all batches, with the new one or without; which of both."""
    if not Path("store.parquet").exists():
        assert not batches
        return False
    shutil.copy("store.parquet", "copy.parquet")
    kept = encode_file("copy.parquet", "of store.parquet")["batches"]
    assert len(kept) - len(batches) in (0, 1)
    added = len(kept) > len(batches)
    all_of_it = [*batches, new] if added else batches
    together = {k: [x for batch in all_of_it for x in batch[k]] for k in new}
    expected = fuse_table(together, item="item", label="label", labels=list(LABELS))
    found = duckdb.read_parquet("of store.parquet").order("item").fetchnumpy()
    assert found.pop("item").tolist() == expected.pop("item").tolist()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-12)
    for path in Path().glob("* store.parquet"):
        path.unlink()
    Path("copy.parquet").unlink()
    return added
