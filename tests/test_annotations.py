"""A table as codes and names, in the order of its rows, and what an annotation is worth."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crowd_files import Roles
from crowds import crowd
from engines import (
    ENGINES,
    LABELS,
    Columns,
    Engine,
    core_engines,
    crowd_table,
    every_engine,
    every_engine_but_dask,
    soft,
    without,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import assert_close, one_in, present

from slencodings import Annotations, Opinion, aggregate, encode, from_table, fuse_table
from slencodings.annotations import (
    base_rate_of,
    by_annotators,
    check_smoothing,
    counted,
    in_steps,
    plainly,
    shared_base_rate,
    some,
    sums_by,
)

ROLES: Roles = {"item": "item", "annotator": "who", "label": "said"}
SAID: Columns = {
    "item": ["q", "p", "q", "r", "p"],
    "who": ["bob", "cem", "ann", "cem", "bob"],
    "said": ["yes", "no", "no", None, "yes"],
    "doubt": [0.5, 0.25, 0.0, None, 1.0],
}


@every_engine
def test_codes_name_what_was_said_in_the_order_of_the_rows(engine: Engine) -> None:
    ann = from_table(engine(SAID), **ROLES, uncertainty="doubt")
    assert ann.items.tolist() == ["p", "q", "r"]
    assert ann.annotators.tolist() == ["ann", "bob", "cem"]
    assert ann.labels.tolist() == ["no", "yes"]
    assert ann.items[ann.item].tolist() == ["q", "p", "q", "p"]
    assert ann.annotators[ann.annotator].tolist() == ["bob", "cem", "ann", "bob"]
    assert ann.labels[ann.y].tolist() == ["yes", "no", "no", "yes"]
    assert ann.uncertainty.tolist() == [0.5, 0.25, 0.0, 1.0]
    assert not ann.soft
    assert (ann.item.dtype, ann.annotator.dtype, ann.y.dtype) == (np.intp,) * 3
    assert (ann.items.dtype, ann.annotators.dtype, ann.labels.dtype) == (object,) * 3


@every_engine
def test_many_rows_keep_their_order(engine: Engine) -> None:
    rows = 5000
    rng = np.random.default_rng(1)
    columns = {
        "item": rng.integers(0, 900, rows).tolist(),
        "who": rng.integers(0, 300, rows).tolist(),
        "said": rng.integers(0, 4, rows).tolist(),
        "sure": rng.uniform(0, 1, rows).tolist(),
    }
    doubt = {m: m / 300 for m in range(300)}
    table = engine(columns)
    ann = from_table(table, **ROLES, confidence="sure")
    assert ann.items[ann.item].tolist() == columns["item"]
    assert ann.annotators[ann.annotator].tolist() == columns["who"]
    assert ann.labels[ann.y].tolist() == columns["said"]
    assert_close(ann.uncertainty, 1 - np.asarray(columns["sure"]))
    mapped = from_table(table, **ROLES, uncertainty=doubt)
    assert_close(mapped.uncertainty, np.asarray(columns["who"]) / 300)


@every_engine
def test_what_was_stated_and_how_reliable_people_are_is_kept_as_it_came(engine: Engine) -> None:
    table = engine(SAID | {"sure": [1, 4, 2, None, 5], "skill": [0.1, 0.2, 0.3, None, 0.5]})
    scored = {**ROLES, "confidence": "sure", "confidence_scale": (1, 5)}
    ann = from_table(table, **scored, reliability="skill")
    assert ann.stated is not None
    assert ann.stated.tolist() == ann.confidence.tolist() == [1, 4, 2, 5]
    assert_close(ann.uncertainty, np.asarray([1, 0.25, 0.75, 0]))
    assert_close(ann.per_annotation(None), np.asarray([0.1, 0.2, 0.3, 0.5]))
    last = ann.rows([3])
    assert (last.stated, last.reliability) == (np.asarray([5.0]), np.asarray([0.5]))
    named = from_table(table, **ROLES, reliability={"ann": 0.1, "bob": 0.2, "cem": 0.3})
    assert_close(named.per_annotation(None), np.asarray([0.2, 0.3, 0.1, 0.2]))
    assert (named.stated, from_table(table, **ROLES).reliability) == (None, None)
    assert named.completed().stated is None
    doubted = from_table(table, **ROLES, uncertainty="doubt").completed(0.5)
    assert present(doubted.stated).tolist() == [0.5, 0.75, 1, 0]
    assert present(doubted.reliability).tolist() == [0.5] * 4


def test_confidence_without_a_scale_is_taken_at_its_word_only_from_0_to_1() -> None:
    named = {**ROLES, "confidence": "sure", "confidence_scale": None}
    word = from_table(SAID | {"sure": [1, 0.4, 0, None, 0.5]}, **named)
    assert_close(word.uncertainty, np.asarray([0, 0.6, 1, 0.5]))
    order = from_table(SAID | {"sure": [1, 4, 2, None, 5]}, **named)
    assert order.uncertainty.tolist() == [0] * 4
    assert order.confidence.tolist() == [1, 4, 2, 5]


@pytest.mark.parametrize(("scale", "surest"), [((5, 1), 1), ((1, 5), 5), (None, 4)])
def test_missing_confidence_that_is_trusted_counts_as_the_surest(scale: Any, surest: int) -> None:
    table = SAID | {"sure": [1, 4, None, None, 2]}
    ann = from_table(table, **ROLES, confidence="sure", confidence_scale=scale, missing="trust")
    assert ann.confidence.tolist() == [1, 4, surest, 2]
    assert ann.uncertainty[2] == 0


@every_engine_but_dask
def test_soft_labels_are_vectors(engine: Engine) -> None:
    columns = crowd_table()
    said = [p is not None for p in columns["p"]]
    y = soft(columns["p"])[said]
    ann = from_table(engine(columns), item="item", label="p", labels=LABELS)
    assert ann.soft
    assert_close(ann.y, y, 1e-15)
    assert ann.vectors is ann.y
    assert ann.items[ann.item].tolist() == np.asarray(columns["item"], dtype=object)[said].tolist()
    assert "never said" in ann.items.tolist()
    weight = np.linspace(0, 1, len(y))
    for n, item in enumerate(ann.items):
        here = ann.items[ann.item] == item
        assert_close(ann.sums()[n], y[here].sum(0))
        assert_close(ann.sums(weight)[n], (weight[:, None] * y)[here].sum(0))


def test_hard_labels_have_vectors_and_sums() -> None:
    ann = from_table(SAID, **ROLES)
    assert ann.vectors.tolist() == [[0, 1], [1, 0], [1, 0], [0, 1]]
    assert ann.sums().tolist() == [[1, 1], [1, 1], [0, 0]]
    assert ann.sums(np.asarray([1.0, 2.0, 4.0, 8.0])).tolist() == [[2, 8], [4, 1], [0, 0]]


def test_without_a_column_of_annotators_all_are_one() -> None:
    ann = from_table(SAID, item="item", label="said")
    assert ann.annotators.tolist() == ["anonymous"]
    assert ann.annotator.tolist() == [0, 0, 0, 0]
    assert not ann.named
    assert from_table(SAID, **ROLES).named


def test_labels_may_be_more_than_were_said() -> None:
    ann = from_table(SAID, **ROLES, labels=["yes", "maybe", "no"])
    assert ann.labels.tolist() == ["yes", "maybe", "no"]
    assert ann.y.tolist() == [0, 2, 2, 0]
    assert ann.sums().shape == (3, 3)


@every_engine_but_dask
def test_nobody_is_an_annotator_where_missing_ones_are_trusted(engine: Engine) -> None:
    columns = SAID | {"who": ["bob", None, "ann", None, None]}
    ann = from_table(engine(columns), **ROLES, missing="trust")
    assert ann.annotators.tolist() == ["ann", "bob", None]
    assert ann.annotator.tolist() == [1, 2, 0, 2]
    assert_close(
        ann.per_annotation({"ann": 0.1, "bob": 0.2, None: 0.3}), np.asarray([0.2, 0.3, 0.1, 0.3])
    )
    dropped = from_table(engine(columns), **ROLES, missing="drop")
    assert dropped.annotators.tolist() == ["ann", "bob"]
    assert dropped.items.tolist() == ["p", "q", "r"]
    assert dropped.items[dropped.item].tolist() == ["q", "q"]


@core_engines
def test_numbers_name_annotators_even_where_one_is_missing(engine: Engine) -> None:
    columns = SAID | {"who": [2, 3, 1, 3, None]}
    ann = from_table(engine(columns), **ROLES, missing="trust", uncertainty={1: 0.1, 2: 0.2})
    assert ann.annotators.tolist() == [1, 2, 3, None]
    assert ann.annotator.tolist() == [1, 2, 0, 3]
    assert ann.uncertainty.tolist() == [0.2, 0.0, 0.1, 0.0]


@pytest.mark.parametrize(
    ("duplicates", "y"), [("first", [1, 0]), ("last", [0, 0]), ("all", [1, 0, 0])]
)
@core_engines
def test_repeated_annotations_are_left_out(engine: Engine, duplicates: Any, y: list[int]) -> None:
    columns = {"item": ["a", "a", "a"], "who": ["x", "y", "x"], "said": ["yes", "no", "no"]}
    assert from_table(engine(columns), **ROLES, duplicates=duplicates).y.tolist() == y


@every_engine
def test_all_labels_may_be_missing(engine: Engine) -> None:
    columns = {"item": ["a", "b"], "who": ["x", "y"], "said": [None, None]}
    ann = from_table(engine(columns), **ROLES, labels=["no", "yes"])
    assert (len(ann.item), len(ann.annotators), ann.sums().tolist()) == (0, 0, [[0, 0], [0, 0]])
    assert aggregate.sle(ann).uncertainty.tolist() == [1, 1]


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.01]))
@one_in(2)
def test_arrays_and_tables_fuse_alike(seed: int, smoothing: float) -> None:
    columns = without(crowd_table(24, seed), "p", "a")
    table = ENGINES["polars-lazy"](columns)
    chosen = {"labels": LABELS, "uncertainty": "doubt"}
    skill = {who: n / 4 for n, who in enumerate(sorted(set(columns["who"])))}
    opinions = aggregate.sle(
        from_table(table, **ROLES, **chosen), reliability=skill, smoothing=smoothing
    )
    fused = fuse_table(table, **ROLES, **chosen, reliability=skill, smoothing=smoothing)
    fused = fused.collect().sort("item")
    assert_close(fused.select("^belief_.*$").to_numpy(), opinions.belief)
    assert_close(fused["uncertainty"].to_numpy(), opinions.uncertainty)


def crowd_of_three() -> Annotations:
    return from_table(SAID, **ROLES)


@pytest.mark.parametrize(
    ("reliability", "expected"),
    [
        (None, [1, 1, 1, 1]),
        (0.5, [0.5] * 4),
        (np.float32(0.5), [0.5] * 4),
        ([0.1, 0.2, 0.3], [0.2, 0.3, 0.1, 0.2]),
        (np.asarray([0.1, 0.2, 0.3, 0.4]), [0.1, 0.2, 0.3, 0.4]),
        (pd.Series([0.1, 0.2, 0.3, 0.4]), [0.1, 0.2, 0.3, 0.4]),
        (pd.Series([0.3, 0.1, 0.2], index=["cem", "ann", "bob"]), [0.2, 0.3, 0.1, 0.2]),
        ({"ann": 0.1, "bob": 0.2, "cem": 0.3, "who else": 2}, [0.2, 0.3, 0.1, 0.2]),
        (encode(np.asarray([1.0, 0.0]), np.asarray(0.5)), [0.75] * 4),
        (encode(np.eye(2)[[0, 1, 0]], np.asarray([0.0, 0.0, 1.0])), [0, 0.5, 1, 0]),
    ],
    ids=[
        "nothing",
        "number",
        "float32",
        "list",
        "array",
        "series",
        "named series",
        "mapping",
        "opinion",
        "opinions",
    ],
)
def test_reliability_is_given_to_each_annotation(reliability: Any, expected: list[float]) -> None:
    assert_close(crowd_of_three().per_annotation(reliability), np.asarray(expected, dtype=float))


def test_as_many_annotators_as_annotations_are_taken_as_annotators() -> None:
    ann = from_table({"item": [1, 1], "who": ["b", "a"], "said": [0, 1]}, **ROLES)
    assert ann.per_annotation([0.25, 0.5]).tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("reliability", "words"),
    [
        (
            {"ann": 1.0},
            r"`reliability` must know every annotator; 2 of 3 are missing, first 'bob'\. Add them, "
            r"for example dict\.fromkeys",
        ),
        (
            [0.5, 0.5],
            r"`reliability` must be a number, one per annotator \(3,\) or one per annotation "
            r"\(4,\); shape \(2,\) came",
        ),
        (
            [0.5, 1.5, -1.0],
            r"`reliability` must lie in \[0, 1\]; 2 of 3 values do not, first 1\.5 at position 1\. "
            r"Map a score such as kappa first",
        ),
        (float("nan"), r"must lie in \[0, 1\]; 1 of 1 values do not, first nan at position 0"),
        (
            encode(np.eye(3)[0]),
            r"`reliability` as an opinion must be binomial, \(trustworthy, not\); one over 3",
        ),
    ],
    ids=["unknown", "shape", "range", "NaN", "opinion"],
)
def test_reliability_that_cannot_be_given_is_refused(reliability: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        crowd_of_three().per_annotation(reliability)


def test_a_base_rate_has_one_number_for_each_label() -> None:
    assert shared_base_rate(None, ["a", "b"]).tolist() == [0.5, 0.5]
    assert shared_base_rate({"b": 0.75, "a": 0.25}, ["a", "b"]).tolist() == [0.25, 0.75]
    assert shared_base_rate((0.25, 0.75), [0, 1]).tolist() == [0.25, 0.75]
    with pytest.raises(
        ValueError, match=r"must name each of the 2 labels and no other; 1 differ, first 'c'"
    ):
        shared_base_rate({"a": 0.5, "b": 0.5, "c": 0.0}, ["a", "b"])
    with pytest.raises(ValueError, match=r"one value per label, \(2,\); shape \(\) came"):
        shared_base_rate(0.5, ["a", "b"])
    with pytest.raises(
        ValueError, match=r"must sum to 1; the smallest is -0\.5 and the sum 1\. Divide"
    ):
        shared_base_rate([-0.5, 1.5], ["a", "b"])
    for off in (0.51, 0.49, 1.5, 2e-6 + 0.5):
        with pytest.raises(ValueError, match=r"must not be negative and must sum to 1"):
            shared_base_rate([0.5, off], ["a", "b"])
    assert shared_base_rate([0.5, 0.5 + 5e-7], ["a", "b"]).tolist() == [0.5, 0.5 + 5e-7]


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan"), None, "0.1"])
def test_smoothing_leaves_some_belief(smoothing: Any) -> None:
    with pytest.raises(
        ValueError, match=r"`smoothing` must be a number in \[0, 1\); .* came\. 0\.01 leaves"
    ):
        check_smoothing(smoothing)
    assert check_smoothing(np.float32(0.5)) == 0.5


def test_an_opinion_of_the_annotators_is_their_reliability() -> None:
    """Eq. 4: only its projected probability counts."""
    ann = crowd_of_three()
    trust = Opinion(
        np.asarray([[0.5, 0.1]] * 3), np.asarray([0.4] * 3), np.asarray([[0.5, 0.5]] * 3)
    )
    assert_close(aggregate.sle(ann, reliability=trust), aggregate.sle(ann, reliability=0.7))


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_some_items_keep_what_was_said_of_them_in_the_order_asked_for(seed: int, soft: bool):
    rng = np.random.default_rng(seed)
    a = crowd(rng, soft=soft, unsure=True)
    items = rng.permutation(len(a.items))[: rng.integers(0, len(a.items) + 1)]
    some = a.of_items(items)
    assert some.items.tolist() == a.items[items].tolist()
    assert some.labels is a.labels
    assert some.annotators is a.annotators
    for n, i in enumerate(items):
        mine, before = some.rows(some.item == n), a.rows(a.item == i)
        assert_array_equal(mine.vectors, before.vectors)
        assert_array_equal(mine.annotator, before.annotator)
        assert_array_equal(mine.uncertainty, before.uncertainty)
    assert len(some.item) == np.isin(a.item, items).sum()


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_what_the_others_say_is_added_up_without_what_is_left_out(seed: int, soft: bool):
    rng = np.random.default_rng(seed)
    a = crowd(rng, soft=soft)
    weight = rng.exponential(size=len(a.item)) * 10.0 ** rng.integers(-9, 9, len(a.item))
    found = a.sums_of_others(weight)
    for q in range(len(a.item)):
        others = [j for j in range(len(a.item)) if a.item[j] == a.item[q] and j != q]
        expected = [math.fsum(weight[j] * a.vectors[j, k] for j in others) for k in range(3)]
        assert_allclose(found[q], expected, rtol=1e-9, atol=0)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_fusing_adds_up_votes_beside_the_prior(seed: int, soft: bool):
    rng = np.random.default_rng(seed)
    a, base_rate = crowd(rng, soft=soft), rng.dirichlet(np.ones(3))
    weight, prior = rng.random(len(a.item)), rng.uniform(0.1, 2, len(a.items))
    opinion = a.fuse(weight, base_rate, prior=prior)
    for i in range(len(a.items)):
        mine = np.flatnonzero(a.item == i)
        total = prior[i] + sum(weight[q] for q in mine)
        belief = sum((weight[q] * a.vectors[q] for q in mine), np.zeros(3)) / total
        assert_allclose(opinion.belief[i], belief, rtol=1e-12, atol=1e-15)
        assert_allclose(opinion.uncertainty[i], prior[i] / total, rtol=1e-12)
        assert_array_equal(opinion.base_rate[i], base_rate)


@given(st.lists(st.floats(-1, 1), max_size=40), st.randoms())
def test_numbers_in_steps_add_up_to_the_same_in_any_order(values: list[float], chance: Any):
    steps = in_steps(np.asarray(values)).tolist()
    assert_allclose(steps, values, rtol=0, atol=2.0**-33)
    total = sum(steps)
    chance.shuffle(steps)
    assert sum(steps) == total == math.fsum(steps)


def test_labels_that_are_never_given_are_expected_by_a_share_of_one_annotation():
    assert_allclose(base_rate_of(np.asarray([2.0, 0.0, 5.0])), np.asarray([7, 1, 16]) / 24)
    assert_allclose(base_rate_of(np.zeros(4)), np.full(4, 0.25))


def test_a_sentence_has_one_or_many_and_the_first_ten_of_more():
    assert [counted(n, "row") for n in (0, 1, 2, 2000)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "2,000 rows",
    ]
    assert [by_annotators(n) for n in (None, 1, 3)] == ["", " by 1 annotator", " by 3 annotators"]
    assert some("abcdefghij", str) == "a, b, c, d, e, f, g, h, i, j"
    assert some("abcdefghijk", str) == "a, b, c, d, e, f, g, h, i, j, ..."
    assert some(["a"]) == "'a'"
    assert [plainly(name) for name in ("", " ", "a b", "a,b")] == ["''", "' '", "a b", "'a,b'"]


def test_sums_of_groups_are_as_many_as_asked_for_and_numbers_even_of_nothing():
    nobody, value = np.zeros(0, dtype=int), np.zeros(0)
    assert sums_by(nobody, value).tolist() == []
    assert sums_by(nobody, value, 2).dtype == float
    assert sums_by(np.asarray([1, 1]), np.asarray([0.5, 2]), 3).tolist() == [0, 2.5, 0]
