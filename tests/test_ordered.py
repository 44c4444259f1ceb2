"""Labels that have an order: distances, "at least k", agreement, severity, and who knows them."""

from dataclasses import replace

import numpy as np
import pytest
from crowds import by_chance, crowd, make
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from strategies import BATCHES, assert_close, assert_is_opinion, crowds, one_in, present, seeds

from slencodings import compare, credible_interval, evaluate, from_table, metrics
from slencodings.aggregate import (
    krippendorff_alpha,
    pairwise_kappa,
    severity,
    shrunk_dawid_skene,
)
from slencodings.aggregate.shrunk import steps_from_truth
from slencodings.evaluation.predictors import Averaged
from slencodings.kinds.ordered import (
    absolute_error,
    at_least,
    ranked_probability_score,
    wasserstein,
)
from slencodings.opinion import Opinion, alpha, encode
from slencodings.trust import learn_crowd


def distributions(rng, *shape):
    p = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    p[..., 0, :] = np.eye(shape[-1])[rng.integers(0, shape[-1])]
    return p


def raters(rng, *, N=60, per=3, M=6, K=5, noise=0.8):
    """People who answer near the truth, each with a bias of their own."""
    truth, bias = rng.integers(0, K, N), rng.normal(0, 0.5, M)
    item = np.repeat(np.arange(N), per)
    who = np.concatenate([rng.choice(M, per, replace=False) for _ in range(N)])
    y = np.rint(truth[item] + bias[who] + noise * rng.normal(size=len(item)))
    a = make(item, who, np.clip(y, 0, K - 1).astype(int), N=N, M=M, K=K)
    return replace(a, ordered=True), truth, bias


def reversed_labels(a):
    y = a.y[:, ::-1] if a.soft else len(a.labels) - 1 - a.y
    return replace(a, y=y, labels=a.labels[::-1])


# At least


@given(crowds())
def test_at_least_is_a_binomial_opinion_whose_evidence_is_the_sum_of_the_labels(opinion):
    found = at_least(opinion)
    assert_is_opinion(found)
    K = opinion.belief.shape[-1]
    for k in range(1, K):
        upper = opinion.probability[..., k:].sum(-1)
        assert_close(found.probability[..., k - 1, 0], upper)
        known = opinion.uncertainty > 0
        evidence = alpha(opinion)[known][..., k:].sum(-1)
        np.testing.assert_allclose(alpha(found)[known][..., k - 1, 0], evidence, rtol=1e-9)


@given(crowds())
def test_at_least_falls_along_the_order(opinion):
    p = at_least(opinion).probability[..., 0]
    assert (np.diff(p, axis=-1) <= 1e-12).all()


@given(crowds())
def test_at_least_of_the_reversed_order_is_its_opposite(opinion):
    b, u, a = opinion
    other = at_least(Opinion(b[..., ::-1], u, a[..., ::-1]))
    assert_close(other.probability[..., ::-1, ::-1], at_least(opinion).probability)


def test_at_least_needs_two_labels():
    with pytest.raises(ValueError, match="over two labels or more"):
        at_least(encode(np.ones((3, 1))))


