"""Figures, drawn from rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import operators, real, sources, synthetic

FOLDER = Path(__file__).parents[1] / "docs" / "figures"

# Okabe & Ito's colours, which people of every colour vision tell apart, and signs for print.
BLUE, ORANGE, GREEN, RED, SKY, PINK, GREY = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#555555"),
)
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "legend.frameon": False,
    "svg.hashsalt": "slencodings",  # the same picture gives the same file
    "svg.fonttype": "none",
}
DRAWN = {  # of Figure 1
    "MV": (GREY, "s"),
    "Soft": (ORANGE, "^"),
    "SLE mean": (SKY, "v"),
    "SLE mode": (BLUE, "o"),
}
ARROWS = {"F1": "F1 ↑", "JSD": "JSD ↓", "NES": "NES ↑"}
TITLES = {
    "a": "(a) reliability varies, full confidence",
    "b": "(b) confidence varies, high reliability",
    "c": "(c) confidence varies, low reliability",
}
COMPARED = {  # of "which operator when"
    "cumulative": (BLUE, "o"),
    "average": (ORANGE, "^"),
    "weighted": (RED, "v"),
    "constraint": (GREEN, "s"),
    "compromise": (PINK, "D"),
    "cumulative, full trust": (GREY, "x"),
    "cumulative, estimated reliability": (SKY, "P"),
    "cumulative, learned trust": ("#000000", "*"),
}
_BOTTOM = 2e-3  # what is lost below it is nothing to anybody
LEARNED = {"log-loss": "↓", "JSD": "↓", "NES": "↑"}
CHANGED = {
    "annotators": "annotators per item",
    "labels": "labels",
    "items": "items",
    "noise": "error of stated reliability",
    "together": "share of errors made together",
}


def figure1(rows: pl.DataFrame) -> Figure:
    """F1, JSD and NES over the range of reliability or confidence; band: one standard deviation."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(3, 3, figsize=(9, 8), sharex=True, layout="constrained")
        for i, experiment in enumerate(synthetic.EXPERIMENTS):
            for ax, metric in zip(axes[i], synthetic.METRICS, strict=True):
                part = rows.filter(experiment=experiment, metric=metric)
                _curves(ax, part)
                ax.set_ylabel(ARROWS[metric])
            axes[i, 1].set_title(TITLES[experiment], fontsize=10)
            axes[i, 1].set_xlabel(f"mean {'reliability' if experiment == 'a' else 'confidence'}")
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4)
    return figure


def _curves(ax: Axes, rows: pl.DataFrame) -> None:
    for method, (colour, sign) in DRAWN.items():
        for kind, line in (("all", "-"), ("filtered", "--")):
            chosen = rows.filter(method=method, annotations=kind)
            over = {s: a / (a + b) for s, (a, b) in synthetic.RANGE.items()}
            x, mean, spread = _means(
                chosen.with_columns(x=pl.col("setting").replace_strict(over, return_dtype=float))
            )
            name = f"{method}, {kind}"
            ax.plot(x, mean, line, color=colour, marker=sign, label=name, markevery=(0, 2))
            ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.12, lw=0)


def operators_figure(rows: pl.DataFrame, quality: str) -> Figure:
    """What each operator costs in log-loss as one thing changes."""
    with plt.rc_context(STYLE):
        shape = (len(operators.KINDS), len(operators.SWEEPS))
        figure, axes = plt.subplots(*shape, figsize=(12, 7.5), sharey="row", layout="constrained")
        for i, kind in enumerate(operators.KINDS):
            for ax, (sweep, values) in zip(axes[i], operators.SWEEPS.items(), strict=True):
                part = rows.filter(experiment=f"{sweep}, {quality} crowd, {kind}", metric="loss")
                for method, (colour, sign) in COMPARED.items():
                    chosen = part.filter(method=method)
                    x, mean, spread = _means(
                        chosen.with_columns(x=pl.col("setting").cast(pl.Float64))
                    )
                    ax.plot(x, mean, color=colour, marker=sign, label=method)
                    # On a logarithmic axis a deviation below the mean may have no bottom.
                    ax.fill_between(
                        x, mean / (1 + spread / mean), mean + spread, color=colour, alpha=0.1, lw=0
                    )
                if sweep in ("annotators", "labels", "items"):
                    ax.set_xscale("log")
                    ax.set_xticks(values, [f"{value:,g}" for value in values])
                    ax.minorticks_off()
                ax.set(yscale="log", ylim=(_BOTTOM, None))
                if i == len(operators.KINDS) - 1:
                    ax.set_xlabel(CHANGED[sweep])
            axes[i, 0].set_ylabel(f"{kind}\nlog-loss above the best ↓")
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4)
        figure.suptitle(f"Which operator when: a {quality} crowd")
    return figure


def sources_figure(rows: pl.DataFrame) -> Figure:
    """What each source of uncertainty adds: to votes that were not shown, and to a network."""
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(11, 7.5), layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(5, 6))
        ax = top.subplots()
        _changes(ax, rows.filter(experiment="votes", setting="test"), sources.METHODS, "log-loss")
        ax.set_xlabel("log-loss ↓, less that of votes with a learned worth")
        ax.set_title("the other annotator's vote, from an annotator's", fontsize=10)
        axes = bottom.subplots(1, 3, sharey=True)
        for ax, (metric, arrow) in zip(axes, LEARNED.items(), strict=True):
            _changes(ax, rows.filter(experiment="network"), real.methods("uds"), metric)
            ax.set_xlabel(f"{metric} {arrow}, less that of CE")
        axes[1].set_title("a vote, from the sentence, by a network trained on", fontsize=10)
    return figure


def _changes(ax: Axes, rows: pl.DataFrame, methods: Sequence[str], metric: str) -> None:
    """Differences from the plain method with their intervals; those that exclude 0 are filled."""
    found = {row[:2]: row[2] for row in rows.select("method", "metric", "value").rows()}
    for y, method in enumerate(reversed(methods)):
        low, mid, high = (found[method, f"{metric}, {k}"] for k in ("low", "change", "high"))
        colour = BLUE if method.startswith(("+", "SLE")) else GREY
        clear = low > 0 or high < 0
        ax.plot([low, high], [y, y], color=colour, lw=2)
        ax.plot(mid, y, "o", color=colour, mfc=colour if clear else "white")
    ax.axvline(0, color=GREY, lw=1)
    ax.set_yticks(range(len(methods)), list(reversed(methods)))


def _means(rows: pl.DataFrame) -> tuple[pl.Series, pl.Series, pl.Series]:
    """x, and mean and standard deviation over seeds there."""
    found = (
        rows.group_by("x")
        .agg(mean=pl.col("value").mean(), spread=pl.col("value").std().fill_null(0))
        .sort("x")
    )
    return found["x"], found["mean"], found["spread"]


def save(figure: Figure, name: str) -> list[Path]:
    """As PNG and SVG under docs/figures."""
    FOLDER.mkdir(exist_ok=True)
    paths = [FOLDER / f"{name}.png", FOLDER / f"{name}.svg"]
    figure.savefig(paths[0], dpi=150, metadata={"Software": None})
    # matplotlib's default text elements need the reader's own font; outlines would be 10x larger.
    figure.savefig(paths[1], metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return paths
