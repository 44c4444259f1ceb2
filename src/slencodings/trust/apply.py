"""What every annotation of a crowd weighs, by what came with it or by what it teaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from slencodings.aggregate import certainty
from slencodings.annotations import Annotations
from slencodings.opinion import Floats, Opinion
from slencodings.trust.learn import MOST_MEANT, learn_trust
from slencodings.trust.value import Trust


class Weighed(NamedTuple):
    """A crowd and what it weighs.

    Attributes
    ----------
    opinion : Opinion (N,)
    weight : (R,), pseudo-counts of each annotation per unit of prior weight
    meaning : (K, K), what a vote for a label (row) says about the labels
    reliability : (M,), of each annotator
    uncertainty : what to expect in a further annotation
    trust : what was learned; None where reliability came, or nothing could be learned
    source : of the weights; "alike" if no two annotations can be compared
    """

    opinion: Opinion
    weight: Floats
    meaning: Floats
    reliability: Floats
    uncertainty: float
    trust: Trust | None
    source: Literal["given", "learned", "alike"]


def weigh(
    annotations: Annotations,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Weighed:
    """Weigh annotations by the reliability that came with them; else by what the crowd teaches.

    w = c / (1 - c), fused by `Annotations.fuse`. Where no item has two annotations there is nothing
    to learn, and all are trusted alike. `seed` and `progress` are as in `learn_trust`.
    """
    a, M, K = annotations, len(annotations.annotators), len(annotations.labels)
    shared = bool(np.any(np.bincount(a.item, minlength=1) > 1))
    if a.reliability is None and shared:
        trust = learn_trust(a, meaning=K <= MOST_MEANT, rng=seed, progress=progress)
        r = trust.worth / (1 + trust.worth)
        u = trust.uncertainty(trust.confidence(a), r[a.annotator])
        w, C = trust.annotation_worth(a), trust.meaning
        return Weighed(trust.opinion(a), w, C, r, _median(u), trust, "learned")
    c = certainty(a)
    w = c / (1 - c)  # smoothing keeps c below 1
    n = np.bincount(a.annotator, minlength=M)
    r = np.bincount(a.annotator, a.per_annotation(None), M) / np.maximum(n, 1)
    opinion = a.fuse(w, np.full(K, 1 / K))
    source = "alike" if a.reliability is None else "given"
    return Weighed(opinion, w, np.eye(K), r, _median(a.uncertainty), None, source)


def _median(x: Floats) -> float:
    return float(np.median(x)) if len(x) else 0.0
