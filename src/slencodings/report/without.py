"""What each item's opinions would be without one of those who annotated it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, leave_one_out, sums_by
from slencodings.opinion import Codes, Floats, Opinion
from slencodings.trust import Weighed
from slencodings.trust.crowd import Evidence

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
    leader, probability : the label that is likeliest true then, and how likely
    uncertainty : of what people would say then
    changed : whether the label that is likeliest true now is not any more
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
    """What each item's opinions would be without each annotator; what is known of them stays."""
    a, K = told_apart(annotations), len(annotations.labels)
    M = max(len(a.annotators), 1)
    key, pair = np.unique(a.item * M + a.annotator, return_inverse=True)
    item, who = np.divmod(key, M)
    now = likeliest(weighed.truth)
    leader, p, u, changed = (
        np.zeros(len(key), int),
        *np.zeros((2, len(key))),
        np.zeros(len(key), bool),
    )
    for part in _parts(item, K):
        rows = np.flatnonzero((pair >= part.start) & (pair < part.stop))
        left = _left(annotations, weighed, rows, pair[rows] - part.start, item[part])
        P, lead = weighed.crowd.truth_of(left).probability, now[item[part]]
        p[part], u[part] = P.max(axis=-1), weighed.crowd.votes_of(left).uncertainty
        changed[part] = P[np.arange(len(P)), lead] < p[part] - _EQUAL
        leader[part] = np.where(changed[part], P.argmax(axis=-1), lead)
    return Without(item, who, pair, leader, np.minimum(p, 1), u, changed)


def _left(
    annotations: Annotations, weighed: Weighed, rows: Codes, pair: Codes, item: Codes
) -> Evidence:
    """What the others add up to for each pair, (P, K), from the rows of the items of these pairs.

    Everything that evidence holds is a sum over annotations, so one pair is left out of each.
    """
    some, P = annotations.rows(rows), len(item)
    own = replace(some, item=pair, items=item)
    each, left = weighed.crowd.log_likelihoods(some), None
    if each is not None:
        summed = np.stack([sums_by(pair, -x, P) for x in each.T], axis=1)
        left = -leave_one_out(summed, item)
    n = np.bincount(pair, minlength=P).astype(float)
    votes = leave_one_out(own.sums(weighed.weight[rows]), item)
    return Evidence(votes, left, leave_one_out(n, item))


def _parts(item: Codes, width: int) -> Iterator[slice]:
    """Parts that are small enough to be held as rows of this width; no item is in two of them."""
    step = max(_AT_ONCE // max(width, 1), 1)
    start = 0
    while start < len(item):
        last = int(item[min(start + step, len(item)) - 1])
        stop = int(np.searchsorted(item, last, side="right"))
        yield slice(start, stop)
        start = stop
