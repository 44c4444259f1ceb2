"""Whole sets of labels, where each label is a yes or no: how near what is predicted comes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.agreement import spread
from slencodings.annotations import Annotations
from slencodings.kinds.multilabel import SetScores, compare_sets
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
    return compare_sets(*_by_set(a.y[known] == 1, yes[known] > 0.5, a, sets, known))


def score_questions(
    yes: Floats, a: Annotations, sets: Codes, gold: Codes
) -> dict[str, SetScores | None]:
    """Labels that are likelier than not against those that people chose, and against the truth.

    Parameters
    ----------
    yes : (N,), the chance of yes to each question
    gold : (N,), whether yes is true, -1 where nobody knows; of an item whole, or not at all
    """
    every = np.arange(len(a.item))
    chosen = _by_set(a.y == 1, yes[a.item] > 0.5, a, sets, every) if len(every) else None
    half = np.zeros(int(sets.max(initial=-1)) + 1, dtype=bool)
    half[sets[gold < 0]] = True
    known = np.flatnonzero(~half[sets])
    place = _places(sets)
    shape = len(half), int(place.max(initial=-1)) + 1
    truth, guess = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    truth[sets[known], place[known]] = gold[known] == 1
    guess[sets[known], place[known]] = yes[known] > 0.5
    there = np.unique(sets[known])
    return {
        "crowd": None if chosen is None else compare_sets(*chosen),
        "gold": compare_sets(truth[there], guess[there]) if len(there) else None,
    }


def _places(sets: Codes) -> Codes:
    """The place of each question among those of its item, (N,), in their order."""
    order = np.argsort(sets, kind="stable")
    place = np.empty(len(sets), dtype=np.intp)
    place[order] = spread(np.bincount(sets))[1]
    return place


def _by_set(
    yes: NDArray[np.bool_], guess: NDArray[np.bool_], a: Annotations, sets: Codes, rows: Codes
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """What each annotator chose of each item, and what was guessed, a row each."""
    place, item = _places(sets), a.item[rows]
    row = np.unique(sets[item] * len(a.annotators) + a.annotator[rows], return_inverse=True)[1]
    shape = int(row.max(initial=-1)) + 1, int(place.max(initial=-1)) + 1
    chosen, guessed = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    chosen[row, place[item]], guessed[row, place[item]] = yes, guess
    return chosen, guessed
