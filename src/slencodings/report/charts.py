"""The charts of a report, as specifications for Vega-Lite."""

from __future__ import annotations

import math

from slencodings.report.leading import Leading, leading
from slencodings.report.names import shown
from slencodings.report.summary import (
    Compared,
    Histogram,
    LabelShares,
    ListedPeople,
    Person,
    Summary,
)
from slencodings.report.vega import (
    ON_AXES,
    Spec,
    chart,
    dot,
    dots,
    heat,
    nominal,
    quantitative,
    square_of,
    tooltip,
)

# Annotators in the chart of who is right: all, or as many of the worst and the best.
MOST_RANKED = 40

# Items in a bar, for which every count is a tick.
_FEW_ITEMS = 6

KINDS = {"few": "too few opinions", "conflict": "conflict", "settled": "settled"}


def charts(found: Summary) -> dict[str, Spec]:
    """The charts that a summary gives reason for, by the name of their figure."""
    labels, people, words = found["labels"], found["annotators"], leading(found["crowd"])
    likeliest = "label is true" if not words.why_not else "vote is the next one"
    drawn: dict[str, Spec | None] = {
        "probabilities": _histogram(
            found["crowd"]["probabilities"], f"probability that the likeliest {likeliest}"
        ),
        "doubts": _histogram(found["crowd"]["doubts"], "doubt about what people would say"),
        "shares": _shares_of_labels(labels, words),
        "confused": _confused(labels),
        "triangle": _triangle(labels),
        "ranked": _ranked(people, words),
        "confidence": _confidence(people),
        "pairs": _pairs(people),
        "compared": _compared(found["compared"]),
        **{
            part["name"]: dots(list(part["dots"]), "annotator", part["axis"], {"zero": True}, 22)
            for part in labels["kinds"]
            if part["dots"]
        },
    }
    return {name: spec for name, spec in drawn.items() if spec is not None}


def ranked(rows: list[Person]) -> list[Person]:
    """The annotators in the chart of who is right."""
    half = MOST_RANKED // 2
    return rows if len(rows) <= MOST_RANKED else rows[:half] + rows[-half:]


def _histogram(found: Histogram, title: str) -> Spec | None:
    edges = found["edges"]
    values = [
        {"low": edges[i], "high": edges[i + 1], "kind": KINDS[kind], "items": n}
        for kind, counts in found["items"].items()
        for i, n in enumerate(counts)
        if n
    ]
    if not values:
        return None
    # Of a few items no tick may lie between two counts.
    most = max(map(sum, zip(*found["items"].values(), strict=True)))
    ticks = {"values": list(range(most + 1))} if most <= _FEW_ITEMS else {"tickMinStep": 1}
    colour = {"domain": list(KINDS.values()), "range": [f"var(--{kind})" for kind in KINDS]}
    return chart(
        values,
        height=160,
        mark={"type": "bar", "binSpacing": 1},
        encoding={
            "x": quantitative(
                "low",
                title,
                bin={"binned": True},
                axis={"format": "~g", "grid": False, "values": edges[::4]},
                scale={"domain": [edges[0], edges[-1]]},
            ),
            "x2": {"field": "high"},
            "y": quantitative("items", "items", axis={"format": ",d", **ticks}),
            "color": nominal("kind", scale=colour),
            "tooltip": tooltip(
                ("kind", "items that are", None),
                ("items", "how many", ",d"),
                ("low", "from", "~g"),
                ("high", "to", "~g"),
            ),
        },
    )


def _shares_of_labels(labels: LabelShares, words: Leading) -> Spec | None:
    given, lead = sum(labels["given"]), sum(labels["leading"])
    if not given or not lead:
        return None
    of_items = f"of all items: {words.leads}"
    on_axis = shown(labels["names"], ON_AXES)
    values = [
        {"at": on_axis[k], "label": labels["names"][k], "what": what, "share": share}
        for k in labels["drawn"]
        for what, share in (
            ("of all annotations", labels["given"][k] / given),
            (of_items, labels["leading"][k] / lead),
        )
    ]
    what = {
        "domain": ["of all annotations", of_items],
        "range": ["var(--faint)", "var(--accent)"],
    }
    return chart(
        values,
        height=28 * len(labels["drawn"]),
        mark={"type": "bar"},
        encoding={
            "y": nominal("at"),
            "yOffset": {"field": "what", "type": "nominal", "sort": None},
            "x": quantitative("share", "share", axis={"format": "%", "tickCount": 5}),
            # One below the other, for narrow screens.
            "color": nominal("what", scale=what, legend={"columns": 1}),
            "tooltip": tooltip(
                ("label", "label", None), ("what", "share", None), ("share", "is", ".1%")
            ),
        },
    )


def _confused(labels: LabelShares) -> Spec | None:
    confused = labels["confused"]
    if confused is None or len(confused["labels"]) < 2:
        return None
    names = [labels["names"][k] for k in confused["labels"]]
    return heat(square_of(confused["share"]), names, "one says", "another says")


