"""Learned trust: the objective against slow oracles, the value against the operators."""

import datetime as dt
import json
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from scipy.optimize import approx_fprime
from strategies import present

import slencodings as sle
from slencodings import Annotations
from slencodings.datasets.rte import rte
from slencodings.trust import Trust, learn_trust, objective
from slencodings.trust.objective import Learned, Parts, Ridge

RIDGE = Ridge(annotator=0.5, level=0.2, meaning=0.7, scale=0.3)


def crowd_of(item, annotator, y, *, K=None, stated=None):
    item, annotator, y = (np.asarray(x) for x in (item, annotator, y))
    K = K or (y.shape[1] if y.ndim == 2 else int(y.max()) + 1)
    u, names = np.zeros(len(item)), np.arange
    crowd = item.max() + 1, annotator.max() + 1, K
    return Annotations(item, annotator, y, u, *map(names, crowd), stated=stated)


def ragged(rng, *, N=12, M=5, K=3, R=60, soft=False):
    """A crowd with repeats, with items that one or nobody annotated, and stated levels."""
    item = rng.integers(0, N - 1, R)
    item[0] = N - 1
    y = rng.dirichlet(np.ones(K), R) if soft else rng.integers(0, K, R)
    if soft:
        y[::3] = np.eye(K)[rng.integers(0, K, len(y[::3]))]
    return crowd_of(item, rng.integers(0, M, R), y, K=K, stated=rng.integers(0, 4, R))


def skilled(rng, *, N=200, K=3, levels=False):
    """Six annotators of falling skill, each on every item; at level 0 all of them guess."""
    truth = rng.integers(0, K, N)
    item, annotator = (x.ravel() for x in np.meshgrid(np.arange(N), np.arange(6), indexing="ij"))
    stated = rng.integers(0, 3, len(item)) if levels else np.zeros(len(item), dtype=int)
    skill = np.asarray([0.95, 0.9, 0.8, 0.6, 0.3, 0.0])[annotator]
    skill = skill * stated / 2 if levels else skill
    y = np.where(rng.random(len(item)) < skill, truth[item], rng.integers(0, K, len(item)))
    return crowd_of(item, annotator, y, K=K, stated=stated), truth


def levels_of(said):
    """What was stated, as the codes that it is here."""
    return present(said.stated).astype(int)


def small_votes(rng, soft=False):
    said = ragged(rng, soft=soft)
    a = rng.dirichlet(np.ones(3) * 5)
    return objective.votes(said.item, said.annotator, levels_of(said), said.y, a, 5, 4)


def some_parameters(rng, M=5, L=4, K=3):
    deviation = rng.normal(size=(K, K))
    np.fill_diagonal(deviation, 0)
    return Learned(0.3, rng.normal(size=M), rng.normal(size=L), 2.0, deviation)


def assert_same_opinions(one, other, tolerance=1e-12):
    for x, y in zip(one, other, strict=True):
        assert np.allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(3)
    said, _ = skilled(rng, N=150, levels=True)
    return said, learn_trust(said, ridge=Ridge())


