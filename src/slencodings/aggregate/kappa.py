"""Cohen's kappa of annotators with their peers, for names and for labels that have an order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.agreement import (
    MAX_PAIRS,
    ONE,
    Judgments,
    judgments,
    pairs,
    weighted_mean,
)
from slencodings.annotations import Annotations, sums_by
from slencodings.choices import KappaWeights, check_word
from slencodings.opinion import Codes, Floats


def pairwise_kappa(
    annotations: Annotations, *, weights: KappaWeights | None = None, max_pairs: int = MAX_PAIRS
) -> Floats:
    """Each annotator's mean Cohen's kappa with their peers, (M,) (Hovy et al. 2013).

    kappa_ij = 1 - D_o / D_e on the items that i and j share, D_o the mean distance of what they say
    of one item and D_e that of labels drawn from all they say;   the mean over j weighs by items.

    Two labels are 1 apart if they differ; with `quadratic` weights (Cohen 1968), the square of the
    steps between them. Soft labels are drawn from: the mean of y_i . y_j is the agreement, 1 - D_o.

    Two who gave one and the same label throughout (D_e = 0) never disagreed: kappa is 1. NaN for
    those who share no item with anybody. Negative values stay: less agreement than by chance.
    Takes memory for the pairs of judgments of an item; pairs with an annotator who is seen once
    need none.

    Parameters
    ----------
    weights : "none" or "quadratic"; when absent, "quadratic" for annotations that are `ordered`

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1, 1, 2, 2, 3, 3, 4, 4], "who": ["ann", "bob"] * 4,
    ...          "label": [1, 1, 1, 1, 0, 0, 1, 0]}
    >>> pairwise_kappa(from_table(table, item="item", annotator="who", label="label"))
    array([0.5, 0.5])
    """
    if weights is None:
        weights = "quadratic" if annotations.ordered else "none"
    check_word("weights", weights, KappaWeights)
    M, K = len(annotations.annotators), len(annotations.labels)
    judged = judgments(annotations).shared()
    once = judged.once
    total, weight = _kappa_with_strangers(judged, once, M, K)

    seen = np.flatnonzero(~once).astype(np.int32 if len(once) < 2**31 else np.intp)
    left, right = pairs(
        judged.item[seen],
        max_pairs=max_pairs,
        instead="share_of_agreement and g_index need no pairs; or raise max_pairs.",
    )
    left, right = seen[left], seen[right]
    who = judged.annotator[left] * M + judged.annotator[right]
    both, of, n = np.unique(who, return_inverse=True, return_counts=True)
    distances = _squared_steps if weights == "quadratic" else _differences
    observed, expected = distances(judged, left, right, of, n, K)
    apart = expected > 1 - ONE
    kappa = np.where(apart, 1 - observed / np.where(apart, expected, 1), 1.0)
    for annotator in np.divmod(both, M):
        total += np.bincount(annotator, n * kappa, M)
        weight += np.bincount(annotator, n, M)
    return weighted_mean(total, weight)


def _differences(
    judged: Judgments, left: NDArray[Any], right: NDArray[Any], of: Codes, n: Codes, K: int
) -> tuple[Floats, Floats]:
    """How often two differ, and how often they would by chance, (B,) each.

    Of pairs of judgments of one item, `left` and `right` (P,), `of` (P,) says which two annotators
    gave them, who have `n` (B,).
    """
    B = len(n)
    at_left, vote_left = judged.votes_of(left)
    at_right, vote_right = judged.votes_of(right)
    same = judged.value[vote_left] * judged.look_up(right[at_left], judged.label[vote_left])
    # The labels that either gave, for each two annotators: nothing of size K x K.
    label_left = of[at_left] * K + judged.label[vote_left]
    label_right = of[at_right] * K + judged.label[vote_right]
    cells, cell = np.unique(np.concatenate([label_left, label_right]), return_inverse=True)
    a = np.bincount(cell[: len(label_left)], judged.value[vote_left], len(cells))
    b = np.bincount(cell[len(label_left) :], judged.value[vote_right], len(cells))
    p_o = np.bincount(of[at_left], same, B) / n
    p_e = np.bincount(cells // K, a * b, B) / n**2
    return 1 - p_o, 1 - p_e


def _squared_steps(
    judged: Judgments, left: NDArray[Any], right: NDArray[Any], of: Codes, n: Codes, K: int
) -> tuple[Floats, Floats]:
    """The mean squared steps between two, and what they would be by chance, (B,) each.

    E (X - Y)^2 = Var X + Var Y + (E X - E Y)^2, of one item and of all that two say
    """
    J, B = len(judged.item), len(n)
    mean = sums_by(judged.row, judged.value * judged.label, J)
    within = sums_by(judged.row, judged.value * (judged.label - mean[judged.row]) ** 2, J)

    def average(x: Floats) -> Floats:
        return sums_by(of, x, B) / n

    own = average(within[left] + within[right])
    observed = own + average((mean[left] - mean[right]) ** 2)
    a, b = average(mean[left]), average(mean[right])
    scatter = average((mean[left] - a[of]) ** 2 + (mean[right] - b[of]) ** 2)
    return observed, own + scatter + (a - b) ** 2


def _kappa_with_strangers(
    judged: Judgments, once: NDArray[np.bool_], M: int, K: int
) -> tuple[Floats, Floats]:
    """Sums over pairs that share one item only because one of the two is seen only there.

    Then p_o = p_e, so that kappa is 1 if both are sure of the same label and 0 if not: counts do.
    """
    sure = judged.value >= ONE
    row, key = judged.row[sure], judged.item[judged.row[sure]] * K + judged.label[sure]
    cell = np.unique(key, return_inverse=True)[1]
    same = np.where(once[row], np.bincount(cell)[cell] - 1.0, np.bincount(cell, once[row])[cell])
    strangers = np.bincount(judged.item, once)[judged.item]
    partners = np.where(once, judged.peers, strangers)
    return (
        np.bincount(judged.annotator[row], same, M).astype(float),
        np.bincount(judged.annotator, partners, M).astype(float),
    )
