"""The confidence that annotators state, beside what it earned."""

from dataclasses import replace

import numpy as np
import pytest
from crowds import read
from rosters import QUICK, by_name, skilled

from slencodings.annotators import describe_annotators
from slencodings.confidence import calibrate
from slencodings.trust import learn_crowd


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


def test_stated_confidence_is_checked():
    c = read([1, 1, 2, 2], "abab", [0, 0, 1, 0])
    with pytest.raises(ValueError, match=r"one confidence for each of the 4 annotations"):
        describe_annotators(replace(c, stated=[0.5]))
    with pytest.raises(ValueError, match=r"stated confidence must be finite numbers; 1 of 4"):
        describe_annotators(replace(c, stated=[0.5, np.nan, 1, 1]))
