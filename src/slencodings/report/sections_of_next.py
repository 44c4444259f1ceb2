"""The section about what to do next."""

from __future__ import annotations

from typing import Any

from slencodings.report.markup import tag
from slencodings.report.pieces import table, to_item
from slencodings.report.summary import Summary


def what_next(found: Summary, drawn: set[str]) -> list[Any]:
    """What to annotate and by whom, and what to decide."""
    todo, items = found["next"], found["items"]
    parts: list[Any] = [tag("p", sentence) for sentence in _missing(found)]
    if todo["few"]:
        heads = ["Item", "Doubt", "Annotations needed"] + ["Ask"] * todo["named"]
        rows = [
            [
                to_item(items, row["row"]),
                f"{row['uncertainty']:.3f}",
                "never" if row["needed"] is None else f"{row['needed']:,}",
            ]
            + [", ".join(row["ask"]) or "somebody new"] * todo["named"]
            for row in todo["few"]
        ]
        parts += [
            tag("h3", "Annotate these next"),
            tag("p", "Where one more annotation is expected to help the label most."),
            table(heads, rows),
        ]
    if todo["conflict"]:
        rows = [
            [to_item(items, row["row"]), f"{row['conflict']:.2f}", f"{row['uncertainty']:.3f}"]
            for row in todo["conflict"]
        ]
        parts += [
            tag("h3", "Decide these"),
            tag(
                "p",
                "Enough people looked, and they disagree most sharply here. Read them "
                "together: is the item unclear, or the guideline?",
            ),
            table(["Item", "Conflict", "Doubt"], rows),
        ]
    if not todo["few"] and not todo["conflict"]:
        parts.append(tag("p", "Nothing is open: every item is settled."))
    plan = tag("code", "sle triage --budget N")
    parts.append(tag("p", plan, " plans for a budget and lists every item.", class_="note"))
    return parts


def _missing(found: Summary) -> list[str]:
    """How many annotations are missing, in a sentence or two."""
    crowd, todo = found["crowd"], found["next"]
    few = crowd["why"]["few"]
    if not few:
        return [f"No item has too few opinions: doubt is {crowd['target']:g} or less."]
    missing = (
        f"{few:,} items have too few opinions. About {todo['needed']:,} more annotations by a "
        f"typical annotator would bring them to a doubt of {crowd['target']:g}."
    )
    if todo["never"]:
        missing += f" No number of them would for {todo['never']:,} items."
    return [
        missing,
        "Nobody knows what people will say: collect a part, make this page again, go on.",
    ]
