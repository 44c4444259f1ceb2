"""A plain training loop that can be stopped and go on where it was."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from slencodings.choices import Schedule, TrainingObjective, check_word
from slencodings.torch.network import Loss, Network, load_weights

# The share of the learning rate that is left when a share of training is done.
SCHEDULES: Mapping[Schedule, Callable[[float], float]] = {
    "constant": lambda _: 1.0,
    "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
}
# The share of epochs that learns from the first of two losses.
FIRST = 0.3
# The share of rows that is held out unless another is asked for, and of how many rows at least:
# of fewer it would tell little, and be missed. Of so few votes it is a larger share, up to the
# second, that as many votes are held out: of half as many the best epoch may be far too sure.
_HELD_OUT, _ENOUGH = (0.1, 0.3), 100
_ENOUGH_VOTES = 200


class TrainingPlan(NamedTuple):
    """How to train; the meaning of each is told by `SLEClassifier`."""

    max_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    schedule: Schedule
    validation: float | None
    patience: int


class Checkpoint(NamedTuple):
    """Where training has come to: all that it takes to go on.

    Attributes
    ----------
    history : one row per epoch: epoch, loss, and validation_loss where rows are held out
    network, best : the weights now, and those of the lowest validation loss
    optimizer : its state, by parameter and name
    random : the state of the random numbers
    """

    history: list[dict[str, float]]
    network: dict[str, Tensor]
    best: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    random: Tensor


def check_plan(plan: TrainingPlan, objective: TrainingObjective) -> None:
    """Say what is wrong with a plan, if something is."""
    for name, words, fine in (
        ("max_epochs", "at least 1", plan.max_epochs >= 1),
        ("batch_size", "at least 1", plan.batch_size >= 1),
        ("learning_rate", "above 0 and finite", 0 < plan.learning_rate < math.inf),
        ("weight_decay", "at least 0 and finite", 0 <= plan.weight_decay < math.inf),
        ("validation", "a share in [0, 1)", plan.validation is None or 0 <= plan.validation < 1),
        ("patience", "at least 1", plan.patience >= 1),
    ):
        if not fine:
            raise ValueError(f"`{name}` must be {words}; {getattr(plan, name)!r} came.")
    check_word("schedule", plan.schedule, Schedule)
    check_word("objective", objective, TrainingObjective)


def train(
    network: Network,
    losses: tuple[Loss, Loss],
    X: Tensor,
    values: tuple[Tensor, ...],
    plan: TrainingPlan,
    *,
    votes: Tensor | None,
    start: Checkpoint | None,
    after_epoch: Callable[[Checkpoint], None],
) -> list[dict[str, float]]:
    """Train the network in place, and give the history; random numbers are PyTorch's own.

    Rows are held out first, and the others shuffled anew for each epoch. With rows held out, the
    weights of the lowest loss on them are kept, and `patience` epochs without a lower one end it.
    That loss is the log-loss of their `votes` (N, K) where there are any: it asks for what people
    will say, whatever the network is taught by. The first of the losses is learned from for a
    while, then the other, which is what counts.
    """
    mean_loss = _mean_loss_of(network, X, values)
    valid, rows = _split(len(X), plan, votes)
    held_out_loss = partial(mean_loss, losses[1])
    if votes is not None:
        held_out_loss = _vote_loss_of(network, X, votes, valid)
    learned = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=plan.learning_rate, weight_decay=plan.weight_decay)
    # Nothing is the best, and nothing is waited for, before the loss that counts.
    first = int(FIRST * plan.max_epochs) if losses[0] is not losses[1] else 0
    history: list[dict[str, float]] = []
    best: dict[str, Tensor] = {}
    if start is not None:
        history, best = list(start.history), start.best
        load_weights(network, start.network, "the checkpoint")
        _load_optimizer(optimizer, start.optimizer)
        torch.set_rng_state(start.random)
    while len(history) < plan.max_epochs and _age(history) < plan.patience:
        epoch, shuffled = len(history), rows[torch.randperm(len(rows))]
        loss = partial(mean_loss, losses[epoch >= first])
        lost = _learn(network, loss, optimizer, shuffled, plan, epoch)
        row: dict[str, float] = {"epoch": epoch + 1, "loss": lost}
        if len(valid) and epoch >= first:
            row["validation_loss"] = _evaluate(network, held_out_loss, valid, plan)
        if not all(map(math.isfinite, row.values())):
            raise ValueError(
                f"the loss is {row['loss']:g} in epoch {row['epoch']}: training went astray. "
                f"Lower learning_rate ({plan.learning_rate:g}), or scale the features."
            )
        history.append(row)
        if "validation_loss" in row and _age(history) == 0:
            best = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        weights, state = network.state_dict(), _state(optimizer)
        after_epoch(Checkpoint(history, weights, best, state, torch.get_rng_state()))
    if best:
        network.load_state_dict(best)
    network.eval()
    return history


def _mean_loss_of(
    network: Network, X: Tensor, values: tuple[Tensor, ...]
) -> Callable[[Loss, Tensor], Tensor]:
    """What gives the mean of a loss over some rows."""
    device = next(network.parameters()).device
    # Divergences are computed in float64 where the device has it.
    wide = torch.float32 if device.type == "mps" else torch.float64

    def mean_loss(loss: Loss, rows: Tensor) -> Tensor:
        taken = (v[rows] for v in values)
        targets = (v.to(device, wide if v.is_floating_point() else None) for v in taken)
        return loss(network(X[rows].to(device)), tuple(targets))

    return mean_loss


def _vote_loss_of(
    network: Network, X: Tensor, votes: Tensor, valid: Tensor
) -> Callable[[Tensor], Tensor]:
    """What gives the mean log-loss of votes on some of the rows that are held out."""
    device, votes_a_row = next(network.parameters()).device, float(votes[valid].sum(dim=-1).mean())

    def vote_loss(rows: Tensor) -> Tensor:
        p = network.opinion(X[rows].to(device)).probability
        # What rounds to 0 counts as the least number there is, not as impossible.
        p = p.clamp_min(torch.finfo(p.dtype).tiny)
        # Batches are weighed by their rows, so that in all each vote counts the same.
        return -torch.xlogy(votes[rows].to(p), p).sum(dim=-1).mean() / votes_a_row

    return vote_loss


def _split(n: int, plan: TrainingPlan, votes: Tensor | None) -> Sequence[Tensor]:
    """Draw the rows to hold out, and the others."""
    share = plan.validation
    if share is None:
        share = 0.0
        if votes is not None and n >= _ENOUGH:
            least, most = _HELD_OUT
            share = min(max(least, _ENOUGH_VOTES / float(votes.sum())), most)
    valid, rows = torch.randperm(n).tensor_split([math.ceil(share * n)])
    if not len(rows):
        raise ValueError(
            f"`validation` must leave rows to train on; {share:g} of {n} rows leaves none."
        )
    return valid, rows


def _learn(
    network: nn.Module,
    mean_loss: Callable[[Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    rows: Tensor,
    plan: TrainingPlan,
    epoch: int,
) -> float:
    """Go through the rows once, and give their mean loss on the way."""
    network.train()
    batches, total = _batches(rows, plan), 0.0
    for i, batch in enumerate(batches):
        done = (epoch + i / len(batches)) / plan.max_epochs
        optimizer.param_groups[0]["lr"] = plan.learning_rate * SCHEDULES[plan.schedule](done)
        optimizer.zero_grad()
        value = mean_loss(batch)
        torch.autograd.backward(value)
        optimizer.step()
        total += value.item() * len(batch)
    return total / len(rows)


@torch.no_grad()
def _evaluate(
    network: nn.Module, mean_loss: Callable[[Tensor], Tensor], rows: Tensor, plan: TrainingPlan
) -> float:
    network.eval()
    return sum(mean_loss(batch).item() * len(batch) for batch in _batches(rows, plan)) / len(rows)


def _batches(rows: Tensor, plan: TrainingPlan) -> Sequence[Tensor]:
    """Parts of nearly the same size: a last part of one row would have no batch statistics."""
    return rows.tensor_split(math.ceil(len(rows) / plan.batch_size))


def _age(history: list[dict[str, float]]) -> int:
    """How many epochs ago the validation loss was lowest; -1 if there is none."""
    losses = [row["validation_loss"] for row in history if "validation_loss" in row]
    return len(losses) - 1 - losses.index(min(losses)) if losses else -1


def _state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state: Any = optimizer.state_dict()["state"]
    return {f"{i}.{name}": tensor for i, named in state.items() for name, tensor in named.items()}


def _load_optimizer(optimizer: torch.optim.Optimizer, stored: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in stored.items():
        i, name = key.split(".", 1)
        state.setdefault(int(i), {})[name] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
