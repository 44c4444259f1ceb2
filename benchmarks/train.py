"""What does training on opinions cost? kl_loss against the usual losses.

The cases of a group take turns in one process, on one thread. Processor time is measured, so that
neighbours on the machine count less.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.distributions import Dirichlet, kl_divergence
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from benchmarks.turns import Comparison, Group, Row, Run, Step, alternate, answer
from slencodings import Opinion, alpha
from slencodings.torch import OpinionHead, kl_loss, opinion_from_logits, pack

K = 10
IMAGES = "step of a small ResNet, 128 images"
TEXTS = "step of a text encoder, 16 x 64 tokens"
ITEMS, BATCHES = "10,000 %s, item by item", "10,000 %s, batch by batch"
THEIRS = "torch.distributions, float32"
COMPARED = (
    Comparison(f"{IMAGES}, kl_loss", f"{IMAGES}, cross-entropy", 1.05),
    Comparison(f"{TEXTS}, kl_loss", f"{TEXTS}, cross-entropy", 1.05),
    Comparison("kl_loss, reverse", THEIRS, 1.5),
    Comparison("kl_loss, forward", THEIRS, 1.5),
    Comparison("kl_loss, reverse, float32", THEIRS, 1.5),
    Comparison(ITEMS % "packed opinions", ITEMS % "labels", 1),
    Comparison(ITEMS % "opinions of three tensors", ITEMS % "labels"),
    Comparison(BATCHES % "packed opinions", BATCHES % "labels", 1),
)


def plan(full: bool) -> list[Group]:
    """A group for everything that is compared with the same."""
    groups: dict[str, list[str]] = {}
    for case, floor, *_ in COMPARED:
        groups.setdefault(floor, [floor]).append(case)
    turns = {THEIRS: 200 if full else 100}
    few = 20 if full else 10
    return [
        Group(
            "train",
            "train",
            tuple(Run(case, rows_of(case), K) for case in cases),
            turns.get(floor, few),
            together=True,
        )
        for floor, cases in groups.items()
    ]


def rows_of(case: str) -> int:
    sizes = {IMAGES: 128, TEXTS: 16, "10,000": 10_000}
    return next((n for begin, n in sizes.items() if case.startswith(begin)), 1024)


def measure(runs: list[Run], turns: list[int], folder: Path) -> list[Row]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    make = {128: images, 16: texts, 10_000: loading, 1024: losses}[runs[0].rows or 0]
    steps = make()
    return alternate(runs, [steps[run.case] for run in runs], turns, time.process_time)


def targets(n: int) -> Opinion:
    return opinion_from_logits(torch.randn(n, K + 1), floor=0.01)


def losses() -> dict[str, Step]:
    """The loss alone, forward and backward."""
    target = targets(1024)
    said = opinion_from_logits(torch.randn(1024, K + 1), floor=0.01)

    def leaf() -> Opinion:
        return Opinion(*(x.clone().requires_grad_() for x in said))

    def theirs() -> None:
        q, p = (Dirichlet(alpha(opinion), validate_args=False) for opinion in (leaf(), target))
        kl_divergence(q, p).mean().backward()

    return {
        THEIRS: theirs,
        "kl_loss, reverse": lambda: kl_loss(leaf(), target).backward(),
        "kl_loss, forward": lambda: kl_loss(leaf(), target, direction="forward").backward(),
        "kl_loss, reverse, float32": lambda: kl_loss(
            leaf(), target, dtype=torch.float32
        ).backward(),
    }


def loading() -> dict[str, Step]:
    """Item by item, as a DataLoader does by itself; and a batch at a time, by a sampler of them."""
    n = 10_000
    x, labels, target = torch.randn(n, 64), torch.randint(K, (n,)), targets(n)
    packed = torch.from_numpy(pack(target))

    def read(whole: bool, *tensors: Tensor) -> Step:
        data = TensorDataset(x, *tensors)
        batches = BatchSampler(RandomSampler(data), 128, drop_last=False)
        loader = (
            DataLoader(data, sampler=batches, batch_size=None)
            if whole
            else DataLoader(data, batch_sampler=batches)
        )
        return lambda: sum(len(batch[0]) for batch in loader)

    return {
        ITEMS % "labels": read(False, labels),
        ITEMS % "packed opinions": read(False, packed),
        ITEMS % "opinions of three tensors": read(False, *target),
        BATCHES % "labels": read(True, labels),
        BATCHES % "packed opinions": read(True, packed),
    }


def images() -> dict[str, Step]:
    return steps_of(IMAGES, resnet, 64, torch.randn(128, 3, 32, 32))


def texts() -> dict[str, Step]:
    return steps_of(TEXTS, TextEncoder, 128, torch.randint(5000, (16, 64)))


def steps_of(name: str, encoder: Callable[[], nn.Module], size: int, x: Tensor) -> dict[str, Step]:
    """A step of training: forward, backward, and the optimizer's."""
    target, labels = targets(len(x)), torch.randint(K, (len(x),))

    def step(head: nn.Module, loss: Callable[..., Tensor], y: object) -> Step:
        model = nn.Sequential(encoder(), head)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

        def run() -> None:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()

        return run

    return {
        f"{name}, cross-entropy": step(nn.Linear(size, K), nn.functional.cross_entropy, labels),
        f"{name}, kl_loss": step(OpinionHead(size, K), kl_loss, target),
    }


class Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.skip = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.main(x) + self.skip(x))


def resnet() -> nn.Module:
    """32 x 32 images to 64 features, three stages of one block."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1),
        Residual(16, 16, 1),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


class TextEncoder(nn.Module):
    """Six layers of 128 features; the first token's are given."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5000, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.words(x))[:, 0]


if __name__ == "__main__":
    answer(measure)
