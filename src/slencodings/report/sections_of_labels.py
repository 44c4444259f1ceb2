"""The section about labels."""

from __future__ import annotations

from typing import Any

from slencodings.report.labels import MOST_DRAWN
from slencodings.report.markup import tag
from slencodings.report.pieces import figure, heat_key, kind_table, square, table
from slencodings.report.summary import Labels, Summary


def labels(found: Summary, drawn: set[str]) -> list[Any]:
    """Which labels are confused, where the items lie, and how often each was given."""
    labels = found["labels"]
    cut = f" The {MOST_DRAWN} most frequent are drawn." if len(labels["names"]) > MOST_DRAWN else ""
    often = _how_often(labels, drawn, cut)
    return [
        _confused(labels, drawn, cut),
        tag("div", _triangle(labels, drawn), often, class_="two"),
        [kind_table(part, drawn) for part in labels["kinds"]],
    ]


def _confused(labels: Labels, drawn: set[str], cut: str) -> Any:
    names, confused = labels["names"], labels["confused"]
    if confused is None:
        return tag(
            "p",
            "No item was annotated by two people, so nothing tells which labels are confused.",
            class_="note",
        )
    pairs = [
        [names[j], names[k], f"{p['times']:,.0f}", f"{p['share']:.0%}"]
        for p in confused["pairs"]
        for j, k in [p["labels"]]
    ]
    most = table(["Label", "and", "Times", "Share"], pairs)
    return tag(
        "div",
        figure(
            drawn,
            "confused",
            "Which labels are confused",
            "Where one says the label on the left, how often does another say the one on "
            "top? A strong colour off the diagonal is a pair to explain better in the "
            "guidelines." + cut,
            square([names[k] for k in confused["labels"]], confused["share"], "One says"),
            heat_key(confused["share"]),
        ),
        tag("div", tag("h3", "Most confused"), most)
        if pairs
        else tag("p", "Nobody contradicted anybody."),
        class_="two",
    )


def _how_often(labels: Labels, drawn: set[str], cut: str) -> Any:
    names, given, leading = labels["names"], labels["given"], labels["leading"]
    total, items = sum(given) or 1, sum(leading) or 1
    shares = [
        [names[k], f"{given[k] / total:.1%}", f"{leading[k] / items:.1%}"] for k in labels["drawn"]
    ]
    return figure(
        drawn,
        "shares",
        "How often each label was given",
        "A label that is given often and seldom likeliest true is mostly a minority view." + cut,
        table(["Label", "Of all annotations", "Of all items: likeliest true"], shares),
    )


def _triangle(labels: Labels, drawn: set[str]) -> Any:
    points = labels["points"]
    if points is None:
        return None
    two = len(labels["names"]) == 2
    what = (
        "Each dot is one or more items, by what people would say. The lower corners are full "
        "belief in one label; the higher up, the more doubt."
        if two
        else "Each dot is one or more items, by what people would say. Dots in a corner are "
        "clear; dots on a side lie between two labels."
    )
    if points["drawn"] < points["of"]:
        what += f" {points['drawn']:,} of {points['of']:,} items, drawn at random."
    return figure(
        drawn,
        "triangle",
        "The items between two labels and not knowing" if two else "The items between three labels",
        what,
    )
