"""Opinions in the forms that other libraries train on."""

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import encode_as_stated
from sklearn.linear_model import LogisticRegression

import slencodings as sle
from slencodings.opinion import Opinion

CROWD = {
    "item": ["a", "a", "b", "c", "c", "c"],
    "label": ["it's", "no", "no", "it's", "no", "maybe"],
    "confidence": [0.9, 0.5, 1.0, 0.3, 0.2, 0.0],
}


@pytest.fixture
def here(here: Path) -> Path:
    pq.write_table(pa.table(CROWD), "crowd.parquet")
    return here


def test_weights_of_an_item_are_its_probabilities():
    rng = np.random.default_rng(0)
    b = rng.dirichlet(np.ones(4), 50)
    opinion = Opinion(b[:, :3], b[:, 3], np.full((50, 3), 1 / 3))
    rows = sle.weighted_rows(opinion)
    found = np.zeros((50, 3))
    found[rows.item, rows.label] = rows.weight
    np.testing.assert_array_equal(found, opinion.probability)


def test_labels_that_cannot_be_have_no_row():
    certain = sle.encode(np.eye(3)[[2, 0]], np.zeros(2))
    rows = sle.weighted_rows(certain)
    assert (rows.item.tolist(), rows.label.tolist()) == ([0, 1], [2, 0])
    assert rows.weight.tolist() == [1.0, 1.0]


def test_training_on_weighted_rows_is_training_on_soft_labels():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    p = rng.dirichlet(np.ones(3), 80)
    rows = sle.weighted_rows(Opinion(p, np.zeros(80), np.full((80, 3), 1 / 3)))
    model = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000)
    model.fit(X[rows.item], rows.label, sample_weight=rows.weight)
    # At its least, the loss on soft labels and half the squared weights have no slope.
    slope = (model.predict_proba(X) - p).T
    np.testing.assert_allclose(2.0 * slope @ X + model.coef_, 0, atol=1e-5)
    np.testing.assert_allclose(slope.sum(axis=1), 0, atol=1e-5)


def test_opinions_of_one_item_or_of_many_axes_are_refused():
    for shape in ((), (2, 5)):
        opinion = Opinion(np.zeros((*shape, 3)), np.ones(shape), np.full((*shape, 3), 1 / 3))
        with pytest.raises(ValueError, match=r"opinions of N items are needed, \(N, K\); .*came"):
            sle.weighted_rows(opinion)


def test_lists_are_the_wide_form_in_the_order_of_the_labels(here: Path):
    values = ["belief", "uncertainty", "probability", "alpha"]
    encode_as_stated("crowd.parquet", "wide.parquet", columns={}, values=values)
    about = encode_as_stated(
        "crowd.parquet", "lists.parquet", columns={}, values=values, form="lists"
    )
    assert about["form"] == "lists"
    assert about["labels"] == ["it's", "maybe", "no"]
    wide, lists = (pq.read_table(f"{name}.parquet") for name in ("wide", "lists"))
    assert lists.column_names == ["item", *values]
    assert lists.schema.field("belief").type.value_type == pa.float64()
    assert lists["item"].to_pylist() == ["a", "b", "c"]
    assert lists["uncertainty"].to_pylist() == wide["uncertainty"].to_pylist()
    for value in ("belief", "probability", "alpha"):
        columns = [wide[f"{value}_{label}"].to_pylist() for label in about["labels"]]
        assert lists[value].to_pylist() == [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("labels", [["it's", "maybe", "no"], [1, 2, 3], [0.5, 1.5, 2.5]])
def test_weights_in_a_file_are_probabilities_by_item_and_label(here: Path, labels: list[Any]):
    names = dict(zip(["it's", "maybe", "no"], labels, strict=True))
    table = pa.table(CROWD | {"label": [names[label] for label in CROWD["label"]]})
    pq.write_table(table, "crowd.parquet")
    encode_as_stated("crowd.parquet", "wide.parquet", columns={})
    about = encode_as_stated("crowd.parquet", "weights.parquet", columns={}, form="weights")
    wide = pq.read_table("wide.parquet").to_pylist()
    weights = pq.read_table("weights.parquet").to_pylist()
    assert about["written"] == len(weights) == 9
    expected = [(row["item"], k, row[f"probability_{k}"]) for row in wide for k in labels]
    found = [(row["item"], row["label"], row["weight"]) for row in weights]
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert [row[2] for row in found] == pytest.approx([row[2] for row in expected], abs=1e-7)


def test_labels_that_cannot_be_are_not_in_the_file(here: Path):
    encode_as_stated("crowd.parquet", "out.csv", columns={}, form="weights", smoothing=0)
    with Path("out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows if row["item"] == "b"] == ["no"]
    assert sum(Fraction(row["weight"]) for row in rows if row["item"] == "a") == pytest.approx(1)


def test_a_store_is_written_in_every_form(here: Path):
    encode_as_stated("crowd.parquet", into="store.parquet", columns={})
    for form in ("wide", "long", "lists", "weights"):
        encode_as_stated("crowd.parquet", f"{form}.csv", columns={}, form=form)
        encode_as_stated("store.parquet", f"stored-{form}.csv", columns={}, form=form)
        assert Path(f"{form}.csv").read_text() == Path(f"stored-{form}.csv").read_text()


@pytest.mark.parametrize(
    ("form", "item", "message"),
    [
        ("list", "item", r"`form` must be one of wide, long, lists, weights; 'list' came"),
        ("lists", "Belief", r"needs a name of its own beside 'belief'; 'Belief' came. Rename it"),
        ("weights", "weight", r"needs a name of its own beside 'weight'; 'weight' came. Rename it"),
    ],
)
def test_forms_that_cannot_be_say_so(here: Path, form: Any, item: str, message: str):
    pq.write_table(pa.table(CROWD).rename_columns([item, "label", "confidence"]), "crowd.parquet")
    with pytest.raises(ValueError, match=message):
        encode_as_stated("crowd.parquet", "out.csv", columns={"item": item}, form=form)
