"""Comparing encodings: what is held out is held out, and the numbers are what they say."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from crowds import crowd, make
from strategies import present

from slencodings import Annotations, aggregate, alpha, metrics
from slencodings.datasets import digits_crowd
from slencodings.datasets.rte import rte
from slencodings.datasets.uds_factuality import uds_factuality
from slencodings.evaluation import Comparison, compare, methods
from slencodings.evaluation.held_out import _deal
from slencodings.evaluation.learner import Learner
from slencodings.evaluation.measure import Resampled, as_truth
from slencodings.evaluation.methods import methods_for
from slencodings.evaluation.own_habits import learn_one_habit
from slencodings.evaluation.part import drawn, whole
from slencodings.evaluation.pool import pairs
from slencodings.evaluation.predicted import HeldOut, halves, predict, score
from slencodings.evaluation.predictors import (
    Counts,
    Model,
    Readings,
    RightOrNot,
    crowd_habits,
    own_habits,
)
from slencodings.trust import learn_crowd
from slencodings.trust.habits import Seen, learn_habits

# Those that follow a summit by small steps end a little elsewhere if sums are rounded otherwise.
NEARLY = {"GLAD": 1e-4, "SLE, GLAD": 1e-4}


def once(a):
    """Only the first word of each annotator on each item."""
    pairs = np.unique(a.item * len(a.annotators) + a.annotator, return_index=True)[1]
    return a.rows(np.sort(pairs))


def confident(rng, **how):
    """A crowd whose stated confidence says something."""
    a = crowd(rng, **how)
    stated = rng.integers(1, 5, len(a.item)).astype(float)
    return replace(a, stated=stated, reliability=rng.uniform(0, 1, len(a.item)))


def all_methods(seed=0, soft=False):
    c = confident(np.random.default_rng(seed), N=25, R=130, soft=soft, unsure=True)
    return c, methods_for(c)


NAMES = list(all_methods()[1])


@cache
def learner_of(soft):
    """The crowd and what all methods share of it, once for all tests that only read."""
    a, known = all_methods(soft=soft)
    return a, known, Learner(a)


@cache
def fitted(name, soft):
    """The crowd and a method that has learned from it."""
    a, known, learner = learner_of(soft)
    return a, known[name](learner)


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


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("name", NAMES)
def test_no_annotation_is_used_to_predict_itself(name, soft):
    a, fit = fitted(name, soft)
    shared = np.flatnonzero(np.bincount(a.item, minlength=len(a.items))[a.item] > 1)
    before, moved = fit.reader.predict(a), False
    for q in shared[::7]:
        y = a.y.copy()
        y[q] = np.roll(y[q], 1) if soft else (y[q] + 1) % 3
        after = fit.reader.predict(replace(a, y=y))
        np.testing.assert_allclose(after[q], before[q], atol=1e-9)
        moved |= not np.allclose(after, before, atol=1e-9)
    assert moved, "nobody's annotation matters to the others"


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize(
    "name", [n for n in NAMES if n.startswith("SLE") or n in ("soft votes", "CrowdTruth")]
)
def test_counts_are_what_fusing_without_the_annotation_gives(name, soft):
    a, fit = fitted(name, soft)
    reader = fit.reader
    assert isinstance(reader, Counts)
    predicted, w = reader.predict(a), reader.weight(a)
    for q in range(0, len(a.item), 17):
        rest = (a.item == a.item[q]) & (np.arange(len(a.item)) != q)
        if not rest.any():
            continue
        votes = w[rest] @ a.vectors[rest]
        s = reader.prior
        expected = (votes + s * reader.base_rate) / (votes.sum() + s)
        np.testing.assert_allclose(predicted[q], expected, atol=1e-12)


def test_the_weights_are_those_of_the_targets():
    for name in NAMES:
        if name.startswith("SLE"):
            c, fit = fitted(name, False)
            reader = fit.reader
            assert isinstance(reader, Counts)
            E = c.sums(reader.weight(c))
            T = E.sum(axis=1, keepdims=True) + 1
            np.testing.assert_allclose(
                fit.target.probability, (E + reader.base_rate) / T, atol=1e-9
            )
            np.testing.assert_allclose(present(fit.target.uncertainty), 1 / T[:, 0], atol=1e-9)


def hypotheses(model, K):
    """The prior and what annotators say under each hypothesis, a truth of some difficulty."""
    if isinstance(model, Model):
        return model.prior, model.confusion
    assert isinstance(model, RightOrNot)
    right, wrong = (np.exp(x)[:, :, None] for x in (model.log_right, model.log_wrong))
    confusion = np.where(np.eye(K) == 1, right, wrong)
    return np.repeat(model.prior / K, K), confusion.reshape(len(right), -1, K)


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("name", ["Dawid-Skene", "MACE", "GLAD"])
def test_a_model_multiplies_what_the_others_said(name, soft):
    c, known = all_methods(soft=soft)
    a = methods.sure(c)
    model = known[name](Learner(a)).reader
    prior, confusion = hypotheses(model, 3)
    np.testing.assert_allclose(confusion.sum(axis=2), 1, atol=1e-9)
    truth, own = model.predict(a), model.predict_own(a, a)
    for q in range(0, len(a.item), 17):
        p = prior.copy()
        for o in np.flatnonzero(a.item == a.item[q]):
            if o != q:
                answers = confusion[a.annotator[o]]
                p *= np.prod(answers ** a.vectors[o], axis=1)
        p /= p.sum()
        by_label = [p[k::3].sum() for k in range(3)]
        np.testing.assert_allclose(truth[q], by_label, atol=1e-9)
        np.testing.assert_allclose(own[q], p @ confusion[a.annotator[q]], atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        Model(np.full(2, 0.5), np.tile([[0.8, 0.2], [0.2, 0.8]], (2, 1, 1))),
        RightOrNot(
            np.ones(1), np.full((2, 1, 1), math.log(0.8)), np.full((2, 1, 1), math.log(0.2))
        ),
    ],
    ids=["confusions", "right or not"],
)
def test_what_thousands_said_of_one_item_does_not_vanish(model):
    # Half say one label: without a vote for it, the other is one vote ahead.
    y = np.arange(4000) % 2
    a = make(np.zeros(4000), np.arange(4000) // 2 % 2, y)
    np.testing.assert_allclose(model.predict(a)[np.arange(4000), y], 0.2, rtol=1e-9)


def test_a_doubtful_annotation_counts_less_in_the_weighted_model():
    confusion = np.asarray([[[0.9, 0.1], [0.2, 0.8]]])
    a = make([0, 0], [0, 0], [0, 0], K=2, uncertainty=[0, 0.5])
    predicted = Model(np.asarray([0.5, 0.5]), confusion, weighted=True).predict(a)
    half, full = 0.9**0.5 / (0.9**0.5 + 0.2**0.5), 0.9 / 1.1
    np.testing.assert_allclose(predicted[:, 0], [half, full])


def test_shares_of_nobody_are_the_base_rate():
    a = make([0, 0], [0, 1], [0, 1], K=2)
    rate = np.asarray([0.3, 0.7])
    predicted = Counts(lambda c: np.asarray([0.0, 0.0]), rate, prior=0).predict(a)
    np.testing.assert_array_equal(predicted, [rate, rate])


def test_votes_that_are_added_up_stand_beside_one_prior_of_weight_two():
    a = make([0, 0, 0], [0, 1, 2], [0, 1, 1])
    worth = np.asarray([1.0, 2.0, 3.0])
    reader = Counts(lambda rows: worth[rows.annotator], np.asarray([0.5, 0.5]))
    np.testing.assert_allclose(reader.predict(a)[0], [0.5 / 6, 5.5 / 6])
    np.testing.assert_allclose(reader.spread(a), [1 / 6 / 2, 1 / 5 / 2, 1 / 4 / 2])


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_votes_may_stray_as_far_as_the_learned_crowd_without_the_annotation_doubts(soft):
    a, fit = fitted("learned crowd", soft)
    assert isinstance(fit.reader, Readings)
    learned, spread = fit.reader.crowd, fit.reader.spread(a)
    for q in range(0, len(a.item), 17):
        votes = learned.votes(a.rows(np.arange(len(a.item)) != q))
        counts = alpha(votes.rows(a.item[q]), prior_weight=learned.prior_weight)
        assert spread[q] == pytest.approx(1 / counts.sum(), rel=1e-9)


@pytest.mark.parametrize("people", [2, 3, 4], ids="{} people".format)
def test_few_people_would_say_what_their_confusions_say_however_many_the_labels(people):
    rng = np.random.default_rng(people)
    a = crowd(rng, M=people, R=40, K=3)
    model = Model(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), (people, 3)))
    truth, own = model.predict(a), model.predict_own(a, a)
    for q, m in enumerate(a.annotator):
        np.testing.assert_allclose(own[q], truth[q] @ model.confusion[m], atol=1e-12)


def test_what_an_annotator_never_says_matters_only_where_it_is_said():
    a = make([0, 0], [0, 1], [[1.0, 0.0], [1.0, 0.0]])
    model = Model(np.asarray([0.5, 0.5]), np.asarray([[[1.0, 0.0], [0.5, 0.5]]] * 2))
    np.testing.assert_allclose(model.predict(a), [[2 / 3, 1 / 3]] * 2)


def test_the_majority_of_the_others_shares_ties():
    a = make([0, 0, 0], [0, 1, 2], [0, 1, 1], K=2)
    predicted = Counts(lambda c: np.ones(3), np.asarray([0.5, 0.5]), 0, winner=True)
    np.testing.assert_array_equal(predicted.predict(a), [[0, 1], [0.5, 0.5], [0.5, 0.5]])


def test_habits_of_certain_predictions_are_counted():
    a = make([0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 1, 1], K=2)
    predicted = np.eye(2)[[0, 0, 0, 1]]
    habits = crowd_habits(predicted, a)
    np.testing.assert_allclose(habits, [[1.9 / 4, 2.1 / 4], [0.1 / 2, 1.9 / 2]])
    own = own_habits(predicted, a, habits)
    first = (np.asarray([1, 1]) + 10 * habits[0]) / 12
    np.testing.assert_allclose(own[0], [first, habits[1]])


def own_habits_one_by_one(P, a, crowd):
    habits = np.tile(crowd, (len(a.annotators), 1, 1))
    for _ in range(100):
        counts = np.tile(10 * crowd, (len(a.annotators), 1, 1))
        for p, m, y in zip(P, a.annotator, a.vectors, strict=True):
            for label in np.flatnonzero(y):
                told = p * habits[m, :, label]
                counts[m, :, label] += y[label] * told / told.sum()
        before, habits = habits, counts / counts.sum(axis=2, keepdims=True)
        if np.abs(habits - before).max() < 1e-4:
            break
    return habits


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_own_habits_are_those_of_em_that_looks_at_every_label_of_everybody(soft, prior):
    rng = np.random.default_rng(8)
    # Most never say most of the labels, and somebody says nothing.
    y = rng.dirichlet(np.full(6, 0.3), 90) if soft else rng.integers(0, 6, 90) * 7 % 6
    a = make(rng.integers(0, 30, 90), rng.integers(0, 8, 90) + 1, y, K=6)
    counts = Counts(lambda c: np.ones(len(c.item)), rng.dirichlet(np.ones(6)), prior)
    P = counts.predict(a)
    expected = own_habits_one_by_one(P, a, crowd_habits(P, a))
    np.testing.assert_allclose(own_habits(P, a, crowd_habits(P, a)), expected, atol=1e-12)
    each = np.einsum("qk,qkl->ql", P, expected[a.annotator])
    np.testing.assert_allclose(counts.predict_own(a, a), each, atol=1e-12)


def test_habits_come_back_from_a_crowd_that_has_them():
    rng = np.random.default_rng(1)
    R, H = 40_000, np.asarray([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.0, 0.3, 0.7]])
    P = rng.dirichlet([0.3, 0.3, 0.3], R)
    truth = np.asarray([rng.choice(3, p=p) for p in P])
    y = np.asarray([rng.choice(3, p=H[t]) for t in truth])
    found = crowd_habits(P, make(np.arange(R), np.zeros(R), y, K=3))
    # The error of a cell is about sqrt(.25 / 13000) = .004, more where P is vague.
    np.testing.assert_allclose(found, H, atol=0.03)


def test_what_nobody_expected_teaches_no_habit():
    a, predicted = make([0], [0], [1], K=2), np.asarray([[1.0, 0.0]])
    np.testing.assert_array_equal(own_habits(predicted, a, np.eye(2))[0], np.eye(2))
    seen = Seen.of([predicted], a.y, np.ones(1))
    np.testing.assert_array_equal(learn_habits(np.eye(2), seen, 1e-4), np.eye(2))


def test_where_nothing_was_seen_habits_are_nine_in_ten_right_and_slips_alike():
    pointing_to_the_first = np.tile([1.0, 0, 0, 0], (2, 1))
    habits = crowd_habits(pointing_to_the_first, make([0, 0], [0, 1], [0, 0], K=4))
    slip = 0.1 / 3
    expected = np.full((4, 4), slip) + np.eye(4) * (0.9 - slip)
    np.testing.assert_allclose(habits[1:], expected[1:])


def test_scores_are_those_of_the_metrics_module():
    c = confident(np.random.default_rng(3), N=40, R=200)
    train, test = (c.rows(c.item % 2 == k) for k in (0, 1))
    fit = methods_for(train)["SLE, one count each"](Learner(train))
    held_out = HeldOut(test, halves(test, np.random.default_rng(0)))
    sums = score(predict(fit, train, held_out), held_out)
    votes, direct, own, _, brier, agreement, *_ = sums
    each = metrics.held_out_log_loss(
        test.item, test.y, 1 / 3, n_labels=3, base_rate=Learner(train).base_rate, each=True
    )
    several = np.bincount(test.item, minlength=40) > 1
    expected = np.bincount(test.item, np.nan_to_num(each), 40)
    np.testing.assert_allclose(votes[several], expected[several], atol=1e-12)
    np.testing.assert_array_equal(direct, votes)
    n = np.bincount(test.item, minlength=40)
    assert np.all((brier >= 0) & (brier <= 2 * n))
    assert np.all((agreement >= 0) & (agreement <= n))
    assert np.all(own[n > 0] > 0)


def test_the_learned_crowd_is_scored_as_its_readings_say():
    a = once(crowd(np.random.default_rng(5), N=40, R=250))
    row = compare(a, methods=["learned crowd"], folds=2, bootstrap=10).rows[0]
    fold, votes, own = _deal(a, 2, np.random.default_rng(0)), [], []
    for f in (0, 1):
        train, test = (a.rows(keep[a.item]) for keep in (fold != f, fold == f))
        learned, q = learn_crowd(train), np.arange(len(test.item))
        votes.extend(learned.predict(test)[q, test.y])
        own.extend(learned.predict_own(test)[q, test.y])
    assert row["votes"] == pytest.approx(-np.mean(np.log(votes)), abs=1e-12)
    assert row["own"] == pytest.approx(-np.mean(np.log(own)), abs=1e-12)


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


def skilled(rng, N=150, M=12):
    """Half of the annotators are right, the others guess."""
    truth = rng.integers(0, 2, N)
    item, annotator = np.divmod(np.arange(N * M), M)
    y = np.where((annotator < M // 2), truth[item], rng.integers(0, 2, N * M))
    return make(item, annotator, y, K=2), truth


def rows_of(comparison: Comparison) -> list[dict[str, Any]]:
    """Its rows; which scores they have depends on what was compared."""
    return cast(Any, comparison.rows)


def test_the_best_is_marked_where_the_intervals_say_so_and_only_there():
    a, truth = skilled(np.random.default_rng(0))
    found = compare(
        a, gold=truth, methods=["soft votes", "SLE, kappa", "Dawid-Skene", "learned crowd"]
    )
    by_name = {row["method"]: row for row in rows_of(found)}
    assert by_name["soft votes"]["behind_low"] > 0
    assert found.rows[0]["behind"] == 0
    rows = rows_of(found)
    for row in rows:
        assert row["votes_low"] <= row["votes"] <= row["votes_high"]
        assert row["best"] == (row is rows[0] and all(r["behind_low"] > 0 for r in rows[1:]))
    # The same method under two names cannot be told apart.
    same = compare(a, methods=["SLE, agreement", "SLE, Dawid-Skene"], bootstrap=0)
    assert not any(row["best"] or row["best_own"] for row in same.rows)
    assert by_name["learned crowd"]["accuracy"] > 0.99


def test_what_is_true_is_scored_by_how_probable_it_was_and_who_is_too_sure_shows():
    a, truth = skilled(np.random.default_rng(0))
    names = ["majority vote", "Dawid-Skene", "SLE, kappa", "learned crowd"]
    found = compare(a, gold=truth, methods=names, folds=2, bootstrap=200)
    known = methods_for(a)
    rows = rows_of(found)
    for row in rows:
        p = known[row["method"]](Learner(a)).target.probability
        with np.errstate(divide="ignore"):
            expected = -np.log(p[np.arange(len(p)), truth]).mean()
        assert row["truth"] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert row["truth_low"] <= row["truth"] <= row["truth_high"]
        assert row["too_sure"] == pytest.approx(p.max(axis=1).mean() - row["accuracy"])
    assert sum(row["best_truth"] for row in rows) <= 1
    assert "predicting what is true" in str(found)
    assert "log-loss of truth" in str(found)
    assert "truth" not in compare(a, methods=names, folds=2, bootstrap=0).rows[0]


def test_a_star_for_truth_needs_somebody_to_be_better_than():
    a, truth = skilled(np.random.default_rng(0))
    alone = compare(a, gold=truth, methods=["learned crowd"], folds=2, bootstrap=50)
    assert not rows_of(alone)[0]["best_truth"]
    wrong = compare(a, gold=truth, methods=["soft votes", "learned crowd"], folds=2, bootstrap=200)
    starred = [row["method"] for row in rows_of(wrong) if row["best_truth"]]
    assert starred == ["learned crowd"]
    assert "Best at predicting what is true: learned crowd (*)." in str(wrong)


@pytest.mark.parametrize(("lost", "best"), [(0, True), (24, True), (26, False), (400, False)])
def test_the_star_is_for_those_who_are_ahead_in_97_5_of_100_resamples(lost, best):
    drawn = np.tile([1.0, 0.0, 2.0], (1000, 1))
    drawn[:lost, 1] = 1.5  # behind the first of the others, ahead of the second
    found = Resampled(np.asarray([1.0, 0.0, 2.0]), drawn)
    assert found.best(1) is best
    assert not found.best(0)


def test_a_lead_that_other_items_may_turn_earns_no_star():
    a, _ = skilled(np.random.default_rng(3), N=12)
    first, second = rows_of(compare(a, methods=["SLE, kappa", "SLE, agreement"]))
    assert second["behind_low"] < 0 < second["behind"]
    assert not first["best"]


def test_identical_methods_are_not_told_apart():
    # Where everybody agrees, every reliability is one.
    item, annotator = np.divmod(np.arange(60), 3)
    a = make(item, annotator, item % 2)
    found = compare(a, methods=["SLE, agreement", "SLE, full trust"], bootstrap=50)
    assert not found.rows[0]["best"]
    assert "Not told apart from" in str(found)
    alone = compare(a, methods=["SLE, agreement"], bootstrap=50)
    assert not alone.rows[0]["best"]
    assert "nothing else was compared" in str(alone)


def test_intervals_are_those_of_the_mean_over_items():
    a, _ = skilled(np.random.default_rng(1), N=400)
    (row,) = rows_of(compare(a, methods=["SLE, one count each"], bootstrap=2000))
    # The standard error of a ratio of sums over items, written another way.
    rate = Learner(a).base_rate
    each = metrics.held_out_log_loss(a.item, a.y, 1 / 3, n_labels=2, base_rate=rate, each=True)
    error = np.std(each.reshape(400, 12).mean(axis=1)) / math.sqrt(400)
    assert row["votes_high"] - row["votes_low"] == pytest.approx(2 * 1.96 * error, rel=0.12)


def test_losses_are_infinite_where_what_was_said_got_no_chance():
    a, _ = skilled(np.random.default_rng(1), N=50)
    (row,) = rows_of(compare(a, methods=["majority vote"], bootstrap=20))
    assert math.isinf(row["direct"])
    assert math.isinf(row["direct_low"])
    assert row["votes"] < 1
    two = compare(a, methods=["majority vote", "soft votes"], bootstrap=20)
    assert "inf" in str(two)


def test_gold_comes_as_names_codes_or_a_soft_truth():
    a, truth = skilled(np.random.default_rng(0), N=40)
    a = replace(a, labels=np.asarray(["no", "yes"], dtype=object))
    T = np.eye(2)[truth]
    how: dict[str, Any] = {"methods": ["soft votes", "SLE, kappa"], "bootstrap": 5}
    named = compare(a, gold={n: ["no", "yes"][t] for n, t in enumerate(truth)}, **how)
    for given in (truth, T):
        found = rows_of(compare(a, gold=given, **how))
        assert found[0]["accuracy"] == rows_of(named)[0]["accuracy"]
    assert "jsd" not in named.rows[0]
    soft = 0.8 * T + 0.1
    soft[:7] = np.nan
    (row,) = rows_of(compare(a, gold=soft, methods=["SLE, kappa"], bootstrap=5))
    kappa = aggregate.as_reliability(aggregate.pairwise_kappa(a)).reliability
    found = aggregate.sle(a, reliability=kappa, base_rate=Learner(a).base_rate).probability[7:]
    assert row["jsd"] == pytest.approx(metrics.jsd(soft[7:], found, root=True).mean())
    assert row["nes"] == pytest.approx(metrics.entropy_similarity(soft[7:], found))
    assert "JSD" in str(compare(a, gold=soft, **how))


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


def real(load):
    try:
        return load()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


@pytest.mark.slow
def test_rte_comes_out_as_in_the_trial():
    c = real(rte)
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
    c = real(uds_factuality)
    names = ["SLE, one count each", "SLE, kappa", "SLE, stated confidence", "Dawid-Skene"]
    found = compare(c.annotations, methods=names, bootstrap=50)
    by_name = {row["method"]: row for row in rows_of(found)}
    trial = dict(zip(names, (0.503, 0.452, 0.643, 0.462), strict=True))
    for name, loss in trial.items():
        assert by_name[name]["votes"] == pytest.approx(loss, abs=0.01), name
    assert by_name["Dawid-Skene"]["own"] == pytest.approx(0.42, abs=0.01)
    assert by_name["Dawid-Skene"]["direct"] == pytest.approx(0.573, abs=0.01)


def test_there_are_as_many_encodings_as_the_documents_say():
    crowd = digits_crowd(rng=0)
    a = replace(crowd.annotations, stated=crowd.annotations.confidence)
    nobody = np.asarray(["anonymous"], dtype=object)

    def count(a, *, sure=False, told_apart=True):
        a = a if told_apart else replace(a, annotator=0 * a.annotator, annotators=nobody)
        a = replace(a, stated=None, uncertainty=0 * a.uncertainty) if sure else a
        return len(methods_for(a))

    words = (
        f"{count(a, sure=True)} where annotators are told apart, {count(a)} with stated "
        f"confidence, {count(a.completed(crowd.reliability))} with a column of reliability too, "
        f"and {count(a, sure=True, told_apart=False)} ({count(a, told_apart=False)} with "
        "confidence)"
    )
    root = Path(__file__).parents[1]
    assert words in " ".join((root / "docs" / "comparison.md").read_text(encoding="utf-8").split())
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert f"{count(a)} encodings on held-out votes" in readme


def large_crowd(rng: np.random.Generator, *, rare: int = 0) -> Annotations:
    """2,000 items with three annotations each by ten people, and some by others who are rare."""
    N, M, K = 2000, 10, 3
    item = np.repeat(np.arange(N), 3)
    annotator = np.concatenate([rng.choice(M, 3, replace=False) for _ in range(N)])
    for m in range(rare):
        annotator[3 * m] = M + m
    truth = rng.integers(0, K, N)
    y = np.where(rng.random(len(item)) < 0.7, truth[item], rng.integers(0, K, len(item)))
    names = np.arange(N), np.arange(M + rare), np.arange(K)
    return Annotations(item, annotator, y, np.zeros(len(item)), *names)


def test_of_many_annotations_about_so_many_are_compared_on():
    a = large_crowd(np.random.default_rng(0))
    found = compare(a, methods=["soft votes", "MACE"], max_annotations=900, bootstrap=10)
    assert any("Raise max_annotations to compare on more" in note for note in found.notes)
    assert any(
        re.search(r"compared on [23]\d\d items of 2,000, drawn by lot: of 6,000", note)
        for note in found.notes
    )
    assert 700 < found.about.scored < 1100
    every = compare(a, methods=["soft votes", "MACE"], bootstrap=10)
    assert every.about.scored == 6000
    assert not any("drawn by lot" in note for note in every.notes)
    votes = {row["method"]: row["votes"] for row in every.rows}
    for row in found.rows:
        assert row["votes"] == pytest.approx(votes[row["method"]], abs=0.05)


def test_items_that_only_teach_or_have_a_known_truth_are_not_scored_for_votes():
    a = large_crowd(np.random.default_rng(1), rare=40)
    gold = np.full(len(a.items), -1)
    gold[1900:] = np.argmax(a.sums()[1900:], axis=1)
    everything = whole(a, as_truth(a, gold), None)
    part, _ = drawn(everything, 600, np.random.default_rng(2))
    b = part.annotations
    assert np.all(np.bincount(b.annotator, minlength=50)[10:] == 1)  # Who is rare is there.
    known = ~np.isnan(present(part.truth)).any(axis=1)
    assert known.sum() == 100  # All gold items, of so few.
    assert part.scored.sum() < 300
    assert (known & ~part.scored).any()
    assert set(b.items[known].tolist()) == set(range(1900, 2000))


def test_of_many_gold_items_about_so_many_are_asked_for_their_truth():
    a = large_crowd(np.random.default_rng(1))
    everything = whole(a, as_truth(a, np.argmax(a.sums(), axis=1)), None)
    part, _ = drawn(everything, 600, np.random.default_rng(2))
    known = ~np.isnan(present(part.truth)).any(axis=1)
    assert 150 < known.sum() < 250
    np.testing.assert_array_equal(known, part.scored)


@pytest.mark.parametrize("seed", range(10))
def test_gold_items_with_no_more_annotations_than_asked_for_are_all_there(seed):
    a = make([0, 1, 1, 2, 2], [0, 0, 1, 0, 1], [0, 1, 1, 0, 1], K=2)
    everything = whole(a, as_truth(a, np.asarray([0, -1, -1])), None)
    part, _ = drawn(everything, 1, np.random.default_rng(seed))
    known = ~np.isnan(present(part.truth)).any(axis=1)
    assert part.annotations.items[known].tolist() == [0]


def test_questions_about_one_item_are_drawn_together():
    a = large_crowd(np.random.default_rng(1))
    sets = np.repeat(np.arange(500), 4)
    part, _ = drawn(whole(a, None, sets), 600, np.random.default_rng(2))
    scored = np.unique(present(part.sets)[part.scored], return_counts=True)[1]
    assert 30 < len(scored) < 75
    assert np.all(scored == 4)


def test_of_too_many_labels_methods_that_hold_confusions_are_left_out():
    a = large_crowd(np.random.default_rng(3))
    many = replace(a, labels=np.arange(101))
    out, known = methods.left_out(many), list(methods.methods_for(many))
    assert {"Dawid-Skene", "EBCC", "SLE, Dawid-Skene"} <= set(out)
    assert sorted(out + known) == sorted(methods.methods_for(a))
    few = many.of_items(np.arange(60))
    found = compare(few, folds=2, bootstrap=10)
    assert any(
        re.search(r"left out are Dawid-Skene, .* each of 10 annotators .* 101 labels", note)
        for note in found.notes
    )
    with pytest.raises(ValueError, match=r"'EBCC' came\. .* some at most 100 labels"):
        compare(few, methods=["EBCC"])


def test_at_least_one_annotation_is_compared_on():
    with pytest.raises(ValueError, match=r"`max_annotations` must be a whole number of at least 1"):
        compare(large_crowd(np.random.default_rng(0)), max_annotations=0)


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_one_habit_maximises_how_likely_votes_are(soft: bool) -> None:
    rng = np.random.default_rng(5)
    a = crowd(rng, N=60, R=500, M=4, K=3, soft=soft)
    P = rng.dirichlet(np.full(3, 0.3), len(a.item))
    found = learn_one_habit(P, a)
    c = np.linspace(0, 1, 2001)[1:-1, None]

    def highest(rows: Any, expected: float, strength: float) -> float:
        y = a.vectors[rows]
        chance = c[..., None] * P[rows] + (1 - c[..., None]) * found.base_rate
        held = strength * (expected * np.log(c) + (1 - expected) * np.log(1 - c))[:, 0]
        return float(c[np.argmax(np.sum(y * np.log(chance), axis=(1, 2)) + held), 0])

    of_crowd = highest(slice(None), 0.9, 1.0)
    assert found.follows[-1] == pytest.approx(of_crowd, abs=5e-3)
    for m in range(4):
        expected = highest(a.annotator == m, float(found.follows[-1]), 10.0)
        assert found.follows[m] == pytest.approx(expected, abs=5e-3)
    c = found.follows[a.annotator][:, None]
    said = found.said(P, a.annotator)
    np.testing.assert_allclose(said, c * P + (1 - c) * found.base_rate, rtol=1e-12)
    np.testing.assert_allclose(found.said(P).sum(axis=1), 1, rtol=1e-12)


def test_of_too_many_labels_one_habit_is_learned_of_each_annotator() -> None:
    a = large_crowd(np.random.default_rng(3)).of_items(np.arange(200))
    many = replace(a, labels=np.arange(101))
    fit = methods_for(many)["soft votes"](Learner(many))
    held_out = HeldOut(many, halves(many, np.random.default_rng(0)))
    found, P = predict(fit, many, held_out), fit.reader.predict(many)
    habit = learn_one_habit(P, many)
    np.testing.assert_array_equal(found.votes, habit.said(P))
    np.testing.assert_array_equal(found.own, habit.said(P, many.annotator))
    assert np.all(found.votes > 0)  # No vote is impossible.
