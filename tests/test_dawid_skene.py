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
    shuffled,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import present, seeds

from slencodings.aggregate import majority_vote, sle
from slencodings.aggregate.dawid_skene import dawid_skene
from slencodings.aggregate.one_coin import one_coin
from slencodings.tables.arrays import from_table

both = pytest.mark.parametrize("method", [dawid_skene, one_coin])


def assert_close(got, expected, tolerance=1e-8):
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


# crowd-kit


@oracles
def test_crowd_kit_counts_the_same_majority(oracle):
    vote, a = oracle["majority_vote"], of(oracle)
    assert_close(a.sums() / a.sums().sum(-1, keepdims=True), vote["share"], 1e-12)
    np.testing.assert_array_equal(majority_vote(a).probability.argmax(-1), vote["label"])


@oracles
@pytest.mark.parametrize("case", range(4))
def test_dawid_skene_is_crowd_kits(oracle, case):
    theirs = oracle["dawid_skene"][case]
    gold = None if theirs["gold"] is None else np.asarray(theirs["gold"])
    got = dawid_skene(of(oracle), n_iter=theirs["n_iter"], tol=0, prior_strength=0, gold=gold)
    assert_close(got.probability, theirs["probability"])
    assert_close(got.details["prior"], theirs["prior"])
    assert_close(got.details["confusion"], theirs["confusion"])
    assert got.details["iterations"] == theirs["n_iter"]
    assert not got.details["converged"]


@oracles
def test_one_coin_is_crowd_kits(oracle):
    theirs = oracle["one_coin"]
    got = one_coin(of(oracle), n_iter=theirs["n_iter"], tol=0, prior_strength=0)
    assert_close(got.probability, theirs["probability"])
    assert_close(got.reliability, theirs["accuracy"])


# Letter by letter


def dawid_skene_by_loops(a, n_iter, s, known=None):
    """Over annotations one by one, with products of probabilities."""
    N, M, K = len(a.items), len(a.annotators), len(a.labels)
    rows = list(zip(a.item, a.annotator, a.vectors, 1 - a.uncertainty, strict=True))
    q = np.zeros((N, K))
    for i, _, y, w in rows:
        q[i] += w * y
    told = np.zeros(N, bool)
    for i in range(N):
        told[i] = q[i].sum() > 0
        if told[i]:
            q[i] /= q[i].sum()
    used = q.sum(0) > 0
    for step in range(n_iter + 1):
        if known is not None:
            for i in np.flatnonzero(known >= 0):
                q[i] = np.eye(K)[known[i]]
        if step == n_iter:
            return q
        p = np.where(used, q[told].mean(0), 0)
        E = np.tile(s * np.where(np.eye(K), 0.9, 0.1 / (K - 1)), (M, 1, 1))
        for i, m, y, w in rows:
            E[m] += w * np.outer(q[i], y)
        E /= E.sum(-1, keepdims=True)
        q = np.tile(p, (N, 1))
        for i, m, y, w in rows:
            q[i] *= np.prod(E[m] ** (w * y), axis=-1)
        q /= q.sum(-1, keepdims=True)
    return q


@given(seeds, st.booleans(), st.booleans(), st.sampled_from([0.1, 1.0]), st.booleans())
def test_dawid_skene_does_what_it_says(rng, soft, unsure, s, with_gold):
    a = crowd(rng, soft=soft, unsure=unsure)
    # a gold item that nobody annotated would inform the prior here too
    seen = np.bincount(a.item, 1 - a.uncertainty, len(a.items)) > 0
    known = np.where(seen, rng.integers(-1, 3, len(a.items)), -1) if with_gold else None
    if known is not None:  # and so would a label that only gold has
        used = a.sums(1 - a.uncertainty).sum(0) > 0
        known = np.where((known >= 0) & used[known], known, -1)
    got = dawid_skene(a, n_iter=3, tol=0, prior_strength=s, gold=known)
    assert_close(got.probability, dawid_skene_by_loops(a, 3, s, known), 1e-10)


@given(seeds, st.booleans(), st.booleans(), st.sampled_from([0, 1e-3, 1.0, 5.0]))
@both
def test_the_bound_never_falls(method, rng, soft, unsure, s):
    a = crowd(rng, soft=soft, unsure=unsure)
    known = rng.choice([-1, -1, -1, 0, 1, 2], len(a.items))
    bounds = method(a, n_iter=40, tol=0, prior_strength=s, gold=known).details["elbo"]
    assert len(bounds) == 40
    # The floor under probabilities costs less than 1e-7 in all.
    assert np.min(np.diff(bounds)) > (-1e-7 if s == 0 else -1e-9)


