"""What each annotator says where the others on an item point to a label.

Of many labels most get no vote on an item, and most annotators never say most of them: what nobody
was heard to say follows from the crowd's habits, and is not held for each annotator.

Of very many labels there is too little to learn more than one number from for each annotator: how
often they say what the others point to, and else any label as it is common (`OneHabit`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slencodings.aggregate.em import EXPECTED_ACCURACY
from slencodings.annotations import Annotations, base_rate_of, sums_by
from slencodings.opinion import Codes, Floats

# An annotator's habits are as strong as the crowd's once they are seen in so many annotations.
_HABITS_OF_THE_CROWD = 10.0
# More digits of habits move the log-loss by a few in a hundred thousand.
CLOSE = 1e-4
# Meetings of votes and labels that are in memory at a time.
_AT_ONCE = 2**22


class Pointed(NamedTuple):
    """What the others on its item say of each annotation, P_qk = S_qk + c_q a_k.

    Attributes
    ----------
    row, label, share : (Z,), where S is not 0, and what it is there
    rest : (R,), c
    base_rate : (K,), a
    """

    row: Codes
    label: Codes
    share: Floats
    rest: Floats
    base_rate: Floats

    @classmethod
    def of(cls, share: Floats, rest: Floats, base_rate: Floats) -> Pointed:
        """From S (R, K), c and a."""
        row, label = np.nonzero(share)
        return cls(row, label, share[row, label], rest, base_rate)

    @property
    def first(self) -> Codes:
        """Where each annotation's begin, (R + 1,), with where the last ones end."""
        n = np.bincount(self.row, minlength=len(self.rest))
        return np.concatenate([[0], np.cumsum(n)])


