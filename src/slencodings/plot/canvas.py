"""What all pictures share: where they are drawn, in which colours, and how data is made text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias, cast

from slencodings.opinion import Opinion, as_floats, check

# An `Axes`, inside: matplotlib and mpltern do not say what keyword arguments their methods take.
Canvas: TypeAlias = Any
# What is known of an annotator, a method or a level of confidence, by name.
PlotRow: TypeAlias = Mapping[str, Any]

# Okabe & Ito's colours, which people of every colour vision tell apart, from dark to light and
# back, so that neighbours differ in print too.
BLUE, ORANGE, GREEN, SKY, RED, YELLOW, PINK = COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#F0E442", "#CC79A7"),
)
INK, GREY, PALE = "#222222", "#767676", "#d9d9d9"
SIGNS = "os^Dv"


def axes(ax: Any, size: tuple[float, float], projection: str | None = None) -> Canvas:
    """The axes that came if it will do, or that of a new figure that pyplot knows nothing of."""
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure

        if projection == "ternary":
            import_module("mpltern")  # matplotlib then knows the projection
    except ImportError as error:
        raise ImportError(
            f"plots need matplotlib and mpltern; {error.name} is missing. "
            "Type: pip install 'slencodings[plot]'."
        ) from None
    if ax is None and projection == "ternary":
        # The layout engine leaves no room for text around a triangle.
        figure: Any = Figure(figsize=size)
        return figure.add_axes((0.08, 0.235, 0.84, 0.685), projection=projection)
    if ax is None:
        return Figure(figsize=size, layout="constrained").add_subplot()
    if not isinstance(ax, Axes):
        raise TypeError(
            f"`ax` must be one axes of matplotlib; {type(ax).__name__} came. "
            "Take one of them, or leave it out for a new figure."
        )
    if (projection or "rectilinear") != ax.name:
        how = "" if projection is None else f"projection={projection!r}"
        raise ValueError(
            f"`ax` must be a {projection or 'rectilinear'} one here; a {ax.name} one came. "
            f"Make it with figure.add_subplot({how}), or leave it out for a new figure."
        )
    return ax


def plain(*texts: Any) -> None:
    """Text that came from data is shown as it is: no formulas, no LaTeX."""
    for text in texts:
        text.set_parse_math(False)
        text.set_usetex(False)


def written(value: Any, letters: int = 28) -> str:
    """A name on one line, a long one without its middle, as ids tend to differ at their ends."""
    text = " ".join(str(value).split())
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    half = letters // 2
    return text if len(text) <= letters else f"{text[: half - 1]}…{text[-half:]}"


def legend(ax: Canvas, handles: Sequence[Any], names: Iterable[Any], **where: Any) -> None:
    """A legend of names from data, which may begin with the underscore that would hide them."""
    shown = ax.legend(handles, ["?"] * len(handles), frameon=False, **where)
    for text, name in zip(shown.get_texts(), names, strict=True):
        plain(text)
        text.set_text(written(name))


def name_rows(ax: Canvas, names: Sequence[Any]) -> None:
    """A row for each name from the top down, without lines that say nothing."""
    ax.set_yticks(range(len(names)), [written(name) for name in names])
    plain(*ax.get_yticklabels())
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def opinions(opinion: Any, what: str = "opinion") -> Opinion:
    """Opinions (N,) in NumPy, checked; one alone is a row."""
    if not isinstance(opinion, Opinion):
        raise TypeError(
            f"`{what}` must be an Opinion; {type(opinion).__name__} came. Make it with "
            "encode(y, uncertainty), fuse(...) or Opinion(belief, uncertainty, base_rate)."
        )
    opinion = check(Opinion(*map(as_floats, opinion)))
    if opinion.uncertainty.ndim > 1 or opinion.uncertainty.size == 0:
        raise ValueError(
            f"`{what}` must be one opinion or a row of them, (N,); shape "
            f"{opinion.uncertainty.shape} came. Take some: opinion.rows(0)."
        )
    return opinion if opinion.uncertainty.ndim else opinion.rows(None)


def rows_in(found: Any) -> Sequence[PlotRow]:
    """The rows of a roster, a comparison or a calibration, or those that came; else none."""
    rows = found.to_rows() if hasattr(found, "to_rows") else getattr(found, "rows", found)
    if not isinstance(rows, Sequence):
        return []
    fine = all(isinstance(row, Mapping) for row in cast("Sequence[object]", rows))
    return cast("Sequence[PlotRow]", rows) if fine else []


def named(names: Any, count: int, what: str, ours: Iterable[Any]) -> list[Any]:
    """The names that came, one for each, or ours."""
    if names is None:
        return list(ours)
    names = [names] if isinstance(names, str) else list(names)
    if len(names) != count:
        raise ValueError(
            f"`{what}` must name each of the {count}; {len(names)} came. Leave it out for numbers."
        )
    return names
