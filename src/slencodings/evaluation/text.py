"""A comparison as a table for people."""

from __future__ import annotations

import math
from typing import Any

# What to leave out of a table first if there is no room.
SPARE = ("seconds", "Brier", "agreement", "uncertainty", "95 % interval", "direct", "macro F1")
_GOLD = (("accuracy", 3), ("macro_f1", 3), ("jsd", 3), ("nes", 3))


def columns(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The heads of a table and its cells: what people look at, the rest is in the rows."""
    shown = [(name, digits) for name, digits in _GOLD if name in rows[0]]
    heads = ["method", "votes", "95 % interval", "behind the first", "direct", "this annotator"]
    heads += ["Brier", "agreement", "uncertainty", "seconds"]
    heads += [{"macro_f1": "macro F1", "jsd": "JSD", "nes": "NES"}.get(n, n) for n, _ in shown]
    cells = [
        [
            row["method"],
            number(row["votes"]) + "*" * row["best"],
            between(row, "votes"),
            "" if row["behind"] == 0 else between(row, "behind"),
            number(row["direct"]),
            number(row["own"]) + "*" * row["best_own"],
            number(row["brier"]),
            number(row["agreement"]),
            number(row["uncertainty"]),
            number(row["seconds"], 2),
            *(number(row[name], digits) for name, digits in shown),
        ]
        for row in rows
    ]
    return heads, cells


def lessons(rows: list[dict[str, Any]]) -> list[str]:
    """What the numbers say, whatever they are."""
    first = rows[0]
    close = [row["method"] for row in rows[1:] if not _apart(row)]
    if first["best"]:
        best = f"{first['method']} predicts held-out votes best; every interval says so (*)."
    elif close:
        best = f"Not told apart from {first['method']}, the first: {'; '.join(close)}."
    else:
        best = f"{first['method']} comes first; nothing else was compared."
    own = next((row["method"] for row in rows if row["best_own"]), None)
    told = f"The vote of this very annotator is predicted best by {own} (*)."
    if own is None:
        least = min(rows, key=lambda row: row["own"])["method"]
        told = f"For the vote of this very annotator nobody is best for sure; {least} is lowest."
    lines = [best, told if len(rows) > 1 else ""]
    if "accuracy" in first:
        most = max(row["accuracy"] for row in rows)
        right = [row["method"] for row in rows if row["accuracy"] == most]
        lines.append(f"Right most often: {' and '.join(right)}, {most:.1%} of the known items.")
    return [line for line in lines if line]


def _apart(row: dict[str, Any]) -> bool:
    return row["behind_low"] is not None and row["behind_low"] > 0


def as_text(rows: list[dict[str, Any]], notes: list[str], about: dict[str, Any]) -> str:
    """The whole comparison in plain text."""
    heads, cells = columns(rows)
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = [
        "  ".join(
            [line[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        ).rstrip()
        for line in [heads, *cells]
    ]
    return "\n".join([head(about), "", *lines, "", *lessons(rows), *notes])


def head(about: dict[str, Any]) -> str:
    """What was compared, in one sentence."""
    return (
        f"{about['annotations']:,} annotations of {about['items']:,} items by "
        f"{about['annotators']:,} annotators, {about['labels']:,} labels; mean log-loss of "
        f"{about['scored']:,} held-out votes, lower is better; {about['folds']} folds, "
        f"{about['bootstrap']:,} resamples of items, seed {about['seed']}."
    )


def number(x: float | None, digits: int = 3) -> str:
    """A number for a table; nothing where there is none."""
    if x is None:
        return ""
    return "inf" if math.isinf(x) else f"{x:.{digits}f}"


def between(row: dict[str, Any], name: str) -> str:
    """The ends of an interval."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "" if low is None else f"{number(low)} to {number(high)}"
