"""A crowd to learn from, and what a method makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings import aggregate
from slencodings.aggregate import Aggregate
from slencodings.annotations import Annotations, base_rate_of
from slencodings.evaluation.predictors import Predictor
from slencodings.opinion import Floats
from slencodings.trust import Crowd, learn_crowd


class Encoding(NamedTuple):
    """What a method would give to train on.

    Attributes
    ----------
    probability : (N, K), what it takes for true, or what people say if it infers no truth
    uncertainty : (N,), of opinions
    doubts : whether it tells how sure of its probabilities it is
    converged : whether learning came to an end
    notes : what people should know
    """

    probability: Floats
    uncertainty: Floats | None = None
    doubts: bool = False
    converged: bool = True
    notes: tuple[str, ...] = ()


class Fitted(NamedTuple):
    """What a method learned from a crowd.

    Attributes
    ----------
    reader : predicts annotations from the others on their item
    infers_truth : whether its distribution is about the truth, not about what people say
    target : what it makes of the items it learned from
    """

    reader: Predictor
    infers_truth: bool
    target: Encoding


class Learner:
    """A crowd to learn from; what several methods need of it is learned once, when asked for."""

    def __init__(
        self,
        annotations: Annotations,
        scored: NDArray[np.bool_] | None = None,
        like: Learner | None = None,
    ):
        """With confidence in `annotations`, without it in `sure`; (M,) whose votes are `scored`.

        `like` has learned from some of these items: from where it is, it takes less to go on.
        """
        self.annotations = annotations
        self.sure = sure(annotations)
        self.scored = scored
        self.like = like

    @cached_property
    def base_rate(self) -> Floats:
        """How often each label was given by those whose votes are scored, (K,)."""
        a = self.annotations
        scored = a if self.scored is None else a.rows(self.scored[a.annotator])
        return base_rate_of(scored.sums().sum(axis=0))

    @cached_property
    def kappa(self) -> Floats:
        """Of each annotator with their peers, (M,)."""
        return aggregate.pairwise_kappa(self.sure)

    @cached_property
    def crowdtruth(self) -> Aggregate:
        """CrowdTruth's model."""
        return aggregate.crowdtruth(self.sure)

    @cached_property
    def dawid_skene(self) -> Aggregate:
        """Dawid and Skene's model."""
        return aggregate.dawid_skene(self.sure)

    @cached_property
    def mace(self) -> Aggregate:
        """MACE's model; the best of ten starts, or where the best of another crowd's leads."""
        if self.like is None:
            return aggregate.mace(self.sure)
        found = self.like.mace
        spamming, strategy = found.details["spamming"], found.details["strategy"]
        behaviour = np.stack([spamming, np.asarray(found.reliability)], axis=1)
        return aggregate.mace(self.sure, initial=(behaviour, strategy))

    @cached_property
    def glad(self) -> Aggregate:
        """GLAD's model."""
        return aggregate.glad(self.sure)

    @cached_property
    def crowd(self) -> Crowd:
        """The learned crowd."""
        like = None if self.like is None else self.like.crowd
        return learn_crowd(self.sure, scored=self.scored, like=like)


Method = Callable[[Learner], Fitted]


def sure(a: Annotations) -> Annotations:
    """The annotations as if nobody had said how sure they were."""
    return replace(a, uncertainty=np.zeros(len(a.item)))