# The objective


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize(
    "parts", [Parts(), Parts(True, False, False), Parts(False, True, False), Parts(False, False)]
)
def test_the_gradient_is_that_of_the_objective(soft, parts):
    rng = np.random.default_rng(0)
    votes = small_votes(rng, soft)
    free = objective._free(votes, parts)
    x = np.concatenate([[0.3], rng.normal(size=9), [2.0], rng.normal(size=9)])[free]

    def loss(x):
        return objective.objective(x, votes, parts, RIDGE, free)[0]

    _, gradient = objective.objective(x, votes, parts, RIDGE, free)
    h = 1e-6
    steps = np.eye(len(x)) * h
    central = np.asarray([(loss(x + e) - loss(x - e)) / (2 * h) for e in steps])
    assert np.allclose(gradient, central, rtol=1e-6, atol=1e-9)
    assert np.allclose(gradient, approx_fprime(x, loss), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("soft", [False, True])
def test_each_vote_is_predicted_by_fusing_the_others(soft):
    rng = np.random.default_rng(1)
    votes, at = small_votes(rng, soft), some_parameters(rng)
    w, C, a = at.worth(votes), at.C, votes.base_rate
    y = votes.y if soft else np.eye(3)[votes.y]
    for q, loss in enumerate(objective.losses(votes, w, C)):
        others = votes.item == votes.item[q]
        others[q] = False
        said = sle.encode(y[others] @ C, 1 / (1 + w[others]), base_rate=a)
        P = sle.fuse(said).probability
        assert loss == pytest.approx(-np.sum(y[q] * np.log(P)), rel=1e-12)


def test_the_total_loss_is_the_sum_of_all():
    rng = np.random.default_rng(2)
    votes, at = small_votes(rng), some_parameters(rng)
    w = at.worth(votes)
    loss, *_ = objective.loss_and_gradient(votes, w, at.C)
    assert loss == pytest.approx(objective.losses(votes, w, at.C).sum(), rel=1e-12)


def test_little_evidence_beside_the_most_there_can_be_is_not_lost():
    # The worth of the first is as large as bounds allow.
    w = np.asarray([1e8, 1e-2, 3e-4, 1e8])
    item, y = np.zeros(4, dtype=int), np.asarray([0, 0, 0, 1])
    votes = objective.votes(item, item, item, y, np.asarray([0.5, 0.5]), 1, 1)
    exact = [Fraction(x) for x in w.tolist()]
    for q, loss in enumerate(objective.losses(votes, w, np.eye(2))):
        num = sum(x for p, x in enumerate(exact) if p != q and y[p] == y[q]) + Fraction(1, 2)
        den = sum(x for p, x in enumerate(exact) if p != q) + 1
        assert loss == pytest.approx(-np.log(float(num / den)), rel=1e-6)


def test_votes_are_sorted_by_item_and_none_is_alone():
    said = ragged(np.random.default_rng(4))
    votes = objective.votes(
        said.item, said.annotator, levels_of(said), said.y, np.ones(3) / 3, 5, 4
    )
    assert (np.diff(votes.item) >= 0).all()
    assert (np.bincount(votes.item) > 1).all()
    assert votes.sizes[0] == votes.item.max() + 1
    assert np.array_equal(said.y[votes.row], votes.y)
    assert 0 not in votes.row


def test_the_starting_matrix_is_near_the_identity_and_rows_sum_to_one():
    for K in (1, 2, 7):
        start = Learned(0, np.zeros(1), np.zeros(1), 3 + np.log(max(K - 1, 1)), np.zeros((K, K)))
        assert np.allclose(start.C.sum(axis=1), 1)
        assert (np.diag(start.C) > 0.95).all()


# What is learned


def test_skill_confidence_and_nothing_else_is_found():
    said, truth = skilled(np.random.default_rng(5), levels=True)
    trust = learn_trust(said)
    assert trust.converged
    assert trust.worth[:4].min() > 2 * trust.worth[4:].max()
    assert trust.share.tolist() == sorted(trust.share)
    assert trust.share[-1] == 1
    assert trust.share[0] < 0.2
    votes = said.sums().argmax(axis=1)
    best = trust.opinion(said).probability.argmax(axis=1)
    assert np.mean(best == truth) > np.mean(votes == truth) + 0.05
    assert trust.losses["held_out"] < trust.losses["votes"]


def test_labels_that_are_confused_are_found():
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 3, 250)
    item = np.repeat(np.arange(250), 6)
    # 1 and 2 look alike, 0 does not
    y = np.where(
        truth[item] == 0, 0, np.where(rng.random(1500) < 0.3, 3 - truth[item], truth[item])
    )
    trust = learn_trust(crowd_of(item, np.tile(np.arange(6), 250), y))
    C = trust.meaning
    assert np.allclose(C.sum(axis=1), 1)
    assert C[1, 2] > 0.1 < C[2, 1]
    assert max(C[0, 1], C[0, 2], C[1, 0], C[2, 0]) < 0.02


def test_a_part_that_is_switched_off_says_nothing():
    said, _ = skilled(np.random.default_rng(7), N=60, levels=True)
    without = learn_trust(said, by_annotator=False, by_confidence=False, meaning=False)
    assert np.ptp(without.worth) == 0
    assert without.typical_worth == pytest.approx(without.worth[0])
    assert len(without.levels) == len(without.share) == len(without.level_count) == 0
    assert np.array_equal(without.meaning, np.eye(3))
    assert "not learned" in str(without)
    only = learn_trust(said, by_annotator=False, meaning=False, ridge=Ridge())
    assert np.ptp(only.worth) == 0
    assert len(only.share) == 3


