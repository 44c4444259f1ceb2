"""An opinion as a place: among three labels, or between two and doubt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slencodings.fusion import fuse
from slencodings.opinion import Floats, Opinion, alpha
from slencodings.plot.canvas import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Canvas,
    axes,
    legend,
    named,
    opinions,
    plain,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (4.2, 4.45)
# What the regions hold, and their tones.
_MASSES = {0.95: "#deebf7", 0.8: "#9ecae1", 0.5: "#4292c6"}
# A side of the triangle in steps; a distribution narrower than one is drawn as a point.
_STEPS = 160


def simplex(
    opinion: Opinion,
    *,
    ax: Any = None,
    labels: Sequence[Any] | None = None,
    prior_weight: float = 3.0,
) -> Axes:
    """Draw the Dirichlet of an opinion on three labels: where the label shares probably are.

    alpha = W b / u + W a;   the regions of highest density that hold 50, 80 and 95 %

    The dot is the projected probability, the ring the base rate. A dogmatic opinion is its dot.

    Parameters
    ----------
    opinion : one over K = 3 labels, the first on top, the second left, the third right
    ax : of projection "ternary" (mpltern)
    prior_weight : W; with 3 the vacuous opinion of an even base rate is flat, with 2, as `alpha`
        takes it, denser towards the edges

    Examples
    --------
    >>> from slencodings import encode
    >>> ax = simplex(encode(np.asarray([0.7, 0.2, 0.1]), 0.2), labels=["cat", "dog", "eel"])
    >>> [text.get_text() for text in ax.texts]
    ['cat', 'dog', 'eel']
    """
    if not (np.ndim(prior_weight) == 0 and 0 < prior_weight < np.inf):
        raise ValueError(
            f"`prior_weight` must be a positive number; {prior_weight!r} came. 3 is flat."
        )
    each = _over(opinion, 3, "bars(opinion)")
    if len(each.uncertainty) > 1:
        raise ValueError(
            f"a simplex shows one opinion; {len(each.uncertainty)} came. Take one: opinion.rows(0)."
        )
    a, P = each.base_rate[0], each.probability[0]
    concentration = alpha(each, prior_weight=prior_weight)[0]
    if np.any(concentration == 0):
        raise ValueError(
            "a density over three labels needs a base rate or belief above 0 for each; label "
            f"{int(np.argmin(concentration))} (from 0) has neither. Draw bars(opinion) instead."
        )
    ax = _ternary(axes(ax, _SIZE, "ternary"), named(labels, 3, "labels", range(3)))
    regions = _regions(ax, concentration) if np.all(np.isfinite(concentration)) else []
    ring = ax.plot(*a[:, None], "o", mfc="white", mec=GREY, ms=6, mew=1.3, zorder=5, **_UNCUT)
    dot = ax.plot(*P[:, None], "o", mfc=INK, mec="white", ms=9, mew=1.2, zorder=6, **_UNCUT)
    from matplotlib.patches import Patch

    shown = {f"{mass:.0%}": Patch(fc=tone, ec=GREY, lw=0.5) for mass, tone in regions}
    shown |= {"probability": dot[0], "base rate": ring[0]}
    legend(ax, list(shown.values()), shown, **_BELOW, ncols=len(shown))
    return ax


_BELOW = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.15),
    "fontsize": "small",
    "handlelength": 1.0,
    "columnspacing": 1.2,
    "handletextpad": 0.5,
}


_SIGNS = ("projected probability", "base rate")
# A sign on an edge of the triangle is not to be cut in half.
_UNCUT = {"clip_on": False}


def _regions(ax: Canvas, alpha: Floats) -> list[tuple[float, str]]:
    """Fill the regions of highest density; what was drawn, mass and tone each."""
    if np.all(alpha == 1):  # flat: any region of this size holds as much
        tone = _MASSES[0.8]
        ax.fill([1, 0, 0], [0, 1, 0], [0, 0, 1], color=tone, lw=0, zorder=1)
        return []
    x, z, area = _density(alpha)
    if len(x) == 0:
        return []
    order = np.argsort(-z, kind="stable")
    held = np.cumsum((z * area)[order]) / (z @ area)
    levels = [z[order][np.searchsorted(held, mass)] for mass in _MASSES]
    tones = list(_MASSES.values())
    if not np.all(np.diff([*levels, z.max()]) > 0):
        return []
    ax.tricontourf(*x.T, z, levels=levels, colors=tones, extend="max", zorder=1)
    lines = [tones[1], "white", "white"]
    ax.tricontour(*x.T, z, levels=levels, colors=lines, linewidths=0.7, zorder=2)
    return list(_MASSES.items())[::-1]


def _density(alpha: Floats) -> tuple[Floats, Floats, Floats]:
    """Places (n, 3) where the Dirichlet is, its density there up to a factor, and their area."""
    S = alpha.sum()
    m = alpha / S
    spread = np.sqrt(m * (1 - m) / (S + 1))
    if spread.max() * _STEPS < 1:
        return np.empty((0, 3)), np.empty(0), np.empty(0)
    # The triangle around the mean that holds eight deviations, if that is smaller than all of it.
    size = min(1.0, float(np.max(8 * spread / m)))
    i, j = np.mgrid[: _STEPS + 1, : _STEPS + 1]
    inside = i + j <= _STEPS
    x = np.stack([i[inside], j[inside], _STEPS - i[inside] - j[inside]], axis=-1) / _STEPS
    # At the very edge a density may be infinite, so an edge is taken for a place just inside.
    near = np.maximum(x, 1 / (3 * _STEPS))
    near = m + size * (near / near.sum(axis=-1, keepdims=True) - m)
    log = np.log(near) @ (alpha - 1)
    # A place on an edge has half a hexagon around it, one in a corner a sixth.
    area = np.asarray([1.0, 1 / 2, 1 / 6])[np.sum(x == 0, axis=-1)]
    return m + size * (x - m), np.exp(log - log.max()), area


def triangle(
    opinion: Opinion,
    *,
    ax: Any = None,
    labels: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    path: bool = False,
) -> Axes:
    """Draw opinions on two labels in Josang's triangle of belief, disbelief and uncertainty.

    A line leads from each opinion to its projected probability P = b + u a on the base, parallel
    to the one from full uncertainty to the base rate.

    Parameters
    ----------
    opinion : one or N, over K = 2 labels; belief in the first is right, in the second left
    ax : of projection "ternary" (mpltern)
    names : one for each opinion
    path : draw what becomes of them as they are fused one after another (`fuse`), from knowing
        nothing to all of them; each alone is a small ring then

    Examples
    --------
    >>> from slencodings import encode
    >>> opinions = encode(np.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [0.4, 0.6, 0.5])
    >>> ax = triangle(opinions, labels=["yes", "no"], path=True)
    >>> len(ax.get_lines()[0].get_xdata())  # the path
    4
    """
    each = _over(opinion, 2, "simplex(opinion) or bars(opinion)")
    N = len(each.uncertainty)
    if path and len(np.unique(each.base_rate, axis=0)) > 1:
        raise ValueError(
            f"a path needs one base rate; {len(np.unique(each.base_rate, axis=0))} came. "
            "Encode the opinions with the same one, or draw them without path."
        )
    shown = named(names, N, "names", [] if N == 1 else range(N))
    first, second = named(labels, 2, "labels", range(2))
    ax = _ternary(axes(ax, _SIZE, "ternary"), ["uncertainty", second, first])
    if not path:
        signs = dict(zip(("opinion", *_SIGNS), _project(ax, each, shown), strict=True))
    else:
        start = Opinion(np.zeros((1, 2)), np.ones(1), each.base_rate[:1])
        steps = [start, *(fuse(each.rows(slice(n + 1))).rows(None) for n in range(N))]
        fused = Opinion(*map(np.concatenate, zip(*steps, strict=True)))
        lines = ax.plot(*_corners(fused), "-o", color=BLUE, lw=1.8, ms=4, zorder=4, **_UNCUT)
        rings = {"mfc": "white", "mec": ORANGE, "ms": 7, "mew": 1.6}
        lines += ax.plot(*_corners(each), "o", zorder=3, **rings, **_UNCUT)
        signs = dict(zip(("on the way", "said"), lines, strict=True))
        signs |= dict(zip(("fused", *_SIGNS), _project(ax, fused.rows([-1]), []), strict=True))
        _name_opinions(ax, each, shown, INK)
    legend(ax, list(signs.values()), signs, **_BELOW, ncols=3)
    return ax


def _corners(opinion: Opinion) -> tuple[Floats, Floats, Floats]:
    """Top, left and right of each opinion: uncertainty, disbelief, belief."""
    return opinion.uncertainty, opinion.belief[:, 1], opinion.belief[:, 0]


def _project(ax: Canvas, opinion: Opinion, names: Sequence[Any]) -> list[Any]:
    """Opinions, their projectors and base rates; a handle for each of these."""
    P, a = opinion.probability, opinion.base_rate
    handles: list[Any] = []
    for u, left, right, p, prior in zip(*_corners(opinion), P, a, strict=True):
        ax.plot([1, 0], [0, prior[1]], [0, prior[0]], ":", color=GREY, lw=1, zorder=2)
        ax.plot([u, 0], [left, p[1]], [right, p[0]], "--", color=INK, lw=1, zorder=3)
        handles = [
            *ax.plot([u], [left], [right], "o", mfc=INK, mec="white", ms=9, zorder=6, **_UNCUT),
            *ax.plot([0], [p[1]], [p[0]], "|", color=INK, ms=11, mew=2, zorder=5, **_UNCUT),
            *ax.plot([0], [prior[1]], [prior[0]], "o", mfc="white", mec=GREY, ms=6, **_UNCUT),
        ]
    if len(P) == 1:
        _write(ax, (0, P[0, 1], P[0, 0]), f"{P[0, 0]:.2f}", (0, -7), ha="center", va="top")
    _name_opinions(ax, opinion, names, INK)
    return handles


def _name_opinions(ax: Canvas, opinion: Opinion, names: Sequence[Any], colour: str) -> None:
    """Names beside opinions, outwards; above those at the base, where others have their place."""
    for (u, left, right), name in zip(zip(*_corners(opinion), strict=True), names, strict=False):
        side = 1 if right >= left else -1
        side, up = (-side, 9) if u < 0.1 else (side, 3 - 8 * (u > 0.9))
        how = {"ha": "left" if side > 0 else "right", "va": "center", "fontsize": "small"}
        _write(ax, (u, left, right), written(name), (8 * side, up), color=colour, **how)


def _write(ax: Canvas, at: Any, text: str, offset: tuple[float, float], **how: Any) -> None:
    """Text so many points away from a place in the triangle."""
    (xy,) = ax.transProjection.transform([at])
    plain(ax.annotate(text, xy, offset, textcoords="offset points", zorder=7, **how))


def _over(opinion: Any, K: int, else_: str) -> Opinion:
    each = opinions(opinion)
    if each.belief.shape[-1] != K:
        raise ValueError(
            f"this triangle is for opinions over {K} labels; {each.belief.shape[-1]} came. "
            f"Draw {else_} instead."
        )
    return each


def _ternary(ax: Canvas, corners: Sequence[Any]) -> Canvas:
    """A triangle with its corners named, and nothing else on it."""
    for axis in (ax.taxis, ax.laxis, ax.raxis):
        axis.set_ticks([])
    for spine in ax.spines.values():
        spine.set_color(GREY)
        spine.set_linewidth(0.8)
    for at, label in zip(np.eye(3), corners, strict=True):
        # Long names go inwards, where there is room for them.
        ha = "center" if at[0] else "left" if at[1] else "right"
        offset = (0, 9) if at[0] else (-6 if at[1] else 6, -20)
        va = "bottom" if at[0] else "top"
        _write(ax, at, written(label, 18), offset, ha=ha, va=va, size="large")
    return ax
