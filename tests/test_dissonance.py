"""How far the parts of an opinion conflict."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from slencodings import fuse
from slencodings.evaluation.dissonance import dissonance
from slencodings.opinion import Opinion, encode


def opinions(rng, N, K, *, least=0.02):
    u = rng.uniform(least, 1, N)
    return Opinion(rng.dirichlet(np.ones(K), N) * (1 - u)[:, None], u, rng.dirichlet(np.ones(K), N))


def dissonance_by_letter(b):
    """Jøsang et al. (2018), exactly, one opinion at a time."""
    b, total = [Fraction(float(x)) for x in b], Fraction(0)
    for k, own in enumerate(b):
        others = [x for j, x in enumerate(b) if j != k]
        if sum(others):
            balance = [1 - abs(x - own) / (x + own) if x * own else 0 for x in others]
            weighed = sum(x * y for x, y in zip(others, balance, strict=True))
            total += own * weighed / sum(others)
    return float(total)


@given(seeds, st.integers(1, 6))
def test_dissonance_is_the_balance_of_conflicting_beliefs(rng, K):
    opinion = opinions(rng, 8, K)
    opinion.belief[rng.random((8, K)) < 0.3] = 0
    got = dissonance(opinion)
    expected = [dissonance_by_letter(b) for b in opinion.belief]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14)
    assert np.all((got >= 0) & (got <= opinion.belief.sum(-1) + 1e-14))
    shuffled = opinion._replace(belief=opinion.belief[:, rng.permutation(K)])
    np.testing.assert_allclose(dissonance(shuffled), got, rtol=0, atol=1e-14)


def test_dissonance_survives_beliefs_of_any_size():
    b = np.asarray([[1.0, 5e-324], [1 - 1e-17, 1e-17], [0.5, 0.5], [1e-300, 1e-300]])
    got = dissonance(Opinion(b, 1 - b.sum(-1), np.full(b.shape, 0.5)))
    np.testing.assert_allclose(got, 2 * b.min(-1), rtol=1e-12, atol=1e-320)


def test_one_label_cannot_conflict():
    assert dissonance(encode(np.ones((2, 1)), [0.0, 0.5])).tolist() == [0, 0]


def test_more_of_the_same_votes_lower_uncertainty_and_not_dissonance():
    votes = np.eye(2)[[0, 0, 1]]
    u, d = [], []
    for n in (1, 3, 10, 100):
        fused = fuse(encode(np.tile(votes, (n, 1)), 0.5))
        u.append(float(fused.uncertainty))
        d.append(float(dissonance(fused)))
    assert u == sorted(u, reverse=True)
    assert d == sorted(d)
    assert d[-1] == pytest.approx(2 / 3, abs=0.01)
