"""Of large crowds a part is compared on, and with too many labels some methods are left out."""

import re
from dataclasses import replace

import numpy as np
import pytest
from comparing import large_crowd
from crowds import make
from strategies import present

from slencodings.evaluation import compare, methods
from slencodings.evaluation.measure import as_truth
from slencodings.evaluation.part import all_of, drawn


def test_of_many_annotations_about_so_many_are_compared_on():
    a = large_crowd(np.random.default_rng(0))
    found = compare(a, methods=["soft votes", "MACE"], max_annotations=900, bootstrap=10)
    assert any("Raise `max_annotations` to compare on more" in note for note in found.notes)
    assert any(
        re.search(r"compared on [23]\d\d items of 2,000, drawn by lot: of 6,000", note)
        for note in found.notes
    )
    assert 700 < found.about.scored < 1100
    every = compare(a, methods=["soft votes", "MACE"], bootstrap=10)
    assert every.about.scored == 6000
    assert not any("drawn by lot" in note for note in every.notes)
    votes = {row["method"]: row["votes"] for row in every.rows}
    for row in found.rows:
        assert row["votes"] == pytest.approx(votes[row["method"]], abs=0.05)


def test_items_that_only_teach_or_have_a_known_truth_are_not_scored_for_votes():
    a = large_crowd(np.random.default_rng(1), rare=40)
    gold = np.full(len(a.items), -1)
    gold[1900:] = np.argmax(a.sums()[1900:], axis=1)
    everything = all_of(a, as_truth(a, gold), None)
    part, _ = drawn(everything, 600, np.random.default_rng(2))
    b = part.annotations
    assert np.all(np.bincount(b.annotator, minlength=50)[10:] == 1)  # Who is rare is there.
    known = ~np.isnan(present(part.truth)).any(axis=1)
    assert known.sum() == 100  # All gold items, of so few.
    assert part.scored.sum() < 300
    assert (known & ~part.scored).any()
    assert set(b.items[known].tolist()) == set(range(1900, 2000))


def test_of_many_gold_items_about_so_many_are_asked_for_their_truth():
    a = large_crowd(np.random.default_rng(1))
    everything = all_of(a, as_truth(a, np.argmax(a.sums(), axis=1)), None)
    part, _ = drawn(everything, 600, np.random.default_rng(2))
    known = ~np.isnan(present(part.truth)).any(axis=1)
    assert 150 < known.sum() < 250
    np.testing.assert_array_equal(known, part.scored)


@pytest.mark.parametrize("seed", range(10))
def test_gold_items_with_no_more_annotations_than_asked_for_are_all_there(seed):
    a = make([0, 1, 1, 2, 2], [0, 0, 1, 0, 1], [0, 1, 1, 0, 1], K=2)
    everything = all_of(a, as_truth(a, np.asarray([0, -1, -1])), None)
    part, _ = drawn(everything, 1, np.random.default_rng(seed))
    known = ~np.isnan(present(part.truth)).any(axis=1)
    assert part.annotations.items[known].tolist() == [0]


def test_questions_about_one_item_are_drawn_together():
    a = large_crowd(np.random.default_rng(1))
    sets = np.repeat(np.arange(500), 4)
    part, _ = drawn(all_of(a, None, sets), 600, np.random.default_rng(2))
    scored = np.unique(present(part.sets)[part.scored], return_counts=True)[1]
    assert 30 < len(scored) < 75
    assert np.all(scored == 4)


def test_of_too_many_labels_methods_that_hold_confusions_are_left_out():
    a = large_crowd(np.random.default_rng(3))
    many = replace(a, labels=np.arange(101))
    out, known = methods.left_out(many), list(methods.methods_for(many))
    assert {"Dawid-Skene", "EBCC", "SLE, Dawid-Skene"} <= set(out)
    assert sorted(out + known) == sorted(methods.methods_for(a))
    few = many.of_items(np.arange(60))
    found = compare(few, folds=2, bootstrap=10)
    assert any(
        re.search(r"left out are Dawid-Skene, .* each of 10 annotators .* 101 labels", note)
        for note in found.notes
    )
    with pytest.raises(ValueError, match=r"'EBCC' came\. .* some at most 100 labels"):
        compare(few, methods=["EBCC"])


def test_at_least_one_annotation_is_compared_on():
    with pytest.raises(ValueError, match=r"`max_annotations` must be a whole number of at least 1"):
        compare(large_crowd(np.random.default_rng(0)), max_annotations=0)
