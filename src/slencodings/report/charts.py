"""The charts of a report, as specifications for Vega-Lite.

Colours are names in the style sheet, so that light, dark and print need no second chart. Values are
in the order to be shown (`sort` is null), and names from data are nothing but values.
"""

from __future__ import annotations

import math
from typing import Any

from slencodings.report.names import shown
from slencodings.report.summary import Compared, Histogram, Labels, People, Person, Summary

# As Vega-Lite takes it.
Spec = dict[str, Any]

# Annotators in the chart of who is right: all, or as many of the worst and the best.
MOST_RANKED = 40
# Names on axes are shorter than elsewhere, and still differ where the names do.
ON_AXES = 22
# Items in a bar, for which every count is a tick.
_FEW_ITEMS = 6
KINDS = {"few": "too few opinions", "conflict": "conflict", "settled": "settled"}
_CONFIG: Spec = {
    "background": None,
    "font": "system-ui, sans-serif",
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "gridColor": "var(--line)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 0,
        "labelOverlap": False,
    },
    "legend": {
        "labelColor": "var(--ink)",
        "titleColor": "var(--muted)",
        "labelFontSize": 12,
        "orient": "top",
        "title": None,
    },
    "text": {"color": "var(--ink)"},
}


def charts(found: Summary) -> dict[str, Spec]:
    """The charts that a summary gives reason for, by the name of their figure."""
    labels, people = found["labels"], found["annotators"]
    drawn: dict[str, Spec | None] = {
        "probabilities": _histogram(
            found["crowd"]["probabilities"], "probability that the likeliest label is true"
        ),
        "doubts": _histogram(found["crowd"]["doubts"], "doubt about what people would say"),
        "shares": _shares(labels),
        "confused": _confused(labels),
        "triangle": _triangle(labels),
        "ranked": _ranked(people),
        "confidence": _confidence(people),
        "pairs": _pairs(people),
        "compared": _compared(found["compared"]),
    }
    return {name: spec for name, spec in drawn.items() if spec is not None}


def ranked(rows: list[Person]) -> list[Person]:
    """The annotators in the chart of who is right."""
    half = MOST_RANKED // 2
    return rows if len(rows) <= MOST_RANKED else rows[:half] + rows[-half:]


def _chart(values: list[Any], **spec: Any) -> Spec:
    return {
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": _CONFIG,
        "data": {"values": values},
        **spec,
    }


def _number(field: str, title: str | None = None, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, **more}


def _name(field: str, title: str | None = None, **more: Any) -> Spec:
    """A field of names, in the order of the values unless a domain is given."""
    return {"field": field, "type": "nominal", "title": title, "sort": None, **more}


def _tooltip(*fields: tuple[str, str, str | None]) -> list[Spec]:
    return [
        {"field": field, "title": title, **({"format": shape} if shape else {})}
        for field, title, shape in fields
    ]


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
    whole = {"values": list(range(most + 1))} if most <= _FEW_ITEMS else {"tickMinStep": 1}
    colour = {"domain": list(KINDS.values()), "range": [f"var(--{kind})" for kind in KINDS]}
    return _chart(
        values,
        height=160,
        mark={"type": "bar", "binSpacing": 1},
        encoding={
            "x": _number(
                "low",
                title,
                bin={"binned": True},
                axis={"format": "~g", "grid": False, "values": edges[::4]},
                scale={"domain": [edges[0], edges[-1]]},
            ),
            "x2": {"field": "high"},
            "y": _number("items", "items", axis={"format": ",d", **whole}),
            "color": _name("kind", scale=colour),
            "tooltip": _tooltip(
                ("kind", "items that are", None),
                ("items", "how many", ",d"),
                ("low", "from", "~g"),
                ("high", "to", "~g"),
            ),
        },
    )


def _shares(labels: Labels) -> Spec | None:
    given, leading = sum(labels["given"]), sum(labels["leading"])
    if not given or not leading:
        return None
    on_axis = shown(labels["names"], ON_AXES)
    values = [
        {"at": on_axis[k], "label": labels["names"][k], "what": what, "share": share}
        for k in labels["drawn"]
        for what, share in (
            ("of all annotations", labels["given"][k] / given),
            ("of all items: likeliest true", labels["leading"][k] / leading),
        )
    ]
    what = {
        "domain": ["of all annotations", "of all items: likeliest true"],
        "range": ["var(--faint)", "var(--accent)"],
    }
    return _chart(
        values,
        height=28 * len(labels["drawn"]),
        mark={"type": "bar"},
        encoding={
            "y": _name("at"),
            "yOffset": {"field": "what", "type": "nominal", "sort": None},
            "x": _number("share", "share", axis={"format": "%", "tickCount": 5}),
            # One below the other, for narrow screens.
            "color": _name("what", scale=what, legend={"columns": 1}),
            "tooltip": _tooltip(
                ("label", "label", None), ("what", "share", None), ("share", "is", ".1%")
            ),
        },
    )


