"""What the others on an item tell about each annotation, under any method.

A method that adds up votes is a `Counts`, one that infers a truth from a model of annotators is a
`Model`, and a learned crowd is both (`Readings`). All predict each annotation without looking at
it, in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from slencodings.annotations import Annotations, leave_one_out
from slencodings.metrics import top_shares
from slencodings.opinion import Codes, Floats
from slencodings.trust import Crowd

# An annotator's habits are as strong as the crowd's once they are seen in so many annotations.
_HABITS_OF_THE_CROWD = 10.0
_EXPECTED_ACCURACY = 0.9


class Reader(Protocol):
    """Predicts each annotation from the others on its item."""

    def predict(self, annotations: Annotations) -> Floats:
        """The label distribution that the others give, (R, K)."""
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

    def predict_own(self, train: Annotations, test: Annotations) -> Floats:
        """What this very annotator would say, (R, K)."""
        return self.crowd.predict_own(test)


class Counts(NamedTuple):
    """Votes that are added up: P_q = (sum w y C + s a) / (sum w + s) over the others.

    Attributes
    ----------
    weight : gives w (R,) for annotations, >= 0
    base_rate : a (K,)
    prior : s; 1 for opinions, whose w is in units of the prior weight; 0 for shares of votes
    meaning : C (K, K), or nothing where votes mean what they say
    winner : whether the label with most takes it all
    """

    weight: Callable[[Annotations], Floats]
    base_rate: Floats
    prior: float = 1.0
    meaning: Floats | None = None
    winner: bool = False

    def predict(self, annotations: Annotations) -> Floats:
        """The label distribution that the others give, (R, K)."""
        votes = annotations.sums_of_others(self.weight(annotations))
        if self.meaning is not None:
            votes = votes @ self.meaning
        if self.winner:
            return top_shares(votes)
        total = votes.sum(axis=1, keepdims=True) + self.prior
        # Others without any weight leave the base rate, as the limit of a small prior does.
        given = np.where(total > 0, votes + self.prior * self.base_rate, self.base_rate)
        return given / np.where(total > 0, total, 1)

    def predict_own(self, train: Annotations, test: Annotations) -> Floats:
        """What each annotator would say themselves, (R, K), by their habits on other items.

        Their own habits take the place of what a vote means to the crowd at large.
        """
        plain = self._replace(meaning=None)
        seen = plain.predict(train)
        habits = own_habits(seen, train, crowd_habits(seen, train))
        return np.einsum("qk,qkl->ql", plain.predict(test), habits[test.annotator])


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

    def predict(self, annotations: Annotations) -> Floats:
        """The truth as the others see it, (R, K)."""
        p = self._posterior(annotations)
        return p.reshape(len(p), -1, len(annotations.labels)).sum(axis=1)

    def predict_own(self, train: Annotations, test: Annotations) -> Floats:
        """What each annotator would say themselves, (R, K), as the model has it."""
        p, who = self._posterior(test), test.annotator
        columns = [self.confusion[who, :, k] for k in range(self.confusion.shape[2])]
        return np.stack([np.einsum("qh,qh->q", p, column) for column in columns], axis=1)

    def _posterior(self, a: Annotations) -> Floats:
        """p(h | others), (R, H)."""
        with np.errstate(divide="ignore"):
            log_confusion, log_prior = np.log(self.confusion), np.log(self.prior)
        if a.soft:
            # 0 log 0 = 0: what an annotator never says matters only where it is said.
            each = np.where(a.y[:, None] > 0, log_confusion[a.annotator], 0)
            own = np.einsum("ql,qhl->qh", a.y, each)
        else:
            own = log_confusion[a.annotator, :, a.y]
        if self.weighted:
            own = own * (1 - a.uncertainty)[:, None]
        z = log_prior - leave_one_out(-own, a.item)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)


def crowd_habits(predicted: Floats, a: Annotations) -> Floats:
    """What people say (column) where the others point to a label (row), (K, K)."""
    K = len(a.labels)
    c = _EXPECTED_ACCURACY if K > 1 else 1.0
    expected = np.where(np.eye(K) == 1, c, (1 - c) / max(K - 1, 1))
    return _habits(predicted, a, np.zeros(len(a.item), dtype=np.intp), 1, expected, 1.0)[0]


def own_habits(predicted: Floats, a: Annotations, crowd: Floats) -> Floats:
    """The same for each annotator, (M, K, K), who start from the crowd's habits."""
    M = len(a.annotators)
    return _habits(predicted, a, a.annotator, M, crowd, _HABITS_OF_THE_CROWD)


def _habits(
    predicted: Floats, a: Annotations, who: Codes, M: int, expected: Floats, strength: float
) -> Floats:
    """Maximise sum_q sum_l y_ql log sum_k P_qk H_mkl + s sum_kl expected_kl log H_mkl, by EM."""
    K = len(expected)
    row, label = np.nonzero(a.y) if a.soft else (np.arange(len(a.item)), a.y)
    share = a.y[row, label] if a.soft else np.ones(len(row))
    P = predicted[row]
    cell = (who[row] * K)[:, None] * K + np.arange(K) * K + label[:, None]
    habits = np.tile(expected, (M, 1, 1))
    for _ in range(100):
        joint: Floats = P * habits.ravel()[cell]
        total: Floats = joint.sum(axis=1, keepdims=True)
        # Nobody expected this vote, so it says nothing about the habits of those they expected.
        joint *= np.divide(share[:, None], total, out=np.zeros(total.shape), where=total > 0)
        counts = np.bincount(cell.ravel(), joint.ravel(), M * K * K).reshape(M, K, K)
        counts += strength * expected
        before, habits = habits, counts / counts.sum(axis=2, keepdims=True)
        if np.max(np.abs(habits - before)) < 1e-6:
            break
    return habits
