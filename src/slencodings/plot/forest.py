"""Estimates with their intervals, one below the other: of annotators, and of methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slencodings.plot.canvas import BLUE, GREY, INK, PALE, axes, name_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]

_BEHIND = "#a6a6a6"
_HEADS = {
    "learned": "reliability, learned",
    "agreement": "agreement with peers",
    "kappa": "kappa with peers",
    "dawid_skene": "expected accuracy (Dawid-Skene)",
    "mace": "how often they know the answer (MACE)",
    "votes": "log-loss of held-out votes",
    "direct": "log-loss of held-out votes, direct",
    "own": "log-loss of the annotator's own votes",
    "accuracy": "accuracy on known items",
}


def reliability(
    roster: Any, *, ax: Any = None, estimate: str | None = None, most: int = 40
) -> Axes:
    """Draw how reliable each annotator is, with the 95 % interval, in the order of the roster.

    At the right stands how many items they share with others. A ring has no interval, and who is
    unknown has no sign at all; the line is the median.

    Parameters
    ----------
    roster : what `describe_annotators` gave, or its rows
    estimate : which one; the first of the roster when absent
    most : of more annotators than these the first and the last are shown

    Examples
    --------
    >>> rows = [{"annotator": "ann", "shared_items": 9, "kappa": 0.6, "kappa_low": 0.3,
    ...          "kappa_high": 0.8}]
    >>> reliability(rows).get_xlabel()
    'kappa with peers'
    """
    rows = _rows(roster, "roster", "describe_annotators(annotations)")
    name = _estimate(rows, estimate, "annotator", "describe_annotators")
    if not most >= 2:
        raise ValueError(f"`most` must be at least 2; {most} came. 40 is usual.")
    known = [row[name] for row in rows if row[name] is not None]
    between = None
    if len(rows) > most:
        half = most // 2
        between = {"annotator": f"… {len(rows) - 2 * half:,} more …", name: None}
        rows = [*rows[:half], between, *rows[-half:]]
    ax = axes(ax, (6.0, 1.0 + 0.26 * len(rows)))
    if known:
        ax.axvline(float(np.median(known)), color=PALE, lw=1.5, zorder=0)
    _forest(ax, rows, name, [INK] * len(rows))
    name_rows(ax, [row["annotator"] for row in rows])
    ends = [0.0, 1.0, *(row[c] for row in rows for c in (name, f"{name}_low") if row.get(c))]
    ax.set_xlim(min(ends) - 0.02 * (min(ends) < 0), max(ends) + 0.01)
    ax.set_xlabel(_HEADS.get(name, name))
    beside = ax.get_yaxis_transform()
    for y, row in enumerate(rows):
        if row is not between and row[name] is None:
            ax.text(0.5, y, "unknown", transform=beside, ha="center", va="center", color=GREY)
        if row.get("shared_items") is not None:
            at = {"transform": beside, "ha": "right", "va": "center", "fontsize": "small"}
            ax.text(1.1, y, f"{row['shared_items']:,}", color=GREY, **at)
    if any(row.get("shared_items") is not None for row in rows):
        at = {"transform": ax.transAxes, "ha": "right", "va": "bottom", "fontsize": "small"}
        ax.text(1.1, 1.0, "shared items", color=GREY, **at)
    return ax


def comparison(found: Any, *, ax: Any = None, score: str = "votes") -> Axes:
    """Draw methods side by side with 95 % intervals, best first.

    Dark methods are not told apart from the first by the paired interval; grey ones are behind it.

    Parameters
    ----------
    found : what `compare` gave, or its rows
    score : votes, direct or own (log-losses, lower is better), or accuracy where gold was given

    Examples
    --------
    >>> row = {"method": "soft votes", "votes": 1.7, "votes_low": 1.6, "votes_high": 1.8}
    >>> comparison([row]).get_xlabel()
    'log-loss of held-out votes (lower is better)'
    """
    rows = _rows(found, "found", "compare(annotations)")
    name = _estimate(rows, score, "method", "compare")
    sign = -1 if name == "accuracy" else 1
    rows = sorted(rows, key=lambda row: math.inf if row[name] is None else sign * row[name])
    ax = axes(ax, (6.4, 1.0 + 0.28 * len(rows)))
    # The paired interval is about votes; other scores have no such test.
    behind = [name == "votes" and (row.get("behind_low") or 0) > 0 for row in rows]
    _forest(ax, rows, name, [_BEHIND if b else BLUE for b in behind])
    name_rows(ax, [row["method"] for row in rows])
    for y, row in enumerate(rows):
        if row[name] is None or math.isinf(row[name]):
            at = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
            ax.text(1.0, y, "unknown" if row[name] is None else "infinite →", color=GREY, **at)
    better = "higher" if name == "accuracy" else "lower"
    ax.set_xlabel(f"{_HEADS.get(name, name)} ({better} is better)")
    return ax


def _rows(found: Any, what: str, how: str) -> list[Row]:
    rows = found.to_rows() if hasattr(found, "to_rows") else getattr(found, "rows", found)
    if not isinstance(rows, Sequence) or not all(isinstance(row, dict) for row in rows) or not rows:
        raise TypeError(
            f"`{what}` must be what {how} gave, or its rows as a list of dicts; "
            f"{type(found).__name__} came{'' if rows else ', and it is empty'}."
        )
    return list(rows)


def _estimate(rows: list[Row], estimate: str | None, name: str, verb: str) -> str:
    """The column to draw, which all rows have."""
    there = [c.removesuffix("_low") for c in rows[0] if c.endswith("_low")]
    there = [c for c in there if c in rows[0] and c != "behind"]
    chosen = estimate if estimate is not None else next(iter(there), "")
    lacking = sum(not {name, chosen} <= set(row) for row in rows)
    if lacking or chosen not in there:
        raise ValueError(
            f"rows of {verb} have {name!r} and estimates with intervals, here "
            f"{', '.join(there) or 'none'}; {chosen!r} was wanted, and {lacking} of {len(rows)} "
            "rows lack something. Name one that is there."
        )
    return chosen


def _forest(ax: Axes, rows: list[Row], name: str, colours: list[str]) -> None:
    for y, (row, colour) in enumerate(zip(rows, colours, strict=True)):
        value, low, high = (row.get(c) for c in (name, f"{name}_low", f"{name}_high"))
        if value is None or math.isinf(value):
            continue
        if low is not None and high is not None:
            ax.plot([low, high], [y, y], "-", color=colour, lw=1.6, solid_capstyle="butt")
        face = "white" if low is None else colour
        ax.plot([value], [y], "o", mfc=face, mec=colour, ms=5.5)
    ax.grid(axis="x", color=PALE, lw=0.5)
    ax.set_axisbelow(True)
