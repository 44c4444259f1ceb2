"""What the others on an item tell about each annotation, under any method.

A method that adds up votes is a `Counts`, one that infers a truth from a model of annotators is a
`Model` or a `RightOrNot`, and a learned crowd is both (`Readings`); `Averaged` takes labels for
numbers. All predict each annotation without looking at it, in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from slencodings.aggregate.em import expected_answers
from slencodings.annotations import Annotations, beside_prior, leave_one_out, safe_log, sums_by
from slencodings.evaluation.own_habits import CLOSE, Pointed, learn_one_habit, learn_own_habits
from slencodings.metrics import top_shares
from slencodings.opinion import USUAL_WEIGHT, Floats, Opinion
from slencodings.trust import Crowd
from slencodings.trust.learn_crowd import MOST_LABELS
from slencodings.trust.truth import Seen, learn_habits

# Less likely than this is not told apart.
_TINY = float(np.finfo(float).tiny)
# How many annotations the mean of all counts as beside those of an item; the likeliest is taken.
_HELD_BACK = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# An annotator's bias is believed half if it is seen in so many annotations.
_BIAS_OF_THE_CROWD = 10.0


class Predictor(Protocol):
    """Predicts each annotation from the others on its item."""

    def predict(self, annotations: Annotations) -> Floats:
        """The label distribution that the others give, (R, K)."""
        ...

    def spread(self, annotations: Annotations) -> Floats:
        """How far several votes may stray together from what is predicted, (R,).

        s = u / W = 1 / sum(alpha) of the others' opinion; 0 where only probabilities are told.
        """
        ...

    def predict_own(self, train: Annotations, test: Annotations) -> Floats:
        """What each annotator would say themselves, (R, K)."""
        ...


class Readings(NamedTuple):
    """A learned crowd, which predicts votes as its opinions on votes do."""

    crowd: Crowd

    def predict(self, annotations: Annotations) -> Floats:
        """What anybody would say, (R, K)."""
        return self.crowd.predict(annotations)

    def spread(self, annotations: Annotations) -> Floats:
        """How far several votes may stray together, (R,)."""
        worth = leave_one_out(self.crowd.annotation_worth(annotations), annotations.item)
        return 1 / (1 + worth) / self.crowd.prior_weight

    def predict_own(self, train: Annotations, test: Annotations) -> Floats:
        """What this very annotator would say, (R, K)."""
        return self.crowd.predict_own(test)


class Counts(NamedTuple):
    """Votes that are added up: P_q = (sum w y + s a) / (sum w + s) over the others.

    Attributes
    ----------
    weight : gives w (R,) for annotations, >= 0
    base_rate : a (K,)
    prior : s; 1 for opinions, whose w is in units of the prior weight; 0 for shares of votes
    winner : whether the label with most takes it all
    """

    weight: Callable[[Annotations], Floats]
    base_rate: Floats
    prior: float = 1.0
    winner: bool = False

    def predict(self, annotations: Annotations) -> Floats:
        """The label distribution that the others give, (R, K)."""
        return self._opinion(annotations).probability

    def _opinion(self, annotations: Annotations) -> Opinion:
        """What the votes of the others say beside the prior, (R,)."""
        votes = annotations.sums_of_others(self.weight(annotations))
        if self.winner:
            return beside_prior(top_shares(votes), np.ones(len(votes)), self.base_rate, 0.0)
        return beside_prior(votes, votes.sum(axis=1), self.base_rate, self.prior)

    def spread(self, annotations: Annotations) -> Floats:
        """How far several votes may stray together, (R,); shares of votes tell no doubt."""
        if self.prior == 0:
            return np.zeros(len(annotations.item))
        total = leave_one_out(self.weight(annotations), annotations.item)
        return self.prior / (total + self.prior) / USUAL_WEIGHT

    def predict_own(self, train: Annotations, test: Annotations) -> Floats:
        """What each annotator would say themselves, (R, K), by their habits on other items."""
        if len(train.labels) > MOST_LABELS:
            return learn_one_habit(self.predict(train), train).predict(
                self.predict(test), test.annotator
            )
        opinions = (self._opinion(a) for a in (train, test))
        seen, asked = (Pointed.of(o.belief, o.uncertainty, self.base_rate) for o in opinions)
        crowd = crowd_habits(self.predict(train), train)
        return learn_own_habits(seen, train, crowd).predict(asked, test.annotator)


def no_doubt(self: object, annotations: Annotations) -> Floats:
    """The spread of what tells no doubt about its probabilities: none, (R,)."""
    return np.zeros(len(annotations.item))


class Model(NamedTuple):
    """A truth inferred from what annotators say under each of H hypotheses about an item.

    p(h | others) ~ prior_h prod confusion[m, h, l],   p(truth = k) = sum of p(h) where truth is k

    Attributes
    ----------
    prior : (H,), of G * K hypotheses; h = g K + k has truth k (and difficulty g, if G > 1)
    confusion : (M, H, K), how likely annotator m says each label under h
    weighted : whether an annotation counts as 1 - uncertainty of one
    """

    prior: Floats
    confusion: Floats
    weighted: bool = False
    spread = no_doubt

    def predict(self, annotations: Annotations) -> Floats:
        """The truth as the others see it, (R, K)."""
        p = self._posterior(annotations)
        return p.reshape(len(p), -1, len(annotations.labels)).sum(axis=1)

    def predict_own(self, train: Annotations, test: Annotations) -> Floats:
        """What each annotator would say themselves, (R, K), as the model has it."""
        p, who, K = self._posterior(test), test.annotator, self.confusion.shape[2]
        people = np.unique(who)
        if len(people) >= K:  # Whichever are fewer are gone through one by one.
            columns = (self.confusion[who, :, k] for k in range(K))
            return np.stack([np.einsum("qh,qh->q", p, column) for column in columns], axis=1)
        own = np.empty((len(who), K))
        for m in people.tolist():
            own[who == m] = p[who == m] @ self.confusion[m]
        return own

    def _posterior(self, a: Annotations) -> Floats:
        """p(h | others), (R, H)."""
        log_prior = safe_log(self.prior)
        if a.soft:
            # 0 log 0 = 0: what an annotator never says matters only where it is said.
            each = np.where(a.y[:, None] > 0, safe_log(self.confusion)[a.annotator], 0)
            own = np.einsum("ql,qhl->qh", a.y, each)
        else:
            own = safe_log(self.confusion[a.annotator, :, a.y])
        if self.weighted:
            own = own * (1 - a.uncertainty)[:, None]
        z = log_prior - leave_one_out(-own, a.item)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)


class RightOrNot(NamedTuple):
    """A truth inferred from annotators who say it, or else whatever they say when they do not know.

    So a vote tells its own label from all others, and nothing about which of those.

    Attributes
    ----------
    prior : (G,), of the difficulties of items; all truths are alike
    log_right, log_wrong : (M, G, K), or (M, G, 1) if labels are alike: how likely annotator m says
        each label where it is true, and where another is
    """

    prior: Floats
    log_right: Floats
    log_wrong: Floats
    spread = no_doubt

    def predict(self, annotations: Annotations) -> Floats:
        """The truth as the others see it, (R, K)."""
        return np.sum(self._posterior(annotations), axis=0)

    def predict_own(self, train: Annotations, test: Annotations) -> Floats:
        """What each annotator would say themselves, (R, K), as the model has it."""
        p = self._posterior(test)
        right, wrong = (np.exp(np.swapaxes(x[test.annotator], 0, 1)) for x in self[1:])
        return np.sum(p * (right - wrong) + wrong * p.sum(axis=2, keepdims=True), axis=0)

    def _posterior(self, a: Annotations) -> Floats:
        """p(difficulty, truth | others), (G, R, K)."""
        K = len(a.labels)
        z = np.empty((len(self.prior), len(a.item), K))
        for g, log_prior in enumerate(safe_log(self.prior).tolist()):
            right, wrong = (-np.broadcast_to(x[:, g], (len(x), K)) for x in self[1:])
            z[g] = _told_by_others(wrong, a) - _told_by_others(right, a)
            every = np.sum(a.y * wrong[a.annotator], axis=1) if a.soft else wrong[a.annotator, a.y]
            z[g] += (log_prior - leave_one_out(every, a.item))[:, None]
        z -= z.max(axis=(0, 2), keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=(0, 2), keepdims=True)
        return z


def _told_by_others(each: Floats, a: Annotations) -> Floats:
    """What the others say of each label, by what an annotator's word for it is worth, (M, K)."""
    if a.soft:
        return leave_one_out(a.y * each[a.annotator], a.item)
    return a.sums_of_others(each[a.annotator, a.y])


