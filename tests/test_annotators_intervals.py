"""How well each annotator is known: intervals, by formula and by refits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosters import QUICK, by_name, column, compared, skilled
from scipy.stats import beta

from benchmarks.intervals import made
from slencodings.aggregate.em import above_chance
from slencodings.annotations import Annotations
from slencodings.annotators import describe_annotators
from slencodings.annotators.estimates import ESTIMATES
from slencodings.annotators.intervals import (
    agreement_sample_size,
    effective_sample_size,
    groups_of_items,
    interval,
)
from slencodings.trust import learn_crowd


@given(st.integers(1, 30), st.integers(0, 30))
def test_the_interval_of_yes_or_no_agreement_is_that_of_jeffreys(n, agreed):
    agreed = min(n, agreed)
    item, who = np.tile(np.arange(n), 2), np.repeat([0, 1], n)
    y = (who == 0) & (item >= agreed)
    names = np.arange(n), np.arange(2), np.arange(2)
    c = Annotations(item, who, y.astype(int), np.zeros(2 * n), *names)
    row = by_name(compared(c, estimates=["agreement"]))[0]
    low, high = beta(agreed + 0.5, n - agreed + 0.5).interval(0.95)
    assert row["agreement_low"] == pytest.approx(0 if agreed == 0 else low, abs=1e-9)
    assert row["agreement_high"] == pytest.approx(1 if agreed == n else high, abs=1e-9)


def test_agreement_with_many_peers_is_known_better():
    rng = np.random.default_rng(0)
    skill = np.full(12, 0.8)
    few, many = (skilled(rng, skill, N=300, per_item=n) for n in (2, 12))
    from slencodings.aggregate.agreement import judgments

    few, many = (
        agreement_sample_size(said, 12, 2) / np.bincount(said.annotator)
        for said in (judgments(c).shared() for c in (few, many))
    )
    np.testing.assert_allclose(few, 1)
    assert np.all(many > 1.5)


def test_the_variance_of_a_mean_over_groups_is_the_usual_one():
    rng = np.random.default_rng(0)
    values = rng.normal(0.5, 0.1, (20, 1000))  # in each of 20 groups one value
    left_out = (values.sum(axis=0) - values) / 19
    x, spread = values.mean(axis=0), np.full(1000, 20)
    size = effective_sample_size(x, left_out, np.full(1000, 1e9), spread)
    variance = values.var(axis=0, ddof=1) / 20
    # Student's t with 19 degrees of freedom is 2.0930 where the normal is 1.9600
    np.testing.assert_allclose(size, x * (1 - x) / variance / (2.0930 / 1.95996) ** 2, rtol=1e-3)


def test_no_estimate_is_known_better_than_judgments_allow():
    same = np.full((5, 2), 1.0)
    size = effective_sample_size(same[0], same, np.asarray([8.0, np.nan]), np.asarray([5, 5]))
    np.testing.assert_array_equal(size, [8, np.nan])
    low, high = interval(same[0], size)
    np.testing.assert_allclose(low, [beta(8.5, 0.5).ppf(0.025), np.nan])
    np.testing.assert_array_equal(high, [1, np.nan])


def test_shared_items_are_spread_evenly_over_groups():
    group = groups_of_items(np.arange(50, 70), 100, 10, 0)
    np.testing.assert_array_equal(np.bincount(group[50:70]), [2] * 10)
    np.testing.assert_array_equal(np.bincount(group), [10] * 10)
    assert not np.array_equal(group, groups_of_items(np.arange(50, 70), 100, 10, 1))


def test_intervals_hold_what_they_are_about():
    c = skilled(np.random.default_rng(1), np.linspace(0.5, 1, 5), N=40)
    for row in describe_annotators(c, estimates=ESTIMATES, groups=4).to_rows():
        for name in ("above_chance", *ESTIMATES):
            lowest = 0 if name in ("agreement", "dawid_skene", "mace") else -1
            assert lowest <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] <= 1


def test_intervals_cover_the_truth():
    rng = np.random.default_rng(7)
    accuracy = np.linspace(0.55, 0.98, 10)
    both = np.outer(accuracy, accuracy) + np.outer(1 - accuracy, 1 - accuracy)
    agreement = (both.sum(axis=1) - np.diag(both)) / 9
    truth = {"agreement": agreement, "kappa": 2 * agreement - 1, "dawid_skene": accuracy}
    held = {name: [] for name in truth}
    for _ in range(10):
        c = skilled(rng, accuracy)
        roster = describe_annotators(c, estimates=list(truth))
        for name, true in truth.items():
            low, high = (column(roster, f"{name}_{end}") for end in ("low", "high"))
            held[name] += [*((low <= true) & (true <= high))]
            assert np.all(high - low < 1.2)
    # 95 of 100 are meant, with a standard error of 2.
    assert all(np.mean(hits) > 0.88 for hits in held.values())


@pytest.mark.parametrize("K", [2, 3, 10])
def test_intervals_of_skill_cover_the_truth_where_people_err_on_their_own(K):
    inside = list[bool]()
    for seed in range(3):
        annotations, accuracy = made(K, 10, seed)
        crowd = learn_crowd(annotations)
        skill = above_chance(accuracy, crowd.people.chance)
        low, high = crowd.above_chance_interval()
        inside += [*((low <= skill) & (skill <= high))]
        # What the truth reading holds back is not held against the best.
        assert np.all(high >= crowd.above_chance)
        assert np.all(low <= crowd.above_chance)
    # 95 of 100 are meant; of the truth reading alone they were 80 to 88.
    assert np.mean(inside) > 0.9


def test_who_shares_few_items_has_no_interval_from_refits():
    rng = np.random.default_rng(0)
    c = skilled(rng, np.asarray([0.8, 0.9, 0.9, 0.9]), N=40)
    few = (c.annotator != 0) | (c.item < 4)
    c = replace(c, **{x: getattr(c, x)[few] for x in ("item", "annotator", "y", "uncertainty")})
    roster = describe_annotators(c, estimates=["agreement", "kappa", "dawid_skene"], groups=5)
    rows = by_name(roster)
    assert rows[0]["shared_items"] == 4
    assert rows[0]["kappa_low"] is rows[0]["dawid_skene_high"] is None
    assert rows[0]["agreement_low"] is not None
    assert rows[1]["kappa_low"] is not None
    assert any("Fewer than 5 items are shared by 1 of 4 annotators (0)" in x for x in roster.notes)


def test_progress_counts_every_fit():
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 4), N=3)
    told = []
    describe_annotators(c, estimates=QUICK, progress=lambda *x: told.append(x))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]  # three items make three groups
    told.clear()
    describe_annotators(c, estimates=QUICK, groups=0, progress=lambda *x: told.append(x))
    assert told[-1] == (1, 1)  # before that, of learning
