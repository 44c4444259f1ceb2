import json
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from crowds import by_chance
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from slencodings.aggregate.agreement import (
    Alpha,
    g_index,
    krippendorff_alpha,
    share_of_agreement,
)
from slencodings.aggregate.kappa import pairwise_kappa
from slencodings.annotations import Annotations, leave_one_out
from slencodings.choices import LabelScale
from slencodings.tables.arrays import from_table

ORACLE = json.loads((Path(__file__).parent / "data" / "agreement.json").read_text())["cases"]
RTE = Path(__file__).parents[2] / "shared/datasets/rte/all_collected_data/rte.standardized.tsv"
PER_ANNOTATOR = [share_of_agreement, g_index, pairwise_kappa]
LEVELS: tuple[LabelScale, ...] = get_args(LabelScale)


def uneven(rng, *, soft=False, **how):
    """Labels by chance whose steps differ; a soft annotation may also be of one label alone."""
    a = by_chance(rng, soft=soft, **how)
    K = len(a.labels)
    if soft:
        a.y[rng.random(len(a.item)) < 0.3] = np.eye(K)[0]
    return replace(a, labels=np.arange(K) ** 1.5)


def of_case(case):
    item, who, y = (np.asarray(case[name]) for name in ("item", "annotator", "y"))
    names = np.arange(case["n_items"]), np.arange(case["n_annotators"]), np.asarray(case["labels"])
    return Annotations(item, who, y, np.zeros(len(y)), *names)


def votes(*labels, K=None, names=None):
    """One item per list of labels; annotators are numbered on each item."""
    item = np.repeat(np.arange(len(labels)), [len(x) for x in labels])
    who = np.concatenate([np.arange(len(x)) for x in labels]).astype(int)
    y = np.concatenate([np.asarray(x, dtype=int) for x in labels])
    names = np.arange(K or int(y.max()) + 1) if names is None else np.asarray(names)
    people = np.arange(int(who.max()) + 1)
    return Annotations(item, who, y, np.zeros(len(y)), np.arange(len(labels)), people, names)


def vectors_by_item(a):
    """{item: {annotator: vector}}, repeated judgments averaged."""
    return {
        u: {
            int(i): a.vectors[(a.item == u) & (a.annotator == i)].mean(0)
            for i in np.unique(a.annotator[a.item == u])
        }
        for u in np.unique(a.item).tolist()
    }


# Sums without the one


@given(seeds, st.integers(1, 12))
def test_sums_of_others_keep_their_digits_beside_a_giant(rng, n):
    value = rng.choice([0.0, 1.0, 1e-9, 1e-30, 1e-200], n) * rng.random(n)
    group = rng.integers(0, 4, n)
    got = leave_one_out(value, group)
    for i in range(n):
        exact = sum(Fraction(v) for j, v in enumerate(value) if j != i and group[j] == group[i])
        assert got[i] == pytest.approx(float(exact), rel=1e-14, abs=0)


def test_sums_of_others_where_nobody_is_most_of_all_and_by_columns():
    value, group = np.asarray([1.0, 1.0, 0.5, 2.0, 2.0]), np.asarray([0, 0, 0, 1, 1])
    expected = np.asarray([1.5, 1.5, 2.0, 2.0, 2.0])
    np.testing.assert_array_equal(leave_one_out(value, group), expected)
    columns = leave_one_out(np.stack([value, 3 * value], axis=1), group)
    np.testing.assert_array_equal(columns, np.stack([expected, 3 * expected], axis=1))


# Share of agreement and G-index


@given(seeds, st.booleans())
def test_share_of_agreement_is_the_mean_dot_product_with_peers(rng, soft):
    a = uneven(rng, soft=soft)
    each = {i: [] for i in range(5)}
    for said in vectors_by_item(a).values():
        for i in said:
            peers = [said[i] @ said[j] for j in said if j != i]
            if peers:
                each[i].append(np.mean(peers))
    expected = [float(np.mean(x)) if x else np.nan for x in each.values()]
    np.testing.assert_allclose(share_of_agreement(a), expected, rtol=0, atol=1e-12)


@given(seeds, st.booleans(), st.integers(2, 5))
def test_the_g_index_is_agreement_beyond_guessing(rng, soft, K):
    a = uneven(rng, soft=soft, K=K)
    p = share_of_agreement(a)
    np.testing.assert_allclose(g_index(a), (p - 1 / K) / (1 - 1 / K), rtol=0, atol=1e-12)
    if K == 2:
        np.testing.assert_allclose(g_index(a), 2 * p - 1, rtol=0, atol=1e-12)


