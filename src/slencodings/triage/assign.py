"""Who is to annotate what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats
from slencodings.triage.plan import counts


class Assignment(NamedTuple):
    """Who is to annotate what.

    Attributes
    ----------
    item, annotator : int arrays (A,), positions in `items` and `annotators`, sorted
    unassigned : int array (N,), planned annotations of each item that nobody is left to give
    """

    item: Codes
    annotator: Codes
    unassigned: Codes


def assign(
    annotations: Annotations, planned: ArrayLike, *, reliability: Any, capacity: Any = None
) -> Assignment:
    """Who gives the planned annotations: the most reliable first, nobody an item twice.

    From the most reliable annotator to the least, each takes up to their capacity of items they
    have not annotated, those first that have the fewest others to turn to. Nobody of reliability 0
    is asked. Nearly always the best sum of reliability; not always, as nobody swaps afterwards.

    Parameters
    ----------
    planned : int array (N,), further annotations of each item
    reliability : number, (M,), mapping or binomial opinions, of the annotators
    capacity : further annotations of each annotator at most, a number or (M,). If absent, work is
        spread: all take an equal share, and equal shares again of what is left

    Examples
    --------
    >>> from slencodings import from_table
    >>> rows = {"item": ["p", "p", "q"], "who": ["ann", "bob", "ann"], "label": [1, 0, 1]}
    >>> crowd = from_table(rows, item="item", annotator="who", label="label")
    >>> assign(crowd, [1, 1], reliability=[0.9, 0.6])
    Assignment(item=array([1]), annotator=array([1]), unassigned=array([1, 0]))
    """
    N, M = len(annotations.items), len(annotations.annotators)
    wanted = counts("planned", planned, N, "item")
    active = np.flatnonzero(wanted)
    left = wanted[active]
    r = per_annotator(annotations, reliability)
    order: list[int] = np.argsort(-r, kind="stable")[: np.count_nonzero(r)].tolist()
    done, who = pairs(annotations)
    done, who = np.searchsorted(active, done[wanted[done] > 0]), who[wanted[done] > 0]
    met: list[Codes] = np.split(done, np.searchsorted(who, np.arange(1, M + 1)))[:M]
    known = [len(items) for items in met]
    share = -(-int(left.sum()) // max(len(order), 1))
    room = np.full(M, share) if capacity is None else counts("capacity", capacity, M, "annotator")
    before = None
    while left.any() and left.sum() != before and (before is None or capacity is None):
        before = left.sum()
        seen = np.concatenate([done[:0], *(met[m] for m in order)])
        later = len(order) - np.bincount(seen, minlength=len(active))
        for m in order:
            can = np.ones(len(active), dtype=bool)
            can[met[m]] = False
            later -= can  # who comes after m
            open_ = np.flatnonzero(can & (left > 0))
            n = min(int(room[m]), len(open_))
            # The least to spare first; a unique key makes ties go by order.
            spare = (later - left)[open_] * len(open_) + np.arange(len(open_))
            chosen = open_[np.argpartition(spare, n - 1)[:n]] if n else open_[:0]
            left[chosen] -= 1
            met[m] = np.concatenate([met[m], chosen])
    new: list[Codes] = [items[n:] for items, n in zip(met, known, strict=True)]
    item = active[np.concatenate([np.empty(0, dtype=np.intp), *new])]
    annotator = np.repeat(np.arange(M), [len(items) for items in new])
    rows = np.lexsort((annotator, item))
    unassigned = np.zeros(N, dtype=np.intp)
    unassigned[active] = left
    return Assignment(item[rows], annotator[rows], unassigned)


def pairs(annotations: Annotations) -> tuple[Codes, Codes]:
    """The items and annotators who met, each pair once, sorted by annotator."""
    N = max(len(annotations.items), 1)
    met = np.unique(annotations.annotator * N + annotations.item)
    return met % N, met // N


def not_yet(r: Floats, item: Codes, annotator: Codes, size: int) -> Codes:
    """How many annotators of any use each item has not met yet."""
    return np.count_nonzero(r) - np.bincount(item[r[annotator] > 0], minlength=size)


def per_annotator(annotations: Annotations, reliability: Any) -> Floats:
    """Reliability as one number per annotator (M,), checked as `per_annotation` does."""
    everybody = np.arange(len(annotations.annotators))
    once = replace(annotations, item=everybody, annotator=everybody, reliability=None)
    return once.per_annotation(reliability)
