"""What benchmarks ask: their plans and crowds, other packages, and what a cluster may lose."""

import math
import re
from typing import Any

import numpy as np
import pytest

from benchmarks import aggregate, crowds, encode, growth, lost, moved, peers, start, train, turns
from benchmarks.__main__ import QUESTIONS
from benchmarks.turns import Run
from slencodings import fuse_table

# Plans


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_run_of_a_plan_is_asked_for_twice(name, full):
    groups = QUESTIONS[name].plan(full)
    runs = [run for group in groups for run in group.runs]
    assert len(runs) == len(set(runs)) > 0
    assert {group.question for group in groups} == {name}


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("module", [encode, aggregate, train, start])
def test_both_sides_of_a_comparison_stand_in_one_group(module, full):
    groups = [{run.case for run in group.runs} for group in module.plan(full)]
    for one in module.COMPARED:
        assert any({one.case, one.floor} <= group for group in groups), one


def test_every_sweep_has_its_sizes():
    for full, most in ((False, 10_000_000), (True, 100_000_000)):
        groups: dict[str, list[turns.Run]] = {}
        for group in growth.plan(full):
            groups.setdefault(group.runs[0].case, []).extend(group.runs)
        for case in growth.ENGINES:
            assert max(run.rows or 0 for run in groups[case]) == most
            assert {run.labels for run in groups[case]} == {2, 5, 20, 100}
            assert {run.per_item for run in groups[case]} == {1, 10, 100, 1000}
        assert max(run.rows or 0 for run in groups[growth.METHODS[0]]) == most // 10
        for case in growth.VERBS:
            rows = max(run.rows or 0 for run in groups[case])
            assert rows == (10_000_000 if full else 100_000)
            assert {run.labels for run in groups[case]} == {
                2,
                5,
                20,
                *([100, 1000] if full else []),
            }
            assert {10, 1000} <= {run.annotators for run in groups[case]}


def test_every_way_to_fuse_a_table_is_compared_with_that_of_its_engine():
    names = {*encode.CASES, *encode.COMMANDS, "spark GROUP BY", "spark fuse_table"}
    compared = (*encode.COMPARED, *encode.LARGE)
    assert {one.case for one in compared} | {one.floor for one in compared} - {""} == names


# Crowds


def test_a_table_has_the_size_that_was_asked_for(tmp_path):
    import polars as pl

    crowds.make([Run("", 3000, 7, 30, 11)], [0], tmp_path / "t.parquet")
    table = pl.read_parquet(tmp_path / "t.parquet")
    assert table.height == 3000
    assert table["item"].value_counts()["count"].to_list() == [30] * 100
    assert table["label"].n_unique() == 7
    assert table["annotator"].n_unique() == 11
    certain = table.filter(uncertainty=0, reliability=1)
    assert certain.height >= 30
    assert table["uncertainty"].is_between(0, 0.9).all()
    assert table["reliability"].is_between(0.1, 1).all()
    assert pl.read_parquet(crowds.few(tmp_path / "t.parquet")).height == 1000


def test_nobody_annotates_an_item_twice_and_all_are_numbered_as_they_appear(tmp_path):
    crowds.make([Run("", 600, 4, 6, 9)], [0], tmp_path / "c.npz")
    codes = np.load(tmp_path / "c.npz")
    assert len({*zip(codes["item"], codes["annotator"], strict=True)}) == 600
    assert (np.bincount(codes["item"]) == 6).all()
    for column in ("annotator", "label"):
        first = list(dict.fromkeys(codes[column].tolist()))
        assert first == list(range(len(first)))


# Peers


def test_results_are_compared_with_those_of_the_peer(tmp_path):
    run = Run("majority_vote", 20, 2, 5, 9)
    crowds.make([run], [0], tmp_path / f"{turns.stem(run)}.npz")
    (alone,) = aggregate.measure([run], [0], tmp_path)
    assert alone["note"] is None
    theirs = run._replace(case="crowd-kit MajorityVote")
    np.savez(aggregate.result(theirs, tmp_path), label=np.full(4, 9))
    (found,) = aggregate.measure([run], [0], tmp_path)
    assert re.fullmatch(r"4 of 4 labels differ; \d items tie", found["note"])
    assert found["megabytes"] > 0


