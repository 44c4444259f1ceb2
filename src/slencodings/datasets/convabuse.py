"""ConvAbuse: is the user abusing the machine? 4,185 conversations by 8 annotators. OFFENSIVE."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.datasets.download import pinned, read
from slencodings.datasets.local import coded, csv_rows, find

_ORIGIN = ("amandacurry/convabuse", "c0a9469f48956e868276c605d499010ea3c7c0d0")

# Of each part, bytes and sha256.
_PINS = {
    "train": (878_309, "23abab3eff791d0e8cac681cec15a5ef299ed052699e4fca762d1d4640c36936"),
    "valid": (293_536, "a28bc3083fe3ea305b8c417539a20fda7e68057dc06365507b85c46b60e65443"),
    "test": (302_095, "8387d70332cd2245a095240534629152dd5729e8e9556e91b6b20dabdc0bb9d0"),
}
_SPLITS = {
    part: pinned(_ORIGIN, f"2_splits/ConvAbuseEMNLP{part}.csv", *pin) for part, pin in _PINS.items()
}
_LEVELS = (-3, -2, -1, 0, 1)
_ANNOTATORS = tuple(f"Annotator{m}" for m in range(1, 9))


class ConvAbuse(NamedTuple):
    """Conversations, how abusive each annotator found them, and their split; offensive content.

    Attributes
    ----------
    X : list of 4,185 conversations (agent, user, agent, user), the last turn is judged
    annotations : Annotations, 12,768 judgements by 8 annotators, some of them twice or more
    gold : None, there is none
    split : array (4185,) of "train", "valid" and "test"
    """

    X: list[tuple[str, str, str, str]]
    annotations: Annotations
    gold: None
    split: NDArray[np.str_]


def convabuse(
    folder: str | Path | None = None, *, severity: bool = False, download: bool = False
) -> ConvAbuse:
    """Abuse in conversations with chat bots (Cercas Curry et al. 2021).

    Parameters
    ----------
    folder : holds 2_splits/ConvAbuseEMNLP{train,valid,test}.csv; left out, it is
        SLENCODINGS_DATA/convabuse, the cache, or ../shared/datasets/convabuse beside the checkout
    severity : label by the five levels, from -3 (strongly abusive) over 0 (ambiguous) to 1 (not
        abusive); else 1 is "abusive", a level below 0
    download : fetch what is missing from github.com into the folder or the cache

    Examples
    --------
    >>> convabuse("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'convabuse' needs the file 2_splits/ConvAbuseEMNLPtrain.csv; ...
    """
    home = find("convabuse", folder, list(_SPLITS.values()), download=download)
    rows: list[dict[str, str]] = []
    split: list[str] = []
    for part, file in _SPLITS.items():
        rows += csv_rows(read(home, file))
        split += [part] * (len(rows) - len(split))
    # Ids are written as floats, "278.0".
    items = [int(float(row["example_id"])) for row in rows]
    votes = [
        (i, who, level)
        for i, row in zip(items, rows, strict=True)
        for who in _ANNOTATORS
        for level in _levels_chosen(row, who)
    ]
    item, annotator, level = map(list, zip(*votes, strict=True))
    y = np.searchsorted(_LEVELS, level) if severity else np.less(level, 0).astype(np.intp)
    labels = list(_LEVELS) if severity else [0, 1]
    X = [(row["prev_agent"], row["prev_user"], row["agent"], row["user"]) for row in rows]
    crowd = coded(item, annotator, y, labels, items=items)
    return ConvAbuse(X, crowd, None, np.asarray(split))


def _levels_chosen(row: dict[str, str], who: str) -> list[int]:
    """The levels that an annotator chose: none, one, or more where they saw the item again.

    A cell is "1", or "1, 0" for a yes the first time and a no the second.
    """
    cells = {level: row[f"{who}_is_abuse.{level}"] for level in _LEVELS}
    yes = {level: [int(x) for x in cell.split(",") if x.strip()] for level, cell in cells.items()}
    times = zip(*yes.values(), strict=True)
    return [_LEVELS[time.index(1)] for time in times]
