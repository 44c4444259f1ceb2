"""Pieces of specifications for Vega-Lite: a chart, its fields, dots on lines, squares of shares.

Colours are names in the style sheet, so that light, dark and print need no second chart. Values are
in the order to be shown (`sort` is null), and names from data are nothing but values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slencodings.report.names import shown

# As Vega-Lite takes it.
Spec = dict[str, Any]
# Names on axes are shorter than elsewhere, and still differ where the names do.
ON_AXES = 22
# Names on axes for which there is room to write values and to read them aslant.
_FEW_NAMES = 10
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


def chart(values: list[Any], **spec: Any) -> Spec:
    """A chart as wide as the page lets it be."""
    return {
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": _CONFIG,
        "data": {"values": values},
        **spec,
    }


def quantitative(field: str, title: str | None = None, **more: Any) -> Spec:
    """A field of numbers."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def nominal(field: str, title: str | None = None, **more: Any) -> Spec:
    """A field of names, in the order of the values unless a domain is given."""
    return {"field": field, "type": "nominal", "title": title, "sort": None, **more}


def tooltip(*fields: tuple[str, str, str | None]) -> list[Spec]:
    """What is said of a mark that is pointed at: fields, what they are called, their format."""
    return [
        {"field": field, "title": title, **({"format": shape} if shape else {})}
        for field, title, shape in fields
    ]


def dot(name: str, row: Mapping[str, Any], column: str) -> Spec:
    """A value with its interval, for `dots`."""
    low, high = row.get(f"{column}_low"), row.get(f"{column}_high")
    return {"name": name, "value": row[column], "low": low, "high": high}


def square_of(shares: list[list[float | None]]) -> list[Spec]:
    """Shares of everything with everything, for `heat`, by row and column."""
    return [
        {"row": i, "column": j, "value": share}
        for i, row in enumerate(shares)
        for j, share in enumerate(row)
    ]


def dots(values: list[Any], what: str, title: str, scale: Spec, step: int) -> Spec:
    """A dot for each value, on a line from its lowest to its highest."""
    few = {"tickCount": 6}
    on_axis = shown([v["name"] for v in values], ON_AXES)
    values = [{**v, "at": at} for v, at in zip(values, on_axis, strict=True)]
    hover = tooltip(
        ("name", what, None),
        ("value", "value", ".3f"),
        ("low", "at least", ".3f"),
        ("high", "at most", ".3f"),
    )
    return chart(
        values,
        height=step * len(values),
        encoding={"y": nominal("at"), "tooltip": hover},
        layer=[
            {
                "mark": {"type": "rule", "stroke": "var(--accent)", "strokeOpacity": 0.6},
                "encoding": {
                    "x": quantitative("low", title, scale=scale, axis=few),
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
                "encoding": {"x": quantitative("value", title, scale=scale, axis=few)},
            },
        ],
    )


def heat(
    values: list[Any], names: list[str], rows: str, columns: str, nothing: str | None = None
) -> Spec:
    """A square of values in [0, 1], the more the stronger; a cross where there is `nothing`.

    `row` and `column` of values are places in `names`.
    """
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
    most = max((v["value"] for v in known), default=1) or 1
    ends = tooltip(("row", rows, None), ("column", columns, None))
    hover = ends + tooltip(("value", "share", ".1%"))
    hover += tooltip(("n", "shared items", ",d")) if known and "n" in known[0] else []
    layers = [_cells(known, most, hover)]
    if nothing:
        unknown = [{**v, "is": nothing} for v in places if v["value"] is None]
        layers += [_crosses(unknown, ends), _diagonal(on_axis)]
    if len(names) <= _FEW_NAMES:
        layers.append(_values_as_text(known, most, hover))
    turned = {"orient": "top", "labelAngle": -40 if len(names) <= _FEW_NAMES else -90}
    encoding = {
        "y": nominal("y", rows, scale={"domain": on_axis}),
        "x": nominal("x", columns, scale={"domain": on_axis}, axis=turned),
    }
    step = max(18, min(38, 420 // len(names)))
    drawn = chart([], encoding=encoding, layer=layers)
    return drawn | {"width": {"step": step}, "height": {"step": step}, "autosize": "pad"}


def _cells(known: list[Spec], most: float, hover: list[Spec]) -> Spec:
    """The squares, the more the stronger."""
    shade = {"domain": [0, most], "range": [0.03, 0.9]}
    return {
        "data": {"values": known},
        "mark": {"type": "rect", "fill": "var(--accent)", "stroke": "var(--line)"},
        "encoding": {
            "fillOpacity": quantitative("value", scale=shade, legend=None),
            "tooltip": hover,
        },
    }


def _crosses(unknown: list[Spec], ends: list[Spec]) -> Spec:
    """Where nothing is known."""
    return {
        "data": {"values": unknown},
        "mark": {"type": "text", "text": "×", "fill": "var(--muted)", "fontSize": 12},
        "encoding": {"tooltip": ends + tooltip(("is", "they have", None))},
    }


def _diagonal(on_axis: list[str]) -> Spec:
    """Everybody with themselves."""
    same = [{"x": at, "y": at} for at in on_axis]
    return {"data": {"values": same}, "mark": {"type": "rect", "fill": "var(--line)"}}


def _values_as_text(known: list[Spec], most: float, hover: list[Spec]) -> Spec:
    """The values as text; on the darkest cells it takes the colour of the paper."""
    dark = {"test": f"datum.value > {0.55 * most}", "value": "var(--card)"}
    return {
        "data": {"values": known},
        "mark": {"type": "text", "fontSize": 11},
        "encoding": {
            "text": {"field": "value", "type": "quantitative", "format": ".0%"},
            "fill": {"condition": dark, "value": "var(--ink)"},
            "tooltip": hover,
        },
    }
