"""Encodings side by side on the crowd of a report."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from slencodings.annotations import Annotations
from slencodings.evaluation import compare
from slencodings.evaluation.methods import well_known
from slencodings.evaluation.rows import Row
from slencodings.evaluation.text import lessons
from slencodings.report.summary import Compared, Score

# Larger crowds are compared on a sample of their items; smaller ones have nothing to hold out.
MOST_COMPARED, FEWEST_COMPARED = 20_000, 10
# What people confuse with what takes the square of the labels to learn.
_MOST_LABELS = 20
_RESAMPLES = 300


def compare_encodings(
    a: Annotations, scored: Any, seed: int, progress: Callable[[int, int], None]
) -> Compared:
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
    # Only these items, as methods take time for every item there is.
    some = a.of_items(np.sort(kept))
    found = compare(
        some,
        scored=scored,
        methods=well_known(some),
        folds=5 if len(a.labels) <= _MOST_LABELS else 2,
        bootstrap=_RESAMPLES,
        seed=seed,
        progress=lambda done, total, _: progress(done, total),
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


def _score(row: Row) -> Score:
    numbers = ("votes", "votes_low", "votes_high", "behind_low", "behind_high")
    # JSON has no infinity.
    finite = {k: None if (x := row[k]) is None or not math.isfinite(x) else x for k in numbers}
    return cast(Score, {"method": row["method"], **finite, "best": row["best"]})
