"""Counts of votes against what was predicted of them, as balls from an urn.

A prediction with mean P and concentration A = prior_weight / u says that after t votes, j of them
for label k, the next is k with probability

(P_k + j s) / (1 + t s),   s = 1 / A = u / prior_weight;   independent draws from P where u = 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slencodings.annotations import safe_log
from slencodings.opinion import Codes, Floats, as_floats

LEVELS = (0.5, 0.8, 0.9, 0.95)
# Cells of the tables of chances that are in memory at a time.
_AT_ONCE = 2**20


def dirichlet_log_loss(votes: ArrayLike, probability: ArrayLike, spread: ArrayLike) -> Floats:
    """Log-loss of all the votes on each item together, (N,), in [0, inf]; lower is better.

    sum over votes of - log((P_k + j s) / (1 + t s)), j votes for that label and t in all before
    it; whatever the order, since the products are the same. It is minus the logarithm of the
    Dirichlet-multinomial chance of one sequence, so it judges s as well as P.

    Parameters
    ----------
    votes : int array (N, K), how many for each label
    probability : array (N, K), P
    spread : array (N,), s = 1 / sum(alpha) = u / prior_weight; 0 where the opinion is dogmatic

    Examples
    --------
    >>> np.exp(-dirichlet_log_loss([[2, 0], [1, 1]], np.full((2, 2), 0.5), [0.0, 0.5]))
    array([0.25      , 0.16666667])
    """
    n, P, s = _counted(votes, probability, spread)
    N, K = n.shape
    up = _log_rising(P.ravel(), np.repeat(s, K), n.ravel())
    down = _log_rising(np.ones_like(s), s, n.sum(axis=1))
    return np.maximum(down - up.reshape(N, K).sum(axis=1), 0)


def coverage(
    votes: ArrayLike,
    probability: ArrayLike,
    spread: ArrayLike,
    *,
    levels: Sequence[float] = LEVELS,
) -> Floats:
    """How much of the votes lies in the central intervals of what was predicted, one per level.

    n_k of n votes are for label k: a Beta-binomial number, with the Beta marginal of the Dirichlet.
    It lies inside as far as   [F(n_k - 1), F(n_k)]   overlaps   [(1 - level) / 2, (1 + level) / 2]
    F its distribution function; then the mean over labels by P_k, and over items with votes. It is
    `level` if votes come as predicted, less if the model is too sure, more if not sure enough.

    The interval is of the votes, not of the Beta itself: a share of few votes scatters beyond what
    is believed about its mean. Counts are steps, so a whole one in or out could not meet a level;
    in parts, the expectation of the randomised PIT, it is met exactly. (Czado, Gneiting and Held,
    "Predictive model assessment for count data", Biometrics 2009.) Labels that hardly get votes
    and get none are inside by about `level` whatever the spread, so that in a plain mean many of
    them would hide the rest.

    Parameters
    ----------
    votes, probability, spread : as in `dirichlet_log_loss`; nan where there are no votes

    Examples
    --------
    >>> coverage([[9, 1]], [[0.5, 0.5]], [0.0]).round(2)
    array([0., 0., 0., 0.])
    >>> coverage([[9, 1]], [[0.5, 0.5]], [0.5]).round(2)
    array([0. , 0.9, 1. , 1. ])
    """
    votes, probability, spread = _counted(votes, probability, spread)
    some = votes.sum(axis=1) > 0
    n, P, s = votes[some], probability[some], spread[some]
    below, at = _chances(n, P, s)

    def reached(edge: float) -> Floats:
        with np.errstate(over="ignore"):
            part = (edge - below) / np.where(at > 0, at, 1)
        return np.where(at > 0, np.clip(part, 0, 1), below < edge)

    inside = [reached((1 + level) / 2) - reached((1 - level) / 2) for level in levels]
    return np.asarray([mean(np.sum(P * x, axis=1)) for x in inside])


def _chances(votes: Codes, probability: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """P(fewer votes for the label) and P(just as many), (N, K), Beta-binomial."""
    below, at = np.zeros(votes.shape), np.zeros(votes.shape)
    total = votes.sum(axis=1)
    totals: list[int] = np.unique(total).tolist()
    for n in totals:
        same = np.flatnonzero(total == n)
        parts = math.ceil(votes.shape[1] * len(same) * (n + 1) / _AT_ONCE)
        for i in np.array_split(same, min(parts, len(same))):
            P, s, k = probability[i, :, None], spread[i, None, None], votes[i, :, None]
            ways = _all_log_rising(np.ones(1), np.ones(1), n)
            log_chance = ways[-1] - ways - ways[::-1] - _all_log_rising(np.ones(1), s, n)[..., -1:]
            log_chance = log_chance + _all_log_rising(P, s, n)
            log_chance += _all_log_rising(1 - P, s, n)[..., ::-1]
            chance = np.exp(log_chance)
            below[i] = np.sum(np.where(np.arange(n + 1) < k, chance, 0), axis=-1)
            at[i] = np.take_along_axis(chance, k, axis=-1)[..., 0]
    return below, at


def _all_log_rising(x: Floats, s: Floats, n: int) -> Floats:
    """`_log_rising` for 0, 1, ..., n, on the last axis."""
    steps = np.cumsum(safe_log(x + np.arange(n) * s), axis=-1)
    return np.concatenate([np.zeros((*steps.shape[:-1], 1)), steps], axis=-1)


def _log_rising(x: Floats, s: Floats, n: Codes) -> Floats:
    """log of x (x + s) ... (x + (n - 1) s), each; nothing cancels however small s is."""
    each = np.repeat(np.arange(len(n)), n)
    j = np.arange(len(each)) - np.repeat(np.cumsum(n) - n, n)
    return np.bincount(each, safe_log(x[each] + j * s[each]), len(n)).astype(float)


def _counted(votes: Any, probability: Any, spread: Any) -> tuple[Codes, Floats, Floats]:
    n, P, s = np.asarray(votes), as_floats(probability), as_floats(spread)
    if n.ndim != 2 or P.shape != n.shape or s.shape != n.shape[:1]:
        raise ValueError(
            "`votes` and `probability` must be (N, K) and `spread` (N,); "
            f"{n.shape}, {P.shape} and {s.shape} came."
        )
    if not np.all((n >= 0) & (n == np.floor(n))):
        raise ValueError(
            f"`votes` must be counted, whole numbers of at least 0; the smallest is {np.min(n):g} "
            f"and {np.sum(n != np.floor(n))} of {n.size} are not whole. Soft labels are no counts."
        )
    return n.astype(np.intp), P, s


def mean(x: Floats) -> float:
    """The mean, nan of nothing."""
    return float(np.mean(x)) if x.size else math.nan
