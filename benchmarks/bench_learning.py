"""What does a network learn from each target? Accuracy and distance from the truth, five seeds.

On the embedded digits crowd as it is, and one of doubtful and unreliable annotators; 1,200 images
to learn from, 597 to be read; the truth is how the crowd was simulated. JSD is the divergence.
`--write` keeps the rows in benchmarks/rows and the tables in docs/training.md; `--kept` measures
nothing and shows what is kept.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from slencodings import __version__
from slencodings.aggregate import majority_vote
from slencodings.confidence import calibrate
from slencodings.datasets import digits_crowd
from slencodings.metrics import entropy_similarity, jsd
from slencodings.torch import SLEClassifier

DOCUMENT = Path(__file__).parents[1] / "docs" / "training.md"
KEPT = Path(__file__).parent / "rows" / "learning.json"
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


def rows(name: str, seeds: int) -> Iterator[dict[str, Any]]:
    """The numbers of `HEADS` of each target, one row a seed, for one of the crowds."""
    order = np.random.default_rng(0).permutation(1797)
    train, test = order[:1200], order[1200:]
    for seed in range(seeds):
        crowd = digits_crowd(rng=seed, **CROWDS[name])
        truth, gold = crowd.truth[test], crowd.gold[test]
        for target, (told, y) in runs(crowd, train).items():
            print(f"\r{seed + 1}/{seeds} {target:45}", end="", file=sys.stderr, flush=True)
            model = SLEClassifier(random_state=seed, **HOW, **told)
            by_name = {"items": crowd.annotations.items[train]} if hasattr(y, "items") else {}
            opinion = model.fit(crowd.X[train], y, **by_name).predict_opinion(crowd.X[test])
            found = [float(np.mean(opinion.probability.argmax(axis=1) == gold))]
            for p in (opinion.probability, opinion.mode):
                found += [float(jsd(truth, p).mean()), entropy_similarity(truth, p)]
            about = {"crowd": name, "target": target, "seed": seed, "version": __version__}
            yield about | dict(zip(HEADS, found, strict=True))
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


def tables(kept: list[dict[str, Any]]) -> list[str]:
    """All rows as lines of a document."""
    seeds = len({row["seed"] for row in kept})
    lines = [f"{seeds} seeds, mean (standard deviation); {HOW['max_epochs']} epochs at most."]
    for name in CROWDS:
        mine = [row for row in kept if row["crowd"] == name]
        lines += ["", f"The crowd {name}:", "", f"| learned from | {' | '.join(HEADS)} |"]
        lines.append("|---" * (len(HEADS) + 1) + "|")
        for target in dict.fromkeys(row["target"] for row in mine):
            x = np.asarray([[row[h] for h in HEADS] for row in mine if row["target"] == target])
            pairs = zip(x.mean(axis=0), x.std(axis=0, ddof=1), strict=True)
            lines.append(f"| {target} | {' | '.join(f'{m:.3f} ({s:.3f})' for m, s in pairs)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"into {KEPT.name}, {DOCUMENT.name}")
    parser.add_argument("--kept", action="store_true", help="measure nothing, show what is kept")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.kept:
        found = json.loads(KEPT.read_text(encoding="utf-8"))
    else:
        found = [row for name in CROWDS for row in rows(name, given.seeds)]
    lines = tables(found)
    print("\n".join(lines))
    if given.write:
        KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        text = "\n".join(["<!-- learning -->", *lines, "<!-- end of learning -->"])
        old = DOCUMENT.read_text(encoding="utf-8")
        pattern = r"<!-- learning -->.*<!-- end of learning -->"
        DOCUMENT.write_text(re.sub(pattern, lambda _: text, old, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
