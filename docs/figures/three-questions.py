"""One crowd, three questions: `python docs/figures/three-questions.py` draws it.

The images are real, their fifty annotators simulated; a crowd of one's own has no line of gold.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import slencodings as sle
from slencodings.datasets import digits_crowd

SAID, TRUE, PEOPLE = "#3b6fb6", "#b6553b", "#4f8a5b"


def draw() -> Figure:
    """Left and middle: stated against what came; right: annotators with their intervals."""
    crowd = digits_crowd(rng=0)
    said = crowd.annotations
    rng = np.random.default_rng(0)
    part = rng.integers(0, 2, len(said.items)).astype(bool)[said.item]
    learned = sle.trust.learn_crowd(said.rows(~part))
    others = said.rows(part)
    votes, truth = learned.predict(others), learned.truth(others).probability
    seen = np.unique(others.item)

    figure = Figure(figsize=(8.6, 3.1), dpi=120, layout="constrained", facecolor="white")
    left, middle, right = figure.subplots(1, 3)
    _stated(left, votes, np.eye(len(said.labels))[others.y], SAID)
    left.set_title("What would people say?", fontsize="small")
    left.set_ylabel("votes that came", fontsize="x-small")
    gold = np.eye(len(said.labels))[crowd.gold[seen]]
    _stated(middle, truth[seen], gold, TRUE)
    middle.set_title("What is true?", fontsize="small")
    middle.set_ylabel("labels that are true", fontsize="x-small")
    for axes in (left, middle):
        axes.set_xlabel("probability that was stated", fontsize="x-small")

    order = np.argsort(learned.above_chance)
    low, high = learned.above_chance_interval()
    for place, m in enumerate(order):
        right.plot([low[m], high[m]], [place, place], color=PEOPLE, lw=1.2)
    right.plot(learned.above_chance[order], np.arange(len(order)), "o", color=PEOPLE, ms=2.5)
    right.axvline(0, color="black", lw=0.8)
    right.set_xlim(-0.1, 1)
    right.set_yticks([])
    right.set_title("Whom to trust?", fontsize="small")
    right.set_xlabel("right above chance: 0 guesses, 1 is always right", fontsize="x-small")
    for axes in (left, middle, right):
        axes.tick_params(labelsize="x-small")
    return figure


def _stated(
    axes: Axes, stated: NDArray[np.floating], came: NDArray[np.floating], color: str
) -> None:
    """How often labels came, by the probability that was stated for them, in tenths."""
    p, y = stated.ravel(), came.ravel()
    tenth = np.minimum((p * 10).astype(int), 9)
    n = np.bincount(tenth, minlength=10)
    there = n >= 20
    x = np.bincount(tenth, p, 10)[there] / n[there]
    share = np.bincount(tenth, y, 10)[there] / n[there]
    axes.plot([0, 1], [0, 1], color="gray", lw=0.8, ls="--")
    error = 1.96 * np.sqrt(share * (1 - share) / n[there])
    axes.errorbar(x, share, error, fmt="o-", color=color, ms=4, lw=1.2)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")


if __name__ == "__main__":
    there = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png")
    draw().savefig(there, metadata={"Software": None})
