"""What each item's opinion would be without one of those who annotated it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, leave_one_out
from slencodings.opinion import Codes, Floats, Opinion
from slencodings.trust.apply import Weighed

# Probabilities closer than this are equal but for rounding.
_EQUAL = 1e-9
# How many numbers are held at once where everybody is left out in turn.
_AT_ONCE = 4_000_000


def told_apart(annotations: Annotations) -> Annotations:
    """The annotations; without names, each by somebody of its own."""
    if annotations.named:
        return annotations
    each = np.arange(len(annotations.item))
    return replace(annotations, annotator=each, annotators=each)


class Without(NamedTuple):
    """Each item without one of those who annotated it; arrays (P,), one for each such pair.

    Attributes
    ----------
    item, annotator : int arrays; without names, each annotation is an annotator of its own
    pair : int array (R,), the pair that each annotation belongs to
    leader, probability, uncertainty : the likeliest label then, how likely, and how unsure that is
    changed : whether the label that leads now does not any more
    """

    item: Codes
    annotator: Codes
    pair: Codes
    leader: Codes
    probability: Floats
    uncertainty: Floats
    changed: NDArray[np.bool_]


def likeliest(opinion: Opinion) -> Codes:
    """The likeliest label of each item, (N,); the first of those that are equally likely."""
    P = np.asarray(opinion.probability)
    return np.argmax(P.max(axis=-1, keepdims=True) - _EQUAL <= P, axis=-1)


def without_each(annotations: Annotations, weighed: Weighed) -> Without:
    """What each item's opinion would be without each annotator; trust in the others stays.

    P' = (S' C + a) / T',   u' = 1 / T',   T' = sum S' + 1,   S' the sums of w y over the others
    """
    a, K = told_apart(annotations), len(annotations.labels)
    M = max(len(a.annotators), 1)
    key, pair = np.unique(a.item * M + a.annotator, return_inverse=True)
    item, who = np.divmod(key, M)
    now = likeliest(weighed.opinion)
    leader, p, u, changed = (
        np.zeros(len(key), int),
        *np.zeros((2, len(key))),
        np.zeros(len(key), bool),
    )
    for part in _parts(item, K):
        rows = np.flatnonzero((pair >= part.start) & (pair < part.stop))
        own = replace(a.rows(rows), item=pair[rows] - part.start, items=key[part])
        left = leave_one_out(own.sums(weighed.weight[rows]), item[part])
        total = left.sum(axis=1) + 1
        P = (left @ weighed.meaning + weighed.opinion.base_rate[item[part]]) / total[:, None]
        lead = now[item[part]]
        p[part], u[part] = P.max(axis=-1), 1 / total
        changed[part] = P[np.arange(len(P)), lead] < p[part] - _EQUAL
        leader[part] = np.where(changed[part], P.argmax(axis=-1), lead)
    return Without(item, who, pair, leader, np.minimum(p, 1), u, changed)


def _parts(item: Codes, width: int) -> Iterator[slice]:
    """Parts that are small enough to be held as rows of this width; no item is in two of them."""
    step = max(_AT_ONCE // max(width, 1), 1)
    start = 0
    while start < len(item):
        last = int(item[min(start + step, len(item)) - 1])
        stop = int(np.searchsorted(item, last, side="right"))
        yield slice(start, stop)
        start = stop
