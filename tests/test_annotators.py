import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from crowds import by_chance
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from strategies import assert_same_row, one_in, seeds

from slencodings.aggregate import (
    as_reliability,
    dawid_skene,
    mace,
    pairwise_kappa,
    share_of_agreement,
)
from slencodings.annotations import Annotations
from slencodings.annotators import describe_annotators, judge
from slencodings.annotators.estimates import ESTIMATES
from slencodings.annotators.intervals import (
    agreement_sample_size,
    effective_sample_size,
    groups_of_items,
    interval,
)
from slencodings.confidence import calibrate
from slencodings.datasets.rte import rte
from slencodings.tables.arrays import from_table
from slencodings.trust import count_each, learn_crowd

QUICK = ["agreement", "kappa"]


def compared(c, **options):
    """What peers tell of each other, of which nothing hangs on a crowd that is learned."""
    return describe_annotators(c, crowd=count_each(c), **options)


def skilled(rng, accuracy, *, N=60, per_item=4):
    """Annotators who tell two equally common labels apart, each as often as their accuracy says."""
    M = len(accuracy)
    truth = rng.integers(0, 2, N)
    who = np.argsort(rng.random((N, M)), axis=1)[:, :per_item].ravel()
    item = np.repeat(np.arange(N), per_item)
    right = rng.random(len(item)) < accuracy[who]
    y = np.where(right, truth[item], 1 - truth[item])
    names = np.arange(N), np.arange(M), np.arange(2)
    return Annotations(item, who, y, np.zeros(len(item)), *names)


def read(item, who, label, **options):
    table = {"item": list(item), "who": list(who), "label": list(label)}
    return from_table(table, item="item", annotator="who", label="label", **options)


def by_name(roster):
    return {row["annotator"]: row for row in roster.to_rows()}


def column(roster, name):
    """Values by annotator, in the order of names, NaN for None."""
    rows = by_name(roster)
    return np.asarray([np.nan if rows[m][name] is None else rows[m][name] for m in sorted(rows)])


# The estimates are those of the methods


def test_estimates_are_what_the_methods_say():
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 6), N=30)
    roster = describe_annotators(c, estimates=ESTIMATES, groups=0)
    start = np.random.default_rng(0)
    expected = {
        "agreement": share_of_agreement(c),
        "kappa": pairwise_kappa(c),
        "dawid_skene": dawid_skene(c).reliability,
        "mace": mace(c, n_iter=500, rng=start).reliability,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(column(roster, name), values, rtol=0, atol=1e-12)
        if name != "agreement":
            assert set(roster.columns[f"{name}_low"] + roster.columns[f"{name}_high"]) == {None}
    assert all(note.startswith("Kappa is negative") for note in roster.notes)


def test_verdicts_and_how_often_they_are_right_are_what_the_learned_crowd_says():
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 6), N=60)
    crowd = learn_crowd(c)
    low, high = crowd.above_chance_interval()
    expected = {
        "above_chance": crowd.above_chance,
        "above_chance_low": low,
        "above_chance_high": high,
        "accuracy": crowd.accuracy,
        "chance": crowd.people.chance,
        "worth_for_votes": crowd.worth,
    }
    for roster in (describe_annotators(c), describe_annotators(c, crowd=crowd)):
        for name, values in expected.items():
            np.testing.assert_array_equal(column(roster, name), values)
        for m, judged in enumerate(judge(c, crowd)):
            row = by_name(roster)[m]
            assert (row["verdict"], row["reason"]) == judged


def test_the_default_needs_no_refits(monkeypatch):
    def refit(*args, **kwargs):
        raise AssertionError("a refit")

    for name in ("dawid_skene", "mace", "pairwise_kappa"):
        monkeypatch.setattr(f"slencodings.annotators.estimates.{name}", refit)
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 6), N=60)
    told = []
    roster = describe_annotators(c, progress=lambda done, total: told.append(done / total))
    assert None not in roster.columns["above_chance_low"] + roster.columns["agreement_low"]
    assert told == sorted(told)
    assert told[-1] == 1
    with pytest.raises(AssertionError, match="a refit"):
        describe_annotators(c, estimates=["kappa"])


def test_those_whose_votes_are_scored_decide_what_is_worth_something():
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 6), N=60)
    some = column(describe_annotators(c, scored=[4, 5]), "worth_for_votes")
    np.testing.assert_array_equal(some, learn_crowd(c, scored=[4, 5]).worth)
    assert not np.array_equal(some, column(describe_annotators(c), "worth_for_votes"))


