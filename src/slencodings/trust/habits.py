"""What people say where a label is true, and what that says of each vote."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.opinion import Codes, Floats
from slencodings.trust.truth import FOLDS, TruthModel, TruthOfOthers
from slencodings.trust.worth import Votes

# More votes tell no more about what people say where a label is true.
_ENOUGH = 50_000


def through_truth(
    model: TruthModel, truth: TruthOfOthers, votes: Votes, rng: np.random.Generator
) -> tuple[TruthModel, Votes]:
    """What people say where a label is true, and what that says of each vote."""
    v, n = votes.vote, np.bincount(votes.item, minlength=votes.sizes[0])
    known = (n > 1)[votes.item[v]] & (votes.scored[v] > 0)
    some = rng.random(votes.sizes[0]) < _ENOUGH / max(len(v), 1)
    known &= some[votes.item[v]]

    learning = _Learning.of(model.crowd, truth, votes, np.where(known, votes.share, 0.0))
    # As the truth behind a vote, so what people say there comes from other items.
    says = np.zeros((2, len(v)))
    for f in range(FOLDS):
        test = truth.fold[v] == f
        H = learning.habits(~test)[:, votes.label[test]].T
        says[:, test] = [np.einsum("bc,bc->b", t[v[test]], H) for t in truth[:2]]
    habits = learning.habits(np.ones(len(v), dtype=bool))
    return model._replace(habits=habits), replace(votes, all_say=says[0], earlier_say=says[1])


class _Learning(NamedTuple):
    """Votes from which is learned what people say, sorted by label: so each label is one slice.

    Attributes
    ----------
    expected : (K, K), what people say before any vote is seen
    truths : (2, K, S), the two truths behind each vote
    share, vote : (S,), how much of a vote it is, and which of them
    ends : the slice of each label
    """

    expected: Floats
    truths: Floats
    share: Floats
    vote: Codes
    ends: list[slice]

    @classmethod
    def of(cls, expected: Floats, truth: TruthOfOthers, votes: Votes, share: Floats) -> _Learning:
        """Those of the votes that have a share."""
        K, some = len(expected), np.flatnonzero(share > 0)
        some = some[np.argsort(votes.label[some], kind="stable")]
        last = np.cumsum(np.bincount(votes.label[some], minlength=K)).tolist()
        truths = np.stack([np.ascontiguousarray(t[votes.vote[some]].T) for t in truth[:2]])
        ends = [slice(a, b) for a, b in pairwise([0, *last])]
        return cls(expected, truths, share[some], some, ends)

    def habits(self, learned_from: NDArray[np.bool_]) -> Floats:
        """What people say (column) where the others on an item point to a truth (row), by EM.

        It maximises sum_b s_b log sum_c t_bc H_cl + sum_cl X_cl log H_cl, with X the expected ones,
        over the votes to learn from, (B,), and over both truths, half each.
        """
        share, habits = np.where(learned_from[self.vote], self.share / 2, 0.0), self.expected
        for _ in range(100):
            counts = self.expected.copy()
            for said, votes in enumerate(self.ends):
                t, H = self.truths[:, :, votes], habits[:, said]
                told = share[votes] / np.einsum("pcb,c->pb", t, H)
                counts[:, said] += H * np.einsum("pcb,pb->c", t, told)
            new = counts / np.sum(counts, axis=1, keepdims=True)
            if np.max(np.abs(new - habits)) < 1e-6:
                return new
            habits = new
        return habits
