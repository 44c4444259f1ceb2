"""How often people say what the others on an item point to, and else any label as it is common.

One number for each annotator: of many labels there is too little to learn more from, and what is
said where each of them is true would be too much to hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slencodings.annotations import Annotations, base_rate_of, sums_by
from slencodings.opinion import Codes, Floats

# As in `crowd_habits` and `own_habits`.
_EXPECTED, _HABITS_OF_THE_CROWD = 0.9, 10.0
_CLOSE = 1e-4


class OneHabit(NamedTuple):
    """c_m, how often annotator m says what the others point to, of which the crowd's is the last.

    Attributes
    ----------
    follows : (M + 1,), c
    base_rate : (K,), how common each label is
    """

    follows: Floats
    base_rate: Floats

    def said(self, pointed: Floats, who: Codes | None = None) -> Floats:
        """What anybody, or each annotator, would say: c P + (1 - c) a, (R, K)."""
        c = self.follows[[-1] if who is None else who][:, None]
        return c * pointed + (1 - c) * self.base_rate


def learn_one_habit(pointed: Floats, a: Annotations) -> OneHabit:
    """Learn it from annotations, and what the others on their items point to, (R, K), by EM.

    The crowd's maximises sum_q sum_l y_ql log(c P_ql + (1 - c) a_l) + .9 log c + .1 log(1 - c), and
    an annotator's the same with ten annotations by the crowd's in place of one.
    """
    base_rate = base_rate_of(a.sums().sum(axis=0))
    vote, label = np.nonzero(a.y) if a.soft else (np.arange(len(a.item)), a.y)
    share = a.y[vote, label] if a.soft else np.ones(len(vote))
    P, otherwise = pointed[vote, label], base_rate[label]

    def learn(group: Codes, size: int, expected: float, strength: float) -> Floats:
        c = np.full(size, expected)
        total = sums_by(group, share, size) + strength
        for _ in range(100):
            follows = c[group] * P
            told = follows / (follows + (1 - c[group]) * otherwise)
            before, c = c, (sums_by(group, share * told, size) + strength * expected) / total
            if np.max(np.abs(c - before)) < _CLOSE:
                break
        return c

    crowd = learn(np.zeros(len(vote), dtype=np.intp), 1, _EXPECTED, 1.0)
    people = learn(a.annotator[vote], len(a.annotators), float(crowd[0]), _HABITS_OF_THE_CROWD)
    return OneHabit(np.concatenate([people, crowd]), base_rate)
