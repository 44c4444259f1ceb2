"""What a crowd says of its items, by what came with its annotations or by what they teach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from slencodings.aggregate import certainty
from slencodings.annotations import Annotations, sums_by
from slencodings.choices import WeightsFrom
from slencodings.opinion import Floats, Opinion
from slencodings.trust.crowd import Crowd, Evidence, conflict_of
from slencodings.trust.learn_crowd import count_each, learn_crowd


class Weighed(NamedTuple):
    """A crowd and what it says.

    Attributes
    ----------
    crowd : which answers; one that counts each annotation where reliability came, or none is shared
    evidence : what the annotations of each item add up to
    votes, truth : Opinion (N,), what people would say, and what is true
    conflict : (N,), how far the votes contradict each other
    weight : (R,), of each annotation, in units of the prior weight
    reliability : (M,), of each annotator: how often right above chance, or what came
    source : of the weights; "alike" if no two annotations can be compared
    """

    crowd: Crowd
    evidence: Evidence
    votes: Opinion
    truth: Opinion
    conflict: Floats
    weight: Floats
    reliability: Floats
    source: WeightsFrom


def weigh(
    annotations: Annotations,
    *,
    scored: Any = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Weighed:
    """Weigh annotations by the reliability that came with them; else by what the crowd teaches.

    Where no item has two annotations there is nothing to learn, and each is one count. `scored`,
    `seed` and `progress` are as in `learn_crowd`.
    """
    a, source = annotations, "alike"
    n = np.bincount(a.annotator, minlength=len(a.annotators))
    if a.reliability is None and np.any(np.bincount(a.item, minlength=1) > 1):
        crowd, source = learn_crowd(a, scored=scored, rng=seed, progress=progress), "learned"
        reliability = np.clip(np.nan_to_num(crowd.above_chance, nan=0.0), 0, 1)
    else:
        crowd, reliability = count_each(a), np.ones(len(n))
    evidence, weight = crowd.evidence(a), crowd.annotation_worth(a)
    if a.reliability is not None:
        c, source = certainty(a), "given"
        weight = c / (1 - c)  # smoothing keeps c below 1
        reliability = sums_by(a.annotator, a.reliability, len(n)) / np.maximum(n, 1)
        evidence = evidence._replace(votes=a.sums(weight))
    return Weighed(
        crowd=crowd,
        evidence=evidence,
        votes=crowd.votes_of(evidence),
        truth=crowd.truth_of(evidence),
        conflict=conflict_of(evidence.votes),
        weight=weight,
        reliability=reliability,
        source=source,
    )
