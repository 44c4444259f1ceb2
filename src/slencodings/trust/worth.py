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
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.opinion import USUAL_WEIGHT, Codes, Floats

# A vote for a label is expected to be for that label again, so often.
_SAME = 0.9
# More annotations than these choose no better strength of what is shrunk: then about half as many
# are chosen by.
ENOUGH, CHOSEN_BY = 20_000, 10_000
# One count in units of the prior weight.
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
        # Methods of arrays: of a few numbers NumPy's functions take as long as their sums again.
        apart = self.apart - self.apart.max(axis=1, keepdims=True)
        C = expected_meaning(len(apart)) * np.exp(apart)
        return C / C.sum(axis=1, keepdims=True)

    @property
    def through_truth(self) -> float:
        """m, how far votes are read as truth."""
        return 1 / (1 + math.exp(-self.logit))

    def worth(self, votes: Votes) -> Floats:
        """What each vote is worth, (R,), in units of the prior weight."""
        return (
            np.exp(self.scale + self.annotator)[votes.annotator] * np.exp(self.level)[votes.level]
        )


@cache
def expected_meaning(K: int) -> Floats:
    """C before anything is known of it, (K, K), to be read only."""
    C = np.where(np.eye(K), _SAME, (1 - _SAME) / (K - 1)) if K > 1 else np.ones((1, 1))
    C.flags.writeable = False
    return C
