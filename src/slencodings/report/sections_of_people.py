"""The section about annotators."""

from __future__ import annotations

from typing import Any

from slencodings.annotations import counted
from slencodings.report.charts import MOST_RANKED
from slencodings.report.leading import Leading, leading
from slencodings.report.markup import tag
from slencodings.report.people import fell
from slencodings.report.pieces import (
    figure,
    heat_key,
    kind_table,
    named_annotators,
    notes,
    square,
)
from slencodings.report.summary import ListedPeople, Person, Summary

# Annotators that are named, of those who became worse.
_NAMED = 10
# What figures of annotators are from.
_SOURCES = {
    "learned": "How often people are right is told by what is likeliest true of their items, "
    "which is learned from the whole crowd. Chance is how often they would be right by giving "
    "their labels without looking: above chance, 0 is guessing and 1 is always right.",
    "given": "Reliability is what came with the data. Agreement is how often their peers say "
    "the same.",
    "alike": "",
}
# The same where what is true was not learned.
_BY_VOTES = (
    "How often people are with the likeliest vote is told by what is known of their items. Chance "
    "is how often they would be by giving their labels without looking: above chance, 0 is "
    "guessing and 1 is always."
)


def annotators(found: Summary, drawn: set[str]) -> list[Any]:
    """Whom to trust, who is too sure, and who agrees with whom."""
    people = found["annotators"]
    rows = people["rows"]
    if not rows:
        return [tag("p", people["why_not"])]
    words, source = leading(found["crowd"]), _SOURCES[people["source"]]
    if people["source"] == "learned" and words.why_not:
        source = _BY_VOTES
    known = [row["overconfidence"] for row in rows if row["overconfidence"] is not None]
    compared = known or people["sources"]
    not_compared = None if compared else _not_compared(found["crowd"]["stated"])
    return [
        tag("p", people["why_not"]) if people["why_not"] else None,
        tag("p", source) if source else None,
        tag("div", _how_often_right(people, drawn, words), _too_sure(known, drawn), class_="two"),
        tag("p", not_compared, class_="note") if not_compared else None,
        kind_table(people["sources"], drawn) if people["sources"] else None,
        _who_agrees(people, drawn),
        _over_time(rows, words),
        tag("h3", "Everybody"),
        tag(
            "p",
            people["listed"],
            " The last column counts the items whose likeliest label would "
            "be another without that person.",
            class_="note",
        ),
        tag("div", id="annotators-table"),
        notes(people["notes"]),
    ]


def _how_often_right(people: ListedPeople, drawn: set[str], words: Leading) -> Any:
    half, rows = MOST_RANKED // 2, people["rows"]
    some = f" The {half} worst and the {half} best are drawn." if len(rows) > MOST_RANKED else ""
    if people["source"] == "given":
        title = "The reliability that came with the data"
        return figure(drawn, "ranked", title, "The lowest first." + some)
    return figure(
        drawn,
        "ranked",
        f"How often people are {words.right}",
        "The worst first. A wide interval means too few shared items to tell." + some,
    )


def _too_sure(overconfidence: list[float], drawn: set[str]) -> Any:
    over = sum(x > 0 for x in overconfidence)
    return figure(
        drawn,
        "confidence",
        "Stated against earned confidence",
        f"{over:,} of {len(overconfidence):,} annotators are surer than their peers bear out: they "
        "lie below the dashed line. Peers err too, so compare people with each other rather than "
        "with the line.",
    )


def _who_agrees(people: ListedPeople, drawn: set[str]) -> Any:
    pairs = people["pairs"]
    busy, cells, key = "", None, None
    if pairs:
        names, shares = pairs["annotators"], pairs["agreement"]
        if pairs["total"] > len(names):
            busy = f" The {len(names)} busiest of {pairs['total']:,} are drawn."
        cells = square(names, shares, "Annotator")
        key = heat_key(shares, "no shared items", "the same person")
    return figure(
        drawn,
        "pairs",
        "Who agrees with whom",
        "How often two people say the same of items they share: the stronger the colour, the "
        "more often. A pale row is somebody who sees things differently." + busy,
        cells,
        key,
    )


def _over_time(rows: list[Person], words: Leading) -> Any:
    """Who became worse; nothing where nobody's time is known."""
    timed = sum(bool(row["trend"]) for row in rows)
    if not timed:
        return None
    worse = [(n, row) for n, row in enumerate(rows) if fell(row["trend"])]
    of = f"Of {counted(timed, 'annotator')} whose work can be followed over time, "
    verb = "is" if len(worse) == 1 else "are"
    many = f"{len(worse):,} {verb}" if worse else "none is"
    return tag(
        "p",
        f"{of}{many} clearly less often {words.right} in the last part of it than in the first",
        ": " if worse else "",
        *named_annotators(worse, _NAMED, verdicts=False),
        ". Open an annotator to see each part.",
    )


def _not_compared(stated: list[float] | None) -> str | None:
    """Why stated confidence is not compared with what it earned."""
    if stated is None:
        return "Nobody said how sure they were."
    low, high = stated
    if 0 <= low <= high <= 1:
        return None
    return (
        f"People said how sure they were, from {low:g} to {high:g}. What each level is worth was "
        "learned; to compare it with what it earned, say which scale it is: "
        f"--confidence-scale {low:g}-{high:g}."
    )
