"""What people do with ratings who take them for numbers: average them. To compare with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from slencodings.annotations import Annotations, leave_one_out, sums_by
from slencodings.opinion import Floats

# Less likely than this is not told apart.
_TINY = float(np.finfo(float).tiny)
# How many annotations the mean of all counts as beside those of an item; the likeliest is taken.
_HELD_BACK = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# An annotator's bias is believed half if it is seen in so many annotations.
_BIAS_OF_THE_CROWD = 10.0


class Averaged(NamedTuple):
    """Ordered labels as numbers: a normal around the others' mean, cut half way between labels.

    mean = (sum x + c m) / (n + c),   variance = v (1 + 1 / (n + c)),   x the places of labels

    Attributes
    ----------
    center, held_back, variance : m, c and v
    """

    center: float
    held_back: float
    variance: float

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

    def spread(self, annotations: Annotations) -> Floats:
        """Nothing: it tells no doubt about its probabilities."""
        return np.zeros(len(annotations.item))

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
