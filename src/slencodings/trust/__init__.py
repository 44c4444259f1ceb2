"""Whom to trust, what stated confidence is worth and what a vote means, learned from the crowd.

No gold labels are needed: an annotation is worth what it tells about the others on its item.
"""

from slencodings.trust.crowd import Crowd
from slencodings.trust.learn import learn_trust
from slencodings.trust.learn_crowd import learn_crowd
from slencodings.trust.objective import Ridge
from slencodings.trust.sample import sample_items
from slencodings.trust.value import Trust

__all__ = ["Crowd", "Ridge", "Trust", "learn_crowd", "learn_trust", "sample_items"]
