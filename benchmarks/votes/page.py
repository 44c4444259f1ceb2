"""Tables and the figure, made from rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from benchmarks.votes.rows import blocks
from benchmarks.votes.score import SCORES
from experiments.figures import BLUE, GREY, STYLE
from experiments.tables import Table, markdown
from slencodings.evaluation.measure import Resampled, resample

TITLES = {
    "votes": "anybody's vote",
    "own": "this annotator's vote",
    "joint": "half of the votes from the other half",
    "wrong": "share of wrong labels, against gold",
    "truth": "log-loss of the truth, against gold",
}
RESAMPLES = 1000
# How many methods the figure shows of each score.
_DRAWN = 12


class Result(NamedTuple):
    """A score of a method on a crowd.

    Attributes
    ----------
    behind : how far the mean is behind the lowest on this crowd, between `low` and `high` in 95 of
        100 resamples of the same items for both
    """

    crowd: str
    score: str
    method: str
    mean: float
    behind: float
    low: float | None
    high: float | None

    @property
    def apart(self) -> bool:
        """Whether it is behind for sure."""
        return self.low is not None and self.low > 0


def results(rows: pl.DataFrame) -> Iterator[Result]:
    """Every method on every crowd, with paired intervals."""
    for (crowd, score), some in rows.group_by("crowd", "score", maintain_order=True):
        names, sums, counts = blocks(some)
        if not names:
            continue
        used = counts.sum(axis=1) > 0
        sums, counts = sums[used], counts[used]
        drawn = resample(sums, counts, RESAMPLES, np.random.default_rng(0))
        found = Resampled(sums.sum(axis=0) / counts.sum(axis=0), drawn)
        lowest = found.mean[found.leader]
        for i, name in enumerate(names):
            low, high = found.behind(i)
            mean = float(found.mean[i])
            behind = 0.0 if mean == lowest else mean - float(lowest)  # also where all are infinite
            yield Result(str(crowd), str(score), name, mean, behind, low, high)


def parts(rows: pl.DataFrame, path: str) -> dict[str, str]:
    """What stands between the marks of the document, by name."""
    found = list(results(rows))
    made = {"about": about(rows, path), "crowds": markdown(crowds(rows))}
    made["in all"] = markdown(in_all(found))
    made |= {score: markdown(by_crowd(found, score)) for score in SCORES}
    made["failed"] = failed(rows)
    return made


def about(rows: pl.DataFrame, path: str) -> str:
    """With what the rows were measured."""
    versions = ", ".join(sorted(rows["version"].unique()))
    n = rows["crowd"].n_unique()
    return f"`{path}`: {n} crowd{'s' * (n != 1)}, {versions}."


def document(made: dict[str, str]) -> str:
    """A page of its own, for crowds that are somebody's; the figure is beside it."""
    told = [
        f"{made['about']} What is scored, and what bold means: docs/votebench.md of slencodings.",
        "![How far methods are behind the first](votebench.png)",
    ]
    rest = [
        f"## {TITLES.get(name, name)}\n\n{text}" for name, text in made.items() if name != "about"
    ]
    return "\n\n".join(["# VoteBench", *told, *rest]) + "\n"


def crowds(rows: pl.DataFrame) -> Table:
    """What methods were compared on."""
    heads = ["crowd", "items", "annotations", "annotators", "labels", "items with gold"]
    found = rows.filter(pl.col("failed").is_null()).group_by("crowd", maintain_order=True)
    cells = []
    for (crowd,), some in found:
        first = some.row(0, named=True)
        gold = some.filter(score="wrong")
        known = int(sum(gold["counts"][0])) if len(gold) else 0
        sizes = (first[name] for name in ("items", "annotations", "annotators", "labels"))
        cells.append([str(crowd), *(f"{n:,}" for n in (*sizes, known))])
    return heads, cells


def in_all(found: list[Result]) -> Table:
    """On how many crowds a method is first or not told apart from it, and the mean behind it."""
    scores = [score for score in SCORES if any(r.score == score for r in found)]
    heads = ["method", "crowds", *(x for s in scores for x in (TITLES[s].split(",")[0], "behind"))]
    names = list(dict.fromkeys(r.method for r in found))
    lines = []
    for name in names:
        of = {s: [r for r in found if r.method == name and r.score == s] for s in scores}
        cells = [name, str(max(len(some) for some in of.values()))]
        for some in of.values():
            first = sum(not r.apart for r in some)
            cells += [f"{first} of {len(some)}", _number(_mean(some))] if some else ["", ""]
        lines.append((_mean(of[scores[0]]), cells))
    return heads, [cells for _, cells in sorted(lines, key=lambda line: line[0])]


def by_crowd(found: list[Result], score: str) -> Table:
    """The means of a score with how far behind the first; bold where not told apart from it."""
    some = [r for r in found if r.score == score]
    names = list(dict.fromkeys(r.crowd for r in some))
    cell = {(r.method, r.crowd): r for r in some}
    order = sorted(
        dict.fromkeys(r.method for r in some),
        key=lambda name: _mean([r for r in some if r.method == name]),
    )
    return ["method", *names], [
        [method, *(_shown(cell.get((method, crowd))) for crowd in names)] for method in order
    ]


def failed(rows: pl.DataFrame) -> str:
    """What gave no numbers, and why."""
    some = rows.filter(pl.col("failed").is_not_null()).unique(["crowd", "method"])
    found = some.sort("method", "crowd").group_by("method", "failed", maintain_order=True)
    lines = [f"- {method} on {', '.join(group['crowd'])}: {why}" for (method, why), group in found]
    return "\n".join(lines) or "Nothing failed."


def figure(rows: pl.DataFrame) -> Figure:
    """How far the best methods are behind the first: a dot for a crowd, a line at the mean."""
    found = list(results(rows))
    with plt.rc_context(STYLE):
        fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
        for ax, score in zip(axes, SCORES[:3], strict=True):
            some = [r for r in found if r.score == score]
            runs = Counter(r.method for r in some)
            names = [name for name, n in runs.items() if 2 * n >= len({r.crowd for r in some})]
            means = {name: _mean([r for r in some if r.method == name]) for name in names}
            best = sorted(names, key=lambda name: means[name])[:_DRAWN]
            for y, name in enumerate(best):
                x = [r.behind for r in some if r.method == name]
                ax.plot(x, [y] * len(x), "o", color=GREY, alpha=0.5, markersize=3)
                ax.plot([means[name]], [y], "|", color=BLUE, markersize=12, markeredgewidth=2)
            ax.set_yticks(range(len(best)), best, fontsize=7)
            ax.invert_yaxis()
            ax.set_xlim(left=-0.005)
            ax.set_title(TITLES[score].replace(" from ", "\nfrom "), fontsize=9)
            ax.set_xlabel("nats per vote behind the first", fontsize=8)
    return fig


def _mean(some: list[Result]) -> float:
    return float(np.mean([r.behind for r in some])) if some else np.inf


def _number(x: float) -> str:
    return "inf" if np.isinf(x) else f"{x:.3f}"


def _shown(result: Result | None) -> str:
    """The mean, and between which two values it is behind the first."""
    if result is None:
        return ""
    mean = _number(result.mean) if result.apart else f"**{_number(result.mean)}**"
    if result.behind == 0 or result.low is None or result.high is None:
        return mean
    return f"{mean} ({_signed(result.low)} to {_signed(result.high)})"


def _signed(x: float) -> str:
    """Three digits, and no leading zero."""
    return f"{x:+.3f}".replace("0.", ".", 1) if np.isfinite(x) else f"{x:+}"