class Averaged(NamedTuple):
    """Ordered labels as numbers: a normal around the others' mean, cut half way between labels.

    It is what people do with ratings who take them for numbers, to compare with.

    mean = (sum x + c m) / (n + c),   variance = v (1 + 1 / (n + c)),   x the places of labels

    Attributes
    ----------
    center, held_back, variance : m, c and v
    """

    center: float
    held_back: float
    variance: float
    spread = no_doubt

    @classmethod
    def learn(cls, a: Annotations) -> Averaged:
        """The numbers under which annotations are most likely, each from the others."""
        from scipy.optimize import minimize_scalar

        center = float(np.mean(_numbers_of_labels(a)))

        def loss(log_variance: float, held_back: float) -> float:
            p = cls(center, held_back, math.exp(log_variance)).predict(a)
            chance: Floats = np.maximum(np.sum(a.vectors * p, axis=1), _TINY)
            return -float(np.mean(np.log(chance)))

        best = (math.inf, 1.0, 0.0)
        for c in _HELD_BACK:
            found = minimize_scalar(loss, args=(c,), bounds=(-6, 6), method="bounded")
            best = min(best, (float(found.fun), c, float(found.x)))
        return cls(center, best[1], math.exp(best[2]))

    def predict(self, annotations: Annotations) -> Floats:
        """The label distribution that the others give, (R, K)."""
        return self._around(annotations, np.zeros(len(annotations.item)))

    def predict_own(self, train: Annotations, test: Annotations) -> Floats:
        """What each annotator would say, (R, K): as far above the others as elsewhere."""
        above = _numbers_of_labels(train) - self._means(train)[0]
        M = len(train.annotators)
        n = np.bincount(train.annotator, minlength=M) + _BIAS_OF_THE_CROWD
        bias = sums_by(train.annotator, above, M) / n
        return self._around(test, bias[test.annotator])

    def target(self, a: Annotations) -> Floats:
        """The label distribution of each item, (N, K)."""
        N = len(a.items)
        n = np.bincount(a.item, minlength=N).astype(float)
        total = sums_by(a.item, _numbers_of_labels(a), N)
        c = self.held_back
        return _normal_chances(
            (total + c * self.center) / (n + c), self.variance / (n + c), len(a.labels)
        )

    def _means(self, a: Annotations) -> tuple[Floats, Floats]:
        x, c = _numbers_of_labels(a), self.held_back
        n = (np.bincount(a.item)[a.item] - 1).astype(float) + c
        return (leave_one_out(x, a.item) + c * self.center) / n, n

    def _around(self, a: Annotations, shift: Floats) -> Floats:
        mean, n = self._means(a)
        return _normal_chances(mean + shift, self.variance * (1 + 1 / n), len(a.labels))


