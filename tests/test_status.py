"""Which items are settled, and what is the matter with the others."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crowds import make
from hypothesis import given
from strategies import one_in, seeds

from slencodings.annotations import Annotations
from slencodings.triage import reasons, status
from slencodings.trust import weigh
from slencodings.trust.weighed import Weighed


def weighed_by(item, who, y, reliability, **sizes) -> tuple[Annotations, Weighed]:
    a = make(item, who, y, **sizes)
    a = replace(a, reliability=np.full(len(a.item), reliability))
    return a, weigh(a)


#            nobody, one vote, two agree, two differ, five agree, four against one
ITEM = np.repeat(np.arange(6), [0, 1, 2, 2, 5, 5])
WHO = np.r_[0, 0, 1, 0, 1, 0:5, 0:5]
SAID = [0, 0, 0, 0, 1, *[0] * 5, *[1] * 4, 0]


def test_votes_probability_and_conflict_decide():
    a, weighed = weighed_by(ITEM, WHO, SAID, 0.4, N=6, M=5, K=2)
    p = weighed.truth.probability.max(1).round(2).tolist()
    assert p == [0.66, 0.79, 0.85, 0.57, 0.92, 0.69]
    how: dict[str, Any] = {"least_probability": 0.85}
    found = status(weighed, **how)
    assert found.tolist() == ["few", "few", "settled", "conflict", "settled", "conflict"]
    assert reasons(a, weighed, found, **how) == [
        "nobody annotated it",
        "1 vote, and 2 are asked for",
        "'0' is .85 likely, by 2 votes",
        "1 says '0', 1 says '1'; '0' is .57 likely, less than .85",
        "'0' is .92 likely, by 5 votes",
        "4 say '1', 1 says '0'; '1' is .69 likely, less than .85",
    ]
    strict = status(weighed, least_votes=3)
    assert strict.tolist() == ["few", "few", "few", "conflict", "settled", "conflict"]
    easy = status(weighed, least_votes=1, least_probability=0.68)
    assert easy.tolist() == ["few", "settled", "settled", "conflict", "settled", "settled"]
    assert status(weighed, conflict=0.9).tolist()[-1] == "few"


def test_a_probability_just_below_the_bound_is_not_rounded_up_to_it():
    a, weighed = weighed_by(ITEM, WHO, SAID, 0.4, N=6, M=5, K=2)  # the fifth item has .9196
    how: dict[str, Any] = {"least_probability": 0.92}
    text = reasons(a, weighed, status(weighed, **how), **how)[4]
    assert text == "'0' is .919 likely, less than .92, by 5 votes"


@given(seeds)
@one_in(3)
def test_items_on_which_all_agree_are_no_conflict(rng):
    N, M, K = 40, 5, 3
    item, who = np.nonzero(rng.random((N, M)) < 0.6)
    y = rng.integers(0, K, N)[item] if rng.random() < 0.5 else rng.integers(0, K, len(item))
    a = make(item, who, y, N=N, M=M, K=K)
    found = status(weigh(a), least_probability=1)
    agree = np.count_nonzero(a.sums(), axis=1) < 2
    assert not np.any(agree & (found == "conflict"))


@pytest.mark.parametrize(
    ("item", "who", "said", "expected"),
    [
        ([], [], np.zeros(0, int), ["few", "few", "few"]),
        ([0, 1, 2], [0, 0, 0], [0, 1, 1], ["few", "few", "few"]),  # one annotator
        ([0, 1, 2], [0, 1, 2], [0, 1, 1], ["few", "few", "few"]),  # nothing is shared
        ([0, 0, 1], [0, 1, 0], [0, 1, 1], ["conflict", "few", "few"]),  # two of them
    ],
)
def test_small_crowds_get_an_answer(item, who, said, expected):
    weighed = weigh(make(item, who, said, N=3, M=3, K=2))
    assert status(weighed).tolist() == expected


def test_one_annotation_of_several_labels_is_no_conflict():
    a = make([0, 1, 1], [0, 0, 1], [[0.5, 0.5], [1, 0], [0, 1]], N=2, M=2)
    assert status(weigh(a), least_votes=1).tolist() == ["few", "conflict"]


def test_many_labels_are_cut_short_in_a_reason():
    a, weighed = weighed_by([0] * 5, range(5), range(5), 0.5)
    assert reasons(a, weighed, status(weighed))[0].startswith(
        "1 says '0', 1 says '1', 1 says '2' and 2 more labels; "
    )


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ({"least_votes": 0}, "`least_votes` must be 1 or more; 0 came"),
        ({"least_probability": 0}, "`least_probability` must lie above 0 and at most at 1; 0 came"),
        ({"least_probability": np.nan}, "`least_probability` must lie .* nan came"),
        ({"conflict": 1.5}, r"`conflict` must lie in \[0, 1\]; 1.5 came"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bound, words):
    _, weighed = weighed_by([0], [0], [0], 0.5, K=2)
    with pytest.raises(ValueError, match=words):
        status(weighed, **bound)
