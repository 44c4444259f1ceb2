"""What people would say, what is true and whom to trust, learned from the crowd itself.

No gold labels are needed: an annotation is worth what it tells about the others on its item.
"""

from slencodings.trust.crowd import Crowd
from slencodings.trust.learn_crowd import count_each, learn_crowd
from slencodings.trust.learn_from_table import sample_items
from slencodings.trust.source import Sourced, truth_with_source
from slencodings.trust.stored import crowd_from_json, crowd_to_json, load_crowd
from slencodings.trust.weighed import Weighed, weigh
from slencodings.trust.worth import Ridge

__all__ = [
    "Crowd",
    "Ridge",
    "Sourced",
    "Weighed",
    "count_each",
    "crowd_from_json",
    "crowd_to_json",
    "learn_crowd",
    "load_crowd",
    "sample_items",
    "truth_with_source",
    "weigh",
]
