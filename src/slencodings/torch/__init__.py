"""Networks that predict opinions: a head, losses and a classifier (extra `torch`)."""

from importlib.util import find_spec

if _missing := [
    name
    for name in ("PyTorch", "scikit-learn", "safetensors")
    if find_spec({"PyTorch": "torch", "scikit-learn": "sklearn"}.get(name, name)) is None
]:
    raise ImportError(
        f"networks need PyTorch, scikit-learn and safetensors; {', '.join(_missing)} "
        f"{'is' if len(_missing) == 1 else 'are'} missing. Type: pip install 'slencodings[torch]'"
    )


from slencodings.torch.classifier import SLEClassifier
from slencodings.torch.head import OpinionHead, opinion_from_logits, start_at
from slencodings.torch.losses import (
    kl_loss,
    mtlsl_loss,
    multilabel_kl_loss,
    out_of_distribution_loss,
    soft_cross_entropy,
    soft_kl,
    vote_loss,
)
from slencodings.torch.rounds import (
    Helped,
    Rounds,
    learn_in_rounds,
    truth_with_network,
    votes_with_network,
)
from slencodings.torch.trainer import opinion_loss, opinion_metrics, pack, unpack

__all__ = [
    "Helped",
    "OpinionHead",
    "Rounds",
    "SLEClassifier",
    "kl_loss",
    "learn_in_rounds",
    "mtlsl_loss",
    "multilabel_kl_loss",
    "opinion_from_logits",
    "opinion_loss",
    "opinion_metrics",
    "out_of_distribution_loss",
    "pack",
    "soft_cross_entropy",
    "soft_kl",
    "start_at",
    "truth_with_network",
    "unpack",
    "vote_loss",
    "votes_with_network",
]
