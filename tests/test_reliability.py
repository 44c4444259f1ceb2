from dataclasses import replace
from functools import partial

import crowds
import numpy as np
import pytest
from crowds import by_chance
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from strategies import seeds

from slencodings import alpha, check, discount, encode
from slencodings.aggregate import pairwise_kappa, share_of_agreement
from slencodings.aggregate.reliability import (
    as_reliability,
    filter_by_reliability,
    reliability_opinion,
)
from slencodings.aggregate.sle import sle
from slencodings.annotations import Annotations
from slencodings.confidence import calibrate

read = partial(crowds.read, labels=[0, 1])

# Opinions


# SciPy computes a kurtosis too, which overflows for tiny base rates.
@given(
    seeds,
    st.booleans(),
    st.just(0.0) | st.floats(1e-6, 1),
    st.sampled_from([0.5, 2.0, 10.0]),
)
def test_it_is_the_beta_posterior_of_agreement(rng, soft, a, W):
    crowded = by_chance(rng, soft=soft)
    opinion = check(reliability_opinion(crowded, base_rate=a, prior_weight=W))
    p = np.nan_to_num(share_of_agreement(crowded))
    # judgments on items that somebody else judged too
    pairs = set(zip(crowded.item.tolist(), crowded.annotator.tolist(), strict=True))
    n = np.asarray(
        [sum(any((i, k) in pairs for k in range(5) if k != m) for i, j in pairs if j == m)
         for m in range(5)]
    )  # fmt: skip
    r, s = n * p, n * (1 - p)
    expected = np.stack([r + W * a, s + W * (1 - a)], axis=-1)
    np.testing.assert_allclose(alpha(opinion, prior_weight=W), expected, rtol=0, atol=1e-9)
    some = expected.min(-1) > 0
    mean = beta(expected[some, 0], expected[some, 1]).mean()
    np.testing.assert_allclose(opinion.probability[some, 0], mean, rtol=0, atol=1e-12)


def test_who_was_seen_little_is_discounted_by_ignorance_not_by_distrust():
    # ann and bob agree on ten items; cyd agrees on one of them, dan disagrees on all
    item = [*range(10), *range(10), 0, *range(10)]
    who = ["ann"] * 10 + ["bob"] * 10 + ["cyd"] + ["dan"] * 10
    crowded = read(item, who, [1] * 21 + [0] * 10)
    opinion = reliability_opinion(crowded)
    ann, bob, cyd, dan = opinion.probability[:, 0]
    assert dan < cyd
    assert opinion.uncertainty[2] == pytest.approx(2 / 3)
    assert opinion.uncertainty[0] == pytest.approx(2 / 12)
    assert opinion.belief[2, 1] < opinion.uncertainty[2]
    assert opinion.belief[3, 1] > opinion.uncertainty[3]
    assert ann == bob


def test_a_judgment_counts_one_however_many_peers_it_has():
    few, many = ([0] * n + [1] * n for n in (2, 50))
    for labels in (few, many):
        opinion = reliability_opinion(read([0] * len(labels), range(len(labels)), labels))
        np.testing.assert_allclose(opinion.uncertainty, 2 / 3)


def test_who_shares_no_item_is_vacuous_and_judged_by_the_base_rate():
    crowded = read([1, 1, 2, 2, 3], "ababc", [0, 0, 0, 1, 0])
    opinion = reliability_opinion(crowded)
    assert opinion.uncertainty[2] == 1
    np.testing.assert_allclose(opinion.probability[2], [0.5, 0.5])  # the crowd agrees half the time
    np.testing.assert_allclose(reliability_opinion(crowded, base_rate=0.9).probability[2, 0], 0.9)
    alone = reliability_opinion(read([1, 2], "ab", [0, 1]))
    np.testing.assert_array_equal(alone.probability, np.full((2, 2), 0.5))