def _pairs(people: ListedPeople) -> Spec | None:
    pairs = people["pairs"]
    if pairs is None:
        return None
    shared = [n for row in pairs["shared"] for n in row]
    places = zip(square_of(pairs["agreement"]), shared, strict=True)
    values = [{**place, "n": n} for place, n in places if place["row"] != place["column"]]
    return heat(values, pairs["annotators"], "annotator", "and annotator", "no shared items")


def _triangle(labels: LabelShares) -> Spec | None:
    points = labels["points"]
    if points is None:
        return None
    corners = [*shown(labels["names"], ON_AXES), "not known"][:3]
    spots = [{"x": x, "y": y, "items": n} for x, y, n in points["points"]]
    size = quantitative("items", scale={"rangeMin": 14, "rangeMax": 600}, legend=None)
    circles: Spec = {
        "mark": {"type": "circle", "fill": "var(--accent)", "fillOpacity": 0.45},
        "encoding": {"size": size, "tooltip": tooltip(("items", "items here", ",d"))},
    }
    edges, names = _frame(corners)
    drawn = chart(
        spots,
        height=330,
        encoding={
            "x": quantitative("x", axis=None, scale={"domain": [-0.15, 1.15]}),
            "y": quantitative("y", axis=None, scale={"domain": [-0.1, 0.96]}),
        },
        layer=[edges, circles, names],
    )
    # As wide as high, for equal sides.
    return drawn | {"width": 400, "autosize": "pad"}


def _frame(corners: list[str]) -> tuple[Spec, Spec]:
    """The edges of a triangle, and the names of its corners."""
    top = math.sqrt(3) / 2
    around = [(0, 0), (1, 0), (0.5, top), (0, 0)]
    places = [(0, -0.05), (1, -0.05), (0.5, top + 0.05)]
    edges: Spec = {
        "data": {"values": [{"x": x, "y": y, "at": n} for n, (x, y) in enumerate(around)]},
        "mark": {"type": "line", "stroke": "var(--muted)", "strokeWidth": 1},
        "encoding": {"order": {"field": "at", "type": "quantitative"}},
    }
    named = zip(places, corners, strict=True)
    names: Spec = {
        "data": {"values": [{"x": x, "y": y, "name": name} for (x, y), name in named]},
        "mark": {"type": "text", "fontSize": 12},
        "encoding": {"text": {"field": "name", "type": "nominal"}},
    }
    return edges, names


def _ranked(people: ListedPeople, words: Leading) -> Spec | None:
    rows = ranked(people["rows"])
    if len(rows) < 2 or people["why_not"]:
        return None
    column, title = "above_chance", f"{words.right} above chance; 0 is guessing"
    if people["source"] == "given":
        column, title = "reliability", "reliability that came with the data"
    known = [dot(row["annotator"], row, column) for row in rows if row[column] is not None]
    if len(known) < 2:
        return None
    lows = [x for dot in known for x in (dot["low"], dot["value"]) if x is not None]
    return dots(known, "annotator", title, {"domain": [min(0, *lows), 1]}, 17)


def _confidence(people: ListedPeople) -> Spec | None:
    values = [
        {key: row[key] for key in ("annotator", "stated", "earned", "shared_items")}
        for row in people["rows"]
        if row["overconfidence"] is not None
    ]
    if not values:
        return None
    unit = {"domain": [0, 1]}
    hover = tooltip(
        ("annotator", "annotator", None),
        ("stated", "stated", ".2f"),
        ("earned", "earned", ".2f"),
        ("shared_items", "shared items", ",d"),
    )
    drawn = chart(
        values,
        height=330,
        layer=[
            {
                "data": {"values": [{"stated": 0, "earned": 0}, {"stated": 1, "earned": 1}]},
                "mark": {"type": "line", "stroke": "var(--muted)", "strokeDash": [4, 4]},
            },
            {
                "mark": {"type": "circle", "fill": "var(--accent)", "fillOpacity": 0.6},
                "encoding": {
                    "size": quantitative(
                        "shared_items", scale={"rangeMin": 30, "rangeMax": 160}, legend=None
                    ),
                    "tooltip": hover,
                },
            },
        ],
        encoding={
            "x": quantitative("stated", "confidence they state, on average", scale=unit),
            "y": quantitative("earned", "agreement beyond chance that they earn", scale=unit),
        },
    )
    return drawn | {"width": 380, "autosize": "pad"}


def _compared(compared: Compared) -> Spec | None:
    if compared["why_not"]:
        return None
    rows = [row for row in compared["rows"] if row["votes"] is not None]
    values = [dot(row["method"], row, "votes") for row in rows]
    title = "log-loss of held-out votes; lower is better"
    return dots(values, "method", title, {"zero": False}, 22) if values else None
