"""What people say where a label is true, and what that says of each vote."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import em
from slencodings.opinion import Codes, Floats
from slencodings.trust.truth import FOLDS, TruthModel, TruthOfOthers
from slencodings.trust.worth import Votes

# More votes tell no more about what people say where a label is true.
_ENOUGH = 50_000
# Of steps of EM, that a leap goes on for.
_LONGEST = 16.0


def through_truth(
    model: TruthModel, truth: TruthOfOthers, votes: Votes, rng: np.random.Generator
) -> tuple[TruthModel, Votes]:
    """What people say where a label is true, and what that says of each vote."""
    v, n = votes.vote, np.bincount(votes.item, minlength=votes.sizes[0])
    known = (n > 1)[votes.item[v]] & (votes.scored[v] > 0)
    some = rng.random(votes.sizes[0]) < _ENOUGH / max(len(v), 1)
    known &= some[votes.item[v]]

    known = np.flatnonzero(known)
    seen = Seen.of([t[v[known]] for t in truth[:2]], votes.label[known], votes.share[known] / 2)
    # As the truth behind a vote, so what people say there comes from other items.
    says = np.zeros((2, len(v)))
    for f in range(FOLDS):
        test = truth.fold[v] == f
        H = learn_habits(model.crowd, seen.those(~test[known]), 1e-6)[:, votes.label[test]].T
        says[:, test] = [np.einsum("bc,bc->b", t[v[test]], H) for t in truth[:2]]
    habits = learn_habits(model.crowd, seen, 1e-6)
    return model._replace(habits=habits), replace(votes, all_say=says[0], earlier_say=says[1])


class Seen(NamedTuple):
    """Votes, and the truth behind them as others see it, sorted by label: each is one slice.

    Attributes
    ----------
    truths : (T, K, S), one or several truths of each vote
    share, order : (S,), how much each of them counts, and which of the votes that came it is
    labels : the slice of each label
    """

    truths: Floats
    share: Floats
    order: Codes
    labels: list[slice]

    @classmethod
    def of(cls, truths: list[Floats], label: Codes, share: Floats) -> Seen:
        """From truths (S, K), the labels (S,) and shares (S,)."""
        order, K = np.argsort(label, kind="stable"), truths[0].shape[1]
        last = np.cumsum(np.bincount(label, minlength=K)).tolist()
        stacked = np.stack([np.ascontiguousarray(t[order].T) for t in truths])
        return cls(stacked, share[order], order, [slice(*ends) for ends in pairwise([0, *last])])

    def those(self, kept: NDArray[np.bool_]) -> Seen:
        """The same, of which some votes count, by a mask (S,) of them as they came."""
        return self._replace(share=np.where(kept[self.order], self.share, 0.0))


def learn_habits(expected: Floats, seen: Seen, tol: float) -> Floats:
    """What people say (column) where the others on an item point to a truth (row), by EM.

    It maximises sum_b s_b log sum_c t_bc H_cl + sum_cl X_cl log H_cl, with X the expected ones, and
    ends where none moves by more than `tol`.
    """

    def step(habits: Floats) -> Floats:
        counts = expected.copy()
        for said, votes in enumerate(seen.labels):
            t, H = seen.truths[:, :, votes], habits[:, said]
            chance: Floats = np.einsum("pcb,c->pb", t, H)
            # Nobody expected this vote, so it says nothing about the habits of those they expected.
            told = np.divide(seen.share[votes], chance, out=np.zeros_like(chance), where=chance > 0)
            counts[:, said] += H * np.einsum("pcb,pb->c", t, told)
        return counts / np.sum(counts, axis=1, keepdims=True)

    alike = np.ones(1)
    before, habits = expected, step(expected)
    for _ in range(15):
        after = step(habits)
        if np.max(np.abs(after - habits)) < tol:
            return after
        path = (em.Point(alike, x) for x in (before, habits, after))
        before = em.leap(*path, longest=_LONGEST)[0].annotators
        habits = step(before)
    return habits
