"""Two published ways to learn a network and its annotators at once, small.

Each gives the network's probabilities of new items, and what it takes to be true of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from slencodings import Annotations
from slencodings.aggregate import soft_vote

Floats = NDArray[np.float64]
_STEPS = 4


class Rival(NamedTuple):
    """What was learned.

    Attributes
    ----------
    truth : array (N, K), of the items learned from
    predict : from inputs to probabilities (n, K)
    hear : from the probabilities of what is true, (n, K), to those of what one of the people would
        say, if the method has a model of that
    """

    truth: Floats
    predict: Callable[[NDArray[Any]], Floats]
    hear: Callable[[Floats], Floats] | None = None


def raykar(make: Callable[[], Any], X: NDArray[Any], crowd: Annotations) -> Rival:
    """Joint EM of a classifier and annotators' confusions (Raykar et al. 2010, JMLR 11).

    q_i ~ p(truth | x_i) prod of E_m[., y],   E_m from q,   the classifier learns q

    One annotation more of each true label, spread evenly, keeps every answer possible.
    """
    a, M, K = crowd, len(crowd.annotators), len(crowd.labels)
    q = soft_vote(crowd).probability
    model = make().fit(X, q)
    for _ in range(_STEPS):
        cell = a.annotator * K + a.y
        said = [np.bincount(cell, q[a.item, c], M * K).reshape(M, K) for c in range(K)]
        mass = np.stack(said, axis=1) + 1 / K
        log_E = np.log(mass / mass.sum(axis=2, keepdims=True))
        log_q = np.log(model.predict_proba(X))
        np.add.at(log_q, a.item, log_E[a.annotator, :, a.y])
        q = np.exp(log_q - log_q.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        model = make().fit(X, q)
    everyone = np.stack([np.bincount(a.y, q[a.item, c], K) for c in range(K)]) + 1 / K
    everyone /= everyone.sum(axis=1, keepdims=True)
    return Rival(q, model.predict_proba, lambda p: p @ everyone)


def crowd_layer(
    encoder: nn.Module,
    size: int,
    X: NDArray[np.float32],
    crowd: Annotations,
    *,
    max_epochs: int,
    learning_rate: float,
    batch_size: int = 64,
    seed: int = 0,
) -> Rival:
    """A matrix for each annotator on top of the network (Rodrigues & Pereira 2018, AAAI, MW).

    logits of m's answer = W_m softmax(network),   W_m begins as the identity
    """
    a, M, K = crowd, len(crowd.annotators), len(crowd.labels)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        network = nn.Sequential(encoder, nn.Linear(size, K))
        layer = nn.Parameter(torch.eye(K).repeat(M, 1, 1))
        optimizer = torch.optim.AdamW([*network.parameters(), layer], lr=learning_rate)
        x, who, said = (torch.as_tensor(v) for v in (X, a.annotator, a.y))
        of_item = [torch.as_tensor(np.flatnonzero(a.item == i)) for i in range(len(a.items))]
        batches = -(-len(x) // batch_size)
        parts = [
            part for _ in range(max_epochs) for part in torch.randperm(len(x)).tensor_split(batches)
        ]
        for step, items in enumerate(parts):
            rate = (1 + np.cos(np.pi * step / len(parts))) / 2
            optimizer.param_groups[0]["lr"] = learning_rate * rate
            votes = torch.cat([of_item[i] for i in items])
            place = torch.repeat_interleave(
                torch.arange(len(items)), torch.tensor([len(of_item[i]) for i in items])
            )
            p = torch.softmax(network(x[items]), dim=-1)[place]
            logits = torch.einsum("qlk,qk->ql", layer[who[votes]], p)
            optimizer.zero_grad()
            F.cross_entropy(logits, said[votes]).backward()
            optimizer.step()

    @torch.no_grad()
    def predict(new: NDArray[Any]) -> Floats:
        network.eval()
        each = [network(some) for some in torch.as_tensor(new).split(batch_size)]
        return torch.softmax(torch.cat(each), dim=-1).double().numpy()

    @torch.no_grad()
    def hear(p: Floats) -> Floats:
        """Of people who say as much as they did."""
        often = torch.bincount(who, minlength=M) / len(who)
        each = torch.softmax(torch.einsum("mlk,nk->nml", layer, torch.as_tensor(p).float()), dim=-1)
        return torch.einsum("m,nml->nl", often, each).double().numpy()

    return Rival(predict(X), predict, hear)
