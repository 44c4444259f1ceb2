"""Sums over all the others of a group."""

from __future__ import annotations

import numpy as np

from slencodings.opinion import Codes, Floats


def leave_one_out(value: Floats, group: Codes) -> Floats:
    """The sum of the other values of each one's group; values are not negative.

    Exact to rounding where one value is nearly all of its group, as `sums[group] - value` is not:
    the largest value is kept apart.
    """
    n = int(np.max(group, initial=-1)) + 1
    largest = np.zeros(n)
    np.maximum.at(largest, group, value)
    at = np.flatnonzero(value == largest[group])
    leader = np.zeros(n, dtype=np.intp)
    leader[group[at]] = at
    leader = leader[np.bincount(group, minlength=n) > 0]
    small = value.copy()
    small[leader] = 0
    rest = np.bincount(group, small, n)
    result = largest[group] + np.maximum(rest[group] - value, 0)
    result[leader] = rest[group[leader]]
    return result
