"""A pool of methods: chosen on items that neither it nor its members have seen, and averaged."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from crowds import crowd, make, once

from slencodings.evaluation import compare, methods
from slencodings.evaluation.held_out import _deal
from slencodings.evaluation.learner import Encoding, Fitted, Learner
from slencodings.evaluation.methods import methods_for, pooled
from slencodings.evaluation.pool import (
    NAME,
    Weights,
    choose,
    choose_by_fold,
    pairs,
    pool,
    pool_targets,
)
from slencodings.evaluation.predicted import HeldOut, Predicted, halves, predict
from slencodings.opinion import Floats


def opinionated(seed=0, N=60):
    """A crowd that mostly agrees, so that there is something to predict."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, N)
    item, annotator = np.divmod(np.arange(N * 6), 6)
    y = np.where(rng.random(N * 6) < 0.7, truth[item], rng.integers(0, 3, N * 6))
    return make(item, annotator, y, K=3)


class Memory(NamedTuple):
    """A leak: it knows by heart what it was shown, and nothing else."""

    seen: dict[tuple[int, int], int]

    def predict(self, annotations: Any) -> Floats:
        P = np.full((len(annotations.item), 3), 1 / 3)
        for q, pair in enumerate(zip(annotations.item, annotations.annotator, strict=True)):
            if pair in self.seen:
                P[q] = np.where(np.arange(3) == self.seen[pair], 0.98, 0.01)
        return P

    def spread(self, annotations: Any) -> Floats:
        return np.zeros(len(annotations.item))

    def predict_own(self, train: Any, test: Any) -> Floats:
        return self.predict(test)


def memory(c: Learner) -> Fitted:
    a = c.sure
    seen = dict(zip(zip(a.item, a.annotator, strict=True), a.y, strict=True))
    return Fitted(Memory(seen), False, Encoding(np.full((len(a.items), 3), 1 / 3)))


def test_who_only_remembers_is_not_chosen():
    a = opinionated()
    candidates = {"soft votes": methods._soft, "memory": memory}
    everything = HeldOut(a, halves(a, np.random.default_rng(0)))
    fold = _deal(a, 5, np.random.default_rng(0))
    for weights in choose_by_fold(candidates, everything, fold).weights:
        np.testing.assert_array_equal(weights, [[1, 0], [1, 0]])
    # The test can tell: chosen on items that the members have learned from, memory takes it all.
    learner = Learner(a)
    leaked = choose([predict(m(learner), a, everything) for m in candidates.values()], everything)
    np.testing.assert_array_equal(leaked, [[0, 1], [0, 1]])


def test_a_leak_does_not_reach_the_scores(monkeypatch):
    known = {"soft votes": methods._soft, "memory": memory}
    monkeypatch.setattr("slencodings.evaluation.held_out.methods_for", lambda a: known)
    monkeypatch.setattr("slencodings.evaluation.held_out.pooled", lambda a: list(known))
    found = compare(opinionated(), bootstrap=5)
    rows: dict[str, Any] = {row["method"]: row for row in found.rows}
    for what in ("votes", "direct", "own", "joint", "brier", "agreement"):
        assert rows[NAME][what] == pytest.approx(rows["soft votes"][what], abs=1e-12), what
    assert rows["memory"]["votes"] == pytest.approx(math.log(3))
    assert "pool of methods: soft votes 100%" in found.notes


@pytest.mark.parametrize("folds", [3, 4, 5])
def test_what_is_said_of_a_fold_has_no_part_in_its_weights(folds):
    a = opinionated(1)
    known = methods_for(a)
    candidates = {name: known[name] for name in ("soft votes", "SLE, kappa", "MACE")}
    given, fold = halves(a, np.random.default_rng(0)), _deal(a, folds, np.random.default_rng(0))
    weights = choose_by_fold(candidates, HeldOut(a, given), fold).weights
    assert len(weights) == folds
    moved = 0
    for f in range(folds):
        y = np.where(fold[a.item] == f, np.random.default_rng(f).integers(0, 3, len(a.y)), a.y)
        changed = HeldOut(make(a.item, a.annotator, y, K=3), given)
        other = choose_by_fold(candidates, changed, fold).weights
        np.testing.assert_array_equal(other[f], weights[f])
        moved += sum(not np.array_equal(x, w) for x, w in zip(other, weights, strict=True))
    assert moved, "the weights of other folds do depend on it"


@pytest.mark.parametrize("is_pooled", [True, False])
def test_a_fold_goes_on_from_learners_that_have_not_seen_it(is_pooled):
    a = opinionated(2)
    fold = _deal(a, 5, np.random.default_rng(0))
    candidates = {"MACE": methods_for(a)["MACE"]} if is_pooled else {}
    chosen = choose_by_fold(candidates, HeldOut(a, halves(a, np.random.default_rng(0))), fold)
    for f, learner in enumerate(chosen.learners):
        assert learner is not None
        assert f not in fold[learner.annotations.item]
        train = a.rows((fold != f)[a.item])
        cold, warm = Learner(train).mace, Learner(train, like=learner).mace
        assert len(warm.details["log_likelihood"]) == 1
        np.testing.assert_allclose(warm.probability, cold.probability, atol=0.02)


def test_what_is_learned_for_a_row_is_the_same_whether_or_not_others_are_pooled():
    a, names = opinionated(3, N=40), ["MACE", "learned crowd"]
    alone, beside = (
        compare(a, methods=some, folds=3, bootstrap=5).rows for some in (names, [*names, NAME])
    )
    pooled_too = {row["method"]: row for row in beside}
    for row in alone:
        assert row["votes"] == pooled_too[row["method"]]["votes"]


