"""What is true of items, from what each annotator says where a label is true.

And what people say there, which is what the truth says of each vote.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import em, shrunk_dawid_skene
from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats
from slencodings.trust.running_sums import OrderedGroups
from slencodings.trust.worth import ENOUGH, Votes

# How strongly confusions are shrunk to the crowd's, in annotations of each true label, and how
# alike the errors of people on one item are; both are chosen on held-out votes.
STRENGTHS = (3.0, 10.0, 30.0)
_CORRELATIONS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
# Truths behind a vote come from what other items taught about annotators, or they would agree with
# it by having learned from it.
FOLDS = 4
# What is only to choose and to predict by needs fewer digits.
ROUGHLY = 1e-4
# Log-likelihoods (R, K) and how many (R,): of all others on a vote's item, and of those before it.
_LeaveOneOut: TypeAlias = list[tuple[Floats, Floats]]
# More votes tell no more about what people say where a label is true.
_ENOUGH_FOR_HABITS = 50_000
# Of steps of EM, that a leap goes on for.
_LONGEST = 16.0


class Shrinking(NamedTuple):
    """How strongly confusions are held to what is expected, and whether that follows the order."""

    strength: float
    along_order: bool


class TruthModel(NamedTuple):
    """How common each truth is, and what people say where it holds.

    People who answer about one item err together, which no model of single annotators sees: n of
    them tell as much as n / (1 + c (n - 1)) would on their own, with c the correlation.

    Attributes
    ----------
    prior : (K,)
    confusion : (M, K, K), by annotator, truth and label said
    crowd : (K, K), what everybody together says, and so what is expected of somebody new
    habits : (K, K), what those say (column) whose votes are predicted, where a label is true (row)
    correlation : c
    shrinking : how confusions were shrunk to the crowd's
    """

    prior: Floats
    confusion: Floats
    crowd: Floats
    habits: Floats
    correlation: float
    shrinking: Shrinking

    def posterior(self, log_likelihood: Floats, n: Floats) -> Floats:
        """The truth (N, K), from summed log-likelihoods (N, K) of n annotations (N,)."""
        return posterior(em.safe_log(self.prior), log_likelihood, n, self.correlation)


def posterior(log_prior: Floats, log_likelihood: Floats, n: Floats, correlation: float) -> Floats:
    """The truth (N, K) from its prior, and from log-likelihoods of n annotations added up."""
    log_joint = log_likelihood / (1 + correlation * np.maximum(n - 1, 0))[:, None]
    log_joint += log_prior
    return em.posterior(log_joint, np.full(len(n), -1))[0]


class TruthOfOthers(NamedTuple):
    """The truth behind each vote, (R, K), by all others on its item and by those before it.

    `fold` (R,) is the part of the items that was left out when annotators were learned for it.
    """

    all: Floats
    earlier: Floats
    fold: Codes


def log_likelihoods(annotations: Annotations, log_confusion: Floats) -> Floats:
    """The log-likelihood of each annotation if a label is true, (R, K)."""
    a = annotations
    if a.soft:
        return np.einsum("ql,qcl->qc", a.y, log_confusion[a.annotator])
    return log_confusion[a.annotator, :, a.y]


def learn_truth(
    annotations: Annotations,
    predicted: Annotations,
    rng: np.random.Generator,
    like: TruthModel | None = None,
) -> tuple[TruthModel, TruthOfOthers]:
    """Learn what annotators say where a label is true, as strongly shrunk as predicts votes best.

    The truth behind votes is that of `predicted`, which are all annotations of some of the items,
    sorted by item and in a random order within. What was chosen for `like` is not chosen anew.
    """
    p, N = predicted, len(predicted.items)
    fold = rng.integers(0, FOLDS, N)[p.item]
    held_out: _HeldOutVotes | None = None
    if like is not None:
        shrinking, correlation = like.shrinking, like.correlation
    else:
        # A few items choose as well as many.
        few = (rng.random(N) < ENOUGH / max(len(p.item), 1))[p.item]
        shrinking, correlation, held_out = _choose(p.rows(few), fold[few])
        held_out = held_out if few.all() else None
    model = fit_model(annotations, shrinking, correlation)
    held_out = held_out or _HeldOutVotes.learn(p, fold, shrinking)
    return model, held_out.truth(held_out.leave_one_out(OrderedGroups.of(p.item)), correlation)


def _choose(a: Annotations, fold: Codes) -> tuple[Shrinking, float, _HeldOutVotes]:
    """What predicts votes best: how confusions are shrunk, how errors correlate; and the votes."""
    items, tried = OrderedGroups.of(a.item), dict[Shrinking, _HeldOutVotes]()
    orders = (False, True) if a.ordered else (False,)
    shrinkings = [Shrinking(s, along_order) for along_order in orders for s in STRENGTHS]
    best = (np.inf, shrinkings[0], _CORRELATIONS[0])
    for shrinking in shrinkings:
        held_out = tried[shrinking] = _HeldOutVotes.learn(a, fold, shrinking)
        evidence = held_out.leave_one_out(items)
        for correlation in _CORRELATIONS:
            best = min(best, (held_out.loss(evidence, correlation), shrinking, correlation))
    _, shrinking, correlation = best
    return shrinking, correlation, tried[shrinking]


class _HeldOutVotes(NamedTuple):
    """Votes as what was learned on other items sees them.

    Attributes
    ----------
    log_likelihood : (R, K), of the vote if a label is true
    log_prior : (R, K)
    fold : (R,), the part of the items that the vote is on
    """

    log_likelihood: Floats
    log_prior: Floats
    fold: Codes

    @classmethod
    def learn(cls, a: Annotations, fold: Codes, shrinking: Shrinking) -> _HeldOutVotes:
        shape = len(a.item), len(a.labels)
        votes = cls(np.zeros(shape), np.zeros(shape), fold)
        for f in range(FOLDS):
            test = fold == f
            taught = fit_model(a.rows(~test), shrinking, tol=ROUGHLY)
            votes.log_likelihood[test] = log_likelihoods(a.rows(test), np.log(taught.confusion))
            votes.log_prior[test] = em.safe_log(taught.prior)
        return votes

    def leave_one_out(self, items: OrderedGroups) -> _LeaveOneOut:
        """What is said of the item of each vote, but for that vote."""
        every, earlier = (np.empty(self.log_likelihood.shape) for _ in range(2))
        for k, column in enumerate(self.log_likelihood.T):
            every[:, k], earlier[:, k] = items.others_and_before(column)
        n_others, n_before = items.others_and_before(np.ones(len(every)))
        return [(every, n_others), (earlier, n_before)]

    def truth(self, evidence: _LeaveOneOut, correlation: float) -> TruthOfOthers:
        every, earlier = (posterior(self.log_prior, *each, correlation) for each in evidence)
        return TruthOfOthers(every, earlier, self.fold)

    def loss(self, evidence: _LeaveOneOut, correlation: float) -> float:
        """The log-loss of votes by annotators who are known, half from each of two truths."""
        likelihood = np.exp(self.log_likelihood)
        truths = self.truth(evidence, correlation)[:2]
        chances = (np.einsum("qc,qc->q", truth, likelihood) for truth in truths)
        return -sum(float(np.sum(np.log(chance))) for chance in chances) / 2


def fit_model(
    a: Annotations,
    shrinking: Shrinking,
    correlation: float = 0.0,
    *,
    log_source: Floats | None = None,
    tol: float = 1e-5,
) -> TruthModel:
    """What annotators say where a label is true, shrunk so; as habits, what the crowd says."""
    found = shrunk_dawid_skene(
        a,
        prior_strength=shrinking.strength,
        along_order=shrinking.along_order,
        use_confidence=False,
        log_source=log_source,
        tol=tol,
    ).details
    crowd = found["crowd"]
    return TruthModel(found["prior"], found["confusion"], crowd, crowd, correlation, shrinking)


def through_truth(
    model: TruthModel, truth: TruthOfOthers, votes: Votes, rng: np.random.Generator
) -> tuple[TruthModel, Votes]:
    """What people say where a label is true, and what that says of each vote."""
    v, n = votes.vote, np.bincount(votes.item, minlength=votes.sizes[0])
    known = (n > 1)[votes.item[v]] & (votes.scored[v] > 0)
    some = rng.random(votes.sizes[0]) < _ENOUGH_FOR_HABITS / max(len(v), 1)
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
        for label, votes in enumerate(seen.labels):
            t, H = seen.truths[:, :, votes], habits[:, label]
            chance: Floats = np.einsum("pcb,c->pb", t, H)
            # Nobody expected this vote, so it says nothing about the habits of those they expected.
            weight = np.divide(
                seen.share[votes], chance, out=np.zeros_like(chance), where=chance > 0
            )
            counts[:, label] += H * np.einsum("pcb,pb->c", t, weight)
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
