import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, log_loss, roc_auc_score
from strategies import seeds

from slencodings import discount, encode, fuse
from slencodings.metrics import (
    auroc,
    brier,
    calibration_error,
    cross_entropy,
    entropy_correlation,
    entropy_similarity,
    held_out_log_loss,
    jsd,
    macro_f1,
    shares_right,
)


def distributions(rng, *shape, K):
    """Dirichlets of very different sharpness, some with exact zeros, some one-hot."""
    x = rng.dirichlet(np.full(K, 10.0 ** rng.uniform(-1, 1)), shape)
    x[x < rng.choice([0, 0.1])] = 0
    if rng.random() < 0.3:
        x = np.eye(K)[rng.integers(0, K, shape)]
    return x / x.sum(-1, keepdims=True)


def lattice(K, divisions):
    """All points of the simplex with coordinates n / divisions."""
    chosen = combinations_with_replacement(range(K), divisions)
    return np.stack([np.bincount(c, minlength=K) / divisions for c in chosen])


def entropy_by_hand(p):
    return [-sum(x * math.log(x) for x in row if x > 0) / math.log(len(row)) for row in p.tolist()]


# Jensen-Shannon


@given(seeds, st.integers(2, 6))
def test_jsd_is_what_scipy_says(rng, K):
    p, q = distributions(rng, 7, K=K), distributions(rng, 7, K=K)
    expected = jensenshannon(p, q, axis=-1)  # pyright: ignore[reportCallIssue]
    np.testing.assert_allclose(jsd(p, q, root=True), expected, atol=1e-8)
    np.testing.assert_allclose(jsd(p, q), expected**2, atol=1e-14)
    expected = jensenshannon(p, q, 2, axis=-1)  # pyright: ignore[reportCallIssue]
    np.testing.assert_allclose(jsd(p, q, base=2), expected**2, atol=1e-14)


@given(seeds, st.integers(1, 6))
def test_jsd_is_symmetric_and_between_nothing_and_log_two(rng, K):
    p, q = distributions(rng, 3, 4, K=K), distributions(rng, 3, 4, K=K)
    value = jsd(p, q)
    assert value.shape == (3, 4)
    assert np.all((value >= 0) & (value <= math.log(2) + 1e-15))
    np.testing.assert_array_equal(value, jsd(q, p))
    np.testing.assert_array_equal(jsd(p, p), np.zeros((3, 4)))


def test_jsd_is_exact_at_its_ends():
    assert jsd([1.0, 0.0], [0.0, 1.0]) == pytest.approx(math.log(2), abs=0)
    assert jsd([1.0, 0.0], [0.0, 1.0], base=2, root=True) == 1
    assert jsd([1.0, 0.0], [1.0, 0.0]) == 0


def test_jsd_of_distributions_that_hardly_differ_has_a_root():
    p = np.asarray([[1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]])
    q = p + np.asarray([1e-16, -1e-16, 0])
    assert np.all(jsd(p, q, root=True) < 1e-7)


def test_jsd_takes_the_smallest_number_there_is():
    tiny = 5e-324
    assert jsd([1.0, tiny], [1.0, 0.0]) == pytest.approx(0, abs=1e-300)
    assert jsd([1.0, 0.0], [1.0, tiny]) == pytest.approx(0, abs=1e-300)


# Entropies


def test_entropy_similarity_of_one_hot_predictions_is_the_papers_constant():
    points = lattice(5, 4)
    assert points.shape == (70, 5)
    one_hot = np.eye(5)[points.argmax(-1)]
    assert entropy_similarity(points, one_hot) == pytest.approx(0.9229, abs=5e-5)
    # which is the limit of a tiny equal entropy
    for smoothing in (1e-3, 1e-6, 1e-12):
        almost = (1 - smoothing) * one_hot + smoothing / 5
        expected = entropy_similarity(points, almost)
        assert entropy_similarity(points, one_hot) == pytest.approx(expected, abs=1e-12)


