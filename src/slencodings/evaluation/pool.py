"""A pool of methods: what a few of them say, averaged by how well they did on other items.

Members are chosen by forward selection with replacement (Caruana et al., "Ensemble selection from
libraries of models", ICML 2004). What is chosen for a fold must not have seen it: so members are
fitted without two of the folds, and each of the two is predicted to choose for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from slencodings.evaluation.learner import Encoding, Learner, Method
from slencodings.evaluation.predicted import HeldOut, Predicted, log_loss, predict
from slencodings.opinion import Codes, Floats

NAME = "pool of methods"
# How often a member is added.
_MOST = 5


class Weights(NamedTuple):
    """What each candidate counts, (C,): to predict anybody's vote, and this annotator's."""

    votes: Floats
    own: Floats


def pairs(n_folds: int) -> list[tuple[int, int]]:
    """Folds to leave out together, so that every fold has one to choose on; none if there are two.

    >>> pairs(5)
    [(0, 1), (2, 3), (4, 0)]
    """
    if n_folds < 3:
        return []
    return [(f, f + 1 if f + 1 < n_folds else 0) for f in range(0, n_folds, 2)]


class ChosenPool(NamedTuple):
    """Of each fold: the weights, and a learner that has seen neither it nor what chose them."""

    weights: list[Weights]
    learners: list[Learner | None]


def choose_by_fold(
    candidates: Mapping[str, Method],
    everything: HeldOut,
    fold: Codes,
    tell: Callable[[str], None] = lambda name: None,
) -> ChosenPool:
    """The weights for each fold, from items of another one and fits that have seen neither.

    With two folds nothing is left to learn from, and all candidates count alike. Without candidates
    there are learners alone: what a method learns for a fold is the same whether others are pooled.
    """
    a, n_folds, C = everything.annotations, int(fold.max()) + 1, len(candidates)
    weights = [Weights(*np.full((2, C), 1 / max(C, 1)))] * n_folds
    learners: list[Learner | None] = [None] * n_folds
    for f, g in pairs(n_folds):
        learner = Learner(a.rows(~np.isin(fold, (f, g))[a.item]), everything.scored)
        # A fold that is left out twice, as their number is odd, goes on from the first of the two.
        learners[f], learners[g] = learner, learners[g] or learner
        if not candidates:
            continue
        tests = [everything.items(fold == h) for h in (f, g)]
        predictions: list[list[Predicted]] = [[], []]
        for name, method in candidates.items():
            tell(name)
            fit = method(learner)
            for s, test in zip(predictions, tests, strict=True):
                s.append(predict(fit, learner.annotations, test))
        weights[f] = choose(predictions[1], tests[1])
        if g > f:  # else it had its turn
            weights[g] = choose(predictions[0], tests[0])
    return ChosenPool(weights, learners)


def choose(predictions: Sequence[Predicted], held_out: HeldOut) -> Weights:
    """The weights under which a pool predicts these annotations well."""
    scored = held_out.counted
    y = held_out.annotations.vectors[scored]
    return Weights(
        _select([p.votes[scored] for p in predictions], y),
        _select([p.own[scored] for p in predictions], y),
    )


def _select(predictions: Sequence[Floats], y: Floats) -> Floats:
    """Add the member that lowers the mean log-loss most, until none does."""
    times, total, lowest = np.zeros(len(predictions)), np.zeros(y.shape), np.inf
    for n in range(1, _MOST + 1):
        losses = [float(np.mean(log_loss(y, (total + p) / n))) for p in predictions]
        i = int(np.argmin(losses))
        if n > 1 and losses[i] >= lowest:
            break
        lowest, total = losses[i], total + predictions[i]
        times[i] += 1
    return times / np.sum(times)


def pool(predictions: Sequence[Predicted], weights: Weights) -> Predicted:
    """What the members say, averaged: chances of a vote, and chances of several votes together."""
    by_votes = [(w, p) for w, p in zip(weights.votes.tolist(), predictions, strict=True) if w > 0]
    by_own = [(w, p) for w, p in zip(weights.own.tolist(), predictions, strict=True) if w > 0]
    with np.errstate(divide="ignore"):
        joint = np.logaddexp.reduce([np.log(w) - p.joint for w, p in by_votes])
    return Predicted(
        votes=np.sum([w * p.votes for w, p in by_votes], axis=0),
        direct=np.sum([w * p.direct for w, p in by_votes], axis=0),
        own=np.sum([w * p.own for w, p in by_own], axis=0),
        joint=np.maximum(-joint, 0),
    )


def pool_targets(targets: Mapping[str, Encoding], weights: Sequence[Weights]) -> Encoding:
    """What the members take for true, averaged by their mean weights over the folds."""
    w = np.mean([fold.votes for fold in weights], axis=0)
    kept = [
        (x, name, target) for x, (name, target) in zip(w.tolist(), targets.items(), strict=True)
    ]
    members = sorted(((x, name) for x, name, _ in kept if x > 0), reverse=True)
    return Encoding(
        np.sum([x * target.probability for x, _, target in kept], axis=0),
        converged=all(target.converged for x, _, target in kept if x > 0),
        doubts=True,
        notes=("; ".join(f"{name} {x:.0%}" for x, name in members),),
    )
