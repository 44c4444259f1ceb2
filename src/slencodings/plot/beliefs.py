"""Opinions as bars: what is believed of each label, and the gap that is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slencodings.opinion import Floats, Opinion
from slencodings.plot.canvas import (
    COLOURS,
    GREY,
    INK,
    Canvas,
    axes,
    legend,
    name_rows,
    named,
    opinions,
    plain,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More colours nobody tells apart; the labels that are believed least share one grey.
_MOST = len(COLOURS)
_GAP = "#b8b8b8"


def bars(
    opinion: Opinion,
    *,
    ax: Any = None,
    labels: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
) -> Axes:
    """Draw what each opinion believes as a bar of length one, with its uncertainty as the gap.

    Parameters
    ----------
    opinion : one or N; the first is on top
    labels, names : of the K labels and N opinions. Of more than seven labels the six believed
        most have a colour, the others are one part together

    Examples
    --------
    >>> from slencodings import encode
    >>> ax = bars(encode(np.eye(2), [0.1, 0.4]), labels=["yes", "no"], names=["a", "b"])
    >>> [round(float(patch.get_width()), 1) for patch in ax.patches]
    [0.9, 0.0, 0.0, 0.6, 0.1, 0.4]
    """
    return _draw(ax, 0.32, {0.0: opinions(opinion)}, [0.72], labels, names)


def change(
    before: Opinion,
    after: Opinion,
    *,
    ax: Any = None,
    labels: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    moments: tuple[str, str] = ("before", "after"),
) -> Axes:
    """Draw opinions before and after something was done: two bars each, the later one thick.

    Parameters
    ----------
    before, after : Opinions of the same shape
    labels, names : as in `bars`
    moments : what the two bars are called

    Examples
    --------
    >>> from slencodings import discount, encode
    >>> before = encode(np.eye(2), [0.1, 0.4])
    >>> ax = change(before, discount(before, [0.5, 1.0]), labels=["yes", "no"], names=["a", "b"])
    >>> len(ax.patches)
    12
    """
    first, second = opinions(before, "before"), opinions(after, "after")
    if first.belief.shape != second.belief.shape:
        raise ValueError(
            "`before` and `after` must be about the same items and labels; beliefs of shapes "
            f"{first.belief.shape} and {second.belief.shape} came."
        )
    if isinstance(moments, str) or len(moments) != 2:
        raise ValueError(
            f"`moments` must be two words such as ('before', 'after'); {moments!r} came."
        )
    both = {-0.27: first, 0.13: second}
    ax = _draw(ax, 0.55, both, [0.22, 0.46], labels, names)
    for word, place in zip(moments, both, strict=True):
        text = ax.text(1.015, place, written(word), va="center", fontsize="small", color=GREY)
        plain(text)
    return ax


def _draw(
    ax: Any,
    room: float,
    places: dict[float, Opinion],
    heights: list[float],
    labels: Any,
    names: Any,
) -> Canvas:
    """Opinions as bars at places around their row, which has so much room, and the legend."""
    b: Floats = np.concatenate([opinion.belief for opinion in places.values()])
    u: Floats = np.concatenate([opinion.uncertainty for opinion in places.values()])
    N, K = len(u) // len(places), len(b.T)
    names = named(names, N, "names", range(N) if N > 1 else [""])
    ax = axes(ax, (6.0, 1.1 + room * N), None)
    labels = named(labels, K, "labels", range(K))
    at, height = np.add.outer([*places], np.arange(N)).ravel(), np.repeat(heights, N)
    most = np.argsort(-b.sum(axis=0), kind="stable")[: K if K <= _MOST else _MOST - 1]
    rest = np.setdiff1d(np.arange(K), most)
    own = zip(np.sort(most).tolist(), COLOURS, strict=False)
    parts = [(labels[k], b[:, k], colour) for k, colour in own]
    if len(rest):
        parts.append((f"{len(rest)} other labels", b[:, rest].sum(axis=1), GREY))
    left = np.zeros(len(u))
    handles: list[Any] = []
    for _, width, colour in parts:
        handles.append(ax.barh(at, width, height, left, color=colour, ec="white", lw=0.8))
        left = left + width
    handles.append(ax.barh(at, u, height, left, color="white", ec=_GAP, lw=0.8, hatch="/////"))
    name_rows(ax, names)
    ax.set_xlim(-0.003, 1.003)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "½", "", "1"])
    ax.set_xlabel("belief")
    ax.spines["bottom"].set_color(INK)
    # About so many letters go into a line of the usual figure.
    line = 70 - max(len(written(name)) for name in names)
    shown = [*(name for name, *_ in parts), "uncertainty"]
    letters = [len(written(part)) + 5 for part in shown]
    columns = len(shown) if sum(letters) <= line else max(1, line // max(letters))
    legend(
        ax, handles, shown, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2,
        ncols=columns, fontsize="small", handlelength=1.2, columnspacing=1.4,
    )  # fmt: skip
    return ax
