"""What is known of the annotators of a crowd, to read and to print."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from slencodings.annotations import plainly
from slencodings.opinion import Floats

Columns = dict[str, list[Any]]

# What the printed head of a column is, where it is not the name of the column.
_CONFUSED = "most confused (of all times it was said)"
_HEADS = {
    "above_chance": "above chance",
    "accuracy": "right",
    "chance": "by chance",
    "worth_for_votes": "vote worth",
    "shared_items": "shared",
    "reason": "why",
    "dawid_skene": "Dawid-Skene",
    "mace": "MACE",
    "overconfidence": "over",
    "discrimination": "tells apart",
    "left_wins": "left wins",
}
# How many annotators are printed, and how many letters of a name.
_SHOWN, _LETTERS = 20, 14


class Level(NamedTuple):
    """What stating a level of confidence comes to.

    Attributes
    ----------
    level : as stated
    annotations : how many on items with several
    accuracy, accuracy_low, accuracy_high : how often they are right, by what the crowd takes for
        true, and between which that lies; None where there are none
    worth_share : of what an annotation is worth at the level that is worth most
    """

    level: float
    annotations: int
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    worth_share: float


@dataclass(frozen=True, eq=False)
class Roster:
    """What is known of each annotator, in order; `describe_annotators` says what the columns mean.

    Attributes
    ----------
    columns : a list of M plain values for each column, None where nothing is known
    levels : what each level of stated confidence comes to, from the lowest
    notes : what a reader has to know about these values, one sentence each
    """

    columns: Columns
    levels: list[Level]
    notes: list[str]

    def to_rows(self) -> list[dict[str, Any]]:
        """One dict per annotator, of strings, numbers and None: ready for JSON or a table."""
        rows = zip(*self.columns.values(), strict=True)
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def __str__(self) -> str:
        M = len(self.columns["annotator"])
        if "discrimination" in self.columns:
            return "\n".join(
                [
                    f"Which judges to trust ({M:,} in all; 95 % intervals in brackets; tells "
                    "apart: 1 is usual, 0 is guessing)",
                    *_table(self.columns, ["verdict", "discrimination", "reason"]),
                    "\nWhich side they favour (log-odds, and the share of wins of the left among "
                    "equals), how often they call a tie, how far others agree",
                    *_table(
                        self.columns,
                        ["annotations", "shared_items", "side", "left_wins", "ties", "agreement"],
                    ),
                    "",
                    *(f"* {note}" for note in self.notes),
                ]
            )
        asked = [name for name in self.columns if f"{name}_low" in self.columns]
        compared = ["annotations", "shared_items", "worth_for_votes"]
        compared += [name for name in asked if name != "above_chance"]
        compared += ["given"] if "given" in self.columns else []
        known = any(x is not None for x in self.columns["stated"])
        stated = ["stated", "earned", "overconfidence"] if known else []
        return "\n".join(
            [
                f"Whom to trust ({M:,} in all; 95 % intervals in brackets; above chance: 0 is "
                "guessing, 1 always right)",
                *_table(self.columns, ["verdict", "above_chance", "accuracy", "chance", "reason"]),
                "\nHow much they did, what it is worth for predicting votes, how far others agree",
                *_table(self.columns, compared),
                "\nWhere they differ from their peers",
                *_table(self.columns, [*stated, _CONFUSED]),
                *_levels(self.levels),
                *_worse(self.columns),
                *([""] if self.notes else []),
                *(f"* {note}" for note in self.notes),
            ]
        )


def _worse(columns: Columns) -> list[str]:
    """Whose answers got worse over time, where that was looked for."""
    if "drift" not in columns:
        return []
    tested = sum(p is not None for p in columns["drift_p"])
    head = f"\nWhose answers got worse over time, for sure ({tested:,} tested)"
    rows = zip(
        _told_apart(columns["annotator"]),
        *(columns[x] for x in ("drift_since", "agreement_before", "agreement_after", "drift")),
        strict=True,
    )
    lines = [
        f"{name}: since {since} others agree {after:.0%}, before {before:.0%}"
        for name, since, before, after, alarm in rows
        if alarm
    ]
    return [head, *(lines or ["nobody"])]


def _levels(levels: list[Level]) -> list[str]:
    if not levels:
        return []
    lines = [
        [
            f"{x.level:g}",
            f"{x.annotations:,}",
            "-"
            if x.accuracy is None
            else f"{_short(x.accuracy)} ({_short(x.accuracy_low)} {_short(x.accuracy_high)})",
            _short(x.worth_share),
        ]
        for x in levels
    ]
    heads = ["stated", "annotations", "right", "share of worth"]
    return ["\nWhether confidence is earned", *_aligned([heads, *lines])]


def _table(columns: Columns, names: list[str]) -> list[str]:
    """Right-aligned but for words; of many annotators the first and the last."""
    M, half = len(columns["annotator"]), _SHOWN // 2
    printed = [m for m in range(M) if M <= _SHOWN or not half <= m < M - half]
    who = _told_apart([columns["annotator"][m] for m in printed])
    lines = [
        [short, *(_cell(columns, m, name) for name in names)]
        for short, m in zip(who, printed, strict=True)
    ]
    if M > _SHOWN:
        lines.insert(half, ["...", f"{M - 2 * half:,} more", *[""] * (len(names) - 1)])
    return _aligned([[_HEADS.get(name, name) for name in ["annotator", *names]], *lines])


def _aligned(lines: list[list[str]]) -> list[str]:
    # The line between is no reason to widen a column.
    widths = [max(len(line[c]) for line in lines if line[0] != "...") for c in range(len(lines[0]))]
    left = [head in ("verdict", "why", _CONFUSED) for head in lines[0]]
    aligned = [f"<{w}" if words else f">{w}" for w, words in zip(widths, left, strict=True)]
    return ["  ".join(map(format, line, aligned)).rstrip() for line in lines]


def _cell(columns: Columns, m: int, name: str) -> str:
    if name == _CONFUSED:
        return _confused(
            *(columns[x][m] for x in ("said", "peers_say", "confused_share", "confused"))
        )
    value = columns[name][m]
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if f"{name}_low" not in columns or columns[f"{name}_low"][m] is None:
        return _short(value)
    low, high = columns[f"{name}_low"][m], columns[f"{name}_high"][m]
    return f"{_short(value)} ({_short(low)} {_short(high)})"


def _confused(label: Any, instead: Any, share: float, n: float) -> str:
    if label is None:
        return "-"
    times = " of ".join(f"{x:,.0f}" if x >= 100 else f"{x:.3g}" for x in (n, n / share))
    own, peers = _told_apart([label, instead])
    return f"said {own} where peers say {peers}: {100 * share:.0f} % ({times})"


def _short(x: float | None) -> str:
    """Two digits after the point at most, and none before it if that is a zero."""
    text = "-" if x is None else f"{x:.2f}".replace("1.00", "1.0").replace("-0.00", "0.00")
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _told_apart(names: list[Any]) -> list[str]:
    """Names on one line, long ones without as much of their middles as leaves them different.

    >>> _told_apart(["user10@example.org", "user11@example.org"])
    ['user10@example.org', 'user11@example.org']
    """
    texts, letters = [plainly(name) for name in names], _LETTERS
    while len(set(cut := [_cut(text, letters) for text in texts])) < len(set(texts)):
        letters += 1
    return cut


def _cut(text: str, letters: int) -> str:
    """A long name without its middle, as ids tend to differ at their ends."""
    return text if len(text) <= letters else f"{text[:4]}…{text[5 - letters :]}"


def with_interval(name: str, value: Floats, low: Floats, high: Floats) -> Columns:
    """An estimate of each annotator and where it lies, as columns."""
    return {name: as_list(value), f"{name}_low": as_list(low), f"{name}_high": as_list(high)}


def as_list(x: Floats) -> list[float | None]:
    """Numbers as JSON can say them."""
    return [None if math.isnan(value) else value for value in x.tolist()]


def as_plain(name: Any) -> Any:
    """A name as JSON can say it."""
    missing = name is None or (isinstance(name, float) and math.isnan(name))
    return None if missing else name if isinstance(name, str | int | float) else str(name)
