"""Who answers higher, and who lower than the others, where labels have an order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slencodings.aggregate.agreement import judgments, weighted_mean
from slencodings.annotations import Annotations, leave_one_out, sums_by
from slencodings.opinion import Floats


class Severity(NamedTuple):
    """How far above the others annotators answer, in steps, (M,) each; below 0 is below them."""

    mean: Floats
    low: Floats
    high: Floats


def severity(annotations: Annotations, *, coverage: float = 0.95) -> Severity:
    """How many steps above the others on the same items each annotator answers, on average.

    d_mi = x_mi - mean of the others' x on i,   x the place of a label in `annotations.labels`

    The interval is that of a mean (Student's t over the items). NaN for who shares no item, and for
    the interval of who shares one.

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1, 1, 2, 2], "who": ["ann", "bob"] * 2, "stars": [5, 3, 4, 3]}
    >>> crowd = from_table(
    ...     table, item="item", annotator="who", label="stars", ordered=[1, 2, 3, 4, 5]
    ... )
    >>> severity(crowd).mean
    array([ 1.5, -1.5])
    """
    from scipy.special import stdtrit

    if not annotations.ordered:
        raise ValueError(
            "severity needs labels that have an order; these came without one. "
            "Give it when reading: from_table(..., ordered=['low', 'middle', 'high'])."
        )
    if not 0 < coverage < 1:
        raise ValueError(f"`coverage` must lie between 0 and 1; {coverage:g} came. 0.95 is usual.")
    judged, M = judgments(annotations).shared(), len(annotations.annotators)
    x = sums_by(judged.row, judged.value * judged.label, len(judged.item))
    d = x - leave_one_out(x, judged.item) / judged.peers
    n = np.bincount(judged.annotator, minlength=M)
    mean = weighted_mean(sums_by(judged.annotator, d, M), n)
    squares = sums_by(judged.annotator, (d - mean[judged.annotator]) ** 2, M)
    known = n > 1
    free = np.where(known, n - 1, 1)
    error = np.sqrt(squares / free / np.maximum(n, 1)) * stdtrit(free, (1 + coverage) / 2)
    error = np.where(known, error, np.nan)
    return Severity(mean, mean - error, mean + error)