def test_the_bound_counts_the_prior_once_for_each_item_and_adds_up_logs():  # traps 7 and 10
    a = crowd(np.random.default_rng(1))
    first = dawid_skene(a, n_iter=6, tol=0, prior_strength=0)
    again = dawid_skene(a, n_iter=7, tol=0, prior_strength=0).details["elbo"][-1]
    p, E = first.details["prior"], first.details["confusion"]
    log = 0.0
    for i in range(len(a.items)):
        joint = p.copy()
        for m, label in zip(a.annotator[a.item == i], a.y[a.item == i], strict=True):
            joint *= E[m][:, label]
        log += np.log(joint.sum())
    assert again == pytest.approx(log, abs=1e-6)


def test_the_bound_of_one_coin_is_the_evidence_too():
    a = crowd(np.random.default_rng(1))
    first = one_coin(a, n_iter=6, tol=0, prior_strength=0)
    again = one_coin(a, n_iter=7, tol=0, prior_strength=0).details["elbo"][-1]
    p, r = first.details["prior"], present(first.reliability)
    log = 0.0
    for i in range(len(a.items)):
        joint = p.copy()
        for m, label in zip(a.annotator[a.item == i], a.y[a.item == i], strict=True):
            joint *= np.where(np.arange(3) == label, r[m], (1 - r[m]) / 2)
        log += np.log(joint.sum())
    assert again == pytest.approx(log, abs=1e-6)


# Laws


@given(seeds)
@both
def test_row_order_does_not_even_change_rounding(method, rng):
    a = crowd(rng)
    np.testing.assert_array_equal(method(a).probability, method(shuffled(a, rng)).probability)


@odd_crowds
@both
@pytest.mark.parametrize("s", [0, 1.0])
def test_odd_crowds_have_an_answer(method, a, s):
    got = method(a, prior_strength=s)
    assert_is_aggregate(got, a)
    assert np.isfinite(got.details["elbo"]).all()
    sle(a, reliability=got.reliability)


@both
@pytest.mark.parametrize("s", [0, 0.1, 1.0])
@pytest.mark.parametrize("sizes", [(1, 2), (10, 30), (50, 50)])
def test_one_annotator_is_believed(method, s, sizes):
    y = np.repeat([0, 1], sizes)
    got = method(make(np.arange(len(y)), np.zeros(len(y)), y), prior_strength=s, n_iter=500)
    assert got.details["converged"]
    np.testing.assert_array_equal(got.probability.argmax(-1), y)


@both
def test_half_an_annotation_twice_is_one(method):
    a = crowd(np.random.default_rng(3))
    twice = make(
        np.tile(a.item, 2),
        np.tile(a.annotator, 2),
        np.tile(a.y, 2),
        N=12,
        uncertainty=np.full(120, 0.5),
    )
    assert_close(method(twice).probability, method(a).probability, 1e-10)
    assert not np.allclose(method(twice, use_confidence=False).probability, method(a).probability)


@both
def test_a_label_nobody_used_stays_out_and_changes_nothing(method):
    a = crowd(np.random.default_rng(5), K=2)
    more = method(replace(a, labels=np.arange(3)), prior_strength=0)
    np.testing.assert_array_equal(more.probability[:, 2], 0)
    if method is dawid_skene:
        assert_close(more.probability[:, :2], method(a, prior_strength=0).probability, 1e-10)


@both
@pytest.mark.parametrize("s", [0, 1.0])
def test_a_hundred_thousand_annotations_of_one_item_do_not_vanish(method, s):  # traps 3 and 11
    a = one_item()
    got = method(a, prior_strength=s)
    assert_is_aggregate(got, a)
    if method is dawid_skene and s == 0:
        # Nothing but the vote shares is known where one item is all there is.
        assert_close(got.probability, a.sums() / 10**5)
    else:
        assert_close(got.probability, [[0, 1, 0]], 1e-6)


@both
def test_fifteen_hundred_annotators_an_item_do_not_vanish(method):  # trap 11
    rng = np.random.default_rng(0)
    M, truth = 1500, np.asarray([0, 1, 2, 1])
    item, who = np.repeat(np.arange(4), M), np.tile(np.arange(M), 4)
    y = np.where(rng.random(4 * M) < 0.5, truth[item], rng.integers(0, 3, 4 * M))
    got = method(make(item, who, y))
    assert_is_aggregate(got, make(item, who, y))
    np.testing.assert_array_equal(got.probability.argmax(-1), truth)


@both
def test_categorical_columns_are_like_any_other(method):  # traps 4 and 6
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "i": rng.integers(0, 20, 100),
            "w": rng.choice(["z", "m", "a"], 100),
            "y": rng.choice(["q", "b", "k"], 100),
        }
    )
    plain = method(from_table(frame, item="i", annotator="w", label="y"))
    names = pd.CategoricalDtype(["q", "b", "k"])
    coded = frame.astype({"w": "category", "y": names})
    a = from_table(coded, item="i", annotator="w", label="y")
    order = np.argsort(a.labels.tolist())
    assert_close(method(a).probability[:, order], plain.probability)


