"""Forgetting an annotator leaves a store as if they had never been there."""

from pathlib import Path
from typing import Any, get_args

import pytest
from crowd_files import ROLES, Roles, as_bytes, assert_same_table, doubtful_table, skilled_table
from hypothesis import given
from hypothesis import strategies as st
from storing import BOTH, MORE, add, assert_refused, batches, opinions, part, sums
from strategies import one_in

import slencodings
from slencodings.choices import CrowdReading
from slencodings.files.adding import forget
from slencodings.trust import crowd_to_json, learn_crowd


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
