"""What networks learn from each target, and what rounds cost: the document shows the rows."""

import json
from itertools import islice

import pytest

torch = pytest.importorskip("torch")

from fitting import one_thread

from benchmarks import bench_learning, bench_rounds
from experiments import tables

__all__ = ["one_thread"]


def kept():
    return json.loads(bench_learning.KEPT.read_text(encoding="utf-8"))


def test_the_document_shows_the_rows():
    text = bench_learning.DOCUMENT.read_text(encoding="utf-8")
    table = "\n".join(bench_learning.tables(kept()))
    assert f"<!-- learning -->\n{table}\n<!-- end of learning -->" in text


def test_every_target_has_the_same_seeds_in_both_crowds():
    seeds: dict[tuple[str, str], list[int]] = {}
    for row in kept():
        seeds.setdefault((row["crowd"], row["target"]), []).append(row["seed"])
    assert set(map(tuple, seeds.values())) == {(0, 1, 2, 3, 4)}
    assert {crowd for crowd, _ in seeds} == set(bench_learning.CROWDS)
    assert len(seeds) == 18


def test_kept_rows_come_again():
    # The first two targets: cross-entropy on soft votes, and the default loss.
    again = list(islice(bench_learning.rows("as it is", 1), 2))
    for new, old in zip(again, kept(), strict=False):
        assert new["target"] == old["target"]
        # Another processor may round otherwise, and stop an epoch sooner or later.
        for head in bench_learning.HEADS:
            assert new[head] == pytest.approx(old[head], abs=0.02)


def test_the_document_shows_what_rounds_cost():
    kept = json.loads(bench_rounds.KEPT.read_text(encoding="utf-8"))
    table = tables.markdown(bench_rounds.table(kept))
    text = bench_learning.DOCUMENT.read_text(encoding="utf-8")
    assert f"<!-- cost of rounds -->\n{table}\n<!-- end of cost of rounds -->" in text
    # Seconds for a network and an item stay the same, whatever the number of rounds.
    each = [r["cpu_seconds"] / r["networks"] / r["items"] for r in kept]
    assert max(each) < 2 * min(each)
