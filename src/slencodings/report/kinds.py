"""What a report tells of labels with an order, of several at once, and of models that judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import krippendorff_alpha, severity
from slencodings.annotations import Annotations
from slencodings.kinds.multilabel import MultiLabel, set_alpha
from slencodings.kinds.ordered import at_least
from slencodings.opinion import Codes, Floats, credible_interval
from slencodings.panel import once_each, stated_confidence
from slencodings.panel.alternative import alternative_annotator_tests
from slencodings.panel.rows import stand_ins
from slencodings.report.names import NAME_LETTERS, shown
from slencodings.report.summary import Dot, KindTable
from slencodings.trust import Weighed


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
            "it beyond chance; open is what is less than 90% likely either way." + together,
            "axis": "",
            "dots": [],
            "heads": ["Label", "Yes, of all answers", "Items: likely yes", "Alpha", "Open"],
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
