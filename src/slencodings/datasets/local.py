"""Where the files of a published data set lie, and how their tables become codes."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, as_names
from slencodings.datasets.download import File, cache, fetch, offer, there
from slencodings.opinion import Floats


def find(
    name: str,
    folder: str | Path | None,
    files: Sequence[File],
    *,
    extra: Sequence[File] = (),
    shared: str | None = None,
    download: bool = False,
) -> Path:
    """The folder of a data set, after a download if that is wanted.

    It is the one given; or the first that has the files of SLENCODINGS_DATA/<name>, the cache, and
    ../shared/datasets beside the checkout.

    Parameters
    ----------
    files : what the folder must hold
    extra : what a download brings as well
    shared : what the folder is called where it is not called by its name
    download : fetch what is missing, into the folder given or the cache

    Examples
    --------
    >>> from slencodings.datasets.download import github, unchanged
    >>> source = github("someone/data", "f98448e", "rte/rte1.tsv", 190_781)
    >>> find("rte", "/nowhere", [unchanged("rte/rte1.tsv", source)])
    Traceback (most recent call last):
    FileNotFoundError: data set 'rte' needs the file rte/rte1.tsv; looked in /nowhere. ...
    """
    names = [name] if shared is None else [name, shared]
    target = cache() / name if folder is None else Path(folder)
    places = _usual(names, target) if folder is None else [target]
    wanted = [*files, *extra] if download else list(files)
    for place in places:
        if all(there(place, file) for file in wanted):
            return place
    if download:
        fetch(wanted, target)
        return target
    nearest = max(places, key=lambda place: sum(there(place, file) for file in files))
    missing = next(file.path for file in files if not there(nearest, file))
    raise FileNotFoundError(
        f"data set {name!r} needs the file {missing}; looked in {', '.join(map(str, places))}. "
        f"Pass its folder, or set SLENCODINGS_DATA to a folder that holds {' or '.join(names)}, "
        f"or pass {offer([*files, *extra], target)}."
    )


def _usual(names: list[str], cached: Path) -> list[Path]:
    shared = Path(__file__).resolve().parents[3].parent / "shared" / "datasets"
    given = os.environ.get("SLENCODINGS_DATA")
    own = [Path(given) / name for name in names] if given else []
    return [*own, cached, *(shared / name for name in names)]


def csv_rows(data: bytes, delimiter: str = ",", quotes: bool = True) -> list[dict[str, str]]:
    """The rows of a table in UTF-8, each by the names in the first line.

    Examples
    --------
    >>> csv_rows(b"id,text\\n1,yes\\n")
    [{'id': '1', 'text': 'yes'}]
    """
    lines = io.StringIO(data.decode("utf-8-sig"), newline="")
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    return list(csv.DictReader(lines, delimiter=delimiter, quoting=quoting))


def coded(
    item: Sequence[Any],
    annotator: Sequence[Any],
    y: NDArray[Any],
    labels: Sequence[Any],
    *,
    items: Sequence[Any],
    uncertainty: Floats | None = None,
    stated: Floats | None = None,
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
        items=as_names(items),
        annotators=as_names(annotators),
        labels=as_names(labels),
        stated=stated,
    )
