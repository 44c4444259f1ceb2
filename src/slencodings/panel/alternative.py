"""The alternative annotator test: may a model stand in for a person?"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, leave_one_out, some, sums_by
from slencodings.choices import Alignment, check_word
from slencodings.opinion import Codes, Floats

# The fewest items of a person.
LEAST_ITEMS = 30


class Replaced(NamedTuple):
    """A person and the model in their place.

    Attributes
    ----------
    annotator : who is left out
    items : on how many items both were compared with the others
    person, model : the share of items where they are as near to the others, or nearer
    p_value : of the hypothesis that the person is better by epsilon or more
    won : whether that is rejected
    """

    annotator: Any
    items: int
    person: float
    model: float
    p_value: float
    won: bool


class AlternativeAnnotatorTest(NamedTuple):
    """Whether a model may replace people.

    Attributes
    ----------
    winning_rate : the share of people to whom the model is not inferior
    advantage_probability : how likely the model is as near to the others as a person, or nearer
    passed : whether it wins over at least half of the people
    people : one for each person with enough items
    """

    winning_rate: float
    advantage_probability: float
    passed: bool
    people: list[Replaced]


def alternative_annotator_test(
    annotations: Annotations,
    judge: Any,
    people: NDArray[np.bool_],
    *,
    alignment: Alignment = "accuracy",
    epsilon: float = 0.2,
    rate: float = 0.05,
    min_people: int = 2,
    min_items: int = LEAST_ITEMS,
) -> AlternativeAnnotatorTest:
    """Compare a model with each person in how near they are to the other people.

    On item i, S_j is the person's alignment with the others and S_f the model's. With
    W_j = [S_j >= S_f], W_f = [S_f >= S_j] and d = W_j - W_f, a one-sided t test rejects that
    E d >= epsilon. Of all people, those are won who are rejected by Benjamini and Yekutieli's
    procedure. The advantage probability is the mean of W_f, over items and then over people
    (Calderon, Reichart and Dror, "The Alternative Annotator Test for LLM-as-a-Judge", ACL 2025).

    Parameters
    ----------
    judge : the model, as it is named in `annotations.annotators`
    people : (M,), who is a person
    alignment : "accuracy", the share of the others who say the same; or "neg_rmse", of labels that
        are numbers the root of the mean squared difference, negative
    epsilon : what people must be better by to be worth their price: by the authors' rule .2 of
        experts, .15 of skilled annotators, .1 of a crowd
    rate : of false discoveries
    min_people, min_items : items with fewer people do not count, nor do people with fewer items
    """
    check_word("alignment", alignment, Alignment)
    a, names = annotations, annotations.annotators.tolist()
    if judge not in names:
        raise ValueError(
            f"`judge` must be one of the annotators; {judge!r} came. They are {some(names)}."
        )
    m, values = names.index(judge), _values(a, alignment)
    by_people = a.rows(_compared_with(a, m, people, min_people))
    model, own = np.zeros((len(a.items), len(a.labels))), a.annotator == m
    model[a.item[own]] = a.vectors[own]
    person = _alignment(by_people.vectors, by_people, values)
    other = _alignment(model[by_people.item], by_people, values)
    # Scores come of sums in another order; what is as near must not differ by rounding.
    ahead = np.where(np.isclose(person, other, rtol=1e-9, atol=1e-12), 0, np.sign(person - other))
    found = _by_person(by_people, ahead, epsilon, min_items)
    if not found:
        raise ValueError(
            f"the test needs a person with at least min_items={min_items} items that "
            f"{judge!r} and at least {min_people} people answered; "
            f"the most are {int(np.bincount(by_people.annotator, minlength=1).max())}."
        )
    won = benjamini_yekutieli(np.asarray([person.p_value for person in found]), rate)
    compared = [p._replace(won=bool(w)) for p, w in zip(found, won, strict=True)]
    winning = float(np.mean(won))
    advantage = float(np.mean([person.model for person in found]))
    return AlternativeAnnotatorTest(winning, advantage, winning >= 0.5, compared)


def alternative_annotator_tests(
    annotations: Annotations,
    people: NDArray[np.bool_],
    *,
    alignment: Alignment = "accuracy",
    epsilon: float = 0.2,
) -> dict[Any, AlternativeAnnotatorTest]:
    """The test of each model that shares enough items with one person and another, by its name."""
    a, found = annotations, dict[Any, AlternativeAnnotatorTest]()
    for m in np.unique(a.annotator[~people[a.annotator]]).tolist():
        compared = _compared_with(a, m, people, 2)
        if np.max(np.bincount(a.annotator[compared], minlength=1)) >= LEAST_ITEMS:
            judge = a.annotators[m]
            found[judge] = alternative_annotator_test(
                a, judge, people, alignment=alignment, epsilon=epsilon
            )
    return found


def _compared_with(
    a: Annotations, m: int, people: NDArray[np.bool_], min_people: int
) -> NDArray[np.bool_]:
    """Which annotations of people are on items that the model and enough people answered, (R,)."""
    answered = np.isin(np.arange(len(a.items)), a.item[a.annotator == m])
    n = np.bincount(a.item[people[a.annotator]], minlength=len(a.items))
    return people[a.annotator] & (answered & (n >= min_people))[a.item]


def _values(a: Annotations, alignment: Alignment) -> Floats | None:
    """What labels are as numbers, (K,); nothing where only being the same counts."""
    if alignment == "accuracy":
        return None
    try:
        return np.asarray([float(label) for label in a.labels.tolist()])
    except (TypeError, ValueError):
        raise ValueError(
            "alignment='neg_rmse' needs labels that are numbers; "
            f"{', '.join(map(repr, a.labels.tolist()[:5]))} came. Pass alignment='accuracy'."
        ) from None


def _alignment(given: Floats, people: Annotations, values: Floats | None) -> Floats:
    """How near answers (R, K) are to those of the other people on the items of `people`, (R,)."""
    peers = leave_one_out(people.vectors, people.item)
    peers /= np.sum(peers, axis=1, keepdims=True)
    if values is None:
        return np.sum(given * peers, axis=1)
    squares = (values[:, None] - values) ** 2
    return -np.sqrt(np.einsum("qk,kl,ql->q", given, squares, peers))


def _by_person(a: Annotations, ahead: Floats, epsilon: float, min_items: int) -> list[Replaced]:
    """Each person with enough items, in the order of the annotators; nobody has won yet."""
    M = len(a.annotators)
    n = np.bincount(a.annotator, minlength=M)
    at_least, at_most = (
        sums_by(a.annotator, (x).astype(float), M) for x in (ahead >= 0, ahead <= 0)
    )
    return [
        Replaced(
            a.annotators[m],
            int(n[m]),
            float(at_least[m] / n[m]),
            float(at_most[m] / n[m]),
            _p_value(ahead[a.annotator == m], epsilon),
            won=False,
        )
        for m in np.flatnonzero(n >= max(min_items, 2)).tolist()
    ]


def _p_value(d: Floats, epsilon: float) -> float:
    """Of the hypothesis that the mean is epsilon or more, by a t test; its limit without spread."""
    from scipy.stats import t

    n, gap = len(d), float(np.mean(d)) - epsilon
    error = float(np.std(d, ddof=1)) / math.sqrt(n)
    if error == 0:
        return float(gap > 0) if gap else 0.5
    return float(t.cdf(gap / error, n - 1))


def benjamini_yekutieli(p_values: Floats, rate: float = 0.05) -> NDArray[np.bool_]:
    """Which hypotheses are rejected, (n,), so that of those at most `rate` are true on average.

    The i-th smallest of n is held against i / n x rate / (1 + 1/2 + ... + 1/n); all up to the
    largest that is below are rejected, however they depend on each other (2001).

    >>> benjamini_yekutieli(np.asarray([0.001, 0.2, 0.01]))
    array([ True, False,  True])
    """
    n = len(p_values)
    rank = np.arange(1, n + 1)
    order = np.argsort(p_values, kind="stable")
    below = np.flatnonzero(p_values[order] <= rank / n * rate / np.sum(1 / rank))
    rejected: NDArray[np.bool_] = np.zeros(n, dtype=bool)
    last: Codes = order[: below[-1] + 1] if len(below) else order[:0]
    rejected[last] = True
    return rejected
