import numpy as np
import pytest
from crowds import (
    accuracy,
    assert_is_aggregate,
    crowd,
    make,
    odd_crowds,
    of,
    oracles,
    rte,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import present, seeds

from slencodings.aggregate import sle, soft_vote
from slencodings.aggregate.em import ballots_of
from slencodings.aggregate.wawa import _weighted_votes, wawa, zero_based_skill

both = pytest.mark.parametrize("method", [wawa, zero_based_skill])


@oracles
@both
def test_both_are_crowd_kits(method, oracle):
    theirs = oracle[method.__name__]
    got = method(of(oracle), ties="first")
    np.testing.assert_allclose(got.probability, theirs["probability"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(got.reliability, theirs["skill"], rtol=0, atol=1e-8)


@given(seeds, st.booleans(), st.booleans())
def test_wawa_does_what_it_says(rng, soft, unsure):
    a = crowd(rng, soft=soft, unsure=unsure)
    w, y = 1 - a.uncertainty, a.vectors
    votes = a.sums(w)
    lead = np.isclose(votes, votes.max(-1, keepdims=True), rtol=1e-12, atol=0)
    lead = lead / lead.sum(-1, keepdims=True)
    r = np.zeros(5)
    for m in range(5):
        mine = np.flatnonzero((a.annotator == m) & (w > 0))
        agreed = sum(w[q] * y[q] @ lead[a.item[q]] for q in mine)
        r[m] = agreed / w[mine].sum() if len(mine) else 1 / 3
    got = wawa(a)
    np.testing.assert_allclose(present(got.reliability), r, atol=1e-12)
    votes = a.sums(w * r[a.annotator])
    some = votes.sum(-1) > 0
    np.testing.assert_allclose(
        got.probability[some], votes[some] / votes[some].sum(-1, keepdims=True), atol=1e-12
    )


def test_the_first_label_wins_a_tie_only_on_request():
    a = make([0, 0], [0, 1], [0, 1])
    np.testing.assert_array_equal(wawa(a).reliability, [0.5, 0.5])
    first = wawa(a, ties="first")
    np.testing.assert_array_equal(first.reliability, [1, 0])
    np.testing.assert_array_equal(first.probability, [[1, 0]])


def test_votes_that_all_weigh_nothing_count_the_same():  # trap 8
    a = make([0, 0, 0, 1, 1], [0, 1, 1, 1, 2], [0, 1, 1, 2, 0], N=3)
    votes, unlabelled = _weighted_votes(ballots_of(a, use_confidence=True), np.asarray([0, 0, 0.5]))
    np.testing.assert_array_equal(votes, [[1, 2, 0], [0.5, 0, 0], [1, 1, 1]])
    assert unlabelled == 1


@given(seeds, st.booleans())
@both
def test_on_every_item_somebody_agrees_with_the_winner(method, rng, unsure):  # trap 8
    got = method(crowd(rng, N=20, M=15, R=40, K=4, unsure=unsure))
    assert np.isfinite(got.probability).all()
    np.testing.assert_allclose(got.probability.sum(-1), 1)


@odd_crowds
@both
def test_odd_crowds_have_an_answer(method, a):
    got = method(a)
    assert_is_aggregate(got, a)
    silent = a.sums(1 - a.uncertainty).sum(-1) == 0
    assert got.details["unlabelled"] == silent.sum()
    np.testing.assert_allclose(got.probability[silent], 1 / len(a.labels))
    sle(a, reliability=got.reliability)


@both
def test_annotators_who_are_alike_make_a_soft_vote(method):
    a = make([0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3, [0, 0, 1, 0, 1, 0, 1, 0, 0])
    np.testing.assert_allclose(method(a).probability, soft_vote(a).probability, atol=1e-12)


def test_zero_based_skill_ends_where_skill_is_agreement():
    a = crowd(np.random.default_rng(0), N=60, R=300)
    got = zero_based_skill(a)
    assert got.details["converged"]
    lead = got.probability == got.probability.max(-1, keepdims=True)
    lead = lead / lead.sum(-1, keepdims=True)
    agreed = lead[a.item, a.y]
    share = np.bincount(a.annotator, agreed) / np.bincount(a.annotator)
    np.testing.assert_allclose(present(got.reliability), share, atol=1e-8)
    assert not zero_based_skill(a, n_iter=1).details["converged"]


@pytest.mark.parametrize(
    ("method", "how", "words"),
    [
        (wawa, {"ties": "last"}, r"`ties` must be one of soft, first; 'last' came"),
        (zero_based_skill, {"ties": None}, r"`ties` must be one of soft, first; None came"),
        (zero_based_skill, {"n_iter": 0}, r"`n_iter` must be a whole number"),
        (zero_based_skill, {"tol": -1}, r"`tol` must be a number of at least 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(method, how, words):
    with pytest.raises(ValueError, match=words):
        method(make([0], [0], [0]), **how)


@both
def test_rte_is_better_than_the_majority(method):
    a, gold = rte()
    assert 0.91 <= accuracy(method(a).probability, gold) <= 0.935
