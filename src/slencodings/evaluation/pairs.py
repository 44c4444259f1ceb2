"""Which way to score pairs fits a crowd of judges, by judgments that were held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from slencodings.aggregate import bradley_terry
from slencodings.aggregate.bradley_terry import judgment_losses
from slencodings.annotations import sums_by
from slencodings.kinds.pairs import Pairs
from slencodings.opinion import Floats

# Predicts the judgments of some pairs (R, 3) from others.
Predictor = Callable[[Pairs, Pairs], Floats]


class PairsRow(NamedTuple):
    """A method, its mean log-loss of judgments not shown, and how far it is behind the first.

    `behind` is between `behind_low` and `behind_high` in 95 of 100 resamples of the pairs, all 0
    for the first.
    """

    method: str
    judgments: float
    behind: float
    behind_low: float
    behind_high: float


def compare_pairs(
    pairs: Pairs, *, folds: int = 5, bootstrap: int = 1000, seed: int = 0
) -> list[PairsRow]:
    """Compare ways to predict who wins, on judgments that were held out; the best first.

    "how common" knows how often left, tie and right are; "votes on the pair" adds the judgments of
    the same pair to that; "Bradley-Terry, all judges alike" learns scores; "Bradley-Terry" also
    judges and sides.

    Examples
    --------
    >>> from slencodings import pairs_from_table
    >>> games = {"left": list("abc") * 8, "right": list("bca") * 8, "won": list("abA") * 8}
    >>> found = compare_pairs(pairs_from_table(games, left="left", right="right", winner="won"))
    >>> found[-1].method
    'how common'
    """
    R = len(pairs.annotations.item)
    if folds < 2 or folds > R:
        raise ValueError(
            f"`folds` must be at least 2 and at most the judgments, {R}; {folds} came. 5 is usual."
        )
    rng = np.random.default_rng(seed)
    fold = rng.permutation(np.arange(R) % folds)
    y = pairs.annotations.vectors
    losses: dict[str, Floats] = {name: np.zeros(R) for name in METHODS}
    for f in range(folds):
        test = fold == f
        for name, method in METHODS.items():
            said = method(pairs.rows(~test), pairs.rows(test))
            losses[name][test] = judgment_losses(said, y[test])
    return _rows(losses, pairs, bootstrap, rng)


def _rows(
    losses: dict[str, Floats], pairs: Pairs, bootstrap: int, rng: np.random.Generator
) -> list[PairsRow]:
    item, N = pairs.annotations.item, len(pairs.annotations.items)
    order = sorted(losses, key=lambda name: float(losses[name].mean()))
    first = losses[order[0]]
    n = np.bincount(item, minlength=N).astype(float)
    times = rng.multinomial(N, np.full(N, 1 / N), bootstrap).astype(float)
    counted = times @ n
    rows: list[PairsRow] = []
    for name in order:
        behind = losses[name] - first
        drawn = times @ sums_by(item, behind, N) / np.where(counted > 0, counted, 1)
        low, high = np.quantile(drawn, [0.025, 0.975]) if bootstrap else (np.nan, np.nan)
        means = float(losses[name].mean()), float(behind.mean())
        rows.append(PairsRow(name, *means, float(low), float(high)))
    return rows


def _common(train: Pairs, test: Pairs) -> Floats:
    return np.tile(_shares(train), (len(test.annotations.item), 1))


def _votes(train: Pairs, test: Pairs) -> Floats:
    """One count each beside a prior weight of two, as opinions are."""
    votes, a = train.annotations.sums(), _shares(train)
    P = (votes + 2 * a) / (votes.sum(axis=1, keepdims=True) + 2)
    return P[test.annotations.item]


def _alike(train: Pairs, test: Pairs) -> Floats:
    return bradley_terry(train, judge_spread=0.0).predict(test)


def _learned(train: Pairs, test: Pairs) -> Floats:
    return bradley_terry(train).predict(test)


def _shares(pairs: Pairs) -> Floats:
    """How often left, tie and right were said; one more, spread evenly, leaves none impossible."""
    given = pairs.annotations.sums().sum(axis=0)
    return (given + 1 / 3) / (given.sum() + 1)


METHODS: dict[str, Predictor] = {
    "how common": _common,
    "votes on the pair": _votes,
    "Bradley-Terry, all judges alike": _alike,
    "Bradley-Terry": _learned,
}
