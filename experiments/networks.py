"""The networks of Table 2: ResNet-32A for images, the top of a transformer for text.

Each is a module from inputs (n, ...) to features (n, F); `SLEClassifier` puts the head on it.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Texts of about the same length that go through the layers at a time, without padding to speak of;
# and where nothing but the first token goes through a layer, so that padding costs little.
_BUCKET, _BUCKET_OF_FIRST = 8, 32


class _Block(nn.Module):
    """Two convolutions and a shortcut without parameters: strided, new channels zero (option A)."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.stride, self.new = 1 if before == after else 2, after - before
        self.conv1 = nn.Conv2d(before, after, 3, self.stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)

    def shortcut(self, x: Tensor) -> Tensor:
        half = self.new // 2
        x = x[:, :, :: self.stride, :: self.stride]
        return F.pad(x, (0, 0, 0, 0, half, self.new - half)) if self.new else x

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class Augment(nn.Module):
    """In training: shift each image by up to 4 pixels, and mirror every other one."""

    def forward(self, x: Tensor) -> Tensor:
        """Images (n, C, H, W), shifted and mirrored at random unless evaluating."""
        if not self.training:
            return x
        n, _, H, W = x.shape
        wide = F.pad(x, (4, 4, 4, 4))
        down, right = torch.randint(0, 9, (2, n)).tolist()
        moved = [
            image[:, i : i + H, j : j + W] for image, i, j in zip(wide, down, right, strict=True)
        ]
        mirror = torch.rand(n, 1, 1, 1) < 0.5
        x = torch.stack(moved)
        return torch.where(mirror.to(x.device), x.flip(3), x)


def resnet32a(*, augment: bool = True) -> nn.Sequential:
    """ResNet-32 for images (n, 3, 32, 32) with parameter-free shortcuts (He et al. 2016, sec. 4.2).

    A convolution, then 3 stages of 5 blocks with 16, 32 and 64 channels, and their mean over the
    image: 64 features. Images are shifted and mirrored in training, as there, unless `augment` is
    False.
    """
    sizes = [16] * 6 + [32] * 5 + [64] * 5
    net = nn.Sequential(
        Augment() if augment else nn.Identity(),
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        *(_Block(*pair) for pair in pairwise(sizes)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    # Channels last is a sixth faster on a processor.
    return net.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


class TopLayers(nn.Module):
    """The last layers of a BERT-like model, from the states below them to one row of features.

    Texts are sorted by length and go through in parts that are cut to their longest one, so that
    little time is spent on padding.

    Parameters
    ----------
    model : as AutoModel gives it, with `embeddings` and `encoder.layer`
    layers : how many of its layers; None for all and the embeddings
    mean : whether features are the mean over tokens; else the first token's, for which the last
        layer costs much less
    pooler : what the first token goes through at the end, if anything
    """

    def __init__(
        self, model: Any, *, layers: int | None, mean: bool, pooler: nn.Module | None = None
    ) -> None:
        """Take the layers; see the class."""
        super().__init__()
        every = bert_layers(model)
        count = len(every) if layers is None else layers
        if not 1 <= count <= len(every):
            raise ValueError(
                f"`layers` must lie between 1 and {len(every)}, or be None for all; {layers} came. "
                "Nothing is left to train without layers: use the features themselves."
            )
        self.layers = nn.ModuleList(every[len(every) - count :])
        self.embeddings = model.embeddings if layers is None else None
        self.pooler = None if mean else pooler
        self.mean, self.padding = mean, int(model.config.pad_token_id or 0)
        self.bucket = _BUCKET if mean or count > 1 else _BUCKET_OF_FIRST

    def forward(self, x: Tensor) -> Tensor:
        """Features (n, D) of states (n, T, D), zero where padded; of ids and types (n, 2, T)."""
        real = (x != 0).any(dim=-1) if self.embeddings is None else x[:, 0] != self.padding
        length = real.sum(dim=1)
        order = length.argsort()
        parts = order.tensor_split(math.ceil(len(x) / self.bucket))
        features = []
        for rows in parts:
            longest = int(length[rows].max())
            kept = x[rows, :longest] if self.embeddings is None else x[rows, :, :longest]
            features.append(self._features(kept, real[rows, :longest]))
        return torch.cat(features)[order.argsort()]

    def _features(self, x: Tensor, real: Tensor) -> Tensor:
        if self.embeddings is not None:
            x = self.embeddings(input_ids=x[:, 0], token_type_ids=x[:, 1])
        if self.mean:
            return pool(through(self.layers, x, real), real, mean=True)
        x = first_through(self.layers[-1], through(self.layers[:-1], x, real), real)
        return pool(x, real, pooler=self.pooler)


def bert_layers(model: Any) -> list[nn.Module]:
    """The transformer layers of a BERT-like model, lowest first."""
    try:
        return list(model.encoder.layer)
    except AttributeError:
        raise ValueError(
            "a model with `embeddings` and `encoder.layer` is needed, such as BERT, RoBERTa or "
            f"MiniLM; {type(model).__name__} came. Pass another name or folder."
        ) from None


def through(layers: Any, states: Tensor, real: Tensor) -> Tensor:
    """States (n, T, D) after some layers; `real` (n, T) says which tokens are no padding."""
    lowest = torch.finfo(states.dtype).min
    mask = torch.where(real[:, None, None, :], 0.0, lowest).to(states.dtype)
    for layer in layers:
        said = layer(states, mask)
        states = said if isinstance(said, Tensor) else said[0]  # a tuple before transformers 5
    return states


def first_through(layer: Any, states: Tensor, real: Tensor) -> Tensor:
    """The first token's state (n, 1, D) after a layer: the same as `through`, but cheaper.

    With one query q, keys and values of all tokens s_t need not be computed:
    q . (K s_t) = (q K) . s_t,   and   sum_t p_t (V s_t + v) = V sum_t p_t s_t + v sum_t p_t.
    The bias of the keys adds the same to every t, which a softmax does not see.
    """
    own = layer.attention.self
    n, H, d = len(states), own.num_attention_heads, own.attention_head_size
    first = states[:, :1]
    K, V = (part.weight.view(H, d, -1) for part in (own.key, own.value))
    q = own.query(first).view(n, H, d)
    score = torch.einsum("nhd,hdx->nhx", q, K) @ states.mT / math.sqrt(d)
    p = own.dropout(score.masked_fill(~real[:, None, :], -math.inf).softmax(dim=-1))
    context = torch.einsum("nhx,hdx->nhd", p @ states, V)
    context = context + own.value.bias.view(H, d) * p.sum(dim=-1, keepdim=True)
    x = layer.attention.output(context.reshape(n, 1, H * d), first)
    return layer.output(layer.intermediate(x), x)


def pool(states: Tensor, real: Tensor, *, pooler: Any = None, mean: bool = False) -> Tensor:
    """One row a text: the mean over its tokens, or its first token through the pooler."""
    if mean:
        weight = real[:, :, None].to(states.dtype)
        return (states * weight).sum(dim=1) / weight.sum(dim=1)
    return states[:, 0] if pooler is None else pooler(states)


def relu_layers(features: int, count: int) -> nn.Sequential:
    """So many linear layers of the same size, each with a ReLU (RTE has three)."""
    return nn.Sequential(
        *(part for _ in range(count) for part in (nn.Linear(features, features), nn.ReLU()))
    )
