"""What is known of the annotators of a crowd, to read and to print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Columns = dict[str, list[Any]]

# What the printed head of a column is, where it is not the name of the column.
_CONFUSED = "most confused (of all times it was said)"
_HEADS = {
    "shared_items": "shared",
    "dawid_skene": "Dawid-Skene",
    "mace": "MACE",
    "overconfidence": "over",
}
# How many annotators are printed, and how many letters of a name.
_SHOWN, _LETTERS = 20, 14


@dataclass(frozen=True, eq=False)
class Roster:
    """What is known of each annotator, in order; `describe_annotators` says what the columns mean.

    Attributes
    ----------
    columns : a list of M plain values for each column, None where nothing is known
    notes : what a reader has to know about these values, one sentence each
    """

    columns: Columns
    notes: list[str]

    def to_rows(self) -> list[dict[str, Any]]:
        """One dict per annotator, of strings, numbers and None: ready for JSON or a table."""
        rows = zip(*self.columns.values(), strict=True)
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def __str__(self) -> str:
        M = len(self.columns["annotator"])
        trusted = [name for name in self.columns if f"{name}_low" in self.columns]
        trusted = ["annotations", "shared_items", *trusted]
        trusted += ["given"] if "given" in self.columns else []
        known = any(x is not None for x in self.columns["stated"])
        stated = ["stated", "earned", "overconfidence"] if known else []
        return "\n".join(
            [
                f"Whom to trust ({M:,} in all; 95 % intervals in brackets)",
                *_table(self.columns, trusted),
                "\nWhere they differ from their peers",
                *_table(self.columns, [*stated, _CONFUSED]),
                *([""] if self.notes else []),
                *(f"* {note}" for note in self.notes),
            ]
        )


def _table(columns: Columns, names: list[str]) -> list[str]:
    """Right-aligned but for the last column; of many annotators the first and the last."""
    names = ["annotator", *names]
    everybody = range(len(columns["annotator"]))
    lines = [[_cell(columns, m, name) for name in names] for m in everybody]
    if len(lines) > _SHOWN:
        half = _SHOWN // 2
        between = ["...", f"{len(lines) - 2 * half:,} more", *[""] * (len(names) - 2)]
        lines = [*lines[:half], between, *lines[-half:]]
    lines = [[_HEADS.get(name, name) for name in names], *lines]
    # The line between is no reason to widen a column.
    widths = [max(len(line[c]) for line in lines if line[0] != "...") for c in range(len(names))]
    aligned = [f">{w}" for w in widths[:-1]] + [""]
    return ["  ".join(map(format, line, aligned)).rstrip() for line in lines]


def _cell(columns: Columns, m: int, name: str) -> str:
    if name == _CONFUSED:
        return _confused(
            *(columns[x][m] for x in ("said", "peers_say", "confused_share", "confused"))
        )
    value = columns[name][m]
    if name == "annotator":
        return _cut(value)
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
    return f"said {_cut(label)} where peers say {_cut(instead)}: {100 * share:.0f} % ({times})"


def _short(x: float | None) -> str:
    """Two digits after the point at most, and none before it if that is a zero."""
    text = "-" if x is None else f"{x:.2f}".replace("1.00", "1.0")
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _cut(name: Any) -> str:
    """A long name without its middle, as ids tend to differ at their ends."""
    text, tail = str(name), _LETTERS - 5
    return text if len(text) <= _LETTERS else f"{text[:4]}…{text[-tail:]}"
