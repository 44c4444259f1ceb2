"""Networks that predict opinions: a head, losses and a classifier (extra `torch`)."""

from slencodings.torch.classifier import SLEClassifier
from slencodings.torch.head import OpinionHead, opinion_from_logits
from slencodings.torch.losses import (
    kl_loss,
    mtlsl_loss,
    out_of_distribution_loss,
    soft_cross_entropy,
    soft_kl,
    vote_loss,
)
from slencodings.torch.multilabel import multilabel_kl_loss
from slencodings.torch.trainer import opinion_loss, opinion_metrics, pack, unpack

__all__ = [
    "OpinionHead",
    "SLEClassifier",
    "kl_loss",
    "mtlsl_loss",
    "multilabel_kl_loss",
    "opinion_from_logits",
    "opinion_loss",
    "opinion_metrics",
    "out_of_distribution_loss",
    "pack",
    "soft_cross_entropy",
    "soft_kl",
    "unpack",
    "vote_loss",
]
