import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import betabinom, multinomial
from strategies import seeds

from slencodings.evaluation.vote_counts import LEVELS, coverage, dirichlet_log_loss


def polya(votes, alpha):
    """The Dirichlet-multinomial chance of one sequence, by gamma functions."""
    A, n = alpha.sum(axis=1), votes.sum(axis=1)
    each = (gammaln(alpha + votes) - gammaln(alpha)).sum(axis=1)
    return gammaln(A) - gammaln(A + n) + each


@given(seeds, st.integers(2, 4))
def test_the_loss_of_an_items_votes_is_dirichlet_multinomial(rng, K):
    votes, alpha = rng.integers(0, 6, (12, K)), rng.uniform(0.1, 20, (12, K))
    A = alpha.sum(axis=1, keepdims=True)
    loss = dirichlet_log_loss(votes, alpha / A, 1 / A[:, 0])
    np.testing.assert_allclose(loss, -polya(votes, alpha), atol=1e-11)


def test_without_uncertainty_votes_are_independent_and_nothing_cancels_near_it():
    votes, P = np.asarray([[3, 2], [0, 4]]), np.asarray([[0.6, 0.4], [0.1, 0.9]])
    alone = -(votes * np.log(P)).sum(axis=1)
    for s in (0, 5e-324, 1e-300, 1e-20):
        np.testing.assert_allclose(dirichlet_log_loss(votes, P, [s, s]), alone, rtol=1e-14)
    one = dirichlet_log_loss([[1, 0], [0, 1]], P, [0.3, 0.9])
    np.testing.assert_allclose(one, -np.log(P.diagonal()))
    impossible = dirichlet_log_loss([[1, 1], [0, 2]], [[0, 1], [0, 1]], [0.5, 0.5])
    np.testing.assert_array_equal(impossible, [math.inf, 0])


