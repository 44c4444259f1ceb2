import json
import zipfile
from dataclasses import replace
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest
from crowds import make
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from strategies import present, seeds

from slencodings import check
from slencodings.aggregate import certainty
from slencodings.annotations import Annotations
from slencodings.confidence import Calibration, calibrate, entropy, interval, linear, probability
from slencodings.metrics import held_out_log_loss

DATASETS = Path(__file__).parents[2] / "shared" / "datasets"


def strangers(item, y, K=2, stated=None):
    """Every annotation is by somebody else."""
    return make(item, np.arange(len(item)), y, K=K, stated=stated)


def noisy_crowd(rng, N=200, n=3, K=3, levels=5):
    """Annotators who know the answer with the probability that their confidence states."""
    truth = np.repeat(rng.integers(0, K, N), n)
    stated = rng.integers(0, levels, N * n)
    knows = rng.random(N * n) < stated / (levels - 1)
    y = np.where(knows, truth, rng.integers(0, K, N * n))
    return strangers(np.repeat(np.arange(N), n), y, K, stated)


# Taking people at their word


def test_linear_maps_the_ends_of_the_scale_to_all_and_nothing():
    np.testing.assert_array_equal(linear(np.arange(5), low=0, high=4), [1, 0.75, 0.5, 0.25, 0])
    assert linear(1, low=1, high=7) == 1
    # a scale on which 1 is the surest answer
    assert linear(1, low=7, high=1) == 0


@pytest.mark.parametrize(("low", "high"), [(3, 3), (0, np.inf), (np.nan, 1)])
def test_a_scale_needs_two_ends(low, high):
    with pytest.raises(ValueError, match=r"two different finite scores; low=.* came\. For answers"):
        linear(np.arange(3), low=low, high=high)


def test_a_stated_probability_leaves_the_rest_uncertain():
    np.testing.assert_array_equal(probability(np.asarray([1.0, 0.25])), [0, 0.75])


@given(seeds)
def test_an_interval_is_an_opinion_whose_projection_is_the_best_guess(rng):
    low, best, high = np.sort(rng.choice([0, 1, 0.5, *rng.random(3)], (3, 6)), axis=0)
    opinion = check(interval(low, best, high))
    np.testing.assert_allclose(opinion.probability[..., 0], best, atol=1e-15)
    np.testing.assert_array_equal(opinion.belief, np.stack([low, 1 - high], axis=-1))
    np.testing.assert_array_equal(opinion.uncertainty, high - low)


def test_an_interval_without_width_is_a_dogmatic_opinion_with_an_even_base_rate():
    opinion = interval(0.3, 0.3, [0.3, 0.5])
    np.testing.assert_array_equal(opinion.uncertainty, [0, 0.2])
    np.testing.assert_array_equal(opinion.base_rate, [[0.5, 0.5], [0, 1]])


@pytest.mark.parametrize(
    ("lower", "best", "upper", "words"),
    [
        (0.5, 0.4, 0.9, r"1 of 1 do not, first \(0.5, 0.4, 0.9\) at position 0"),
        ([0, 0.2], [0.5, 0.9], [1, 0.8], r"1 of 2 do not, first \(0.2, 0.9, 0.8\) at position 1"),
        (20, 50, 80, r"first \(20, 50, 80\).*Divide percentages by 100"),
        (-0.1, 0, 1, r"0 <= lower <= best <= upper <= 1"),
        (0, np.nan, 1, r"0 <= lower <= best <= upper <= 1"),
    ],
)
def test_an_interval_out_of_order_is_refused(lower, best, upper, words):
    with pytest.raises(ValueError, match=words):
        interval(lower, best, upper)


@given(seeds, st.integers(2, 6))
def test_entropy_is_scipys_in_units_of_the_largest(rng, K):
    y = rng.dirichlet(np.ones(K), (2, 3))
    y[0, 0] = np.eye(K)[0]
    np.testing.assert_allclose(entropy(y), scipy_entropy(y, axis=-1) / np.log(K), atol=1e-15)