def test_each_part_lowers_the_loss_it_minimises():
    said, _ = skilled(np.random.default_rng(8), N=100, levels=True)
    ridge = Ridge(1e-3, 1e-3, 1e-3, 1e-3)
    off: dict[str, Any] = {"by_annotator": False, "by_confidence": False, "meaning": False}
    one, annotators, levels, both, everything = (
        learn_trust(said, ridge=ridge, **{**off, **on}).losses["learned"]
        for on in (
            {},
            {"by_annotator": True},
            {"by_confidence": True},
            {"by_annotator": True, "by_confidence": True},
            dict.fromkeys(off, True),
        )
    )
    assert everything <= both + 1e-6
    assert both < min(annotators, levels)
    assert max(annotators, levels) < one


def test_stated_confidence_is_one_less_uncertainty_where_it_is_not_given():
    said, _ = skilled(np.random.default_rng(9), N=50, levels=True)
    stated = replace(said, stated=present(said.stated) / 2)
    unsure = replace(said, uncertainty=1 - present(stated.stated), stated=None)
    one, other = learn_trust(unsure, ridge=RIDGE), learn_trust(stated, ridge=RIDGE)
    assert one.levels.tolist() == other.levels.tolist() == [0, 0.5, 1]
    assert np.allclose(one.share, other.share)
    assert one.from_uncertainty
    assert_same_opinions(one.opinion(unsure), other.opinion(stated))
    # What was learned of uncertainty is read off it, whatever was stated besides.
    assert_same_opinions(one.opinion(replace(unsure, stated=said.stated)), other.opinion(stated))


def test_constant_confidence_has_no_levels(learned):
    said, _ = learned
    said = replace(said, stated=np.full(len(said.item), 3))
    assert len(learn_trust(said, ridge=RIDGE).levels) == 0


def test_many_levels_become_quantiles():
    said, _ = skilled(np.random.default_rng(10), N=50)
    stated = np.random.default_rng(0).random(len(said.item))
    trust = learn_trust(replace(said, stated=stated), max_levels=4, ridge=RIDGE)
    assert np.allclose(trust.levels, [0.125, 0.375, 0.625, 0.875], atol=0.1)
    assert trust.level_count.sum() == len(stated)


def test_annotations_alone_on_their_item_teach_nothing():
    said = ragged(np.random.default_rng(11))
    assert (np.bincount(said.item) == 1).any()
    paired = (np.bincount(said.item) > 1)[said.item]
    one, other = (learn_trust(a, meaning=False) for a in (said, said.rows(paired)))
    assert np.allclose(one.worth, other.worth)
    assert one.losses == pytest.approx(other.losses)


@pytest.mark.parametrize("soft", [False, True])
def test_the_order_of_rows_makes_no_difference(soft):
    rng = np.random.default_rng(12)
    said = ragged(rng, soft=soft)
    order = rng.permutation(len(said.item))
    one, other = (learn_trust(a, ridge=RIDGE) for a in (said, said.rows(order)))
    assert np.allclose(one.worth, other.worth, rtol=1e-3)
    assert np.allclose(one.meaning, other.meaning, atol=1e-3)


def test_one_hot_probabilities_are_labels():
    said, _ = skilled(np.random.default_rng(13), N=80, levels=True)
    soft = replace(said, y=said.vectors)
    one, other = (learn_trust(a, ridge=RIDGE) for a in (said, soft))
    assert np.allclose(one.worth, other.worth, rtol=1e-3)
    assert np.allclose(one.log_loss(said), other.log_loss(soft), atol=1e-4)


def test_labels_may_be_called_anything():
    said, _ = skilled(np.random.default_rng(14), N=80, levels=True)
    order = np.asarray([2, 0, 1])
    one = learn_trust(said, ridge=RIDGE)
    other = learn_trust(replace(said, y=order[said.y]), ridge=RIDGE)
    assert np.allclose(one.meaning, other.meaning[np.ix_(order, order)], atol=1e-3)
    assert np.allclose(one.worth, other.worth, rtol=1e-2)


@pytest.mark.parametrize(
    ("item", "annotator", "y", "K"),
    [
        pytest.param([0, 0], [0, 1], [0, 1], 2, id="one item"),
        pytest.param([0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 1], 2, id="one annotator"),
        pytest.param([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0], 1, id="one label"),
        pytest.param([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0], 3, id="labels nobody gave"),
        pytest.param([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], 2, id="total disagreement"),
        pytest.param(
            [0] * 9999 + [1] * 2, [0, 1, 2] * 3333 + [0, 1], [0, 1, 1] * 3667, 2, id="many"
        ),
    ],
)
def test_strange_crowds_give_finite_trust(item, annotator, y, K):
    said = crowd_of(item, annotator, y[: len(item)], K=K)
    trust = learn_trust(said)
    opinion = sle.check(trust.opinion(said))
    assert (opinion.uncertainty > 0).all()
    assert np.isfinite(trust.log_loss(said)).all()
    assert np.isfinite(trust.worth).all()
    assert (trust.worth > 0).all()


