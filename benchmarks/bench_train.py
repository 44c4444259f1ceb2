"""What does training on opinions cost? kl_loss against the usual losses, in one run.

The two of a row take turns, on one thread; the ratio is the median over the turns, with the middle
half of them. Processor time is measured, so that neighbours on the machine count less.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.distributions import Dirichlet, kl_divergence
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from slencodings import Opinion, alpha
from slencodings.torch import OpinionHead, kl_loss, opinion_from_logits, pack

README = Path(__file__).parent / "README.md"
MARKS = "<!-- train -->\n", "<!-- end of train -->\n"
K = 10
Step = Callable[[], object]


class Row(NamedTuple):
    case: str
    seconds: float
    compared: str
    ratios: list[float]
    most: float | None

    def __str__(self) -> str:
        low, middle, high = statistics.quantiles(self.ratios, n=4)
        return (
            f"| {self.case} | {1e3 * self.seconds:.3g} | {self.compared} | "
            f"{middle:.2f} ({low:.2f}-{high:.2f}) | {'' if self.most is None else self.most} |"
        )


def compare(
    case: str, ours: Step, compared: str, theirs: Step, turns: int, most: float | None
) -> Row:
    """Turn by turn, after two that do not count."""
    spent: list[tuple[float, float]] = []
    for _ in range(turns + 2):
        seconds = []
        for step in (ours, theirs):
            start = time.process_time()
            step()
            seconds.append(time.process_time() - start)
        spent.append((seconds[0], seconds[1]))
    spent = spent[2:]
    middle = statistics.median(x for x, _ in spent)
    return Row(case, middle, compared, [x / y for x, y in spent], most)


def targets(n: int) -> Opinion:
    return opinion_from_logits(torch.randn(n, K + 1), floor=0.01)


# -- the loss alone ----------------------------------------------------------------------------


def loss_alone(turns: int) -> list[Row]:
    target, logits = targets(1024), torch.randn(1024, K + 1)
    said = opinion_from_logits(logits, floor=0.01)

    def leaf() -> Opinion:
        return Opinion(*(x.clone().requires_grad_() for x in said))

    def theirs() -> None:
        q, p = (Dirichlet(alpha(opinion), validate_args=False) for opinion in (leaf(), target))
        kl_divergence(q, p).mean().backward()

    compared = "torch.distributions, float32"
    return [
        compare(f"kl_loss, {name}", step, compared, theirs, turns, 2.0)
        for name, step in (
            ("reverse", lambda: kl_loss(leaf(), target).backward()),
            ("forward", lambda: kl_loss(leaf(), target, direction="forward").backward()),
            ("reverse, float32", lambda: kl_loss(leaf(), target, dtype=torch.float32).backward()),
        )
    ]


# -- a step of training ------------------------------------------------------------------------


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


def training(case: str, encoder: Callable[[], nn.Module], size: int, x: Tensor, turns: int) -> Row:
    target, labels = targets(len(x)), torch.randint(K, (len(x),))

    def step(head: nn.Module, loss: Callable[..., Tensor], y: object) -> Step:
        model = nn.Sequential(encoder(), head)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

        def run() -> None:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()

        return run

    ours = step(OpinionHead(size, K), kl_loss, target)
    theirs = step(nn.Linear(size, K), nn.functional.cross_entropy, labels)
    return compare(case, ours, "cross-entropy", theirs, turns, 1.05)


# -- data --------------------------------------------------------------------------------------


def loading(turns: int) -> list[Row]:
    """Item by item, as a DataLoader does by itself; and a batch at a time, by a sampler of them."""
    n = 10_000
    x, labels, target = torch.randn(n, 64), torch.randint(K, (n,)), targets(n)

    def read(whole: bool, *tensors: Tensor) -> Step:
        data = TensorDataset(x, *tensors)
        batches = BatchSampler(RandomSampler(data), 128, drop_last=False)
        loader = (
            DataLoader(data, sampler=batches, batch_size=None)
            if whole
            else DataLoader(data, batch_sampler=batches)
        )
        return lambda: sum(len(batch[0]) for batch in loader)

    packed = torch.from_numpy(pack(target))
    return [
        compare(
            f"10,000 opinions, {how}",
            read(whole, *given),
            "labels",
            read(whole, labels),
            turns,
            most,
        )
        for how, whole, given, most in (
            ("packed, item by item", False, [packed], 1),
            ("packed, batch by batch", True, [packed], 1),
            ("three tensors, item by item", False, target, None),
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200, help="of the loss; steps take a tenth")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    turns, few = arguments.turns, max(arguments.turns // 10, 3)
    images, tokens = torch.randn(128, 3, 32, 32), torch.randint(5000, (16, 64))
    rows = [
        training("step of a small ResNet, 128 images", resnet, 64, images, few),
        training("step of a text encoder, 16 x 64 tokens", TextEncoder, 128, tokens, few),
        *loss_alone(turns),
        *loading(few),
    ]
    table = "\n".join(
        [
            f"{turns} turns of the losses (1024 x {K}, forward and backward), {few} of the others; "
            f"1 thread, Python {platform.python_version()}, torch {torch.__version__}.",
            "",
            "| case | milliseconds | compared with | times as slow (middle half) | at most |",
            "|---|---|---|---|---|",
            *map(str, rows),
            "",
        ]
    )
    print(table)
    if arguments.write:
        start, end = MARKS
        before, rest = README.read_text().split(start)
        README.write_text(before + start + table + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
