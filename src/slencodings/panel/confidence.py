"""Whether models are as right as they say they are sure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, sums_by
from slencodings.evaluation.measure import middle, resample
from slencodings.opinion import Floats

# Fewer answers than these tell nothing.
_LEAST = 20


class Stated(NamedTuple):
    """A model and one kind of confidence that it stated.

    Attributes
    ----------
    judge, source : whose confidence, and what it was read from
    answers : how many of its answers have it, on items that people answered
    stated : its mean
    earned : how often people say the same as the model, on the same items
    overconfidence, overconfidence_low, overconfidence_high : stated less earned
    sorts : how likely people agree more with the surer of two answers; 0.5 if confidence tells
        nothing; None where it is always the same or people always agree alike
    """

    judge: Any
    source: str
    answers: int
    stated: float
    earned: float
    overconfidence: float
    overconfidence_low: float | None
    overconfidence_high: float | None
    sorts: float | None

    def to_row(self) -> dict[str, Any]:
        """As plain values."""
        named = self._replace(judge=str(self.judge))
        return {"part": "confidence", "name": named.judge, **named._asdict()}


def stated_confidence(
    annotations: Annotations,
    people: NDArray[np.bool_],
    *,
    sources: Mapping[str, Floats] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> list[Stated]:
    """Hold what models say of their confidence against how often people agree with them.

    Parameters
    ----------
    people : (M,), who is a person
    sources : confidence in [0, 1] of each annotation (R,), NaN where there is none, by what it was
        read from; `annotations.stated` when absent, and nothing where that is on another scale
    bootstrap, seed : items are resampled so often for the intervals
    """
    a = annotations
    if sources is None:
        known = a.stated is not None and bool(np.all((a.stated >= 0) & (a.stated <= 1)))
        sources = {"stated": a.stated} if a.stated is not None and known else {}
    person = people[a.annotator]
    votes = a.rows(person).sums()
    total = np.sum(votes, axis=1)
    agreed = np.sum(votes[a.item] * a.vectors, axis=1) / np.maximum(total, 1)[a.item]
    found = list[Stated]()
    for source, stated in sources.items():
        known = ~person & (total > 0)[a.item] & ~np.isnan(stated)
        for m in np.unique(a.annotator[known]).tolist():
            rows = np.flatnonzero(known & (a.annotator == m))
            if len(rows) < _LEAST:
                continue
            says, earns, rng = stated[rows], agreed[rows], np.random.default_rng(seed)
            drawn = resample((says - earns)[:, None], np.ones((len(rows), 1)), bootstrap, rng)
            mean_stated, earned, over = (float(np.mean(x)) for x in (says, earns, says - earns))
            ends, order, who = middle(drawn[:, 0]), sorts(says, earns), a.annotators[m]
            found.append(Stated(who, source, len(rows), mean_stated, earned, over, *ends, order))
    return found


def sorts(stated: Floats, agreed: Floats) -> float | None:
    """How likely the surer of two answers is the one people agree with more; ties are halves.

    Of pairs whose agreement differs, (pairs in order + half the ties of confidence) / all:
    Somers' D as a chance, and the area under the curve where people agree or do not.

    >>> sorts(np.asarray([0.9, 0.5, 0.7]), np.asarray([1.0, 0.0, 0.0]))
    1.0
    """
    levels, place = np.unique(agreed, return_inverse=True)
    ranks, rank = np.unique(stated, return_inverse=True)
    if len(levels) < 2 or len(ranks) < 2:
        return None
    table = sums_by(place * len(ranks) + rank, np.ones(len(place)), len(levels) * len(ranks))
    table = table.reshape(len(levels), len(ranks))
    below = np.cumsum(table, axis=0) - table
    wins = np.cumsum(below, axis=1) - below + below / 2
    return float(np.sum(table * wins) / np.sum(table * np.sum(below, axis=1, keepdims=True)))