def test_those_who_agree_always_stay_a_little_unsure():
    item = np.repeat(np.arange(300), 4)
    trust = learn_trust(crowd_of(item, np.tile(np.arange(4), 300), item % 2))
    assert 0.9 < min(trust.reliability.values()) < 1


def test_ridges_are_chosen_on_part_of_a_large_crowd(monkeypatch):
    said, _ = skilled(np.random.default_rng(15), levels=True)
    monkeypatch.setattr(objective, "_ENOUGH", 600)
    trust = learn_trust(said)
    assert trust.losses["held_out"] < trust.losses["votes"]


def test_given_ridges_are_kept_and_strong_ones_hold_back(learned):
    said, _ = learned
    strong = learn_trust(said, ridge=Ridge(1e6, 1e6, 1e6))
    assert strong.ridge == Ridge(1e6, 1e6, 1e6)
    assert "held_out" not in strong.losses
    assert np.allclose(strong.worth, strong.worth[0], rtol=1e-2)
    assert np.allclose(strong.share, 1, rtol=1e-2)


def test_the_seed_decides_what_is_held_out():
    said = ragged(np.random.default_rng(20))
    one, same, other = (learn_trust(said, meaning=False, rng=seed) for seed in (1, 1, 2))
    assert one.to_json() == same.to_json()
    assert other.losses["held_out"] != one.losses["held_out"]


# The value


@pytest.mark.parametrize("soft", [False, True])
def test_its_opinion_is_what_the_operators_make_of_it(soft):
    said = ragged(np.random.default_rng(16), soft=soft)
    trust = learn_trust(said, ridge=RIDGE)
    r = np.asarray([trust.reliability[m] for m in said.annotators.tolist()])[said.annotator]
    u = trust.uncertainty(said.stated, r)
    opinion = trust.opinion(said)
    for i in range(len(said.items)):
        on = said.item == i
        told = sle.encode(said.vectors[on] @ trust.meaning, u[on], base_rate=trust.base_rate)
        if on.any():
            assert_same_opinions(opinion.rows(i), sle.fuse(sle.discount(told, r[on])))
        else:
            assert opinion.uncertainty[i] == 1


@pytest.mark.parametrize("meaning", [False, True])
@pytest.mark.parametrize("soft", [False, True])
def test_its_opinion_is_sle_of_what_it_reads(soft, meaning):
    said = ragged(np.random.default_rng(17), soft=soft)
    trust = learn_trust(said, ridge=RIDGE, meaning=meaning)
    read = trust.read(said)
    assert read.soft == (soft or meaning)
    fused = sle.aggregate.sle(read, smoothing=0, base_rate=trust.base_rate)
    assert_same_opinions(trust.opinion(said), fused)


@pytest.mark.parametrize("soft", [False, True])
def test_its_losses_are_those_of_the_metric_where_votes_mean_what_they_say(soft):
    said = ragged(np.random.default_rng(18), soft=soft)
    trust = learn_trust(said, ridge=RIDGE, meaning=False)
    w = trust.annotation_worth(said)
    expected = sle.metrics.held_out_log_loss(
        said.item, said.y, w / (1 + w), n_labels=3, base_rate=trust.base_rate, each=True
    )
    loss = trust.log_loss(said)
    assert np.allclose(loss, expected, equal_nan=True)
    assert np.nanmean(loss) == pytest.approx(trust.losses["learned"])


def test_reliability_and_uncertainty_multiply_to_the_worth(learned):
    said, trust = learned
    r = np.asarray(list(trust.reliability.values()))[said.annotator]
    w = trust.annotation_worth(said)
    u = trust.uncertainty(said.stated, r)
    assert np.allclose(r * (1 - u), w / (1 + w), rtol=1e-12)
    assert (u >= 0).all()


