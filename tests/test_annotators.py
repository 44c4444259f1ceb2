"""Annotators one by one: what is estimated of them, which labels they confuse, what is refused."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from crowds import by_chance, read
from hypothesis import given
from hypothesis import strategies as st
from real_crowds import real
from rosters import QUICK, by_name, column, compared, skilled
from strategies import seeds

from slencodings.aggregate import dawid_skene, mace, pairwise_kappa, share_of_agreement
from slencodings.annotators import describe_annotators, judge
from slencodings.annotators.estimates import ESTIMATES
from slencodings.tables.arrays import from_table
from slencodings.trust import learn_crowd

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


def test_people_are_printed_by_different_names_on_one_line_each():
    # Mail addresses begin and end alike, and labels may have several lines.
    who = [f"user{m}@example.org" for m in range(12)]
    said = {
        "item": [item for item in range(30) for _ in who],
        "who": who * 30,
        "said": [
            ("a\nb", "a\nc")[(item + (m == item % 12)) % 2] for item in range(30) for m in range(12)
        ],
    }
    lines = str(describe_annotators(from_table(said, item="item", annotator="who", label="said")))
    first = [line.split()[0] for line in lines.splitlines()[2:14]]
    assert sorted(first) == sorted(who)
    assert r"said 'a\nb' where peers say 'a\nc'" in lines


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


# Errors


def test_annotators_without_ids_are_refused():
    c = from_table({"item": [1, 1], "label": [0, 1]}, item="item", label="label")
    with pytest.raises(
        ValueError, match=r"2 annotations came without\. Name their column: annotator='COLUMN'"
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


# Real crowds


def test_the_spammers_of_rte_come_first():
    crowd = real("rte")
    c = crowd.annotations
    names = ["dawid_skene", *QUICK]
    roster = describe_annotators(c, estimates=names, groups=3)
    right = np.asarray(crowd.gold)[c.item] == c.y if crowd.gold is not None else None
    assert right is not None
    n = np.bincount(c.annotator)
    accuracy = dict(zip(c.annotators.tolist(), np.bincount(c.annotator, right) / n, strict=True))
    busy = [row for row in roster.to_rows() if row["annotations"] >= 100]
    best, worst = (np.mean([accuracy[r["annotator"]] for r in x]) for x in (busy[-5:], busy[:5]))
    assert best > 0.8
    assert worst < 0.65
    held = [r["dawid_skene_low"] <= accuracy[r["annotator"]] <= r["dawid_skene_high"] for r in busy]
    assert np.mean(held) > 0.5