@given(seeds, st.booleans())
def test_annotations_and_shared_items_are_counted(rng, soft):
    c = by_chance(rng, soft=soft, R=15)
    roster = compared(c, estimates=QUICK, groups=0)
    pairs = set(zip(c.item.tolist(), c.annotator.tolist(), strict=True))
    for m in range(5):
        shared = {
            i for i, j in pairs if j == m and any((i, k) in pairs for k in range(5) if k != m)
        }
        row = by_name(roster)[m]
        assert row["annotations"] == np.sum(c.annotator == m)
        assert row["shared_items"] == len(shared)


def test_a_given_reliability_is_shown_as_the_mean_of_each_annotator():
    c = read([1, 1, 2, 2], "abab", [0, 0, 1, 0])
    named = describe_annotators(c, reliability={"a": 0.25, "b": 1}, estimates=QUICK, groups=0)
    assert [by_name(named)[m]["given"] for m in "ab"] == [0.25, 1]
    each = describe_annotators(c, reliability=[0.5, 1, 1, 0], estimates=QUICK, sort="given")
    assert each.columns["given"] == [0.75, 0.5]
    assert "given" not in describe_annotators(c, estimates=QUICK, groups=0).columns
    assert "given" in str(named)


# Confusion


def most_confused(c, m):
    """All pairs of labels, in fractions: how often m says l where a random peer says k."""
    K = len(c.labels)
    said = {}
    for i, j, y in zip(c.item.tolist(), c.annotator.tolist(), c.vectors, strict=True):
        said.setdefault((i, j), []).append([Fraction(float(x)) for x in y])
    mean = {
        key: [sum(x, Fraction(0)) / len(ys) for x in zip(*ys, strict=True)]
        for key, ys in said.items()
    }
    times, total = dict.fromkeys(product(range(K), repeat=2), Fraction(0)), [Fraction(0)] * K
    for (i, j), y in mean.items():
        peers = [z for (i2, j2), z in mean.items() if i2 == i and j2 != j]
        if j != m or not peers:
            continue
        for mine, other in times:
            times[mine, other] += y[mine] * sum((z[other] for z in peers), Fraction(0)) / len(peers)
        total = [a + b for a, b in zip(total, y, strict=True)]
    differ = {pair: x for pair, x in times.items() if pair[0] != pair[1] and x > 0}
    return differ, total


@given(seeds, st.booleans())
def test_the_most_confused_labels_are_the_commonest_disagreement(rng, soft):
    c = by_chance(rng, soft=soft)
    rows = by_name(compared(c, estimates=QUICK, groups=0))
    for m in range(5):
        differ, total = most_confused(c, m)
        row = rows[m]
        if not differ:
            assert row["said"] is row["peers_say"] is row["confused"] is None
            continue
        times = float(differ[row["said"], row["peers_say"]])
        assert times == pytest.approx(float(max(differ.values())), abs=1e-8)
        assert row["confused"] == pytest.approx(times, abs=1e-8)
        assert row["confused_share"] == pytest.approx(times / float(total[row["said"]]), abs=1e-8)


def test_a_reader_sees_what_is_confused():
    item = [i for i in range(10) for _ in range(3)]
    label = ["no", "no", "no"] * 5 + ["no", "no", "yes"] * 4 + ["yes"] * 3
    c = read(item, ["ann", "bob", "eve"] * 10, label)
    eve = by_name(describe_annotators(c, estimates=QUICK, groups=0))["eve"]
    assert (eve["said"], eve["peers_say"]) == ("yes", "no")
    assert (eve["confused"], eve["confused_share"]) == (4, 0.8)
    text = str(describe_annotators(c, estimates=QUICK, groups=0))
    assert "said yes where peers say no: 80 % (4 of 5)" in text


@given(seeds)
def test_new_names_of_labels_name_the_confused_ones_anew(rng):
    c = by_chance(rng, soft=True)  # soft, so that no two disagreements are equally common
    new = rng.permutation(3)
    y = np.empty_like(c.y)
    y[:, new] = c.y
    one, two = (
        by_name(compared(x, estimates=["agreement"], groups=0)) for x in (c, replace(c, y=y))
    )
    for m in range(5):
        assert one[m]["confused"] == pytest.approx(two[m]["confused"], abs=1e-8)
        for name in ("said", "peers_say"):
            assert two[m][name] == (None if one[m][name] is None else new[one[m][name]])