def test_the_difference_of_probabilities_is_the_largest(tmp_path):
    run = Run("wawa", 20, 2, 5, 9)
    crowds.make([run], [0], tmp_path / f"{turns.stem(run)}.npz")
    made = {"probability": np.full((4, 2), 0.5)}
    theirs = run._replace(case="crowd-kit Wawa")
    np.savez(aggregate.result(theirs, tmp_path), probability=[[0.5, 0.5]] * 3 + [[0.3, 0.7]])
    assert aggregate.difference(run, made, tmp_path) == "2e-01"


def test_the_log_posterior_is_that_of_glad():
    # Two annotators, one item, three labels of which they say the first and the last; written out.
    ability, log_ease = np.asarray([0.5, 2.0]), np.asarray([0.3])
    right = [1 / (1 + math.exp(-x * math.exp(0.3))) for x in ability]
    wrong = [(1 - p) / 2 for p in right]
    likelihood = (right[0] * wrong[1] + wrong[0] * wrong[1] + wrong[0] * right[1]) / 3
    prior = ((0.5 - 1) ** 2 + (2.0 - 1) ** 2 + (0.3 - 1) ** 2) / 2
    rows = {"item": np.zeros(2, int), "annotator": np.arange(2), "label": np.asarray([0, 2])}
    value = aggregate.log_posterior(rows, ability, log_ease)
    assert value == pytest.approx((math.log(likelihood) - prior) / 2)


def test_peers_need_what_their_oracles_need():
    for name in turns.PEERS.values():
        assert all("==" in package for package in peers.needs(name))
    assert peers.needs("crowdkit")[0].startswith("crowd-kit==")


def test_an_oracle_that_does_not_say_what_it_needs_is_an_error(tmp_path, monkeypatch):
    oracle = tmp_path / "scripts" / "oracles" / "crowdkit.py"
    oracle.parent.mkdir(parents=True)
    oracle.write_text("import crowdkit\n")
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=r"crowdkit\.py must begin with '# needs: PACKAGE"):
        peers.needs("crowdkit")


def test_environments_that_are_there_are_not_made_again(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(
        peers.venv, "create", lambda place, **how: (made.append(place), place.mkdir())
    )
    monkeypatch.setattr(peers.subprocess, "run", lambda words, check: made.append(words[-1]))
    peers.make(tmp_path)
    assert len(made) == 6
    peers.make(tmp_path)
    assert len(made) == 6


# A cluster


def test_a_cluster_is_sized_by_products():
    sizes = {"read": 2 * moved.ROWS, "bytes": 3 * moved.ROWS, "written": 4 * moved.ROWS}
    rows = [{"labels": 5, "together": x, "form": "wide"} | sizes for x in (False, True)]
    line = moved.sizing(rows, seconds=36.0, of=10**7, cores=2).splitlines()[-1]
    assert line == ("| 10,000,000,000 | 60 GB | 30 GB | 30 GB | 48 GB | 40 GB | 20 | 120 |")


def test_a_row_that_is_lost_or_counted_twice_is_seen(tmp_path):
    import duckdb
    import polars as pl

    (source := tmp_path / "crowd").mkdir()
    (tmp_path / "targets.parquet").mkdir()
    moved.crowd(source, lost.LABELS, False, rows=1000, files=2, least=1)
    columns: dict[str, Any] = {name: name for name in encode.COLUMNS}
    opinions = fuse_table(duckdb.read_parquet(f"{source}/*.parquet"), **columns)
    opinions.write_parquet(str(tmp_path / "targets.parquet" / "part-0.parquet"))
    whole = {"rows": 1000, "written_rows": 100, "beside": ["targets.parquet"]}
    whole |= {"inside": ["_SUCCESS", "_slencodings.json"]}
    whole |= {"killed": 1, "before": lost.WORKERS, "target_there": False}
    lost.check(whole | lost.compared(tmp_path, source), 1000)
    said = pl.read_parquet(first := source / "00.parquet")
    for rows in (said[1:], pl.concat([said, said[:1]])):
        rows.write_parquet(first)
        found = lost.compared(tmp_path, source)
        with pytest.raises(SystemExit, match=r"not all there once: \{\}, difference .*"):
            lost.check(whole | found, 1000)
    with pytest.raises(SystemExit, match=r"once: \{'rows': 999, 'killed': 0\}"):
        lost.check(whole | found | {"rows": 999, "killed": 0}, 1000)