def test_new_annotators_have_typical_worth_and_new_levels_the_nearest(learned):
    _, trust = learned
    new = crowd_of([0, 0, 0], [0, 1, 1], [0, 1, 2], stated=[-7, 1.2, 80])
    w = trust.annotation_worth(replace(new, annotators=np.asarray([2, 99])))
    typical = np.exp(np.log(trust.worth).mean())
    expected = [trust.worth[2] * trust.share[0], typical * trust.share[1], typical]
    assert np.allclose(w, expected)
    assert trust.reliability_of([99])[99] == pytest.approx(typical / (1 + typical))
    assert trust.uncertainty(0.5) == trust.uncertainty(0)


def test_labels_are_found_by_name_in_any_order(learned):
    said, trust = learned
    order = np.asarray([2, 0, 1])
    other = replace(said, y=np.argsort(order)[said.y], labels=order)
    soft = replace(other, y=other.vectors)
    for given in (other, soft):
        assert_same_opinions(trust.opinion(given), trust.opinion(said))
        assert np.allclose(trust.log_loss(given), trust.log_loss(said))


def test_inside_a_table_uncertainty_is_the_same(learned):
    _, trust = learned
    stated, r = [0.0, 0.6, 1.0, 2.0, 9.0, None, float("nan")], np.linspace(0.1, 0.9, 7)
    frame = nw.from_native(pl.DataFrame({"stated": stated, "r": r}))
    given = trust.uncertainty(nw.col("stated"), nw.col("r"))
    inside = frame.select(given.alias("both"), trust(nw.col("stated")).alias("one"))
    x = np.asarray([np.nan if s is None else s for s in stated])
    for name, expected in (("both", trust.uncertainty(x, r)), ("one", trust(x))):
        column = inside[name].to_list()
        assert column[5:] == [None, None]
        assert np.allclose(column[:5], expected[:5])
        assert np.isnan(expected[5:]).all()


def table_of(said):
    return {"item": said.item, "who": said.annotator, "label": said.y, "sure": said.stated}


@pytest.mark.parametrize(
    ("parts", "how"),
    [
        ({"by_confidence": False}, lambda t: {"reliability": t.reliability}),
        (
            {"by_annotator": False},
            lambda t: {
                "reliability": t.typical_worth / (1 + t.typical_worth),
                "confidence": "sure",
                "confidence_scale": t,
            },
        ),
    ],
)
def test_one_part_alone_goes_into_tables_as_it_is(learned, parts, how):
    said, _ = learned
    trust = learn_trust(said, ridge=RIDGE, meaning=False, **parts)
    fused = sle.fuse_table(
        table_of(said),
        item="item",
        annotator="who",
        label="label",
        base_rate=trust.base_rate.tolist(),
        smoothing=0,
        **how(trust),
    )
    opinion = trust.opinion(said)
    assert np.allclose(fused["uncertainty"], opinion.uncertainty)
    assert np.allclose(fused["probability_1"], opinion.probability[:, 1])


def test_all_parts_go_into_tables_as_columns(learned):
    said, trust = learned
    rows = pl.DataFrame(table_of(said))
    rows = rows.with_columns(r=pl.col("who").replace_strict(trust.reliability))
    u = trust.uncertainty(nw.col("sure"), nw.col("r")).alias("u")
    rows = nw.from_native(rows).with_columns(u).to_native()
    meaning = pl.DataFrame(trust.meaning, schema=["0", "1", "2"]).with_columns(label=np.arange(3))
    fused = sle.fuse_table(
        rows.join(meaning, on="label").select("item", "r", "u", "0", "1", "2"),
        item="item",
        label=["0", "1", "2"],
        reliability="r",
        uncertainty="u",
        base_rate=trust.base_rate.tolist(),
        smoothing=0,
    )
    opinion = trust.opinion(said)
    assert np.allclose(fused["uncertainty"], opinion.uncertainty)
    assert np.allclose(fused["probability_1"], opinion.probability[:, 1])


@pytest.mark.parametrize("names", [[0, 1, 2], ["no", "maybe", "yes"]])
def test_it_survives_storage(learned, names):
    said, _ = learned
    named = replace(said, labels=np.asarray(names, dtype=object))
    trust = learn_trust(named, ridge=RIDGE)
    back = Trust.from_json(trust.to_json())
    for field in fields(Trust):
        one, other = getattr(trust, field.name), getattr(back, field.name)
        same = np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other
        assert same, field.name
    assert_same_opinions(back.opinion(named), trust.opinion(named), 0)
    assert str(back) == str(trust)


