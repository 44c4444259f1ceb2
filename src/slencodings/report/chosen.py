"""Which items a report lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats

# So many are listed that a page stays below 3 MB: items, annotations in all and of one item.
MOST_ITEMS, MOST_VOTES, MOST_EACH = 2_000, 15_000, 30


class Chosen(NamedTuple):
    """The items that are listed, in order, and how many of them were drawn at random."""

    items: Codes
    drawn: int

    @property
    def place(self) -> dict[int, int]:
        """Where each of them is in the list."""
        return {i: n for n, i in enumerate(self.items.tolist())}


def choose(
    a: Annotations, u: Floats, conflict: Floats, seed: int, first: Codes | None = None
) -> Chosen:
    """Which items to list, the most uncertain first.

    All if there is room; else those that must be, `first`, a third by uncertainty, a third by
    conflict, and the rest at random.
    """
    N = len(u)
    by_doubt, by_conflict = (np.argsort(-x, kind="stable") for x in (u, conflict))
    n = np.minimum(np.bincount(a.item, minlength=N), MOST_EACH)
    if N <= MOST_ITEMS and n.sum() <= MOST_VOTES:
        return Chosen(by_doubt, 0)
    at_random = np.random.default_rng(seed).permutation(N)
    third, room = MOST_ITEMS // 3, MOST_VOTES // 3
    taken, drawn = np.zeros(N, dtype=bool), 0
    if first is not None:
        taken[first] = True
    for queue in (by_doubt, by_conflict, at_random):
        last = queue is at_random
        size = MOST_ITEMS - int(taken.sum()) if last else third
        cost = MOST_VOTES - int(n[taken].sum()) if last else room
        free = queue[~taken[queue]][:size]
        free = free[np.cumsum(n[free]) <= cost]
        taken[free] = True
        drawn = len(free)
    return Chosen(by_doubt[taken[by_doubt]], drawn)
