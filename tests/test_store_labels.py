"""Labels of a store: found or fixed, new ones that come later, soft ones, and their types."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from crowd_files import Table, as_bytes, assert_same_table
from storing import BOTH, MORE, about, add, assert_refused, opinions, part, sums

import slencodings


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
