"""Whose votes are predicted, and who is in which group, as it is typed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from slencodings.annotations import counted
from slencodings.files.scan import Table
from slencodings.files.write import quote
from slencodings.tables.roles import listed, nearest


def column_of_scored(scored: str | None, names: Sequence[str]) -> str | None:
    """The column that says whose votes are predicted, in COLUMN=VALUE; None where names do.

    >>> column_of_scored("kind=human", ["item", "kind"]), column_of_scored("ann,gpt*", ["item"])
    ('kind', None)
    """
    column, equals, _ = (scored or "").partition("=")
    return column.strip() if equals and column.strip() in names else None


def choose_scored(
    table: Table, annotator: str | None, scored: str, annotators: Sequence[Any]
) -> list[Any]:
    """The annotators whose votes are predicted, for `learn_crowd(scored=...)`.

    Parameters
    ----------
    table : the rows, with the columns that are not read otherwise
    annotator : the column of annotators
    scored : annotators with commas, also patterns such as gpt*; or COLUMN=VALUE, several values
        with commas, of a column that says the same in all rows of an annotator
    annotators : all there are, (M,)
    """
    if annotator is None:
        raise ValueError(
            "`scored` says whose votes are predicted, and no column says who annotated. "
            "Name it: annotator='COLUMN'."
        )
    column = column_of_scored(scored, table.names)
    if column is None:
        return _by_name(_words(scored), annotators, table.names)
    values = values_of_annotators(table, annotator, column, "scored", "scored='ann,bob'")
    wanted = _words(scored.partition("=")[2])
    told = sorted(set(values.values()))
    for word in wanted:
        if word not in told:
            raise ValueError(
                f"`scored` needs a value of the column {column!r}; {word!r} came. It has "
                f"{listed(told)}."
            )
    return [name for name in annotators if values.get(str(name)) in wanted]


def _words(text: str) -> list[str]:
    """Words between commas; one that has a comma itself stands in double quotes."""
    return [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [""])]


def _by_name(
    patterns: Sequence[str], annotators: Sequence[Any], columns: Sequence[str]
) -> list[Any]:
    names = [str(name) for name in annotators]
    for pattern in patterns:
        if pattern not in names and not any(fnmatchcase(name, pattern) for name in names):
            near = nearest(pattern, names)
            raise ValueError(
                "`scored` must name annotators, also by patterns such as 'gpt*', or be "
                f"COLUMN=VALUE; {pattern!r} is none of the {counted(len(names), 'annotator')}"
                + (f". Did you mean scored={near!r}?" if near else f" ({listed(names)})")
                + (f" The columns are {listed(columns)}." if "=" in pattern else "")
            )
    # A name may have a bracket or a star itself, so it also stands for itself.
    return [
        name
        for name, text in zip(annotators, names, strict=True)
        if text in patterns or any(fnmatchcase(text, pattern) for pattern in patterns)
    ]


def values_of_annotators(
    table: Table, annotator: str, column: str, role: str, instead: str
) -> dict[str, str]:
    """What a column says of each annotator, as text; nothing where it is empty.

    `role` is what it is for, and `instead` what else may be typed, for the message where it says
    several things of one.
    """
    who, what = quote(annotator), quote(column)
    rows = table.pick([annotator, column], texts=[column])
    found = rows.aggregate(
        f"{who}::VARCHAR, min({what}::VARCHAR), count(DISTINCT {what}::VARCHAR)", who
    ).fetchall()
    several = sorted(str(name) for name, _, n in found if n > 1)
    if several:
        raise ValueError(
            f"a column for `{role}` must say the same in all rows of an annotator; {column!r} does "
            f"not for {counted(len(several), 'annotator')}, first {several[0]!r}. Instead: "
            f"{instead}."
        )
    return {name: value for name, value, n in found if n == 1}
