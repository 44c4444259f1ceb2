"""Where the files of a published data set lie, and how names become codes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations


def find(name: str, folder: str | Path | None, needed: str, *, shared: str | None = None) -> Path:
    """The folder of a data set: the one given, or SLENCODINGS_DATA/<name>, or ../shared/datasets.

    Parameters
    ----------
    needed : a file inside, by which the folder is known
    shared : what the folder is called where it is not called by its name

    Examples
    --------
    >>> find("rte", "/nowhere", "rte/rte1.tsv")
    Traceback (most recent call last):
    FileNotFoundError: data set 'rte' needs the file rte/rte1.tsv; looked in /nowhere. ...
    """
    names = [name] if shared is None else [name, shared]
    places = [Path(folder)] if folder is not None else _usual(names)
    for place in places:
        if (place / needed).exists():
            return place
    raise FileNotFoundError(
        f"data set {name!r} needs the file {needed}; looked in {', '.join(map(str, places))}. "
        f"Pass its folder, or set SLENCODINGS_DATA to a folder that holds {' or '.join(names)}."
    )


def _usual(names: list[str]) -> list[Path]:
    checkout = Path(__file__).resolve().parents[3]
    roots = [checkout.parent / "shared" / "datasets"]
    if os.environ.get("SLENCODINGS_DATA"):
        roots.insert(0, Path(os.environ["SLENCODINGS_DATA"]))
    return [root / name for root in roots for name in names]


def coded(
    item: Sequence[Any],
    annotator: Sequence[Any],
    y: NDArray[Any],
    labels: Sequence[Any],
    *,
    items: Sequence[Any],
    uncertainty: NDArray[np.float64] | None = None,
) -> Annotations:
    """Annotations of named items by named annotators; annotators are sorted, `items` stay put.

    Examples
    --------
    >>> coded(["q", "p"], ["bob", "ann"], np.asarray([1, 0]), [0, 1], items=["p", "q"]).item
    array([1, 0])
    """
    place = {name: i for i, name in enumerate(items)}
    annotators = sorted(set(annotator))
    who = {name: m for m, name in enumerate(annotators)}
    return Annotations(
        item=np.asarray([place[name] for name in item], dtype=np.intp),
        annotator=np.asarray([who[name] for name in annotator], dtype=np.intp),
        y=y,
        uncertainty=np.zeros(len(item)) if uncertainty is None else uncertainty,
        items=_names(items),
        annotators=_names(annotators),
        labels=_names(labels),
    )


def _names(names: Sequence[Any]) -> NDArray[Any]:
    return np.asarray(names, dtype=object if isinstance(names[0], str) else None)
