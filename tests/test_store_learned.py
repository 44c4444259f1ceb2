"""A store that is weighed by a crowd that was learned before gives both its readings."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow.parquet as pq
import pytest
from crowd_files import Roles, Table, assert_same_table
from hypothesis import given
from hypothesis import strategies as st
from storing import add, assert_refused, opinions, part, sums
from strategies import one_in

import slencodings
from slencodings.choices import CrowdReading, Form
from slencodings.tables import fuse_evidence
from slencodings.trust import Crowd, crowd_to_json, learn_crowd


def learned(folder: Path, seed: int = 0) -> tuple[Table, Crowd]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 20).repeat(3)
    said = np.where(rng.random(60) < 0.8, truth, rng.integers(0, 3, 60))
    table: Table = {
        "item": [f"i{i // 3:02}" for i in range(60)],
        "annotator": ["ann", "bob", "cy"] * 20,
        "label": [("no", "2", "10")[k] for k in said],
    }
    roles: Roles = {name: name for name in table}
    crowd = replace(learn_crowd(slencodings.from_table(table, **roles)), through_truth=0.3)
    (folder / f"crowd{seed}.json").write_text(crowd_to_json(crowd))
    return table, crowd


@given(order=st.permutations(range(60)), cuts=st.tuples(st.integers(1, 30), st.integers(31, 59)))
@one_in(20)
def test_batches_in_any_order_give_both_readings_of_one_run(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], cuts: tuple[int, int]
):
    folder = tmp_path_factory.mktemp("store")
    table, crowd = learned(folder)
    table["label"][7] = None  # shown, and nobody said anything
    first, second = cuts
    for batch in (order[:first], order[first:second], order[second:]):
        begun = (folder / "store.parquet").exists()
        weigh = None if begun else str(folder / "crowd0.json")
        said = add(folder, part(table, batch), weigh=weigh)
        assert not any("weighed as stated" in line for line in said)
    roles: Roles = {name: name for name in table}
    for reading in get_args(CrowdReading):
        for form in get_args(Form)[:2]:
            expected = slencodings.fuse_table(
                table, **roles, crowd=crowd, reading=reading, form=form
            )
            assert_same_table(opinions(folder, form=form, reading=reading), expected)
    stored = pq.read_table(folder / "store.parquet").to_pydict()
    fused = fuse_evidence(stored, crowd=crowd, reading="truth")
    expected = slencodings.fuse_table(table, **roles, crowd=crowd, reading="truth")
    assert_same_table({name: list(x) for name, x in fused.items()}, expected)


def test_a_crowd_without_a_model_of_truth_keeps_no_likelihoods(tmp_path: Path):
    table, crowd = learned(tmp_path)
    voting = replace(crowd, model=None)
    (tmp_path / "crowd.json").write_text(crowd_to_json(voting))
    add(tmp_path, table, weigh=str(tmp_path / "crowd.json"))
    assert "log_likelihood" not in sums(tmp_path)
    roles: Roles = {name: name for name in table}
    for reading in get_args(CrowdReading):
        expected = slencodings.fuse_table(table, **roles, crowd=voting, reading=reading)
        assert_same_table(opinions(tmp_path, reading=reading), expected)


def test_another_crowd_is_refused(tmp_path: Path):
    table, _ = learned(tmp_path)
    learned(tmp_path, seed=1)
    first, other = (str(tmp_path / f"crowd{seed}.json") for seed in (0, 1))
    add(tmp_path, part(table, range(20)), weigh=first)
    words = "the store has its own as crowd, and another one came"
    assert_refused(tmp_path, words, part(table, range(20, 60)), weigh=other)
    words = "the store has a crowd of its own, and weigh='stated' came"
    assert_refused(tmp_path, words, part(table, range(20, 60)), weigh="stated")
    (tmp_path / "store.parquet").unlink()
    said = add(tmp_path, part(table, range(20)))
    assert (
        sum("note annotations of this store are weighed as stated; to we" in x for x in said) == 1
    )
    said = add(tmp_path, part(table, range(20, 40)))
    assert not any("weighed as stated" in line for line in said)
    words = "the store has none as crowd, and another one came"
    assert_refused(tmp_path, words, part(table, range(40, 60)), weigh=other)
    words = r"store.parquet was begun without one; .*store with weigh='FILE' that `save_crowd`"
    with pytest.raises(ValueError, match=words):
        opinions(tmp_path, reading="truth")
