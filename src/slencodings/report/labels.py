"""The labels of a report: how often each was given, and which are confused with which."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from slencodings.aggregate.agreement import Judgments, judgments
from slencodings.annotations import Annotations
from slencodings.opinion import Floats, Opinion
from slencodings.report.names import shown
from slencodings.report.summary import Confused, ConfusedPair, KindTable, Labels, Points
from slencodings.report.without import likeliest, told_apart
from slencodings.trust import Weighed

# Labels in a picture, the pairs that are named, and points in a triangle.
MOST_DRAWN, _MOST_NAMED, _MOST_POINTS = 15, 10, 2_000
_LETTERS = 60


def describe_labels(
    annotations: Annotations, weighed: Weighed, seed: int, kinds: list[KindTable]
) -> Labels:
    """Shares, confusion, and where the items lie between two or three labels."""
    a, K = annotations, len(annotations.labels)
    names = shown(a.labels.tolist(), _LETTERS)
    given = a.y.sum(axis=0) if a.soft else np.bincount(a.y, minlength=K)
    lead = np.bincount(likeliest(weighed.truth), minlength=K)
    drawn = np.sort(np.argsort(-given, kind="stable")[:MOST_DRAWN])
    times = times_confused(judgments(told_apart(a)).shared(), K)
    total = times.sum(axis=1)
    share = times / np.where(total > 0, total, 1)[:, None]
    confused: Confused | None = None
    if total.any():
        confused = {
            "labels": drawn.tolist(),
            "share": [
                [round(float(share[j, k]), 4) if total[j] > 0 else None for k in drawn]
                for j in drawn
            ],
            "pairs": _pairs(times, total),
        }
    return {
        "names": names,
        "given": [round(float(n), 4) for n in given],
        "leading": lead.tolist(),
        "drawn": drawn.tolist(),
        "confused": confused,
        "points": _points(weighed.votes, seed) if K in (2, 3) else None,
        "kinds": kinds,
    }


def times_confused(judged: Judgments, K: int) -> Floats:
    """How often one says a label (row) and a peer on the same item another (column), (K, K).

    times_jk = sum over judgments m of y_mj x (mean of the peers' y)_k,   symmetric
    """
    from scipy.sparse import csr_array

    J = len(judged.item)
    if not J:
        return np.zeros((K, K))
    y = csr_array((judged.value, (judged.row, judged.label)), shape=(J, K))
    of, peers = np.unique(judged.item, return_inverse=True)[1], 1 / judged.peers
    on_item = csr_array((np.ones(J), (of, np.arange(J))))
    root = np.sqrt(peers)[judged.row] * judged.value
    each = csr_array((root, (judged.row, judged.label)), shape=(J, K))
    sums = on_item @ y
    weighted = csr_array((peers, (of, np.arange(J)))) @ y
    # Nobody is their own peer.
    return (weighted.T @ sums - each.T @ each).toarray()


def _pairs(times: Floats, total: Floats) -> list[ConfusedPair]:
    """The labels that are confused most: of all times either was said, how often the other was."""
    j, k = np.triu_indices(len(times), 1)
    n = times[j, k]
    order = np.argsort(-np.round(n, 9), kind="stable")[:_MOST_NAMED]
    return [
        {
            "labels": [int(j[q]), int(k[q])],
            "times": round(float(n[q]), 2),
            "share": round(float(2 * n[q] / (total[j[q]] + total[k[q]])), 4),
        }
        for q in order
        if n[q] > 1e-9
    ]


def _points(opinion: Opinion, seed: int) -> Points:
    """Where items lie: between two labels and not knowing, or between three labels.

    Corners are (0, 0), (1, 0) and (1/2, sqrt(3)/2); the weights of an item are (b_1, b_2, u) or P.
    """
    b, u = np.asarray(opinion.belief), np.asarray(opinion.uncertainty)
    two = b.shape[1] == 2
    weights = np.concatenate([b, u[:, None]], axis=1) if two else np.asarray(opinion.probability)
    N = len(weights)
    some = np.arange(N)
    if N > _MOST_POINTS:
        some = np.sort(np.random.default_rng(seed).choice(N, _MOST_POINTS, replace=False))
    corners = np.asarray([[0, 0], [1, 0], [0.5, math.sqrt(3) / 2]])
    rounded: list[list[float]] = np.round(weights[some], 3).tolist()
    spots = Counter(map(tuple, rounded))
    places = np.asarray(list(spots), dtype=float).reshape(-1, 3) @ corners
    return {
        "of": int(N),
        "drawn": len(some),
        "points": [
            [round(x, 4), round(y, 4), n]
            for (x, y), n in zip(places.tolist(), spots.values(), strict=True)
        ],
    }