def test_chance_is_corrected_as_in_calibration():
    rng = np.random.default_rng(0)
    item, who = np.repeat(np.arange(300), 3), np.tile(np.arange(3), 300)
    truth = rng.random(300) < 0.2
    y = np.where(rng.random(900) < 0.1, rng.random(900) < 0.2, truth[item]).astype(int)
    names = np.arange(300), np.arange(3), np.arange(2)
    crowded = Annotations(item, who, y, np.zeros(900), *names)
    overall = calibrate(crowded, prior_strength=0)
    opinion = reliability_opinion(crowded, chance=True)
    assert opinion.base_rate[0, 0] == pytest.approx(1 - overall.uncertainty[0], abs=1e-12)
    assert np.all(opinion.probability[:, 0] < reliability_opinion(crowded).probability[:, 0])


def test_less_than_chance_is_no_trust_and_one_label_is_full_agreement():
    contrary = read([1, 1, 2, 2], "abab", [0, 1, 1, 0])
    np.testing.assert_array_equal(reliability_opinion(contrary, chance=True).belief[:, 0], [0, 0])
    same = read([1, 1, 2, 2], "abab", [0, 0, 0, 0])
    opinion = reliability_opinion(same, chance=True)
    np.testing.assert_array_equal(opinion.belief, [[0.5, 0], [0.5, 0]])
    np.testing.assert_array_equal(opinion.probability, [[1, 0], [1, 0]])


def test_it_feeds_discount_and_the_encoding():
    crowded = read([1, 1, 2, 2, 1], "ababc", [0, 0, 0, 1, 1])
    opinion = reliability_opinion(crowded)
    r = opinion.probability[:, 0]
    np.testing.assert_array_equal(crowded.per_annotation(opinion), r[crowded.annotator])
    got, expected = (sle(crowded, reliability=x) for x in (opinion, r))
    np.testing.assert_array_equal(got.belief, expected.belief)
    said = encode(np.eye(2)[[0, 0, 1]])
    np.testing.assert_array_equal(discount(said, opinion).belief, discount(said, r).belief)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_rate": 1.5}, r"`base_rate` must lie in \[0, 1\].*1.5 came"),
        ({"base_rate": np.nan}, r"`base_rate` must lie in \[0, 1\].*nan came"),
        ({"prior_weight": 0}, r"`prior_weight` must be above 0 and finite; 0 came"),
        ({"prior_weight": np.inf}, r"`prior_weight` must be above 0 and finite; inf came"),
    ],
)
def test_priors_that_are_none_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        reliability_opinion(read([1], "a", [0]), **options)


# Scores


def test_negative_and_missing_scores_are_mapped_and_told():
    kappa = pairwise_kappa(read([1, 1, 2, 2, 3], "ababc", [0, 1, 1, 0, 0]))
    np.testing.assert_allclose(kappa, [-1, -1, np.nan])
    mapped = as_reliability(kappa)
    np.testing.assert_array_equal(mapped.reliability, [0, 0, 0])
    np.testing.assert_array_equal(mapped.negative, [0, 1])
    np.testing.assert_array_equal(mapped.unknown, [2])


def test_when_nothing_is_known_everybody_is_trusted():
    mapped = as_reliability([np.nan, np.nan])
    np.testing.assert_array_equal(mapped.reliability, [1, 1])
    assert len(mapped.negative) == 0


@pytest.mark.parametrize(
    ("score", "words"),
    [
        ([0.5, 80.0], r"at most 1 per annotator.*maximum of 80 came\. Divide"),
        (0.5, r"shape \(\) with"),
        ([[0.5]], r"shape \(1, 1\)"),
    ],
)
def test_scores_that_are_no_reliability_are_refused(score, words):
    with pytest.raises(ValueError, match=words):
        as_reliability(score)


# Filtering

CROWD = read([1, 1, 1, 2, 2, 3], ["ann", "bob", "cyd", "ann", "bob", "cyd"], [0, 0, 1, 1, 1, 0])


