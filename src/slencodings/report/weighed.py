"""What every annotation weighs, the opinions that follow, and those without somebody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import certainty
from slencodings.annotations import Annotations
from slencodings.opinion import Opinion
from slencodings.tables.fuse import MOST_MEANT
from slencodings.trust import Trust, learn_trust

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Probabilities closer than this are equal but for rounding.
_EQUAL = 1e-9
# How many numbers are held at once where everybody is left out in turn.
_AT_ONCE = 4_000_000


class Weighed(NamedTuple):
    """A crowd and what it weighs.

    Attributes
    ----------
    opinion : Opinion (N,)
    weight : (R,), pseudo-counts of each annotation per unit of prior weight
    meaning : (K, K), what a vote for a label (row) says about the labels
    reliability : (M,), of each annotator
    doubt : uncertainty to expect in a further annotation
    trust : what was learned; None where reliability came, or nothing could be learned
    how : "given", "learned", or "alike" if no two annotations can be compared
    """

    opinion: Opinion
    weight: Floats
    meaning: Floats
    reliability: Floats
    doubt: float
    trust: Trust | None
    how: str


def has_names(annotations: Annotations) -> bool:
    """Whether annotators are told apart."""
    return annotations.annotators.tolist() != ["anonymous"]


def told_apart(annotations: Annotations) -> Annotations:
    """The annotations; without names, each by somebody of its own."""
    if has_names(annotations):
        return annotations
    each = np.arange(len(annotations.item))
    return replace(annotations, annotator=each, annotators=each)


def weigh(
    annotations: Annotations,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Weighed:
    """Weigh annotations by the reliability that came; else by what the crowd teaches.

    w = c / (1 - c),   b_i = sum_q w_q y_q C / T,   u_i = 1 / T,   T = sum_q w_q + 1
    """
    a, K = annotations, len(annotations.labels)
    shared = bool(np.any(np.bincount(a.item, minlength=1) > 1))
    if a.reliability is None and shared:
        trust = learn_trust(a, meaning=K <= MOST_MEANT, rng=seed, progress=progress)
        w = trust.annotation_worth(a)
        r = trust.worth / (1 + trust.worth)
        doubt = trust.uncertainty(trust.confidence(a), r[a.annotator])
        opinion = opinions(a, w, trust.meaning, trust.base_rate)
        return Weighed(opinion, w, trust.meaning, r, _median(doubt), trust, "learned")
    c = certainty(a)
    w = c / (1 - c)  # smoothing keeps c below 1
    n = np.bincount(a.annotator, minlength=len(a.annotators))
    r = np.bincount(a.annotator, a.per_annotation(None), len(n)) / np.maximum(n, 1)
    opinion = opinions(a, w, np.eye(K), np.full(K, 1 / K))
    how = "alike" if a.reliability is None else "given"
    return Weighed(opinion, w, np.eye(K), r, _median(a.uncertainty), None, how)


def opinions(
    annotations: Annotations, weight: Floats, meaning: Floats, base_rate: Floats
) -> Opinion:
    """One opinion for every item, (N,)."""
    evidence = annotations.sums(weight) @ meaning
    total = np.bincount(annotations.item, weight, len(annotations.items)) + 1
    a = np.tile(base_rate, (len(total), 1))
    return Opinion(evidence / total[:, None], 1 / total, a)


class Without(NamedTuple):
    """Each item without one of those who annotated it; arrays (P,), one for each such pair.

    Attributes
    ----------
    item, annotator : int arrays; without names, each annotation is an annotator of its own
    pair : int array (R,), the pair that each annotation belongs to
    leader, probability, uncertainty : the likeliest label then, how likely, and how unsure that is
    changed : whether the label that leads now does not any more
    """

    item: Ints
    annotator: Ints
    pair: Ints
    leader: Ints
    probability: Floats
    uncertainty: Floats
    changed: NDArray[np.bool_]


def leaders(opinion: Opinion) -> Ints:
    """The likeliest label of each item, (N,); the first of those that are equally likely."""
    P = np.asarray(opinion.probability)
    return np.argmax(P.max(axis=-1, keepdims=True) - _EQUAL <= P, axis=-1)


def without_each(annotations: Annotations, weighed: Weighed) -> Without:
    """What each item's opinion would be without each annotator; trust in the others stays.

    P' = (S - s + a) / (T - t),   u' = 1 / (T - t),   s and t the annotator's part of S and T
    """
    a, K = told_apart(annotations), len(annotations.labels)
    M = max(len(a.annotators), 1)
    key, pair = np.unique(a.item * M + a.annotator, return_inverse=True)
    item, who = np.divmod(key, M)
    now = leaders(weighed.opinion)
    found = [_some_without(a, weighed, pair, item, now, rows) for rows in _parts(len(key), K)]
    empty = np.zeros(0)
    leader, p, u, changed = (
        np.concatenate([empty, *columns])
        for columns in (zip(*found, strict=True) if found else [[]] * 4)
    )
    return Without(item, who, pair, leader.astype(np.intp), p, u, changed.astype(bool))


def _parts(size: int, width: int) -> Iterator[tuple[int, int]]:
    """Bounds of parts that are small enough to be held as rows of this width."""
    step = max(_AT_ONCE // max(width, 1), 1)
    for start in range(0, size, step):
        yield start, min(start + step, size)


def _some_without(
    a: Annotations, weighed: Weighed, pair: Ints, item: Ints, now: Ints, part: tuple[int, int]
) -> tuple[Ints, Floats, Floats, NDArray[np.bool_]]:
    start, end = part
    n, K = end - start, len(a.labels)
    rows = np.flatnonzero((pair >= start) & (pair < end))
    at, w = pair[rows] - start, weighed.weight[rows]
    if a.soft:
        said = np.stack([np.bincount(at, w * y, n) for y in a.y[rows].T], axis=-1)
    else:
        said = np.bincount(at * K + a.y[rows], w, n * K).reshape(n, K)
    of = item[start:end]
    b, u, base = (np.asarray(x)[of] for x in weighed.opinion)
    total = 1 / u
    # What is left is never negative, but for rounding.
    left = np.maximum(b * total[:, None] - said @ weighed.meaning, 0)
    rest = np.maximum(total - np.bincount(at, w, n), 1)
    P = (left + base) / rest[:, None]
    most = P.max(axis=-1)
    changed = P[np.arange(n), now[of]] < most - _EQUAL
    leader = np.where(changed, P.argmax(axis=-1), now[of])
    return leader, np.minimum(most, 1), 1 / rest, changed


def _median(x: Any) -> float:
    return float(np.median(x)) if len(x) else 0.0
