"""What to annotate next, and what to decide."""

from __future__ import annotations

import numpy as np

from slencodings.annotations import Annotations
from slencodings.opinion import Codes
from slencodings.report.items import NAME_LETTERS, Chosen
from slencodings.report.names import rounded, shown
from slencodings.report.summary import Next, Open
from slencodings.triage import Triage, triage
from slencodings.trust import Weighed

# Items that are named as the next to annotate or to decide, and annotators for each.
_NEXT, _ASKED = 25, 5


def plan_next(annotations: Annotations, weighed: Weighed, target: float, conflict: float) -> Triage:
    """Why each item is open, and how much is missing."""
    return triage(
        weighed.votes,
        annotations,
        reliability=weighed.reliability,
        target=target,
        conflict=conflict,
    )


def next_items(plan: Triage, weighed: Weighed) -> tuple[Codes, Codes]:
    """Items to annotate, the most worthwhile first; and to decide, the sharpest conflict first."""
    worthwhile = np.argsort(-plan.gain, kind="stable")
    sharpest = np.argsort(-weighed.conflict, kind="stable")
    few = worthwhile[plan.why[worthwhile] == "few"]
    split = sharpest[plan.why[sharpest] == "conflict"]
    return few[:_NEXT], split[:_NEXT]


def describe_next(plan: Triage, weighed: Weighed, chosen: Chosen, named: bool) -> Next:
    """What is missing, and the items to annotate and to decide, each with its place in the list."""
    place, everybody = chosen.place, shown(plan.annotators.tolist(), NAME_LETTERS)
    item, annotator, _ = plan.assignment

    def open_item(i: int) -> Open:
        asked = annotator[np.searchsorted(item, i) : np.searchsorted(item, i, "right")]
        needed = plan.needed[i]
        return {
            "row": place[i],
            "uncertainty": rounded(weighed.votes.uncertainty[i]),
            "conflict": rounded(weighed.conflict[i]),
            "needed": int(needed) if np.isfinite(needed) else None,
            "ask": [everybody[m] for m in asked[:_ASKED].tolist()] if named else [],
        }

    few, split = next_items(plan, weighed)
    return {
        "needed": int(plan.needed[np.isfinite(plan.needed)].sum()),
        "never": int(np.sum(np.isinf(plan.needed))),
        "named": named,
        "few": [open_item(i) for i in few.tolist()],
        "conflict": [open_item(i) for i in split.tolist()],
    }
