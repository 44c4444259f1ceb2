"""The network of a classifier: an encoder, a head, and the loss of what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from slencodings.choices import TrainingObjective
from slencodings.opinion import Floats, Opinion
from slencodings.torch.head import OpinionHead, start_at
from slencodings.torch.losses import LEARNED, Values, loss_of

Loss: TypeAlias = Callable[[Any, Values], Tensor]


class Network(nn.Module):
    """An encoder, and what is said about its features: an opinion, or two rows of K logits."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        """Join the parts; see the class."""
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, x: Tensor) -> Any:
        """What the head makes of inputs (n, ...)."""
        return self.head(self.encoder(x).flatten(1))

    def opinion(self, x: Tensor) -> Opinion:
        """Opinions (n,) about inputs (n, ...)."""
        output = self(x)
        if isinstance(output, Opinion):
            return output
        # The head of soft labels only helps in training (Fornaciari et al. 2021).
        p = torch.softmax(output.chunk(2, dim=-1)[0], dim=-1)
        return Opinion(p, torch.zeros_like(p[:, 0]), torch.full_like(p, 1 / p.shape[1]))


def build(
    encoder: nn.Module | None,
    x: Tensor,
    hidden: Sequence[int],
    base_rate: Floats,
    objective: TrainingObjective,
    target: Opinion | None = None,
) -> Network:
    """A network for inputs like the first row of `x`; the encoder given stays as it is.

    Where opinions are learned it begins with the mean of the `target`.
    """
    K = len(base_rate)
    if encoder is None:
        sizes = [x.shape[1], *hidden]
        layers = [layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())]
        encoder = nn.Sequential(*layers)
    encoder = deepcopy(encoder).eval().to(x.device)
    with torch.no_grad():
        features = encoder(x[:1])
    if not isinstance(features, Tensor) or features.ndim < 2 or len(features) != 1:
        came = getattr(features, "shape", type(features).__name__)
        raise ValueError(
            f"the encoder must give a tensor with one row per input, (n, features); for one input "
            f"{came} came. Wrap it in a module that does."
        )
    size = features.flatten(1).shape[1]
    learned = LEARNED[objective]
    if learned == "gold and shares":
        return Network(encoder, nn.Linear(size, 2 * K)).to(x.device)
    head = OpinionHead(size, K, base_rate=base_rate)
    if target is not None:
        start_at(head.linear, target, floor=head.floor)
    return Network(encoder, head).to(x.device)


def losses_of(
    objective: TrainingObjective, prior_weight: float | None, normalize: bool
) -> tuple[Loss, Loss]:
    """What to learn from at first, and then: of what the network says, and a target's values.

    The forward KL alone gives up on rows whose targets leave little doubt, so the reverse one
    goes before it.
    """
    loss = partial(loss_of, prior_weight=prior_weight, normalize=normalize)
    then = partial(loss, objective)
    return partial(loss, "reverse_kl") if objective == "forward_kl" else then, then


def load_weights(network: nn.Module, stored: Mapping[str, Tensor], where: str) -> None:
    """Fill a network with stored weights, and say so if they are those of another."""
    own = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    came = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    if own != came:
        wrong = sorted(dict(own.items() ^ came.items()))
        raise ValueError(
            f"{where} holds the weights of another network; {len(wrong)} of {len(own | came)} "
            f"tensors differ, first {wrong[0]!r}: {own.get(wrong[0])} is needed, "
            f"{came.get(wrong[0])} came. Use the encoder it was trained with."
        )
    network.load_state_dict(dict(stored))
