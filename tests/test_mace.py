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
from scipy.special import digamma
from strategies import one_in, present, seeds

from slencodings.aggregate import sle
from slencodings.aggregate.mace import mace
from slencodings.tables.arrays import from_table

methods = pytest.mark.parametrize("method", ["vb", "em"])


def start(rng, M, K):
    return rng.dirichlet(np.full(2, 5.0), M), rng.dirichlet(np.full(K, 5.0), M)


def mace_by_loops(a, initial, method, n_iter, known=None):
    """dirkhovy's mace.py: products over each item's annotations, one by one."""
    theta, xi = (x.copy() for x in initial)
    N, M, K = len(a.items), len(a.annotators), len(a.labels)
    rows = list(zip(a.item, a.annotator, a.vectors, 1 - a.uncertainty, strict=True))
    step = 0
    while True:
        q = np.full((N, K), 1 / K)
        for i, j, y, w in rows:
            for t in range(K):
                for label in range(K):
                    p = theta[j, 0] * xi[j, label] + (label == t) * theta[j, 1]
                    q[i, t] *= p ** (w * y[label])
        if known is not None:
            for i in np.flatnonzero(known >= 0):
                q[i] *= np.arange(K) == known[i]
        log = np.log(q.sum(-1)).sum()
        q /= q.sum(-1, keepdims=True)
        if step == n_iter:
            return q, theta, xi, log
        step += 1
        kc, sc = np.zeros((M, 2)), np.zeros((M, K))
        for i, j, y, w in rows:
            for label in range(K):
                hit = theta[j, 0] * xi[j, label] + theta[j, 1]
                know = w * y[label] * q[i, label] * theta[j, 1] / hit
                kc[j] += w * y[label] - know, know
                sc[j, label] += w * y[label] - know
        if method == "vb":
            kc, sc = kc + 0.5, sc + 10
            theta = np.exp(digamma(kc) - digamma(kc.sum(-1, keepdims=True)))
            xi = np.exp(digamma(sc) - digamma(sc.sum(-1, keepdims=True)))
        else:
            kc, sc = kc + 0.01 / K, sc + 0.01 / K
            theta, xi = kc / kc.sum(-1, keepdims=True), sc / sc.sum(-1, keepdims=True)


@oracles
@pytest.mark.parametrize("at", [0, 1], ids=["vb", "em"])
def test_mace_is_crowd_kits(oracle, at):
    theirs = oracle["mace"][at]
    got = mace(
        of(oracle),
        method=theirs["method"],
        n_iter=theirs["n_iter"],
        tol=0,
        initial=tuple(theirs["initial"]),
    )
    for mine, name in (
        (got.probability, "probability"),
        (present(got.reliability), "competence"),
        (got.details["spamming"], "spamming"),
        (got.details["strategy"], "strategy"),
    ):
        np.testing.assert_allclose(mine, theirs[name], rtol=0, atol=1e-8, err_msg=name)
    assert got.details["iterations"] == theirs["n_iter"]
    assert not got.details["converged"]


