"""The section about annotators."""

from __future__ import annotations

from typing import Any

from slencodings.report.charts import MOST_RANKED
from slencodings.report.markup import tag
from slencodings.report.pieces import figure, notes, square
from slencodings.report.summary import Summary


def annotators(found: Summary, drawn: set[str]) -> list[Any]:
    """Whom to trust, who is too sure, and who agrees with whom."""
    people = found["annotators"]
    if not people["rows"]:
        return [tag("p", people["why_not"])]
    source = {
        "learned": "Reliability is learned from the crowd: how well what they say tells what "
        "others say of the same item. It is not a "
        "grade: who sees what others miss scores low as well.",
        "given": "Reliability is what came with the data. Agreement is how often their peers say "
        "the same.",
        "alike": "",
    }[people["reliability"]]
    rows = people["rows"]
    some = (
        ""
        if len(rows) <= MOST_RANKED
        else (f" The {MOST_RANKED // 2} highest and the {MOST_RANKED // 2} lowest are drawn.")
    )
    pairs = people["pairs"]
    busy = ""
    if pairs and pairs["total"] > len(pairs["annotators"]):
        busy = f" The {len(pairs['annotators'])} busiest of {pairs['total']:,} are drawn."
    over = [row for row in rows if row["overconfidence"] is not None and row["overconfidence"] > 0]
    known = [row for row in rows if row["overconfidence"] is not None]
    sure = None
    if not known:
        sure = tag(
            "p",
            "Nobody said how sure they were on a scale from 0 to 1, so there is no "
            "comparison of stated with earned confidence.",
            class_="note",
        )
    return [
        tag("p", people["why_not"]) if people["why_not"] else None,
        tag("p", source) if source else None,
        tag(
            "div",
            figure(
                drawn,
                "ranked",
                "Whom to trust",
                "A wide interval means too few shared items to tell." + some,
            ),
            figure(
                drawn,
                "confidence",
                "Stated against earned confidence",
                f"{len(over):,} of {len(known):,} annotators are surer than their peers bear "
                "out: they lie below the dashed line. Peers err too, so compare people with "
                "each other rather than with the line.",
            ),
            class_="two",
        ),
        sure,
        figure(
            drawn,
            "pairs",
            "Who agrees with whom",
            "How often two people say the same of items they share: the stronger the colour, the "
            "more often. A pale row is somebody who sees things differently." + busy,
            square(pairs["annotators"], pairs["agreement"], "Annotator") if pairs else None,
        ),
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
