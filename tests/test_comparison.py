"""Comparing encodings: what is held out is held out, and every crowd that is allowed has rows."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from comparing import NAMES, all_methods, confident, rows_of, skilled
from crowds import crowd, make, once
from real_crowds import real

from slencodings.datasets import digits_crowd
from slencodings.evaluation import compare, methods
from slencodings.evaluation.held_out import _deal
from slencodings.evaluation.learner import Learner
from slencodings.evaluation.methods import methods_for
from slencodings.evaluation.pool import pairs
from slencodings.evaluation.predictors import crowd_habits, own_habits

# What is held out


def test_methods_learn_nothing_from_the_items_they_are_scored_on(monkeypatch):
    seen = []

    def spy(c):
        seen.append(set(c.sure.item.tolist()))
        return methods._soft(c)

    monkeypatch.setattr("slencodings.evaluation.held_out.methods_for", lambda c: {"spy": spy})
    a = once(crowd(np.random.default_rng(0), N=30, R=100))
    scored = []
    predict = methods.Counts.predict
    monkeypatch.setattr(
        methods.Counts,
        "predict",
        lambda self, c: scored.append(set(c.item.tolist())) or predict(self, c),
    )
    compare(a, methods=["spy"], folds=4, bootstrap=5)
    assert len(seen) == 5
    assert len(seen[-1]) == len(set(a.item.tolist()))
    shared = set(np.flatnonzero(np.bincount(a.item, minlength=30) > 1).tolist())
    tested = [s for s in scored if len(s) < len(shared) / 2]
    assert set.union(*tested) == shared
    for f, train in enumerate(seen[:-1]):
        held_out = set(a.item.tolist()) - train
        assert held_out in tested, f
        assert held_out <= shared, f


def shares_of_others(a, rate):
    """The share of each label among the other votes on an item, by loops; the rate where none."""
    shares = np.tile(rate, (len(a.item), 1))
    for q in range(len(a.item)):
        rest = (a.item == a.item[q]) & (np.arange(len(a.item)) != q)
        if rest.any():
            shares[q] = np.bincount(a.y[rest], minlength=len(a.labels)) / rest.sum()
    return shares


def test_habits_are_learned_on_other_items_than_those_that_are_scored():
    a = once(crowd(np.random.default_rng(6), N=40, R=250))
    row = compare(a, methods=["soft votes"], folds=2, bootstrap=5).rows[0]
    fold, votes, own = _deal(a, 2, np.random.default_rng(0)), [], []
    for f in (0, 1):
        train, test = (a.rows(keep[a.item]) for keep in (fold != f, fold == f))
        rate = Learner(train).base_rate
        seen, asked = shares_of_others(train, rate), shares_of_others(test, rate)
        habits = crowd_habits(seen, train)
        each = own_habits(seen, train, habits)[test.annotator]
        who = np.arange(len(test.item))
        votes.extend((asked @ habits)[who, test.y])
        own.extend(np.einsum("qk,qkl->ql", asked, each)[who, test.y])
    assert row["votes"] == pytest.approx(-np.mean(np.log(votes)), abs=1e-12)
    assert row["own"] == pytest.approx(-np.mean(np.log(own)), abs=1e-12)


def test_an_annotators_second_word_is_not_among_the_others():
    a = make([0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 1, 0, 0], K=2)
    twice = compare(a, methods=["soft votes"], bootstrap=5)
    assert twice.about.scored == 6
    assert "1 annotation repeats an (item, annotator) pair and is left out" in twice.notes


FITTED = ["crowdtruth", "dawid_skene", "mace", "glad", "pairwise_kappa"]


@pytest.fixture(scope="module")
def how_often_fitted():
    """How often one comparison fits each model."""
    times = Counter()

    def counting(name, fit):
        return lambda a, **how: times.update([name]) or fit(a, **how)

    c = confident(np.random.default_rng(0), N=25, R=130)
    names = [n for n in methods_for(c) if "weighted" not in n and "crowd" not in n]
    with pytest.MonkeyPatch.context() as patch:
        for name in FITTED:
            fit = getattr(methods.aggregate, name)
            patch.setattr(methods.aggregate, name, counting(name, fit))
        compare(c, methods=names, folds=3, bootstrap=0)
    return times


@pytest.mark.parametrize("name", FITTED)
def test_each_model_is_fitted_once_a_fold_and_once_to_everything(how_often_fitted, name):
    # MACE goes on for a fold from a fit without it and another: those are fitted too, once.
    assert how_often_fitted[name] == 4 + (len(pairs(3)) if name == "mace" else 0)


# Those that follow a summit by small steps end a little elsewhere if sums are rounded otherwise.
NEARLY = {"GLAD": 1e-4, "SLE, GLAD": 1e-4}


@pytest.fixture(scope="module")
def in_two_orders():
    """The rows of all methods by their names, of a crowd and of the same in another order."""
    a = once(all_methods(4)[0])
    p = np.random.default_rng(9).permutation(len(a.item))
    found = [compare(x, folds=2, bootstrap=5) for x in (a, a.rows(p))]
    return [{row["method"]: row for row in rows_of(each)} for each in found]


@pytest.mark.parametrize("name", NAMES)
def test_row_order_does_not_matter(in_two_orders, name):
    one, two = (rows[name] for rows in in_two_orders)
    for what in ("votes", "own", "joint", "brier"):
        assert one[what] == pytest.approx(two[what], abs=NEARLY.get(name, 1e-9))


# What is compared, and what is told


def test_every_method_is_offered_where_the_crowd_has_what_it_needs():
    rng = np.random.default_rng(0)
    assert len(NAMES) == 25
    plain = list(methods_for(crowd(rng)))
    assert {"Dawid-Skene", "SLE, kappa", "learned crowd"} <= set(plain)
    assert not [name for name in plain if "confidence" in name or "given" in name]
    alone = list(methods_for(crowd(rng, M=1)))
    assert alone == [
        "majority vote", "soft votes", "SLE, one count each", "SLE, full trust", "learned crowd",
    ]  # fmt: skip


def test_there_are_as_many_encodings_as_the_documents_say():
    crowd = digits_crowd(rng=0)
    a = replace(crowd.annotations, stated=crowd.annotations.confidence)
    nobody = np.asarray(["anonymous"], dtype=object)

    def count(a, *, sure=False, told_apart=True):
        a = a if told_apart else replace(a, annotator=0 * a.annotator, annotators=nobody)
        a = replace(a, stated=None, uncertainty=0 * a.uncertainty) if sure else a
        return len(methods_for(a))

    all_given = a.completed(crowd.reliability)
    in_order = count(replace(all_given, ordered=True)) - count(all_given)
    assert in_order == 2
    words = (
        f"{count(a, sure=True)} where annotators are told apart, {count(a)} with stated "
        f"confidence, {count(all_given)} with a column of reliability too, two more with "
        f"labels in an order, and {count(a, sure=True, told_apart=False)} "
        f"({count(a, told_apart=False)} with confidence)"
    )
    root = Path(__file__).parents[1]
    assert words in " ".join((root / "docs" / "comparison.md").read_text(encoding="utf-8").split())
    readme = (root / "README.md").read_text(encoding="utf-8")
    most = count(replace(all_given, ordered=True))
    assert f"up to {most} encodings on held-out votes" in readme


def test_soft_labels_anonymous_crowds_one_label_and_total_disagreement_have_rows():
    rng = np.random.default_rng(2)
    cases = {
        "soft": crowd(rng, soft=True),
        "anonymous": crowd(rng, M=1),
        "one label": make(*np.divmod(np.arange(30), 3), np.zeros(30, int), K=1),
        "disagreement": make(*np.divmod(np.arange(30), 3), np.arange(30) % 3),
        "alone": make([0, 0, 1, 1, 2, 3], [0, 1, 0, 1, 2, 3], [0, 0, 1, 0, 1, 0]),
    }
    for case, a in cases.items():
        found = compare(a, bootstrap=10, folds=2)
        assert len(found.rows) == len(methods_for(a)) + 1, case
        assert all(row["votes"] >= 0 for row in found.rows), case
        assert str(found).count("\n") > len(found.rows)
        json.dumps(found.rows)
        assert (found.rows[0]["votes"] == 0) == (case == "one label")


@pytest.mark.parametrize(
    ("names", "by"), [(["anonymous"], " items, "), (["ann"], " items by 1 annotator, ")]
)
def test_where_there_is_nobody_to_tell_apart_nothing_is_told_of_this_annotator(names, by):
    a, _ = skilled(np.random.default_rng(0), N=40)
    alone = replace(a, annotator=np.zeros_like(a.annotator), annotators=np.asarray(names))
    found = compare(alone, methods=["soft votes", "SLE, full trust"], bootstrap=50)
    assert f"480 annotations of 40{by}2 labels" in str(found)
    assert "this" not in str(found)
    assert "annotators are not told apart" in str(found)
    for row in found.rows:
        assert (row["own"], row["own_low"], row["best_own"]) == (None, None, False)
    assert any(row["best"] for row in found.rows)
    several = compare(a, methods=["soft votes", "SLE, full trust"], bootstrap=50)
    assert "by 12 annotators" in str(several)
    assert "this annotator" in str(several)


def test_bad_input_is_told():
    a, _ = skilled(np.random.default_rng(0), N=10)
    with pytest.raises(
        ValueError, match=r"`methods` must be some of 'majority vote', .*; 'votes' c"
    ):
        compare(a, methods=["votes"])
    with pytest.raises(ValueError, match=r"`stated` needs one confidence for each of the 120"):
        compare(replace(a, stated=[1.0, 2.0]))
    with pytest.raises(
        ValueError, match=r"at least two folds and two items.*folds=1 and 10 such.*Take folds=5"
    ):
        compare(a, folds=1)
    with pytest.raises(
        ValueError, match=r"folds=5 and 0 such items came\. Have a second annotator"
    ):
        compare(make([0, 1], [0, 1], [0, 1]))
    with pytest.raises(ValueError, match=r"as a soft truth must be \(10, 2\).*shape \(10, 3\)"):
        compare(a, gold=np.ones((10, 3)) / 3)
    with pytest.raises(ValueError, match="`gold` must know at least one item"):
        compare(a, gold=np.full(10, -1))


def test_progress_counts_every_fit():
    a, _ = skilled(np.random.default_rng(0), N=20)
    told = []
    names = ["majority vote", "soft votes"]
    compare(a, methods=names, folds=3, bootstrap=5, progress=lambda *x: told.append(x))
    assert [done for done, _, _ in told] == list(range(8))
    assert {total for _, total, _ in told} == {8}
    assert [name for *_, name in told] == names * 4


def test_methods_that_did_not_converge_say_so(monkeypatch):
    def stopped(c):
        fit = methods._soft(c)
        told = fit.target._replace(converged=False, notes=("3 annotators score below 0",))
        return fit._replace(target=told)

    monkeypatch.setattr("slencodings.evaluation.held_out.methods_for", lambda c: {"m": stopped})
    found = compare(crowd(np.random.default_rng(0)), methods=["m"], bootstrap=5)
    assert {"m did not converge", "m: 3 annotators score below 0"} <= set(found.notes)
    assert "m did not converge" in str(found)


def test_scores_below_zero_and_strangers_are_reported():
    # Two who always disagree, and one who shares no item with anybody.
    a = make([0, 0, 1, 1, 2, 2, 3], [0, 1, 0, 1, 0, 1, 2], [0, 1, 1, 0, 0, 1, 0], K=2)
    notes = methods_for(a)["SLE, kappa"](Learner(a)).target.notes
    assert "2 annotators score below 0, which counts as 0" in notes
    assert "1 annotator shares no item with anybody and gets the mean" in notes


# Real crowds


@pytest.mark.slow
def test_rte_comes_out_as_in_the_trial():
    c = real("rte")
    names = ["SLE, one count each", "SLE, kappa", "Dawid-Skene", "MACE"]
    names += ["learned crowd"]
    found = compare(c.annotations, gold=c.gold, methods=names, bootstrap=10)
    by_name = {row["method"]: row for row in rows_of(found)}
    trial = {"SLE, one count each": 0.592, "SLE, kappa": 0.595}
    for name, loss in {**trial, "Dawid-Skene": 0.567}.items():
        assert by_name[name]["votes"] == pytest.approx(loss, abs=0.01), name
    assert by_name["Dawid-Skene"]["direct"] > 2
    assert by_name["Dawid-Skene"]["own"] == pytest.approx(0.45, abs=0.015)
    assert 0.92 <= by_name["Dawid-Skene"]["accuracy"] <= 0.935
    assert 0.92 <= by_name["MACE"]["accuracy"] <= 0.935
    # One fit, three questions: nobody is ahead of it on any.
    crowd = by_name["learned crowd"]
    for what in ("votes", "own", "joint", "truth"):
        assert crowd[what] == min(row[what] for row in by_name.values()), what
    assert crowd["accuracy"] >= 0.9225
    assert abs(crowd["too_sure"]) < 0.03


@pytest.mark.slow
def test_uds_comes_out_as_in_the_trial():
    c = real("uds_factuality")
    names = ["SLE, one count each", "SLE, kappa", "SLE, stated confidence", "Dawid-Skene"]
    found = compare(c.annotations, methods=names, bootstrap=50)
    by_name = {row["method"]: row for row in rows_of(found)}
    trial = dict(zip(names, (0.503, 0.452, 0.643, 0.462), strict=True))
    for name, loss in trial.items():
        assert by_name[name]["votes"] == pytest.approx(loss, abs=0.01), name
    assert by_name["Dawid-Skene"]["own"] == pytest.approx(0.42, abs=0.01)
    assert by_name["Dawid-Skene"]["direct"] == pytest.approx(0.573, abs=0.01)
