"""Each annotator of a crowd: how far to trust them, how sure they are, what they confuse."""

from slencodings.annotators.describe import describe_annotators
from slencodings.annotators.levels import Level
from slencodings.annotators.roster import Roster
from slencodings.annotators.verdicts import Judged, Verdict, judge, verdict

__all__ = ["Judged", "Level", "Roster", "Verdict", "describe_annotators", "judge", "verdict"]
