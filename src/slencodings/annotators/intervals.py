"""How far estimates about annotators would move with other items: 95 % intervals.

An interval that is computed from refits alone has no width for who is never seen to err. So each
estimate in [0, 1] is read as the share of heads in so many tosses as its variance tells, but in no
more than the annotator's judgments allow, and its interval is that of such a share (Korn &
Graubard 1998, with the Jeffreys prior).
"""

from __future__ import annotations

import numpy as np

from slencodings.aggregate.agreement import Judgments, peer_agreement
from slencodings.opinion import Codes, Floats

Interval = tuple[Floats, Floats]

_TAIL = 0.025


def agreement_sample_size(judged: Judgments, M: int, K: int) -> Floats:
    """How many tosses of a coin each annotator's agreement with peers is as good as, (M,).

    size = (n + 2) p (1 - p) / S - 2,   p and S the mean and variance of the agreement of n
    judgments, half of one at 0 and half of one at 1

    That is n where every agreement is 0 or 1, and more where judgments have several peers and their
    agreement varies less. NaN where there are none.
    """
    agreed = np.clip(peer_agreement(judged, K), 0, 1)
    n = np.bincount(judged.annotator, minlength=M)
    p = (np.bincount(judged.annotator, agreed, M) + 0.5) / (n + 1)
    squares = np.bincount(judged.annotator, (agreed - p[judged.annotator]) ** 2, M)
    S = (squares + 0.5 * p**2 + 0.5 * (1 - p) ** 2) / (n + 1)
    return np.where(n > 0, (n + 2) * p * (1 - p) / S - 2, np.nan)


def effective_sample_size(x: Floats, refits: Floats, most: Floats, spread: Codes) -> Floats:
    """How many tosses each estimate is as good as, by refits without each of G groups of items.

    size = x (1 - x) / v, at most `most`,   v = (G - 1) / G sum_g (x_g - mean)^2

    Parameters
    ----------
    x, refits : arrays (M,) and (G, M), in [0, 1]
    most : array (M,), NaN for no interval
    spread : int array (M,), in how many groups annotators are seen: if in few, v is uncertain
        itself, which Student's t says
    """
    from scipy.stats import norm, t

    G = len(refits)
    v = (G - 1) / G * np.sum((refits - np.mean(refits, axis=0)) ** 2, axis=0)
    v *= (t.isf(_TAIL, np.maximum(spread - 1, 1)) / norm.isf(_TAIL)) ** 2
    # With the prior, so that an estimate near 0 or 1 whose refits differ still tells something
    p = (most * x + 0.5) / (most + 1)
    return np.where(v * most > p * (1 - p), p * (1 - p) / np.where(v > 0, v, 1), most)


def interval(x: Floats, n: Floats) -> Interval:
    """The interval of a share x of n tosses, NaN where that is.

    quantiles of Beta(x n + 1/2, (1 - x) n + 1/2), widened to hold x itself
    """
    from scipy.stats import beta

    a, b = x * n + 0.5, (1 - x) * n + 0.5
    return np.minimum(beta.ppf(_TAIL, a, b), x), np.maximum(beta.isf(_TAIL, a, b), x)


def groups_of_items(items: Codes, N: int, G: int, rng: np.random.Generator | int) -> Codes:
    """Put N items into G groups at random, and those of `items` evenly so, (N,)."""
    mixed = np.random.default_rng(rng).permutation(N)
    mixed = mixed[np.argsort(~np.isin(mixed, items), kind="stable")]
    group = np.empty(N, dtype=np.intp)
    group[mixed] = np.arange(N) % G
    return group