def test_the_result_says_whether_it_converged():
    a, _ = crowd(np.random.default_rng(0), N=50, R=300), None
    assert not dawid_skene(a, n_iter=2).details["converged"]
    got = dawid_skene(a, n_iter=1000).details
    assert got["converged"]
    assert got["iterations"] == len(got["elbo"]) < 1000


def test_reliability_is_expected_accuracy_and_kappa_is_above_chance():
    rng = np.random.default_rng(0)
    N = 4000
    truth = (rng.random(N) < 0.3).astype(int)
    item, who = np.repeat(np.arange(N), 4), np.tile(np.arange(4), N)
    y = np.where(rng.random(4 * N) < np.asarray([0.9, 0.9, 0.8, 0.0])[who], truth[item], 0)
    got = dawid_skene(make(item, who, y))
    right = [np.mean(y[who == m] == truth) for m in range(4)]
    assert_close(got.reliability, right, 0.03)
    # Who always says 0 is right for 70 % and knows nothing.
    assert got.details["kappa"][3] == pytest.approx(0, abs=0.02)
    assert got.details["kappa"][0] > 0.7
    assert_close(got.details["confusion"].sum(-1), 1, 1e-12)


@both
def test_kappa_of_one_label_is_zero(method):
    np.testing.assert_array_equal(method(make([0, 1], [0, 0], [0, 0])).details["kappa"], 0)


# Gold


@both
def test_gold_is_kept_and_teaches(method):
    # Two against one; gold shows that the one is right.
    item, who = np.repeat(np.arange(30), 3), np.tile(np.arange(3), 30)
    truth = np.arange(30) % 2
    a = make(item, who, np.where(who == 0, truth[item], 1 - truth[item]))
    assert accuracy(method(a).probability, truth) == 0
    got = method(a, gold={i: int(truth[i]) for i in range(10)})
    assert accuracy(got.probability, truth) == 1
    np.testing.assert_array_equal(got.probability[:10], np.eye(2)[truth[:10]])
    codes = np.where(np.arange(30) < 10, truth, -1)
    assert_close(method(a, gold=codes).probability, got.probability, 0)


@both
def test_gold_may_know_an_item_nobody_labelled_and_a_label_nobody_used(method):
    a = make([0, 0], [0, 1], [0, 0], N=2, K=3)
    got = method(a, gold={1: 2})
    np.testing.assert_array_equal(got.probability[1], [0, 0, 1])
    assert got.details["prior"][2] > 0.4


@both
@pytest.mark.parametrize(
    ("gold", "words"),
    [
        ({"x": 0}, r"`gold` names 1 item that the annotations do not have, first 'x'"),
        ({0: "new"}, r"names 1 label that .* first 'new'.*labels=\[\.\.\.\]"),  # trap 7
        ([0], r"one integer per item, \(2,\).*int64 of shape \(1,\) came"),
        ([0.0, 1.0], r"one integer per item.*float64"),
        ([0, 3], r"position among the 2 labels.*1 of 2 are not, first 3 at item 1"),
        ([-2, 0], r"first -2 at item 0"),
    ],
)
def test_gold_that_fits_nothing_is_refused(method, gold, words):
    with pytest.raises(ValueError, match=words):
        method(make([0, 1], [0, 0], [0, 1]), gold=gold)


@both
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"n_iter": 0}, r"`n_iter` must be a whole number of at least 1; 0 came"),
        ({"n_iter": 2.5}, r"`n_iter` must be a whole number.*2\.5 came"),
        ({"tol": -1}, r"`tol` must be a number of at least 0; -1 came"),
        ({"tol": np.nan}, r"`tol` must be .* nan came"),
        ({"prior_strength": -0.1}, r"`prior_strength` must be .*-0\.1 came. 0 turns it off"),
        ({"prior_strength": np.inf}, r"`prior_strength` must be .*inf came"),
    ],
)
def test_settings_that_mean_nothing_are_refused(method, how, words):
    with pytest.raises(ValueError, match=words):
        method(make([0], [0], [0]), **how)


# Real data


@both
def test_rte_reaches_the_accuracy_of_the_literature(method):
    a, gold = rte()
    assert accuracy(majority_vote(a, ties="soft").probability, gold) == pytest.approx(
        0.897, abs=5e-4
    )
    got = method(a)
    assert got.details["converged"]
    assert 0.92 <= accuracy(got.probability, gold) <= 0.935
