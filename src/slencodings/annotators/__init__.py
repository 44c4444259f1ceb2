"""Each annotator of a crowd: how far to trust them, how sure they are, what they confuse."""

from slencodings.annotators.describe import describe_annotators
from slencodings.annotators.drift import Drift, drift
from slencodings.annotators.groups import Divergence, Divided, Groups, compare_groups
from slencodings.annotators.judges import describe_judges
from slencodings.annotators.roster import Level, Roster
from slencodings.annotators.verdicts import Judged, Verdict, judge, verdict

__all__ = [
    "Divergence",
    "Divided",
    "Drift",
    "Groups",
    "Judged",
    "Level",
    "Roster",
    "Verdict",
    "compare_groups",
    "describe_annotators",
    "describe_judges",
    "drift",
    "judge",
    "verdict",
]
