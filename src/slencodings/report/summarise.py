"""All that a report says, as plain numbers and text."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import krippendorff_alpha
from slencodings.annotations import Annotations
from slencodings.evaluation import compare
from slencodings.evaluation.methods import well_known
from slencodings.evaluation.rows import Row
from slencodings.evaluation.text import lessons
from slencodings.report.items import ITEM_LETTERS, NAME_LETTERS, describe_items
from slencodings.report.labels import describe_labels
from slencodings.report.names import shown
from slencodings.report.people import MOST_LABELS, describe_people
from slencodings.report.summary import Compared, Glance, Kind, Next, Open, Score, Summary
from slencodings.report.without import without_each
from slencodings.triage import Triage, triage
from slencodings.triage.triage import OpenItem
from slencodings.trust.apply import Weighed, weigh

Progress = Callable[[str, int, int], None]

# Larger crowds are compared on a sample of their items; smaller ones have nothing to hold out.
MOST_COMPARED, FEWEST_COMPARED = 20_000, 10
_RESAMPLES = 300
_BINS = 20
# Items that are named as the next to annotate, and annotators for each.
_NEXT, _ASKED = 25, 5


def summarise(
    annotations: Annotations,
    *,
    reliability: Any = None,
    target: float = 0.2,
    conflict: float = 0.5,
    seed: int = 0,
    name: str = "",
    made: dict[str, str] | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Summary:
    """Collect what there is to see of a crowd: a dict that JSON can hold, for `render`.

    `crowd`, `items`, `annotators`, `labels`, `compared`, `next` and `made`. What makes no sense for
    a crowd has a `why_not` instead. Large crowds are cut short, and what is cut is said: rows to
    list (`items`, `people`), intervals that take refits, and methods compared on a sample.

    Parameters
    ----------
    reliability : as in `Annotations.per_annotation`; learned from the crowd when none came
    target, conflict : as in `triage`: what is too uncertain, and what is a conflict
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
    {'few': 1, 'conflict': 0, 'settled': 1}
    >>> [(row["item"], row["probability"]) for row in found["items"]["rows"]]
    [('q', 0.797), ('p', 0.7135)]
    """
    from slencodings import __version__

    a = annotations.completed(reliability)
    weighed = weigh(a, seed=seed, progress=lambda n, of: progress("learning", n, of))
    plan = triage(
        weighed.opinion,
        a,
        reliability=weighed.reliability,
        uncertainty=weighed.uncertainty,
        target=target,
        conflict=conflict,
    )
    without = without_each(a, weighed)
    items = describe_items(a, weighed, without, plan.why, seed)
    people = describe_people(a, weighed, without, seed, lambda n, of: progress("annotators", n, of))
    return {
        "title": shown([name], 80)[0] if name else "",
        "crowd": _glance(a, weighed, plan.why, seed, target, conflict),
        "items": items,
        "annotators": people,
        "labels": describe_labels(a, weighed.opinion, seed),
        "compared": _compared(a, seed, progress),
        "next": _next(plan, a.named),
        "made": {"slencodings": __version__, "seed": str(seed), **(made or {})},
    }


def _glance(
    a: Annotations, weighed: Weighed, why: NDArray[Any], seed: int, target: float, conflict: float
) -> Glance:
    """Sizes, agreement and how open the items are."""
    per_item = np.bincount(a.item, minlength=len(a.items))
    alpha = None
    if np.any(per_item > 1):
        found = krippendorff_alpha(a, bootstrap=_RESAMPLES, rng=np.random.default_rng(seed))
        alpha = [round(float(value), 4) for value in found]
    u = np.asarray(weighed.opinion.uncertainty)
    edges = np.linspace(0, _rounded_up(float(u.max(initial=0))), _BINS + 1)
    kinds: tuple[Kind, ...] = ("few", "conflict", "settled")
    learned = None
    if weighed.trust is not None:
        learned = {k: round(loss, 4) for k, loss in weighed.trust.losses.items()}
    return {
        "items": len(a.items),
        "annotators": len(a.annotators) if a.named else None,
        "annotations": len(a.item),
        "labels": len(a.labels),
        "soft": a.soft,
        "stated": a.stated is not None,
        "per_item": {
            "mean": round(float(per_item.mean()), 2) if len(per_item) else 0.0,
            "least": int(per_item.min()) if len(per_item) else 0,
            "most": int(per_item.max(initial=0)),
            "one": int(np.sum(per_item == 1)),
        },
        "alpha": alpha,
        "why": {kind: int(np.sum(why == kind)) for kind in kinds},
        "uncertainty": round(float(u.mean()), 4) if len(u) else 0.0,
        "edges": [round(float(edge), 6) for edge in edges],
        "uncertainties": {kind: np.histogram(u[why == kind], edges)[0].tolist() for kind in kinds},
        "trust": weighed.source,
        "losses": learned,
        "target": target,
        "conflict": conflict,
    }


def _compared(a: Annotations, seed: int, progress: Progress) -> Compared:
    """How well well-known encodings predict held-out votes."""
    n = np.bincount(a.item, minlength=len(a.items))
    shared = np.flatnonzero(n > 1)
    if len(shared) < FEWEST_COMPARED:
        return {
            "why_not": "Encodings are compared by predicting each annotation from the others on "
            f"its item. That takes at least {FEWEST_COMPARED} items with two annotations or more; "
            f"here are {len(shared):,}.",
            "items": 0,
            "sampled": False,
            "scored": 0,
            "folds": 0,
            "rows": [],
            "lessons": [],
            "notes": [],
        }
    kept = shared
    if len(a.item) > MOST_COMPARED:
        drawn = np.random.default_rng(seed).permutation(shared)
        kept = drawn[: max(int(np.sum(np.cumsum(n[drawn]) <= MOST_COMPARED)), FEWEST_COMPARED)]
    kept = np.sort(kept)
    rows = np.isin(a.item, kept)
    # Only these items, as methods take time for every item there is.
    some = a.rows(rows)
    some = replace(some, item=np.searchsorted(kept, some.item), items=a.items[kept])
    found = compare(
        some,
        methods=well_known(some),
        # What people confuse with what takes the square of the labels to learn.
        folds=5 if len(a.labels) <= MOST_LABELS else 2,
        bootstrap=_RESAMPLES,
        seed=seed,
        progress=lambda done, total, _: progress("comparing", done, total),
    )
    return {
        "why_not": None,
        "items": len(kept),
        "sampled": len(kept) < len(shared),
        "scored": found.about.scored,
        "folds": found.about.folds,
        "rows": [_score(row) for row in found.rows],
        "lessons": lessons(found.rows),
        "notes": found.notes,
    }


def _next(plan: Triage, named: bool) -> Next:
    """What to annotate next, the most worthwhile first; and what to decide, the sharpest first."""
    rows = plan.to_rows()
    few = [row for row in rows if row["why"] == "few"][:_NEXT]
    split = [row for row in rows if row["why"] == "conflict"]
    split = sorted(split, key=lambda row: -row["dissonance"])[:_NEXT]
    return {
        "needed": int(plan.needed[np.isfinite(plan.needed)].sum()),
        "never": int(np.sum(np.isinf(plan.needed))),
        "named": named,
        "certainty": round(plan.certainty, 4),
        "few": [_open(row, named) for row in few],
        "conflict": [_open(row, named) for row in split],
    }


def _open(row: OpenItem, named: bool) -> Open:
    return {
        "item": shown([row["item"]], ITEM_LETTERS)[0],
        "uncertainty": round(row["uncertainty"], 4),
        "conflict": round(row["dissonance"], 4),
        "needed": row["needed"],
        "ask": shown(row["annotators"][:_ASKED], NAME_LETTERS) if named else [],
    }


def _rounded_up(x: float) -> float:
    """The next of 1, 2 and 5 times a power of ten, at most 1; 1 for 0."""
    if x <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(x))
    return min(next(m * power for m in (1, 2, 5, 10) if m * power >= x), 1.0)


def _score(row: Row) -> Score:
    return {
        "method": row["method"],
        "votes": _finite(row["votes"]),
        "votes_low": _finite(row["votes_low"]),
        "votes_high": _finite(row["votes_high"]),
        "behind_low": _finite(row["behind_low"]),
        "behind_high": _finite(row["behind_high"]),
        "best": row["best"],
    }


def _finite(x: float | None) -> float | None:
    """JSON has no infinity."""
    return None if x is None or not math.isfinite(x) else round(x, 4)