def test_many_votes_on_one_item_are_exact():
    votes, alpha = np.asarray([[60_000, 40_000]]), np.asarray([[3.0, 2.0]])
    loss = dirichlet_log_loss(votes, alpha / 5, [0.2])
    np.testing.assert_allclose(loss, -polya(votes, alpha), rtol=1e-9)
    assert np.all(np.isfinite(coverage(votes, alpha / 5, [0.2])))
    np.testing.assert_array_equal(coverage(votes, [[0.5, 0.5]], [0.0]), np.zeros(4))
    np.testing.assert_array_equal(coverage(votes // 2 + votes[:, ::-1] // 2, [[0.5, 0.5]], [0]), 1)


def test_counts_of_next_to_no_chance_lie_inside_or_outside_as_a_whole():
    np.testing.assert_array_equal(coverage([[0, 1070]], [[0.5, 0.5]], [0.0]), np.zeros(4))
    np.testing.assert_array_equal(coverage([[0, 9000]], [[0.5, 0.5]], [0.0]), np.zeros(4))
    # all votes will be for one label, nobody knows which: to be split is the middle
    np.testing.assert_array_equal(coverage([[1, 1]], [[0.5, 0.5]], [1e300]), np.ones(4))


def inside_by_scipy(n_k, n, alpha, A, level):
    """The overlap of the step of the count with the central interval, as a share of the step."""
    dist = betabinom(n, alpha, A - alpha)
    low, high = dist.cdf(n_k) - dist.pmf(n_k), dist.cdf(n_k)
    overlap = min(high, (1 + level) / 2) - max(low, (1 - level) / 2)
    return max(overlap, 0) / dist.pmf(n_k)


def test_coverage_is_the_overlap_with_beta_binomial_intervals():
    rng = np.random.default_rng(3)
    votes, alpha = rng.integers(0, 7, (8, 3)), rng.uniform(0.2, 9, (8, 3))
    votes[0] = 0
    A, n = alpha.sum(axis=1), votes.sum(axis=1)
    got = coverage(votes, alpha / A[:, None], 1 / A, levels=(0.3, 0.5, 0.9))
    for level, value in zip((0.3, 0.5, 0.9), got, strict=True):
        expected = [
            alpha[i, k] / A[i] * inside_by_scipy(votes[i, k], n[i], alpha[i, k], A[i], level)
            for i, k in np.ndindex(8, 3)
            if n[i]
        ]
        assert value == pytest.approx(sum(expected) / np.sum(n > 0), abs=1e-10)


def test_labels_and_items_that_nobody_votes_for_do_not_hide_a_model_that_is_too_sure():
    votes, P, s = np.asarray([[6, 2], [1, 7], [5, 3]]), np.full((3, 2), 0.5), np.full(3, 0.01)
    alone = coverage(votes, P, s)
    assert np.all(alone < LEVELS)
    never = np.zeros((3, 98), int)
    np.testing.assert_allclose(coverage(np.c_[votes, never], np.c_[P, never], s), alone)
    silent = np.r_[votes, np.zeros((50, 2), int)]
    np.testing.assert_allclose(coverage(silent, np.full((53, 2), 0.5), np.full(53, 0.01)), alone)
    assert np.all(np.isnan(coverage([[0, 0]], [[0.5, 0.5]], [0.1])))


@pytest.mark.parametrize("alpha", [[0.3, 0.4, 0.1], [2.0, 1.0, 1.0], [50.0, 1.0, 9.0]])
def test_coverage_is_exactly_nominal_in_expectation_over_all_that_may_be_voted(alpha):
    alpha, n = np.asarray(alpha), 5
    A = alpha.sum()
    outcomes = np.asarray([v for v in product(range(n + 1), repeat=3) if sum(v) == n])
    ways = np.exp(gammaln(n + 1) - gammaln(outcomes + 1).sum(axis=1))
    chance = ways * np.exp(polya(outcomes, np.tile(alpha, (len(outcomes), 1))))
    assert chance.sum() == pytest.approx(1)
    each = [coverage(v[None], alpha[None] / A, [1 / A]) for v in outcomes]
    np.testing.assert_allclose(chance @ np.asarray(each), LEVELS, atol=1e-12)


def test_coverage_of_dogmatic_opinions_is_nominal_for_independent_votes():
    P, n = np.asarray([0.7, 0.2, 0.1]), 4
    outcomes = np.asarray([v for v in product(range(n + 1), repeat=3) if sum(v) == n])
    chance = multinomial(n, P).pmf(outcomes)
    each = [coverage(v[None], P[None], [0.0]) for v in outcomes]
    np.testing.assert_allclose(chance @ np.asarray(each), LEVELS, atol=1e-12)
    # a certain label is inside by just the level where it is right, and outside where it is not
    np.testing.assert_allclose(coverage([[3, 0]], [[1, 0]], [0.0]), LEVELS)
    np.testing.assert_array_equal(coverage([[2, 1]], [[1, 0]], [0.0]), np.zeros(4))


@pytest.mark.parametrize("score", [dirichlet_log_loss, coverage])
@pytest.mark.parametrize(
    ("votes", "probability", "spread", "words"),
    [
        ([1, 0], [[0.5, 0.5]], [0.1], r"must be \(N, K\).*\(2,\), \(1, 2\) and \(1,\) came"),
        ([[1, 0]], [[0.5, 0.5]], 0.1, r"`spread` \(N,\); \(1, 2\), \(1, 2\) and \(\) came"),
        ([[1, 0]], [[0.2, 0.3, 0.5]], [0.1], r"\(1, 2\), \(1, 3\) and \(1,\) came"),
        ([[1.5, 0.5]], [[0.5, 0.5]], [0.1], r"the smallest is 0.5 and 2 of 2 are not whole"),
        ([[1, -1]], [[0.5, 0.5]], [0.1], r"the smallest is -1"),
    ],
)
def test_votes_that_are_no_counts_are_refused(score, votes, probability, spread, words):
    with pytest.raises(ValueError, match=words):
        score(votes, probability, spread)
