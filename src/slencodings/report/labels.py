"""The labels of a report: how often each was given, and which are confused with which.

And what is told of labels with an order, of several at once, and of models that judge.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import krippendorff_alpha, severity
from slencodings.aggregate.agreement import Judgments, judgments
from slencodings.annotations import Annotations
from slencodings.kinds.multilabel import MultiLabel, set_alpha
from slencodings.kinds.ordered import at_least
from slencodings.opinion import Codes, Floats, Opinion, credible_interval
from slencodings.panel import once_each, stated_confidence
from slencodings.panel.alternative import alternative_annotator_tests
from slencodings.panel.rows import stand_ins
from slencodings.report.names import NAME_LETTERS, shown
from slencodings.report.summary import Confused, ConfusedPair, Dot, KindTable, LabelShares, Points
from slencodings.report.without import likeliest, told_apart
from slencodings.trust import Weighed

# Labels in a picture, the pairs that are named, and points in a triangle.
MOST_DRAWN, _MOST_NAMED, _MOST_POINTS = 15, 10, 2_000
_LETTERS = 60


def describe_labels(
    annotations: Annotations, weighed: Weighed, seed: int, kinds: list[KindTable]
) -> LabelShares:
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


def describe_order(a: Annotations, weighed: Weighed) -> list[KindTable]:
    """How severe people are, and how many items reach each label."""
    return [*_severity(a), _at_least(a, weighed)]


def _severity(a: Annotations) -> list[KindTable]:
    """Who answers higher than the others; nothing where nobody can be compared."""
    steps = severity(a)
    known = np.flatnonzero(~np.isnan(steps.mean))
    if not a.named or len(known) < 2:
        return []
    order = known[np.argsort(-steps.mean[known], kind="stable")]
    names = shown([a.annotators[m] for m in order], NAME_LETTERS)
    dots: list[Dot] = []
    for m, name in zip(order, names, strict=True):
        ends = (float(x) for x in (steps.mean[m], steps.low[m], steps.high[m]))
        value, low, high = (None if np.isnan(x) else round(x, 4) for x in ends)
        dots.append({"name": name, "value": value or 0.0, "low": low, "high": high})
    return [
        {
            "name": "severity",
            "title": "How many steps above the others",
            "caption": "Who answers higher than others on the same items stands right of 0, "
            "who answers lower left of it; the lines hold 95 of 100.",
            "axis": "steps above the others; 0 is as they do",
            "dots": dots,
            "heads": ["Annotator", "Steps above", "95% interval"],
            "rows": [
                [
                    dot["name"],
                    f"{dot['value']:+.2f}",
                    "–" if dot["low"] is None else f"{dot['low']:+.2f} to {dot['high']:+.2f}",
                ]
                for dot in dots
            ],
        }
    ]


def _at_least(a: Annotations, weighed: Weighed) -> KindTable:
    """How many items would get each label or a higher one."""
    upwards = at_least(weighed.votes)
    low = credible_interval(upwards)[0][..., 0]
    chance = np.asarray(upwards.probability)[..., 0]
    names = shown(a.labels.tolist(), NAME_LETTERS)[1:]
    return {
        "name": "at-least",
        "title": "How many items reach each label",
        "caption": "Of all items, how many would get this label or a higher one from the next "
        "person, on average; and how many from more than half of all people for sure (97.5%).",
        "axis": "",
        "dots": [],
        "heads": ["At least", "Share of items", "More than half of people, for sure"],
        "rows": [
            [name, f"{chance[:, k].mean():.0%}", f"{int(np.sum(low[:, k] > 0.5)):,}"]
            for k, name in enumerate(names)
        ]
        if len(chance)
        else [],
    }


def describe_sets(
    a: Annotations, weighed: Weighed, sets: Codes, questions: Sequence[str]
) -> list[KindTable]:
    """Each label that could be chosen: how often it was, how far people agree, what is open.

    Parameters
    ----------
    sets : (N,), which questions are about one item
    questions : (N,), the label that each question asks
    """
    names, label = np.unique(np.asarray(questions, dtype=str), return_inverse=True)
    P = np.asarray(weighed.truth.probability)[:, -1]
    true, vote = "likely true", "the likeliest vote"
    yes, sure = (true, "true") if weighed.crowd.model is not None else (vote, "voted")
    rows: list[list[str]] = []
    for k, name in enumerate(shown(names.tolist(), NAME_LETTERS)):
        mine = label == k
        some = a.rows(mine[a.item])
        several = bool(np.any(np.bincount(some.item, minlength=1) > 1))
        yes = float(np.mean(some.vectors[:, -1])) if len(some.item) else 0.0
        doubtful = int(np.sum(np.abs(P[mine] - 0.5) < 0.4))
        alpha = f"{krippendorff_alpha(some).alpha:.2f}" if several else "–"
        rows.append([name, f"{yes:.0%}", f"{int(np.sum(P[mine] > 0.5)):,}", alpha, f"{doubtful:,}"])
    alpha_of_sets = _set_alpha(a, sets, label, len(names))
    together = ""
    if alpha_of_sets is not None:
        of_sets = "(MASI, which counts sets that overlap in part)"
        together = f" Of whole sets alpha is {alpha_of_sets:.2f} {of_sets}."
    return [
        {
            "name": "each-label",
            "title": "Each label",
            "caption": "Every label is a question with a yes or no. Alpha is the agreement about "
            f"it beyond chance; open is what is less than 90% likely to be {sure} either "
            "way." + together,
            "axis": "",
            "dots": [],
            "heads": ["Label", "Yes, of all answers", f"Items: yes is {yes}", "Alpha", "Open"],
            "rows": rows,
        }
    ]


def _set_alpha(a: Annotations, sets: Codes, label: Codes, K: int) -> float | None:
    """Of whole sets, where every label was asked of every item and two answered for one."""
    N = int(sets.max(initial=-1)) + 1
    place = sets * K + label
    if len(np.unique(place)) != len(place) or len(place) != N * K:
        return None
    crowd = MultiLabel(replace(a, item=place[a.item]), np.arange(N), np.arange(K))
    answers = np.bincount(crowd.sets.item, minlength=1)
    return set_alpha(crowd) if np.any(answers > 1) else None


def describe_sources(
    a: Annotations, people: NDArray[np.bool_], sources: Mapping[str, Floats], seed: int
) -> KindTable | None:
    """Whether models are as right as each of their kinds of confidence says."""
    found = stated_confidence(a, people, sources=sources, seed=seed)
    if not found:
        return None
    judges = list(dict.fromkeys(row.judge for row in found))
    name = dict(zip(judges, shown(judges, NAME_LETTERS), strict=True))
    return {
        "name": "sources",
        "title": "Confidence of models, by what it is read from",
        "caption": "Stated is the mean of it, earned how often people say the same as the model "
        "on the same items. Sorts is how likely people agree more with the surer of two answers: "
        "0.5 if this confidence tells nothing.",
        "axis": "",
        "dots": [],
        "heads": ["Model", "Read from", "Answers", "Stated", "Earned", "Too sure by", "Sorts"],
        "rows": [
            [
                name[row.judge],
                row.source,
                f"{row.answers:,}",
                f"{row.stated:.2f}",
                f"{row.earned:.2f}",
                f"{row.overconfidence:+.2f}"
                + _interval(row.overconfidence_low, row.overconfidence_high),
                "–" if row.sorts is None else f"{row.sorts:.2f}",
            ]
            for row in found
        ],
    }


def who_may_stand_in(a: Annotations, people: NDArray[np.bool_]) -> list[str]:
    """What the alternative annotator test says of models; nothing where it has too few items."""
    tests = alternative_annotator_tests(once_each(a)[0], people)
    return [stand_ins(tests)] if tests else []


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:+.2f} to {high:+.2f})"
