"""What the sections of a report are put together from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from slencodings.annotations import plainly
from slencodings.report.markup import Markup, join, tag
from slencodings.report.summary import Items, KindTable, Person

# A number, a share of 100, or an interval.
_NUMBER = re.compile(r"-?[\d.,]+%?( to -?[\d.,]+%?)?|–|infinite")


def page_header(title: str, lead: str, opening: Iterable[Any], names: Mapping[str, str]) -> Markup:
    """The title, what it is about, how it opens in sentences, and links to the sections."""
    links = [tag("li", tag("a", text, href=f"#{name}")) for name, text in names.items()]
    sentences = tag("ol", [tag("li", sentence) for sentence in opening], class_="opening")
    head = tag("h1", title, dir="auto"), tag("p", lead, class_="lead"), sentences
    return join([tag("header", *head), tag("nav", tag("ul", links), aria_label="Sections")])


def page_sections(names: Mapping[str, str], contents: Iterable[Any]) -> Markup:
    """All sections, each with what is in it below its name."""
    return join(
        tag(
            "section",
            tag("h2", text, id=f"{name}-title"),
            content,
            id=name,
            aria_labelledby=f"{name}-title",
        )
        for (name, text), content in zip(names.items(), contents, strict=True)
    )


def tiles(shown: Iterable[tuple[str, str, str]]) -> Markup:
    """What there is, how much of it, and what to know of that."""
    parts = [
        tag("div", tag("dt", head), tag("dd", value, tag("small", below) if below else ""))
        for head, value, below in shown
    ]
    return tag("dl", parts, class_="tiles")


def definitions(meant: Mapping[str, str], kind: str) -> Markup:
    """Words and what they mean."""
    return tag(
        "dl", [[tag("dt", word), tag("dd", text)] for word, text in meant.items()], class_=kind
    )


def figure(
    drawn: set[str], name: str, title: str, caption: str, numbers: Any = None, key: Any = None
) -> Any:
    """A chart, what it tells and its colours mean, and its numbers for those who do not see it."""
    if name not in drawn:
        return None
    below = (
        tag("details", tag("summary", "The numbers of this chart"), numbers) if numbers else None
    )
    return tag(
        "figure",
        tag("figcaption", tag("strong", title), caption),
        key,
        tag(
            "div",
            id=f"chart-{name}",
            class_="chart",
            role="img",
            aria_label=f"Chart. {title}. {caption}",
        ),
        below,
    )


def table(
    heads: list[str], rows: list[list[str]], *, names: Collection[str] = (), wide: bool = False
) -> Markup:
    """A table; what looks like a number goes right, the first cell of a row is its head.

    Columns of `names` go left, even if those are numbers. On a narrow screen each row is a card,
    and one that is `wide` scrolls instead.
    """
    side = [
        "n"
        if c > 0
        and head not in names
        and all(not row[c] or _NUMBER.fullmatch(row[c]) for row in rows)
        else None
        for c, head in enumerate(heads)
    ]
    head = [tag("th", text, scope="col", class_=s) for text, s in zip(heads, side, strict=True)]
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", head)),
            tag("tbody", [tag("tr", _cells(row, heads, side)) for row in rows]),
            class_=None if wide else "cards",
        ),
        class_="scroll" + " small" * (len(heads) <= 5),
        tabindex="0",
        role="region",
        aria_label=f"Table: {', '.join(heads)}"[:200],
    )


def _cells(row: list[str], heads: list[str], side: list[str | None]) -> list[Markup]:
    first, *rest = (tag("bdi", cell, dir="auto") for cell in row)
    return [
        tag("th", first, scope="row", class_="name"),
        *(
            tag("td", cell, class_=s, data_head=head)
            for cell, head, s in zip(rest, heads[1:], side[1:], strict=True)
        ),
    ]


def to_item(items: Items, row: int) -> Markup:
    """The name of an item, which leads to its place in the list."""
    return tag("a", tag("bdi", items["rows"][row]["item"], dir="auto"), href=f"#item-{row}")


def named_annotators(rows: list[tuple[int, Person]], most: int, *, verdicts: bool) -> list[Any]:
    """At most so many annotators, which lead to their place in the list, and how many more."""
    named: list[Any] = []
    for n, row in rows[:most]:
        shows = verdicts and row["verdict"] != "look at"  # which the sentence says already
        verdict = f" ({row['verdict']})" if shows else ""
        name = tag("bdi", plainly(row["annotator"]), dir="auto")
        link = tag("a", name, href=f"#annotator-{n}")
        named += [", " if named else "", link, verdict]
    return [*named, f" and {len(rows) - most:,} more" if len(rows) > most else ""]


def heat_key(
    shares: list[list[float | None]], nothing: str | None = None, same: str | None = None
) -> Markup:
    """What the colours of a heat map of shares mean."""
    most = max((x for row in shares for x in row if x), default=1.0)
    parts = [tag("li", "0%", tag("i", class_="heat"), f"{most:.0%}")]
    if nothing:
        parts.append(tag("li", tag("b", "×"), nothing))
    if same:
        parts.append(tag("li", tag("i", class_="same"), same))
    return tag("ul", parts, class_="key", aria_label="Colours of the chart")


def square(names: list[str], shares: list[list[float | None]], corner: str) -> Markup:
    """A table of shares of everything with everything."""
    rows = [
        [name, *("–" if x is None else f"{x:.0%}" for x in row)]
        for name, row in zip(names, shares, strict=True)
    ]
    return table([corner, *names], rows, wide=True)


def notes(lines: list[str]) -> Any:
    """A list of notes, if there are any."""
    listed = [tag("li", line, dir="auto") for line in lines]
    return tag("ul", listed, class_="plain note") if listed else None


def about(x: float) -> str:
    """A number of items that is expected, with a digit more where it is small."""
    return f"about {x:,.0f}" if x >= 9.95 else f"about {x:.1f}"


def between(low: float | None, high: float | None, digits: int = 3) -> str:
    """The ends of an interval."""
    return f"{low:.{digits}f} to {high:.{digits}f}"


def number(x: float | None) -> str:
    """A number that is infinite where JSON has none."""
    return "infinite" if x is None else f"{x:.3f}"


def kind_table(part: KindTable, drawn: set[str]) -> Any:
    """What only some crowds have, as a chart with its numbers or as a table."""
    numbers = table(part["heads"], part["rows"])
    if part["name"] in drawn:
        return figure(drawn, part["name"], part["title"], part["caption"], numbers)
    return tag("div", tag("h3", part["title"]), tag("p", part["caption"]), numbers)