def _heat(
    values: list[Any], names: list[str], rows: str, columns: str, nothing: str | None = None
) -> Spec:
    """A square of values in [0, 1], the more the stronger; a cross where there is `nothing`.

    `row` and `column` of values are places in `names`.
    """
    most = max((v["value"] for v in values if v["value"] is not None), default=1) or 1
    on_axis = shown(names, ON_AXES)
    places: list[Spec] = [
        {
            **v,
            "y": on_axis[v["row"]],
            "x": on_axis[v["column"]],
            "row": names[v["row"]],
            "column": names[v["column"]],
        }
        for v in values
    ]
    known = [v for v in places if v["value"] is not None]
    encoding = {
        "y": _name("y", rows, scale={"domain": on_axis}),
        "x": _name(
            "x",
            columns,
            scale={"domain": on_axis},
            axis={"orient": "top", "labelAngle": -40 if len(names) <= 10 else -90},
        ),
    }
    ends = (("row", rows, None), ("column", columns, None))
    hover = _tooltip(*ends, ("value", "share", ".1%"))
    hover += _tooltip(("n", "shared items", ",d")) if known and "n" in known[0] else []
    shade = {"domain": [0, most], "range": [0.03, 0.9]}
    layers: list[Spec] = [
        {
            "data": {"values": known},
            "mark": {"type": "rect", "fill": "var(--accent)", "stroke": "var(--line)"},
            "encoding": {
                "fillOpacity": _number("value", scale=shade, legend=None),
                "tooltip": hover,
            },
        }
    ]
    if nothing:
        layers.append(
            {
                "data": {"values": [{**v, "is": nothing} for v in places if v["value"] is None]},
                "mark": {"type": "text", "text": "×", "fill": "var(--muted)", "fontSize": 12},
                "encoding": {"tooltip": _tooltip(*ends, ("is", "they have", None))},
            }
        )
        same = [{"x": name, "y": name} for name in on_axis]
        layers.append({"data": {"values": same}, "mark": {"type": "rect", "fill": "var(--line)"}})
    if len(names) <= 10:
        # On the darkest cells the text takes the colour of the paper.
        dark = {"test": f"datum.value > {0.55 * most}", "value": "var(--card)"}
        layers.append(
            {
                "data": {"values": known},
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    "text": {"field": "value", "type": "quantitative", "format": ".0%"},
                    "fill": {"condition": dark, "value": "var(--ink)"},
                    "tooltip": hover,
                },
            }
        )
    step = max(18, min(38, 420 // len(names)))
    chart = _chart([], encoding=encoding, layer=layers)
    return chart | {"width": {"step": step}, "height": {"step": step}, "autosize": "pad"}


def _confused(labels: Labels) -> Spec | None:
    confused = labels["confused"]
    if confused is None or len(confused["labels"]) < 2:
        return None
    values = [
        {"row": i, "column": j, "value": share}
        for i, row in enumerate(confused["share"])
        for j, share in enumerate(row)
    ]
    names = [labels["names"][k] for k in confused["labels"]]
    return _heat(values, names, "one says", "another says")


def _pairs(people: People) -> Spec | None:
    pairs = people["pairs"]
    if pairs is None:
        return None
    values = [
        {"row": i, "column": j, "value": share, "n": pairs["shared"][i][j]}
        for i, row in enumerate(pairs["agreement"])
        for j, share in enumerate(row)
        if i != j
    ]
    return _heat(values, pairs["annotators"], "annotator", "and annotator", "no shared items")


def _triangle(labels: Labels) -> Spec | None:
    points = labels["points"]
    if points is None:
        return None
    top = math.sqrt(3) / 2
    corners = [*shown(labels["names"], ON_AXES), "not known"][:3]
    edges = [
        {"x": x, "y": y, "at": n} for n, (x, y) in enumerate([(0, 0), (1, 0), (0.5, top), (0, 0)])
    ]
    spots = [{"x": x, "y": y, "items": n} for x, y, n in points["points"]]
    where = [
        {"x": 0, "y": -0.05, "name": corners[0]},
        {"x": 1, "y": -0.05, "name": corners[1]},
        {"x": 0.5, "y": top + 0.05, "name": corners[2]},
    ]
    at: Spec = {
        "x": _number("x", axis=None, scale={"domain": [-0.15, 1.15]}),
        "y": _number("y", axis=None, scale={"domain": [-0.1, 0.96]}),
    }
    size = _number("items", scale={"rangeMin": 14, "rangeMax": 600}, legend=None)
    chart = _chart(
        spots,
        height=330,
        encoding=at,
        layer=[
            {
                "data": {"values": edges},
                "mark": {"type": "line", "stroke": "var(--muted)", "strokeWidth": 1},
                "encoding": {"order": {"field": "at", "type": "quantitative"}},
            },
            {
                "mark": {"type": "circle", "fill": "var(--accent)", "fillOpacity": 0.45},
                "encoding": {
                    "size": size,
                    "tooltip": _tooltip(("items", "items here", ",d")),
                },
            },
            {
                "data": {"values": where},
                "mark": {"type": "text", "fontSize": 12},
                "encoding": {"text": {"field": "name", "type": "nominal"}},
            },
        ],
    )
    # As wide as high, for equal sides.
    return chart | {"width": 400, "autosize": "pad"}


def _ranked(people: People) -> Spec | None:
    rows = ranked(people["rows"])
    if len(rows) < 2 or people["why_not"]:
        return None
    if people["source"] == "given":
        title = "reliability that came with the data"
        values = [(row["annotator"], row["reliability"], None, None) for row in rows]
    else:
        title = "right above chance; 0 is guessing"
        values = [
            (
                row["annotator"],
                row["above_chance"],
                row["above_chance_low"],
                row["above_chance_high"],
            )
            for row in rows
        ]
    dots = [
        {"name": who, "value": value, "low": low, "high": high}
        for who, value, low, high in values
        if value is not None
    ]
    if len(dots) < 2:
        return None
    lows = [x for dot in dots for x in (dot["low"], dot["value"]) if x is not None]
    return _dots(dots, "annotator", title, {"domain": [min(0, *lows), 1]}, 17)


def _confidence(people: People) -> Spec | None:
    values = [
        {key: row[key] for key in ("annotator", "stated", "earned", "shared_items")}
        for row in people["rows"]
        if row["overconfidence"] is not None
    ]
    if not values:
        return None
    unit = {"domain": [0, 1]}
    hover = _tooltip(
        ("annotator", "annotator", None),
        ("stated", "stated", ".2f"),
        ("earned", "earned", ".2f"),
        ("shared_items", "shared items", ",d"),
    )
    chart = _chart(
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
                    "size": _number(
                        "shared_items", scale={"rangeMin": 30, "rangeMax": 160}, legend=None
                    ),
                    "tooltip": hover,
                },
            },
        ],
        encoding={
            "x": _number("stated", "confidence they state, on average", scale=unit),
            "y": _number("earned", "agreement beyond chance that they earn", scale=unit),
        },
    )
    return chart | {"width": 380, "autosize": "pad"}


