"""Estimates with their intervals, one below the other: of annotators, and of methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from slencodings.plot.canvas import BLUE, GREY, INK, PALE, Canvas, PlotRow, axes, name_rows, rows_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BEHIND = "#a6a6a6"
_HEADS = {
    "above_chance": "right above chance",
    "agreement": "agreement with peers",
    "kappa": "kappa with peers",
    "dawid_skene": "expected accuracy (Dawid-Skene)",
    "mace": "how often they know the answer (MACE)",
    "votes": "log-loss of held-out votes",
    "direct": "log-loss of held-out votes, direct",
    "own": "log-loss of the annotator's own votes",
    "accuracy": "accuracy on known items",
}


class _Estimate(NamedTuple):
    """Of whom, how much and from where to where; None for what is unknown."""

    name: Any
    value: float | None
    low: float | None = None
    high: float | None = None
    shared: int | None = None  # items with others
    behind: bool = False  # the first, by the paired interval


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
    rows = _rows_to_draw(roster, "roster", "describe_annotators(annotations)")
    column = _column(rows, estimate, "annotator", "describe_annotators")
    if not most >= 2:
        raise ValueError(f"`most` must be at least 2; {most} came. 40 is usual.")
    people = _estimates(rows, "annotator", column)
    known = [person.value for person in people if person.value is not None]
    between = None
    if len(people) > most:
        half = most // 2
        between = _Estimate(f"… {len(people) - 2 * half:,} more …", None)
        people = [*people[:half], between, *people[-half:]]
    ax = axes(ax, (6.0, 1.0 + 0.26 * len(people)))
    if known:
        ax.axvline(float(np.median(known)), color=PALE, lw=1.5, zorder=0)
    _forest(ax, people, [INK] * len(people))
    name_rows(ax, [person.name for person in people])
    ends = [0.0, 1.0, *(x for person in people for x in (person.value, person.low) if x)]
    ax.set_xlim(min(ends) - 0.02 * (min(ends) < 0), max(ends) + 0.01)
    ax.set_xlabel(_HEADS.get(column, column))
    beside = ax.get_yaxis_transform()
    for y, person in enumerate(people):
        if person is not between and person.value is None:
            ax.text(0.5, y, "unknown", transform=beside, ha="center", va="center", color=GREY)
        if person.shared is not None:
            at = {"transform": beside, "ha": "right", "va": "center", "fontsize": "small"}
            ax.text(1.1, y, f"{person.shared:,}", color=GREY, **at)
    if any(person.shared is not None for person in people):
        at = {"transform": ax.transAxes, "ha": "right", "va": "bottom", "fontsize": "small"}
        ax.text(1.1, 1.0, "shared items", color=GREY, **at)
    return ax


def comparison(found: Any, *, ax: Any = None, score: str = "votes") -> Axes:
    """Draw methods side by side with 95 % intervals, best first.

    Dark methods are not told apart from the first by the paired interval; grey ones are behind it.

    Parameters
    ----------
    found : what `compare` gave, or its rows
    score : votes, direct, own or joint (log-losses, lower is better), or with gold accuracy

    Examples
    --------
    >>> row = {"method": "soft votes", "votes": 1.7, "votes_low": 1.6, "votes_high": 1.8}
    >>> comparison([row]).get_xlabel()
    'log-loss of held-out votes (lower is better)'
    """
    rows = _rows_to_draw(found, "found", "compare(annotations)")
    column = _column(rows, score, "method", "compare")
    sign = -1 if column == "accuracy" else 1
    methods = _estimates(rows, "method", column)
    methods.sort(key=lambda method: math.inf if method.value is None else sign * method.value)
    ax = axes(ax, (6.4, 1.0 + 0.28 * len(methods)))
    # The paired interval is about votes; other scores have no such test.
    behind = [column == "votes" and method.behind for method in methods]
    _forest(ax, methods, [_BEHIND if b else BLUE for b in behind])
    name_rows(ax, [method.name for method in methods])
    for y, method in enumerate(methods):
        if method.value is None or math.isinf(method.value):
            at = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
            what = "unknown" if method.value is None else "infinite →"
            ax.text(1.0, y, what, color=GREY, **at)
    better = "higher" if column == "accuracy" else "lower"
    ax.set_xlabel(f"{_HEADS.get(column, column)} ({better} is better)")
    return ax


def _rows_to_draw(found: Any, what: str, how: str) -> Sequence[PlotRow]:
    if rows := rows_in(found):
        return rows
    kind, empty = type(found).__name__, isinstance(found, Sequence) and not found
    raise TypeError(
        f"`{what}` must be what {how} gave, or its rows as a list of dicts; "
        f"{kind} came{', and it is empty' if empty else ''}."
    )


def _column(rows: Sequence[PlotRow], estimate: str | None, name: str, verb: str) -> str:
    """The estimate to draw, which all rows have."""
    there = [c.removesuffix("_low") for c in rows[0] if c.endswith("_low")]
    there = [c for c in there if c in rows[0] and "behind" not in c]
    chosen = estimate if estimate is not None else next(iter(there), "")
    lacking = sum(not {name, chosen} <= row.keys() for row in rows)
    if lacking or chosen not in there:
        raise ValueError(
            f"rows of {verb} have {name!r} and estimates with intervals, here "
            f"{', '.join(there) or 'none'}; {chosen!r} was wanted, and {lacking} of {len(rows)} "
            "rows lack something. Name one that is there."
        )
    return chosen


def _estimates(rows: Sequence[PlotRow], name: str, column: str) -> list[_Estimate]:
    return [
        _Estimate(
            row[name],
            row[column],
            row.get(f"{column}_low"),
            row.get(f"{column}_high"),
            row.get("shared_items"),
            (row.get("behind_low") or 0) > 0,
        )
        for row in rows
    ]


def _forest(ax: Canvas, estimates: Sequence[_Estimate], colours: Sequence[str]) -> None:
    for y, (found, colour) in enumerate(zip(estimates, colours, strict=True)):
        if found.value is None or math.isinf(found.value):
            continue
        if found.low is not None and found.high is not None:
            between = [found.low, found.high]
            ax.plot(between, [y, y], "-", color=colour, lw=1.6, solid_capstyle="butt")
        face = "white" if found.low is None else colour
        ax.plot([found.value], [y], "o", mfc=face, mec=colour, ms=5.5)
    ax.grid(axis="x", color=PALE, lw=0.5)
    ax.set_axisbelow(True)
