"""Tables of comparisons to a crowd of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.kinds.pairs import LABELS, Pairs, names_of_pairs
from slencodings.opinion import Codes
from slencodings.tables.engines import open_table, to_arrays

# How people write who won, besides by its name. Not 0, 1 and 2, which mean one thing here and
# another there.
_WORDS = {
    "left": ("left", "l", "a", "first", "modela", "responsea", "optiona", "answera", "assistanta"),
    "tie": ("tie", "tied", "draw", "equal", "same", "both", "neither", "tiebothbad", "bothbad"),
    "right": (
        *("right", "r", "b", "second", "modelb", "responseb", "optionb", "answerb"),
        "assistantb",
    ),
}


def pairs_from_table(
    table: Any,
    *,
    left: str,
    right: str,
    winner: str,
    annotator: str | None = None,
    item: str | None = None,
) -> Pairs:
    """Read a table with a row for each comparison of two options by a judge.

    An item is a pair of options as they were placed, for one prompt. Rows without a winner are
    left out and their pairs stay.

    Parameters
    ----------
    left, right : columns of what stood on either side, by name or as text
    winner : column of which is better: its name; or left, right, tie; or A and B, model_a and
        model_b, first and second, draw, and the like
    annotator : column of who judged; all are one when absent
    item : column of the prompt or question that both answer; none when absent

    Examples
    --------
    >>> games = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["x", "tie"]}
    >>> pairs = pairs_from_table(games, left="left", right="right", winner="winner")
    >>> pairs.options[pairs.left], pairs.annotations.labels[pairs.annotations.y]
    (array(['x', 'y'], dtype=object), array(['left', 'tie'], dtype=object))
    """
    roles = {"left": left, "right": right, "winner": winner, "annotator": annotator, "item": item}
    named = {role: name for role, name in roles.items() if name is not None}
    arrays = to_arrays(open_table(table, list(named.items()))[0])
    columns = {role: _texts(arrays[name]) for role, name in named.items()}
    sides = columns["left"], columns["right"]
    _refuse_empty(named, columns, ("left", "right", *(("item",) if item else ())))
    _refuse_twins(*sides)
    y = _outcomes(columns["winner"], *sides, winner)
    options, code = _coded(np.concatenate(sides))
    L, R = np.split(code, 2)
    asked, prompts = _coded(columns["item"] if item else np.full(len(L), ""))
    judges, who = np.asarray(["anonymous"], dtype=object), np.zeros(len(L), dtype=np.intp)
    if annotator is not None:
        judges, who = _coded(np.asarray([x or "" for x in columns["annotator"]]))
    keys, pair = np.unique(np.stack([prompts, L, R], axis=1), axis=0, return_inverse=True)
    judged, of_pair = y >= 0, asked[keys[:, 0]] if item else None
    annotations = Annotations(
        item=pair.ravel()[judged],
        annotator=who[judged],
        y=y[judged],
        uncertainty=np.zeros(int(judged.sum())),
        items=names_of_pairs(options, keys[:, 1:], of_pair),
        annotators=judges,
        labels=np.asarray(LABELS, dtype=object),
    )
    return Pairs(annotations, keys[:, 1], keys[:, 2], options, of_pair)


def _coded(texts: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """The texts that occur, sorted, and the place of each among them."""
    names, code = np.unique(texts.astype(str), return_inverse=True)
    return names.astype(object), code


def _texts(column: NDArray[Any]) -> NDArray[Any]:
    """Values as text without spaces around; None where there is nothing."""
    nothing = (x is None or x != x or not str(x).strip() for x in column.tolist())
    values = zip(column.tolist(), nothing, strict=True)
    return np.asarray([None if none else str(x).strip() for x, none in values], dtype=object)


def _refuse_empty(
    named: dict[str, str], columns: Mapping[str, Any], roles: tuple[str, ...]
) -> None:
    for role in roles:
        empty = np.flatnonzero([x is None for x in columns[role]])
        if len(empty):
            raise ValueError(
                f"column {named[role]!r} must say what was compared in each row; {len(empty)} of "
                f"{len(columns[role])} do not, first in row {empty[0] + 1} of the data. Leave "
                "those rows out."
            )


def _refuse_twins(left: NDArray[Any], right: NDArray[Any]) -> None:
    same = np.flatnonzero(left == right)
    if len(same):
        raise ValueError(
            f"two different options must be compared; {len(same)} of {len(left)} rows compare one "
            f"with itself, first {left[same[0]][:60]!r} in row {same[0] + 1} of the "
            "data. Leave those rows out."
        )


def _outcomes(winner: NDArray[Any], left: NDArray[Any], right: NDArray[Any], column: str) -> Codes:
    """Positions in LABELS, and -1 where nobody said."""
    places = {word: LABELS.index(label) for label, words in _WORDS.items() for word in words}
    y = np.full(len(winner), -2)
    for q, (won, *sides) in enumerate(zip(winner, left, right, strict=True)):
        if won is None:
            y[q] = -1
        elif won in sides:
            y[q] = 0 if won == sides[0] else 2
        else:
            y[q] = places.get("".join(x for x in won.lower() if x.isalnum()), -2)
    unknown = np.flatnonzero(y == -2)
    if len(unknown):
        raise ValueError(
            f"column {column!r} must say who won, by name or as left, right or tie; {len(unknown)} "
            f"of {len(y)} rows do not, first {winner[unknown[0]][:60]!r} in row {unknown[0] + 1} "
            "of the data. Numbers mean different things in different tables: write words."
        )
    return y