# Kappa


@pytest.mark.parametrize("name", ORACLE)
def test_kappa_equals_scikit_learn(name):
    case = ORACLE[name]
    total, weight = np.zeros(case["n_annotators"]), np.zeros(case["n_annotators"])
    for i, j, n, kappa in case["kappa"]:
        for who in (i, j):
            # scikit-learn has no value where two gave the same label throughout; here it is 1
            total[who] += n * (1.0 if kappa is None else kappa)
            weight[who] += n
    expected = np.where(weight > 0, total / np.maximum(weight, 1), np.nan)
    np.testing.assert_allclose(pairwise_kappa(of_case(case)), expected, rtol=0, atol=1e-12)


@given(seeds, st.booleans(), st.integers(2, 20))
def test_kappa_is_the_mean_over_pairs(rng, soft, M):
    a = uneven(rng, soft=soft, M=M)
    by_item = vectors_by_item(a)
    total, weight = np.zeros(M), np.zeros(M)
    for i, j in combinations(range(M), 2):
        both = [(said[i], said[j]) for said in by_item.values() if i in said and j in said]
        if both:
            x, y = (np.asarray(v) for v in zip(*both, strict=True))
            p_o, p_e = np.mean(np.sum(x * y, axis=-1)), x.mean(0) @ y.mean(0)
            kappa = (p_o - p_e) / (1 - p_e) if p_e < 1 - 1e-12 else 1.0
            for who in (i, j):
                total[who] += len(both) * kappa
                weight[who] += len(both)
    expected = np.where(weight > 0, total / np.maximum(weight, 1), np.nan)
    np.testing.assert_allclose(pairwise_kappa(a), expected, rtol=0, atol=1e-12)


def test_two_who_only_ever_said_the_same_label_agree():
    np.testing.assert_array_equal(pairwise_kappa(votes([1, 1], [1, 1], K=2)), [1, 1])
    soft = replace(votes([1, 1], [1, 1], K=2), y=np.asarray([[0, 1.0]] * 4))
    np.testing.assert_array_equal(pairwise_kappa(soft), [1, 1])


def test_kappa_below_chance_stays_negative():
    np.testing.assert_allclose(pairwise_kappa(votes([0, 1], [1, 0], [0, 1], [1, 0])), [-1, -1])


@pytest.mark.parametrize("measure", PER_ANNOTATOR)
def test_who_shares_no_item_has_no_agreement(measure):
    a = votes([0, 0], [1])
    a = replace(a, annotator=np.asarray([0, 1, 2]), annotators=np.arange(4))
    np.testing.assert_array_equal(np.isnan(measure(a)), [False, False, True, True])
    alone = replace(a, annotator=np.zeros(3, int))
    assert np.isnan(measure(alone)).all()


@pytest.mark.parametrize("measure", PER_ANNOTATOR)
def test_nobody_is_their_own_peer(measure):
    said = {"item": [1, 1, 1, 2, 2], "who": list("aabab"), "label": [0, 0, 1, 1, 1]}
    once = {"item": [1, 1, 2, 2], "who": list("abab"), "label": [0, 1, 1, 1]}
    got, expected = (
        measure(from_table(t, item="item", annotator="who", label="label")) for t in (said, once)
    )
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("measure", PER_ANNOTATOR)
def test_a_hundred_thousand_annotators_of_one_item(measure):
    y = np.random.default_rng(0).integers(0, 3, 10**5)
    at = np.arange(10**5)
    a = Annotations(0 * at, at, y, np.zeros(len(at)), np.arange(1), at, np.arange(3))
    p = (np.bincount(y)[y] - 1) / (10**5 - 1)
    expected = (p - 1 / 3) * 1.5 if measure is g_index else p
    np.testing.assert_allclose(measure(a), expected, rtol=0, atol=1e-12)


def test_kappa_refuses_what_would_fill_the_memory():
    R = 50_000
    at = np.arange(2 * R)
    a = Annotations(
        at // R, at % R, at % 3, np.zeros(len(at)), np.arange(2), np.arange(R), np.arange(3)
    )
    with pytest.raises(
        ValueError,
        match=r"2,499,950,000 pairs of annotations, 50,000 annotations on one item among them; "
        r"max_pairs=10,000,000 came\. share_of_agreement and g_index need no pairs",
    ):
        pairwise_kappa(a)
    assert share_of_agreement(a).shape == (R,)


