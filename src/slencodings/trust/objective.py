"""How well votes predict each other by what they are worth, and its gradient.

`worth` has the formula: each vote is predicted from all others on its item and from those before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from slencodings.annotations import sums_by
from slencodings.opinion import Codes, Floats
from slencodings.trust.running_sums import OrderedGroups
from slencodings.trust.worth import Learned, Ridge, Votes


class Prediction(NamedTuple):
    """Votes as others predict them, P = num / den: as all others do, then as those before do.

    Attributes
    ----------
    num : (2, B)
    den : (2, R), 1 + S
    meant : (2, B), the label's part of E C
    worth : (R,), of each vote
    C : (K, K), as in `Learned`
    means : (K, R), what each vote says about each label, y C; None if about its own alone
    """

    num: Floats
    den: Floats
    meant: Floats
    worth: Floats
    C: Floats | None
    means: Floats | None


@dataclass(frozen=True)
class Objective:
    """The mean loss of votes; what does not change from step to step is kept.

    Attributes
    ----------
    items, cells : the votes by item, and by (item, label), in which worth adds up
    prior : (B,), the base rate of the label
    say : (2, B), V of the label
    counted : (B,), the share of votes that are predicted
    own, before, start, end : (B,), where in tables (K, R) and in sums (K, R + 1) along their rows
        a vote's own label is, those before it, and the beginning and end of its item
    y : (K, R), the labels; None if each vote has one, which is looked up instead
    """

    votes: Votes
    items: OrderedGroups
    cells: OrderedGroups
    prior: Floats
    say: Floats
    counted: Floats
    own: Codes
    before: Codes
    start: Codes
    end: Codes
    y: Floats | None

    @classmethod
    def of(cls, votes: Votes) -> Objective:
        """The objective of votes, which are sorted by item."""
        v, R, K, y = votes, len(votes.item), len(votes.base_rate), None
        if not (np.array_equal(v.vote, np.arange(R)) and np.all(v.share == 1)):
            y = np.zeros((K, R))
            y[v.label, v.vote] = v.share
        items, row = OrderedGroups.of(v.item), v.label * (R + 1)
        return cls(
            votes=v,
            items=items,
            cells=OrderedGroups.of(v.item[v.vote] * K + v.label),
            prior=v.base_rate[v.label],
            say=np.stack([v.all_say, v.earlier_say]),
            counted=v.share * v.scored[v.vote],
            own=v.label * R + v.vote,
            before=row + v.vote,
            start=row + items.first[v.vote],
            end=row + items.end[v.vote],
            y=y,
        )

    @cached_property
    def _kept(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Memory for a number of each label and vote: to get it anew takes a quarter of a step."""
        K, R = len(self.votes.base_rate), len(self.votes.item)
        return np.zeros((K, R + 1)), np.empty((K, R)), np.empty((K, R)), np.empty((K, R))

    @cached_property
    def total(self) -> float:
        """How many votes are predicted."""
        return max(float(self.votes.scored.sum()), 1.0)

    def losses(self, at: Learned) -> Floats:
        """The loss of each vote, (R,), half from all others and half from those before."""
        p = self.predict(at)
        log_chance = self.votes.share * np.log(p.num[0] * p.num[1])
        return (np.log(p.den[0] * p.den[1]) - self._added_up(log_chance[None])[0]) / 2

    def _spread(self, of_votes: Floats) -> Floats:
        """What holds for votes (..., R), for each of their labels (..., B)."""
        return of_votes if self.y is None else of_votes[..., self.votes.vote]

    def _added_up(self, of_labels: Floats) -> Floats:
        """What holds for labels (S, B), added up for each vote (S, R)."""
        if self.y is None:
            return of_labels
        return np.stack([sums_by(self.votes.vote, x, len(self.votes.item)) for x in of_labels])

    def predict(self, at: Learned) -> Prediction:
        """Every vote from all others on its item, and from those before it."""
        v, m, w, C = self.votes, at.through_truth, at.worth(self.votes), at.meaning
        S, means = self.items.others_and_before(w), None
        if C is None:
            meant = self.cells.others_and_before(self._spread(w) * v.share)
        else:
            means = self._means(C)
            meant = self._meant(w, means)
        num = (1 - m) * meant
        num += self.prior
        num += m * self._spread(S) * self.say
        return Prediction(num, 1 + S, meant, w, C, means)

    def _means(self, C: Floats) -> Floats:
        """What each vote says about each label, y C, (K, R)."""
        _, means, _, _ = self._kept
        if self.y is None:
            return np.take(C.T, self.votes.label, axis=1, out=means, mode="clip")
        return np.einsum("kl,kq->lq", C, self.y, out=means)

    def _meant(self, w: Floats, means: Floats) -> Floats:
        """(E C)_b of others and of those before, (2, B), from what votes say of labels, (K, R)."""
        upto, _, _, _ = self._kept
        np.cumsum(np.multiply(w, means, out=upto[:, 1:]), axis=1, out=upto[:, 1:])
        # Of all labels each vote needs one: to look it up is cheaper than to subtract all.
        upto = upto.ravel()
        both = np.stack([upto[self.end], upto[self.before]])
        both[0] -= self._spread(w) * means.ravel()[self.own]
        both -= upto[self.start]
        return both

    def _back(self, r: Floats, p: Prediction) -> tuple[Floats, Floats]:
        """What each vote adds to sum_b r_b (E C)_b by a unit of worth, (R,), and by C, (K, K).

        With r of the votes for l by all others on the item of q and by those after q added up to
        f_lq, these are sum_l (y C)_lq f_lq and sum_q w_q y_kq f_lq.
        """
        v, (N, _, _) = self.votes, self.votes.sizes
        if p.means is None:
            of_labels = self.cells.others_and_after(*r) * v.share
            return self._added_up(of_labels[None])[0], np.zeros(0)
        (_, _, later, felt), K = self._kept, len(v.base_rate)
        later.fill(0)
        later.ravel()[self.own], cell = r[1], v.label * N + v.item[v.vote]
        in_item, of_later = (sums_by(cell, x, K * N).reshape(K, N) for x in (r[0] + r[1], r[1]))
        in_item += np.cumsum(of_later, axis=1) - of_later
        np.take(in_item, v.item, axis=1, out=felt, mode="clip")
        felt -= np.cumsum(later, axis=1, out=later)
        felt.ravel()[self.own] -= r[0]
        dw: Floats = np.einsum("kq,kq->q", p.means, felt)
        felt *= p.worth
        if self.y is not None:
            return dw, np.einsum("kq,lq->kl", self.y, felt)
        return dw, np.stack([sums_by(v.label, x, K) for x in felt], axis=1)

    def __call__(self, at: Learned, ridge: Ridge) -> tuple[float, Learned]:
        """The mean loss with ridges, and its gradient in the shape of the parameters.

        With r_b = s_b / num_b:   dL/d(E C)_b = - (1 - m) r_b,   dL/dC_kl = - (1 - m) sum_b r_b E_k,
        dL/dS_q = 1 / den_q - m sum_b r_b V_b,   dL/dm = - sum_b r_b (S V_b - (E C)_b). What others
        before a vote do to it, the votes after them do to them; so the derivatives in w add up over
        those after, or over all others.
        """
        v, m, p = self.votes, at.through_truth, self.predict(at)
        _, M, L = v.sizes
        r, of_truth = self.counted / p.num, self._spread(p.den - 1) * self.say
        of_truth -= p.meant
        loss = _dot(np.log(p.den), v.scored) - _dot(np.log(p.num), self.counted)
        dm = -float(np.einsum("pb,pb->", r, of_truth))
        dS = v.scored / p.den - m * self._added_up(r * self.say)
        felt, dC = self._back(r, p)
        dw = self.items.others_and_after(*dS)
        dw -= (1 - m) * felt
        dw *= p.worth / 2
        # The mean is held back, so that the parts themselves stay centred at 0.
        mean = at.scale + float(at.annotator.sum()) / M + float(at.level.sum()) / L
        pull = 2 * ridge.scale * mean
        logit = at.logit if math.isfinite(at.logit) else 0.0
        by_annotator, by_level = np.bincount(v.annotator, dw, M), np.bincount(v.level, dw, L)
        n, apart = self.total, None
        held_back = ridge.scale * mean**2 + ridge.truth * logit**2
        held_back += ridge.annotator * _square(at.annotator) + ridge.level * _square(at.level)
        if p.C is not None and at.apart is not None:
            dC *= p.C * ((m - 1) / 2)
            apart = dC - p.C * dC.sum(axis=1, keepdims=True) + 2 * ridge.meaning * at.apart
            held_back += ridge.meaning * _square(at.apart.ravel())
        gradient = Learned(
            (float(dw.sum()) + pull) / n,
            (by_annotator + 2 * ridge.annotator * at.annotator + pull / M) / n,
            (by_level + 2 * ridge.level * at.level + pull / L) / n,
            (dm / 2 * m * (1 - m) + 2 * ridge.truth * logit) / n,
            None if apart is None else apart / n,
        )
        return (loss / 2 + held_back) / n, gradient


def _dot(x: Floats, y: Floats) -> float:
    """The sum of x @ y, without the threads of BLAS, which spin on a busy machine."""
    return float(np.einsum("pq,q->", x, y))


def _square(x: Floats) -> float:
    return float(np.einsum("q,q->", x, x))