class OwnHabits(NamedTuple):
    """H_mkl, how often annotator m says l where the others point to k, and what it is made of.

    Where m was never heard to say l it is s X_kl / T_mk, with X the crowd's.

    Attributes
    ----------
    crowd : (K, K), X by label pointed to and label said
    total : (M, K), T
    annotator, label : (U,), who was heard to say what, sorted
    heard : (U, K), H of these by the label pointed to
    """

    crowd: Floats
    total: Floats
    annotator: Codes
    label: Codes
    heard: Floats

    def table(self) -> Floats:
        """All of H, (M, K, K)."""
        H = _HABITS_OF_THE_CROWD * self.crowd / self.total[:, :, None]
        H[self.annotator, :, self.label] = self.heard
        return H

    def predict(self, pointed: Pointed, who: Codes) -> Floats:
        """What each annotator would say themselves, P_q H_m, (R, K)."""
        from scipy.sparse import csr_array

        p, K = pointed, len(self.crowd)
        expected = _HABITS_OF_THE_CROWD * self.crowd
        share = p.share / self.total[who[p.row], p.label]
        S = csr_array((share, p.label, p.first), shape=(len(who), K))
        chances: Floats = S @ expected
        chances += p.rest[:, None] * (p.base_rate / self.total @ expected)[who]
        # Each of an annotator's rows meets each label that they were heard to say.
        n = np.bincount(self.annotator, minlength=len(self.total))
        first = np.cumsum(n) - n
        row, cell = _meetings(np.arange(len(who)), n[who], first[who])
        at = self.label[cell]
        chances[row, at] = p.rest[row] * (self.heard @ p.base_rate)[cell]
        n, first = n[who[p.row]], first[who[p.row]]
        for some in np.array_split(np.arange(len(p.row)), 1 + int(n.sum()) // _AT_ONCE):
            entry, cell = _meetings(some, n[some], first[some])
            part = p.share[entry] * self.heard[cell, p.label[entry]]
            place = p.row[entry] * K + self.label[cell]
            chances += sums_by(place, part, chances.size).reshape(chances.shape)
        return chances


def _meetings(each: Codes, n: Codes, first: Codes) -> tuple[Codes, Codes]:
    """Every element so often, and with it the places from its first on."""
    repeated = np.repeat(each, n)
    return repeated, np.arange(len(repeated)) + np.repeat(first - np.cumsum(n) + n, n)


def learn_own_habits(pointed: Pointed, a: Annotations, crowd: Floats) -> OwnHabits:
    """The habits of each annotator, who start from the crowd's.

    Maximise sum_q sum_l y_ql log sum_k P_qk H_mkl + s sum_kl crowd_kl log H_mkl, by EM.
    """
    p, (M, K), s = pointed, (len(a.annotators), len(crowd)), _HABITS_OF_THE_CROWD
    vote, label = np.nonzero(a.y) if a.soft else (np.arange(len(a.item)), a.y)
    share = a.y[vote, label] if a.soft else np.ones(len(vote))
    used, cell = np.unique(a.annotator[vote] * K + label, return_inverse=True)
    U, B, (who, answer) = len(used), len(vote), np.divmod(used, K)
    first = p.first
    of, entry = _meetings(np.arange(B), np.diff(first)[vote], first[vote])
    at, part, rest = cell[of] * K + p.label[entry], p.share[entry], p.rest[vote]
    heard = crowd.T[answer]
    expected = s * heard
    people, begin = np.unique(who, return_index=True)
    total = alone = np.tile(s * crowd.sum(axis=1), (M, 1))
    for _ in range(100):
        chance = sums_by(of, part * heard.ravel()[at], B) + rest * (heard @ p.base_rate)[cell]
        # As in `learn_habits`, what nobody expected says nothing about habits.
        weight = np.divide(share, chance, out=np.zeros(B), where=chance > 0)
        counts = sums_by(at, part * weight[of], U * K).reshape(U, K)
        counts += sums_by(cell, rest * weight, U)[:, None] * p.base_rate
        counts *= heard
        before, total = total, alone.copy()
        total[people] += np.add.reduceat(counts, begin, axis=0)
        counts += expected
        counts /= total[who]
        # Memory for so many numbers takes as long to get as they take to add up.
        heard -= counts
        moved = max(np.max(heard, initial=0.0), -np.min(heard, initial=0.0))
        heard = counts
        if moved < CLOSE and _unheard_moved(crowd, used, before, total) < CLOSE:
            break
    return OwnHabits(crowd, total, who, answer, heard)


def _unheard_moved(crowd: Floats, used: Codes, before: Floats, total: Floats) -> float:
    """How far the habits moved most among what annotators were never heard to say."""
    moved = _HABITS_OF_THE_CROWD * np.abs(1 / total - 1 / before)
    # At most, if their commonest answer is among it; where that is enough there is more to see.
    who, k = np.nonzero(moved * np.max(crowd, axis=1) >= CLOSE)
    never = np.ones(total.shape, dtype=bool)
    never.ravel()[used] = False
    most = np.max(np.where(never[who], crowd[k], 0.0), axis=1, initial=0.0)
    return float(np.max(moved[who, k] * most, initial=0.0))


class OneHabit(NamedTuple):
    """c_m, how often annotator m says what the others point to, of which the crowd's is the last.

    Attributes
    ----------
    follows : (M + 1,), c
    base_rate : (K,), how common each label is
    """

    follows: Floats
    base_rate: Floats

    def predict(self, pointed: Floats, who: Codes | None = None) -> Floats:
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
            followed = follows / (follows + (1 - c[group]) * otherwise)
            before, c = c, (sums_by(group, share * followed, size) + strength * expected) / total
            if np.max(np.abs(c - before)) < CLOSE:
                break
        return c

    crowd = learn(np.zeros(len(vote), dtype=np.intp), 1, EXPECTED_ACCURACY, 1.0)
    people = learn(a.annotator[vote], len(a.annotators), float(crowd[0]), _HABITS_OF_THE_CROWD)
    return OneHabit(np.concatenate([people, crowd]), base_rate)
