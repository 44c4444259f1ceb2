"""A comparison as a table for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from slencodings.annotations import by_annotators, counted
from slencodings.evaluation.measure import told_apart
from slencodings.evaluation.rows import ComparedOn, Row

# What to leave out of a table first if there is no room.
SPARE = (
    "seconds",
    "Brier",
    "agreement",
    "uncertainty",
    "95 % interval",
    "direct",
    "ranked score",
    "to be moved",
    "macro F1",
    "too sure by",
    "joint, behind the first",
)
_GOLD = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "jsd": "JSD",
    "nes": "NES",
    "jaccard": "sets, Jaccard",
    "exact_match": "same set",
    "masi": "sets, MASI",
}
_IF_ANY = {
    "direct",
    "uncertainty",
    "new pairs",
    "ranked score",
    "steps off",
    "to be moved",
    "steps from truth",
    "this annotator",
    "joint votes",
    "joint, behind the first",
    "log-loss of truth",
    "too sure by",
    *_GOLD.values(),
}


def columns(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """The heads of a table and its cells: what people look at, the rest is in the rows."""
    table = {
        "method": [row["method"] for row in rows],
        "votes": _column(rows, "votes", "best"),
        "95 % interval": [_between(row["votes_low"], row["votes_high"]) for row in rows],
        "behind the first": [
            "" if row["behind"] == 0 else _between(row["behind_low"], row["behind_high"])
            for row in rows
        ],
        "direct": _column(rows, "direct"),
        "this annotator": _column(rows, "own", "best_own"),
        "new pairs": _column(rows, "new_pairs", "best_new_pairs"),
        "joint votes": [_joint(row) + "*" * row["best_joint"] for row in rows],
        "joint, behind the first": [
            _between(row["joint_behind_low"], row["joint_behind_high"])
            if row["joint_behind"]
            else ""
            for row in rows
        ],
        "Brier": _column(rows, "brier"),
        "agreement": _column(rows, "agreement"),
        "ranked score": _column(rows, "ranked"),
        "steps off": _column(rows, "steps"),
        "to be moved": _column(rows, "wasserstein"),
        "uncertainty": _column(rows, "uncertainty"),
        "seconds": [number(row["seconds"], 2) for row in rows],
        "log-loss of truth": _column(rows, "truth", "best_truth"),
        "too sure by": _column(rows, "too_sure"),
        "steps from truth": _column(rows, "truth_steps"),
        **{head: _column(rows, name) for name, head in _GOLD.items()},
    }
    shown = {head: cells for head, cells in table.items() if any(cells) or head not in _IF_ANY}
    return list(shown), [list(cells) for cells in zip(*shown.values(), strict=True)]


def _column(rows: Sequence[Mapping[str, Any]], name: str, best: str = "") -> list[str]:
    """A score of all rows, with a star behind what is best for sure; nothing where it is none."""
    return [number(row.get(name)) + "*" * row.get(best, False) for row in rows]


def lessons(rows: list[Row]) -> list[str]:
    """What the numbers say, whatever they are."""
    first = rows[0]
    behind = [(row["method"], row["behind"], row["behind_low"]) for row in rows[1:]]
    close = [name for name, gap, low in behind if not told_apart(gap, low)]
    if first["best"]:
        best = f"{first['method']} predicts held-out votes best; every interval says so (*)."
    elif close:
        best = f"Not told apart from {first['method']}, the first: {'; '.join(close)}."
    else:
        best = f"{first['method']} comes first; nothing else was compared."
    lines = [
        best,
        *_lesson(rows, "own", "best_own", "the vote of this very annotator"),
        *_lesson(rows, "joint", "best_joint", "several votes together"),
        *_lesson(rows, "new_pairs", "best_new_pairs", "two that never met"),
    ]
    if any(row["joint"] is not None and not row["doubts"] for row in rows):
        lines.append("(In brackets: tells no doubt, and is scored as if certain.)")
    accuracy = {row["method"]: row["accuracy"] for row in rows if "accuracy" in row}
    if accuracy:
        most = max(accuracy.values())
        names = " and ".join(name for name, share in accuracy.items() if share == most)
        lines.append(f"Right most often: {names}, {most:.1%} of the known items.")
        lines += _lesson(rows, "truth", "best_truth", "what is true")
    return lines


def _lesson(rows: Sequence[Mapping[str, Any]], loss: str, best: str, what: str) -> list[str]:
    """Who predicts something best, for sure or perhaps; nothing where there is nobody to beat."""
    known = [(row[loss], row["method"]) for row in rows if row.get(loss) is not None]
    if len(known) < 2:
        return []
    if sure := [row["method"] for row in rows if row.get(best)]:
        return [f"Best at predicting {what}: {sure[0]} (*)."]
    return [f"Nobody is best for sure at predicting {what}; {min(known)[1]} is lowest."]


def as_text(rows: list[Row], notes: list[str], about: ComparedOn) -> str:
    """The whole comparison in plain text."""
    return "\n".join([head(about), "", *aligned(*columns(rows)), "", *lessons(rows), *notes])


def aligned(heads: list[str], cells: list[list[str]]) -> list[str]:
    """The lines of a table in plain text: names to the left, all else to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    sides = ["<", *">" * (len(heads) - 1)]
    shapes = [f"{side}{width}" for side, width in zip(sides, widths, strict=True)]
    return ["  ".join(map(format, line, shapes)).rstrip() for line in [heads, *cells]]


def head(about: ComparedOn) -> str:
    """What was compared, in one sentence."""
    if about.options is not None:
        judges = "" if about.annotators is None else f" by {counted(about.annotators, 'judge')}"
        return (
            f"{counted(about.annotations, 'judgment')} of {counted(about.items, 'pair')} of "
            f"{counted(about.options, 'option')}{judges}; mean log-loss of held-out judgments, "
            f"lower is better; {about.folds} folds, {about.bootstrap:,} resamples of which two "
            f"meet, seed {about.seed}."
        )
    by = "" if about.scored_annotators is None else by_annotators(about.scored_annotators)
    return (
        f"{counted(about.annotations, 'annotation')} of {counted(about.items, 'item')}"
        f"{by_annotators(about.annotators)}, {counted(about.labels, 'label')}; mean log-loss of "
        f"{counted(about.scored, 'held-out vote')}{by}, lower is better; {about.folds} folds, "
        f"{about.bootstrap:,} resamples of items, seed {about.seed}."
    )


def number(x: float | None, digits: int = 3) -> str:
    """A number for a table; nothing where there is none."""
    if x is None:
        return ""
    return "inf" if math.isinf(x) else f"{x:.{digits}f}"


def _joint(row: Row) -> str:
    """In brackets if it tells no doubt."""
    shown = number(row["joint"])
    return shown if row["doubts"] or not shown else f"({shown})"


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None else f"{number(low)} to {number(high)}"
