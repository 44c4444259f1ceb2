"""What is believed of items now, and what further annotations would tell about them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slencodings.annotations import Annotations, sums_by
from slencodings.annotators.verdicts import worth_asking
from slencodings.opinion import Codes, Floats
from slencodings.trust import Weighed

# How many numbers are held at once.
_AT_ONCE = 200_000
# So few columns are added up sooner than they are looked up.
_FEW_LABELS = 8
# Square roots of primes give points that fill a cube evenly (Richtmyer 1951).
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
# Other draws begin at another of these.
_FRESH = 5


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is believed of items, and what the next annotation would tell.

    People who annotate one item err together. So after n others one more is counted as the truth
    reading counts it: what the annotator says where a label is true, to the power of
    1 / (1 + c n) and scaled to sum to 1. Where that is also how answers come, a belief keeps its
    mean. Without a model of truth an annotation makes its share of all pseudo-counts certain.

    Attributes
    ----------
    belief : (N, K), what is true
    confusion : (M + 1, K, K), what annotators say (column) where a label is true (row), and at last
        one who is typical of those to ask; None without a model of truth
    evidence : (N,), what is known of items: how many annotations, or counts with the prior
    weight : (M + 1,), what an annotation adds to that
    correlation : of the errors of people on an item; 0 without a model
    value : (M,), how much an annotation of each is worth; 0 for those not to be asked
    """

    belief: Floats
    confusion: Floats | None
    evidence: Floats
    weight: Floats
    correlation: float
    value: Floats

    @property
    def risk(self) -> Floats:
        """How likely the likeliest label of each item is wrong, (N,)."""
        # Rounding may leave a certain label a hair above 1.
        return np.maximum(1 - np.max(self.belief, axis=1, initial=0), 0)

    @property
    def typical(self) -> int:
        """The place of the typical annotator."""
        return len(self.weight) - 1

    def mended(self, items: Codes, annotators: Codes, draws: int, *, fresh: bool = False) -> Floats:
        """How many wrong labels annotations of items are expected to mend, (I, J).

        E[max_k b_k - b_lead] after the first, the first two, ... of them: as beliefs keep their
        mean, that is how much likelier the then likeliest label is right. It is 0 where nothing
        that could be said changes which label that is.

        Parameters
        ----------
        items : (I,)
        annotators : (I, J), who annotates them one after the other; -1 for nobody
        draws : of what they would say, spread evenly
        fresh : other draws than usual. Whoever chose items by some of them would find with the
            same that these were a better choice than they are
        """
        found = np.zeros(annotators.shape)
        K, J = self.belief.shape[1], annotators.shape[1]
        mended = self._mended_by_counts if self.confusion is None else self._mended
        width = draws * J + K if self.confusion is None else draws * K
        step = max(_AT_ONCE // max(width, 1), 1)
        for start in range(0, len(items), step):
            part = slice(start, start + step)
            found[part] = mended(items[part], annotators[part], draws, fresh)
        return found

    def _mended(self, items: Codes, annotators: Codes, draws: int, fresh: bool) -> Floats:
        """By what annotators say where a label is true. Beliefs are (I, K, S): S fills a cache."""
        assert self.confusion is not None, "there is a model of truth"
        b = np.repeat(self.belief[items][:, :, None], draws, axis=2)
        each, lead, n = np.arange(len(items)), np.argmax(b[:, :, 0], axis=1), self.evidence[items]
        gains = np.zeros(annotators.shape)
        for j, who in enumerate(annotators.T):
            # To the power of 0 nobody says anything.
            weight = np.where(who >= 0, self.weight[who], 0)
            power = weight / (1 + self.correlation * n)
            says = self.confusion[who] ** power[:, None, None]
            says /= np.sum(says, axis=2, keepdims=True)
            label = _drawn(np.swapaxes(says, 1, 2) @ b, _points(items, draws, j + _FRESH * fresh))
            b *= _columns_at(says, label)
            b /= np.sum(b, axis=1, keepdims=True)
            n = n + weight
            gains[:, j] = np.mean(np.max(b, axis=1) - b[each, lead], axis=1)
        return gains

    def _mended_by_counts(self, items: Codes, annotators: Codes, draws: int, fresh: bool) -> Floats:
        """Without a model of truth: only labels that are said gain, so no others are looked at.

        What is believed after some answers is a mixture of what is believed now and of each of
        them, and the next answer is drawn from one of these.
        """
        b, n = self.belief[items], self.evidence[items]
        each, lead = np.arange(len(items))[:, None], np.argmax(b, axis=1)[:, None]
        below = np.cumsum(b, axis=1)
        # The distributions of all items one after the other, for one search.
        edges = (below / below[:, -1:] + each).ravel()
        labels = np.zeros((annotators.shape[1], len(items), draws), dtype=np.intp)
        mass, now = np.zeros((annotators.shape[1], len(items), 1)), np.ones((len(items), 1))
        best = at_lead = np.broadcast_to(b[each, lead], (len(items), draws))
        gains = np.zeros(annotators.shape)
        for j, who in enumerate(annotators.T):
            weight = np.where(who >= 0, self.weight[who], 0)
            share = (weight / (n + weight))[:, None]
            u = _points(items, draws, j + _FRESH * fresh)
            found = np.searchsorted(edges, np.minimum(u / now, 1) + each, "right")
            label: Codes = np.clip(found - each * b.shape[1], 0, b.shape[1] - 1)
            reached = now
            for i in range(j):
                label = np.where(u >= reached, labels[i], label)
                reached = reached + mass[i]
            at = now * b[each, label]
            for i in range(j):
                at = at + np.where(labels[i] == label, mass[i], 0)
            # What is the same is so to the last digit.
            at = np.where(label == lead, at_lead, at)
            best = np.maximum((1 - share) * best, (1 - share) * at + share)
            at_lead = (1 - share) * at_lead + np.where(label == lead, share, 0)
            labels[j], now, mass = label, (1 - share) * now, (1 - share) * mass
            mass[j], n = share, n + weight
            gains[:, j] = np.mean(best - at_lead, axis=1)
        return gains


def _points(items: Codes, draws: int, j: int) -> Floats:
    """Points in [0, 1) that fill it evenly, (I, S), for the answer at place j."""
    x, y = (math.sqrt(_PRIMES[at]) for at in (j % len(_PRIMES), -1 - j % len(_PRIMES)))
    # Each item has points of its own, or their errors would add up.
    return np.mod(x * np.arange(1.0, draws + 1) + y * items[:, None], 1)


def _drawn(p: Floats, u: Floats) -> Codes:
    """The label at u (I, S), in [0, 1), of distributions p (I, K, S)."""
    below = np.cumsum(p, axis=1)
    return np.sum(below <= (u * below[:, -1])[:, None], axis=1)


def _columns_at(C: Floats, label: Codes) -> Floats:
    """The columns of matrices (I, K, K) at labels (I, S), as (I, K, S)."""
    N, K, _ = C.shape
    if K > _FEW_LABELS:
        rows = np.swapaxes(C, 1, 2).reshape(N * K, K)
        return np.swapaxes(rows[np.arange(N)[:, None] * K + label], 1, 2)
    found = C[:, :, :1] * (label == 0)[:, None]
    for k in range(1, K):
        found += C[:, :, k, None] * (label == k)[:, None]
    return found


def look_ahead(annotations: Annotations, weighed: Weighed) -> Outlook:
    """What is known of items and of annotators, for a plan."""
    a, crowd, M = annotations, weighed.crowd, len(annotations.annotators)
    asked = worth_asking(a, weighed)
    belief = weighed.truth.probability
    if crowd.model is not None:
        confusion, prior = crowd.model.confusion, crowd.prior
        typical = confusion[asked].mean(axis=0) if asked.any() else crowd.model.crowd
        value = np.where(asked, np.round(information(confusion, prior), 9), 0)
        confusion = np.concatenate([confusion, typical[None]])
        n, c = weighed.evidence.n, crowd.model.correlation
        return Outlook(belief, confusion, n, np.ones(M + 1), c, value)
    n = np.bincount(a.annotator, minlength=M)
    everybody = float(np.mean(weighed.weight)) if len(weighed.weight) else crowd.typical_worth
    weight = np.where(n > 0, sums_by(a.annotator, weighed.weight, M) / np.maximum(n, 1), everybody)
    evidence = 1 + np.sum(weighed.evidence.votes, axis=1)
    typical = float(np.mean(weight[asked])) if asked.any() else everybody
    value = np.where(asked, np.round(weight / (1 + weight), 9), 0)
    return Outlook(belief, None, evidence, np.append(weight, typical), 0.0, value)


def information(C: Floats, prior: Floats) -> Floats:
    """How much an annotation of each tells about the truth, (M,), in nats.

    I_m = sum_k prior_k sum_l C_mkl log(C_mkl / sum_k prior_k C_mkl)

    Errors left after several annotations fall as the exponential of what these tell.
    """
    marginal = np.einsum("k,mkl->ml", prior, C)
    # What nobody ever says tells nothing.
    ratio = np.divide(C, marginal[:, None], out=np.ones(C.shape), where=C > 0)
    return np.maximum(np.einsum("k,mkl,mkl->m", prior, C, np.log(ratio)), 0)
