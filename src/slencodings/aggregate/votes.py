"""Counting votes: every annotation counts the same, however unsure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.result import Aggregate
from slencodings.annotations import Annotations
from slencodings.choices import Ties, check_word
from slencodings.opinion import Floats


def soft_vote(annotations: Annotations) -> Aggregate:
    """The share of votes that each label got.

    P_ik = sum_q y_qk / n_i;   uniform where nobody voted (`details["unlabelled"]` counts those)

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": ["p", "p", "p", "q"], "label": ["yes", "yes", "no", None]}
    >>> soft_vote(from_table(table, item="item", label="label")).probability
    array([[0.33333333, 0.66666667],
           [0.5       , 0.5       ]])
    """
    votes, unlabelled = votes_or_one_each(annotations)
    share = votes / np.sum(votes, axis=-1, keepdims=True)
    return Aggregate(share, None, {"unlabelled": int(unlabelled.sum())})


def majority_vote(
    annotations: Annotations,
    *,
    ties: Ties = "first",
    rng: np.random.Generator | None = None,
) -> Aggregate:
    """The label with the most votes, one-hot.

    P_ik = 1 for k = argmax_k sum_q y_qk, so that soft labels are added up before one wins (the
    paper's MV). Uniform where nobody voted. `details` counts "ties" and "unlabelled" items.

    Parameters
    ----------
    ties : what to do where labels share the lead: take the "first" in the order of
        `annotations.labels`, one at "random", or keep equal shares of them, "soft"
    rng : np.random.Generator, for random ties

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": ["p", "p", "q"], "label": ["yes", "no", "yes"]}
    >>> majority_vote(from_table(table, item="item", label="label"), ties="soft").probability
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    check_word("ties", ties, Ties)
    if ties == "random" and not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"ties='random' needs a generator to draw from; rng={rng!r} came. "
            "Pass rng=np.random.default_rng(0)."
        )
    votes, unlabelled = votes_or_one_each(annotations)
    leads = leaders(votes)
    tied = (np.sum(leads, axis=-1) > 1) & ~unlabelled
    probability = leads / np.sum(leads, axis=-1, keepdims=True)
    if ties != "soft":
        lot = np.zeros(leads.shape)
        if rng is not None and ties == "random":
            lot[tied] = rng.random((int(tied.sum()), leads.shape[1]))
        winner = np.argmax(np.where(leads, lot, -1), axis=-1)
        probability[tied] = np.eye(leads.shape[1])[winner[tied]]
    details = {"ties": int(tied.sum()), "unlabelled": int(unlabelled.sum())}
    return Aggregate(probability, None, details)


def leaders(votes: Floats) -> NDArray[np.bool_]:
    """Where the labels are that have the most votes of an item, (N, K)."""
    # Votes add up with rounding, which must not decide who wins.
    return votes >= np.max(votes, axis=-1, keepdims=True) * (1 - 1e-12)


def votes_or_one_each(annotations: Annotations) -> tuple[Floats, NDArray[np.bool_]]:
    """Votes (N, K), one for every label where there are none, and where that is."""
    votes = annotations.sums()
    unlabelled = np.sum(votes, axis=-1) == 0
    votes[unlabelled] = 1
    return votes, unlabelled
