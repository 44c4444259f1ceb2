"""Whether confidence is earned: how often people are right at each level that they state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slencodings.annotations import Annotations, sums_by
from slencodings.annotators.intervals import interval
from slencodings.trust import Crowd


class Level(NamedTuple):
    """What stating a level of confidence comes to.

    Attributes
    ----------
    level : as stated
    annotations : how many on items with several
    accuracy, accuracy_low, accuracy_high : how often they are right, by what the crowd takes for
        true, and between which that lies; None where there are none
    worth_share : of what an annotation is worth at the level that is worth most
    """

    level: float
    annotations: int
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    worth_share: float


def describe_levels(annotations: Annotations, crowd: Crowd) -> list[Level]:
    """Each level that was learned, from the lowest; none if confidence was not stated."""
    a, L = annotations, len(crowd.levels)
    if not L:
        return []
    shared = (np.bincount(a.item, minlength=len(a.items)) > 1)[a.item]
    level = crowd.level_of(a)[shared]
    P = crowd.truth(a).probability[a.item]
    right = np.sum(P * a.vectors, axis=1)[shared]
    n = np.bincount(level, minlength=L)
    p = sums_by(level, right, L) / np.maximum(n, 1)
    low, high = interval(p, n.astype(float))
    known = [[x[k] if n[k] else None for k in range(L)] for x in (p, low, high)]
    return [
        Level(*row)
        for row in zip(crowd.levels.tolist(), n.tolist(), *known, crowd.share.tolist(), strict=True)
    ]
