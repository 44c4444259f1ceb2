"""From features to opinions (Eq. 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from slencodings.annotations import shared_base_rate
from slencodings.opinion import Floats, Opinion, as_floats


class OpinionHead(nn.Module):
    """A linear layer whose outputs are an opinion: belief in K labels, and uncertainty (Eq. 7).

    b, u = softmax(W x + c), smoothed:   b' = (1 - f) b,   u' = f + (1 - f) u

    The floor f keeps uncertainty from vanishing, smoothly, so that evidence b'/u' is at most 1/f
    and gradients stay finite whatever the features. Half precision, also under autocast, is
    computed in float32: it cannot tell small uncertainties apart.

    Parameters
    ----------
    in_features, n_labels : sizes; inputs are (..., in_features), opinions (...)
    floor : f, in (0, 1); the least uncertainty that can be said
    base_rate : K numbers above 0 that sum to one; uniform when absent

    Examples
    --------
    >>> head = OpinionHead(4, n_labels=3)
    >>> opinion = head(torch.zeros(2, 4))
    >>> opinion.belief.shape, opinion.uncertainty.shape
    (torch.Size([2, 3]), torch.Size([2]))
    """

    base_rate: Tensor

    def __init__(
        self, in_features: int, n_labels: int, *, floor: float = 1e-4, base_rate: Any = None
    ) -> None:
        """Make the layer; see the class."""
        super().__init__()
        if n_labels < 2:
            raise ValueError(f"`n_labels` must be at least 2; {n_labels} came.")
        _check_floor(floor)
        a = shared_base_rate(base_rate, list(range(n_labels)))
        if not a.min() > 0:
            raise ValueError(
                f"`base_rate` must be above 0 for a label to be predicted; {(a == 0).sum()} of "
                f"{n_labels} are 0. Leave those labels out, or give them a little."
            )
        self.linear = nn.Linear(in_features, n_labels + 1)
        self.floor = floor
        self.register_buffer("base_rate", torch.tensor(a, dtype=torch.get_default_dtype()))

    def forward(self, features: Tensor) -> Opinion:
        """Opinions (...) of features (..., in_features)."""
        x = features
        with torch.autocast(x.device.type, enabled=False):
            wide = torch.promote_types(x.dtype, self.linear.weight.dtype)
            wide = torch.promote_types(wide, torch.float32)
            weight, bias = self.linear.weight.to(wide), self.linear.bias.to(wide)
            # The model may have been moved to another precision, in which they do not sum to one.
            a = self.base_rate.to(wide)
            return opinion_from_logits(
                nn.functional.linear(x.to(wide), weight, bias),
                floor=self.floor,
                base_rate=a / a.sum(),
            )

    def extra_repr(self) -> str:
        """What `print` shows besides the layer."""
        return f"floor={self.floor:g}"


def start_at(layer: nn.Linear, target: Opinion, *, floor: float = 1e-4) -> None:
    """Set the biases of a last layer of K + 1 outputs so that it begins with the mean target.

    c_k = log mean b_k,   c_u = log mean u;   with even beliefs c_u - c_k is log(u K / (1 - u))

    A network that begins anywhere else spends its first steps on how sure to be, and its gradients
    point away from what tells items apart. One target more, spread evenly, leaves no label out.
    Doubt begins at twice the `floor` of the predictions at least, and leaves as much for belief.

    Examples
    --------
    >>> from slencodings import encode
    >>> layer = nn.Linear(4, 3)
    >>> start_at(layer, encode(np.eye(2), 0.25))
    >>> opinion_from_logits(layer(torch.zeros(4))).uncertainty.item()
    0.25
    """
    _check_floor(floor)
    b, u = (as_floats(x) for x in target[:2])
    K = b.shape[-1]
    if len(layer.bias) != K + 1 or not u.size:
        raise ValueError(
            f"a layer with {K + 1} outputs is needed to start at targets of {K} labels, and some "
            f"target; {len(layer.bias)} outputs and {u.size} targets came."
        )
    shares = _mean_shares(b.reshape(-1, K), u.reshape(-1), floor)
    with torch.no_grad():
        layer.bias.copy_(torch.as_tensor(np.log(shares)))


def _mean_shares(b: Floats, u: Floats, floor: float) -> Floats:
    """The mean opinion as shares of K + 1, before the floor is put under uncertainty."""
    doubt = np.clip(u.mean(), 2 * floor, 1 - floor)
    belief = b.sum(axis=0) + (1 - doubt) / b.shape[1]
    belief *= (1 - doubt) / belief.sum()
    return np.append(belief, doubt - floor) / (1 - floor)


def opinion_from_logits(
    logits: Tensor, *, floor: float = 1e-4, base_rate: Tensor | None = None
) -> Opinion:
    """The opinion of K + 1 logits (..., K + 1), the last for uncertainty; see `OpinionHead`.

    For models that end in a layer of their own, such as those of Hugging Face with
    `num_labels = K + 1`.

    Examples
    --------
    >>> opinion_from_logits(torch.tensor([0.0, 0.0, -100.0]), floor=0.01).uncertainty
    tensor(0.0100)
    """
    _check_floor(floor)
    if logits.ndim == 0 or logits.shape[-1] < 3:
        raise ValueError(
            "`logits` needs K + 1 of them on its last axis, one for each of K >= 2 labels and one "
            f"for uncertainty; shape {tuple(logits.shape)} came."
        )
    shares = torch.softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)
    b, u = (1 - floor) * shares[..., :-1], floor + (1 - floor) * shares[..., -1]
    K = b.shape[-1]
    if base_rate is None:
        return Opinion(b, u, torch.full_like(b, 1 / K))
    if base_rate.ndim == 0 or base_rate.shape[-1] != K:
        raise ValueError(
            f"`base_rate` needs {K} values on its last axis, one per label, for {K + 1} logits; "
            f"shape {tuple(base_rate.shape)} came."
        )
    return Opinion(b, u, base_rate.to(b).expand_as(b))


def _check_floor(floor: float) -> None:
    if not 0 < floor < 1:
        raise ValueError(f"`floor` must lie between 0 and 1; {floor} came. 1e-4 is usual.")