# Alpha


@pytest.mark.parametrize("name", ORACLE)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("soft", [False, True], ids=["codes", "vectors"])
def test_alpha_equals_the_package(name, level, soft):
    a = of_case(ORACLE[name])
    if soft:
        a = replace(a, y=a.vectors)
    got = krippendorff_alpha(a, level=level)
    assert got.alpha == pytest.approx(ORACLE[name]["alpha"][level], abs=1e-12)
    assert np.isnan([got.low, got.high]).all()


def test_alpha_of_krippendorffs_own_example():
    # Krippendorff (2011), "Computing Krippendorff's alpha-reliability": four observers, twelve
    # units; nominal 0.743, ordinal 0.815, interval 0.849.
    said = ["1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3",
            ". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 ."]  # fmt: skip
    table = [(u, v) for row in said for u, v in enumerate(row.split())]
    crowd = {"u": [u for u, _ in table], "v": [None if v == "." else int(v) for _, v in table]}
    a = from_table(crowd, item="u", label="v")
    got = [round(krippendorff_alpha(a, level=level).alpha, 3) for level in LEVELS]
    assert got == [0.743, 0.815, 0.849]


@pytest.mark.parametrize("level", LEVELS)
@given(rng=seeds, soft=st.booleans())
def test_alpha_is_one_minus_observed_over_expected_distance(level, rng, soft):
    a = uneven(rng, soft=soft, K=4)
    m = np.bincount(a.item, minlength=6)
    V = a.vectors[m[a.item] > 1]
    item = a.item[m[a.item] > 1]
    n_k = V.sum(0)
    # every two annotations, every two labels
    z = a.labels if level == "interval" else np.arange(4)
    d = np.zeros((4, 4))
    for c in range(4):
        for k in range(4):
            low, high = min(c, k), max(c, k)
            between = n_k[low : high + 1].sum() - (n_k[low] + n_k[high]) / 2
            far = {"nominal": 1, "ordinal": between, "interval": z[c] - z[k]}[level]
            d[c, k] = (c != k) * far**2
    observed = expected = 0.0
    for q in range(len(V)):
        for r in range(len(V)):
            if q != r:
                distance = V[q] @ d @ V[r]
                observed += distance * (item[q] == item[r]) / (m[item[q]] - 1)
                expected += distance / (len(V) - 1)
    got = krippendorff_alpha(a, level=level).alpha
    assert got == pytest.approx(1 - observed / expected, abs=1e-10)


@pytest.mark.parametrize("level", LEVELS)
def test_perfect_agreement_is_one_and_so_is_a_single_label(level):
    assert krippendorff_alpha(votes([0, 0], [1, 1, 1], [0]), level=level).alpha == 1
    assert krippendorff_alpha(votes([1, 1], [1, 1, 1], [0], K=3), level=level).alpha == 1
    got = krippendorff_alpha(
        votes([0, 0], [0, 0], [1, 1]), level=level, bootstrap=50, rng=np.random.default_rng(0)
    )
    assert got == Alpha(1, 1, 1)


def test_labels_that_are_the_same_number_do_not_disagree():
    a = votes([0, 1], [1, 0], names=["1", "1.0"])
    assert krippendorff_alpha(a, level="interval").alpha == 1
    assert krippendorff_alpha(a, level="nominal").alpha < 0


def test_a_missing_label_is_not_a_label():
    said = {"item": [1, 1, 1, 2, 2, 2], "label": ["a", "a", None, "b", None, "b"]}
    assert krippendorff_alpha(from_table(said, item="item", label="label")).alpha == 1


@pytest.mark.parametrize("level", LEVELS)
@given(rng=seeds, soft=st.booleans())
def test_alpha_ignores_order_and_names(level, rng, soft):
    a = uneven(rng, soft=soft)
    p = rng.permutation(25)
    items, people = rng.permutation(6), rng.permutation(5)
    # ordinal and interval labels may be turned around, nominal ones shuffled
    labels = rng.permutation(3) if level == "nominal" else np.arange(3)[::-1]
    b = replace(a, item=items[a.item][p], annotator=people[a.annotator][p])
    b = replace(b, y=a.y[p][:, np.argsort(labels)] if soft else labels[a.y][p])
    b = replace(b, labels=a.labels[np.argsort(labels)])
    got, expected = (krippendorff_alpha(x, level=level).alpha for x in (b, a))
    assert got == pytest.approx(expected, abs=1e-12)


