"""From a crowd to one answer per item: `Annotations` in, an `Aggregate` or an `Opinion` out."""

from slencodings.aggregate.result import Aggregate
from slencodings.aggregate.sle import certainty, sle
from slencodings.aggregate.votes import majority_vote, soft_vote

__all__ = ["Aggregate", "certainty", "majority_vote", "sle", "soft_vote"]
