"""Annotators made up from known truth, confidence and reliability (Algorithm 1).

The paper permutes "with probability r"; it must be 1 - r, for it also says that nothing changes
at r = 1. Beta(10, 0) is meant as the constant 1. True labels are the 70 points of a lattice.
"""

from __future__ import annotations

import operator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats


class SyntheticCrowd(NamedTuple):
    """What a crowd said, and everything that is known because it was made up.

    Attributes
    ----------
    annotations : Annotations, what a method gets to see
    truth : array (N, K), the label distributions before anyone corrupted them
    reliability : array (M,)
    confidence : array (M,), or (N, M) where it differs from item to item
    """

    annotations: Annotations
    truth: Floats
    reliability: Floats
    confidence: Floats


def synthetic(
    n_annotators: int = 10,
    *,
    confidence: tuple[float, float] = (10, 1),
    reliability: tuple[float, float] = (10, 1),
    n_labels: int = 5,
    divisions: int = 4,
    rng: np.random.Generator,
) -> SyntheticCrowd:
    """Let annotators label every point of the lattice (Algorithm 1).

    c_m ~ Beta(confidence),   r_m ~ Beta(reliability),   y* = recalibrate(permute(y, r_m), c_m)

    Parameters
    ----------
    n_annotators : M
    confidence, reliability : the two parameters of a Beta distribution; (10, 0) is always 1
    n_labels, divisions : of the lattice of true labels

    Examples
    --------
    >>> crowd = synthetic(rng=np.random.default_rng(0))
    >>> crowd.annotations.y.shape, crowd.truth.shape
    ((700, 5), (70, 5))
    """
    M = positive("n_annotators", n_annotators)
    c = beta(*confidence, M, rng)
    r = beta(*reliability, M, rng)
    return annotate(lattice(n_labels, divisions), confidence=c, reliability=r, rng=rng)


def annotate(
    truth: ArrayLike,
    *,
    confidence: ArrayLike,
    reliability: ArrayLike,
    rng: np.random.Generator,
    per_item: int | None = None,
    hard: bool = False,
) -> SyntheticCrowd:
    """Let given annotators label given true distributions.

    y* = recalibrate(permute(y, r), c),   u = 1 - c

    Parameters
    ----------
    truth : array (N, K), each row sums to one
    confidence : array (M,), or (N, M) where it differs from item to item; in [0, 1]
    reliability : array (M,), in [0, 1]
    per_item : how many different annotators, drawn at random, see each item; all when absent
    hard : say one label, drawn from y*, instead of y* itself

    Examples
    --------
    >>> crowd = annotate([[0.9, 0.1]], confidence=[0.5], reliability=[1.0],
    ...                  rng=np.random.default_rng(0))
    >>> crowd.annotations.y, crowd.annotations.uncertainty
    (array([[0.75, 0.25]]), array([0.5]))
    """
    p = _distributions(truth)
    r = np.asarray(reliability, dtype=float)
    if r.ndim != 1 or r.size == 0:
        raise ValueError(
            f"`reliability` must be one number per annotator, shape (M,); shape {r.shape} came. "
            "For M equal annotators pass np.full(M, 0.8)."
        )
    N, M = len(p), len(r)
    c = np.asarray(confidence, dtype=float)
    if c.shape not in {(M,), (N, M)}:
        raise ValueError(
            f"`confidence` must be one number per annotator ({M},), or per item and annotator "
            f"({N}, {M}); shape {c.shape} came. For one number pass np.full({M}, 0.8)."
        )
    _within_one("confidence", c)
    _within_one("reliability", r)
    chosen = _choose(N, M, per_item, rng)
    item, annotator = np.repeat(np.arange(N), chosen.shape[1]), chosen.ravel()
    sure = np.broadcast_to(c, (N, M))[item, annotator]
    label = recalibrate(permute(p[item], r[annotator], rng), sure)
    annotations = Annotations(
        item=item,
        annotator=annotator,
        y=_draw(label, rng) if hard else label,
        uncertainty=1 - sure,
        items=np.arange(N),
        annotators=np.arange(M),
        labels=np.arange(int(p.shape[1])),
    )
    return SyntheticCrowd(annotations, p, r, c)


def permute(y: ArrayLike, reliability: ArrayLike, rng: np.random.Generator) -> Floats:
    """Shuffle each vector with probability 1 - r; any order is as likely, the old one too.

    Parameters
    ----------
    y : array (..., K)
    reliability : array that broadcasts to (...), in [0, 1]

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> permute([0.2, 0.3, 0.5], 1.0, rng)
    array([0.2, 0.3, 0.5])
    >>> np.sort(permute([0.2, 0.3, 0.5], 0.0, rng))
    array([0.2, 0.3, 0.5])
    """
    y = np.asarray(y, dtype=float)
    # One draw for each vector: reliability must not add vectors that would share theirs.
    kept = rng.random(y.shape[:-1]) < np.broadcast_to(reliability, y.shape[:-1])
    return np.where(kept[..., None], y, rng.permuted(y, axis=-1))