@given(st.integers(1, 40))
def test_entropy_is_nothing_for_one_label_and_one_for_all_of_them(K):
    np.testing.assert_array_equal(entropy(np.eye(K)), np.zeros(K))
    assert entropy(np.full(K, 1 / K)) == pytest.approx(min(K - 1, 1))
    assert entropy(np.full(K, 1 / K)) <= 1


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (1.0, r"K labels on the last axis; shape \(\) came"),
        (np.ones((2, 0)), r"shape \(2, 0\) came"),
        ([[0.5, 0.5], [3, 1]], r"1 of 2 are not, first at row 1.*keepdims"),
        ([1.5, -0.5], r"1 of 1 are not, first at row 0"),
        ([np.nan, 1.0], r"must be probabilities"),
    ],
)
def test_entropy_refuses_what_is_not_a_soft_label(y, words):
    with pytest.raises(ValueError, match=words):
        entropy(y)


# Asking what their word was worth


@given(seeds, st.booleans(), st.integers(1, 4))
def test_agreement_is_the_mean_over_peers(rng, soft, n):
    item = rng.integers(0, 5, 15)
    y = rng.dirichlet(np.ones(3), 15) if soft else rng.integers(0, 3, 15)
    stated = rng.integers(0, n, 15)
    annotations = strangers(item, y, K=3, stated=stated)
    by_level = {}
    for q in range(15):
        peers = [j for j in range(15) if j != q and item[j] == item[q]]
        for_each = [float(annotations.vectors[j] @ annotations.vectors[q]) for j in peers]
        if peers:
            by_level.setdefault(int(stated[q]), []).append(np.mean(for_each))
    got = calibrate(annotations)
    assert got.level.tolist() == sorted(by_level)
    assert got.count.tolist() == [len(by_level[level]) for level in sorted(by_level)]
    expected = [np.mean(by_level[level]) for level in sorted(by_level)]
    np.testing.assert_allclose(got.agreement, expected, atol=1e-12)


@given(seeds, st.sampled_from([0, 1, 10, 1e6]))
def test_uncertainty_never_rises_with_stated_confidence(rng, strength):
    u = calibrate(noisy_crowd(rng, N=20), prior_strength=strength).uncertainty
    assert np.all(np.diff(u) <= 1e-15)
    assert np.all((u >= 0) & (u <= 1))


def test_confidence_that_is_earned_is_found_again():
    u = calibrate(noisy_crowd(np.random.default_rng(0), N=20_000)).uncertainty
    # A peer knows in half of all cases, so knowing shows half of the time.
    np.testing.assert_allclose(u, 1 - np.linspace(0, 0.5, 5), atol=0.02)


def test_confidence_that_says_nothing_or_runs_backwards_comes_out_flat():
    annotations = noisy_crowd(np.random.default_rng(0), N=2000)
    flat = calibrate(replace(annotations, stated=-present(annotations.stated))).uncertainty
    np.testing.assert_allclose(flat, flat[0])
    one = calibrate(replace(annotations, stated=0 * present(annotations.stated)))
    np.testing.assert_allclose(flat[0], one.uncertainty, atol=1e-3)
    assert one.level.tolist() == [0]


def test_few_data_are_drawn_to_the_overall_rate():
    # one pair at level 1 disagrees, nine pairs at level 0 agree
    y, stated = [0, 0, 1, 1] * 4 + [0, 0] + [0, 1], [1] * 18 + [0] * 2
    annotations = strangers(np.repeat(np.arange(10), 2), y, stated=stated)
    alone, drawn, fully = (calibrate(annotations, prior_strength=s) for s in (0, 10, 1e9))
    np.testing.assert_allclose(alone.uncertainty, [1, 0], atol=1e-12)
    assert 0 < drawn.uncertainty[1] < drawn.uncertainty[0] < 1
    chance = (11 / 20) ** 2 + (9 / 20) ** 2
    np.testing.assert_allclose(fully.uncertainty, 1 - (0.9 - chance) / (1 - chance), atol=1e-6)
    np.testing.assert_array_equal(drawn.agreement, alone.agreement)


@given(seeds)
def test_calibration_ignores_row_order(rng):
    annotations = noisy_crowd(rng, N=10)
    shuffled = annotations.rows(rng.permutation(len(annotations.item)))
    one, other = calibrate(annotations), calibrate(shuffled)
    np.testing.assert_allclose(one.uncertainty, other.uncertainty, atol=1e-12)


