"""Is something as likely as it is said to be: by a model, and by annotators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slencodings import metrics
from slencodings.opinion import Z_95, Floats, Opinion, as_floats
from slencodings.plot.canvas import (
    COLOURS,
    GREY,
    INK,
    PALE,
    SIGNS,
    Canvas,
    PlotRow,
    axes,
    legend,
    plain,
    rows_in,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVE = "slencodings curve"
# Where a name may stand beside its dot.
_SIDES = (
    ((6, 0), "left", "center"),
    ((-6, 0), "right", "center"),
    ((0, 6), "center", "bottom"),
    ((0, -6), "center", "top"),
)


def calibration(
    truth: Any, prediction: Any, *, ax: Any = None, bins: int = 10, name: str | None = None
) -> Axes:
    """Draw how often the likeliest label was right against how likely it was said to be.

    Bins and the error in the legend are those of `metrics.calibration_error`; bars are 95 %
    intervals (Wilson) of the share that was right. Above the diagonal a model is too careful.

    Parameters
    ----------
    truth : array (N, K), one-hot or shares
    prediction : array (N, K), probabilities, or Opinions (N,)
    name : of the curve; several may be drawn on one `ax`

    Examples
    --------
    >>> truth = np.eye(2)[[0, 0, 1, 1]]
    >>> ax = calibration(truth, np.asarray([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]))
    >>> ax.get_xlabel()
    'said: probability of the likeliest label'
    """
    q = as_floats(prediction.probability if isinstance(prediction, Opinion) else prediction)
    p = as_floats(truth)
    error = metrics.calibration_error(p, q, bins=bins)
    if p.size == 0:
        raise ValueError("a curve needs items; none came.")
    stated, right, n = _binned(p.reshape(-1, p.shape[-1]), q.reshape(-1, q.shape[-1]), bins)
    ax = axes(ax, (4.2, 4.2))
    _square(ax)
    drawn = sum(line.get_gid() == _CURVE for line in ax.get_lines())
    colour, sign = COLOURS[drawn % len(COLOURS)], SIGNS[drawn % len(SIGNS)]
    low, high = _wilson(right, n)
    ax.vlines(stated, low, high, color=colour, lw=1.2, alpha=0.6)
    (line,) = ax.plot(stated, right, "-", marker=sign, color=colour, ms=5.5, lw=1.4, gid=_CURVE)
    line.set_label(f"{name or 'prediction'}, error {error:.3f}")
    curves = [line for line in ax.get_lines() if line.get_gid() == _CURVE]
    legend(ax, curves, [line.get_label() for line in curves], loc="upper left", fontsize="small")
    ax.set_xlabel("said: probability of the likeliest label")
    ax.set_ylabel("found: share that was right")
    return ax


def _binned(p: Floats, q: Floats, bins: int) -> tuple[Floats, Floats, Floats]:
    """Mean of what was said and of what was right, and the number of items, where there are any."""
    top = q.max(axis=-1)
    right = np.sum(p * metrics.top_shares(q), axis=-1)
    place = np.ceil(np.minimum(top, 1) * bins).astype(np.intp)
    n = np.bincount(place)
    some = n > 0
    stated, found = (np.bincount(place, x)[some] / n[some] for x in (top, right))
    return stated, found, n[some].astype(float)


def _wilson(share: Floats, n: Floats) -> tuple[Floats, Floats]:
    middle = (share + Z_95**2 / (2 * n)) / (1 + Z_95**2 / n)
    half = Z_95 * np.sqrt(share * (1 - share) / n + Z_95**2 / (4 * n**2)) / (1 + Z_95**2 / n)
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)


def confidence(found: Any, *, ax: Any = None, most: int = 12) -> Axes:
    """Draw what stated confidence earned: agreement with peers beyond chance.

    Parameters
    ----------
    found : what `confidence.calibrate` gave, a dot per level, the larger the more often it was
        stated; or what `describe_annotators` gave, a dot per annotator
    most : how many annotators are named at most, those furthest from the diagonal first, where
        there is room

    Examples
    --------
    >>> rows = [{"annotator": "ann", "stated": 0.9, "earned": 0.5},
    ...         {"annotator": "bob", "stated": 0.6, "earned": 0.7}]
    >>> confidence(rows).get_ylabel()
    'earned: agreement beyond chance'
    """
    rows = rows_in(found)
    levels = _columns_of_rows(rows, ("level", "uncertainty", "count"))
    people = _columns_of_rows(rows, ("stated", "earned", "annotator"))
    if levels is None and people is None:
        raise TypeError(
            "`found` must be what confidence.calibrate(...) or describe_annotators(...) gave, or "
            f"its rows as a list of dicts; {type(found).__name__} came."
        )
    ax = axes(ax, (4.2, 4.2))
    ax.set_xlabel("stated: confidence")
    ax.set_ylabel("earned: agreement beyond chance")
    return _draw_people(ax, people, most) if people is not None else _draw_levels(ax, levels)


def _draw_levels(ax: Canvas, columns: Any) -> Axes:
    x, u, n = (np.asarray(column, dtype=float) for column in columns)
    _square(ax) if np.all((x >= 0) & (x <= 1)) else _frame(ax)
    ax.set_ylim(-0.02, 1.02)
    ax.plot(x, 1 - u, "-", color=GREY, lw=1)
    ax.scatter(
        x, 1 - u, 20 + 180 * n / n.max(), color=COLOURS[0], ec="white", zorder=3, clip_on=False
    )
    return ax


def _draw_people(ax: Canvas, columns: list[list[Any]], most: int) -> Axes:
    rows = [row for row in zip(*columns, strict=True) if None not in row[:2]]
    if not rows:
        raise ValueError(
            f"nobody of the {len(columns[0])} annotators stated confidence and shares items with "
            "others, so there is nothing to draw. Read it: from_table(..., confidence='sure')."
        )
    x, y = (np.asarray([row[i] for row in rows], dtype=float) for i in (0, 1))
    _square(ax) if np.all((x >= 0) & (x <= 1)) else _frame(ax)
    ax.set_ylim(min(0.0, y.min()) - 0.02, 1.02)
    ax.scatter(x, y, 34, color=COLOURS[0], ec="white", zorder=3, clip_on=False)
    worst = np.argsort(-np.abs(x - y), kind="stable").tolist()
    _name_dots(ax, np.stack([x, y], axis=-1), {i: rows[i][2] for i in worst}, most)
    return ax


def _name_dots(ax: Canvas, places: Floats, names: dict[int, Any], most: int) -> None:
    """Name dots in this order, where a name lies on nothing else."""
    figure = ax.figure.canvas.figure
    figure.draw_without_rendering()  # Only then is it known where things are.
    dots = ax.transData.transform(places)
    taken: list[Any] = []
    for i, name in names.items():
        for offset, ha, va in _SIDES if len(taken) < most else ():
            text = ax.annotate(
                *(written(name), places[i], offset),
                textcoords="offset points", ha=ha, va=va, fontsize="small", color=INK,
            )  # fmt: skip
            plain(text)
            box = text.get_window_extent().padded(figure.dpi / 36)
            if not box.count_contains(dots) and not box.count_overlaps(taken):
                taken.append(box)
                break
            text.remove()


def _columns_of_rows(rows: Sequence[PlotRow], names: Sequence[str]) -> list[list[Any]] | None:
    if not rows or any(not row.keys() >= set(names) for row in rows):
        return None
    return [[row[name] for row in rows] for name in names]


def _square(ax: Canvas) -> None:
    """From 0 to 1 both ways, with the diagonal where what is said is what is found."""
    if not any(line.get_gid() == "diagonal" for line in ax.get_lines()):
        ax.plot([0, 1], [0, 1], "-", color=PALE, lw=1.5, zorder=0, gid="diagonal")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    _frame(ax)


def _frame(ax: Canvas) -> None:
    ax.spines[["top", "right"]].set_visible(False)
