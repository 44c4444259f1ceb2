"""How a report opens: what is known, whom to look at, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from slencodings.annotations import counted
from slencodings.report.leading import leading
from slencodings.report.markup import tag
from slencodings.report.people import fell
from slencodings.report.pieces import about, named_annotators, to_item
from slencodings.report.summary import Person, Summary

_Row = TypeVar("_Row", bound=Mapping[str, Any])
# Annotators that are named, of those to look at.
_NAMED = 5


def opening(found: Summary) -> list[list[Any]]:
    """Three sentences, each with a link to more."""
    return [_known(found), _whom(found), _todo(found)]


def _known(found: Summary) -> list[Any]:
    crowd = found["crowd"]
    n, settled = crowd["items"], crowd["why"]["settled"]
    sentence: list[Any] = [
        tag("a", f"{settled:,} of {counted(n, 'item')}", href="#items-settled"),
        f" ({settled / max(n, 1):.0%}) {'is' if settled == 1 else 'are'} settled",
    ]
    if crowd["wrong"] is not None:
        sentence.append(
            f": if each item gets its likeliest true label, {about(crowd['wrong'])} of all are "
            "expected to be wrong"
        )
    return [*sentence, "."]


def to_look_at(rows: Sequence[_Row]) -> list[tuple[int, _Row]]:
    """The annotators to look at, each with its place in the list."""
    poor = ("against the crowd", "at chance", "look at")
    return [(n, row) for n, row in enumerate(rows) if row["verdict"] in poor]


def _whom(found: Summary) -> list[Any]:
    people = found["annotators"]
    rows = people["rows"]
    if not rows or people["source"] == "alike":
        return [tag("a", "Nobody can be told apart", href="#annotators"), f": {people['why_not']}"]
    if people["source"] == "given":
        return [
            tag("a", "Annotators", href="#annotators"),
            " count by the reliability that came with the data, which is not questioned here.",
        ]
    look, worse = to_look_at(rows), [(n, row) for n, row in enumerate(rows) if fell(row["trend"])]
    right = leading(found["crowd"]).right
    if not look:
        unclear = sum(row["verdict"] == "too few to tell" for row in rows)
        return [
            tag("a", "No annotator", href="#annotators"),
            " stands out as one to look at",
            f"; of {unclear:,} there is too little to tell" if unclear else "",
            *_worse(worse, right),
            ".",
        ]
    return [
        "Look at ",
        tag("a", f"{len(look):,} of {counted(len(rows), 'annotator')}", href="#annotators-look"),
        ": ",
        *named_annotators(look, _NAMED, verdicts=True),
        *_worse(worse, right),
        ".",
    ]


def _worse(rows: list[tuple[int, Person]], right: str) -> list[Any]:
    """Who became worse over time, whatever they are on the whole."""
    named = named_annotators(rows, _NAMED, verdicts=False)
    return [f"; less often {right} than at first: ", *named] if rows else []


def _todo(found: Summary) -> list[Any]:
    why, todo, items = found["crowd"]["why"], found["next"], found["items"]
    parts: list[Any] = []
    if todo["few"]:
        parts += [
            tag("a", "Annotate ", counted(why["few"], "item"), href="#next"),
            " with too few opinions, first ",
            to_item(items, todo["few"][0]["row"]),
        ]
    if todo["conflict"]:
        parts += [
            "; decide " if parts else "Decide ",
            tag("a", counted(why["conflict"], "item"), href="#items-conflict"),
            " in conflict, first ",
            to_item(items, todo["conflict"][0]["row"]),
        ]
    nothing = [tag("a", "Nothing is open", href="#next"), ": every item is settled"]
    return [*(parts or nothing), "."]
