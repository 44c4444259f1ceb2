"""Which items deserve another annotation, how many, and from whom.

Too few opinions leave an item *uncertain* (vacuous): more annotations help. Opinions that conflict
leave it *dissonant*: more of the same will not settle it, clearer guidelines or an expert may.
A further annotation of certainty c is worth w = c / (1 - c) prior weights, so after n of them

u_n = u / (1 + n w u)   whatever they say.

Nobody knows what they will say, so spend a part of the budget, collect, fuse again and plan again.
"""

from slencodings.triage.assign import Assignment, assign
from slencodings.triage.plan import Goal, annotations_needed, dissonance, plan, why
from slencodings.triage.status import reasons, status
from slencodings.triage.triage import Triage, triage

__all__ = [
    "Assignment",
    "Goal",
    "Triage",
    "annotations_needed",
    "assign",
    "dissonance",
    "plan",
    "reasons",
    "status",
    "triage",
    "why",
]
