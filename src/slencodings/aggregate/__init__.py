"""From a crowd to one answer per item: `Annotations` in, an `Aggregate` or an `Opinion` out."""

from slencodings.aggregate.agreement import (
    Alpha,
    g_index,
    krippendorff_alpha,
    share_of_agreement,
)
from slencodings.aggregate.bcc import bcc
from slencodings.aggregate.bradley_terry import BradleyTerry, bradley_terry
from slencodings.aggregate.crowdtruth import crowdtruth, sentence_relation_score
from slencodings.aggregate.dawid_skene import dawid_skene
from slencodings.aggregate.glad import glad
from slencodings.aggregate.kappa import pairwise_kappa
from slencodings.aggregate.mace import mace
from slencodings.aggregate.one_coin import one_coin
from slencodings.aggregate.reliability import (
    Filtered,
    Mapped,
    as_reliability,
    filter_by_reliability,
    reliability_opinion,
)
from slencodings.aggregate.result import Aggregate
from slencodings.aggregate.severity import Severity, severity
from slencodings.aggregate.shrunk import shrunk_dawid_skene
from slencodings.aggregate.sle import certainty, sle
from slencodings.aggregate.votes import majority_vote, soft_vote
from slencodings.aggregate.wawa import wawa, zero_based_skill

__all__ = [
    "Aggregate",
    "Alpha",
    "BradleyTerry",
    "Filtered",
    "Mapped",
    "Severity",
    "as_reliability",
    "bcc",
    "bradley_terry",
    "certainty",
    "crowdtruth",
    "dawid_skene",
    "filter_by_reliability",
    "g_index",
    "glad",
    "krippendorff_alpha",
    "mace",
    "majority_vote",
    "one_coin",
    "pairwise_kappa",
    "reliability_opinion",
    "sentence_relation_score",
    "severity",
    "share_of_agreement",
    "shrunk_dawid_skene",
    "sle",
    "soft_vote",
    "wawa",
    "zero_based_skill",
]