# Confidence


def test_stated_confidence_is_set_against_what_it_earned():
    rng = np.random.default_rng(3)
    c = skilled(rng, np.asarray([0.6, 0.9, 0.9, 0.9]), N=200)
    boast = np.where(c.annotator == 0, 0.95, 0.6)
    rows = by_name(describe_annotators(replace(c, stated=boast), estimates=["agreement"], groups=0))
    assert rows[0]["stated"] == pytest.approx(0.95)
    assert rows[0]["overconfidence"] > 0.5
    assert abs(rows[1]["overconfidence"]) < 0.25
    for m in range(4):
        # An annotator's own level: what `calibrate` says of stating it, without its shrinking.
        own = calibrate(replace(c, stated=(c.annotator == m).astype(float)), prior_strength=0)
        p, f = own.agreement[1], np.bincount(c.y) / len(c.y)
        earned = (p - np.sum(f**2)) / (1 - np.sum(f**2))
        assert rows[m]["earned"] == pytest.approx(np.clip(earned, 0, 1), abs=1e-9)
        assert rows[m]["overconfidence"] == pytest.approx(rows[m]["stated"] - rows[m]["earned"])


def test_only_shared_items_count_for_stated_confidence():
    c = replace(read([1, 1, 2, 3], "abac", [0, 0, 1, 1]), stated=[0.5, 1, 0, 1])
    rows = by_name(describe_annotators(c, estimates=QUICK, groups=0))
    assert [rows[m]["stated"] for m in "abc"] == [0.5, 1, None]
    assert rows["c"]["earned"] is None


def test_doubt_is_confidence_unless_everybody_has_the_same():
    c = read([1, 1, 2, 2], "abab", [0, 0, 1, 0])
    silent = describe_annotators(c, estimates=QUICK, groups=0)
    for name in ("stated", "earned", "overconfidence"):
        assert silent.columns[name] == [None, None]
    assert "earned" not in str(silent)
    unsure = replace(c, uncertainty=np.asarray([0.5, 0, 0.25, 0]))
    doubted = describe_annotators(unsure, estimates=QUICK, groups=0)
    assert by_name(doubted)["a"]["stated"] == 0.625
    assert "earned" in str(doubted)
    # All stated the same, but they did state it.
    same = describe_annotators(replace(c, stated=[0.9] * 4), estimates=QUICK, groups=0)
    assert same.columns["stated"] == [0.9] * 2


def test_a_scale_of_its_own_is_not_subtracted():
    c = replace(read([1, 1, 2, 2], "abab", [0, 0, 1, 0]), stated=[1, 5, 2, 5])
    roster = describe_annotators(c, estimates=QUICK, groups=0)
    assert roster.columns["overconfidence"] == [None, None]
    assert by_name(roster)["a"]["stated"] == 1.5
    assert by_name(roster)["a"]["earned"] is not None
    assert any(r"not on [0, 1]" in note for note in roster.notes)
    # Where the ends of the scale are known, it is.
    scaled = replace(c, uncertainty=np.asarray([1, 0, 0.75, 0]))
    roster = describe_annotators(scaled, estimates=QUICK, groups=0)
    assert [by_name(roster)[m]["stated"] for m in "ab"] == [0.125, 1]
    assert roster.columns["overconfidence"] != [None, None]
    assert not any(r"not on [0, 1]" in note for note in roster.notes)


def test_levels_tell_how_often_people_are_right_who_state_them():
    rng = np.random.default_rng(0)
    c = skilled(rng, np.full(5, 0.75), N=200, per_item=5)
    crowd = learn_crowd(c)
    likely = crowd.truth(c).probability[c.item, c.y] > 0.5
    c = replace(c, stated=np.where(likely ^ (rng.random(1000) < 0.2), 5.0, 2.0))
    roster = describe_annotators(c)
    learned = learn_crowd(c)
    low, high = roster.levels
    assert (low.level, high.level) == (2, 5)
    assert low.annotations + high.annotations == 1000
    assert low.accuracy is not None
    assert high.accuracy is not None
    right = learned.truth(c).probability[c.item, c.y]
    assert high.accuracy == pytest.approx(right[c.stated == 5].mean())
    assert low.accuracy < (high.accuracy_low or 0) < high.accuracy < (high.accuracy_high or 0)
    assert [low.worth_share, high.worth_share] == learned.share.tolist()
    assert "Whether confidence is earned" in str(roster)
    assert describe_annotators(replace(c, stated=None)).levels == []


