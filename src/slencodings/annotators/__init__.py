"""Each annotator of a crowd: how far to trust them, how sure they are, what they confuse."""

from slencodings.annotators.describe import describe_annotators
from slencodings.annotators.roster import Roster

__all__ = ["Roster", "describe_annotators"]
