"""The story of the library, told on the terminal with the embedded crowd."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings import aggregate, confidence, metrics
from slencodings.datasets import DigitsCrowd, digits_crowd
from slencodings.opinion import Opinion

SHADES = " ░▒▓█"


def tell(seed: int, say: Any = print) -> None:
    """Show the crowd, one hard image, what confidence is worth, and who reads best."""
    crowd = digits_crowd(rng=seed)
    said = crowd.annotations
    per_item = len(said.item) // len(said.items)
    say(
        f"{len(said.items):,} handwritten digits, read by {len(said.annotators)} people, "
        f"{per_item} of them each: {len(said.item):,} annotations.\n"
        "The images are real; the people are simulated (seed "
        f"{seed}), so we know how reliable they are."
    )
    earned = confidence.calibrate(said, 1 - said.uncertainty)
    calibrated = replace(said, uncertainty=earned(1 - said.uncertainty))
    target = aggregate.sle(calibrated, reliability=crowd.reliability)
    _one_image(crowd, target, _hardest(target), say)
    say("\nWhat a stated confidence is worth, by how often others said the same:\n")
    say(_indented(str(earned)))
    say("\nWho reads the digits best? (against what was written; lower loss is better)\n")
    say(f"  {'':34} {'accuracy':>9} {'log-loss':>9} {'uncertainty':>12}")
    for name, probability, doubt in _contest(crowd, target):
        right = np.mean(np.argmax(probability, axis=-1) == crowd.gold)
        loss = _log_loss(probability, crowd.gold)
        say(f"  {name:34} {right:>9.3f} {loss:>9.3f} {doubt:>12}")
    say(
        "\nVotes treat everybody alike. Taken at their word, sure people outvote right ones; with\n"
        "confidence as it was earned and reliability as it is, the crowd reads better than votes\n"
        "do, and says how sure it is of every image.\n\n"
        "The same on your own table:\n"
        "  sle encode crowd.csv -o targets.parquet --confidence-scale calibrated"
    )


def _hardest(target: Opinion) -> int:
    """The image whose two likeliest readings are closest."""
    best = np.sort(target.belief, axis=-1)
    return int(np.argmin((best[:, -1] - best[:, -2]) / best[:, -1]))


def _one_image(crowd: DigitsCrowd, target: Opinion, i: int, say: Any) -> None:
    said = crowd.annotations
    say(f"\nAn image that people read differently, {said.items[i]}:\n")
    picture = [
        "".join(SHADES[round(x * (len(SHADES) - 1))] * 2 for x in row)
        for row in crowd.X[i].reshape(8, 8)
    ]
    notes = ["annotator  says  sure  reliable"] + [
        f"{said.annotators[said.annotator[q]]:<10} {said.labels[said.y[q]]:>4} "
        f"{1 - said.uncertainty[q]:>5.1f} {crowd.reliability[said.annotator[q]]:>9.2f}"
        for q in np.flatnonzero(said.item == i)
    ]
    for k in range(max(len(picture), len(notes))):
        left = picture[k] if k < len(picture) else ""
        say(f"  {left:18} {notes[k] if k < len(notes) else ''}".rstrip())
    say("\nTheir opinions, discounted by reliability and fused into one:\n")
    one = target.rows(i)
    for k in np.argsort(-one.belief)[:3]:
        say(f"  belief in {said.labels[k]}   {one.belief[k]:.2f} {_bar(one.belief[k])}")
    say(f"  uncertainty   {one.uncertainty:.2f} {_bar(one.uncertainty)}")
    say(f"  (it was written as {crowd.gold[i]})")


def _contest(crowd: DigitsCrowd, target: Opinion) -> list[tuple[str, NDArray[np.float64], str]]:
    said = crowd.annotations
    literal = aggregate.sle(said, reliability=crowd.reliability)
    return [
        ("majority vote", aggregate.majority_vote(said).probability, "none"),
        ("soft vote", aggregate.soft_vote(said).probability, "none"),
        ("SLE, confidence as stated", literal.probability, f"{literal.uncertainty.mean():.3f}"),
        ("SLE, confidence as earned", target.probability, f"{target.uncertainty.mean():.3f}"),
    ]


def _log_loss(probability: NDArray[np.float64], gold: NDArray[Any]) -> float:
    """Mean log-loss; infinite as soon as something that happened was called impossible."""
    p = probability[np.arange(len(gold)), gold]
    return float("inf") if np.any(p == 0) else float(-np.mean(np.log(p)))


def _bar(share: float) -> str:
    return "█" * round(30 * share)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
