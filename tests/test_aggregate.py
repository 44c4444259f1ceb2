from dataclasses import replace

import numpy as np
import pytest
from crowds import by_chance
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from slencodings import check, discount, encode, fuse, smooth
from slencodings.aggregate import (
    Aggregate,
    certainty,
    crowdtruth,
    majority_vote,
    sle,
    soft_vote,
)
from slencodings.annotations import Annotations
from slencodings.metrics import held_out_log_loss


def doubtful(rng, *, R=12, **how):
    """Few annotations: certain, vacuous, nearly certain, and of one doubt between."""
    uncertainty = rng.choice([0, 1, 1e-9, rng.random()], R)
    return by_chance(rng, N=4, M=3, R=R, uncertainty=uncertainty, **how)


def votes(*labels, K=2, N=1):
    """One item per list of labels, and what is missing up to N."""
    item = np.repeat(np.arange(len(labels)), [len(x) for x in labels])
    y = np.asarray([k for x in labels for k in x], dtype=int)
    at = np.arange(len(y))
    n = max(N, len(labels))
    return Annotations(item, at, y, np.zeros(len(y)), np.arange(n), at, np.arange(K))


def assert_same_opinion(got, expected, tolerance=1e-12):
    for name in got._fields:
        np.testing.assert_allclose(
            getattr(got, name), getattr(expected, name), rtol=0, atol=tolerance, err_msg=name
        )


# SLE


def encode_densely(annotations, r, smoothing, base_rate):
    """Every annotation on every item, vacuous where it is not: then the array operators."""
    here = annotations.item == np.arange(len(annotations.items))[:, None]
    u = np.where(here, annotations.uncertainty, 1.0)
    y = np.broadcast_to(annotations.vectors, (*here.shape, len(annotations.labels)))
    # Smoothing is for annotations; a cell without one is vacuous with or without it.
    return fuse(smooth(discount(encode(y, u, base_rate=base_rate), r), smoothing))


@given(seeds, st.booleans(), st.sampled_from([0, 0.01, 0.5]), st.integers(1, 4), st.integers(1, 15))
def test_sle_is_encode_discount_smooth_fuse(rng, soft, smoothing, K, R):
    annotations = doubtful(rng, K=K, R=R, soft=soft)
    a = rng.dirichlet(np.ones(K))
    for r in (rng.choice([0, 1, rng.random()], 3), rng.random(R), 1.0, 0.7):
        per_row = annotations.per_annotation(r)
        expected = encode_densely(annotations, per_row, smoothing, a)
        got = sle(annotations, reliability=r, smoothing=smoothing, base_rate=a)
        assert_same_opinion(check(got), expected)
        # in exact agreement, not only to rounding
        np.testing.assert_array_equal(got.uncertainty == 0, expected.uncertainty == 0)


@given(seeds, st.booleans())
def test_sle_without_doubt_is_soft_voting(rng, soft):
    annotations = by_chance(rng, N=4, M=3, R=12, soft=soft)
    opinion = sle(annotations, smoothing=0)
    annotated = np.isin(annotations.items, annotations.item)
    np.testing.assert_allclose(opinion.probability, soft_vote(annotations).probability, atol=1e-15)
    np.testing.assert_array_equal(opinion.uncertainty, np.where(annotated, 0, 1))


def test_sle_of_a_unanimous_crowd_is_one_hot():
    opinion = sle(votes([1, 1, 1], [0, 0]), smoothing=0)
    np.testing.assert_array_equal(opinion.probability, [[0, 1], [1, 0]])


def test_sle_of_an_item_nobody_annotated_is_vacuous_with_its_base_rate():
    opinion = sle(votes([0], N=2), base_rate={0: 0.9, 1: 0.1})
    np.testing.assert_array_equal(opinion.uncertainty[1], 1)
    np.testing.assert_array_equal(opinion.belief[1], [0, 0])
    np.testing.assert_array_equal(opinion.base_rate, [[0.9, 0.1], [0.9, 0.1]])


def test_the_certain_outweigh_everybody_else_and_are_averaged():
    annotations = replace(votes([0, 1, 0, 1]), uncertainty=np.asarray([0.0, 0.0, 0.1, 1e-300]))
    opinion = sle(annotations, smoothing=0)
    np.testing.assert_array_equal(opinion.belief, [[0.5, 0.5]])
    assert opinion.uncertainty == 0