def test_every_fold_is_left_out_with_another_one():
    for folds in range(3, 9):
        left_out = pairs(folds)
        assert all(f != g for f, g in left_out)
        assert {f for pair in left_out for f in pair} == set(range(folds))
        assert len(left_out) == math.ceil(folds / 2)


def test_with_two_folds_there_is_nothing_to_choose_on():
    a = opinionated()
    names = ["soft votes", "MACE"]
    candidates = {name: methods_for(a)[name] for name in names}
    everything = HeldOut(a, halves(a, np.random.default_rng(0)))
    fold = _deal(a, 2, np.random.default_rng(0))
    weights = choose_by_fold(candidates, everything, fold).weights
    np.testing.assert_array_equal(weights, np.full((2, 2, 2), 0.5))
    note = next(n for n in compare(a, methods=[NAME], folds=2, bootstrap=0).notes if NAME in n)
    assert note.count("14%") == len(pooled(a)) == 7


def said(votes, own=None, joint=(0.0,)):
    votes = np.asarray(votes)
    return Predicted(votes, votes, votes if own is None else np.asarray(own), np.asarray(joint))


def test_members_are_added_while_they_help_and_may_be_added_again():
    a = make([0, 0, 0], [0, 1, 2], [0, 0, 1], K=2)
    sure, unsure, wrong = ([[p, 1 - p]] * 3 for p in (0.9, 0.3, 0.1))
    weights = choose([said(sure), said(unsure), said(wrong)], HeldOut(a, np.zeros(3, dtype=bool)))
    # Two of three votes are for the first label: of all mixtures of five, that is nearest .66.
    tried = {
        (i, j, k): (0.9 * i + 0.3 * j + 0.1 * k) / (i + j + k)
        for i in range(6) for j in range(6) for k in range(6) if 0 < i + j + k <= 5
    }  # fmt: skip
    loss = {t: -2 * math.log(p) - math.log(1 - p) for t, p in tried.items()}
    mixed = float(weights.votes @ np.asarray([0.9, 0.3, 0.1]))
    assert -2 * math.log(mixed) - math.log(1 - mixed) <= min(loss.values()) + 0.01
    assert weights.votes[0] > 0.5
    np.testing.assert_array_equal(weights.votes, weights.own)


def test_for_this_annotator_others_may_be_chosen():
    a = make([0, 0], [0, 1], [0, 1], K=2)
    good, bad = [[0.8, 0.2], [0.2, 0.8]], [[0.2, 0.8], [0.8, 0.2]]
    weights = choose([said(good, bad), said(bad, good)], HeldOut(a, np.zeros(2, dtype=bool)))
    np.testing.assert_array_equal(weights, [[1, 0], [0, 1]])


def test_a_pool_averages_chances_of_one_vote_and_of_several_together():
    rng = np.random.default_rng(0)

    def member() -> Predicted:
        votes, direct, own = rng.dirichlet(np.ones(3), (3, 4))
        return Predicted(votes, direct, own, rng.uniform(0, 3, 5))

    members = [member() for _ in range(3)]
    weights = Weights(np.asarray([0.2, 0.0, 0.8]), np.asarray([0.0, 0.6, 0.4]))
    made = pool(members, weights)
    for q in range(4):
        for k in range(3):
            votes = 0.2 * members[0].votes[q, k] + 0.8 * members[2].votes[q, k]
            direct = 0.2 * members[0].direct[q, k] + 0.8 * members[2].direct[q, k]
            own = 0.6 * members[1].own[q, k] + 0.4 * members[2].own[q, k]
            found = made.votes[q, k], made.direct[q, k], made.own[q, k]
            assert found == pytest.approx((votes, direct, own), abs=1e-15)
    for i in range(5):
        chance = 0.2 * math.exp(-members[0].joint[i]) + 0.8 * math.exp(-members[2].joint[i])
        assert made.joint[i] == pytest.approx(-math.log(chance), abs=1e-12)
    impossible = pool([said([[1.0]], joint=[np.inf])] * 2, Weights(*np.full((2, 2), 0.5)))
    assert np.isinf(impossible.joint[0])


def test_what_a_pool_takes_for_true_is_the_mean_of_its_members():
    one, two = (Encoding(np.asarray([[p, 1 - p]])) for p in (0.9, 0.5))
    weights = [Weights(np.asarray([1.0, 0.0]), np.zeros(2)), Weights(np.full(2, 0.5), np.zeros(2))]
    made = pool_targets({"one": one, "two": two._replace(converged=False)}, weights)
    np.testing.assert_allclose(made.probability, [[0.8, 0.2]])
    assert made.notes == ("one 75%; two 25%",)
    assert (made.converged, made.doubts) == (False, True)
    alone = pool_targets({"one": one, "two": two._replace(converged=False)}, weights[:1])
    assert alone.converged


def test_a_pool_is_the_same_whether_its_members_have_rows_or_not():
    a = once(crowd(np.random.default_rng(2), N=40, R=200))
    alone = compare(a, methods=[NAME], folds=3, bootstrap=5)
    beside = compare(a, methods=["soft votes", NAME, "SLE, kappa"], folds=3, bootstrap=5)
    assert [row["method"] for row in alone.rows] == [NAME]
    same = next(row for row in beside.rows if row["method"] == NAME)
    for what in ("votes", "own", "joint"):
        assert alone.rows[0][what] == same[what]
    assert len(beside.rows) == 3


def test_fits_to_choose_by_are_counted_too():
    told: list[tuple[int, int, str]] = []
    a = opinionated(N=12)
    compare(a, methods=[NAME], bootstrap=0, progress=lambda *x: told.append(x))
    # Of 7 candidates: three pairs of folds, five folds, and everything.
    assert [(done, total) for done, total, _ in told] == [(n, 63) for n in range(63)]
