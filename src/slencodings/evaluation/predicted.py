"""What a method says of annotations that were held out, and how well it says it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings import metrics
from slencodings.aggregate.agreement import spread
from slencodings.annotations import Annotations, sums_by
from slencodings.evaluation.learner import Fitted
from slencodings.evaluation.predictors import habits_of
from slencodings.evaluation.vote_counts import dirichlet_log_loss
from slencodings.kinds.ordered import absolute_error, ranked_probability_score, wasserstein
from slencodings.opinion import Floats
from slencodings.trust.learn_crowd import random_order

# What is scored of each method: log-losses of a vote by anybody, the same without the detour
# through the crowd's habits, of a vote by this annotator, of several votes together; Brier score
# and agreement; and where labels have an order, how far from the vote chances are, and the median.
SCORES = ("votes", "direct", "own", "joint", "brier", "agreement", "ranked", "steps", "wasserstein")
LOSSES = SCORES[:4]


class HeldOut(NamedTuple):
    """Annotations to predict.

    Attributes
    ----------
    annotations : of which each is predicted from the others on its item
    given : (R,), which of them are given to predict the rest together
    scored : (M,), whose annotations count; everybody's when absent
    """

    annotations: Annotations
    given: NDArray[np.bool_]
    scored: NDArray[np.bool_] | None = None

    def items(self, keep: NDArray[np.bool_]) -> HeldOut:
        """Those on some of the items, by a mask (N,)."""
        kept = keep[self.annotations.item]
        return self._replace(annotations=self.annotations.rows(kept), given=self.given[kept])

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which annotations are scored, (R,)."""
        return of_scored(self.annotations, self.scored)

    @property
    def counts(self) -> Floats:
        """How many votes each score is a mean of, by item, (S, N)."""
        a, N = self.annotations, len(self.annotations.items)
        scored = self.counted
        counts = np.tile(np.bincount(a.item[scored], minlength=N).astype(float), (len(SCORES), 1))
        counts[SCORES.index("joint")] = np.bincount(a.item[~self.given & scored], minlength=N)
        return counts


class Predicted(NamedTuple):
    """What a method says of annotations.

    Attributes
    ----------
    votes : (R, K), what anybody would say, from the others on the item
    direct : (R, K), the same, not through the crowd's habits
    own : (R, K), what this very annotator would say
    joint : (N,), log-loss of the votes not given, all together, from those given; 0 where there
        are none, and everywhere if labels are soft and so cannot be counted
    """

    votes: Floats
    direct: Floats
    own: Floats
    joint: Floats


def halves(a: Annotations, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which annotations are given, (R,): half of each item's, of an odd number the smaller half.

    The order is random and the same for any order of rows.
    """
    order, size = random_order(a, rng), np.bincount(a.item, minlength=len(a.items))
    given = np.empty(len(order), dtype=bool)
    given[order] = spread(size)[1] < size[a.item[order]] // 2
    return given


def predict(fit: Fitted, train: Annotations, held_out: HeldOut) -> Predicted:
    """What a method that was fitted to some items says of others."""
    a, reader, habits = held_out.annotations, fit.reader, None
    if fit.infers_truth:
        rows = of_scored(train, held_out.scored)
        habits = habits_of(reader.predict(train)[rows], train.rows(rows))

    def votes(direct: Floats) -> Floats:
        return direct if habits is None else habits(direct)

    direct = reader.predict(a)
    joint = np.zeros(len(a.items))
    if not a.soft:
        # What is predicted of one of them, from those given, is predicted of them all.
        rest = np.flatnonzero(~held_out.given & held_out.counted)
        item, first = np.unique(a.item[rest], return_index=True)
        asked = a.rows(np.r_[rest[first], np.flatnonzero(held_out.given)])
        P, spread = votes(reader.predict(asked)), reader.spread(asked)
        n = a.rows(rest).sums()[item]
        joint[item] = dirichlet_log_loss(n, P[: len(item)], spread[: len(item)])
    return Predicted(votes(direct), direct, reader.predict_own(train, a), joint)


def of_scored(a: Annotations, scored: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Which annotations are by those whose votes are scored, (R,)."""
    return np.ones(len(a.item), dtype=bool) if scored is None else scored[a.annotator]


def score(predicted: Predicted, held_out: HeldOut) -> Floats:
    """The scores, added up over the votes on each item, (S, N)."""
    a, y, p = held_out.annotations, held_out.annotations.vectors, predicted
    scored = held_out.counted
    each = [
        *(log_loss(y, x) for x in (p.votes, p.direct, p.own)),
        np.sum((p.votes - y) ** 2, axis=1),
        np.sum(y * metrics.top_shares(p.votes), axis=1),
        ranked_probability_score(y, p.votes),
        absolute_error(y, p.votes),
        wasserstein(y, p.votes),
    ]
    votes, direct, own, *rest = (sums_by(a.item[scored], x[scored], len(a.items)) for x in each)
    return np.stack([votes, direct, own, p.joint, *rest])


def log_loss(y: Floats, p: Floats) -> Floats:
    """- sum_k y_k log p_k, infinite where what was said got no chance."""
    with np.errstate(divide="ignore"):
        # Rounding may leave a certain label a hair above 1.
        return np.sum(y * np.where(y > 0, -np.log(np.minimum(p, 1)), 0), axis=1)
