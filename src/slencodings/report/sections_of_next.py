"""The section about what to do next."""

from __future__ import annotations

from typing import Any

from slencodings.annotations import counted
from slencodings.report.markup import tag
from slencodings.report.pieces import table, to_item
from slencodings.report.summary import Summary


def what_next(found: Summary, drawn: set[str]) -> list[Any]:
    """What to annotate and by whom, and what to decide."""
    todo, items, why = found["next"], found["items"], found["crowd"]["why"]
    rows = items["rows"]
    parts: list[Any] = [tag("p", " ".join(todo["plan"]))]
    if todo["few"]:
        heads = ["Item", "Why"] + ["Ask any of"] * todo["named"]
        cells = [
            [to_item(items, row["row"]), rows[row["row"]]["reason"]]
            + [", ".join(row["ask"]) or "somebody new"] * todo["named"]
            for row in todo["few"]
        ]
        parts += [
            tag("h3", "Annotate these next"),
            tag(
                "p",
                f"{_of(len(cells), why['few'])} with too few opinions, those first where more "
                "are expected to mend most labels. Nobody is asked twice about an item, and nobody "
                "at chance. Collect a part, make this page again, go on.",
            ),
            table(heads, cells),
        ]
    if todo["conflict"]:
        cells = [
            [to_item(items, row["row"]), f"{row['conflict']:.2f}", rows[row["row"]]["reason"]]
            for row in todo["conflict"]
        ]
        parts += [
            tag("h3", "Decide these"),
            tag(
                "p",
                f"{_of(len(cells), why['conflict'])} in conflict, the sharpest first. Read them "
                "together: is the item unclear, or the guideline?",
            ),
            table(["Item", "Conflict", "Why"], cells),
        ]
    if not todo["few"] and not todo["conflict"]:
        parts.append(tag("p", "Nothing is open: every item is settled."))
    plan = tag("code", "sle triage --budget N")
    parts.append(tag("p", plan, " plans for a budget and lists every item.", class_="note"))
    return parts


def _of(listed: int, total: int) -> str:
    return counted(total, "item") if listed == total else f"{listed:,} of {total:,} items"