@methods
@given(rng=seeds, soft=st.booleans(), unsure=st.booleans(), with_gold=st.booleans())
def test_mace_does_what_it_says(method, rng, soft, unsure, with_gold):
    a = crowd(rng, N=5, M=3, R=15, soft=soft, unsure=unsure)
    known = rng.integers(-1, 3, 5) if with_gold else None
    initial = start(rng, 3, 3)
    got = mace(a, method=method, n_iter=4, tol=0, initial=initial, gold=known)
    q, theta, xi, log = mace_by_loops(a, initial, method, 4, known)
    np.testing.assert_allclose(got.probability, q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(present(got.reliability), theta[:, 1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(got.details["strategy"], xi, rtol=0, atol=1e-9)
    assert got.details["log_likelihood"] == pytest.approx([log], abs=1e-8)  # trap 10


def test_order_of_appearance_in_a_table_changes_nothing():  # trap 1
    rng = np.random.default_rng(0)
    a = crowd(rng, N=100, M=8, K=4, R=500)
    rows = {"i": a.item, "w": [f"w{m}" for m in a.annotator], "y": [f"y{k}" for k in a.y]}
    p = rng.permutation(500)
    again = {name: np.asarray(x)[p].tolist() for name, x in rows.items()}
    rows = {name: np.asarray(x).tolist() for name, x in rows.items()}
    plain, moved = (mace(from_table(t, item="i", annotator="w", label="y")) for t in (rows, again))
    np.testing.assert_array_equal(moved.probability, plain.probability)


@methods
def test_restarts_differ_and_the_best_is_kept(method):  # trap 2
    a = crowd(np.random.default_rng(0), N=40, R=200)
    got = mace(a, method=method, n_restarts=6, n_iter=2).details
    assert len(set(got["log_likelihood"].round(6))) == 6
    assert got["best"] == np.argmax(got["log_likelihood"])
    assert got["history"][-1] == got["log_likelihood"].max()
    one = mace(a, method=method, n_restarts=1, n_iter=2).details
    assert one["log_likelihood"][0] == got["log_likelihood"][0] < got["log_likelihood"].max()


def test_the_generator_decides_and_the_default_is_always_the_same():
    a = crowd(np.random.default_rng(0), N=40, R=200)

    def scores(rng):
        return mace(a, n_restarts=2, n_iter=2, rng=rng).details["log_likelihood"].tolist()

    assert scores(None) == scores(None) == scores(np.random.default_rng(0))
    assert scores(np.random.default_rng(1)) != scores(None)


@one_in(2)
@given(seeds, st.booleans())
def test_em_never_loses_likelihood(rng, soft):
    a = crowd(rng, soft=soft, unsure=True)
    initial = start(rng, 5, 3)

    def climbed(n_iter):
        """What EM climbs: the likelihood with its pseudo-counts, 0.01 / K each."""
        got = mace(a, method="em", n_iter=n_iter, tol=0, initial=initial)
        parameters = (present(got.reliability), got.details["spamming"], got.details["strategy"])
        return got.details["log_likelihood"][0] + sum(np.log(x).sum() for x in parameters) / 300

    assert np.min(np.diff([climbed(n) for n in range(1, 12)])) > -1e-9


@methods
def test_thousands_of_annotations_of_one_item_do_not_vanish(method):  # trap 3
    for R in (3000, 10**5):
        a = one_item(R)
        got = mace(a, method=method, n_restarts=2)
        assert_is_aggregate(got, a)
        np.testing.assert_allclose(got.probability, [[0, 1, 0]], atol=1e-6)
        assert np.isfinite(got.details["log_likelihood"]).all()


@methods
@odd_crowds
def test_odd_crowds_have_an_answer(method, a):  # traps 3 and 9
    got = mace(a, method=method, n_restarts=3)
    assert_is_aggregate(got, a)
    assert np.isfinite(got.details["log_likelihood"]).all()
    silent = a.sums(1 - a.uncertainty).sum(-1) == 0
    np.testing.assert_allclose(got.probability[silent], 1 / len(a.labels))
    sle(a, reliability=got.reliability)


@methods
def test_certain_soft_labels_are_labels_and_no_confidence_is_no_annotation(method):
    a = crowd(np.random.default_rng(1))
    plain = mace(a, method=method, n_restarts=2)
    soft = mace(replace(a, y=a.vectors), method=method, n_restarts=2)
    np.testing.assert_allclose(soft.probability, plain.probability, atol=1e-12)
    keep = a.annotator != 2
    less = make(a.item[keep], a.annotator[keep], a.y[keep], N=12, M=5)
    silent = replace(a, uncertainty=1.0 * ~keep)
    np.testing.assert_allclose(
        mace(silent, method=method, n_restarts=2).probability,
        mace(less, method=method, n_restarts=2).probability,
        atol=1e-12,
    )
    loud = mace(silent, method=method, n_restarts=2, use_confidence=False)
    np.testing.assert_array_equal(loud.probability, plain.probability)


def test_spammers_are_found_and_so_is_what_they_say():
    rng = np.random.default_rng(0)
    N = 300
    truth = rng.integers(0, 3, N)
    item, who = np.repeat(np.arange(N), 4), np.tile(np.arange(4), N)
    skill = np.asarray([0.95, 0.8, 0.6, 0.0])[who]
    y = np.where(rng.random(4 * N) < skill, truth[item], np.where(who == 3, 1, rng.integers(0, 3)))
    got = mace(make(item, who, y), method="em")
    np.testing.assert_allclose(present(got.reliability), [0.95, 0.8, 0.6, 0], atol=0.07)
    assert got.details["strategy"][3, 1] > 0.95
    assert accuracy(got.probability, truth) > 0.95


def test_the_result_says_whether_it_converged():
    a = crowd(np.random.default_rng(0), N=50, R=300)
    assert not mace(a, n_iter=1).details["converged"]
    got = mace(a, n_iter=2000).details
    assert got["converged"]
    assert got["iterations"] == len(got["history"]) - 1 < 2000


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"method": "mcmc"}, r"`method` must be one of vb, em; 'mcmc' came"),
        ({"n_restarts": 0}, r"`n_restarts` must be a whole number of at least 1; 0 came"),
        ({"n_iter": -1}, r"`n_iter` must be a whole number"),
        ({"tol": -1}, r"`tol` must be a number of at least 0"),
        ({"theta_prior": 0.5}, r"`theta_prior` must be two positive numbers.*0\.5 came"),
        ({"theta_prior": (0, 1)}, r"`theta_prior` must be two positive numbers"),
        (
            {"initial": ([[0.5, 0.5]], [[1.0]])},
            r"spamming and knowing \(1, 2\) and strategies \(1, 2\); shapes \(1, 2\) and \(1, 1\)",
        ),
        ({"initial": ([[1, 0]], [[0.5, 0.5]])}, r"`initial` must be positive throughout"),
        ({"gold": {0: 7}}, r"`gold` names 1 label"),
    ],
)
def test_settings_that_mean_nothing_are_refused(how, words):
    with pytest.raises(ValueError, match=words):
        mace(make([0, 1], [0, 0], [0, 1]), **how)


@methods
def test_rte_reaches_the_accuracy_of_the_literature(method):
    a, gold = rte()
    got = mace(a, method=method, n_restarts=3)
    assert 0.92 <= accuracy(got.probability, gold) <= 0.935
