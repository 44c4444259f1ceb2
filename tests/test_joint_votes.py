"""Several votes together as the score of doubt: who says how sure to be, and is right about it."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from crowds import crowd, make, once

from slencodings.evaluation import compare
from slencodings.evaluation.held_out import _deal
from slencodings.evaluation.learner import Encoding, Fitted, Learner
from slencodings.evaluation.methods import methods_for
from slencodings.evaluation.predicted import HeldOut, halves, predict, score
from slencodings.evaluation.predictors import Counts, crowd_habits
from slencodings.opinion import Floats
from slencodings.trust import learn_crowd


def test_half_of_the_votes_are_given_whatever_the_order_of_rows():
    a = once(crowd(np.random.default_rng(0), N=30, R=200))
    given = halves(a, np.random.default_rng(7))
    size, shown = np.bincount(a.item, minlength=30), np.bincount(a.item[given], minlength=30)
    np.testing.assert_array_equal(shown, size // 2)
    p = np.random.default_rng(1).permutation(len(a.item))
    np.testing.assert_array_equal(halves(a.rows(p), np.random.default_rng(7)), given[p])
    assert not np.array_equal(halves(a, np.random.default_rng(8)), given)


def urn(alpha: list[Fraction], votes: list[int]) -> float:
    """- log of the chance of votes one after the other, each of which is put back twice."""
    chance = Fraction(1)
    for vote in votes:
        chance *= alpha[vote] / sum(alpha)
        alpha = [x + (k == vote) for k, x in enumerate(alpha)]
    return -math.log(chance)


def test_votes_that_are_counted_are_scored_as_balls_from_an_urn():
    a = once(crowd(np.random.default_rng(3), N=40, R=220))
    row = compare(a, methods=["SLE, one count each"], folds=2, bootstrap=0).rows[0]
    rng = np.random.default_rng(0)
    fold, given, losses, scored = _deal(a, 2, rng), halves(a, rng), 0.0, 0
    for i in np.flatnonzero(fold >= 0):
        others = a.rows(fold[a.item] != fold[i])
        rate = (np.bincount(others.y, minlength=3) + 1 / 3) / (len(others.y) + 1)
        shown, asked = ([*a.y[(a.item == i) & (given == g)]] for g in (True, False))
        losses += urn([2 * Fraction(rate[k]) + shown.count(k) for k in range(3)], asked)
        scored += len(asked)
    assert row["joint"] == pytest.approx(losses / scored, abs=1e-9)
    assert row["doubts"]


def test_what_tells_no_doubt_is_scored_as_if_certain():
    a = once(crowd(np.random.default_rng(4), N=40, R=220))
    row = compare(a, methods=["soft votes"], folds=2, bootstrap=0).rows[0]
    rng = np.random.default_rng(0)
    fold, given, losses, scored = _deal(a, 2, rng), halves(a, rng), 0.0, 0
    for f in (0, 1):
        train = a.rows(fold[a.item] != f)
        soft = methods_for(a)["soft votes"](Learner(train))
        habits = crowd_habits(soft.reader.predict(train), train)
        for i in np.flatnonzero(fold == f):
            shown, asked = (a.y[(a.item == i) & (given == g)] for g in (True, False))
            P = np.bincount(shown, minlength=3) / len(shown) @ habits
            losses -= np.log(P[asked]).sum()
            scored += len(asked)
    assert row["joint"] == pytest.approx(losses / scored, abs=1e-9)
    assert not row["doubts"]


def test_the_learned_crowd_is_scored_by_its_opinion_on_votes():
    a = once(crowd(np.random.default_rng(5), N=40, R=250))
    row = compare(a, methods=["learned crowd"], folds=2, bootstrap=0).rows[0]
    rng = np.random.default_rng(0)
    fold, given, losses, scored = _deal(a, 2, rng), halves(a, rng), 0.0, 0
    for f in (0, 1):
        learned = learn_crowd(a.rows(fold[a.item] != f))
        b, u, base = learned.votes(a.rows(given))
        W = learned.prior_weight
        for i in np.flatnonzero(fold == f):
            alpha = W * (b[i] / u[i] + base[i])
            asked = a.y[(a.item == i) & ~given].tolist()
            losses += urn([Fraction(x) for x in alpha], asked)
            scored += len(asked)
    assert row["joint"] == pytest.approx(losses / scored, abs=1e-9)


class Tuned(NamedTuple):
    """The same probabilities with more or less doubt."""

    reader: Counts
    times: float

    def predict(self, annotations: Any) -> Floats:
        return self.reader.predict(annotations)

    def spread(self, annotations: Any) -> Floats:
        return self.times * self.reader.spread(annotations)

    def predict_own(self, train: Any, test: Any) -> Floats:
        return self.reader.predict_own(train, test)


def test_the_right_doubt_beats_the_same_probabilities_with_more_and_with_less():
    rng = np.random.default_rng(0)
    # Of every item a share for each label, from a Dirichlet of weight 2: one count each is right.
    share = rng.dirichlet([1.0, 0.6, 0.4], 1500)
    item = np.repeat(np.arange(1500), 8)
    y = (rng.random(len(item))[:, None] > np.cumsum(share, axis=1)[item]).sum(axis=1)
    a = make(item, np.tile(np.arange(8), 1500), y, K=3)
    held_out = HeldOut(a, halves(a, rng))
    reader = Counts(lambda c: np.full(len(c.item), 0.5), np.asarray([0.5, 0.3, 0.2]))
    losses = {}
    for times in (0.0, 0.25, 1.0, 4.0):
        fit = Fitted(Tuned(reader, times), False, Encoding(np.zeros((1500, 3))))
        losses[times] = score(predict(fit, a, held_out), held_out)[3]
    for times in (0.0, 0.25, 4.0):
        behind = losses[times] - losses[1.0]
        assert behind.mean() > 4 * behind.std() / math.sqrt(len(behind)), times


def test_joint_votes_have_a_column_a_star_and_paired_intervals_of_their_own():
    rng = np.random.default_rng(0)
    share = rng.dirichlet([1.0, 1.0], 300)
    item = np.repeat(np.arange(300), 10)
    y = (rng.random(3000) > share[item, 0]).astype(int)
    a = make(item, np.tile(np.arange(10), 300), y, K=2)
    names = ["SLE, one count each", "SLE, full trust", "soft votes"]
    found = compare(a, methods=names, bootstrap=200)
    rows: dict[str, Any] = {row["method"]: row for row in found.rows}
    best = rows["SLE, one count each"]
    assert (best["best_joint"], best["joint_behind"]) == (True, 0)
    for name in names[1:]:
        row = rows[name]
        assert row["joint_behind"] == pytest.approx(row["joint"] - best["joint"])
        assert 0 < row["joint_behind_low"] <= row["joint_behind"] <= row["joint_behind_high"]
    for row in rows.values():
        assert row["joint_low"] <= row["joint"] <= row["joint_high"]
    text = str(found)
    assert f"{best['joint']:.3f}*" in text
    assert f"({rows['soft votes']['joint']:.3f})" in text
    assert "Best at predicting several votes together: SLE, one count each (*)." in text
    assert "In brackets: tells no doubt, and is scored as if certain." in text
    with_doubt = str(compare(a, methods=names[:2], bootstrap=5))
    assert "In brackets" not in with_doubt


def test_one_vote_from_one_is_the_log_loss_of_a_vote():
    a = make([0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 0, 1], K=2)
    both = HeldOut(a, halves(a, np.random.default_rng(0)))
    sums = score(predict(methods_for(a)["SLE, full trust"](Learner(a)), a, both), both)
    # Each vote is predicted from the other, and here both get the same chance.
    np.testing.assert_allclose(sums[3][:2], sums[0][:2] / 2)


def test_soft_labels_are_not_counted():
    a = crowd(np.random.default_rng(2), N=30, R=120, soft=True)
    found = compare(a, methods=["soft votes", "SLE, full trust"], bootstrap=5)
    for row in found.rows:
        assert (row["joint"], row["joint_low"], row["joint_behind_low"]) == (None, None, None)
        assert not row["best_joint"]
    assert "joint" not in str(found)
    hard = compare(replace(a, y=a.y.argmax(axis=1)), methods=["soft votes"], bootstrap=5)
    assert "joint votes" in str(hard)