# Intervals


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


# What must not be hidden


def test_who_shares_no_item_is_there_and_told():
    rng = np.random.default_rng(0)
    c = skilled(rng, np.asarray([0.9, 0.9, 0.9]), N=30, per_item=3)
    lone = replace(
        c,
        item=np.append(c.item, 30),
        annotator=np.append(c.annotator, 3),
        y=np.append(c.y, 1),
        uncertainty=np.append(c.uncertainty, 0),
        items=np.arange(31),
        annotators=np.arange(4),
    )
    roster = describe_annotators(lone, estimates=ESTIMATES, groups=2)
    row = by_name(roster)[3]
    assert (row["annotations"], row["shared_items"]) == (1, 0)
    for name in (*ESTIMATES, "above_chance", "accuracy", "worth_for_votes", "said"):
        assert row[name] is None
    assert (row["verdict"], row["reason"]) == ("too few to tell", "shares no items with others")
    assert roster.notes[0].startswith("No item is shared with anybody by 1 of 4 annotators (3)")


@pytest.mark.parametrize("who", [["a", "a", "a"], ["a", "b", "c"]])
def test_when_nobody_can_be_compared_nothing_is_said(who):
    roster = describe_annotators(read([1, 2, 3], who, [0, 1, 0]), estimates=ESTIMATES)
    assert len(roster.to_rows()) == len(set(who))
    assert set(roster.columns["verdict"]) == {"too few to tell"}
    for name in ("above_chance", *ESTIMATES, "mace_low", "said"):
        assert set(roster.columns[name]) == {None}
    assert roster.notes == ["No item was judged by two annotators, so nobody can be compared."]
    assert str(roster).endswith(roster.notes[0])


def test_a_negative_kappa_is_shown_told_and_mapped():
    item = [i for i in range(8) for _ in range(3)]
    label = [x for i in range(8) for x in (i % 2, i % 2, 1 - i % 2)]
    c = read(item, ["ann", "bob", "eve"] * 8, label)
    roster = describe_annotators(c, estimates=["kappa"], sort="kappa", groups=0)
    eve = by_name(roster)["eve"]
    assert eve["kappa"] == -1
    assert roster.columns["annotator"][-1] == "eve"
    (note,) = roster.notes
    assert "Kappa is negative" in note
    assert "1 of 3 annotators (eve)" in note
    assert "as reliability it is 0" in note
    assert as_reliability([eve["kappa"]]).reliability == 0


@pytest.mark.parametrize("K", [1, 2])
def test_one_label_tells_nobody_apart(K):
    names = np.arange(3), np.arange(2), np.asarray(["yes", "no"][:K], dtype=object)
    item, who = np.repeat(np.arange(3), 2), np.tile([0, 1], 3)
    c = Annotations(item, who, np.zeros(6, dtype=int), np.zeros(6), *names)
    roster = describe_annotators(c, estimates=ESTIMATES)
    assert roster.columns["agreement"] == roster.columns["kappa"] == [1, 1]
    assert roster.columns["said"] == [None, None]
    assert any("Only one label was given" in note and "yes" in note for note in roster.notes)
    assert sum(line.endswith("  -") for line in str(roster).splitlines()) == 2


def test_what_did_not_converge_is_told(monkeypatch):
    monkeypatch.setattr("slencodings.annotators.estimates._MACE_STEPS", 1)
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 4), N=20)
    roster = describe_annotators(c, estimates=["mace"], groups=0)
    assert roster.notes == ["`mace` did not converge: take it for a rough guide."]


def test_a_degenerate_fit_of_mace_is_named_as_such(monkeypatch):
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 4), N=20)

    def degenerate(*args, **kwargs):
        found = mace(*args, **kwargs)
        return found._replace(reliability=np.full(4, 0.004))

    fine = describe_annotators(c, estimates=["mace"], groups=0)
    assert not any("degenerate" in note for note in fine.notes)
    monkeypatch.setattr("slencodings.annotators.estimates.mace", degenerate)
    roster = describe_annotators(c, estimates=["mace"], groups=0)
    assert any("`mace` takes everybody for guessing, .00 for all" in x for x in roster.notes)


