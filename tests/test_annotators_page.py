"""The page of annotators: what it must not hide, in which order, and how wide it is."""

import json
from dataclasses import replace

import numpy as np
import pytest
from crowds import by_chance, read
from hypothesis import given
from hypothesis import strategies as st
from rosters import QUICK, by_name, skilled
from strategies import assert_same_row, one_in, seeds

from slencodings.aggregate import as_reliability, mace
from slencodings.annotations import Annotations
from slencodings.annotators import describe_annotators
from slencodings.annotators.estimates import ESTIMATES

# What must not be hidden


def test_who_shares_no_item_is_there_and_told():
    rng = np.random.default_rng(0)
    c = skilled(rng, np.asarray([0.9, 0.9, 0.9]), N=30, per_item=3)
    lone = replace(
        c,
        item=np.append(c.item, 30),
        annotator=np.append(c.annotator, 3),
        y=np.append(c.y, 1),
        uncertainty=np.append(c.uncertainty, 0),
        items=np.arange(31),
        annotators=np.arange(4),
    )
    roster = describe_annotators(lone, estimates=ESTIMATES, groups=2)
    row = by_name(roster)[3]
    assert (row["annotations"], row["shared_items"]) == (1, 0)
    for name in (*ESTIMATES, "above_chance", "accuracy", "worth_for_votes", "said"):
        assert row[name] is None
    assert (row["verdict"], row["reason"]) == ("too few to tell", "shares no items with others")
    assert roster.notes[0].startswith("No item is shared with anybody by 1 of 4 annotators (3)")


@pytest.mark.parametrize("who", [["a", "a", "a"], ["a", "b", "c"]])
def test_when_nobody_can_be_compared_nothing_is_said(who):
    roster = describe_annotators(read([1, 2, 3], who, [0, 1, 0]), estimates=ESTIMATES)
    assert len(roster.to_rows()) == len(set(who))
    assert set(roster.columns["verdict"]) == {"too few to tell"}
    for name in ("above_chance", *ESTIMATES, "mace_low", "said"):
        assert set(roster.columns[name]) == {None}
    assert roster.notes == ["No item was judged by two annotators, so nobody can be compared."]
    assert str(roster).endswith(roster.notes[0])


def test_a_negative_kappa_is_shown_told_and_mapped():
    item = [i for i in range(8) for _ in range(3)]
    label = [x for i in range(8) for x in (i % 2, i % 2, 1 - i % 2)]
    c = read(item, ["ann", "bob", "eve"] * 8, label)
    roster = describe_annotators(c, estimates=["kappa"], sort="kappa", groups=0)
    eve = by_name(roster)["eve"]
    assert eve["kappa"] == -1
    assert roster.columns["annotator"][-1] == "eve"
    (note,) = roster.notes
    assert "Kappa is negative" in note
    assert "1 of 3 annotators (eve)" in note
    assert "as reliability it is 0" in note
    assert as_reliability([eve["kappa"]]).reliability == 0


@pytest.mark.parametrize("K", [1, 2])
def test_one_label_tells_nobody_apart(K):
    names = np.arange(3), np.arange(2), np.asarray(["yes", "no"][:K], dtype=object)
    item, who = np.repeat(np.arange(3), 2), np.tile([0, 1], 3)
    c = Annotations(item, who, np.zeros(6, dtype=int), np.zeros(6), *names)
    roster = describe_annotators(c, estimates=ESTIMATES)
    assert roster.columns["agreement"] == roster.columns["kappa"] == [1, 1]
    assert roster.columns["said"] == [None, None]
    assert any("Only one label was given" in note and "yes" in note for note in roster.notes)
    assert sum(line.endswith("  -") for line in str(roster).splitlines()) == 2


def test_what_did_not_converge_is_told(monkeypatch):
    monkeypatch.setattr("slencodings.annotators.estimates._MACE_STEPS", 1)
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 4), N=20)
    roster = describe_annotators(c, estimates=["mace"], groups=0)
    assert roster.notes == ["`mace` did not converge: take it for a rough guide."]


def test_a_degenerate_fit_of_mace_is_named_as_such(monkeypatch):
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 4), N=20)

    def degenerate(*args, **kwargs):
        found = mace(*args, **kwargs)
        return found._replace(reliability=np.full(4, 0.004))

    fine = describe_annotators(c, estimates=["mace"], groups=0)
    assert not any("degenerate" in note for note in fine.notes)
    monkeypatch.setattr("slencodings.annotators.estimates.mace", degenerate)
    roster = describe_annotators(c, estimates=["mace"], groups=0)
    assert any("`mace` takes everybody for guessing, .00 for all" in x for x in roster.notes)


def test_too_many_pairs_cost_kappa_only():
    M = 2300  # with two items of all annotators, above five million pairs
    item, who = np.repeat([0, 1, 2, 3], M), np.tile(np.arange(M), 4)
    y = (who + item) % 2
    names = np.arange(4), np.arange(M), np.arange(2)
    c = Annotations(item, who, y, np.zeros(4 * M), *names)
    roster = describe_annotators(c, estimates=QUICK, groups=0)
    assert set(roster.columns["kappa"]) == {None}
    assert None not in roster.columns["agreement"]
    assert any(note.startswith("There is no kappa: comparing annotators") for note in roster.notes)