@given(seeds, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_interval_of_a_label_is_that_of_its_beta(rng, coverage):
    opinion = encode(distributions(rng, 4, 3), rng.uniform(0.05, 1, 4))
    low, high = credible_interval(opinion, coverage=coverage, prior_weight=3.0)
    concentrations = alpha(opinion, prior_weight=3.0)
    for i, k in np.ndindex(4, 3):
        a = concentrations[i, k]
        beta = stats.beta(a, concentrations[i].sum() - a)
        np.testing.assert_allclose([low[i, k], high[i, k]], beta.interval(coverage), atol=1e-9)


def test_the_interval_of_a_dogmatic_or_impossible_label_is_a_point():
    opinion = encode([[0.25, 0.75], [0.0, 1.0]], [0.0, 0.5], base_rate=[0.0, 1.0])
    for end in credible_interval(opinion):
        np.testing.assert_array_equal(end, [[0.25, 0.75], [0.0, 1.0]])


def test_an_interval_holds_some_and_not_all():
    with pytest.raises(ValueError, match="`coverage` must lie between 0 and 1; 1 came"):
        credible_interval(encode([0.5, 0.5], 0.5), coverage=1)


# Distances


@given(seeds, st.integers(2, 6))
def test_wasserstein_equals_scipy(rng, K):
    p, q = distributions(rng, 5, K), distributions(rng, 5, K)
    places = np.arange(K)
    expected = [
        stats.wasserstein_distance(places, places, *pair) for pair in zip(p, q, strict=True)
    ]
    np.testing.assert_allclose(wasserstein(p, q), expected, atol=1e-12)


@given(seeds, st.integers(2, 6))
def test_the_ranked_score_is_the_brier_score_of_every_at_least_over_two(rng, K):
    p, q = distributions(rng, 5, K), distributions(rng, 5, K)
    each = [at_least(encode(x)).probability for x in (p, q)]
    np.testing.assert_allclose(
        ranked_probability_score(p, q), metrics.brier(*each).sum(-1) / 2, atol=1e-12
    )


@given(seeds, st.integers(2, 6))
def test_the_absolute_error_is_that_of_the_median(rng, K):
    p = distributions(rng, 5, K)
    q = rng.multinomial(7, np.ones(K) / K, 5) / 7
    draws = [np.repeat(np.arange(K), np.rint(7 * row).astype(int)) for row in q]
    medians = [np.median(d) for d in draws]
    expected = [row @ np.abs(np.arange(K) - m) for row, m in zip(p, medians, strict=True)]
    np.testing.assert_allclose(absolute_error(p, q), expected, atol=1e-9)


@given(seeds, BATCHES)
def test_of_certain_labels_all_distances_are_the_steps_between(rng, shape):
    k, j = rng.integers(0, 5, shape), rng.integers(0, 5, shape)
    for distance in (wasserstein, ranked_probability_score, absolute_error):
        np.testing.assert_array_equal(distance(np.eye(5)[k], np.eye(5)[j]), np.abs(k - j))


def test_distances_refuse_what_are_no_probabilities():
    with pytest.raises(ValueError, match="`prediction` must be probabilities"):
        wasserstein([1.0, 0.0], [3.0, 1.0])


# Agreement and severity


@given(seeds)
def test_quadratic_kappa_of_two_equals_scikit_learn(rng):
    N, K = 12, 4
    x, y = rng.integers(0, K, (2, N))
    a = make(np.tile(np.arange(N), 2), np.repeat([0, 1], N), np.concatenate([x, y]), K=K)
    expected = cohen_kappa_score(x, y, labels=np.arange(K), weights="quadratic")
    np.testing.assert_allclose(pairwise_kappa(a, weights="quadratic"), [expected] * 2, atol=1e-12)
    np.testing.assert_allclose(pairwise_kappa(replace(a, ordered=True)), [expected] * 2, atol=1e-12)


@given(seeds, st.booleans())
def test_quadratic_kappa_is_one_less_observed_over_expected_squares(rng, soft):
    a = by_chance(rng, soft=soft, N=4, M=3, R=15)
    K, M = len(a.labels), len(a.annotators)
    distance = np.subtract.outer(np.arange(K), np.arange(K)) ** 2
    total, weight = np.zeros(M), np.zeros(M)
    for i in range(M):
        for j in set(range(M)) - {i}:
            pairs = []
            for item in range(len(a.items)):
                own = [a.vectors[(a.item == item) & (a.annotator == m)] for m in (i, j)]
                pairs += [[v.mean(0) for v in own]] if all(map(len, own)) else []
            if pairs:
                x, y = np.asarray(pairs).swapaxes(0, 1)
                observed = np.einsum("nk,kl,nl->n", x, distance, y).mean()
                expected = x.mean(0) @ distance @ y.mean(0)
                total[i] += len(pairs) * (1 - observed / expected if expected > 1e-12 else 1)
                weight[i] += len(pairs)
    expected = np.where(weight > 0, total / np.maximum(weight, 1), np.nan)
    np.testing.assert_allclose(pairwise_kappa(a, weights="quadratic"), expected, atol=1e-9)


def test_kappa_knows_its_weights():
    with pytest.raises(ValueError, match="`weights` must be one of none, quadratic; 'cubic' came"):
        pairwise_kappa(make([0, 0], [0, 1], [0, 1]), weights="cubic")  # pyright: ignore


@given(seeds)
def test_alpha_of_ordered_labels_is_ordinal(rng):
    a = by_chance(rng)
    ordered = krippendorff_alpha(replace(a, ordered=True))
    assert ordered.alpha == krippendorff_alpha(a, level="ordinal").alpha
    assert krippendorff_alpha(a).alpha == krippendorff_alpha(a, level="nominal").alpha


@given(seeds, st.booleans())
def test_severity_is_the_mean_difference_from_the_others(rng, soft):
    a = replace(by_chance(rng, soft=soft), ordered=True)
    found = severity(a)
    x = a.vectors @ np.arange(len(a.labels))
    for m in range(len(a.annotators)):
        d = []
        for i in range(len(a.items)):
            here = a.item == i
            others = [x[here & (a.annotator == j)] for j in range(len(a.annotators)) if j != m]
            means = [o.mean() for o in others if len(o)]
            own = x[here & (a.annotator == m)]
            d += [own.mean() - np.mean(means)] if len(own) and means else []
        if not d:
            assert np.isnan([found.mean[m], found.low[m], found.high[m]]).all()
            continue
        assert found.mean[m] == pytest.approx(np.mean(d), abs=1e-9)
        if len(d) > 1:
            # Not `t.interval`, which has no answer where all differences are alike.
            half = stats.t.ppf(0.975, len(d) - 1) * stats.sem(d)
            assert found.low[m] == pytest.approx(np.mean(d) - half, abs=1e-9)
            assert found.high[m] == pytest.approx(np.mean(d) + half, abs=1e-9)
        else:
            assert np.isnan([found.low[m], found.high[m]]).all()


@given(seeds)
def test_of_two_one_is_as_severe_as_the_other_is_mild(rng):
    a = replace(by_chance(rng, M=2, N=3), ordered=True)
    found = severity(a).mean
    np.testing.assert_allclose(found[0], -found[1], atol=1e-14)


def test_severity_finds_who_answers_high():
    a, _, bias = raters(np.random.default_rng(3), N=300)
    found = severity(a)
    assert np.corrcoef(found.mean, bias)[0, 1] > 0.9
    high, low = bias.argmax(), bias.argmin()
    assert found.low[high] > 0 > found.high[low]


def test_severity_needs_an_order_and_a_coverage():
    a = make([0, 0], [0, 1], [0, 1])
    with pytest.raises(ValueError, match="severity needs labels that have an order"):
        severity(a)
    with pytest.raises(ValueError, match="`coverage` must lie between 0 and 1; 0 came"):
        severity(replace(a, ordered=True), coverage=0)


# What is true


@given(seeds)
def test_expected_confusions_along_the_order_are_chances(rng):
    mass = rng.random((3, 4, 4)) * rng.integers(0, 2, (3, 4, 4))
    X = steps_from_truth(mass)
    np.testing.assert_allclose(X.sum(2), 1)
    assert (X > 0).all()


@given(seeds)
def test_expected_confusions_depend_on_steps_alone_but_for_the_ends(rng):
    X = steps_from_truth(rng.random((2, 5, 5)))
    for m, c in np.ndindex(2, 3):
        for d in range(-c, 4 - c):
            # Each row is divided by what lies within the ends, so ratios are what is shared.
            one, other = X[m, c], X[m, c + 1]
            assert one[c + d] / one[c] == pytest.approx(other[c + 1 + d] / other[c + 1])


@one_in(5)
@given(seeds)
def test_reversing_the_order_reverses_what_is_true(rng):
    a = raters(rng, N=8, per=2, M=3)[0]
    found = shrunk_dawid_skene(a, along_order=True)
    other = shrunk_dawid_skene(reversed_labels(a), along_order=True)
    np.testing.assert_allclose(other.probability[:, ::-1], found.probability, atol=1e-8)
    np.testing.assert_allclose(present(other.reliability), present(found.reliability), atol=1e-8)


def test_one_label_has_no_steps():
    np.testing.assert_array_equal(steps_from_truth(np.ones((2, 1, 1))), np.ones((2, 1, 1)))


def test_a_crowd_uses_the_order_only_where_that_predicts_votes():
    a = raters(np.random.default_rng(0), N=60)[0]
    crowd_in_order, as_names = (learn_crowd(x).model for x in (a, replace(a, ordered=False)))
    in_order, names = present(crowd_in_order), present(as_names)
    assert np.abs(in_order.confusion - names.confusion).max() > 0.01
    # Who errs without an order gains nothing by one, and the same is learned.
    mixed = crowd(np.random.default_rng(1), N=80, M=5, K=4, R=400)
    place = np.asarray([2, 0, 3, 1])
    mixed = replace(mixed, y=place[mixed.y], ordered=True)
    one, two = (learn_crowd(x).votes(mixed) for x in (mixed, replace(mixed, ordered=False)))
    assert_close(one, two)


# Averaged numbers, and how all compare


@given(seeds)
def test_averaged_numbers_are_a_normal_around_the_others_mean(rng):
    a = raters(rng, N=5, per=3, M=4)[0]
    reader = Averaged(center=2.0, held_back=0.5, variance=1.3)
    got = reader.predict(a)
    np.testing.assert_allclose(got.sum(1), 1)
    q = int(rng.integers(len(a.item)))
    others = (a.item == a.item[q]) & (np.arange(len(a.item)) != q)
    n = others.sum() + 0.5
    normal = stats.norm((a.y[others].sum() + 1.0) / n, np.sqrt(1.3 * (1 + 1 / n)))
    edges = [-np.inf, 0.5, 1.5, 2.5, 3.5, np.inf]
    np.testing.assert_allclose(got[q], np.diff(normal.cdf(edges)), atol=1e-12)


@given(seeds)
def test_averaged_numbers_know_no_direction(rng):
    a = raters(rng, N=6, per=3, M=4)[0]
    one, other = Averaged(1.0, 0.3, 0.7), Averaged(3.0, 0.3, 0.7)
    flipped = reversed_labels(a)
    np.testing.assert_allclose(other.predict(flipped)[:, ::-1], one.predict(a), atol=1e-12)
    np.testing.assert_allclose(other.target(flipped)[:, ::-1], one.target(a), atol=1e-12)
    own = other.predict_own(flipped, flipped)[:, ::-1]
    np.testing.assert_allclose(own, one.predict_own(a, a), atol=1e-12)


def test_averaged_numbers_are_learned():
    a = raters(np.random.default_rng(0), N=200, noise=0.3)[0]
    assert 0.1 < Averaged.learn(a).variance < 1
    wider = raters(np.random.default_rng(0), N=200, noise=1.2)[0]
    assert Averaged.learn(wider).variance > 1


def test_comparing_ordered_labels_adds_rivals_and_steps():
    a, truth, _ = raters(np.random.default_rng(0), N=40)
    wanted = ["averaged numbers", "soft votes"]
    found = compare(a, gold=truth, methods=wanted, bootstrap=20)
    for row in found.rows:
        assert 0 < present(row["steps"]) < 2
        assert 0 < present(row["ranked"]) < 1
        # Half of what is predicted is the median or beyond it.
        assert present(row["steps"]) / 2 <= present(row["wasserstein"]) < 2
        assert 0 < present(row.get("truth_steps")) < 1
    assert found.rows[0]["method"] == "averaged numbers"
    assert "steps off" in str(found)
    plain = compare(replace(a, ordered=False), methods=["soft votes"], bootstrap=20)
    assert plain.rows[0]["steps"] is plain.rows[0]["ranked"] is None
    assert "steps off" not in str(plain)
    with pytest.raises(ValueError, match="'averaged numbers' came"):
        compare(replace(a, ordered=False), methods=wanted)


def test_evaluating_ordered_labels_adds_distances():
    a, truth, _ = raters(np.random.default_rng(0), N=30)
    P = np.eye(5)[truth]
    row = evaluate(P, a, truth)
    assert row["steps_gold"] == row["ranked_gold"] == 0
    share = a.sums() / a.sums().sum(1, keepdims=True)
    assert row["wasserstein"] == pytest.approx(wasserstein(share, P).mean())
    assert row["steps_crowd"] == pytest.approx(absolute_error(share, P).mean())
    plain = evaluate(P, replace(a, ordered=False), truth)
    assert {plain[key] for key in ("steps_gold", "ranked_crowd", "wasserstein")} == {None}


# Reading


def test_a_table_is_read_in_the_order_that_is_named():
    table = {"item": [1, 1], "label": ["high", "low"]}
    a = from_table(table, item="item", label="label", ordered=["low", "middle", "high"])
    assert a.ordered
    assert a.labels.tolist() == ["low", "middle", "high"]
    assert a.rows([0]).ordered
    assert not from_table(table, item="item", label="label").ordered


def test_an_order_names_all_labels():
    table = {"item": [1, 1], "label": ["high", "low"]}
    with pytest.raises(ValueError, match="2 came as `labels` too"):
        from_table(
            table, item="item", label="label", labels=["low", "high"], ordered=["low", "high"]
        )
    with pytest.raises(ValueError, match="must hold one of ordered="):
        from_table(table, item="item", label="label", ordered=["low", "middle"])
