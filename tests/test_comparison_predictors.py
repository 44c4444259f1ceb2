"""What a method predicts of an annotation is what the others said, and habits of saying it."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from comparing import NAMES, all_methods, large_crowd
from crowds import crowd, make
from strategies import present

from slencodings import alpha
from slencodings.evaluation import methods
from slencodings.evaluation.learner import Learner
from slencodings.evaluation.methods import methods_for
from slencodings.evaluation.own_habits import learn_one_habit
from slencodings.evaluation.predicted import HeldOut, halves, predict
from slencodings.evaluation.predictors import (
    Counts,
    Model,
    Readings,
    RightOrNot,
    crowd_habits,
    own_habits,
)
from slencodings.trust.truth import Seen, learn_habits

# By the other annotations


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


# Habits


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
    said = found.predict(P, a.annotator)
    np.testing.assert_allclose(said, c * P + (1 - c) * found.base_rate, rtol=1e-12)
    np.testing.assert_allclose(found.predict(P).sum(axis=1), 1, rtol=1e-12)


def test_of_too_many_labels_one_habit_is_learned_of_each_annotator() -> None:
    a = large_crowd(np.random.default_rng(3)).of_items(np.arange(200))
    many = replace(a, labels=np.arange(101))
    fit = methods_for(many)["soft votes"](Learner(many))
    held_out = HeldOut(many, halves(many, np.random.default_rng(0)))
    found, P = predict(fit, many, held_out), fit.reader.predict(many)
    habit = learn_one_habit(P, many)
    np.testing.assert_array_equal(found.votes, habit.predict(P))
    np.testing.assert_array_equal(found.own, habit.predict(P, many.annotator))
    assert np.all(found.votes > 0)  # No vote is impossible.
