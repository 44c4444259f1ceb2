"""What the sections of a report are put together from."""

from __future__ import annotations

from typing import Any

from slencodings.report.markup import Markup, tag


def figure(drawn: set[str], name: str, title: str, caption: str, numbers: Any = None) -> Any:
    """A chart, what it tells, and its numbers for those who do not see it."""
    if name not in drawn:
        return None
    below = (
        tag("details", tag("summary", "The numbers of this chart"), numbers) if numbers else None
    )
    return tag(
        "figure",
        tag("figcaption", tag("strong", title), caption),
        tag(
            "div",
            id=f"chart-{name}",
            class_="chart",
            role="img",
            aria_label=f"Chart. {title}. {caption}",
        ),
        below,
    )


def table(heads: list[str], rows: list[list[str]]) -> Markup:
    """A table; what looks like a number goes right, the first cell of a row is its head."""
    side = [
        "n" if c > 0 and all(not row[c] or row[c][0] in "-.0123456789" for row in rows) else None
        for c in range(len(heads))
    ]
    head = [tag("th", text, scope="col", class_=s) for text, s in zip(heads, side, strict=True)]
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", head)),
            tag("tbody", [tag("tr", _cells(row, side)) for row in rows]),
        ),
        class_="scroll" + " small" * (len(heads) <= 5),
        tabindex="0",
        role="region",
        aria_label=f"Table: {', '.join(heads)}"[:200],
    )


def _cells(row: list[str], side: list[str | None]) -> list[Markup]:
    first, *rest = (tag("bdi", cell, dir="auto") for cell in row)
    return [
        tag("th", first, scope="row", class_="name"),
        *(tag("td", cell, class_=s) for cell, s in zip(rest, side[1:], strict=True)),
    ]


def square(names: list[str], shares: list[list[float | None]], corner: str) -> Markup:
    """A table of shares of everything with everything."""
    rows = [
        [name, *("–" if x is None else f"{x:.0%}" for x in row)]
        for name, row in zip(names, shares, strict=True)
    ]
    return table([corner, *names], rows)


def notes(lines: list[str]) -> Any:
    """A list of notes, if there are any."""
    listed = [tag("li", line, dir="auto") for line in lines]
    return tag("ul", listed, class_="plain note") if listed else None


def number(x: float | None) -> str:
    """A number that is infinite where JSON has none."""
    return "infinite" if x is None else f"{x:.3f}"
