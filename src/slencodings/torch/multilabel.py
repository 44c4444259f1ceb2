"""A loss for several labels at once: one binomial opinion for each of them."""

from __future__ import annotations

from typing import Any

from slencodings.choices import Direction, Reduction
from slencodings.opinion import Opinion
from slencodings.torch.losses import kl_loss


def multilabel_kl_loss(
    predicted: Opinion,
    target: Opinion,
    *,
    direction: Direction = "reverse",
    prior_weight: float = 2.0,
    reduction: Reduction = "mean",
) -> Any:
    """The KL of each label's Beta from its target, added up over the labels of an item.

    sum_k KL_k,   KL_k as in `kl_loss`;   labels are independent, so their Dirichlets are, too

    Parameters
    ----------
    predicted, target : binomial Opinion (N, K), of (no, yes)

    Examples
    --------
    >>> import torch
    >>> from slencodings import encode, smooth
    >>> target = smooth(encode(torch.eye(2)[torch.tensor([[0, 1, 1]])]), 0.1)
    >>> float(multilabel_kl_loss(target, target))
    0.0
    """
    if target.belief.ndim != 3 or target.belief.shape[-1] != 2:
        raise ValueError(
            "`target` must be binomial opinions (N, K), a yes or no to each of K labels; belief "
            f"of shape {tuple(target.belief.shape)} came. MultiLabel.by_item makes such."
        )
    each = kl_loss(
        predicted, target, direction=direction, prior_weight=prior_weight, reduction="none"
    )
    by_item = each.sum(-1)
    return (
        by_item if reduction == "none" else by_item.sum() if reduction == "sum" else by_item.mean()
    )
