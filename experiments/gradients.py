"""What pulls a network at its start? First gradients of ResNet-32A on CIFAR-10S, by loss.

The network of Table 2 before its first step, on a few batches of the 7,000 training images as they
are, with the targets of SLE (crowd), or for cross-entropy their probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl
import torch
from torch import Tensor

from experiments import data as sets
from experiments import real
from experiments.networks import resnet32a
from experiments.rows import Job, Row
from experiments.tables import Table
from slencodings import Opinion, alpha
from slencodings.torch import kl_loss, soft_cross_entropy
from slencodings.torch.network import build

SEEDS, BATCHES, BATCH = 3, 4, 64


class How(NamedTuple):
    """How a KL is scaled, and whether the network begins at the mean target."""

    normalize: bool
    started: bool


# None is cross-entropy, which the others are compared with.
METHODS = {
    "cross-entropy": None,
    "KL as printed": How(normalize=False, started=False),
    "KL normalized": How(normalize=True, started=False),
    "KL normalized, begun at the mean target": How(normalize=True, started=True),
}


def jobs() -> list[Job]:
    """All losses with one seed each."""
    about = {"experiment": "gradients", "setting": "cifar10s"}
    return [about | {"method": method, "seed": seed} for seed in range(SEEDS) for method in METHODS]


def rows(experiment: str, setting: str, method: str, seed: int) -> Iterator[Row]:
    """The size of a loss's first gradient, and how far it points where cross-entropy's does."""
    torch.set_num_threads(1)
    X, target = _taught()
    order = np.random.default_rng(seed).permutation(len(X))[: BATCHES * BATCH]
    found: dict[str, list[float]] = {}
    for batch in np.split(order, BATCHES):
        x, y = torch.as_tensor(X[batch]), target.rows(batch)
        usual = first_gradient(None, x, y, target, seed)
        mine = first_gradient(METHODS[method], x, y, target, seed)
        for name, value in compared(mine, usual).items():
            found.setdefault(name, []).append(value)
    counts = alpha(target).sum(axis=1)
    effective = float(counts.sum() ** 2 / np.sum(counts**2))
    result = {name: float(np.mean(values)) for name, values in found.items()}
    weighed = METHODS[method]
    alike = weighed is None or weighed.normalize
    result["effective items"] = float(len(X)) if alike else effective
    about = {"experiment": experiment, "setting": setting, "annotations": "all", "method": method}
    for metric, value in result.items():
        yield about | {"seed": seed, "metric": metric, "value": value}


@lru_cache(maxsize=1)
def _taught() -> tuple[np.ndarray, Opinion]:
    """The training images, and what SLE (crowd) teaches of them."""
    data = sets.load("cifar10s", augment=False)
    train, _ = data.splits[0]
    assert data.gold is not None
    crowd, gold = sets.part(data.annotations, train), data.gold[train]
    y = real.target("SLE (crowd)", crowd, gold=gold, rng=np.random.default_rng(0))
    known, target = real.filled(y, crowd, gold)
    return data.X[train[known]], target


def first_gradient(
    how: How | None, x: Tensor, y: Opinion, target: Opinion, seed: int
) -> dict[str, Tensor]:
    """The gradient of a network's encoder and head before its first step."""
    K = y.belief.shape[1]
    torch.manual_seed(seed)
    encoder = resnet32a(augment=False)
    objective = "cross_entropy" if how is None else "reverse_kl"
    begins = target if how is not None and how.started else None
    network = build(encoder, x, (), np.full(K, 1 / K), objective, begins).train()
    if how is not None and not how.started:
        with torch.no_grad():
            network.head.linear.bias[-1] = math.log(K) + 2  # as heads began before
    said, opinion = network(x), Opinion(*map(torch.tensor, y))
    if how is None:
        loss = soft_cross_entropy(said, opinion.probability)
    else:
        loss = kl_loss(said, opinion, normalize=how.normalize)
    torch.autograd.backward(loss)
    return {"encoder": _flat(network.encoder), "head": _flat(network.head)}


def _flat(module: torch.nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])


def compared(mine: dict[str, Tensor], usual: dict[str, Tensor]) -> dict[str, float]:
    """The size of a gradient, how many times the usual one it is, and cosines with that."""
    norm, other = (math.hypot(*(float(g.norm()) for g in x.values())) for x in (mine, usual))
    cosines = {
        f"cosine, {name}": float(torch.cosine_similarity(g, usual[name], dim=0))
        for name, g in mine.items()
    }
    return {"norm": norm, "ratio": norm / other} | cosines


def table(rows: pl.DataFrame) -> Table:
    """Means over seeds and batches."""
    found = rows.group_by("method", "metric").agg(pl.col("value").mean())
    means = {(method, metric): value for method, metric, value in found.iter_rows()}
    shown = {
        "norm": "norm of the gradient",
        "ratio": "against cross-entropy's",
        "cosine, encoder": "cosine, encoder",
        "cosine, head": "cosine, head",
        "effective items": "effective items",
    }
    cells = []
    for method in METHODS:
        norm, ratio, *cosines, items = (means[method, metric] for metric in shown)
        numbers = [f"{norm:.1f}", f"{ratio:.1f}", *(f"{c:.2f}" for c in cosines), f"{items:,.0f}"]
        cells.append([method, *numbers])
    return ["loss", *shown.values()], cells