def test_filtering_tells_what_it_dropped():
    left, report = filter_by_reliability(CROWD, [0.9, 0.8, 0.1], threshold=0.5)
    assert report.annotators == ["cyd"]
    assert report.annotations == (2, 6)
    assert report.items == [3]
    assert report.unknown == []
    assert report.threshold == 0.5
    np.testing.assert_array_equal(left.item, [0, 0, 1, 1])
    np.testing.assert_array_equal(left.y, [0, 0, 1, 1])
    # items, annotators and labels stay
    for name in ("items", "annotators", "labels"):
        np.testing.assert_array_equal(getattr(left, name), getattr(CROWD, name))
    assert sle(left).uncertainty[2] == 1
    assert str(report) == (
        "below 0.5: dropped 2 of 6 annotations and 1 annotator; 1 item left without any"
    )


def test_what_lies_at_the_threshold_stays():
    assert filter_by_reliability(CROWD, [0.5, 0.5, 0.5], threshold=0.5)[1].annotations == (0, 6)


def test_the_better_half():
    left, report = filter_by_reliability(CROWD, [0.9, 0.8, -0.1], quantile=0.5)
    assert report.threshold == 0.8
    assert report.annotators == ["cyd"]
    assert len(left.item) == 4
    assert filter_by_reliability(CROWD, [0.9, 0.8, -0.1], quantile=0)[1].annotations == (0, 6)


def test_a_quantile_is_one_of_those_who_annotated():
    more = replace(CROWD, annotators=np.asarray(["ann", "bob", "cyd", "dan"]))
    report = filter_by_reliability(more, [0.9, 0.8, 0.1, 0.0], quantile=0.5)[1]
    assert report.threshold == 0.8


def test_single_annotations_may_be_dropped():
    left, report = filter_by_reliability(CROWD, [1, 1, 0, 1, 0, 1], threshold=0.5)
    assert report.annotators == []
    assert report.annotations == (2, 6)
    np.testing.assert_array_equal(left.annotator, [0, 1, 0, 2])
    assert filter_by_reliability(CROWD, [1, 1, 0, 1, 0, 1], quantile=0.5)[1].threshold == 1


def test_unknown_is_not_low():
    left, report = filter_by_reliability(CROWD, {"ann": 0.9, "bob": 0.1}, threshold=0.5)
    assert report.annotators == ["bob"]
    assert report.unknown == ["cyd"]
    assert len(left.item) == 4
    assert str(report).endswith("; kept 1 annotator of unknown reliability")
    nobody = filter_by_reliability(CROWD, [np.nan] * 3, quantile=0.5)[1]
    assert nobody.annotations == (0, 6)


def test_an_opinion_filters_by_its_projection():
    opinion = reliability_opinion(CROWD)
    by_opinion, by_number = (
        filter_by_reliability(CROWD, r, quantile=0.5)[1]
        for r in (opinion, opinion.probability[:, 0])
    )
    assert by_opinion == by_number
    assert by_opinion.annotators == ["cyd"]


@given(seeds, st.booleans())
def test_filtering_ignores_row_order(rng, soft):
    a = by_chance(rng, soft=soft)
    p = rng.permutation(25)
    b = replace(a, item=a.item[p], annotator=a.annotator[p], y=a.y[p])
    r = rng.random(5)
    one, two = (filter_by_reliability(x, r, quantile=0.4) for x in (a, b))
    assert one[1] == two[1]
    np.testing.assert_allclose(one[0].sums(), two[0].sums(), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("reliability", "options", "words"),
    [
        ([1, 1, 1], {}, r"either `threshold` or `quantile`; threshold=None and quantile=None"),
        ([1, 1, 1], {"threshold": 0.5, "quantile": 0.5}, r"threshold=0.5 and quantile=0.5 came"),
        ([1, 1, 1], {"quantile": 50}, r"`quantile` must lie in \[0, 1\]; 50 came"),
        ([1, 1], {"threshold": 0.5}, r"\(3,\) or per annotation \(6,\); shape \(2,\) came"),
        (0.5, {"threshold": 0.5}, r"shape \(\) came\. Get some from share_of_agreement"),
    ],
)
def test_filters_that_make_no_sense_are_refused(reliability, options, words):
    with pytest.raises(ValueError, match=words):
        filter_by_reliability(CROWD, reliability, **options)