def test_sle_takes_the_smallest_doubt_there_is():
    annotations = replace(votes([0, 1, 1]), uncertainty=np.asarray([5e-324, 5e-324, 0.5]))
    opinion = check(sle(annotations, smoothing=0))
    np.testing.assert_allclose(opinion.belief, [[0.5, 0.5]])


def test_sle_adds_up_a_hundred_thousand_annotations_of_one_item():
    rng = np.random.default_rng(0)
    R = 10**5
    annotations = by_chance(rng, N=1, M=3, R=R, uncertainty=rng.random(R))
    said = smooth(encode(annotations.vectors, annotations.uncertainty), 0.01)
    got = sle(annotations)
    assert_same_opinion(got.rows(0), fuse(said))
    assert 0 < got.uncertainty[0] < 1e-5


def test_reliability_may_be_a_mapping_and_so_may_the_base_rate():
    annotations = doubtful(np.random.default_rng(0))
    names = np.asarray(["ann", "bob", "cy"])
    annotations = replace(annotations, annotators=names, labels=np.asarray(["yes", "no", "maybe"]))
    r = {"ann": 0.1, "bob": 0.5, "cy": 0.9}
    a = {"maybe": 0.2, "no": 0.3, "yes": 0.5}
    assert_same_opinion(
        sle(annotations, reliability=r, base_rate=a),
        sle(annotations, reliability=[0.1, 0.5, 0.9], base_rate=[0.5, 0.3, 0.2]),
    )


@given(seeds, st.booleans(), st.sampled_from([0, 0.01]))
def test_certainty_is_what_held_out_loss_asks_for(rng, soft, smoothing):
    annotations = doubtful(rng, soft=soft)
    r = rng.random(3)
    c = certainty(annotations, reliability=r, smoothing=smoothing)
    got = held_out_log_loss(annotations.item, annotations.y, c, n_labels=3, each=True)
    rows = np.arange(len(c))
    for q in rows[~np.isnan(got)]:
        keep = rows != q
        without = replace(
            annotations,
            item=annotations.item[keep],
            annotator=annotations.annotator[keep],
            y=annotations.y[keep],
            uncertainty=annotations.uncertainty[keep],
        )
        P = sle(without, reliability=r, smoothing=smoothing).probability[annotations.item[q]]
        y = annotations.vectors[q]
        y, P = y[y > 0], P[y > 0]
        expected = -np.sum(y * np.log(P)) if np.all(P > 0) else np.inf
        assert got[q] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("smoothing", [1, -0.1, 1.5, np.nan, "0.01", None])
@pytest.mark.parametrize("function", [sle, certainty])
def test_smoothing_that_leaves_nothing_is_refused(function, smoothing):
    with pytest.raises(ValueError, match=r"`smoothing` must be a number in \[0, 1\); .* came"):
        function(votes([0]), smoothing=smoothing)


@pytest.mark.parametrize(
    ("base_rate", "words"),
    [
        ([1.0], r"one value per label, \(2,\); shape \(1,\) came"),
        (0.5, r"one value per label, \(2,\); shape \(\) came"),
        ([0.5, 0.6], r"sum to 1; the smallest is 0.5 and the sum 1.1"),
        ([1.5, -0.5], r"must not be negative.*smallest is -0.5"),
        ([np.nan, 1.0], r"must not be negative and must sum to 1"),
        ({0: 1.0}, r"each of the 2 labels and no other; 1 differ, first 1\."),
        ({0: 0.5, 1: 0.5, "x": 0}, r"each of the 2 labels and no other; 1 differ, first 'x'\."),
    ],
)
def test_a_base_rate_that_is_none_is_refused(base_rate, words):
    with pytest.raises(ValueError, match=words):
        sle(votes([0]), base_rate=base_rate)


# Votes


@given(seeds, st.booleans())
def test_soft_vote_is_the_mean_of_the_labels(rng, soft):
    annotations = doubtful(rng, soft=soft)
    got = soft_vote(annotations)
    assert isinstance(got, Aggregate)
    assert got.reliability is None
    for i in range(4):
        said = annotations.vectors[annotations.item == i]
        expected = said.mean(0) if len(said) else np.full(3, 1 / 3)
        np.testing.assert_allclose(got.probability[i], expected, atol=1e-15)
    assert got.details == {"unlabelled": 4 - len(set(annotations.item.tolist()))}