@given(seeds, st.integers(2, 5), st.integers(3, 9))
def test_entropy_similarity_and_correlation_are_a_cosine_and_pearsons(rng, K, N):
    p, q = (rng.dirichlet(np.ones(K), N) for _ in range(2))
    a, b = np.asarray(entropy_by_hand(p)), np.asarray(entropy_by_hand(q))
    cosine = math.fsum(a * b) / math.sqrt(math.fsum(a * a) * math.fsum(b * b))
    assert entropy_similarity(p, q) == pytest.approx(cosine, abs=1e-13)
    assert entropy_correlation(p, q) == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-9)


@given(seeds, st.integers(1, 5), st.integers(1, 9))
def test_entropy_similarity_stays_in_range_and_does_not_care_which_labels(rng, K, N):
    p, q = distributions(rng, N, K=K), distributions(rng, N, K=K)
    value = entropy_similarity(p, q)
    assert 0 <= value <= 1
    assert value == pytest.approx(entropy_similarity(q, p), abs=1e-14)
    assert value == pytest.approx(entropy_similarity(p, q[:, rng.permutation(K)]), abs=1e-12)
    assert entropy_similarity(p, p) == pytest.approx(1, abs=1e-14)


def test_entropy_similarity_of_one_hot_with_one_hot_is_one():
    assert entropy_similarity(np.eye(3), np.eye(3)[::-1]) == 1
    assert entropy_similarity(np.ones((4, 1)), np.ones((4, 1))) == 1


def test_entropy_similarity_survives_entropies_too_small_to_square():
    p = np.asarray([[1.0, 1e-200], [1.0, 2e-200]])
    assert entropy_similarity(p, p) == pytest.approx(1)
    assert entropy_correlation(p, p) == pytest.approx(1)