def _compared(compared: Compared) -> Spec | None:
    if compared["why_not"]:
        return None
    values = [
        {
            "name": row["method"],
            "value": row["votes"],
            "low": row["votes_low"],
            "high": row["votes_high"],
        }
        for row in compared["rows"]
        if row["votes"] is not None
    ]
    title = "log-loss of held-out votes; lower is better"
    return _dots(values, "method", title, {"zero": False}, 22) if values else None


def _dots(values: list[Any], what: str, title: str, scale: Spec, step: int) -> Spec:
    """A dot for each value, on a line from its lowest to its highest."""
    few = {"tickCount": 6}
    on_axis = shown([v["name"] for v in values], ON_AXES)
    values = [{**v, "at": at} for v, at in zip(values, on_axis, strict=True)]
    hover = _tooltip(
        ("name", what, None),
        ("value", "value", ".3f"),
        ("low", "at least", ".3f"),
        ("high", "at most", ".3f"),
    )
    return _chart(
        values,
        height=step * len(values),
        encoding={"y": _name("at"), "tooltip": hover},
        layer=[
            {
                "mark": {"type": "rule", "stroke": "var(--accent)", "strokeOpacity": 0.6},
                "encoding": {
                    "x": _number("low", title, scale=scale, axis=few),
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "opacity": 1,
                    "size": 50,
                    "color": "var(--accent)",
                },
                "encoding": {"x": _number("value", title, scale=scale, axis=few)},
            },
        ],
    )
