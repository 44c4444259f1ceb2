"""Which items are settled, which deserve another annotation, from whom, and what that mends.

Nobody knows what further annotations will say, so spend a part of the budget, collect, and plan
again.
"""

from slencodings.triage.assign import Assignment, assign
from slencodings.triage.pairs import triage_pairs
from slencodings.triage.status import reasons, status
from slencodings.triage.triage import Triage, triage

__all__ = ["Assignment", "Triage", "assign", "reasons", "status", "triage", "triage_pairs"]