def _numbers_of_labels(a: Annotations) -> Floats:
    """Where labels stand in their order, expected where they are soft, (R,)."""
    return a.vectors @ np.arange(len(a.labels), dtype=float)


def _normal_chances(mean: Floats, variance: Floats, K: int) -> Floats:
    """The chance of each label under normals, (R, K); what lies beyond the ends is theirs."""
    from scipy.special import ndtr

    normal: Callable[[Floats], Floats] = ndtr
    inner = np.arange(K - 1, dtype=float) + 0.5
    edges = np.concatenate([[-np.inf], inner, [np.inf]]) - mean[:, None]
    z = edges / np.sqrt(variance)[:, None]
    low, high = z[:, :-1], z[:, 1:]
    # From the nearer end, as 1 - 1 leaves nothing of what is rare.
    return np.where(low > 0, normal(-low) - normal(-high), normal(high) - normal(low))


def habits_of(predicted: Floats, a: Annotations) -> Callable[[Floats], Floats]:
    """From the label that others point to, (R, K), to what people say then."""
    if len(a.labels) > MOST_LABELS:
        return learn_one_habit(predicted, a).predict
    habits = crowd_habits(predicted, a)
    return lambda pointed: pointed @ habits


def crowd_habits(predicted: Floats, a: Annotations) -> Floats:
    """What people say (column) where the others point to a label (row), (K, K)."""
    row, label = np.nonzero(a.y) if a.soft else (np.arange(len(a.item)), a.y)
    share = a.y[row, label] if a.soft else np.ones(len(row))
    seen = Seen.of([predicted[row]], label, share)
    return learn_habits(expected_answers(len(a.labels)), seen, CLOSE)


def own_habits(predicted: Floats, a: Annotations, crowd: Floats) -> Floats:
    """The same for each annotator, (M, K, K), who start from the crowd's habits."""
    pointed = Pointed.of(predicted, np.zeros(len(predicted)), np.zeros(len(crowd)))
    return learn_own_habits(pointed, a, crowd).table()