def test_who_is_never_sure_says_nothing_to_dawid_skene():
    c = skilled(np.random.default_rng(0), np.full(3, 0.9), N=20, per_item=3)
    c = replace(c, uncertainty=np.where(c.annotator == 1, 1.0, 0.0))
    rows = by_name(describe_annotators(c, estimates=["dawid_skene", "agreement"], groups=3))
    assert rows[1]["dawid_skene"] is rows[1]["dawid_skene_low"] is None
    assert rows[0]["dawid_skene_low"] is not None
    assert rows[1]["agreement"] > 0.5


# Order, names and printing


def test_the_worst_come_first_or_most_of_a_column_and_the_unknown_last():
    c = read([1, 1, 2, 2, 3, 3, 4], "abacbcd", [0, 0, 0, 1, 0, 1, 0])
    roster = describe_annotators(c, estimates=QUICK, sort="agreement", groups=0)
    assert roster.columns["annotator"] == ["a", "b", "c", "d"]
    assert roster.columns["agreement"] == [0.5, 0.5, 0, None]
    by = describe_annotators(c, estimates=QUICK, groups=0, sort="annotations")
    assert by.columns["annotations"] == [2, 2, 2, 1]
    named = describe_annotators(c, estimates=QUICK, groups=0, sort="annotator")
    assert named.columns["annotator"] == ["a", "b", "c", "d"]
    c = skilled(np.random.default_rng(0), np.asarray([0.95, 0.5, 0.9, 0.1, 0.92]), N=200)
    worst = describe_annotators(c)
    assert worst.columns["annotator"][:2] == [3, 1]
    assert worst.columns["verdict"] == ["against the crowd", "at chance", *["fine"] * 3]
    above = worst.columns["above_chance"][2:]
    assert above == sorted(above)


@one_in(10)
@given(seeds, st.booleans())
def test_the_order_of_rows_does_not_matter(rng, soft):
    a = replace(by_chance(rng, soft=soft), stated=rng.integers(0, 3, 25) / 2)
    names = ["agreement", "kappa", "dawid_skene"]
    one, two = (
        describe_annotators(x, estimates=names, sort="annotator", groups=3)
        for x in (a, a.rows(rng.permutation(25)))
    )
    for row, other in zip(one.to_rows(), two.to_rows(), strict=True):
        assert_same_row(row, other, tol=1e-9)
    assert one.notes == two.notes


def test_ids_may_be_of_any_type():
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 4), N=20)
    options = {"estimates": ["mace", "kappa"], "groups": 2, "sort": "annotator"}
    plain = describe_annotators(c, **options).to_rows()
    for names in (
        np.asarray(["a", "b", "c", "d"], dtype=object),
        np.asarray([0.5, 1.5, 2.5, 3.5]),
        np.asarray([(0, 1), (0, 2), (0, 3), None], dtype=object),
        np.asarray(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"], dtype="M8[D]"),
    ):
        rows = describe_annotators(replace(c, annotators=names), **options).to_rows()
        assert json.loads(json.dumps(rows, allow_nan=False)) == rows
        for row, other in zip(rows, plain, strict=True):
            assert_same_row(row, other, but=["annotator"], tol=1e-9)


def test_everything_can_be_written_as_json():
    c = replace(by_chance(np.random.default_rng(0), soft=True), stated=np.linspace(0, 1, 25))
    rows = describe_annotators(c, reliability=0.5, estimates=ESTIMATES, groups=2).to_rows()
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert all(isinstance(x, str | int | float | None) for row in rows for x in row.values())


def test_a_page_fits_a_terminal_and_shows_both_ends_of_many():
    rng = np.random.default_rng(0)
    c = skilled(rng, np.linspace(0.4, 1, 40), N=300)
    names = np.asarray([f"a-rather-long-name-of-annotator-{m:02}" for m in range(40)], dtype=object)
    c = replace(c, annotators=names, labels=np.asarray(["contradiction", "entailment"], object))
    c = replace(c, stated=rng.random(1200))
    roster = describe_annotators(c, reliability=0.5, estimates=["dawid_skene", *QUICK], groups=3)
    text = str(roster)
    table = text.partition("\n* ")[0].splitlines()
    assert max(map(len, table)) <= 120
    assert sum("20 more" in line for line in table) == 3
    for at in (0, 9, 30, 39):
        assert roster.columns["annotator"][at][-9:] in text
    assert all(line == line.rstrip() for line in table)
    assert roster.columns["annotator"][15][-9:] not in text


def test_the_widest_page_has_120_columns():
    widest = {name: [-0.25] for name in ("above_chance", *ESTIMATES)}
    c = read([1, 1, 2, 2], "abab", [0, 0, 1, 0])
    roster = describe_annotators(c, reliability=1, estimates=ESTIMATES, groups=0)
    columns = {k: v[:1] for k, v in roster.columns.items()}
    columns |= {"verdict": ["against the crowd"], "reason": ["hardly better than guessing"]}
    columns |= {"annotator": ["x" * 40], "annotations": [100_000], "shared_items": [100_000]}
    for name, value in widest.items():
        ends = [-1.0], [1.0]
        columns |= {name: value} | dict(zip((f"{name}_low", f"{name}_high"), ends, strict=True))
    columns["kappa_low"] = [-1.0]
    for name in widest.keys() - {"kappa"}:
        columns |= {name: [1.0], f"{name}_low": [0.5]}
    text = str(replace(roster, columns=columns, notes=[]))
    assert max(map(len, text.splitlines())) <= 120
    assert "-.25 (-1.0 1.0)" in text
