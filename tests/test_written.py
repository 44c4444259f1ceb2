"""What earlier versions stored is read, and says the same; or it is refused in words."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from numpy.testing import assert_allclose
from running import Sle
from stored_files import CROWD, LARGER, WRITTEN, described

import slencodings

OLD, NEW = WRITTEN / "0.1.0", WRITTEN / "0.2.0"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "crowd.csv").write_text(CROWD)
    (tmp_path / "larger.csv").write_text(LARGER)
    return tmp_path


def numbers(path: Path) -> dict[str, list[float]]:
    """The opinion on each item."""
    with path.open(newline="") as file:
        heads, *rows = csv.reader(file)
    assert heads[0] == "item"
    return {row[0]: [float(x) for x in row[1:]] for row in rows}


def assert_same(found: Path, expected: Path) -> None:
    one, other = numbers(found), numbers(expected)
    assert one.keys() == other.keys()
    for item, opinion in one.items():
        assert_allclose(opinion, other[item], atol=1e-12)


def test_a_release_has_files_as_it_writes_them():
    """Which are those of the snapshot, and that is what this code writes: test_public_face."""
    public = json.loads((WRITTEN.parent / "data" / "public.json").read_text(encoding="utf-8"))
    found = described(WRITTEN / slencodings.__version__)
    assert found == public["files"], "PYTHONPATH=src:tests python tests/stored_files.py --again"


@pytest.mark.parametrize("version", [OLD, NEW], ids=lambda path: path.name)
def test_a_store_without_a_crowd_is_read_and_added_to(version: Path, here: Path, sle: Sle):
    shutil.copy(version / "store.parquet", here)
    run = sle("encode", "store.parquet", "-o", "targets.csv")
    assert run.code == 0, run.err
    assert_same(here / "targets.csv", version / "targets.csv")
    again = sle("encode", "crowd.csv", "--into", "store.parquet")
    assert (again.code, "are in store.parquet already, added as crowd.csv" in again.err) == (
        1,
        True,
    )
    (here / "more.csv").write_text(CROWD.replace("ann", "dan"))
    assert sle("encode", "more.csv", "--into", "store.parquet", "-o", "more-targets.csv").code == 0
    uncertainty = {item: row[2] for item, row in numbers(here / "more-targets.csv").items()}
    assert all(u < row[2] for u, row in zip(
        uncertainty.values(), numbers(here / "targets.csv").values(), strict=True
    ))  # fmt: skip


def test_a_store_with_trust_of_0_1_0_is_refused_and_stays_as_it_is(here: Path, sle: Sle):
    path = Path(shutil.copy(OLD / "learned-store.parquet", here))
    before = path.read_bytes()
    for words in (["learned-store.parquet", "-o", "t.csv"], ["crowd.csv", "--into", path.name]):
        run = sle("encode", *words)
        assert run.code == 1
        assert "is a store of kind 1, written by slencodings 0.1.0; slencodings 0.2" in run.err
        assert "Nothing was changed. Install the version that wrote it." in run.err
    assert path.read_bytes() == before


def test_trust_of_0_1_0_is_refused_with_what_to_type(here: Path, sle: Sle):
    shutil.copy(OLD / "trust.json", here)
    run = sle("encode", "crowd.csv", "-o", "t.csv", "--weigh", "trust.json")
    assert run.code == 1
    assert "trust.json holds no stored crowd: this is trust as slencodings 0.1.0" in run.err
    assert run.err.count("Make one: sle encode IN -o OUT --save-crowd crowd.json") == 1


def test_a_stored_crowd_gives_the_opinions_that_it_gave(here: Path, sle: Sle):
    shutil.copy(NEW / "crowd.json", here)
    run = sle("encode", "larger.csv", "-o", "votes.csv", "--weigh", "crowd.json")
    assert run.code == 0, run.err
    assert_same(here / "votes.csv", NEW / "votes.csv")


def test_a_store_with_a_crowd_gives_both_readings(here: Path, sle: Sle):
    shutil.copy(NEW / "learned-store.parquet", here)
    for reading in ("votes", "truth"):
        run = sle("encode", "learned-store.parquet", "-o", "t.csv", "--reading", reading)
        assert run.code == 0, run.err
        assert_same(here / "t.csv", NEW / f"{reading}.csv")
