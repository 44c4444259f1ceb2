"""Voting twice: annotators who agree with the vote count more in the next one."""

from __future__ import annotations

import numpy as np

from slencodings.aggregate.em import Ballots, ballots_of, check_steps
from slencodings.aggregate.result import Aggregate
from slencodings.aggregate.votes import leaders
from slencodings.annotations import Annotations
from slencodings.choices import FixedTies, check_word
from slencodings.opinion import Floats


def wawa(
    annotations: Annotations, *, ties: FixedTies = "soft", use_confidence: bool = True
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
    >>> table = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 1]}
    >>> wawa(from_table(table, item="item", annotator="who", label="label")).probability
    array([[0.8, 0.2],
           [0. , 1. ]])
    """
    check_word("ties", ties, FixedTies)
    ballots = ballots_of(annotations, use_confidence=use_confidence)
    r = _agreement(ballots, _winners(_weighted_votes(ballots, np.ones(ballots.shape[1]))[0], ties))
    votes, unlabelled = _weighted_votes(ballots, r)
    share = votes / np.sum(votes, axis=-1, keepdims=True)
    return Aggregate(share, r, {"converged": True, "unlabelled": unlabelled})


def zero_based_skill(
    annotations: Annotations,
    *,
    n_iter: int = 100,
    tol: float = 1e-9,
    ties: FixedTies = "soft",
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
    >>> table = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 1]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> zero_based_skill(crowd).reliability
    array([1. , 1. , 0.5])
    """
    check_steps(n_iter, tol)
    check_word("ties", ties, FixedTies)
    ballots = ballots_of(annotations, use_confidence=use_confidence)
    _, M, K = ballots.shape
    r = np.full(M, 1 / K + 1e-5)
    step, iterations, converged = 1.0, 0, False
    while iterations < n_iter and not converged:
        iterations += 1
        if iterations % 20 == 0:
            step /= 2
        off = _agreement(ballots, _winners(_weighted_votes(ballots, r)[0], ties)) - r
        converged = bool(np.all(np.abs(off) <= tol))
        r = r + step * off
    votes, unlabelled = _weighted_votes(ballots, r)
    share = votes / np.sum(votes, axis=-1, keepdims=True)
    details = {"converged": converged, "iterations": iterations, "unlabelled": unlabelled}
    return Aggregate(share, np.clip(r, 0, 1), details)


def _weighted_votes(ballots: Ballots, r: Floats) -> tuple[Floats, int]:
    """Weighted votes (N, K), one for every label where there are none, and on how many items."""
    votes = ballots.by_choice(ballots.weight * r[ballots.annotator])
    nothing = np.sum(votes, axis=-1) == 0
    if not nothing.any():
        return votes, 0
    votes[nothing] = ballots.by_choice(ballots.weight)[nothing]
    unlabelled = np.sum(votes, axis=-1) == 0
    votes[unlabelled] = 1
    return votes, int(unlabelled.sum())


def _winners(votes: Floats, ties: FixedTies) -> Floats:
    """What wins each item, shared where labels tie."""
    leads = leaders(votes)
    if ties == "first":
        return np.eye(votes.shape[1])[np.argmax(leads, axis=-1)]
    return leads / np.sum(leads, axis=-1, keepdims=True)


def _agreement(ballots: Ballots, winners: Floats) -> Floats:
    """Each annotator's share of votes for the winner (M,)."""
    _, M, K = ballots.shape
    agreed = ballots.by_annotator(ballots.weight * winners.ravel()[ballots.choice])
    given = ballots.by_annotator(ballots.weight)
    share = np.divide(agreed, given, out=np.full(M, 1 / K), where=given > 0)
    return np.clip(share, 0, 1)
