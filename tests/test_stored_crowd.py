"""A learned crowd as JSON: all of it comes back, and what is not one is refused in words."""

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from crowds import make
from numpy.testing import assert_array_equal

from slencodings.annotations import Annotations
from slencodings.trust import Crowd, count_each, crowd_from_json, crowd_to_json, learn_crowd


def annotations(labels: list[Any], names: list[Any]) -> Annotations:
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(30), 3)
    who, y = np.tile([0, 1, 2], 30), rng.integers(0, 2, 90)
    a = make(item, who, y, N=30, M=3, K=2)
    stated = rng.choice([1.0, 2.0], 90)
    annotators, kinds = np.empty(3, dtype=object), np.empty(2, dtype=object)
    annotators[:], kinds[:] = names, labels
    return replace(a, annotators=annotators, labels=kinds, stated=stated)


@pytest.fixture(scope="module")
def learned() -> Crowd:
    return learn_crowd(annotations(["no", "yes"], ["ann", "bob", "cyd"]))


def assert_same(x: Any, y: Any) -> None:
    if isinstance(x, np.ndarray):
        assert_array_equal(x, y)
        assert x.dtype.kind == y.dtype.kind
    elif hasattr(x, "_fields"):
        for one, other in zip(x, y, strict=True):
            assert_same(one, other)
    else:
        assert x == y


def test_all_of_it_comes_back_and_answers_the_same(learned: Crowd) -> None:
    again = crowd_from_json(crowd_to_json(learned))
    for field in fields(Crowd):
        assert_same(getattr(learned, field.name), getattr(again, field.name))
    a = annotations(["no", "yes"], ["ann", "bob", "cyd"])
    assert_array_equal(again.votes(a).belief, learned.votes(a).belief)
    assert_array_equal(again.truth(a).belief, learned.truth(a).belief)


def test_who_is_right_in_a_crowd_that_was_stored_before_is_by_the_truth_reading(learned: Crowd):
    there = json.loads(crowd_to_json(learned))
    del there["people"]["right_by_model"]
    again = crowd_from_json(json.dumps(there))
    assert_array_equal(again.people.right_by_model, learned.people.right)
    (low, high), (lowest, highest) = (c.above_chance_interval() for c in (again, learned))
    assert_array_equal(again.above_chance, learned.above_chance)
    assert np.all(low >= lowest)
    assert np.all(high <= highest)


def test_a_crowd_of_whom_nothing_is_known_comes_back() -> None:
    crowd = count_each(annotations([0, 1], [1, 2, 3]))
    again = crowd_from_json(crowd_to_json(crowd))
    assert (again.model, again.learned) == (None, False)
    assert again.annotators.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "a stored crowd has the fields annotators.*; list came. Make one: sle encode"),
        ('{"worth": []}', "a stored crowd has the fields .*; worth came"),
    ],
)
def test_what_is_not_a_stored_crowd_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        crowd_from_json(text)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"worth": ["x", "y", "z"]}, "a stored crowd is damaged: could not convert"),
        ({"worth": [1.0]}, r"damaged: worth must have the shape \(3,\); \(1,\) came"),
        ({"meaning": [[1.0]]}, r"damaged: meaning must have the shape \(2, 2\); \(1, 1\) came"),
        ({"ridge": {"other": 1}}, "a stored crowd is damaged: .*other"),
    ],
)
def test_a_damaged_one_is_refused(learned: Crowd, damage: dict[str, Any], words: str) -> None:
    stored = json.loads(crowd_to_json(learned)) | damage
    with pytest.raises(ValueError, match=words):
        crowd_from_json(json.dumps(stored))


def test_names_that_json_cannot_hold_are_refused_in_words(learned: Crowd) -> None:
    strange = replace(learned, annotators=np.asarray([object()] * 3))
    with pytest.raises(ValueError, match=r"must be text or numbers to be stored; .*str\(name\)"):
        crowd_to_json(strange)


def test_what_was_learned_with_stated_confidence_needs_it(learned: Crowd) -> None:
    a = replace(annotations(["no", "yes"], ["ann", "bob", "cyd"]), stated=None)
    with pytest.raises(ValueError, match=r"`stated` is needed, as this crowd was .* \[1.0, 2.0\]"):
        learned.votes(a)
