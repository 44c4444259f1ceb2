"""Evidence that is kept and added to: in any batches and any order, nothing lost or twice."""

import csv
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from crowd_files import ROLES, Roles, Table, as_bytes, assert_same_table, doubtful_table
from flat import encode_file
from hypothesis import given
from hypothesis import strategies as st
from storing import BOTH, MORE, about, add, assert_refused, batches, opinions, part, sums
from strategies import one_in

import slencodings

# The law


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
        f"wrote {tmp_path}/all.csv: 4 rows, wide: probability by votes as stated, cumulative, "
        "smoothing 0.01",
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


def test_a_source_that_is_averaged_counts_as_one_annotation(tmp_path: Path):
    asked = {"item": ["i"] * 4, "annotator": [*"aaab"], "label": [*"xxyy"]}
    add(tmp_path, asked, duplicates="average")
    kept = sums(tmp_path)
    assert kept["label"] == ["x", "y"]
    np.testing.assert_allclose(kept["annotations"], [2 / 3, 1 / 3 + 1])
    np.testing.assert_allclose(kept["evidence"], [198 * 2 / 3, 198 * 4 / 3])


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
