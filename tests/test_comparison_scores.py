"""The scores of a comparison, their intervals, and who is told to be best."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import confident, rows_of, skilled
from crowds import crowd, make, once

from slencodings import aggregate, metrics
from slencodings.evaluation import compare
from slencodings.evaluation.held_out import _deal
from slencodings.evaluation.learner import Learner
from slencodings.evaluation.measure import OTHER_FOLDS, Resampled, told_apart
from slencodings.evaluation.methods import methods_for
from slencodings.evaluation.predicted import HeldOut, halves, predict, score
from slencodings.trust import learn_crowd

# Scores


def test_scores_are_those_of_the_metrics_module():
    c = confident(np.random.default_rng(3), N=40, R=200)
    train, test = (c.rows(c.item % 2 == k) for k in (0, 1))
    fit = methods_for(train)["SLE, one count each"](Learner(train))
    held_out = HeldOut(test, halves(test, np.random.default_rng(0)))
    sums = score(predict(fit, train, held_out), held_out)
    votes, direct, own, _, brier, agreement, *_ = sums
    each = metrics.held_out_log_loss(
        test.item, test.y, 1 / 3, n_labels=3, base_rate=Learner(train).base_rate, each=True
    )
    several = np.bincount(test.item, minlength=40) > 1
    expected = np.bincount(test.item, np.nan_to_num(each), 40)
    np.testing.assert_allclose(votes[several], expected[several], atol=1e-12)
    np.testing.assert_array_equal(direct, votes)
    n = np.bincount(test.item, minlength=40)
    assert np.all((brier >= 0) & (brier <= 2 * n))
    assert np.all((agreement >= 0) & (agreement <= n))
    assert np.all(own[n > 0] > 0)


def test_the_learned_crowd_is_scored_as_its_readings_say():
    a = once(crowd(np.random.default_rng(5), N=40, R=250))
    row = compare(a, methods=["learned crowd"], folds=2, bootstrap=10).rows[0]
    fold, votes, own = _deal(a, 2, np.random.default_rng(0)), [], []
    for f in (0, 1):
        train, test = (a.rows(keep[a.item]) for keep in (fold != f, fold == f))
        learned, q = learn_crowd(train), np.arange(len(test.item))
        votes.extend(learned.predict(test)[q, test.y])
        own.extend(learned.predict_own(test)[q, test.y])
    assert row["votes"] == pytest.approx(-np.mean(np.log(votes)), abs=1e-12)
    assert row["own"] == pytest.approx(-np.mean(np.log(own)), abs=1e-12)


def test_losses_are_infinite_where_what_was_said_got_no_chance():
    a, _ = skilled(np.random.default_rng(1), N=50)
    (row,) = rows_of(compare(a, methods=["majority vote"], bootstrap=20))
    assert math.isinf(row["direct"])
    assert math.isinf(row["direct_low"])
    assert row["votes"] < 1
    two = compare(a, methods=["majority vote", "soft votes"], bootstrap=20)
    assert "inf" in str(two)


def test_what_is_true_is_scored_by_how_probable_it_was_and_who_is_too_sure_shows():
    a, truth = skilled(np.random.default_rng(0))
    names = ["majority vote", "Dawid-Skene", "SLE, kappa", "learned crowd"]
    found = compare(a, gold=truth, methods=names, folds=2, bootstrap=200)
    known = methods_for(a)
    rows = rows_of(found)
    for row in rows:
        p = known[row["method"]](Learner(a)).target.probability
        with np.errstate(divide="ignore"):
            expected = -np.log(p[np.arange(len(p)), truth]).mean()
        assert row["truth"] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert row["truth_low"] <= row["truth"] <= row["truth_high"]
        assert row["too_sure"] == pytest.approx(p.max(axis=1).mean() - row["accuracy"])
    assert sum(row["best_truth"] for row in rows) <= 1
    assert "predicting what is true" in str(found)
    assert "log-loss of truth" in str(found)
    assert "truth" not in compare(a, methods=names, folds=2, bootstrap=0).rows[0]


def test_gold_comes_as_names_codes_or_a_soft_truth():
    a, truth = skilled(np.random.default_rng(0), N=40)
    a = replace(a, labels=np.asarray(["no", "yes"], dtype=object))
    T = np.eye(2)[truth]
    how: dict[str, Any] = {"methods": ["soft votes", "SLE, kappa"], "bootstrap": 5}
    named = compare(a, gold={n: ["no", "yes"][t] for n, t in enumerate(truth)}, **how)
    for given in (truth, T):
        found = rows_of(compare(a, gold=given, **how))
        assert found[0]["accuracy"] == rows_of(named)[0]["accuracy"]
    assert "jsd" not in named.rows[0]
    soft = 0.8 * T + 0.1
    soft[:7] = np.nan
    (row,) = rows_of(compare(a, gold=soft, methods=["SLE, kappa"], bootstrap=5))
    kappa = aggregate.as_reliability(aggregate.pairwise_kappa(a)).reliability
    found = aggregate.sle(a, reliability=kappa, base_rate=Learner(a).base_rate).probability[7:]
    assert row["jsd"] == pytest.approx(metrics.jsd(soft[7:], found, root=True).mean())
    assert row["nes"] == pytest.approx(metrics.entropy_similarity(soft[7:], found))
    assert "JSD" in str(compare(a, gold=soft, **how))


def test_intervals_are_those_of_the_mean_over_items():
    a, _ = skilled(np.random.default_rng(1), N=400)
    (row,) = rows_of(compare(a, methods=["SLE, one count each"], bootstrap=2000))
    # The standard error of a ratio of sums over items, written another way.
    rate = Learner(a).base_rate
    each = metrics.held_out_log_loss(a.item, a.y, 1 / 3, n_labels=2, base_rate=rate, each=True)
    error = np.std(each.reshape(400, 12).mean(axis=1)) / math.sqrt(400)
    assert row["votes_high"] - row["votes_low"] == pytest.approx(2 * 1.96 * error, rel=0.12)


# Who is best


def test_the_best_is_marked_where_the_intervals_say_so_and_only_there():
    a, truth = skilled(np.random.default_rng(0))
    found = compare(
        a, gold=truth, methods=["soft votes", "SLE, kappa", "Dawid-Skene", "learned crowd"]
    )
    by_name = {row["method"]: row for row in rows_of(found)}
    assert by_name["soft votes"]["behind_low"] > 0
    assert found.rows[0]["behind"] == 0
    rows = rows_of(found)
    for row in rows:
        assert row["votes_low"] <= row["votes"] <= row["votes_high"]
        # Half as wide again, each interval is above 0.
        ends = [r["behind"] - 1.5 * (r["behind"] - r["behind_low"]) for r in rows[1:]]
        assert row["best"] == (row is rows[0] and min(ends) > 0)
    # Without resamples nobody can be told apart.
    alike = compare(a, methods=["SLE, agreement", "SLE, Dawid-Skene"], bootstrap=0)
    assert not any(row["best"] or row["best_own"] for row in alike.rows)
    assert by_name["learned crowd"]["accuracy"] > 0.99


def test_a_star_for_truth_needs_somebody_to_be_better_than():
    a, truth = skilled(np.random.default_rng(0))
    alone = compare(a, gold=truth, methods=["learned crowd"], folds=2, bootstrap=50)
    assert not rows_of(alone)[0]["best_truth"]
    wrong = compare(a, gold=truth, methods=["soft votes", "learned crowd"], folds=2, bootstrap=200)
    starred = [row["method"] for row in rows_of(wrong) if row["best_truth"]]
    assert starred == ["learned crowd"]
    assert "Best at predicting what is true: learned crowd (*)." in str(wrong)


@pytest.mark.parametrize(("lost", "best"), [(0, True), (24, True), (26, False), (400, False)])
def test_the_star_is_for_those_who_are_ahead_in_97_5_of_100_resamples(lost, best):
    drawn = np.tile([1.0, 0.0, 2.0], (1000, 1))
    drawn[:lost, 1] = 1.5  # behind the first of the others, ahead of the second
    found = Resampled(np.asarray([1.0, 0.0, 2.0]), drawn)
    assert found.best(1) is best
    assert not found.best(0)


@pytest.mark.parametrize(("low", "apart"), [(0.34, True), (0.33, False), (0.0, False)])
def test_a_lead_by_held_out_votes_is_for_sure_if_its_interval_half_as_wide_again_is(low, apart):
    drawn = np.tile([1.0, 2.0], (1000, 1))
    drawn[:100, 1] = 1 + low
    votes = Resampled(np.asarray([1.0, 2.0]), drawn, OTHER_FOLDS)
    assert votes.best(0) is told_apart(1.0, low) is apart


def test_where_all_annotators_are_alike_hardly_a_method_has_a_star_whatever_the_folds():
    stars = narrow = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        item, annotator = np.divmod(np.arange(90), 3)
        a = make(item, annotator, (rng.random(90) < rng.beta(1, 1, 30)[item]).astype(int))
        found = compare(a, methods=["SLE, kappa", "SLE, G-index"], bootstrap=300, seed=seed)
        first, second = rows_of(found)
        stars += first["best"]
        narrow += (second["behind_low"] or 0) > 0
        assert first["best"] == ("every interval says so" in str(found))
        assert first["best"] != ("Not told apart from" in str(found))
    # Intervals of items alone would have called one best more often than that.
    assert stars <= 1 < 3 < narrow


def test_a_lead_that_other_items_may_turn_earns_no_star():
    a, _ = skilled(np.random.default_rng(3), N=12)
    first, second = rows_of(compare(a, methods=["SLE, kappa", "SLE, agreement"]))
    assert second["behind_low"] < 0 < second["behind"]
    assert not first["best"]


def test_identical_methods_are_not_told_apart():
    # Where everybody agrees, every reliability is one.
    item, annotator = np.divmod(np.arange(60), 3)
    a = make(item, annotator, item % 2)
    found = compare(a, methods=["SLE, agreement", "SLE, full trust"], bootstrap=50)
    assert not found.rows[0]["best"]
    assert "Not told apart from" in str(found)
    alone = compare(a, methods=["SLE, agreement"], bootstrap=50)
    assert not alone.rows[0]["best"]
    assert "nothing else was compared" in str(alone)