def test_what_is_not_a_stored_trust_is_refused(learned):
    for text in ("{}", "[1]", json.dumps({"worth": [1], "other": 2})):
        with pytest.raises(ValueError, match="a stored trust has the fields annotators, base_rate"):
            Trust.from_json(text)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"worth": [1.0]}, r"worth must have the shape \(6,\); \(1,\) came. Store it again"),
        ({"share": [[1.0]] * 3}, r"share must have the shape \(3,\); \(3, 1\) came"),
        ({"meaning": [1.0, 0.0, 0.0]}, r"meaning must have the shape \(3, 3\); \(3,\) came"),
        ({"base_rate": ["often"]}, "is damaged: could not convert string to float: 'often'"),
        ({"typical_worth": None}, r"is damaged: float\(\) argument must be"),
        ({"ridge": {"colour": 1}}, "is damaged: .*unexpected keyword argument 'colour'"),
    ],
)
def test_a_damaged_store_is_refused(learned, damage, words):
    _, trust = learned
    with pytest.raises(ValueError, match=words):
        Trust.from_json(json.dumps(trust.to_dict() | damage))


def test_names_that_json_cannot_hold_are_refused_in_words(learned):
    _, trust = learned
    days = np.asarray([dt.date(2026, 1, d) for d in (1, 2, 3)], dtype=object)
    with pytest.raises(ValueError, match=r"text or numbers to be stored; .*date.*Make them text"):
        replace(trust, labels=days).to_json()


def test_it_prints_three_tables(learned):
    said, trust = learned
    text = str(trust)
    assert "Whom to trust (6 annotators)" in text
    assert "What stated confidence is worth" in text
    assert "What a vote says" in text
    assert f"{len(said.item) // 6:,}" in text
    assert f"learned {trust.losses['learned']:.3f}" in text
    first = text.splitlines()[2].split()
    assert first[0] == str(np.argmax(trust.worth))


def test_it_prints_the_best_and_the_worst_of_many():
    rng = np.random.default_rng(19)
    item = np.repeat(np.arange(60), 4)
    said = crowd_of(item, rng.integers(0, 30, 240), rng.integers(0, 12, 240))
    named = replace(said, annotators=np.asarray([f"{'long' * 9}{m}" for m in range(30)]))
    text = str(learn_trust(named, ridge=RIDGE))
    assert sum("longlong" in line for line in text.splitlines()) == 10
    assert "…" in text
    assert sum(" says " in line for line in text.splitlines()) == 10 + 1


# Bad input


def test_one_annotation_an_item_is_not_enough():
    with pytest.raises(ValueError, match="some item needs two; 2 annotations came and each is"):
        learn_trust(crowd_of([0, 1], [0, 0], [0, 1]))


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ([1], r"`stated` needs one confidence for each of the 2 annotations, \(2,\); shape \(1,\)"),
        (
            [1, np.nan],
            "stated confidence must be finite numbers; 1 of 2 are not, first nan at row 1",
        ),
    ],
)
def test_stated_confidence_is_checked(stated, words):
    with pytest.raises(ValueError, match=words):
        learn_trust(crowd_of([0, 0], [0, 1], [0, 1], stated=stated))


def test_there_is_at_least_one_level():
    with pytest.raises(ValueError, match="`max_levels` must be at least 1; 0 came"):
        learn_trust(crowd_of([0, 0], [0, 1], [0, 1]), max_levels=0)


def test_what_was_learned_with_stated_confidence_needs_it(learned):
    said, trust = learned
    with pytest.raises(ValueError, match=r"`stated` is needed, .* levels 0\.0, 1\.0, 2\.0: data"):
        trust.opinion(replace(said, stated=None))


def test_a_new_label_is_refused(learned):
    said, trust = learned
    new = replace(said, labels=np.asarray([0, 1, 7]))
    with pytest.raises(ValueError, match="learned for, 0, 1, 2; 1 are not, first 7"):
        trust.opinion(new)


# Real data


def test_on_rte_learned_trust_is_right_more_often_than_votes():
    try:
        crowd = rte()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    said = crowd.annotations
    trust = learn_trust(said, meaning=False)
    assert trust.losses["votes"] == pytest.approx(0.592, abs=1e-3)
    assert trust.losses["held_out"] == pytest.approx(0.576, abs=0.01)
    assert np.mean(trust.opinion(said).probability.argmax(axis=1) == crowd.gold) > 0.91
    assert learn_trust(said).losses["held_out"] == pytest.approx(0.565, abs=0.01)
