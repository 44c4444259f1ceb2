"""Evidence that is kept and added to: in any batches and any order, nothing lost or twice."""

import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crowd_files import (
    ROLES,
    Roles,
    Table,
    as_bytes,
    assert_same_table,
    doubtful_table,
    skilled_table,
)
from engines import Engine, core_engines
from flat import encode_file, read_crowd
from hypothesis import given
from hypothesis import strategies as st
from strategies import one_in

import slencodings
from slencodings.choices import CrowdReading, Form
from slencodings.files.forget import forget
from slencodings.files.store.opening import alone
from slencodings.tables import fuse_evidence
from slencodings.trust import Crowd, crowd_to_json, learn_crowd


def part(table: Table, which: Sequence[int]) -> Table:
    return {name: [values[i] for i in which] for name, values in table.items()}


def add(folder: Path, content: bytes | Table, name: str = "new.csv", **how: Any) -> list[str]:
    """Add a file of this content, which is gone afterwards, to the store; what was said."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else as_bytes(content))
    said: list[str] = []
    how = {"columns": {}, "into": str(folder / "store.parquet")} | how
    try:
        encode_file(str(path), say=lambda what, text: said.append(f"{what} {text}"), **how)
    finally:
        path.unlink()
    return said


def opinions(folder: Path, **how: Any) -> Table:
    """The opinions of all that is in the store."""
    target = folder / "targets.parquet"
    encode_file(str(folder / "store.parquet"), str(target), **({"columns": {}} | how))
    return pq.read_table(target).to_pydict()


def sums(folder: Path) -> Table:
    return pq.read_table(folder / "store.parquet").to_pydict()


def about(folder: Path) -> dict[str, Any]:
    return json.loads(pq.read_metadata(folder / "store.parquet").metadata[b"slencodings"])


def assert_refused(folder: Path, words: str, content: Any, **how: Any) -> None:
    """Nothing is changed, and it is said why."""
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises((ValueError, OSError), match=words):
        add(folder, content, **how)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


BOTH: Table = {"item": ["a", "a"], "label": ["no", "yes"]}
MORE: Table = {"item": ["b", "b"], "label": ["no", "no"]}


# The law


@st.composite
def batches(draw: st.DrawFn) -> list[list[int]]:
    """Sixty rows dealt to a few batches, which come in any order."""
    count = draw(st.integers(1, 3))
    deal = draw(st.lists(st.integers(0, count - 1), min_size=60, max_size=60))
    parts = [[i for i, b in enumerate(deal) if b == k] for k in range(count)]
    return draw(st.permutations([p for p in parts if p]))


@pytest.mark.parametrize(("smoothing", "form"), [(0.0, "wide"), (0.0, "long"), (0.01, "wide")])
@given(parts=batches(), missing=st.sampled_from(["drop", "trust"]), seed=st.integers(0, 9))
@one_in(16)
def test_any_batches_in_any_order_give_what_one_run_gives(
    tmp_path_factory: Any, smoothing: float, form: Any, parts: Any, missing: Any, seed: int
):
    folder, table = tmp_path_factory.mktemp("any"), doubtful_table(seed=seed)
    table["confidence"] = [None if i % 7 == 0 else c for i, c in enumerate(table["confidence"])]
    # A first batch of one label alone cannot tell which others there are.
    few = len({table["label"][i] for i in parts[0]} - {None}) < 2
    how: dict[str, Any] = {"smoothing": smoothing, "missing": missing}
    for which in parts:
        add(folder, part(table, which), **how, labels=["10", "2", "no"] if few else None)
    shown: dict[str, Any] = {"prior_weight": 3.0, "values": ["belief", "uncertainty", "alpha"]}
    expected = slencodings.fuse_table(table, **ROLES, **how, **shown, form=form)
    assert_same_table(opinions(folder, form=form, **shown), expected)


def test_old_annotations_are_not_read_again(tmp_path: Path):
    table = doubtful_table()
    for which in (range(20), range(20, 60)):
        add(tmp_path, part(table, which))
        assert [p.name for p in tmp_path.iterdir()] == ["store.parquet"]
    assert_same_table(opinions(tmp_path), slencodings.fuse_table(table, **ROLES))


def test_adding_may_write_the_opinions_of_all_that_is_there(tmp_path: Path):
    table = doubtful_table()
    add(tmp_path, part(table, range(30)))
    said = add(tmp_path, part(table, range(30, 60)), target=str(tmp_path / "all.csv"))
    assert said[-2:] == [
        f"added new.csv to {tmp_path}/store.parquet: 60 rows in 2 batches, 3 labels",
        f"wrote {tmp_path}/all.csv: 4 rows, wide, cumulative, smoothing 0.01",
    ]
    encode_file(str(tmp_path / "store.parquet"), str(tmp_path / "again.csv"), columns={})
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    made = json.loads((tmp_path / "all.csv.meta.json").read_text())
    assert (made["source"], made["rows"], len(made["batches"])) == ("store.parquet", 60, 2)


def test_a_store_holds_sums_that_anyone_can_read(tmp_path: Path):
    table = {"item": ["a", "a", "a", "b"], "label": ["x", "x", "y", None]}
    add(tmp_path, table | {"confidence": [0.5, 1.0, 0.0, 1.0]}, smoothing=0.0)
    assert sums(tmp_path) == {
        "item": ["a", "a", "b"],
        "label": ["x", "y", None],
        "evidence": [2.0, 0.0, 0.0],
        "dogmatic": [1.0, 0.0, 0.0],
        "annotations": [2.0, 1.0, 0.0],
    }


def test_an_item_without_labels_is_kept_until_somebody_gives_one(tmp_path: Path):
    table: Table = {"item": ["a", "a", "b", "b"], "label": ["x", "y", None, "x"]}
    add(tmp_path, part(table, [0, 1, 2]))
    assert (sums(tmp_path)["label"], opinions(tmp_path)["uncertainty"][1]) == (["x", "y", None], 1)
    add(tmp_path, part(table, [3]))
    assert sums(tmp_path)["label"] == ["x", "y", "x"]


def test_what_a_store_was_begun_with_need_not_be_said_again(tmp_path: Path):
    table = doubtful_table()
    table["confidence"] = [1 + 4 * c for c in table["confidence"]]
    first: dict[str, Any] = {"smoothing": 0.2, "confidence_scale": (1.0, 5.0)}
    add(tmp_path, part(table, range(30)), **first)
    add(tmp_path, part(table, range(30, 45)))
    add(tmp_path, part(table, range(45, 60)), **first)
    assert_same_table(opinions(tmp_path), slencodings.fuse_table(table, **ROLES, **first))


def test_items_are_called_what_the_first_batch_calls_them(tmp_path: Path):
    add(tmp_path, {"post": ["a", "a"], "answer": ["no", "yes"]})
    add(tmp_path, {"task": ["b"], "vote": ["no"]}, smoothing=0.01)
    assert opinions(tmp_path)["post"] == ["a", "b"]


# Batches that came before


SAME = {
    "other order": as_bytes(part(doubtful_table(), range(59, -1, -1))),
    "JSON": as_bytes(doubtful_table(), "jsonl"),
    "Parquet": as_bytes(doubtful_table(), "parquet"),
    "gzip": gzip.compress(as_bytes(doubtful_table())),
    "other names": as_bytes(
        dict(
            zip(
                ["post", "worker", "vote", "certainty", "skill"],
                doubtful_table().values(),
                strict=True,
            )
        )
    ),
}


@pytest.mark.parametrize("content", SAME.values(), ids=SAME)
def test_a_batch_is_known_by_what_it_says(tmp_path: Path, content: bytes):
    add(tmp_path, doubtful_table(), "monday.csv")
    words = (
        r"the rows of other \(60\) are in store.parquet already, added as monday.csv on 20\d\d-.*"
    )
    words += "again=True; to write opinions, type: sle encode .*store.parquet -o OUT"
    assert_refused(tmp_path, words, content, name="other")


def test_the_same_may_be_added_again_if_that_is_meant(tmp_path: Path):
    for again in (False, True):
        add(tmp_path, doubtful_table(), again=again)
    table = doubtful_table()
    twice = {name: values * 2 for name, values in table.items()}
    assert_same_table(opinions(tmp_path), slencodings.fuse_table(twice, **ROLES))


def test_rows_that_only_look_alike_are_another_batch(tmp_path: Path):
    labels: Roles = {"labels": ["c", "bc", "blabelc"]}
    for item, label in (("ab", "c"), ("a", "bc"), ("alabelb", "c"), ("a", "blabelc")):
        add(tmp_path, {"item": [item], "label": [label]}, **labels)
    add(tmp_path, {"item": ["a", "a"], "label": ["bc", "bc"]}, **labels)
    for role in ("confidence", "uncertainty", "reliability"):
        doubt = {} if role == "uncertainty" else {"uncertainty": "0"}
        doubt = {} if role == "confidence" else doubt
        table: Table = {"item": ["a"], "label": ["bc"], role: [1.0]}
        add(tmp_path, table, **labels, columns=doubt)
    assert len({batch["hash"] for batch in about(tmp_path)["batches"]}) == 8


def test_one_number_for_all_is_a_column_of_it(tmp_path: Path):
    add(tmp_path, BOTH, columns={"confidence": "0.5"})
    assert_refused(tmp_path, r"the rows of new.csv \(2\) are in", BOTH | {"confidence": [0.5, 0.5]})


# Labels


def test_new_labels_may_come_later(tmp_path: Path):
    table: Table = {"item": ["a", "a", "a", "b"], "label": ["10", "9", "2", "2"]}
    for which in ([0, 1], [2], [3]):
        add(tmp_path, part(table, which))
    assert about(tmp_path)["labels"] == ["2", "9", "10"]
    assert_same_table(opinions(tmp_path), slencodings.fuse_table(table, item="item", label="label"))


def test_a_first_batch_of_one_label_must_say_which_others_there_are(tmp_path: Path):
    words = r"at least two labels are needed; only 'no' came, .*labels=\['no', ...\]"
    assert_refused(tmp_path, words, MORE)
    add(tmp_path, MORE, labels=["yes", "no"])
    assert list(opinions(tmp_path))[1:3] == ["belief_yes", "belief_no"]


def test_labels_that_were_fixed_stay_so(tmp_path: Path):
    add(tmp_path, BOTH, labels=["yes", "no"])
    add(tmp_path, MORE)
    assert about(tmp_path)["labels"] == ["yes", "no"]
    other: Table = {"item": ["c"], "label": ["maybe"]}
    assert_refused(tmp_path, r"must hold one of labels=\['yes', 'no'\]; 1 of 1", other)
    words = r"the store has labels=\['yes', 'no'\]; labels=\['no', 'maybe'\] came. Leave them out"
    assert_refused(tmp_path, words, MORE, labels=["no", "maybe"], again=True)
    soft: Table = {"item": ["c"], "no": [0.5], "maybe": [0.5]}
    words = "labels of this store are fixed, 'yes', 'no'; 1 others came, first 'maybe'"
    assert_refused(tmp_path, words, soft, columns={"label": "no,maybe"})


def test_labels_may_be_fixed_later(tmp_path: Path):
    add(tmp_path, BOTH)
    add(tmp_path, MORE, labels=["yes", "perhaps", "no"])
    assert about(tmp_path)["labels"] == ["yes", "perhaps", "no"]
    assert about(tmp_path)["fixed"]


def test_soft_labels_add_up_too(tmp_path: Path):
    table: Table = {"item": ["a", "b", "a"], "yes": [0.5, 0.25, 1.0], "no": [0.5, 0.75, 0.0]}
    for which in ([0], [1, 2]):
        add(tmp_path, part(table, which), columns={"label": "yes,no"}, smoothing=0.0)
    how: dict[str, Any] = {"item": "item", "label": ["yes", "no"], "smoothing": 0.0}
    assert_same_table(opinions(tmp_path), slencodings.fuse_table(table, **how))
    assert sums(tmp_path)["annotations"] == [0.5, 1.5, 0.75, 0.25]
    lists: Table = {"item": ["c"], "label": [[0.25, 0.75]]}
    add(tmp_path, as_bytes(lists, "jsonl"), "lists.jsonl")
    assert opinions(tmp_path)["belief_no"][2] == 0.75
    # A vote beside them is one more annotation.
    add(tmp_path, {"item": ["c"], "label": ["no"]})
    assert opinions(tmp_path)["belief_no"][2] == 0.875


def test_soft_labels_may_bring_new_ones_where_labels_are_found(tmp_path: Path):
    add(tmp_path, BOTH)
    soft: Table = {"item": ["c"], "no": [0.5], "maybe": [0.5]}
    add(tmp_path, soft, columns={"label": "no,maybe"})
    assert about(tmp_path)["labels"] == ["maybe", "no", "yes"]


def test_numbers_as_labels_may_turn_out_not_to_be_whole(tmp_path: Path):
    table: Table = {"item": [1, 1, 2, 2], "label": [1.0, 0.0, 0.5, 1.0]}
    add(tmp_path, as_bytes({"item": [1, 1], "label": [1, 0]}, "parquet"), "a.parquet")
    assert list(opinions(tmp_path))[1:3] == ["belief_0", "belief_1"]
    add(tmp_path, as_bytes(part(table, [2]), "parquet"), "b.parquet")
    add(tmp_path, as_bytes({"item": [2], "label": [1]}, "parquet"), "c.parquet")
    assert_same_table(opinions(tmp_path), slencodings.fuse_table(table, item="item", label="label"))


def test_labels_and_items_keep_their_type(tmp_path: Path):
    add(tmp_path, BOTH)
    numbers = as_bytes({"item": ["c", "c"], "label": [0, 1]}, "parquet")
    words = "labels must be of one type, as in the store; numbers and text came, such as 0 and 'no'"
    assert_refused(tmp_path, words, numbers, name="a.parquet")
    numbers = as_bytes({"item": [1, 1], "label": ["no", "yes"]}, "parquet")
    words = "items must be of the type they have in the store, VARCHAR; BIGINT came from a.parquet"
    assert_refused(tmp_path, words, numbers, name="a.parquet")


def test_labels_must_be_plain_values(tmp_path: Path):
    dates = pa.array([0, 1], pa.date32())
    table = as_bytes({"item": ["a", "a"], "label": dates}, "parquet")
    words = "labels in a store must be text, numbers or truth values; date came"
    assert_refused(tmp_path, words, table, name="a.parquet")


# Settings


ADDITIVE = {
    "operator": ({"operator": "average"}, "cumulative operator; operator='average' came"),
    "weigh": ({"weigh": "learned"}, "weigh='learned' came. Learn it from a file, save_crowd"),
    "scale": ({"confidence_scale": "calibrated"}, "`calibrated` came. Name the ends of the scale"),
}


@pytest.mark.parametrize(("how", "words"), ADDITIVE.values(), ids=ADDITIVE)
def test_what_needs_all_annotations_at_once_is_refused(
    tmp_path: Path, how: dict[str, Any], words: str
):
    assert_refused(tmp_path, words, doubtful_table(), **how)


OTHER = {
    "smoothing": ({"smoothing": 0.5}, "the store has smoothing=0.01, and smoothing=0.5 came"),
    "scale": (
        {"confidence_scale": (1.0, 5.0)},
        r"has confidence_scale=\(0, 1\), and confidence_scale=\(1, 5\) came. Leave it out, or",
    ),
}


@pytest.mark.parametrize(("how", "words"), OTHER.values(), ids=OTHER)
def test_other_settings_are_refused(tmp_path: Path, how: dict[str, Any], words: str):
    add(tmp_path, doubtful_table())
    assert_refused(tmp_path, words, doubtful_table(seed=1), **how)
    with pytest.raises(ValueError, match=words):
        opinions(tmp_path, **how)


@pytest.mark.parametrize("role", ["confidence", "reliability"])
def test_a_batch_that_lacks_a_column_is_asked_for_it(tmp_path: Path, role: str):
    add(tmp_path, doubtful_table())
    table = doubtful_table(seed=1)
    table["how far"] = table.pop(role)
    words = f"came with {role}; no column of new.csv looks like it. Name it: {role}='COLUMN'; or"
    assert_refused(tmp_path, words, table)
    add(tmp_path, table, columns={role: "how far"})
    add(tmp_path, table, columns={role: "1"})
    total = {name: doubtful_table()[name] + doubtful_table(seed=1)[name] * 2 for name in ROLES}
    total[role][120:] = [1.0] * 60
    assert_same_table(opinions(tmp_path), slencodings.fuse_table(total, **ROLES))


def test_uncertainty_may_follow_confidence(tmp_path: Path):
    table = doubtful_table()
    add(tmp_path, part(table, range(30)))
    doubt = part(table, range(30, 60))
    doubt["uncertainty"] = [1 - c for c in doubt.pop("confidence")]
    add(tmp_path, doubt)
    assert_same_table(opinions(tmp_path), slencodings.fuse_table(table, **ROLES))


def test_a_column_of_uncertainty_is_asked_for_too(tmp_path: Path):
    add(tmp_path, BOTH | {"doubt": [0.0, 0.5]})
    assert_refused(tmp_path, "came with uncertainty;.*one number for all: uncertainty=0", MORE)


# Crowds that were learned before


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
    with pytest.raises(ValueError, match="a question to a learned crowd, and none came"):
        opinions(tmp_path, reading="truth")


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
    before = opinions(tmp_path)
    add(tmp_path, MORE)
    assert about(tmp_path)["store"] == 2
    assert len(opinions(tmp_path)["item"]) >= len(before["item"])


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


def test_infinite_evidence_is_not_written_as_json(tmp_path: Path):
    how: dict[str, Any] = {"values": ["alpha"], "target": str(tmp_path / "out.jsonl")}
    assert_refused(tmp_path, "JSON cannot hold", BOTH, smoothing=0.0, **how)


# One at a time, all or nothing


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


def test_a_source_that_is_averaged_counts_as_one_annotation(tmp_path: Path):
    asked = {"item": ["i"] * 4, "annotator": [*"aaab"], "label": [*"xxyy"]}
    add(tmp_path, asked, duplicates="average")
    kept = sums(tmp_path)
    assert kept["label"] == ["x", "y"]
    np.testing.assert_allclose(kept["annotations"], [2 / 3, 1 / 3 + 1])
    np.testing.assert_allclose(kept["evidence"], [198 * 2 / 3, 198 * 4 / 3])


def test_if_opinions_cannot_be_written_nothing_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    add(tmp_path, BOTH)
    # Two columns of one name, but for case.
    words = "columns of the wide form must differ by more than case"
    table: Table = {"item": ["a"], "label": ["NO"]}
    assert_refused(tmp_path, words, table, target=str(tmp_path / "out.parquet"))


# The command line


def test_the_session_in_the_readme_gives_what_one_run_gives(sle: Any):
    table = doubtful_table()
    Path("monday.csv").write_bytes(as_bytes(part(table, range(30))))
    Path("tuesday.csv").write_bytes(as_bytes(part(table, range(30, 60))))
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    commands = re.findall(r"\$ sle (encode .*evidence\.parquet.*?) +#", readme)
    assert len(commands) == 3
    for command in commands:
        assert sle(*command.split())[0] == 0
    expected = slencodings.fuse_table(table, **ROLES)
    assert_same_table(pq.read_table("targets.parquet").to_pydict(), expected)
    with open("targets.csv", encoding="utf-8") as file:
        assert [row["item"] for row in csv.DictReader(file)] == list(expected["item"])


def test_what_was_added_is_said_and_what_is_refused_tells_what_to_type(sle: Any):
    Path("a.csv").write_bytes(as_bytes(doubtful_table()))
    code, _, said = sle("encode", "a.csv", "--into", "s.parquet")
    assert code == 0
    assert said.endswith("added    a.csv to s.parquet: 60 rows in 1 batch, 3 labels\n")
    code, _, said = sle("encode", "a.csv", "--into", "s.parquet")
    assert code == 1
    assert "To count them twice pass --again; to write opinions, type: sle encode s.parq" in said
    assert sle("encode", "a.csv", "--into", "s.parquet", "--again", "-q") == (0, "", "")
    code, _, said = sle("encode", "a.csv", "--into", "s.parquet", "--confidence-scale", "1-5")
    assert (code, "has --confidence-scale 0-1, and --confidence-scale 1-5 came" in said) == (
        1,
        True,
    )
    code, _, said = sle("encode", "s.parquet", "-o", "out.csv", "--smoothing", "0.5")
    assert (code, "has --smoothing 0.01, and --smoothing 0.5 came" in said) == (1, True)
    assert sorted(os.listdir()) == ["a.csv", "s.parquet"]


# Evidence in any engine


def by_name(table: Any) -> dict[tuple[Any, ...], list[float]]:
    """The numbers of each item, or item and label; whatever a missing label looks like."""
    ids = [name for name in ("item", "label") if name in table]
    keys = [[None if v != v else v for v in table[name]] for name in ids]
    numbers = zip(*(table[name] for name in table if name not in ids), strict=True)
    return dict(zip(zip(*keys, strict=True), map(list, numbers), strict=True))


@core_engines
@pytest.mark.parametrize("form", ["wide", "long", "evidence"])
def test_evidence_of_parts_is_fused_as_the_whole_is(engine: Engine, form: Any):
    table = doubtful_table()
    how: dict[str, Any] = {"smoothing": 0.0, "prior_weight": 3.0}
    halves = [
        slencodings.fuse_table(part(table, which), **ROLES, **how, form="evidence")
        for which in (range(25), range(25, 60))
    ]
    both = {name: [v for half in halves for v in half[name].tolist()] for name in halves[0]}
    fused = fuse_evidence(engine(both), prior_weight=3.0, form=form)
    assert isinstance(fused, engine.kind)
    result = by_name(engine.read(fused))
    expected = by_name(slencodings.fuse_table(table, **ROLES, **how, form=form))
    assert result.keys() == expected.keys()
    for key, numbers in expected.items():
        np.testing.assert_allclose(result[key], numbers, rtol=1e-12, atol=1e-12)


def test_a_store_is_a_table_of_evidence(tmp_path: Path):
    table, rates = doubtful_table(), {"2": 0.5, "10": 0.25, "no": 0.25}
    for which in (range(25), range(25, 60)):
        add(tmp_path, part(table, which))
    result = fuse_evidence(sums(tmp_path), labels=["2", "10", "no"], base_rate=rates)
    expected = slencodings.fuse_table(table, **ROLES, labels=["2", "10", "no"], base_rate=rates)
    assert_same_table(result, expected)


def test_numbers_as_labels_stay_numbers():
    for labels in ([0, 1, None], [0.0, 0.5, None], [True, False, None]):
        table = {"item": ["a", "a", "b"], "label": labels}
        evidence = slencodings.fuse_table(table, item="item", label="label", form="evidence")
        expected = slencodings.fuse_table(table, item="item", label="label")
        assert_same_table(fuse_evidence(evidence), expected)


@pytest.mark.parametrize("wrong", [-1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("column", ["evidence", "dogmatic"])
def test_evidence_must_be_an_amount(column: str, wrong: float):
    table: Table = {"item": ["a", "b"], "label": ["x", "y"], "evidence": [1.0, 1.0]}
    table |= {"dogmatic": [0.0, 0.0]}
    table[column] = [1.0, wrong]
    words = f"`{column}` must be finite and not negative; 1 of 2 rows are not, first .* in row 2"
    with pytest.raises(ValueError, match=words):
        fuse_evidence(table)


def test_evidence_needs_a_prior_weight(tmp_path: Path):
    table: Table = {"item": ["a", "b"], "label": ["x", "y"], "evidence": [1.0, 1.0]}
    with pytest.raises(ValueError, match="`prior_weight` must be a positive number; 'W' came"):
        fuse_evidence(table | {"dogmatic": [0.0, 0.0]}, prior_weight="W")  # pyright: ignore[reportArgumentType]


# Forgetting


@given(
    parts=batches(),
    smoothing=st.sampled_from([0.0, 0.01]),
    form=st.sampled_from(["wide", "long"]),
    seed=st.integers(0, 9),
)
@one_in(8)
def test_who_is_forgotten_might_never_have_been_there(
    tmp_path_factory: Any, parts: Any, smoothing: float, form: Any, seed: int
):
    folder, table = tmp_path_factory.mktemp("forget"), doubtful_table(seed=seed)
    # Of two labels nobody else has one, and of an item nobody else has said anything.
    for role, only in (("label", "rare"), ("item", "own"), ("annotator", "cy")):
        table[role][:2] = [only, only]
    few = len({table["label"][i] for i in parts[0]} - {None}) < 2
    fixed: dict[str, Any] = {"labels": ["10", "2", "no", "rare"]} if few else {}
    for which in parts:
        add(folder, part(table, which), smoothing=smoothing, by_annotator=True, **fixed)
    everybody = slencodings.fuse_table(table, **ROLES, smoothing=smoothing, form=form, **fixed)
    assert_same_table(opinions(folder, form=form), everybody)
    store = forget(str(folder / "store.parquet"), ["cy"])
    others = part(table, [i for i, who in enumerate(table["annotator"]) if who != "cy"])
    expected = slencodings.fuse_table(others, **ROLES, smoothing=smoothing, form=form, **fixed)
    assert_same_table(opinions(folder, form=form), expected)
    assert store.forgotten == sum(
        who == "cy" and label is not None
        for who, label in zip(table["annotator"], table["label"], strict=True)
    )
    assert "cy" not in sums(folder)["annotator"]


@pytest.mark.parametrize("reading", get_args(CrowdReading))
def test_forgetting_serves_both_readings_of_a_crowd(tmp_path: Path, reading: Any):
    table, kept = skilled_table(), tmp_path / "crowd.json"
    said: Roles = {"item": "item", "annotator": "annotator", "label": "label"}
    crowd = learn_crowd(slencodings.from_table(table, **said))
    kept.write_text(crowd_to_json(crowd))
    add(tmp_path, table, weigh=str(kept), by_annotator=True, confidence=1)
    told: list[str] = []
    forget(str(tmp_path / "store.parquet"), ["bob"], lambda what, text: told.append(text))
    assert "was learned before, perhaps from them too" in told[-1]
    others = part(table, [i for i, who in enumerate(table["annotator"]) if who != "bob"])
    expected = slencodings.fuse_table(others, **said, crowd=crowd, reading=reading)
    assert_same_table(opinions(tmp_path, reading=reading), expected)


def test_what_cannot_be_forgotten_is_said_and_nothing_is_changed(tmp_path: Path):
    store, who = str(tmp_path / "store.parquet"), {"annotator": ["ann", "bob"]}
    with pytest.raises(FileNotFoundError, match="there is no store"):
        forget(store, ["ann"])
    with pytest.raises(ValueError, match=r"need to know who annotated; no column of new\.csv"):
        add(tmp_path, BOTH, by_annotator=True)
    add(tmp_path, BOTH | who)
    with pytest.raises(ValueError, match=r"sums of all annotators together.* --by-annotator$"):
        forget(store, ["ann"])
    assert_refused(tmp_path, "are of all annotators together", MORE | who, by_annotator=True)
    Path(store).unlink()
    add(tmp_path, BOTH | who, by_annotator=True)
    before = Path(store).read_bytes()
    with pytest.raises(ValueError, match=r"no annotator 'an' among the 2 of .* mean 'ann'\?"):
        forget(store, ["an"])
    with pytest.raises(ValueError, match="at least two labels must be left; only 'yes' would be"):
        forget(store, ["ann"])
    assert Path(store).read_bytes() == before
    assert_refused(
        tmp_path,
        "annotators must be of the type they have in the store, VARCHAR; BIGINT came",
        as_bytes(MORE | {"annotator": [1, 2]}, "parquet"),
        name="new.parquet",
    )


def test_sle_forget_takes_an_annotator_out(sle: Any):
    Path("in.csv").write_text("item,annotator,label\na,ann,yes\na,bob,no\nb,bob,yes\nb,cy,no\n")
    assert sle("encode", "in.csv", "--into", "s.parquet", "--by-annotator", "-q").code == 0
    run = sle("forget", "s.parquet", "--annotator", "ann")
    assert run.code == 0, run.err
    assert "forgot   ann: 1 annotation; s.parquet: 4 rows in 1 batch, 2 labels, 1 ann" in run.err
    assert "it is for `--into" in sle("encode", "in.csv", "-o", "o.csv", "--by-annotator").err
