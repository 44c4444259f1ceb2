"""The figure of the README: `python docs/figures/first.py` draws it from the embedded crowd.

The image is real, its five annotators are simulated. It was picked because the votes on it are
worth very different amounts, so it shows how opinions are weighed, and not how often that helps.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import slencodings as sle
from slencodings import plot
from slencodings.datasets import digits_crowd

IMAGE = 91


def draw() -> Figure:
    """What five annotators read in one image, what it is worth, and the sum of it."""
    crowd = digits_crowd(rng=0)
    said = crowd.annotations
    rows = np.flatnonzero(said.item == IMAGE)
    sure, trust = 1 - said.uncertainty[rows], crowd.reliability[said.annotator[rows]]
    labels, y = np.unique(said.y[rows], return_inverse=True)
    each = sle.discount(sle.encode(np.eye(len(labels))[y], 1 - sure), trust)
    fused = sle.fuse(each)
    shown = sle.Opinion(*(np.concatenate([a, b[None]]) for a, b in zip(each, fused, strict=True)))
    names = [
        f"“{labels[k]}”, {c:.0%} sure, {r:.0%} trusted"
        for k, c, r in zip(y, sure, trust, strict=True)
    ]

    figure = Figure(figsize=(8.2, 2.9), dpi=120, layout="constrained", facecolor="white")
    image, bars = figure.subplots(1, 2, width_ratios=[1, 3.2])
    image.imshow(crowd.X[IMAGE].reshape(8, 8), cmap="gray_r", interpolation="nearest")
    image.set_title(f"written as a {crowd.gold[IMAGE]}", fontsize="small")
    image.set_xticks([])
    image.set_yticks([])
    plot.bars(
        shown, ax=bars, labels=[f"“{k}”" for k in labels], names=[*names, "all of them, fused"]
    )
    bars.axhline(4.5, color="black", lw=0.8)
    return figure


if __name__ == "__main__":
    there = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png")
    draw().savefig(there, metadata={"Software": None})
