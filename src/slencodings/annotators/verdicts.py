"""What to make of each annotator, in two words and a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats
from slencodings.trust import Crowd, Weighed

Verdict: TypeAlias = Literal["against the crowd", "at chance", "look at", "too few to tell", "fine"]

# Fewer items shared with others say nothing.
FEWEST_ITEMS = 5
# So far below the typical annotator is clearly below.
_MARGIN = 0.1
# Who cannot be above this is clearly low, whatever is typical.
_LOW = 0.25
# So often people who guess are taken to agree above chance, together or one of them.
_CHANCE = 0.025
# So often the same answer is said to be nearly always that.
_NEARLY_ALWAYS = 0.95


class Judged(NamedTuple):
    """What to make of one annotator, and why."""

    verdict: Verdict
    reason: str


def verdict(low: float, high: float, *, typical: float, shared: int) -> Verdict:
    """What to make of somebody whose `above_chance` lies between low and high.

    | verdict | if |
    |---|---|
    | too few to tell | fewer than 5 items are shared with others |
    | against the crowd | they are right less often than by guessing: all of it is below 0 |
    | at chance | it holds 0 and is clearly low: all .1 or more below the typical, or below .25 |
    | too few to tell | it holds 0 and is not clearly low |
    | look at | it is above 0, but clearly low |
    | fine | else |

    Parameters
    ----------
    low, high : ends of the interval; 0 is guessing, 1 always right
    typical : the median of those who are above chance for sure
    shared : how many items they share with others
    """
    if shared < FEWEST_ITEMS:
        return "too few to tell"
    if high < 0:
        return "against the crowd"
    clearly_low = high <= max(typical - _MARGIN, _LOW)
    if low <= 0:
        return "at chance" if clearly_low else "too few to tell"
    return "look at" if clearly_low else "fine"


def judge(annotations: Annotations, crowd: Crowd) -> list[Judged]:
    """A verdict on each annotator by what was learned of the crowd, with its reason.

    Where people may agree by chance alone, nobody is said to be above it or against the crowd.
    """
    a, shared = annotations, shared_items(annotations)
    low, high = crowd.above_chance_interval()
    if not (agreed := agree_above_chance(a)):
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    typical = typical_skill(crowd.above_chance, low, shared)
    # The label that each gives most, and the share of their answers that it is.
    given = replace(a, item=a.annotator, items=a.annotators).sums()
    most = np.argmax(given, axis=1)
    share = np.max(given, axis=1, initial=0) / np.maximum(np.sum(given, axis=1), 1)

    def one(m: int) -> Judged:
        found = verdict(float(low[m]), float(high[m]), typical=typical, shared=int(shared[m]))
        if shared[m] < FEWEST_ITEMS:
            n = int(shared[m])
            return Judged(found, f"shares {n or 'no'} item{'s' * (n != 1)} with others")
        if not agreed:
            return Judged(found, "people here may agree by chance alone")
        reason = {
            "against the crowd": "right less often than by guessing",
            "at chance": "no better than guessing",
            "too few to tell": "may be guessing or as good as is typical",
            "look at": f"clearly below the typical {f'{typical:.2f}'.replace('0.', '.', 1)}"
            if high[m] <= typical - _MARGIN
            else "hardly better than guessing",
            "fine": "above chance, as is usual",
        }[found]
        if found in {"against the crowd", "at chance"} and share[m] >= _NEARLY_ALWAYS:
            reason += f", says {a.labels[most[m]]} {share[m]:.0%} of the time"
        return Judged(found, reason)

    return [one(m) for m in range(len(a.annotators))]


def agree_above_chance(annotations: Annotations) -> bool:
    """Whether people, or somebody with the others, surely agree more often than by chance.

    d_q = c_q . (sum of c over the others on its item),   c_q = y_q - p_m

    p_m is how often m says each label, so that d is 0 in the mean of people who do not look,
    whatever they like to say. z = sum d / sqrt(sum d^2) is above what one in forty of such
    crowds has: of all, by items, or of one of the M people, as agreement in all cancels out where
    some say the contrary.
    """
    from scipy.special import ndtri

    a, N, M = annotations, len(annotations.items), len(annotations.annotators)
    times = np.maximum(np.bincount(a.annotator, minlength=M), 1)
    d = np.zeros(len(a.item))
    for k in range(len(a.labels)):
        y = a.y[:, k] if a.soft else np.asarray(a.y == k, dtype=float)
        c = y - (np.bincount(a.annotator, y, M) / times)[a.annotator]
        d += c * (np.bincount(a.item, c, N)[a.item] - c)
    of_items, of_people = np.bincount(a.item, d, N), np.bincount(a.annotator, d, M)
    together = np.sum(of_items) > -ndtri(_CHANCE) * np.sqrt(np.sum(of_items**2))
    limit = -ndtri(_CHANCE / max(M, 1)) * np.sqrt(np.bincount(a.annotator, d**2, M))
    return bool(together or np.any(of_people > limit))


def worth_asking(annotations: Annotations, weighed: Weighed) -> NDArray[np.bool_]:
    """Whom to ask again, (M,): nobody who is at chance or against the crowd, or not relied on."""
    if weighed.source != "learned":
        return weighed.reliability > 0
    poor = ("against the crowd", "at chance")
    return np.asarray([j.verdict not in poor for j in judge(annotations, weighed.crowd)], bool)


def typical_skill(skill: Floats, low: Floats, shared: Codes) -> float:
    """The median skill of those who are above chance for sure, by its low end; 0 if nobody is."""
    good = (low > 0) & (shared >= FEWEST_ITEMS)
    return float(np.median(skill[good])) if np.any(good) else 0.0


def shared_items(annotations: Annotations) -> Codes:
    """How many items each annotator shares with others, (M,)."""
    item, who = pairs_met(annotations)
    several = np.bincount(item) > 1
    return np.bincount(who[several[item]], minlength=len(annotations.annotators))


def pairs_met(annotations: Annotations) -> tuple[Codes, Codes]:
    """The items and annotators who met, each pair once, sorted by annotator."""
    N = max(len(annotations.items), 1)
    met = np.unique(annotations.annotator * N + annotations.item)
    return met % N, met // N
