"""What is hidden from a method, and how its predictions are scored.

Items are dealt into two folds, and the votes on each into two halves. To predict one half of the
votes on the items of a fold, a method is given the other half of them and all votes on all other
items. So every vote is predicted once, by four fits; a fifth, to all votes, is compared with gold.

Who says what is true, not what people say, is translated: what people say, and what each of them
says, where the method takes a label for true. That is learned on the other fold, where fits to one
half of the votes (two more) meet the other half, so it too has seen no vote that is scored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.votes.methods import Method, Prediction, predict
from slencodings import metrics
from slencodings.annotations import Annotations, sums_by
from slencodings.evaluation.predicted import halves, log_loss
from slencodings.evaluation.predictors import crowd_habits, own_habits
from slencodings.evaluation.vote_counts import dirichlet_log_loss
from slencodings.opinion import Codes, Floats

# Log-losses of a vote by anybody, of one by this annotator, and of half of an item's votes
# together; share of wrong labels and log-loss of the truth. Less is better in all of them.
SCORES = ("votes", "own", "joint", "wrong", "truth")
BLOCKS = 50
Mask = NDArray[np.bool_]


class Scored(NamedTuple):
    """Scores added up over blocks of items, and over how much, both (S, BLOCKS)."""

    sums: Floats
    counts: Floats


class _Deal(NamedTuple):
    """The fold (N,) of each item, the half (R,) of each vote (-1 if alone), the block (N,)."""

    fold: Codes
    half: Codes
    block: Codes


def score(method: Method, a: Annotations, truth: Floats | None, seed: int = 0) -> Scored:
    """All scores of a method on a crowd with one label each; `truth` (N, K) is NaN if unknown."""
    deal = _dealt(a, seed)
    translation = _Translation(method, a, deal)
    sums = np.zeros((len(SCORES), len(a.items)))
    counts = np.zeros_like(sums)
    for fold in (0, 1):
        for half in (0, 1):
            hidden = (deal.fold[a.item] == fold) & (deal.half == half)
            said = predict(method, a.rows(~hidden))
            test = a.rows(hidden)
            votes, own = translation(said, test, fold)
            n = test.sums()
            item = np.flatnonzero(n.sum(axis=1))
            spread = np.zeros(len(a.items)) if said.spread is None else said.spread
            sums[0] += sums_by(test.item, log_loss(test.vectors, votes[test.item]), len(a.items))
            sums[1] += sums_by(test.item, log_loss(test.vectors, own), len(a.items))
            sums[2][item] += dirichlet_log_loss(n[item], votes[item], spread[item])
            counts[:3] += n.sum(axis=1)
    if truth is not None:
        said = predict(method, a)
        known = ~np.isnan(truth).any(axis=1)
        p = (said.probability if said.truth is None else said.truth)[known]
        sums[3][known] = 1 - metrics.shares_right(truth[known], p)
        sums[4][known] = log_loss(truth[known], p)
        counts[3:] = known
    return Scored(*(np.stack([sums_by(deal.block, x, BLOCKS) for x in y]) for y in (sums, counts)))


def _dealt(a: Annotations, seed: int) -> _Deal:
    rng = np.random.default_rng(seed)
    half = halves(a, rng).astype(np.intp)
    alone = np.bincount(a.item, minlength=len(a.items))[a.item] < 2
    place = rng.permutation(len(a.items))
    return _Deal(place % 2, np.where(alone, -1, half), place // 2 % BLOCKS)


class _Translation:
    """From what is true to what people say, learned on the other fold if anybody asks."""

    def __init__(self, method: Method, a: Annotations, deal: _Deal):
        self._method, self._a, self._deal = method, a, deal
        self._met: tuple[Annotations, Floats] | None = None

    def __call__(self, said: Prediction, test: Annotations, fold: int) -> tuple[Floats, Floats]:
        """What anybody would say (N, K), and what those did who gave the votes of `test` (R, K)."""
        votes = said.probability
        if said.of_votes and said.own is not None:
            return votes, said.own(test.item, test.annotator)
        met, seen = self._other_fold(fold)
        habits = crowd_habits(seen, met)
        if not said.of_votes:
            votes = votes @ habits
        if said.own is not None:
            return votes, said.own(test.item, test.annotator)
        each = own_habits(seen, met, habits)[test.annotator]
        return votes, np.einsum("qk,qkl->ql", said.probability[test.item], each)

    def _other_fold(self, fold: int) -> tuple[Annotations, Floats]:
        """Votes on items of the other fold, and what is said of each (R, K) without its half."""
        a, half = self._a, self._deal.half
        if self._met is None:
            seen = np.zeros((len(a.item), len(a.labels)))
            for h in (0, 1):
                p = predict(self._method, a.rows(half != h)).probability
                seen[half == h] = p[a.item[half == h]]
            self._met = a, seen
        keep: Mask = (half >= 0) & (self._deal.fold[a.item] != fold)
        return self._met[0].rows(keep), self._met[1][keep]


def one_label_each(a: Annotations) -> Annotations:
    """Soft labels as their likeliest label, with its probability as stated confidence."""
    if not a.soft:
        return a
    top = a.y.max(axis=1)
    return replace(a, y=a.y.argmax(axis=1), uncertainty=1 - top, stated=top)
