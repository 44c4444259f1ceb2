"""Opinions in Hugging Face's Trainer: a label column, a loss and metrics; no collator of our own.

Any model that ends in K + 1 logits will do (`num_labels=K + 1`), the last for uncertainty. What is
in the column `labels` is one row of numbers per item, which every collator stacks as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from slencodings.metrics import cross_entropy, entropy_similarity, jsd, shares_right
from slencodings.opinion import Array, Opinion, check
from slencodings.torch.head import opinion_from_logits
from slencodings.torch.losses import kl_loss


def pack(opinion: Opinion) -> NDArray[np.float32]:
    """Lay opinions out as rows of 2K + 1 numbers: belief, uncertainty, base rate.

    Opinions (N,) become an array (N, 2K + 1) for the column `labels`; `unpack` takes it back.

    Examples
    --------
    >>> from slencodings import encode
    >>> pack(encode(np.eye(2), 0.25))
    array([[0.75, 0.  , 0.25, 0.5 , 0.5 ],
           [0.  , 0.75, 0.25, 0.5 , 0.5 ]], dtype=float32)
    """
    b, u, a = (np.asarray(x) for x in check(opinion))
    # Collators make float32 of Python's numbers, and some devices have nothing wider.
    return np.concatenate([b, u[..., None], a], axis=-1).astype(np.float32)


def unpack(rows: Array) -> Opinion:
    """Opinions (...) of rows (..., 2K + 1), in any array library: the inverse of `pack`.

    Examples
    --------
    >>> unpack(np.asarray([[0.75, 0.0, 0.25, 0.5, 0.5]])).probability
    array([[0.875, 0.125]])
    """
    shape = tuple(rows.shape)
    if not shape or shape[-1] % 2 == 0 or shape[-1] < 5:
        raise ValueError(
            "packed opinions have 2K + 1 numbers per row: belief, uncertainty, base rate; "
            f"shape {shape} came. Make the column with pack(opinion)."
        )
    K = shape[-1] // 2
    return Opinion(rows[..., :K], rows[..., K], rows[..., K + 1 :])


def opinion_loss(
    objective: Callable[..., Tensor] = kl_loss,
    *,
    floor: float = 1e-4,
    base_rate: Any = None,
    **how: Any,
) -> Callable[..., Tensor]:
    """A `compute_loss_func` for Hugging Face's Trainer: the mean of `objective` over items.

    loss = sum_i objective_i / N,   N = items of all steps and processes that make one update

    Parameters
    ----------
    objective : `kl_loss`, for labels made by `pack`; any other loss of `slencodings.torch` takes
        the labels as they are: votes (N, K), probabilities (N, K) or label codes (N,)
    floor, base_rate : of the predicted opinions, as in `OpinionHead`; packed labels bring their
        own base rate, which is taken where none is passed
    how : passed on to `objective`, such as direction="forward"

    Examples
    --------
    >>> from slencodings import encode
    >>> loss = opinion_loss(direction="forward")
    >>> labels = torch.as_tensor(pack(encode(np.eye(3), 0.5)))
    >>> loss({"logits": torch.zeros(3, 4)}, labels).round(decimals=3)
    tensor(0.9430)
    """

    def loss(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        target = unpack(labels) if objective is kl_loss else labels
        predicted = _predicted(outputs["logits"], target, floor, base_rate)
        each = objective(predicted, target, reduction="none", **how)
        if num_items_in_batch is None:
            return each.mean()
        # The Trainer counts the numbers in `labels`, whose rows are items here.
        return each.sum() * (labels.numel() / each.numel()) / num_items_in_batch

    return loss


def opinion_metrics(
    *, floor: float = 1e-4, base_rate: Any = None
) -> Callable[[Any], dict[str, float]]:
    """A `compute_metrics` for Hugging Face's Trainer, which is given logits and labels.

    accuracy : share of items whose most probable label is the target's, ties shared
    vote_log_loss : of the target's shares, each item counting the same; to stop training by, as
        `SLEClassifier` does: metric_for_best_model="vote_log_loss", greater_is_better=False
    jsd : mean Jensen-Shannon divergence of the projected probabilities, base e
    entropy_similarity : are the same items disputed? See `slencodings.metrics`
    uncertainty : mean of what the model says

    Labels are as in `opinion_loss`; votes count by their shares, and items without any are left
    out, of `uncertainty` too.

    Examples
    --------
    >>> votes = np.asarray([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> opinion_metrics()((np.asarray([[5.0, 0.0, 0.0]] * 3), votes))["accuracy"]
    0.75
    """

    def metrics(prediction: Any) -> dict[str, float]:
        logits, labels = prediction
        # Models asked for hidden states give them after the logits.
        logits = torch.as_tensor(logits[0] if isinstance(logits, tuple) else logits)
        target, truth = _truth(np.asarray(labels), logits.shape[-1] - 1)
        opinion = _predicted(logits, target, floor, base_rate)
        known = ~np.isnan(truth).any(axis=-1)
        truth, guess = truth[known], opinion.probability.numpy()[known]
        return {
            "accuracy": float(np.mean(shares_right(truth, guess))),
            "vote_log_loss": float(np.mean(cross_entropy(truth, guess))),
            "jsd": float(np.mean(jsd(truth, guess))),
            "entropy_similarity": entropy_similarity(truth, guess),
            "uncertainty": float(opinion.uncertainty.numpy()[known].mean()),
        }

    return metrics


def _predicted(logits: Tensor, target: Any, floor: float, base_rate: Any) -> Opinion:
    a = None if base_rate is None else torch.as_tensor(base_rate)
    opinion = opinion_from_logits(logits, floor=floor, base_rate=a)
    if a is None and isinstance(target, Opinion):
        return opinion._replace(base_rate=torch.as_tensor(target.base_rate))
    return opinion


def _truth(labels: NDArray[Any], K: int) -> tuple[Any, NDArray[np.float64]]:
    """The labels, as opinions where they are packed; and as shares (N, K), nan without votes."""
    if labels.ndim == 1:
        return labels, np.eye(K)[labels]
    width = labels.shape[-1]
    if width not in (K, 2 * K + 1):
        k = width // 2 if width % 2 else width
        raise ValueError(
            f"labels of {width} numbers do not go with {K + 1} logits; they are about {k} labels, "
            f"and the logits about {K}. Build the model with num_labels={k + 1}."
        )
    target = labels if width == K else unpack(labels)
    p = np.asarray(getattr(target, "probability", target), dtype=float)
    total = p.sum(axis=-1, keepdims=True)
    # Single precision sums to one only nearly, and votes are counts.
    return target, np.divide(p, total, out=np.full_like(p, np.nan), where=total > 0)
