"""Polars' streaming engine: plans that stay lazy, run batch by batch, and need bounded memory."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from crowd_files import Roles
from engines import LABELS, SKILLS, SOFT, crowd_table, learned, without
from polars.testing import assert_frame_equal

from slencodings import fuse_table

NAMED: Roles = {"item": "item", "label": "said"}
NUMBERS: Roles = {"uncertainty": "doubt", "reliability": "skill"}


def table() -> pl.DataFrame:
    return pl.DataFrame(without(crowd_table(), "p", "a"))


CASES: dict[str, dict[str, Any]] = {
    "wide": NAMED | NUMBERS,
    "wide, certain": NAMED | NUMBERS | {"smoothing": 0.0},
    "long": NAMED | NUMBERS | {"form": "long"},
    "evidence": NAMED | NUMBERS | {"form": "evidence"},
    "soft": NUMBERS | {"item": "item", "label": SOFT},
    "soft, long": NUMBERS | {"item": "item", "label": SOFT, "form": "long"},
    "average": NAMED | NUMBERS | {"operator": "average", "smoothing": 0.0},
    "weighted, long": NAMED | NUMBERS | {"operator": "weighted", "form": "long"},
    "constraint": NAMED | NUMBERS | {"operator": "constraint"},
    "mappings": NAMED | {"annotator": "who", "confidence": SKILLS, "reliability": SKILLS},
    "no duplicates": NAMED | {"annotator": "who", "duplicates": "last"},
    "crowd": NAMED | {"annotator": "who", "confidence": "sure", "crowd": learned},
    "crowd, truth, long": NAMED
    | {
        "annotator": "who",
        "confidence": "sure",
        "crowd": learned,
        "reading": "truth",
        "form": "long",
    },
    "crowd, evidence": NAMED
    | {"annotator": "who", "confidence": "sure", "crowd": learned, "form": "evidence"},
}


def plan(frame: pl.LazyFrame) -> tuple[list[str], list[str]]:
    """The kinds of nodes that may need memory, and those that leave the streaming engine.

    Polars colours them in the physical plan, whose legend says which colour is which.
    """
    graph: Any = frame.show_graph(engine="streaming", plan_stage="physical", raw_output=True)
    legend = re.findall(r'COLOR="([^"]*)">.</FONT> ([\w-]+)', graph)
    colours = {words: colour for colour, words in legend}
    assert set(colours) == {"potentially", "in-memory"}
    nodes = re.findall(r'label="([\w-]+).*fillcolor="([^"]*)"', graph)
    costly, fallen = (
        [kind for kind, colour in nodes if colour == colours[words]]
        for words in ("potentially", "in-memory")
    )
    return costly, fallen


def test_a_plan_that_falls_back_is_seen() -> None:
    _, fallen = plan(table().lazy().select(pl.col("doubt").rank()))
    assert fallen


def written(folder: Path) -> pl.LazyFrame:
    table().write_parquet(folder / "crowd.parquet")
    return pl.scan_parquet(folder / "crowd.parquet")


@pytest.mark.parametrize(
    "case",
    CASES,
)
def test_every_plan_is_lazy_and_runs_in_the_streaming_engine(case: str, tmp_path: Path) -> None:
    how = {k: v() if k == "crowd" else v for k, v in CASES[case].items()}
    opinions = fuse_table(written(tmp_path), **how)
    assert type(opinions) is pl.LazyFrame
    _, fallen = plan(opinions)
    assert fallen == []
    found = opinions.collect(engine="streaming")
    by = [name for name in found.columns[:2] if name in ("item", "label")]
    assert_frame_equal(found.sort(by), fuse_table(table(), **how).sort(by), rel_tol=1e-12)


def test_one_group_by_is_all_that_may_need_memory(tmp_path: Path) -> None:
    """It holds K sums per item; the rows pass by."""
    costly, _ = plan(fuse_table(written(tmp_path), **NAMED, **NUMBERS))
    assert costly == ["group-by"]


def test_globs_and_hive_folders_are_read_and_written_lazily(tmp_path: Path) -> None:
    whole = table().filter(pl.col("said").is_not_null())
    for (who,), part in whole.partition_by("who", as_dict=True, include_key=False).items():
        (tmp_path / f"hive/who={who}").mkdir(parents=True)
        part.write_parquet(tmp_path / f"hive/who={who}/0.parquet")
    for i in range(3):
        whole[i::3].write_parquet(tmp_path / f"part{i}.parquet")
    how = NAMED | {"annotator": "who", "uncertainty": "doubt", "reliability": SKILLS}
    expected = fuse_table(whole, **how)
    for source in ("part*.parquet", "hive", "hive/who=*/*.parquet"):
        rows = pl.scan_parquet(tmp_path / source, hive_partitioning=source.startswith("hive"))
        opinions = fuse_table(rows, **how)
        opinions.sink_parquet(tmp_path / "out.parquet")
        found = pl.read_parquet(tmp_path / "out.parquet").sort("item")
        assert_frame_equal(found, expected, rel_tol=1e-12)


MEASURE = """
import sys
import polars as pl
from slencodings import fuse_table

skill = {who: who / 5000 for who in range(5000)}
worth = {"column": {"uncertainty": "doubt"}, "mapping": {"annotator": "who", "reliability": skill}}

def fuse(source):
    rows = pl.scan_parquet(source)
    opinions = fuse_table(rows, item="item", label="label", **worth[sys.argv[2]])
    opinions.sink_parquet(sys.argv[1] + "/out.parquet")
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0])

before = fuse(sys.argv[1] + "/few.parquet")
print(fuse(sys.argv[1] + "/many*.parquet") - before)
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A folder of 32M rows, and the bytes that they would take in memory, about 800 MB."""
    folder, copies, n = tmp_path_factory.mktemp("many"), 32, 1_000_000
    rng = np.random.default_rng(0)
    names = {name: rng.integers(0, 5000, n) for name in ("item", "who")}
    said = {"label": pl.Series(LABELS)[rng.integers(0, 3, n)], "doubt": rng.random(n)}
    rows = pl.DataFrame(names | said)
    rows[:100_000].write_parquet(folder / "few.parquet")
    rows.write_parquet(folder / "many0.parquet", row_group_size=100_000)
    for i in range(1, copies):
        (folder / f"many{i}.parquet").hardlink_to(folder / "many0.parquet")
    return folder, copies * int(rows.estimated_size())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak")
@pytest.mark.parametrize("worth", ["column", "mapping"])
def test_memory_stays_far_below_the_size_of_the_rows(many: tuple[Path, int], worth: str) -> None:
    """The peak of a process of its own grows by less than half of what the rows would take."""
    folder, size = many
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder), worth],
        env=os.environ | {"POLARS_MAX_THREADS": "2"},  # each thread has batches of its own
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    kilobytes = int(run.stdout)
    assert 0 < kilobytes * 1024 < size / 2
    assert pl.read_parquet(folder / "out.parquet").height == 5000