@given(seeds, st.booleans(), st.sampled_from(["first", "random", "soft"]))
def test_majority_vote_keeps_a_label_that_leads(rng, soft, ties):
    annotations = doubtful(rng, R=6, soft=soft)
    share = soft_vote(annotations).probability
    got = majority_vote(annotations, ties=ties, rng=rng)
    np.testing.assert_allclose(got.probability.sum(-1), 1)
    leads = share >= share.max(-1, keepdims=True) - 1e-12
    assert not np.any(got.probability[~leads])
    annotated = np.isin(annotations.items, annotations.item)
    if ties != "soft":
        assert set(got.probability[annotated].ravel()) <= {0.0, 1.0}
    np.testing.assert_allclose(got.probability[~annotated], 1 / 3)
    assert got.details["ties"] == np.sum((leads.sum(-1) > 1) & annotated)
    assert got.details["unlabelled"] == np.sum(~annotated)
    assert got.reliability is None


def test_ties_by_policy():
    annotations = votes([2, 1], [0, 1, 1], [], [2], K=3)
    first = majority_vote(annotations)
    third = 1 / 3
    np.testing.assert_array_equal(first.probability, [[0, 1, 0], [0, 1, 0], [third] * 3, [0, 0, 1]])
    assert first.details == {"ties": 1, "unlabelled": 1}
    soft = majority_vote(annotations, ties="soft")
    np.testing.assert_array_equal(soft.probability[0], [0, 0.5, 0.5])
    np.testing.assert_array_equal(soft.probability[1:], first.probability[1:])


def test_random_ties_are_fair_and_repeatable():
    annotations = votes(*[[0, 2]] * 4000, K=3)
    draw = [
        majority_vote(annotations, ties="random", rng=np.random.default_rng(7)).probability
        for _ in range(2)
    ]
    np.testing.assert_array_equal(draw[0], draw[1])
    np.testing.assert_array_equal(draw[0].sum(0)[1], 0)
    assert draw[0].mean(0)[0] == pytest.approx(0.5, abs=0.05)


def test_rounding_does_not_decide_a_tie():
    p = np.asarray([0.2, 0.6, 0.7])
    annotations = replace(votes([0] * 3), y=np.stack([p, [0.8, 0.4, 0.3]], axis=-1))
    first, second = annotations.sums()[0]
    assert first < second  # 1.5 and 1.5000000000000002
    np.testing.assert_array_equal(majority_vote(annotations).probability, [[1, 0]])
    assert majority_vote(annotations).details["ties"] == 1


def test_majority_of_soft_labels_adds_them_up_first():
    y = np.asarray([[0.6, 0.4], [0.6, 0.4], [0.0, 1.0]])
    annotations = replace(votes([0, 0, 0]), y=y)
    np.testing.assert_array_equal(majority_vote(annotations).probability, [[0, 1]])


def test_random_ties_need_a_generator():
    with pytest.raises(ValueError, match=r"needs a generator.*rng=None came.*default_rng"):
        majority_vote(votes([0, 1]), ties="random")
    with pytest.raises(ValueError, match=r"needs a generator.*rng=7 came"):
        majority_vote(votes([0, 1]), ties="random", rng=7)  # pyright: ignore[reportArgumentType]


def test_an_unknown_tie_policy_is_refused():
    with pytest.raises(ValueError, match=r"one of first, random, soft; 'last' came"):
        majority_vote(votes([0, 1]), ties="last")  # pyright: ignore[reportArgumentType]


# Table 1 of the paper: what each method can hear


def test_only_sle_hears_confidence_beside_labels_and_reliability_from_elsewhere():
    a = votes([0, 0, 1], [1, 1, 0], [0, 0, 0])
    a = replace(a, annotator=np.tile([0, 1, 2], 3), annotators=np.arange(3))
    unsure = replace(a, uncertainty=np.tile([0.9, 0.1, 0.1], 3))
    for method in (majority_vote, soft_vote, crowdtruth):
        np.testing.assert_array_equal(method(a).probability, method(unsure).probability)
    assert not np.allclose(sle(a).probability, sle(unsure).probability)
    trusted = sle(a, reliability=[0.1, 0.9, 0.9]).probability
    assert not np.allclose(sle(a).probability, trusted)
    # Confidence that is given as probabilities is heard by soft votes, and so by CE and KL on them.
    soft = replace(a, y=np.eye(2)[a.y] * 0.8 + 0.1)
    assert not np.allclose(soft_vote(a).probability, soft_vote(soft).probability)
    np.testing.assert_array_equal(majority_vote(a).probability, majority_vote(soft).probability)
    # CrowdTruth hears how reliable annotators are from their agreement: who differs counts less.
    assert crowdtruth(a).probability[0, 0] > soft_vote(a).probability[0, 0]
