"""What does a network learn from each target? Accuracy and distance from the truth, five seeds.

On the embedded digits crowd as it is, and one of doubtful and unreliable annotators; 1,200 images
to learn from, 597 to be read; the truth is how the crowd was simulated. JSD is the divergence.
`--write` keeps the tables in docs/training.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from slencodings.aggregate import majority_vote
from slencodings.confidence import calibrate
from slencodings.datasets import digits_crowd
from slencodings.metrics import entropy_similarity, jsd
from slencodings.torch import SLEClassifier

DOCUMENT = Path(__file__).parents[1] / "docs" / "training.md"
CROWDS = {
    "as it is": {},
    "doubtful and unreliable": {"confidence": (2, 4), "reliability": (4, 4)},
}
HOW = {"max_epochs": 20, "learning_rate": 0.01}
HEADS = ["accuracy", "JSD", "NES", "JSD of belief alone", "NES of belief alone"]


def runs(crowd: Any, train: np.ndarray) -> dict[str, tuple[dict[str, Any], Any]]:
    """What each network is told, and its target."""
    said = crowd.annotations.rows(np.isin(crowd.annotations.item, train))
    earned = replace(said, uncertainty=calibrate(said)(said.confidence))
    trusted, soft = {"reliability": crowd.reliability}, {"objective": "cross_entropy"}
    most = majority_vote(said).probability[train].argmax(axis=1)
    return {
        "soft votes, cross-entropy": (soft, said),
        "SLE, reverse KL, given reliability": (trusted, said),
        "SLE, the same, confidence calibrated": (trusted, earned),
        "SLE, forward KL, given reliability": ({"objective": "forward_kl"} | trusted, said),
        "SLE, reverse KL, full trust": ({}, said),
        "SLE, reverse KL, learned trust": ({"reliability": "learned"}, said),
        "likelihood of votes": ({"objective": "votes"}, said),
        "majority vote, cross-entropy": (soft, most),
        "gold, cross-entropy": (soft, crowd.gold[train]),
    }


def scores(settings: dict[str, Any], seeds: int) -> dict[str, np.ndarray]:
    """Rows of `HEADS`, one per seed, for each target."""
    order = np.random.default_rng(0).permutation(1797)
    train, test = order[:1200], order[1200:]
    found: dict[str, list[list[float]]] = {}
    for seed in range(seeds):
        crowd = digits_crowd(rng=seed, **settings)
        truth, gold = crowd.truth[test], crowd.gold[test]
        for name, (told, y) in runs(crowd, train).items():
            print(f"\r{seed + 1}/{seeds} {name:45}", end="", file=sys.stderr, flush=True)
            model = SLEClassifier(random_state=seed, **HOW, **told)
            by_name = {"items": crowd.annotations.items[train]} if hasattr(y, "items") else {}
            opinion = model.fit(crowd.X[train], y, **by_name).predict_opinion(crowd.X[test])
            right = np.mean(opinion.probability.argmax(axis=1) == gold)
            row = [float(right)]
            for p in (opinion.probability, opinion.mode):
                row += [float(jsd(truth, p).mean()), entropy_similarity(truth, p)]
            found.setdefault(name, []).append(row)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return {name: np.asarray(rows) for name, rows in found.items()}


def table(found: dict[str, np.ndarray]) -> list[str]:
    lines = [f"| learned from | {' | '.join(HEADS)} |", "|---" * (len(HEADS) + 1) + "|"]
    for name, rows in found.items():
        cells = [
            f"{m:.3f} ({s:.3f})" for m, s in zip(rows.mean(0), rows.std(0, ddof=1), strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"into {DOCUMENT.name}")
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = [f"{given.seeds} seeds, mean (standard deviation); {HOW['max_epochs']} epochs."]
    for name, settings in CROWDS.items():
        lines += ["", f"The crowd {name}:", "", *table(scores(settings, given.seeds))]
    print("\n".join(lines))
    if given.write:
        text = "\n".join(["<!-- learning -->", *lines, "<!-- end of learning -->"])
        old = DOCUMENT.read_text(encoding="utf-8")
        pattern = r"<!-- learning -->.*<!-- end of learning -->"
        DOCUMENT.write_text(re.sub(pattern, lambda _: text, old, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
