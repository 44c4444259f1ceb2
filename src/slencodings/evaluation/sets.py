"""Whole sets of labels, where each label is a yes or no: how near what is predicted comes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.kinds.multilabel import SetScores, exact_match, jaccard, masi
from slencodings.opinion import Codes, Floats


def check_sets(a: Annotations, sets: Any) -> Codes:
    """Which questions belong together, (N,), checked."""
    of, N = np.asarray(sets), len(a.items)
    if of.shape != (N,) or of.dtype.kind not in "iu" or np.any(of < 0):
        raise ValueError(
            f"`sets` needs the place of the item that each of the {N} questions is about, ({N},) "
            f"whole numbers from 0; shape {of.shape} of {of.dtype} came. Of multi_label(...) it is "
            "`asked_of`."
        )
    if a.soft or len(a.labels) != 2:
        raise ValueError(
            "sets are made of answers no and yes, in this order; "
            f"{'soft labels' if a.soft else f'{len(a.labels)} labels'} came. "
            "multi_label(...) makes such questions."
        )
    return of.astype(np.intp)


def score_held_out(
    yes: Floats, a: Annotations, sets: Codes, counted: NDArray[np.bool_]
) -> SetScores:
    """Labels that are likelier than not by the others, against those that somebody chose.

    Parameters
    ----------
    yes : (R,), the chance of yes for each annotation, NaN where it was not predicted
    sets : (N,), which questions belong together
    counted : (R,), which annotations are scored
    """
    known = np.flatnonzero(counted & ~np.isnan(yes))
    order = np.argsort(sets, kind="stable")
    size = np.bincount(sets)
    place = np.empty(len(sets), dtype=np.intp)
    place[order] = np.arange(len(sets)) - np.repeat(np.cumsum(size) - size, size)
    item = a.item[known]
    row = np.unique(sets[item] * len(a.annotators) + a.annotator[known], return_inverse=True)[1]
    shape = int(row.max(initial=-1)) + 1, int(size.max(initial=0))
    chosen, guess = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    chosen[row, place[item]] = a.y[known] == 1
    guess[row, place[item]] = yes[known] > 0.5
    return SetScores(
        *(float(np.mean(score(chosen, guess))) for score in (jaccard, exact_match, masi))
    )
