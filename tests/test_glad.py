from dataclasses import replace

import numpy as np
import pytest
from crowds import (
    accuracy,
    assert_is_aggregate,
    crowd,
    make,
    odd_crowds,
    of,
    one_item,
    oracles,
    rte,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit
from strategies import one_in, present, seeds

from slencodings.aggregate import sle
from slencodings.aggregate.glad import glad


@oracles
def test_glad_climbs_where_crowd_kit_climbs(oracle):
    """Another way up, so the summit is compared, to what their line search leaves."""
    theirs = oracle["glad"]
    got = glad(of(oracle), tol=1e-9, n_iter=2000)
    assert got.details["converged"]
    np.testing.assert_allclose(got.probability, theirs["probability"], rtol=0, atol=1e-7)
    np.testing.assert_allclose(got.details["ability"], theirs["ability"], rtol=0, atol=1e-7)
    np.testing.assert_allclose(np.log(got.details["ease"]), theirs["log_ease"], rtol=0, atol=1e-7)


def log_posterior(a, ability, log_ease, known):
    """Item by item, label by label."""
    K = len(a.labels)
    total = -np.sum((ability - 1) ** 2) / 2 - np.sum((log_ease - 1) ** 2) / 2
    for i in range(len(a.items)):
        joint = np.full(K, -np.log(K))
        for q in np.flatnonzero(a.item == i):
            right = expit(ability[a.annotator[q]] * np.exp(log_ease[i]))
            for t in range(K):
                p = np.where(np.arange(K) == t, right, (1 - right) / max(K - 1, 1))
                joint[t] += (1 - a.uncertainty[q]) * (a.vectors[q] @ np.log(p))
        total += joint[known[i]] if known[i] >= 0 else np.logaddexp.reduce(joint)
    return total


@one_in(3)
@given(seeds, st.booleans(), st.booleans())
def test_glad_finds_a_summit_of_what_it_says(rng, soft, unsure):
    a = crowd(rng, N=5, M=3, R=15, soft=soft, unsure=unsure)
    known = rng.choice([-1, -1, 0, 1], 5)
    got = glad(a, tol=1e-7, n_iter=1000, gold=known)
    x = np.concatenate([got.details["ability"], np.log(got.details["ease"])])

    def value(x):
        return log_posterior(a, x[:3], x[3:], known)

    assert got.details["converged"]
    assert got.details["log_posterior"] == pytest.approx(value(x), abs=1e-9)
    np.testing.assert_allclose(approx_fprime(x, value, 1e-6), 0, atol=1e-3)
    assert value(x) >= value(np.ones(8))


def test_no_other_optimiser_finds_more_from_the_same_start():
    a = crowd(np.random.default_rng(0), N=8, M=4, R=30)
    known = np.full(8, -1)
    found = minimize(
        lambda x: -log_posterior(a, x[:4], x[4:], known), np.ones(12), options={"gtol": 1e-4}
    )
    got = glad(a).details
    assert got["log_posterior"] == pytest.approx(-found.fun, abs=1e-5)


@odd_crowds
def test_odd_crowds_have_an_answer(a):  # trap 9
    got = glad(a)
    assert_is_aggregate(got, a)
    assert got.details["converged"]
    silent = a.sums(1 - a.uncertainty).sum(-1) == 0
    np.testing.assert_allclose(got.probability[silent], 1 / len(a.labels))
    np.testing.assert_allclose(got.details["ease"][silent], np.e)
    sle(a, reliability=got.reliability)


def test_a_hundred_thousand_annotations_of_one_item_do_not_vanish():
    a = one_item(M=1000)
    got = glad(a, n_iter=10)
    assert_is_aggregate(got, a)
    np.testing.assert_allclose(got.probability, [[0, 1, 0]], atol=1e-6)


def test_votes_in_endless_conflict_make_a_hard_item():
    R = 10**5
    got = glad(make(np.zeros(R, int), np.arange(R) % 100, np.arange(R) // 100 % 2))
    assert_is_aggregate(got, make(np.zeros(R, int), np.arange(R) % 100, np.zeros(R, int), K=2))
    assert got.details["ease"][0] < 0.1


def test_certain_soft_labels_are_labels_and_no_confidence_is_no_annotation():
    a = crowd(np.random.default_rng(1))
    plain = glad(a)
    soft = glad(replace(a, y=a.vectors))
    np.testing.assert_allclose(soft.probability, plain.probability, atol=1e-12)
    keep = a.annotator != 2
    less = glad(make(a.item[keep], a.annotator[keep], a.y[keep], N=12, M=5))
    silent = replace(a, uncertainty=1.0 * ~keep)
    np.testing.assert_allclose(glad(silent).probability, less.probability, atol=1e-12)
    loud = glad(silent, use_confidence=False)
    np.testing.assert_array_equal(loud.probability, plain.probability)


def test_the_able_and_the_easy_are_found():
    rng = np.random.default_rng(0)
    N, M = 300, 12
    truth, ability, hard = rng.integers(0, 2, N), np.linspace(0.2, 2, M), np.arange(N) % 2
    item, who = np.repeat(np.arange(N), M), np.tile(np.arange(M), N)
    right = expit(ability[who] * np.where(hard[item], 0.3, 4.0))
    y = np.where(rng.random(N * M) < right, truth[item], 1 - truth[item])
    got = glad(make(item, who, y))
    assert np.corrcoef(got.details["ability"], ability)[0, 1] > 0.8
    assert np.corrcoef(present(got.reliability), ability)[0, 1] > 0.8
    ease = np.log(got.details["ease"])
    assert ease[hard == 0].mean() > ease[hard == 1].mean() + 1


def test_gold_is_kept_and_turns_the_contrary_around():
    item, who = np.repeat(np.arange(30), 3), np.tile(np.arange(3), 30)
    truth = np.arange(30) % 2
    a = make(item, who, np.where(who == 0, truth[item], 1 - truth[item]))
    assert accuracy(glad(a).probability, truth) == 0
    got = glad(a, gold={i: int(truth[i]) for i in range(15)})
    assert accuracy(got.probability, truth) == 1
    assert (got.details["ability"] < 0).tolist() == [False, True, True]


def test_the_result_says_whether_it_converged():
    a = crowd(np.random.default_rng(0), N=50, R=300)
    got = glad(a, n_iter=2).details
    assert not got["converged"]
    assert got["iterations"] == 2
    assert glad(a).details["converged"]
    # Nothing is ever flatter than 0, however long it goes on.
    few = crowd(np.random.default_rng(0))
    assert not glad(few, tol=0, n_iter=500).details["converged"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"n_iter": 0}, r"`n_iter` must be a whole number of at least 1; 0 came"),
        ({"tol": -1}, r"`tol` must be a number of at least 0; -1 came"),
        ({"gold": [5]}, r"`gold` must be a position among the 1 labels"),
    ],
)
def test_settings_that_mean_nothing_are_refused(how, words):
    with pytest.raises(ValueError, match=words):
        glad(make([0], [0], [0]), **how)


def test_rte_is_better_than_the_majority():
    a, gold = rte()
    got = glad(a)
    assert got.details["converged"]
    assert 0.915 <= accuracy(got.probability, gold) <= 0.935
