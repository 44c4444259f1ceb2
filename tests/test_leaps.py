"""EM that goes on as far as two of its steps point to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_learned_crowd import population

from slencodings.aggregate import em, shrunk, shrunk_dawid_skene
from slencodings.trust.truth import Seen, learn_habits


def distributions(rng, *shape):
    return rng.dirichlet(np.full(shape[-1], 5.0), shape[:-1])


@given(st.integers(0, 2**32), st.floats(0.1, 0.9))
def test_a_leap_finds_the_end_of_steps_that_shrink_alike(seed, rate):
    rng = np.random.default_rng(seed)
    end = em.Point(distributions(rng, 3), distributions(rng, 4, 3, 3))
    apart = [0.1 * rng.normal(size=part.shape) for part in end]
    path = [
        em.Point(*(x * np.exp(rate**n * d) for x, d in zip(end, apart, strict=True)))
        for n in range(3)
    ]
    found, length = em.leap(*path, longest=100.0)
    assert length == pytest.approx(1 / (1 - rate))
    for got, expected in zip(found, end, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    # What is cut short goes no farther than it may, and a single step is the second of two.
    (_, nearer), (second, _) = em.leap(*path, longest=1.05), em.leap(*path, longest=1.0)
    assert nearer == 1.05
    scaled = path[2].annotators / path[2].annotators.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(second.annotators, scaled, rtol=1e-9)


def test_what_is_impossible_stays_so_in_a_leap():
    path = [em.Point(np.asarray([p, 1 - p, 0]), np.eye(3)[None]) for p in (0.5, 0.6, 0.65)]
    found, _ = em.leap(*path, longest=16.0)
    assert found.prior[2] == 0
    np.testing.assert_array_equal(found.annotators, np.eye(3)[None])


def learned(monkeypatch, annotations, *, leaps, **how):
    """`shrunk_dawid_skene` with leaps or by steps alone."""
    learn = em.learn
    with monkeypatch.context() as patched:
        patched.setattr(
            shrunk.em,
            "learn",
            lambda *a, **k: learn(*a, **k | ({} if leaps else {"leaps_of": None})),
        )
        return shrunk_dawid_skene(annotations, use_confidence=False, **how)


@pytest.mark.parametrize("strength", [3.0, 30.0])
def test_leaps_end_where_steps_do_after_fewer_of_them(monkeypatch, strength):
    annotations, _, _ = population(3)
    how = {"prior_strength": strength, "tol": 1e-9, "n_iter": 2000}
    steps, leaps = (learned(monkeypatch, annotations, leaps=x, **how) for x in (False, True))
    assert leaps.details["converged"]
    assert leaps.details["iterations"] < steps.details["iterations"]
    np.testing.assert_allclose(leaps.probability, steps.probability, atol=1e-3)
    for name in ("prior", "confusion"):
        np.testing.assert_allclose(leaps.details[name], steps.details[name], atol=1e-3)


def test_a_leap_that_loses_is_taken_back(monkeypatch):
    annotations, _, _ = population(3)
    steps = learned(monkeypatch, annotations, leaps=False, tol=0, n_iter=20)
    lengths = []

    def astray(before, at, after, longest, of):
        lengths.append(longest)
        return em.Point(*(np.full(x.shape, 1 / 3) for x in after)), longest

    monkeypatch.setattr(em, "leap", astray)
    told = []
    lost = learned(
        monkeypatch, annotations, leaps=True, tol=0, n_iter=39, progress=lambda *n: told.append(n)
    )
    # The first two steps, and then each comes after a leap that was in vain; the last of all is.
    assert told == [(n, 39) for n in range(1, 40)]
    assert lengths == [4.0, *[1.0] * 18][: len(lengths)]
    np.testing.assert_array_equal(lost.details["elbo"], steps.details["elbo"])
    np.testing.assert_array_equal(lost.probability, steps.probability)


def test_habits_are_those_that_make_votes_most_likely():
    rng = np.random.default_rng(0)
    truths, label = distributions(rng, 3000, 3), rng.integers(0, 3, 3000)
    expected, seen = em.expected_answers(3), Seen.of([truths], label, np.ones(3000))

    def loss(H):
        chance = np.einsum("qc,qc->q", truths, H[:, label].T)
        return -np.sum(np.log(chance)) - np.sum(expected * np.log(H))

    best = learn_habits(expected, seen, 1e-7)
    np.testing.assert_allclose(best.sum(axis=1), 1)
    for _ in range(200):
        other = 0.999 * best + 0.001 * distributions(rng, 3, 3)
        assert loss(best) < loss(other) + 1e-6
