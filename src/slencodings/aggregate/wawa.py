"""Voting twice: annotators who agree with the vote count more in the next one."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.em import Ballots, Floats, ballots, check_steps
from slencodings.aggregate.result import Aggregate
from slencodings.annotations import Annotations

Ties = Literal["soft", "first"]


def wawa(
    annotations: Annotations, *, ties: Ties = "soft", use_confidence: bool = True
) -> Aggregate:
    """Weight votes by their annotator's agreement with the majority (worker agreement, Wawa).

    r_m = sum_q w_q sum_k y_qk V_ik / sum_q w_q,   P_ik ~ sum_q w_q r_m y_qk,   V the majority vote

    Where all who voted on an item have r = 0, their votes count the same; where nobody voted, P is
    uniform (`details["unlabelled"]` counts those). An annotator without annotations has r = 1 / K.

    Parameters
    ----------
    ties : labels that share the lead are each right in part, "soft", or the "first" of
        `annotations.labels` is right
    use_confidence : w = 1 - uncertainty, else w = 1

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 1]}
    >>> wawa(from_table(said, item="item", annotator="who", label="label")).probability
    array([[0.8, 0.2],
           [0. , 1. ]])
    """
    _check_ties(ties)
    said = ballots(annotations, use_confidence=use_confidence)
    r = _agreement(said, _leaders(_votes(said, np.ones(said.shape[1]))[0], ties))
    votes, unlabelled = _votes(said, r)
    share = votes / np.sum(votes, axis=-1, keepdims=True)
    return Aggregate(share, r, {"converged": True, "unlabelled": unlabelled})


def zero_based_skill(
    annotations: Annotations,
    *,
    n_iter: int = 100,
    tol: float = 1e-9,
    ties: Ties = "soft",
    use_confidence: bool = True,
) -> Aggregate:
    """Repeat the weighted vote until annotators' weights are their agreement with it.

    r += h (agreement with the vote weighted by r - r),   h = 1, halved at every 20th iteration

    It starts at r = 1 / K + 1e-5 and stops after `n_iter` iterations, or where no weight is more
    than `tol` off. Ties, confidence and votes that all weigh nothing are as in `wawa`; `details`
    also has converged and iterations.

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 1]}
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> zero_based_skill(crowd).reliability
    array([1. , 1. , 0.5])
    """
    check_steps(n_iter, tol)
    _check_ties(ties)
    said = ballots(annotations, use_confidence=use_confidence)
    _, M, K = said.shape
    r = np.full(M, 1 / K + 1e-5)
    step, iterations, converged = 1.0, 0, False
    while iterations < n_iter and not converged:
        iterations += 1
        if iterations % 20 == 0:
            step /= 2
        off = _agreement(said, _leaders(_votes(said, r)[0], ties)) - r
        converged = bool(np.all(np.abs(off) <= tol))
        r = r + step * off
    votes, unlabelled = _votes(said, r)
    share = votes / np.sum(votes, axis=-1, keepdims=True)
    details = {"converged": converged, "iterations": iterations, "unlabelled": unlabelled}
    return Aggregate(share, np.clip(r, 0, 1), details)


def _votes(said: Ballots, r: Floats) -> tuple[Floats, int]:
    """Weighted votes (N, K), one for every label where there are none, and on how many items."""
    votes = said.by_choice(said.weight * r[said.annotator])
    nothing = np.sum(votes, axis=-1) == 0
    if not nothing.any():
        return votes, 0
    votes[nothing] = said.by_choice(said.weight)[nothing]
    unlabelled = np.sum(votes, axis=-1) == 0
    votes[unlabelled] = 1
    return votes, int(unlabelled.sum())


def _leaders(votes: Floats, ties: Ties) -> Floats:
    """What wins each item, shared where labels tie."""
    if ties == "first":
        return np.eye(votes.shape[1])[np.argmax(_lead(votes), axis=-1)]
    leads = _lead(votes)
    return leads / np.sum(leads, axis=-1, keepdims=True)


def _lead(votes: Floats) -> NDArray[np.bool_]:
    # Weights add up with rounding, which must not decide who wins.
    return votes >= np.max(votes, axis=-1, keepdims=True) * (1 - 1e-12)


def _agreement(said: Ballots, winners: Floats) -> Floats:
    """Each annotator's share of votes for the winner (M,)."""
    _, M, K = said.shape
    agreed = said.by_annotator(said.weight * winners.ravel()[said.choice])
    given = said.by_annotator(said.weight)
    share = np.divide(agreed, given, out=np.full(M, 1 / K), where=given > 0)
    return np.clip(share, 0, 1)


def _check_ties(ties: str) -> None:
    if ties not in ("soft", "first"):
        raise ValueError(f"`ties` must be 'soft' or 'first'; {ties!r} came.")