def test_a_crowd_that_only_ever_used_one_label_is_certain():
    for y in ([1, 1, 1, 1], np.eye(2)[[1, 1, 1, 1]], np.full((4, 2), [1e-15, 1 - 1e-15])):
        got = calibrate(strangers([0, 0, 1, 1], y, stated=[1, 2, 1, 2]))
        np.testing.assert_array_equal(got.uncertainty, [0, 0])
    assert calibrate(strangers([0, 0], [0, 0], K=1, stated=[1, 1])).uncertainty == 0


def test_many_confidences_are_cut_into_bins_of_about_equal_size():
    rng = np.random.default_rng(0)
    annotations = replace(noisy_crowd(rng, N=500), stated=rng.random(1500))
    got = calibrate(annotations, max_levels=7)
    assert len(got.level) == 7
    assert np.ptp(got.count) <= 1
    assert got.count.sum() == 1500
    # more than half say 100, so fewer bins than asked for
    sure = np.where(rng.random(1500) < 0.6, 100, rng.random(1500))
    got = calibrate(replace(annotations, stated=sure))
    assert 2 < len(got.level) < 20
    assert got.level[-1] == 100
    assert calibrate(annotations, max_levels=1).count.tolist() == [1500]


@pytest.mark.parametrize("soft", [False, True])
def test_those_without_peers_teach_nothing(soft):
    item, stated = [0, 0, 1, 1, 2, 2, 3, 4], [1, 1, 2, 2, 2, 2, 2, 3]
    y = np.asarray([0, 1, 0, 0, 1, 1, 1, 1])
    y = np.eye(2)[y] if soft else y
    everybody = strangers(item, y, stated=stated)
    assert calibrate(everybody).to_rows() == calibrate(everybody.rows(np.arange(6))).to_rows()


@pytest.mark.parametrize(
    ("stated", "options", "words"),
    [
        ([1, 2, 3], {}, r"each of the 4 annotations, \(4,\); shape \(3,\) came"),
        ([1, np.nan, 2, np.nan], {}, r"2 of 4 are not, first nan at row 1.*Leave those rows out"),
        ([1, 2, 3, np.inf], {}, r"must be finite numbers; 1 of 4 are not, first inf at row 3"),
        ([1, 2, 3, 4], {"prior_strength": -1}, r"`prior_strength` must be at least 0.*-1 and 20"),
        ([1, 2, 3, 4], {"prior_strength": np.inf}, r"`prior_strength` must be at least 0"),
        ([1, 2, 3, 4], {"max_levels": 0}, r"`max_levels` at least 1; 10.0 and 0 came"),
    ],
)
def test_calibrate_refuses(stated, options, words):
    with pytest.raises(ValueError, match=words):
        calibrate(strangers([0, 0, 1, 1], [0, 1, 1, 1], stated=stated), **options)


def test_calibrating_needs_items_with_two_annotations():
    with pytest.raises(
        ValueError, match=r"some item needs two; of 3 annotations each is alone.*linear\(score"
    ):
        calibrate(strangers([0, 1, 2], [0, 1, 1], stated=[1, 2, 3]))


# The step function

STEPS = Calibration(
    level=np.asarray([1.0, 3.0, 4.0]),
    agreement=np.asarray([0.5, 0.7, 0.9]),
    count=np.asarray([1200, 50, 7]),
    uncertainty=np.asarray([0.9, 0.3, 0.1]),
)
STATED = [0.0, 1.0, 2.9, 3.0, 3.5, 4.0, 99.0, None]
EXPECTED = [0.9, 0.9, 0.9, 0.3, 0.3, 0.1, 0.1, None]


def test_a_calibration_is_a_step_function_of_arrays():
    np.testing.assert_array_equal(STEPS(np.asarray(STATED, float)), np.asarray(EXPECTED, float))
    assert STEPS([[3], [1]]).tolist() == [[0.3], [0.9]]
    assert STEPS(3) == 0.3