def recalibrate(y: ArrayLike, confidence: ArrayLike) -> Floats:
    """Flatten each vector as far as confidence is missing.

    y_k ** c / sum_j y_j ** c;   y itself at c = 1, uniform over all K labels at c = 0

    What is impossible stays so for every c > 0.

    Parameters
    ----------
    y : array (..., K), sums to one over the last axis
    confidence : array that broadcasts with (...), in [0, 1]

    Examples
    --------
    >>> recalibrate([0.9, 0.1, 0.0], [1.0, 0.5, 0.0]).round(2)
    array([[0.9 , 0.1 , 0.  ],
           [0.75, 0.25, 0.  ],
           [0.33, 0.33, 0.33]])
    """
    y, c = np.asarray(y, dtype=float), np.asarray(confidence, dtype=float)[..., None]
    power = y**c
    # Dividing by a sum that is 1 only up to rounding would not be the identity.
    return np.where(c == 1, y, power / power.sum(axis=-1, keepdims=True))


def lattice(n_labels: int = 5, divisions: int = 4) -> Floats:
    """Evenly spaced points on the simplex: all ways to share out 1 in steps of 1 / divisions.

    comb(divisions + n_labels - 1, n_labels - 1) points, in lexicographic order.

    Examples
    --------
    >>> lattice(2, 4)
    array([[0.  , 1.  ],
           [0.25, 0.75],
           [0.5 , 0.5 ],
           [0.75, 0.25],
           [1.  , 0.  ]])
    """
    K, D = positive("n_labels", n_labels), positive("divisions", divisions)
    # Stars and bars: K - 1 bars among D stars; the gaps between bars are the shares.
    bars = np.asarray(list(combinations(range(D + K - 1), K - 1)), dtype=int)
    return (np.diff(bars, axis=1, prepend=-1, append=D + K - 1) - 1) / D


def beta(
    a: ArrayLike, b: ArrayLike, size: int | tuple[int, ...], rng: np.random.Generator
) -> Floats:
    """Draw from Beta(a, b), where Beta(a, 0) is the constant 1 and Beta(0, b) the constant 0.

    Parameters
    ----------
    a, b : arrays that broadcast to `size`, not negative, not both 0

    Examples
    --------
    >>> beta(10, 0, 3, np.random.default_rng(0))
    array([1., 1., 1.])
    """
    a, b = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    # Written so that NaN fails it.
    fine = (a >= 0) & (b >= 0) & (a + b > 0) & (a + b < np.inf)
    if not fine.all():
        i = int(np.flatnonzero(~fine)[0])
        raise ValueError(
            "a Beta distribution needs two finite parameters, neither negative nor both 0; "
            f"({a.flat[i]:g}, {b.flat[i]:g}) came. (1, 1) is uniform, (10, 0) is always 1."
        )
    proper = (a > 0) & (b > 0)
    draws = rng.beta(np.where(proper, a, 1), np.where(proper, b, 1), size)
    return np.where(proper, draws, np.where(b == 0, 1.0, 0.0))


def _choose(N: int, M: int, per_item: int | None, rng: np.random.Generator) -> Codes:
    """Different annotators for each item, in order, (N, per_item); every set is as likely."""
    if per_item is None:
        return np.tile(np.arange(M), (N, 1))
    n = positive("per_item", per_item)
    if n > M:
        raise ValueError(
            f"`per_item` annotators must be different people, so at most {M}; {n} came. "
            "Add annotators, or leave it out to have all of them see every item."
        )
    # Floyd's sampling, all items at once: memory for those chosen, not for all N * M.
    chosen = np.full((N, n), -1)
    for i, last in enumerate(range(M - n, M)):
        pick = rng.integers(last + 1, size=N)
        taken = (chosen == pick[:, None]).any(axis=1)
        chosen[:, i] = np.where(taken, last, pick)
    return np.sort(chosen, axis=1)


def _draw(p: Floats, rng: np.random.Generator) -> Codes:
    """One label from each distribution (R, K); one of probability 0 is never drawn."""
    upto = np.cumsum(p, axis=-1)
    # The product stays below the last sum, because random() is below 1.
    return (upto <= rng.random(len(p))[:, None] * upto[:, -1:]).sum(axis=-1)


def _distributions(truth: ArrayLike) -> Floats:
    p = np.asarray(truth, dtype=float)
    if p.ndim != 2 or p.shape[1] == 0:
        raise ValueError(
            f"`truth` must be one distribution per item, shape (N, K); shape {p.shape} came. "
            "Turn label codes into vectors first: np.eye(K)[codes]."
        )
    total = p.sum(axis=1)
    # Written so that NaN fails it.
    bad = np.flatnonzero(~((np.abs(total - 1) <= 1e-12) & (p >= 0).all(axis=1)))
    if bad.size:
        raise ValueError(
            f"`truth` must not be negative and each row must sum to 1; {bad.size} of {len(p)} rows "
            f"do not, first row {bad[0]} with sum {total[bad[0]]:.15g} and smallest value "
            f"{p[bad[0]].min():g}. Divide counts by their sum: "
            "truth / truth.sum(axis=1, keepdims=True)."
        )
    return p


def _within_one(name: str, x: Floats) -> None:
    bad = np.flatnonzero(~((x >= 0) & (x <= 1)))
    if bad.size:
        raise ValueError(
            f"`{name}` must lie in [0, 1]; {bad.size} of {x.size} values do not, "
            f"first {x.flat[bad[0]]:g}. For a 1-5 scale pass (score - 1) / 4."
        )


def positive(name: str, value: int) -> int:
    """Return a whole number that is at least 1, or say that it is not.

    Examples
    --------
    >>> positive("n_labels", 5)
    5
    """
    n = operator.index(value)
    if n < 1:
        raise ValueError(f"`{name}` must be at least 1; {n} came.")
    return n
