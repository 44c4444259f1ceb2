"""What further annotations would tell about items, and where they are expected to mend most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

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
# An item gets no more at a time: what they say may change the plan.
MOST_EACH = 8
# What is said of the time after a plan is about so many annotations more.
NEXT = 100
DRAWS = 64
# Items that are looked at first, and again before more are.
_FEWEST = 1_000
# Fewer mended labels than this are none: so many draws do not tell them from 0.
_NOTHING = 1e-6


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


class Plan(NamedTuple):
    """How many further annotations each item gets.

    Attributes
    ----------
    planned : int (N,)
    gain : (N,), labels that the planned ones are expected to mend, by a typical annotator
    next_gain : labels that the next 100 after them would mend
    looked_at : how many items were looked at; the others cannot gain as much
    """

    planned: Codes
    gain: Floats
    next_gain: float
    looked_at: int


def plan(outlook: Outlook, budget: int, most: Codes) -> Plan:
    """The best use of so many annotations by a typical annotator; at most `most` (N,) an item.

    One annotation may be unable to change a label that three can. So what the first, the first
    two, ... would mend is replaced by its least concave majorant, whose steps fall, and the largest
    steps of all items are taken. A step is at most the risk that the item's label is wrong: items
    are looked at from the largest risk on, until no other can have a step among those taken.
    """
    # Rounded, so that what is equal but for rounding is tried in the order of items.
    order = np.argsort(-np.round(outlook.risk, 9), kind="stable")
    order = order[(most[order] > 0) & (outlook.risk[order] > _NOTHING)]
    risk = outlook.risk[order]
    steps = np.zeros((0, MOST_EACH))
    while len(steps) < len(order):
        more = order[len(steps) : max(2 * len(steps), _FEWEST)]
        steps = np.concatenate([steps, _steps(outlook, more, most[more])])
        best = -np.partition(-steps.ravel(), min(budget + NEXT, steps.size) - 1)
        enough = best[min(budget + NEXT, steps.size) - 1]
        if len(steps) < len(order) and steps.size > budget + NEXT and enough >= risk[len(steps)]:
            break
    # Ties go by the order of items, and an item's steps are taken one after the other.
    ranked = np.argsort(-np.round(steps.ravel(), 9), kind="stable")
    ranked = ranked[steps.ravel()[ranked] > _NOTHING]
    planned, gain = np.zeros(len(outlook.risk), dtype=np.intp), np.zeros(len(outlook.risk))
    item = order[ranked // MOST_EACH]
    np.add.at(planned, item[:budget], 1)
    np.add.at(gain, item[:budget], steps.ravel()[ranked[:budget]])
    after = float(np.sum(steps.ravel()[ranked[budget : budget + NEXT]]))
    return Plan(planned, gain, after, len(steps))


def _steps(outlook: Outlook, items: Codes, most: Codes) -> Floats:
    """What each further annotation of items mends, (I, J), largest first."""
    who = np.full((len(items), MOST_EACH), outlook.typical)
    total = outlook.mended(items, who, DRAWS)
    # Those that cannot be had mend nothing more.
    last = np.minimum(most, MOST_EACH)[:, None] - 1
    at_most = np.minimum(np.arange(MOST_EACH)[None], last)
    return np.diff(concave(np.take_along_axis(total, at_most, axis=1)), axis=1, prepend=0)


def concave(total: Floats) -> Floats:
    """The least concave majorant of 0 and of what follows it, (I, J), at the same places.

    >>> concave(np.asarray([[0.0, 0.0, 0.3, 0.3]]))
    array([[0.1, 0.2, 0.3, 0.3]])
    """
    y = np.maximum.accumulate(np.pad(total, ((0, 0), (1, 0))), axis=1)
    J = y.shape[1]
    found = y.copy()
    for a in range(J):
        for b in range(a + 2, J):
            at = (np.arange(a + 1, b) - a) / (b - a)
            between = y[:, a, None] * (1 - at) + y[:, b, None] * at
            found[:, a + 1 : b] = np.maximum(found[:, a + 1 : b], between)
    return found[:, 1:]