def test_the_interval_holds_alpha_and_is_repeatable():
    a = of_case(ORACLE["full"])
    one, two = (
        krippendorff_alpha(a, bootstrap=200, rng=np.random.default_rng(7)) for _ in range(2)
    )
    assert one == two
    assert one.low < one.alpha < one.high
    narrow = krippendorff_alpha(a, bootstrap=200, coverage=0.5, rng=np.random.default_rng(7))
    assert one.low < narrow.low < narrow.high < one.high


@pytest.mark.parametrize("level", LEVELS)
def test_a_resample_is_what_it_would_be_of_repeated_items(level):
    class Twice(np.random.Generator):
        def integers(self, *_, **__):  # pyright: ignore[reportIncompatibleMethodOverride]
            return np.asarray([0, 0, 2, 2])

    a = votes([0, 1, 1], [2, 2], [0, 0, 2], [1, 1])
    again = votes([0, 1, 1], [0, 1, 1], [0, 0, 2], [0, 0, 2])
    got = krippendorff_alpha(a, level=level, bootstrap=1, rng=Twice(np.random.PCG64()))
    assert got.low == pytest.approx(krippendorff_alpha(again, level=level).alpha, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
def test_thousands_of_labels_take_little_memory(level):
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 2400, 2400), 2)
    y[::3] = rng.integers(0, 2400, len(y[::3]))
    a = votes(*y.reshape(-1, 2), K=2400)
    tracemalloc.start()
    got = krippendorff_alpha(a, level=level, bootstrap=3, rng=rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e6  # a table of labels by labels would take 46 MB
    assert 0.25 < got.alpha < 0.4  # a third of the annotations are random


def test_a_hundred_thousand_annotations_of_one_item_and_one_other():
    y = np.repeat([0, 1], [60_000, 40_000])
    a = votes(y, [0, 1])
    n = np.asarray([60_001, 40_001])
    m = 100_000
    observed = 2 * 60_000 * 40_000 / (m - 1) + 2
    expected = (n.sum() ** 2 - np.sum(n**2)) / (n.sum() - 1)
    assert krippendorff_alpha(a).alpha == pytest.approx(1 - observed / expected, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": "ratio"}, r"one of nominal, ordinal, interval; 'ratio' came"),
        ({"bootstrap": 10}, r"bootstrap=10 needs a generator.*rng=None came.*default_rng"),
        ({"bootstrap": 10, "rng": 7}, r"needs a generator.*rng=7 came"),
        ({"bootstrap": -1, "rng": np.random.default_rng()}, r"must not be negative.*-1 and 0.95"),
        ({"coverage": 1.0}, r"between 0 and 1; 0 and 1.0 came"),
    ],
)
def test_options_of_alpha_that_make_no_sense_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        krippendorff_alpha(votes([0, 1]), **options)


def test_alpha_of_annotations_without_company_is_refused():
    with pytest.raises(ValueError, match=r"some item needs two; of 2 annotations each is alone"):
        krippendorff_alpha(votes([0], [1]))


@pytest.mark.parametrize("names", [["low", "high"], [1.0, np.inf], [None, 1]])
def test_interval_labels_must_be_numbers(names):
    a = votes([0, 1], names=np.asarray(names, dtype=object))
    with pytest.raises(
        ValueError, match=r"finite numbers as labels; .* came\. Use level='ordinal'"
    ):
        krippendorff_alpha(a, level="interval")


# Real data


@pytest.mark.skipif(not RTE.exists(), reason=f"{RTE} is not there")
def test_agreement_on_rte():
    rows = [line.split("\t") for line in RTE.read_text().splitlines()[1:]]
    table = {
        "item": [r[2] for r in rows],
        "who": [r[1] for r in rows],
        "label": [r[3] for r in rows],
    }
    a = from_table(table, item="item", annotator="who", label="label")
    assert (len(a.items), len(a.annotators), len(a.y)) == (800, 164, 8000)
    got = krippendorff_alpha(a, bootstrap=200, rng=np.random.default_rng(0))
    assert got.alpha == pytest.approx(0.24148, abs=1e-5)
    assert 0.21 < got.low < got.alpha < got.high < 0.27
    kappa = pairwise_kappa(a)
    assert [kappa.min(), np.median(kappa), kappa.max()] == pytest.approx(
        [-0.00886, 0.35716, 0.64441], abs=1e-5
    )
    assert np.sum(kappa < 0) == 1
    p = share_of_agreement(a)
    assert [p.min(), p.max()] == pytest.approx([0.45, 0.82778], abs=1e-5)
