"""Where further annotations are expected to mend most labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slencodings.opinion import Codes, Floats
from slencodings.triage.outlook import Outlook

# An item gets no more at a time: what they say may change the plan.
MOST_EACH = 8
# What is said of the time after a plan is about so many annotations more.
NEXT = 100
DRAWS = 64
# Items that are looked at first, and again before more are.
_FEWEST = 1_000
# Fewer mended labels than this are none: so many draws do not tell them from 0.
_NOTHING = 1e-6


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