def to_table(kind, columns):
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    if kind == "polars lazy":
        return pytest.importorskip("polars").LazyFrame(columns)
    if kind == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns)
    table = pytest.importorskip("pyarrow").table(columns)
    if kind == "duckdb":
        return pytest.importorskip("duckdb").from_arrow(table)
    if kind == "dask":
        frame = pytest.importorskip("pandas").DataFrame(columns)
        return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
    if kind == "pandas arrow":
        return table.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype)
    return table


@pytest.mark.parametrize(
    "kind", ["polars", "polars lazy", "pandas", "pandas arrow", "pyarrow", "duckdb", "dask"]
)
@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_calibration_is_a_step_function_inside_tables(kind, missing):
    columns = {"row": list(range(8)), "stated": [*STATED[:-1], missing], "score": list(range(8))}
    frame = nw.from_native(to_table(kind, columns)).lazy()
    result = frame.with_columns(
        u=STEPS(nw.col("stated")),
        whole=STEPS(nw.col("score")),
        literal=linear(nw.col("score"), low=0, high=7),
        p=probability(nw.col("score") / 7),
    )
    rows = result.sort("row").collect("pyarrow").to_native().to_pydict()
    assert rows["u"][:-1] == EXPECTED[:-1]
    assert rows["u"][-1] is None or np.isnan(rows["u"][-1])
    assert rows["whole"] == STEPS(np.arange(8)).tolist()
    np.testing.assert_allclose(rows["literal"], 1 - np.arange(8) / 7, atol=1e-15)
    np.testing.assert_allclose(rows["p"], 1 - np.arange(8) / 7, atol=1e-15)


def test_a_calibration_can_be_read():
    assert str(STEPS).splitlines() == [
        "    stated  annotations  agreement  uncertainty",
        "         1        1,200      0.500        0.900",
        "         3           50      0.700        0.300",
        "         4            7      0.900        0.100",
    ]
    assert STEPS.to_rows()[1] == {"level": 3, "agreement": 0.7, "count": 50, "uncertainty": 0.3}


# Real stated confidence


@pytest.fixture(scope="module")
def factuality():
    """UDS factuality: did it happen? Two annotators an item, confidence 0 to 4."""
    path = DATASETS / "uds_confidence/raw/sentence/annotations/factuality.zip"
    if not path.exists():
        pytest.skip(f"the UDS data are not at {path}")
    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read("factuality.json"))["data"]
    rows = [
        (node, who, said, answers["confidence"][who])
        for nodes in data.values()
        for node, groups in nodes.items()
        for properties in groups.values()
        if isinstance(properties, dict)
        for answers in properties.values()
        for who, said in answers["value"].items()
    ]
    node, who, said, stated = (np.asarray(x) for x in zip(*rows, strict=True))
    items, item = np.unique(node, return_inverse=True)
    annotators, annotator = np.unique(who, return_inverse=True)
    u = np.zeros(len(item))
    return Annotations(item, annotator, said, u, items, annotators, np.arange(2), stated)


def test_agreement_by_stated_confidence_is_what_the_uds_notes_say(factuality):
    got = calibrate(factuality)
    assert len(factuality.stated) == 52_886
    np.testing.assert_array_equal(got.level, np.arange(5))
    np.testing.assert_array_equal(np.round(got.agreement, 2), [0.49, 0.58, 0.75, 0.83, 0.87])


def test_calibrated_confidence_predicts_peers_better_than_the_literal_or_none(factuality):
    half = np.random.default_rng(0).random(len(factuality.items))[factuality.item] < 0.5
    train, test = factuality.rows(half), factuality.rows(~half)
    learned, flat = calibrate(train), calibrate(replace(train, stated=np.zeros(half.sum())))
    said = test.stated

    def loss(uncertainty):
        c = certainty(replace(test, uncertainty=uncertainty), smoothing=0.01)
        return held_out_log_loss(test.item, test.y, c, n_labels=2)

    calibrated = loss(learned(said))
    assert calibrated == pytest.approx(0.456, abs=0.01)
    assert calibrated < loss(flat(said)) - 0.01 < loss(linear(said, low=0, high=4)) - 0.1
    assert loss(linear(said, low=0, high=4)) < loss(np.zeros(len(said))) - 0.2
