"""All that a report says, as plain numbers and text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from slencodings import metrics
from slencodings.aggregate import krippendorff_alpha, soft_vote
from slencodings.annotations import Annotations
from slencodings.annotators.intervals import interval
from slencodings.evaluation import compare
from slencodings.evaluation.measure import as_truth
from slencodings.evaluation.methods import well_known
from slencodings.evaluation.predicted import log_loss
from slencodings.evaluation.rows import Row
from slencodings.evaluation.sets import check_sets
from slencodings.evaluation.text import lessons
from slencodings.opinion import Floats
from slencodings.report.items import ItemColumns, describe_items
from slencodings.report.labels import (
    describe_labels,
    describe_order,
    describe_sets,
    describe_sources,
    who_may_stand_in,
)
from slencodings.report.names import shown
from slencodings.report.people import describe_people
from slencodings.report.summary import (
    Compared,
    EncodingScore,
    Glance,
    Histogram,
    Kind,
    Scored,
    Summary,
)
from slencodings.report.todo import Todo, choose, describe_next, find_todo
from slencodings.report.without import without_each
from slencodings.triage.status import CONFLICT, LEAST_PROBABILITY, LEAST_VOTES, Limits
from slencodings.trust import Weighed, weigh
from slencodings.trust.learn_crowd import scored_annotators

Progress = Callable[[str, int, int], None]

# Larger crowds are compared on a sample of their items; smaller ones have nothing to hold out.
MOST_COMPARED, FEWEST_COMPARED = 20_000, 10
# What people confuse with what takes the square of the labels to learn.
_MOST_LABELS = 20
_RESAMPLES = 300
_BINS = 20


def summarise(
    annotations: Annotations,
    *,
    reliability: Any = None,
    text: tuple[str, Sequence[Any]] | None = None,
    fields: Mapping[str, Sequence[Any]] | None = None,
    gold: Any = None,
    scored: Any = None,
    times: NDArray[Any] | None = None,
    sources: Mapping[str, Floats] | None = None,
    sets: Any = None,
    questions: Sequence[str] | None = None,
    least_votes: int = LEAST_VOTES,
    least_probability: float = LEAST_PROBABILITY,
    conflict: float = CONFLICT,
    seed: int = 0,
    name: str = "",
    made: dict[str, str] | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Summary:
    """Collect what there is to see of a crowd: a dict that JSON can hold, for `render`.

    `crowd`, `items`, `annotators`, `labels`, `compared`, `next` and `made`. What makes no sense for
    a crowd has a `why_not` instead. Large crowds are cut short, and what is cut is said: rows to
    list (`items`, `people`), and methods compared on a sample.

    Parameters
    ----------
    reliability : as in `Annotations.per_annotation`; learned from the crowd when none came
    text : the name of what to read of an item, and the text of each, (N,)
    fields : what else to show of an item, by name, (N,) each; addresses of pictures are shown so
    gold : as in `compare`; scores what is likely true
    scored : whose votes are predicted, as in `learn_crowd`
    times : (R,), when each annotation was made, as datetime64 or as numbers; NaT or NaN if unknown
    sources : confidence in [0, 1] of each annotation, (R,), by what it is read from, as in
        `panel.stated_confidence`; held against the votes of `scored`, where that is said
    sets, questions : where items are yes or no questions, the item that each is about, as in
        `compare`, and the label that it asks, (N,)
    least_votes, least_probability, conflict : as in `triage.status`: what is settled, and what is
        a conflict
    name : of the crowd, for the title
    made : how the report was made, such as {"command": "sle report crowd.csv"}
    progress : called with what is done, how many steps of it are, and how many there are

    Examples
    --------
    >>> from slencodings import from_table
    >>> rows = {"item": list("ppppq"), "who": list("abcda"), "y": ["no", "yes", "no", "no", "no"]}
    >>> crowd = from_table(rows, item="item", annotator="who", label="y")
    >>> found = summarise(crowd, reliability=0.6)
    >>> found["crowd"]["why"]
    {'few': 1, 'conflict': 1, 'settled': 0}
    >>> [(row["item"], row["probability"]) for row in found["items"]["rows"]]
    [('q', 0.8985), ('p', 0.75)]
    """
    from slencodings import __version__

    a = annotations.completed(reliability)
    weighed = weigh(a, scored=scored, seed=seed, progress=lambda n, of: progress("learning", n, of))
    todo = find_todo(a, weighed, Limits(least_votes, least_probability, conflict))
    columns = ItemColumns(text, fields or {}, as_truth(a, gold))
    first = np.concatenate([todo.few, todo.conflict])
    chosen = choose(a, np.asarray(weighed.votes.uncertainty), weighed.conflict, seed, first)
    without = without_each(a, weighed)
    kinds = describe_order(a, weighed) if a.ordered else []
    if sets is not None and questions is not None:
        kinds += describe_sets(a, weighed, check_sets(a, sets), questions)
    confidence, of_models = None, list[str]()
    if scored is not None:
        is_scored = scored_annotators(a, scored)
        of_models = who_may_stand_in(a, is_scored)
        if sources is not None:
            confidence = describe_sources(a, is_scored, sources, seed)
    return {
        "title": shown([name], 80)[0] if name else "",
        "crowd": _glance(a, weighed, todo, columns.gold, seed, questions=sets is not None),
        "items": describe_items(a, weighed, without, todo, chosen, columns=columns, seed=seed),
        "annotators": describe_people(
            a, weighed, without, chosen, times=times, sources=confidence, of_models=of_models
        ),
        "labels": describe_labels(a, weighed, seed, kinds),
        "compared": compare_encodings(
            a, seed, lambda n, of: progress("comparing", n, of), scored=scored, sets=sets
        ),
        "next": describe_next(a, weighed, todo, chosen),
        "made": {"slencodings": __version__, "seed": str(seed), **(made or {})},
    }


def _glance(
    a: Annotations,
    weighed: Weighed,
    todo: Todo,
    gold: Floats | None,
    seed: int,
    *,
    questions: bool,
) -> Glance:
    """Sizes, agreement and how open the items are."""
    why = todo.why
    per_item = np.bincount(a.item, minlength=len(a.items))
    alpha = None
    if np.any(per_item > 1):
        found = krippendorff_alpha(a, bootstrap=_RESAMPLES, rng=np.random.default_rng(seed))
        alpha = [float(value) for value in found]
    u, P = np.asarray(weighed.votes.uncertainty), np.asarray(weighed.truth.probability)
    surest, some = P.max(axis=1, initial=0), per_item > 0
    # Without a model of who is right, probabilities are what people would say, not what is true.
    truth = weighed.crowd.model is not None
    return {
        "items": len(a.items),
        "annotators": len(a.annotators) if a.named else None,
        "annotations": len(a.item),
        "labels": len(a.labels),
        "ordered": a.ordered,
        "questions": questions,
        "stated": None if a.stated is None else [float(a.stated.min()), float(a.stated.max())],
        "per_item": {
            "mean": round(float(per_item.mean()), 2) if len(per_item) else 0.0,
            "least": int(per_item.min()) if len(per_item) else 0,
            "most": int(per_item.max(initial=0)),
        },
        "alpha": alpha,
        "why": {kind: int(np.sum(why == kind)) for kind in get_args(Kind)},
        "uncertainty": float(u.mean()) if len(u) else 0.0,
        "doubts": _histogram(u, why, 0, _rounded_up(float(u.max(initial=0)))),
        "probabilities": _histogram(surest[some], why[some], 0, 1),
        "source": weighed.source,
        "truth": truth,
        "scored": None if gold is None else _score(a, P, gold),
        "wrong": float(np.sum(1 - surest[some])) if truth else None,
        "least_votes": todo.limits.least_votes,
        "least_probability": todo.limits.least_probability,
        "conflict": todo.limits.conflict,
    }


def _score(a: Annotations, P: Floats, gold: Floats) -> Scored:
    """How right probabilities P (N, K) are, on items of which gold is known."""
    known = ~np.isnan(gold).any(axis=1)
    truth, p, votes = gold[known], P[known], soft_vote(a).probability[known]
    right = float(metrics.shares_right(truth, p).mean())
    low, high = interval(np.asarray([right]), np.asarray([float(len(p))]))
    loss = float(log_loss(truth, p).mean())
    return {
        "items": len(p),
        "right": right,
        "right_low": float(low[0]),
        "right_high": float(high[0]),
        "votes_right": float(metrics.shares_right(truth, votes).mean()),
        # JSON has no infinity.
        "log_loss": loss if math.isfinite(loss) else None,
        "sure": float(p.max(axis=1).mean()),
    }


def _histogram(x: Floats, why: NDArray[Any], low: float, high: float) -> Histogram:
    edges = np.linspace(low, high, _BINS + 1)
    # Rounding may leave a probability a hair above 1.
    x = np.clip(x, low, high)
    return {
        "edges": [round(float(edge), 6) for edge in edges],
        "items": {kind: np.histogram(x[why == kind], edges)[0].tolist() for kind in get_args(Kind)},
    }


def _rounded_up(x: float) -> float:
    """The next of 1, 2 and 5 times a power of ten, at most 1; 1 for 0."""
    if x <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(x))
    return min(next(m * power for m in (1, 2, 5, 10) if m * power >= x), 1.0)


def compare_encodings(
    a: Annotations,
    seed: int,
    progress: Callable[[int, int], None],
    *,
    scored: Any = None,
    sets: Any = None,
) -> Compared:
    """How well well-known encodings predict held-out votes."""
    shared = int(np.sum(np.bincount(a.item, minlength=1) > 1))
    if shared < FEWEST_COMPARED:
        return {
            "why_not": "Encodings are compared by predicting each annotation from the others on "
            f"its item. That takes at least {FEWEST_COMPARED} items with two annotations or more; "
            f"here are {shared:,}.",
            "items": 0,
            "sampled": False,
            "scored": 0,
            "folds": 0,
            "rows": [],
            "lessons": [],
            "notes": [],
        }
    # As `sle compare` does it, so that one crowd has one verdict.
    found = compare(
        a,
        scored=scored,
        sets=sets,
        methods=well_known(a),
        folds=5 if len(a.labels) <= _MOST_LABELS else 2,
        max_annotations=MOST_COMPARED,
        seed=seed,
        progress=lambda done, total, _: progress(done, total),
    )
    return {
        "why_not": None,
        "items": found.about.items,
        "sampled": any("drawn by lot" in note for note in found.notes),
        "scored": found.about.scored,
        "folds": found.about.folds,
        "rows": [_encoding_score(row) for row in found.rows],
        "lessons": lessons(found.rows),
        "notes": [
            note.replace("`max_annotations`", "--max-annotations of sle compare")
            for note in found.notes
        ],
    }


def _encoding_score(row: Row) -> EncodingScore:
    numbers = ("votes", "votes_low", "votes_high")
    # JSON has no infinity.
    finite = {k: None if (x := row[k]) is None or not math.isfinite(x) else x for k in numbers}
    return cast(EncodingScore, {"method": row["method"], **finite, "best": row["best"]})
