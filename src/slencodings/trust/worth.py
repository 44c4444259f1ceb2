"""What annotations are worth for predicting what people say, and how far to read them as truth.

Annotation q of item i is worth w_q = exp(t + t_annotator + t_level) votes, in units of the prior.
From others on its item, of total worth S and worth E_k for each label, the next vote is

P_l = (a_l + (1 - m) sum_k E_k C_kl + m S V_l) / (1 + S)

C is what a vote for a label (row) says about what others say, V is what people say where the truth
is as it seems; both come from the same people, so they are averaged. Each vote is predicted from
all others on its item, and from those before it in a random order, half each: what is learned then
holds for many annotations and for few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import sums_by
from slencodings.opinion import Codes, Floats
from slencodings.trust.running_sums import Groups

# A vote for a label is expected to be for that label again, so often.
_SAME = 0.9
# More annotations than these choose no better strength of what is shrunk.
ENOUGH = 20_000
# W of Dirichlets unless it is learned, and one count in units of it.
USUAL_WEIGHT = 2.0
ONE_COUNT = 1 / USUAL_WEIGHT


class Ridge(NamedTuple):
    """How strongly each part is held back: half the inverse variance of its logarithms.

    `scale` holds the mean of log worth near 0, `truth` the odds of reading votes as truth near 1,
    `meaning` holds what votes say near what is expected of them.
    """

    annotator: float = 1.0
    level: float = 0.1
    scale: float = 1.0
    truth: float = 0.1
    meaning: float = 0.1


@dataclass(frozen=True)
class Votes:
    """What is predicted: votes in a random order within their items, those alone left out.

    A soft label is a vote for each of its labels, by its share.

    Attributes
    ----------
    item, annotator, level : (R,)
    scored : (R,), 1 where the vote is predicted, 0 where it only tells about others
    vote, label, share : (B,), which of the R it belongs to, the label and how much of it
    all_say, earlier_say : (B,), V of that label, from all others and from those before
    base_rate : (K,)
    sizes : N, M, L
    """

    item: Codes
    annotator: Codes
    level: Codes
    scored: Floats
    vote: Codes
    label: Codes
    share: Floats
    all_say: Floats
    earlier_say: Floats
    base_rate: Floats
    sizes: tuple[int, int, int]

    def some(self, keep: NDArray[np.bool_]) -> Votes:
        """The votes on the items to keep."""
        kept = keep[self.item]
        ballot = kept[self.vote]
        taken = {n: getattr(self, n)[kept] for n in ("annotator", "level", "scored")}
        cast = {n: getattr(self, n)[ballot] for n in ("label", "share", "all_say", "earlier_say")}
        return replace(
            self,
            **taken,
            **cast,
            item=(np.cumsum(keep) - 1)[self.item[kept]],
            vote=(np.cumsum(kept) - 1)[self.vote[ballot]],
            sizes=(int(keep.sum()), *self.sizes[1:]),
        )


class Learned(NamedTuple):
    """The parameters: logarithms of worth, the log-odds of reading votes as truth, and of C.

    `apart` (K, K) is how far the logarithms of C are from those of what is expected, up to what
    makes its rows sum to 1; None if a vote says nothing about other labels.
    """

    scale: float
    annotator: Floats
    level: Floats
    logit: float
    apart: Floats | None = None

    @property
    def meaning(self) -> Floats | None:
        """C, what a vote for a label (row) says about what others say; None if just itself."""
        if self.apart is None:
            return None
        C = expected_meaning(len(self.apart)) * np.exp(
            self.apart - np.max(self.apart, axis=1, keepdims=True)
        )
        return C / np.sum(C, axis=1, keepdims=True)

    @property
    def through_truth(self) -> float:
        """m, how far votes are read as truth."""
        return 1 / (1 + math.exp(-self.logit))

    def worth(self, votes: Votes) -> Floats:
        """What each vote is worth, (R,), in units of the prior weight."""
        return (
            np.exp(self.scale + self.annotator)[votes.annotator] * np.exp(self.level)[votes.level]
        )


def expected_meaning(K: int) -> Floats:
    """C before anything is known of it, (K, K)."""
    return np.where(np.eye(K), _SAME, (1 - _SAME) / (K - 1)) if K > 1 else np.ones((1, 1))


class Prediction(NamedTuple):
    """Votes as one set of others predicts them: P = num / den of what was said.

    Attributes
    ----------
    num : (B,)
    den : (R,), 1 + S
    meant : (B,), the label's part of E C
    say : (B,), V of the label
    worth : (R, K), E, if votes say something about other labels
    """

    num: Floats
    den: Floats
    meant: Floats
    say: Floats
    worth: Floats | None


@dataclass(frozen=True)
class Objective:
    """The mean loss of votes; what does not change from step to step is kept."""

    votes: Votes
    items: Groups
    cells: Groups
    prior: Floats
    hard: bool
    y: Floats

    @classmethod
    def of(cls, votes: Votes, *, meaning: bool) -> Objective:
        """The objective of votes: (item, label) are the cells in which worth adds up.

        With `meaning`, votes may say something about other labels: `y` (R, K) are their labels.
        """
        cell = votes.item[votes.vote] * len(votes.base_rate) + votes.label
        # A label each, in order, spares looking it up.
        hard = np.array_equal(votes.vote, np.arange(len(votes.item)))
        items, cells = Groups.of(votes.item), Groups.of(cell)
        y = np.zeros((len(votes.item), len(votes.base_rate) if meaning else 0))
        if meaning:
            y[votes.vote, votes.label] = votes.share
        return cls(votes, items, cells, votes.base_rate[votes.label], hard, y)

    @property
    def total(self) -> float:
        """How many votes are predicted."""
        return max(float(np.sum(self.votes.scored)), 1.0)

    def losses(self, at: Learned) -> Floats:
        """The loss of each vote, (R,), half from all others and half from those before."""
        all_others, earlier = self.predict(at)
        said = self.votes.share * np.log(all_others.num * earlier.num)
        return (np.log(all_others.den * earlier.den) - self._added_up(said)) / 2

    def _spread(self, of_votes: Floats) -> Floats:
        """What holds for votes (R,), for each of their labels (B,)."""
        return of_votes if self.hard else of_votes[self.votes.vote]

    def _added_up(self, of_labels: Floats) -> Floats:
        """What holds for labels (B,), added up for each vote (R,)."""
        if self.hard:
            return of_labels
        return sums_by(self.votes.vote, of_labels, len(self.votes.item))

    def predict(self, at: Learned) -> tuple[Prediction, Prediction]:
        """Every vote from all others on its item, and from those before it."""
        v, m, w, C = self.votes, at.through_truth, at.worth(self.votes), at.meaning
        before, after = self.items.before_and_after(w)
        if C is None:
            E_before, E_after = self.cells.before_and_after(self._spread(w) * v.share)
        else:
            E_before, E_after = self.items.before_and_after(w[:, None] * self.y)

        def predicted(S: Floats, E: Floats, say: Floats) -> Prediction:
            meant = E if C is None else np.einsum("bk,bk->b", self._spread(E), C.T[v.label])
            num = self.prior + (1 - m) * meant + m * self._spread(S) * say
            return Prediction(num, 1 + S, meant, say, None if C is None else E)

        return (
            predicted(before + after, E_before + E_after, v.all_say),
            predicted(before, E_before, v.earlier_say),
        )

    def _back(self, r: Floats, C: Floats | None, earlier: bool) -> Floats:
        """What each vote adds to the others' sum_b r_b (E C)_b by a unit of worth, (R,)."""
        v = self.votes
        if C is None:
            felt = self.cells.after(r) if earlier else self.cells.others(r)
            return self._added_up(felt * v.share)
        wanted = r[:, None] * C.T[v.label]
        if not self.hard:
            wanted = np.stack([self._added_up(column) for column in wanted.T], axis=1)
        felt = self.items.after(wanted) if earlier else self.items.others(wanted)
        return np.einsum("ql,ql->q", self.y, felt)

    def _of_meaning(self, r: Floats, worth: Floats) -> Floats:
        """sum_b r_b E_k of votes for each label l, (K, K)."""
        label, K = self.votes.label, len(self.votes.base_rate)
        return np.stack([sums_by(label, r * E, K) for E in self._spread(worth).T])

    def __call__(self, at: Learned, ridge: Ridge) -> tuple[float, Learned]:
        """The mean loss with ridges, and its gradient in the shape of the parameters.

        With r_b = s_b / num_b:   dL/d(E C)_b = - (1 - m) r_b,   dL/dC_kl = - (1 - m) sum_b r_b E_k,
        dL/dS_q = 1 / den_q - m sum_b r_b V_b,   dL/dm = - sum_b r_b (S V_b - (E C)_b). What others
        before a vote do to it, the votes after them do to them; so the derivatives in w add up over
        those after, or over all others.
        """
        v, m, w, C = self.votes, at.through_truth, at.worth(self.votes), at.meaning
        R, (_, M, L) = len(v.item), v.sizes
        counted = v.share * self._spread(v.scored)
        loss, dm, dw, dC = 0.0, 0.0, np.zeros(R), 0.0
        for p, earlier in zip(self.predict(at), (False, True), strict=True):
            r = counted / p.num
            loss += _dot(v.scored, np.log(p.den)) - _dot(counted, np.log(p.num))
            dm -= _dot(r, self._spread(p.den - 1) * p.say - p.meant)
            dS = v.scored / p.den - m * self._added_up(r * p.say)
            dw += self.items.after(dS) if earlier else self.items.others(dS)
            dw -= (1 - m) * self._back(r, C, earlier)
            if p.worth is not None:
                dC = dC - (1 - m) / 2 * self._of_meaning(r, p.worth)
        dw *= w / 2
        # The mean is held back, so that the parts themselves stay centred at 0.
        mean = at.scale + at.annotator.mean() + at.level.mean()
        pull = 2 * ridge.scale * mean
        logit = at.logit if math.isfinite(at.logit) else 0.0
        by_annotator, by_level = np.bincount(v.annotator, dw, M), np.bincount(v.level, dw, L)
        n = self.total
        gradient = Learned(
            (float(dw.sum()) + pull) / n,
            (by_annotator + 2 * ridge.annotator * at.annotator + pull / M) / n,
            (by_level + 2 * ridge.level * at.level + pull / L) / n,
            (dm / 2 * m * (1 - m) + 2 * ridge.truth * logit) / n,
            None
            if C is None or at.apart is None
            else (C * (dC - np.sum(C * dC, axis=1, keepdims=True)) + 2 * ridge.meaning * at.apart)
            / n,
        )
        apart = np.zeros(0) if at.apart is None else at.apart
        held = (at.annotator, at.level, mean, logit, apart)
        held_back = sum(k * float(np.sum(np.square(x))) for k, x in zip(ridge, held, strict=True))
        return (loss / 2 + held_back) / n, gradient


def _dot(x: Floats, y: Floats) -> float:
    """As x @ y, without the threads of BLAS, which spin on a busy machine."""
    return float(np.einsum("q,q->", x, y))
