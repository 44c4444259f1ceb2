"""Algorithm 1 and the crowds made with it.

Chance is bounded, not hoped for: a count of n draws with probability p must lie within six
standard deviations, sqrt(n p (1 - p)), of n p. By the normal approximation that fails with
probability 2e-9, and the seeds are fixed, so what passed once passes again.
"""

import math
import subprocess
import sys
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import beta as beta_distribution
from strategies import one_in

import slencodings as sle
from slencodings.annotations import Annotations
from slencodings.datasets import annotate, crowd_table, digits_crowd, lattice, synthetic
from slencodings.datasets.synthetic import beta, permute, recalibrate

# Table 3: none, low, medium, high.
BETA_SETS = (10, 0), (10, 1), (10, 10), (1, 10)


def generator(seed: int | list[int] = 0):
    return np.random.default_rng(seed)


def assert_frequency(hits, p):
    """`hits` (n,) are true with probability p, within six standard deviations."""
    n = len(hits)
    assert abs(np.sum(hits) - n * p) <= 6 * math.sqrt(n * p * (1 - p))


def distance(p, q):
    """Jensen-Shannon, root and natural logarithm, as in the paper's figures."""
    m = (p + q) / 2
    divergence = (rel_entr(p, m) + rel_entr(q, m)).sum(axis=-1) / 2
    return np.sqrt(np.maximum(divergence, 0))  # equal up to rounding may be -1e-17


def recalibrate_literally(y, c):
    """The paper's formula letter by letter, exp(ln(y_i) c) / sum_j exp(ln(y_j) c)."""
    if c == 0:
        return [1 / len(y)] * len(y)
    powers = [math.exp(math.log(y_i) * c) if y_i > 0 else 0.0 for y_i in y]
    return [x / math.fsum(powers) for x in powers]


def distributions(K):
    counts = st.lists(st.integers(0, 1000), min_size=K, max_size=K)
    return counts.filter(any).map(lambda n: np.asarray(n) / sum(n))


# The lattice