def test_too_many_pairs_cost_kappa_only():
    M = 2300  # with two items of all annotators, above five million pairs
    item, who = np.repeat([0, 1, 2, 3], M), np.tile(np.arange(M), 4)
    y = (who + item) % 2
    names = np.arange(4), np.arange(M), np.arange(2)
    c = Annotations(item, who, y, np.zeros(4 * M), *names)
    roster = describe_annotators(c, estimates=QUICK, groups=0)
    assert set(roster.columns["kappa"]) == {None}
    assert None not in roster.columns["agreement"]
    assert any(note.startswith("There is no kappa: comparing annotators") for note in roster.notes)


def test_who_is_never_sure_says_nothing_to_dawid_skene():
    c = skilled(np.random.default_rng(0), np.full(3, 0.9), N=20, per_item=3)
    c = replace(c, uncertainty=np.where(c.annotator == 1, 1.0, 0.0))
    rows = by_name(describe_annotators(c, estimates=["dawid_skene", "agreement"], groups=3))
    assert rows[1]["dawid_skene"] is rows[1]["dawid_skene_low"] is None
    assert rows[0]["dawid_skene_low"] is not None
    assert rows[1]["agreement"] > 0.5


# Order, names and printing


def test_the_worst_come_first_or_most_of_a_column_and_the_unknown_last():
    c = read([1, 1, 2, 2, 3, 3, 4], "abacbcd", [0, 0, 0, 1, 0, 1, 0])
    roster = describe_annotators(c, estimates=QUICK, sort="agreement", groups=0)
    assert roster.columns["annotator"] == ["a", "b", "c", "d"]
    assert roster.columns["agreement"] == [0.5, 0.5, 0, None]
    by = describe_annotators(c, estimates=QUICK, groups=0, sort="annotations")
    assert by.columns["annotations"] == [2, 2, 2, 1]
    named = describe_annotators(c, estimates=QUICK, groups=0, sort="annotator")
    assert named.columns["annotator"] == ["a", "b", "c", "d"]
    c = skilled(np.random.default_rng(0), np.asarray([0.95, 0.5, 0.9, 0.1, 0.92]), N=200)
    worst = describe_annotators(c)
    assert worst.columns["annotator"][:2] == [3, 1]
    assert worst.columns["verdict"] == ["against the crowd", "at chance", *["fine"] * 3]
    above = worst.columns["above_chance"][2:]
    assert above == sorted(above)


@one_in(10)
@given(seeds, st.booleans())
def test_the_order_of_rows_does_not_matter(rng, soft):
    a = replace(by_chance(rng, soft=soft), stated=rng.integers(0, 3, 25) / 2)
    names = ["agreement", "kappa", "dawid_skene"]
    one, two = (
        describe_annotators(x, estimates=names, sort="annotator", groups=3)
        for x in (a, a.rows(rng.permutation(25)))
    )
    for row, other in zip(one.to_rows(), two.to_rows(), strict=True):
        assert_same_row(row, other, tol=1e-9)
    assert one.notes == two.notes


