"""What people say where a label is true, and what that says of each vote."""

from __future__ import annotations

from dataclasses import replace

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

    def habits(of: NDArray[np.bool_]) -> Floats:
        truths = [t[v[of]] for t in truth[:2]]
        return _habits(model.crowd, truths, votes.label[of], votes.share[of])

    # As the truth behind a vote, so what people say there comes from other items.
    says = np.zeros((2, len(v)))
    for f in range(FOLDS):
        test = truth.fold[v] == f
        H = habits(known & ~test)[:, votes.label[test]].T
        says[:, test] = [np.einsum("bc,bc->b", t[v[test]], H) for t in truth[:2]]
    return model._replace(habits=habits(known)), replace(
        votes, all_say=says[0], earlier_say=says[1]
    )


def _habits(expected: Floats, truths: list[Floats], label: Codes, share: Floats) -> Floats:
    """What people say (column) where the others on an item point to a truth (row), by EM.

    It maximises sum_b s_b log sum_c t_bc H_cl + sum_cl X_cl log H_cl, with X the expected ones.
    """
    K, habits = len(expected), expected
    for _ in range(100):
        counts = expected.copy()
        for truth in truths:
            joint = truth * habits[:, label].T
            joint *= (share / np.sum(joint, axis=1) / len(truths))[:, None]
            counts += np.stack([np.bincount(label, column, K) for column in joint.T])
        new = counts / np.sum(counts, axis=1, keepdims=True)
        if np.max(np.abs(new - habits)) < 1e-6:
            return new
        habits = new
    return habits