@pytest.mark.parametrize(("K", "D"), [(1, 3), (2, 1), (3, 10), (4, 3), (5, 4), (6, 7)])
def test_the_lattice_has_every_way_to_share_out_one_and_each_only_once(K, D):
    points = lattice(K, D)
    assert points.shape == (math.comb(D + K - 1, K - 1), K)
    assert len({tuple(p) for p in points}) == len(points)
    steps = points * D
    np.testing.assert_allclose(steps, steps.round(), atol=1e-12)
    np.testing.assert_allclose(points.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert points.min() >= 0
    assert [tuple(p) for p in points] == sorted(tuple(p) for p in points)


def test_the_lattice_of_the_paper_has_70_points_of_which_15_tie_at_the_top():
    points = lattice()
    assert points.shape == (70, 5)
    tied = (points == points.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert tied.sum() == 15


# Beta


@pytest.mark.parametrize(("a", "b", "constant"), [(10, 0, 1.0), (0, 10, 0.0)])
def test_a_beta_with_a_parameter_of_zero_is_a_constant(a, b, constant):
    assert beta(a, b, (2, 3), generator()).tolist() == [[constant] * 3] * 2


def test_a_beta_is_drawn_from_its_distribution():
    draws = beta(10, 1, 20_000, generator())
    for x in (0.7, 0.9, 0.97):
        assert_frequency(draws <= x, beta_distribution(10, 1).cdf(x))


def test_parameters_of_a_beta_broadcast():
    draws = beta([1e6, 10, 0], [1e6, 0, 10], (50, 3), generator())
    np.testing.assert_allclose(draws, np.tile([0.5, 1, 0], (50, 1)), atol=0.01)


# Recalibration


@given(distributions(4), st.floats(0, 1))
def test_recalibration_is_the_printed_formula(y, c):
    np.testing.assert_allclose(recalibrate(y, c), recalibrate_literally(y, c), atol=1e-12)


@given(distributions(6))
def test_full_confidence_changes_not_one_bit(y):
    assert recalibrate(y, 1.0).tolist() == y.tolist()


@given(distributions(6))
def test_no_confidence_at_all_says_nothing(y):
    np.testing.assert_allclose(recalibrate(y, 0.0), 1 / 6, rtol=1e-14)


@given(distributions(5))
def test_as_confidence_vanishes_what_is_possible_becomes_equally_so(y):
    possible = y > 0
    np.testing.assert_allclose(recalibrate(y, 1e-12), possible / possible.sum(), atol=1e-10)


@given(distributions(5), st.floats(1e-300, 1))
def test_what_is_impossible_stays_impossible(y, c):
    assert ((recalibrate(y, c) == 0) == (y == 0)).all()


# Permutation


def test_full_reliability_changes_not_one_bit():
    y = lattice(4, 7)
    assert permute(y, 1.0, generator()).tolist() == y.tolist()


@pytest.mark.parametrize("r", [0.0, 0.2, 0.5, 0.9])
def test_vectors_are_shuffled_with_probability_one_minus_r(r):
    y = np.tile([0.1, 0.2, 0.3, 0.4], (50_000, 1))
    said = permute(y, r, generator(3))
    # A shuffle leaves the order as it was once in 4! times.
    assert_frequency((said != y).any(axis=1), (1 - r) * (1 - 1 / 24))


def test_every_order_is_as_likely():
    said = permute(np.tile([0.1, 0.3, 0.6], (30_000, 1)), 0.0, generator(4))
    for order in permutations([0.1, 0.3, 0.6]):
        assert_frequency((said == order).all(axis=1), 1 / 6)


def test_each_vector_has_its_own_reliability():
    y = np.tile([0.1, 0.2, 0.3, 0.4], (20_000, 3, 1))
    changed = (permute(y, [1.0, 0.5, 0.0], generator(5)) != y).any(axis=-1)
    for m, r in enumerate([1.0, 0.5, 0.0]):
        assert_frequency(changed[:, m], (1 - r) * (1 - 1 / 24))


def test_reliability_may_not_multiply_the_vectors():
    with pytest.raises(ValueError, match="broadcast"):
        permute([0.5, 0.5], [1.0, 0.0], generator())


# Algorithm 1


def test_annotating_is_algorithm_1_letter_by_letter_where_nothing_is_shuffled():
    truth, confidence = lattice(4, 3), [0.0, 0.3, 0.77, 1.0]
    crowd = annotate(truth, confidence=confidence, reliability=np.ones(4), rng=generator())
    said = dict(
        zip(
            zip(crowd.annotations.item.tolist(), crowd.annotations.annotator.tolist(), strict=True),
            zip(crowd.annotations.y, crowd.annotations.uncertainty, strict=True),
            strict=True,
        )
    )
    for m, c in enumerate(confidence):
        for i, y in enumerate(truth.tolist()):
            y_star, uncertainty = said.pop((i, m))
            np.testing.assert_allclose(y_star, recalibrate_literally(y, c), atol=1e-15)
            assert uncertainty == 1 - c
    assert not said


@one_in(2)
@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 5))
def test_a_shuffled_label_is_algorithm_1_up_to_its_order(seed, M, K):
    crowd = synthetic(
        M, confidence=(2, 2), reliability=(1, 2), n_labels=K, divisions=3, rng=generator(seed)
    )
    said = crowd.annotations
    assert len(said.item) == M * len(crowd.truth)
    for i, m, y in zip(said.item, said.annotator, said.y, strict=True):
        expected = recalibrate_literally(crowd.truth[i].tolist(), crowd.confidence[m])
        np.testing.assert_allclose(np.sort(y), np.sort(expected), atol=1e-13)
    np.testing.assert_allclose(said.y.sum(axis=1), 1, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(said.uncertainty, 1 - crowd.confidence[said.annotator])


def test_perfect_annotators_repeat_the_truth():
    crowd = synthetic(3, confidence=(10, 0), reliability=(10, 0), rng=generator())
    assert crowd.annotations.y.tolist() == np.repeat(lattice(), 3, axis=0).tolist()
    assert not crowd.annotations.uncertainty.any()


def test_labels_are_shuffled_as_often_as_their_annotator_is_unreliable():
    y, r = np.tile([0.1, 0.2, 0.7], (20_000, 1)), np.asarray([0.9, 0.4])
    said = annotate(y, confidence=[1, 1], reliability=r, rng=generator(6)).annotations
    for m in range(2):
        mine = said.y[said.annotator == m]
        assert_frequency((mine != y).any(axis=1), (1 - r[m]) * (1 - 1 / 6))


def test_hard_labels_are_drawn_from_what_would_have_been_said():
    y = np.tile([0.49, 0.0, 0.51, 0.0], (300_000, 1))
    said = annotate(y, confidence=[0.5], reliability=[1], rng=generator(7), hard=True).annotations
    assert said.y.shape == (300_000,)
    for k, p in enumerate(recalibrate(y[0], 0.5)):
        assert_frequency(said.y == k, p)


def test_confidence_may_differ_from_item_to_item():
    crowd = annotate(
        [[0.9, 0.1], [0.9, 0.1]],
        confidence=[[1.0, 0.0], [0.5, 1.0]],
        reliability=[1, 1],
        rng=generator(),
    )
    np.testing.assert_allclose(crowd.annotations.y[:, 0], [0.9, 0.5, 0.75, 0.9])
    np.testing.assert_allclose(crowd.annotations.uncertainty, [0, 1, 0.5, 0])


@pytest.mark.parametrize(("M", "n"), [(1, 1), (5, 2), (6, 5), (4, 4)])
def test_each_item_is_seen_by_different_annotators(M, n):
    crowd = annotate(
        np.full((200, 2), 0.5),
        confidence=np.ones(M),
        reliability=np.ones(M),
        rng=generator(),
        per_item=n,
    )
    pairs = np.stack([crowd.annotations.item, crowd.annotations.annotator], axis=1)
    assert len(pairs) == len({tuple(p) for p in pairs.tolist()}) == 200 * n
    assert (np.bincount(crowd.annotations.item) == n).all()


def test_every_set_of_annotators_is_as_likely():
    crowd = annotate(
        np.full((30_000, 2), 0.5),
        confidence=np.ones(5),
        reliability=np.ones(5),
        rng=generator(8),
        per_item=3,
    )
    seen = Counter(map(tuple, crowd.annotations.annotator.reshape(-1, 3).tolist()))
    assert len(seen) == math.comb(5, 3)
    # 30,000 sets, each with probability 1 / 10: six standard deviations are 312.
    assert all(abs(count - 3000) <= 312 for count in seen.values())


def test_the_same_seed_gives_the_same_crowd_and_another_seed_another():
    one, same, other = (synthetic(rng=generator(seed)) for seed in (1, 1, 2))
    for field in ("item", "annotator", "y", "uncertainty"):
        np.testing.assert_array_equal(
            getattr(one.annotations, field), getattr(same.annotations, field)
        )
    np.testing.assert_array_equal(one.reliability, same.reliability)
    assert (one.reliability != other.reliability).all()


# paper-decisions.md, all annotations: mean distance to the truth of MV, soft and SLE's mode.
@pytest.mark.parametrize(
    ("varies", "reliability", "published"),
    [
        ("reliability", None, (0.456, 0.212, 0.191)),
        ("confidence", (10, 1), (0.406, 0.117, 0.093)),
        ("confidence", (1, 10), (0.613, 0.452, 0.434)),
    ],
    ids=["a", "b", "c"],
)
def test_our_trial_of_algorithm_1_comes_out_again(varies, reliability, published):
    runs = 30
    distances = np.empty((4, runs, 3))
    for s, parameters in enumerate(BETA_SETS):
        for run in range(runs):
            drawn: dict[str, Any] = {"confidence": (10, 0), "reliability": reliability} | {
                varies: parameters
            }
            crowd = synthetic(rng=generator([s, run]), **drawn)
            y = crowd.annotations.y.reshape(70, 10, 5)
            u = crowd.annotations.uncertainty.reshape(70, 10)
            soft = y.mean(axis=1)
            fused = sle.fuse(sle.discount(sle.encode(y, u), crowd.reliability))
            majority = np.eye(5)[soft.argmax(axis=1)]
            for k, p in enumerate((majority, soft, fused.mode)):
                distances[s, run, k] = distance(p, crowd.truth).mean()
    mean = distances.mean(axis=(0, 1))
    # Sets are fixed and runs are drawn, so only the runs within a set vary by chance.
    error = np.sqrt(distances.var(axis=1, ddof=1).sum(axis=0) / runs) / 4
    assert (np.abs(mean - published) <= 3 * error + 0.01).all(), (mean, error)
    assert mean[0] > mean[1] > mean[2]


# The digits


@pytest.fixture(scope="module")
def digits():
    return digits_crowd()


def test_the_digits_are_real_images_with_a_crowd_around_them(digits):
    N, M, K = 1797, 50, 10
    assert digits.X.shape == (N, 64)
    assert (digits.X.min(), digits.X.max()) == (0, 1)
    assert digits.gold.shape == (N,)
    assert set(digits.gold.tolist()) == set(range(K))
    assert digits.truth.shape == (N, K)
    np.testing.assert_allclose(digits.truth.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert digits.truth.min() > 0
    assert digits.reliability.shape == digits.confidence.shape == (M,)
    said = digits.annotations
    assert said.y.shape == said.uncertainty.shape == (5 * N,)
    assert (len(said.items), len(said.annotators), len(said.labels)) == (N, M, K)
    assert (said.items[1], said.annotators[7]) == ("digit-0001", "ann-07")
    assert ((said.uncertainty >= 0) & (said.uncertainty <= 1)).all()
    assert set(np.bincount(said.item).tolist()) == {5}


def test_names_sort_in_the_order_of_their_codes(digits):
    many = digits_crowd(n_annotators=101)
    for names in (digits.annotations.items, many.annotations.annotators):
        assert names.tolist() == sorted(names.tolist())


def test_the_digits_take_a_seed_or_a_generator(digits):
    by_generator, other = digits_crowd(rng=generator(0)), digits_crowd(rng=1)
    for field in ("item", "annotator", "y", "uncertainty"):
        np.testing.assert_array_equal(
            getattr(by_generator.annotations, field), getattr(digits.annotations, field)
        )
    np.testing.assert_array_equal(by_generator.reliability, digits.reliability)
    assert (other.annotations.y != digits.annotations.y).any()
    np.testing.assert_array_equal(other.truth, digits.truth)


def test_perfect_readers_of_the_digits_say_what_they_look_like():
    crowd = digits_crowd(confidence=(10, 0), reliability=(10, 0))
    assert crowd.reliability.tolist() == crowd.confidence.tolist() == [1.0] * 50
    said = crowd.annotations
    # The chance that a label drawn from `truth` is gold, over all annotations.
    p = crowd.truth[said.item, crowd.gold[said.item]]
    right = (said.y == crowd.gold[said.item]).sum()
    assert abs(right - p.sum()) <= 6 * math.sqrt((p * (1 - p)).sum())


def test_what_a_digit_looks_like_is_mostly_what_was_written(digits):
    assert 0.98 <= (digits.truth.argmax(axis=1) == digits.gold).mean() < 1


def test_reliability_and_stated_confidence_say_who_is_right(digits):
    said = digits.annotations
    right = said.y == digits.gold[said.item]
    for knows in (digits.reliability[said.annotator], 1 - said.uncertainty):
        assert right[knows >= 0.8].mean() > right[knows < 0.5].mean() + 0.1


def test_annotators_disagree_more_about_images_that_look_like_several_digits(digits):
    top = digits.annotations.sums().max(axis=1)
    clear = digits.truth.max(axis=1) > 0.99
    assert top[clear].mean() > top[~clear].mean() + 0.3


@pytest.mark.parametrize(("per_item", "trust_wins"), [(3, True), (5, False)])
def test_who_names_more_digits_is_as_documented(per_item, trust_wins):
    """Means over ten seeds; a difference of paired accuracies has a deviation of about .01."""
    ahead, soft_distance, sle_distance = [], [], []
    for seed in range(10):
        crowd = digits_crowd(per_item=per_item, rng=seed)
        said, gold = crowd.annotations, crowd.gold
        votes = said.sums()
        c = 0.99 * crowd.reliability[said.annotator] * (1 - said.uncertainty)
        evidence = said.sums(c / (1 - c))
        right = [(x.argmax(axis=1) == gold).mean() for x in (evidence, votes)]
        ahead.append(right[0] - right[1])
        seen = evidence.sum(axis=1) > 0
        mode = evidence[seen] / evidence[seen].sum(axis=1, keepdims=True)
        soft_distance.append(distance(votes[seen] / per_item, crowd.truth[seen]).mean())
        sle_distance.append(distance(mode, crowd.truth[seen]).mean())
    assert (np.mean(ahead) > 0) == trust_wins
    assert np.mean(sle_distance) < np.mean(soft_distance) - 0.02


def test_the_table_of_a_crowd_has_one_row_per_annotation(digits):
    table = crowd_table(digits.annotations, digits.reliability)
    said = digits.annotations
    assert list(table) == ["item", "annotator", "label", "confidence", "reliability"]
    assert {len(column) for column in table.values()} == {len(said.item)}
    np.testing.assert_array_equal(table["label"], said.y)
    np.testing.assert_array_equal(1 - table["confidence"], said.uncertainty)
    np.testing.assert_array_equal(table["reliability"], digits.reliability[said.annotator])
    # Short enough to read: tenths and hundredths.
    assert all(len(str(c)) == 3 for c in table["confidence"].tolist())
    assert all(len(str(r)) <= 4 for r in table["reliability"].tolist())


def test_a_table_without_reliability_trusts_everyone(digits):
    assert (crowd_table(digits.annotations)["reliability"] == 1).all()


def test_datasets_are_imported_without_scikit_learn():
    code = "import sys, slencodings.datasets; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# What is refused


def test_without_scikit_learn_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'slencodings\[demo\]'"):
        digits_crowd()


@pytest.mark.parametrize("bad", [(0, 0), (-1, 2), (2, -1), (math.nan, 1), (math.inf, 1)])
def test_a_beta_that_does_not_exist_is_refused(bad: tuple[float, float]):
    with pytest.raises(ValueError, match=r"two finite parameters.*\(10, 0\) is always 1"):
        beta(*bad, 3, generator())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"truth": [0.5, 0.5]}, r"`truth` must be one distribution per item.*shape \(2,\) came"),
        ({"truth": np.ones((2, 0))}, r"shape \(2, 0\) came.*np.eye\(K\)"),
        ({"truth": [[0.5, 0.5], [1, 2]]}, r"1 of 2 rows do not, first row 1 with sum 3"),
        ({"truth": [[-0.5, 1.5]]}, r"first row 0 with sum 1 and smallest value -0.5"),
        ({"truth": [[math.nan, 1]]}, r"must sum to 1; 1 of 1 rows do not.*Divide counts"),
        ({"reliability": 0.8}, r"`reliability` must be one number per annotator.*np.full\(M"),
        ({"reliability": []}, r"shape \(0,\) came"),
        ({"reliability": [1, 1.5]}, r"`reliability` must lie in \[0, 1\]; 1 of 2.*first 1.5"),
        ({"confidence": [1]}, r"`confidence` must be one number per annotator \(2,\).*\(1, 2\)"),
        ({"confidence": [4, 5]}, r"`confidence` must lie in.*2 of 2.*pass \(score - 1\) / 4"),
        ({"confidence": [math.nan, 1]}, r"`confidence` must lie in \[0, 1\]; 1 of 2"),
        ({"per_item": 0}, r"`per_item` must be at least 1; 0 came"),
        ({"per_item": 3}, r"must be different people, so at most 2; 3 came. Add annotators"),
    ],
)
def test_annotating_says_what_is_wrong(wrong, message):
    right = {"truth": [[0.5, 0.5]], "confidence": [1, 1], "reliability": [1, 1]}
    arguments = right | wrong
    with pytest.raises(ValueError, match=message):
        annotate(arguments.pop("truth"), rng=generator(), **arguments)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: lattice(0), "n_labels"),
        (lambda: lattice(5, 0), "divisions"),
        (lambda: synthetic(0, rng=generator()), "n_annotators"),
        (lambda: digits_crowd(n_annotators=0), "n_annotators"),
    ],
)
def test_sizes_are_at_least_one(call, name):
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1; 0 came"):
        call()


def test_sizes_are_whole_numbers():
    with pytest.raises(TypeError, match="integer"):
        lattice(5, 2.5)  # pyright: ignore[reportArgumentType]


def test_a_table_cannot_hold_soft_labels():
    soft = synthetic(rng=generator()).annotations
    assert isinstance(soft, Annotations)
    with pytest.raises(ValueError, match=r"probabilities over 5 labels came.*hard=True"):
        crowd_table(soft)