def test_ids_may_be_of_any_type():
    c = skilled(np.random.default_rng(0), np.linspace(0.5, 1, 4), N=20)
    options = {"estimates": ["mace", "kappa"], "groups": 2, "sort": "annotator"}
    plain = describe_annotators(c, **options).to_rows()
    for names in (
        np.asarray(["a", "b", "c", "d"], dtype=object),
        np.asarray([0.5, 1.5, 2.5, 3.5]),
        np.asarray([(0, 1), (0, 2), (0, 3), None], dtype=object),
        np.asarray(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"], dtype="M8[D]"),
    ):
        rows = describe_annotators(replace(c, annotators=names), **options).to_rows()
        assert json.loads(json.dumps(rows, allow_nan=False)) == rows
        for row, other in zip(rows, plain, strict=True):
            assert_same_row(row, other, but=["annotator"], tol=1e-9)


def test_everything_can_be_written_as_json():
    c = replace(by_chance(np.random.default_rng(0), soft=True), stated=np.linspace(0, 1, 25))
    rows = describe_annotators(c, reliability=0.5, estimates=ESTIMATES, groups=2).to_rows()
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert all(isinstance(x, str | int | float | None) for row in rows for x in row.values())


def test_a_page_fits_a_terminal_and_shows_both_ends_of_many():
    rng = np.random.default_rng(0)
    c = skilled(rng, np.linspace(0.4, 1, 40), N=300)
    names = np.asarray([f"a-rather-long-name-of-annotator-{m:02}" for m in range(40)], dtype=object)
    c = replace(c, annotators=names, labels=np.asarray(["contradiction", "entailment"], object))
    c = replace(c, stated=rng.random(1200))
    roster = describe_annotators(c, reliability=0.5, estimates=["dawid_skene", *QUICK], groups=3)
    text = str(roster)
    table = text.partition("\n* ")[0].splitlines()
    assert max(map(len, table)) <= 120
    assert sum("20 more" in line for line in table) == 3
    for at in (0, 9, 30, 39):
        assert roster.columns["annotator"][at][-9:] in text
    assert all(line == line.rstrip() for line in table)
    assert roster.columns["annotator"][15][-9:] not in text


def test_the_widest_page_has_120_columns():
    widest = {name: [-0.25] for name in ("above_chance", *ESTIMATES)}
    c = read([1, 1, 2, 2], "abab", [0, 0, 1, 0])
    roster = describe_annotators(c, reliability=1, estimates=ESTIMATES, groups=0)
    columns = {k: v[:1] for k, v in roster.columns.items()}
    columns |= {"verdict": ["against the crowd"], "reason": ["hardly better than guessing"]}
    columns |= {"annotator": ["x" * 40], "annotations": [100_000], "shared_items": [100_000]}
    for name, value in widest.items():
        ends = [-1.0], [1.0]
        columns |= {name: value} | dict(zip((f"{name}_low", f"{name}_high"), ends, strict=True))
    columns["kappa_low"] = [-1.0]
    for name in widest.keys() - {"kappa"}:
        columns |= {name: [1.0], f"{name}_low": [0.5]}
    text = str(replace(roster, columns=columns, notes=[]))
    assert max(map(len, text.splitlines())) <= 120
    assert "-.25 (-1.0 1.0)" in text


# Errors


def test_annotators_without_ids_are_refused():
    c = from_table({"item": [1, 1], "label": [0, 1]}, item="item", label="label")
    with pytest.raises(
        ValueError, match=r"2 annotations came without\. Name their column: annotator='worker'"
    ):
        describe_annotators(c)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"estimates": ["skill"]}, r"some of agreement, kappa.*\['skill'\] came"),
        ({"estimates": "kappa"}, r"in a list; 'kappa' came"),
        ({"sort": "skill"}, r"`sort` must be one of verdict, .*confused_share, ag.*; 'skill' came"),
        ({"sort": "mace", "estimates": ["kappa"]}, r"'mace' came\. Leave it out for the worst"),
        ({"sort": "given"}, r"`sort` must be one of .*'given' came"),
        ({"groups": 1}, r"at least 2 are needed; 1 came"),
        ({"groups": -2}, r"at least 2 are needed; -2 came"),
        ({"reliability": 2}, r"`reliability` must lie in \[0, 1\]"),
    ],
)
def test_questions_that_make_no_sense_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        describe_annotators(read([1, 1, 2, 2], "abab", [0, 0, 1, 0]), **options)


def test_stated_confidence_is_checked():
    c = read([1, 1, 2, 2], "abab", [0, 0, 1, 0])
    with pytest.raises(ValueError, match=r"one confidence for each of the 4 annotations"):
        describe_annotators(replace(c, stated=[0.5]))
    with pytest.raises(ValueError, match=r"stated confidence must be finite numbers; 1 of 4"):
        describe_annotators(replace(c, stated=[0.5, np.nan, 1, 1]))


# Real crowds


def test_the_spammers_of_rte_come_first():
    try:
        real = rte()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    c = real.annotations
    names = ["dawid_skene", *QUICK]
    roster = describe_annotators(c, estimates=names, groups=3)
    right = np.asarray(real.gold)[c.item] == c.y if real.gold is not None else None
    assert right is not None
    n = np.bincount(c.annotator)
    accuracy = dict(zip(c.annotators.tolist(), np.bincount(c.annotator, right) / n, strict=True))
    busy = [row for row in roster.to_rows() if row["annotations"] >= 100]
    best, worst = (np.mean([accuracy[r["annotator"]] for r in x]) for x in (busy[-5:], busy[:5]))
    assert best > 0.8
    assert worst < 0.65
    held = [r["dawid_skene_low"] <= accuracy[r["annotator"]] <= r["dawid_skene_high"] for r in busy]
    assert np.mean(held) > 0.5
