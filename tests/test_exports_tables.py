"""Tables that are not long, data sets, and tables in memory."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from exporting import assert_refused, said

from slencodings.files.exports import read_export


class ClassLabel:
    names = ("no", "yes")

    def int2str(self, code: int) -> str:
        return self.names[code]


class Sequence:
    feature = ClassLabel()


class Dataset:
    """What is used of a data set of Hugging Face."""

    def __init__(self, rows: list[dict[str, Any]], features: Any) -> None:
        self.rows, self.features = rows, features
        self.column_names = list(rows[0])

    def __iter__(self) -> Any:
        return iter(self.rows)


def test_data_sets_of_hugging_face_are_read_with_the_names_of_classes():
    long = Dataset(
        [{"item": "a", "worker": "u", "label": 1}, {"item": "a", "worker": "v", "label": -1}],
        {"item": None, "worker": None, "label": ClassLabel()},
    )
    assert said(long) == [("a", "u", "yes"), ("a", "v", None)]
    rows = [{"id": 7, "annotators": ["u", "v", "w"], "labels": np.asarray([1, 0, -1])}]
    for feature in (Sequence(), [ClassLabel()]):
        lists = Dataset(rows, {"id": None, "annotators": None, "labels": feature})
        assert said(lists) == [(7, "u", "yes"), (7, "v", "no")]
    assert said(Dataset(rows, None)) == [(7, "u", 1), (7, "v", 0), (7, "w", -1)]
    assert_refused(
        r"one data set; a dict of \['train'\] came. Choose one: dataset\['train'\]", {"train": long}
    )


def test_rows_with_lists_are_read_and_unequal_ones_refused():
    rows = [{"uid": "a", "annotators": ["u", "v"], "annotations": [["x"], ["x", "y"]]}]
    assert said(rows, question="annotations=y") == [("a", "u", "no"), ("a", "v", "yes")]
    short = {"uid": "b", "annotators": ["u", "v"], "annotations": [["x"]]}
    assert_refused(
        r"record 2: 'annotators' and 'annotations' must be equally long lists", [*rows, short]
    )
    assert_refused(
        r"'an id' must be text or a whole number", [{"annotators": ["u"], "labels": ["x"]}]
    )


WIDE = {"id": [1, 2], "text": ["t", "u"], "ann": ["yes", None], "bob": ["no", "yes"]}


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_a_wide_table_of_any_kind_has_a_column_for_each_annotator(kind: Any):
    expected = [(1, "ann", "yes"), (1, "bob", "no"), (2, "bob", "yes")]
    assert said(kind(WIDE), format="wide", annotators=["ann", "bob"]) == expected
    assert_refused(
        r"columns 'text' share none with the others. Say .*annotators=", kind(WIDE), format="wide"
    )


def test_numbers_and_missing_values_of_pandas_are_understood():
    table = pd.DataFrame({"item": ["a", "b"], 1: [1, 2], 2: [2, np.nan]})
    table["3"] = pd.array([1, None], dtype="Int64")
    expected = [("a", "1", 1), ("a", "2", 2), ("a", "3", 1), ("b", "1", 2)]
    assert said(table, format="wide") == expected


def test_words_for_nothing_are_empty_cells_of_a_wide_table():
    export = read_export({"item": [1], "a": ["NA"], "b": ["x"], "c": ["x"]}, format="wide")
    assert export.columns["annotator"] == ["b", "c"]
    assert export.notes[-1] == "1 cell without a label (empty, or NA) left out"


def test_what_wide_tables_refuse():
    assert_refused(
        r"a column for the item; none came, and the columns are 'ann', 'bob'. Name it",
        {"ann": ["a"], "bob": ["a"]},
        format="wide",
    )
    assert_refused(
        r"two or more columns for the annotators; \['cy'\] came",
        WIDE,
        format="wide",
        annotators=["ann", "cy"],
    )
    assert_refused(
        r"two or more columns for the annotators; \['ann'\] came",
        {"item": ["a"], "ann": ["yes"]},
        format="wide",
    )
    assert_refused(
        r"record 1: 'ann' must hold one label; \['a', 'b'\] came",
        [{"item": 1, "ann": ["a", "b"], "bob": "a"}],
        format="wide",
    )
    assert_refused(
        r"record 1: 'item' must be text or a whole number; None came. Every row needs one",
        [{"item": None, "ann": "a", "bob": "a"}],
        format="wide",
    )


def test_a_count_of_n_is_n_annotations():
    table = {"item": ["a", "b", "c"], "yes": [2, 0, 0], "no": ["1", None, 0.0], "n": [3, 0, 0]}
    export = read_export(table, format="counts", labels=["yes", "no"])
    assert export.columns == {"item": ["a"] * 3, "label": ["yes", "yes", "no"]}
    assert export.notes[-1] == "2 items without counts left out"


def test_what_count_tables_refuse(monkeypatch: pytest.MonkeyPatch):
    for wrong in (0.5, -1, "many", float("inf"), [1]):
        assert_refused(
            r"record 1: 'yes' must be a count, 0 or 1 or 2 ...; .* came",
            [{"item": "a", "yes": wrong, "no": 1}],
            format="counts",
        )
    assert_refused(
        r"two or more columns for the labels; \['maybe'\]",
        [{"item": 1, "yes": 1, "no": 1}],
        format="counts",
        labels=["maybe"],
    )
    assert_refused(
        r"1,000,000,000,001 are more than 10,000,000. Divide the counts",
        [{"item": 1, "yes": 10**12, "no": 1}],
        format="counts",
    )


def test_what_is_in_memory_and_long_already_is_read_by_its_names():
    table = {"post": ["a"], "worker": ["u"], "answer": ["yes"], "certainty": [0.5]}
    export = read_export(table)
    assert export.tool == "long table"
    assert export.columns == {
        "item": ["a"],
        "annotator": ["u"],
        "label": ["yes"],
        "confidence": [0.5],
    }
    assert said({"x": ["a"], "label": ["yes"]}, item="x") == [("a", None, "yes")]
    assert_refused(
        r"a column for the item and one for the label.*columns are 'x', 'y'.*format='wide'",
        {"x": ["a"], "y": ["b"]},
    )
    assert_refused(
        r"'label' must be text or a number for each row; \[1\] came", [{"item": 1, "label": [1]}]
    )
    assert_refused(
        r"columns must be equally long; \{'x': 1, 'y': 2\} came", {"x": [1], "y": [1, 2]}
    )
    with pytest.raises(TypeError, match=r"an export must be a file, a data set.*; int came"):
        read_export(3)
    assert_refused(r"the records, record 1 must be a dict; 3 came", [3])
    assert_refused(r"the records has no records", [])