def test_entropy_correlation_of_a_constant_is_nan():
    varied = [[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]
    assert math.isnan(entropy_correlation(varied, np.eye(2)[[0, 1, 1]]))
    assert math.isnan(entropy_correlation(np.eye(2)[[0, 1, 1]], varied))
    assert math.isnan(entropy_correlation([[0.5, 0.5]], [[0.2, 0.8]]))
    # the same numbers in another order have the same entropy but for rounding
    shuffled = np.asarray([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
    assert math.isnan(entropy_correlation(shuffled, [[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]]))


def test_entropy_correlation_turned_round_is_minus_one():
    up, down = [[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]
    assert entropy_correlation(up, down) == pytest.approx(-1)


# Held-out annotations


def refuse_the_others(item, y, c, a):
    """Fuse the others of each annotation again, and score their probability."""
    loss = []
    for q in range(len(item)):
        others = np.flatnonzero((item == item[q]) & (np.arange(len(item)) != q))
        if not len(others):
            loss.append(math.nan)
            continue
        said = discount(encode(y[others], base_rate=a), c[others])
        P = fuse(said).probability
        terms = [(s, p) for s, p in zip(y[q], P, strict=True) if s > 0]
        loss.append(math.fsum(-s * math.log(p) if p > 0 else math.inf for s, p in terms))
    return np.asarray(loss)


@given(seeds, st.integers(1, 4), st.integers(1, 12), st.booleans())
def test_held_out_loss_is_that_of_the_others_fused_again(rng, K, R, certain):
    item = rng.integers(0, 4, R)
    c = rng.choice([0, 0.3, 0.9, 1.0 if certain else 0.99], R)
    a = rng.dirichlet(np.ones(K))
    codes, soft = rng.integers(0, K, R), distributions(rng, R, K=K)
    for y, vectors, n_labels in ((codes, np.eye(K)[codes], K), (soft, soft, None)):
        expected = refuse_the_others(item, vectors, c, a)
        got = held_out_log_loss(item, y, c, n_labels=n_labels, base_rate=a, each=True)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
        if not np.all(np.isnan(expected)):
            mean = held_out_log_loss(item, y, c, n_labels=n_labels, base_rate=a)
            assert mean == pytest.approx(np.nanmean(expected), abs=1e-12)


def held_out_exactly(item, y, c, K):
    """P of the label given, in fractions."""
    worth = [Fraction(x) / (1 - Fraction(x)) for x in c.tolist()]
    P = []
    for q in range(len(item)):
        others = [j for j in range(len(item)) if j != q and item[j] == item[q]]
        same = sum(worth[j] for j in others if y[j] == y[q])
        P.append((same + Fraction(1, K)) / (sum(worth[j] for j in others) + 1))
    return P


def log_of_fraction(x):
    return math.log(float(x)) if x < 0.5 else math.log1p(float(x - 1))


@given(seeds, st.lists(st.sampled_from([0, 1e-300, 1e-9, 0.5, 0.999]), max_size=8))
def test_held_out_loss_does_not_cancel_where_one_annotation_outweighs_the_rest(rng, rest):
    for heavy in (1 - 1e-6, 1 - 1e-12, 1 - 2.0**-53):
        c = rng.permutation([heavy, *rest, *rest[:1], heavy if rng.random() < 0.3 else 0.1])
        item, y = rng.integers(0, 2, len(c)), rng.integers(0, 3, len(c))
        exact = held_out_exactly(item, y, c, 3)
        got = held_out_log_loss(item, y, c, n_labels=3, each=True)
        expected = [-log_of_fraction(P) for P in exact]
        peers = ~np.isnan(got)
        np.testing.assert_allclose(got[peers], np.asarray(expected)[peers], rtol=1e-13, atol=1e-14)


def test_held_out_loss_of_many_annotations_on_one_item_is_exact_and_linear():
    rng = np.random.default_rng(0)
    R = 10**5
    c = np.concatenate([rng.uniform(0, 0.9, R - 1), [1 - 1e-12]])
    y = rng.integers(0, 2, R)
    got = held_out_log_loss(np.zeros(R, int), y, c, n_labels=2, each=True)
    worth = c / (1 - c)
    # The last one outweighs the others by far, so theirs is the sum to get right.
    same = math.fsum(worth[:-1][y[:-1] == y[-1]])
    expected = -math.log((same + 0.5) / (math.fsum(worth[:-1]) + 1))
    assert got[-1] == pytest.approx(expected, rel=1e-12)
    same = math.fsum(worth[1:][y[1:] == y[0]])
    expected = -math.log((same + 0.5) / (math.fsum(worth[1:]) + 1))
    assert got[0] == pytest.approx(expected, rel=1e-10)


def test_held_out_loss_of_certain_annotations():
    item, y = [0, 0, 0], [0, 1, 1]
    certain = held_out_log_loss(item, y, 1.0, n_labels=2, each=True)
    np.testing.assert_allclose(certain, [math.inf, math.log(2), math.log(2)])
    assert held_out_log_loss(item, y, 1, n_labels=2) == math.inf
    # one who is certain does not predict herself
    alone = held_out_log_loss(item, y, [1.0, 0.5, 0.0], n_labels=2, each=True)
    np.testing.assert_allclose(alone, [-math.log(0.25), math.inf, math.inf])


def test_held_out_loss_averages_what_certain_annotations_say_in_parts():
    y = [[0.8, 0.2], [0.4, 0.6], [1.0, 0.0]]
    loss = held_out_log_loss([0, 0, 0], y, [1.0, 1.0, 0.5], each=True)
    expected = [
        -0.8 * math.log(0.4) - 0.2 * math.log(0.6),
        -0.4 * math.log(0.8) - 0.6 * math.log(0.2),
    ]
    np.testing.assert_allclose(loss, [*expected, -math.log(0.6)])


@given(seeds)
def test_held_out_loss_ignores_row_order_and_names(rng):
    R, K = 20, 3
    item, y, c = rng.integers(0, 5, R), rng.integers(0, K, R), rng.random(R)
    loss = held_out_log_loss(item, y, c, n_labels=K, each=True)
    order, rename, labels = rng.permutation(R), rng.permutation(9), rng.permutation(K)
    again = held_out_log_loss(
        rename[item[order]], labels[y[order]], c[order], n_labels=K, each=True
    )
    np.testing.assert_allclose(again, loss[order], atol=1e-13)


def test_annotations_worth_nothing_leave_the_base_rate():
    loss = held_out_log_loss([0, 0], [0, 1], 0.0, n_labels=2, base_rate=[0.2, 0.8], each=True)
    np.testing.assert_allclose(loss, [-math.log(0.2), -math.log(0.8)])
    impossible = held_out_log_loss([0, 0], [0, 1], 0.0, n_labels=2, base_rate=[0, 1], each=True)
    np.testing.assert_allclose(impossible, [math.inf, 0])


# Labels, calibration and ranks


@given(seeds, st.integers(2, 5))
def test_labels_are_scored_as_by_scikit_learn(rng, K):
    labels, q = rng.integers(0, K, 9), rng.dirichlet(np.ones(K), 9)
    p, top = np.eye(K)[labels], q.argmax(axis=1)
    names = np.arange(K)
    assert np.mean(shares_right(p, q)) == pytest.approx(accuracy_score(labels, top))
    assert macro_f1(p, q) == pytest.approx(f1_score(labels, top, average="macro"))
    assert np.mean(cross_entropy(p, q)) == pytest.approx(log_loss(labels, q, labels=names))
    # scikit-learn scores one label against the rest
    each = [brier_score_loss(labels == k, q[:, k], pos_label=True) for k in names]
    assert np.mean(brier(p, q)) == pytest.approx(math.fsum(each))


def test_labels_that_tie_are_right_in_parts_whatever_their_order():
    thirds = np.full((1, 3), 1 / 3)
    for k in range(3):
        assert shares_right(np.eye(3)[[k]], thirds) == pytest.approx(1 / 3)
        assert calibration_error(np.eye(3)[[k]], thirds) == pytest.approx(0, abs=1e-14)
    assert shares_right([[0.5, 0.5, 0]], [[0.4, 0.2, 0.4]]) == pytest.approx(0.25)
    tie = [0.1 + 0.2, 0.3, 0.2, 0.2]
    np.testing.assert_array_equal(shares_right(np.eye(4), [tie] * 4), [0.5, 0.5, 0, 0])
    assert macro_f1([[0.5, 0.5, 0]], [[1, 0, 0]]) == pytest.approx((2 * 0.5 / 1.5 + 0) / 2)


def calibration_by_hand(p, q, bins):
    """Every bin in turn, its mean truth against its mean claim."""
    error = 0.0
    for j in range(bins):
        inside = [i for i in range(len(q)) if j / bins < max(q[i]) <= (j + 1) / bins]
        if inside:
            true = sum(p[i][int(np.argmax(q[i]))] for i in inside) / len(inside)
            said = sum(max(q[i]) for i in inside) / len(inside)
            error += len(inside) / len(q) * abs(true - said)
    return error


@given(seeds, st.integers(2, 5), st.integers(1, 20))
def test_calibration_error_is_that_of_every_bin_in_turn(rng, K, bins):
    q = rng.dirichlet(np.ones(K), 30)
    for p in (np.eye(K)[rng.integers(0, K, 30)], distributions(rng, 30, K=K)):
        expected = calibration_by_hand(p.tolist(), q.tolist(), bins)
        assert calibration_error(p, q, bins=bins) == pytest.approx(expected, abs=1e-12)
    assert calibration_error(q, q, bins=bins) == pytest.approx(0, abs=1e-12)


@given(seeds, st.integers(2, 12))
def test_auroc_is_that_of_scikit_learn_with_ties_and_in_parts(rng, N):
    score = rng.integers(0, 4, N) / 3
    positive = rng.integers(0, 2, N)
    positive[:2] = 0, 1
    assert auroc(positive, score) == pytest.approx(roc_auc_score(positive, score), abs=1e-12)
    parts = rng.uniform(0.1, 0.9, N)
    weight, both = np.concatenate([parts, 1 - parts]), np.repeat([1, 0], N)
    expected = roc_auc_score(both, np.tile(score, 2), sample_weight=weight)
    assert auroc(parts, score) == pytest.approx(expected, abs=1e-12)


def test_a_certain_label_may_be_a_hair_above_one():
    hair = np.asarray([[0.95, 0.05], [1 + 2**-52, 0.0]])
    assert calibration_error([[1, 0], [0, 1]], hair) == pytest.approx((1 - 0.05) / 2)
    np.testing.assert_array_equal(cross_entropy([[1, 0]], hair[1:]), [0])


@given(seeds, st.integers(2, 4))
def test_items_may_stand_in_any_shape(rng, K):
    p, q = distributions(rng, 3, 5, K=K), distributions(rng, 3, 5, K=K)
    flat = p.reshape(-1, K), q.reshape(-1, K)
    for metric in (calibration_error, entropy_similarity, entropy_correlation, macro_f1):
        np.testing.assert_allclose(metric(p, q), metric(*flat), atol=1e-15)
    for metric in (brier, cross_entropy, jsd, shares_right):
        np.testing.assert_array_equal(metric(p, q), metric(*flat).reshape(3, 5))


def test_scores_of_nothing_are_nan():
    none = np.ones((0, 2))
    assert math.isnan(calibration_error(none, none))
    assert math.isnan(macro_f1(none, none))
    assert math.isnan(auroc([], []))
    assert math.isnan(auroc([True, True], [0.1, 0.2]))
    assert auroc([True, False], [math.inf, -math.inf]) == 1


# What it refuses


@pytest.mark.parametrize("bins", [0, -1, 2.5])
def test_calibration_error_refuses_bins_that_are_none(bins):
    with pytest.raises(ValueError, match=r"`bins` must be a whole number of at least 1.*15"):
        calibration_error([[1.0, 0.0]], [[1.0, 0.0]], bins=bins)


@pytest.mark.parametrize(
    ("positive", "score", "words"),
    [
        ([1, 0], [0.1], r"shapes \(2,\) and \(1,\) came"),
        ([[1, 0]], [[0.1, 0.2]], r"shapes \(1, 2\)"),
        ([2, 0], [0.1, 0.2], r"with 1 and 0 values that are none"),
        ([1, 0], [0.1, math.nan], r"with 0 and 1 values that are none\. Leave items"),
    ],
)
def test_auroc_refuses(positive, score, words):
    with pytest.raises(ValueError, match=words):
        auroc(positive, score)


DISTRIBUTIONS = (
    jsd,
    entropy_similarity,
    entropy_correlation,
    cross_entropy,
    brier,
    shares_right,
    macro_f1,
    calibration_error,
)


@pytest.mark.parametrize("metric", DISTRIBUTIONS)
@pytest.mark.parametrize(
    ("truth", "prediction", "words"),
    [
        ([[0.5, 0.5]], [0.5, 0.5], r"same shape.*\(1, 2\) and \(2,\) came.*np\.eye"),
        ([[0.5, 0.5]], [[0.2, 0.3, 0.5]], r"\(1, 2\) and \(1, 3\) came"),
        (0.5, 0.5, r"same shape.*\(\) and \(\) came"),
        (np.ones((2, 0)), np.ones((2, 0)), r"\(2, 0\) and \(2, 0\) came"),
        ([[1, 0], [3, 1]], [[1, 0], [1, 0]], r"`truth` must be.*1 of 2 are not.*row 1.*keepdims"),
        ([[1, 0]], [[1.5, -0.5]], r"`prediction` must be.*1 of 1 are not, first \[ 1.5 -0.5\]"),
        ([[1, 0]], [[np.nan, 1]], r"`prediction` must be probabilities"),
    ],
)
def test_metrics_refuse_what_is_not_a_distribution(metric, truth, prediction, words):
    with pytest.raises(ValueError, match=words):
        metric(truth, prediction)


@pytest.mark.parametrize("base", [1, 0, -2, 0.5, math.inf, math.nan])
def test_jsd_refuses_a_logarithm_without_a_base(base):
    with pytest.raises(ValueError, match=r"`base` of the logarithm.*base=2"):
        jsd([1.0, 0.0], [1.0, 0.0], base=base)


@pytest.mark.parametrize("metric", DISTRIBUTIONS[1:3])
def test_entropies_of_no_items_are_refused(metric):
    with pytest.raises(ValueError, match=r"at least one is needed; none came"):
        metric(np.ones((0, 2)), np.ones((0, 2)))
    assert jsd(np.ones((0, 2)), np.ones((0, 2))).shape == (0,)


HALF = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("item", "y", "certainty", "options", "words"),
    [
        (
            [0, 1],
            [0, 1],
            0.5,
            {"n_labels": 2},
            r"some item needs two; of 2 annotations each is alone",
        ),
        ([], [], 0.5, {"n_labels": 2}, r"some item needs two; of 0 annotations each is alone"),
        ([0.0, 1.0], [0, 1], 0.5, {"n_labels": 2}, r"`item` must be integer codes.*float64"),
        ([[0, 0]], [0, 1], 0.5, {"n_labels": 2}, r"`item` must be integer codes.*\(1, 2\)"),
        (["p", "p"], [0, 1], 0.5, {"n_labels": 2}, r"np\.unique\(item, return_inverse=True\)"),
        (
            [0, -1],
            [0, 1],
            0.5,
            {"n_labels": 2},
            r"`item` must be codes from 0; 1 of 2.*-1 at row 1",
        ),
        ([0, 0], [0, 1], 0.5, {}, r"how many labels.*n_labels="),
        (
            [0, 0],
            [0, 2],
            0.5,
            {"n_labels": 2},
            r"`y` must be codes from 0 to 1; 1 of 2.*2 at row 1",
        ),
        ([0, 0], [0.0, 1.0], 0.5, {"n_labels": 2}, r"`y` must be integer codes.*float64"),
        (
            [0, 0],
            [0, 1, 1],
            0.5,
            {"n_labels": 2},
            r"codes \(2,\) or probabilities \(2, K\).*\(3,\)",
        ),
        ([0, 0], 0, 0.5, {"n_labels": 2}, r"codes \(2,\) or probabilities.*shape \(\) came"),
        ([0, 0], HALF[:, :0], 0.5, {}, r"probabilities \(2, K\).*shape \(2, 0\) came"),
        ([0, 0], HALF, 0.5, {"n_labels": 3}, r"2 labels, but n_labels=3 came"),
        ([0, 0], 2 * HALF, 0.5, {}, r"`y` must be probabilities.*2 of 2 are not"),
        ([0, 0], HALF, [0.5], {}, r"`certainty` must be a number or.*\(2,\).*shape \(1,\)"),
        ([0, 0], HALF, [0.5, 1.5], {}, r"lie in \[0, 1\]; 1 of 2.*1.5 at row 1"),
        ([0, 0], HALF, np.nan, {}, r"`certainty` must lie in \[0, 1\]; 2 of 2"),
        ([0, 0], HALF, 0.5, {"base_rate": [1]}, r"`base_rate` needs one value per label, \(2,\)"),
        ([0, 0], HALF, 0.5, {"base_rate": [1, 1]}, r"`base_rate` must be probabilities"),
    ],
)
def test_held_out_loss_refuses(item, y, certainty, options, words):
    with pytest.raises(ValueError, match=words):
        held_out_log_loss(item, y, certainty, **options)
