"""RTE: does the text entail the hypothesis? 800 pairs, ten answers each (Snow et al. 2008)."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from slencodings.annotations import Annotations
from slencodings.datasets.download import pinned, read
from slencodings.datasets.local import coded, csv_rows, find
from slencodings.opinion import Codes

_ORIGIN = ("edwinrobots/bayesian_combination_tutorial2", "f98448e2e9a941463aa92f418eefd1f43bd5a637")
_VOTES = pinned(
    _ORIGIN,
    "all_collected_data/rte.standardized.tsv",
    515_468,
    "3187c5de59b9b9c596d490d25b5f5f108090a35cbdd10e81f21e6d1939d6ba79",
)
_PAIRS = pinned(
    _ORIGIN,
    "snow2008_mturk_data_with_orig_files_assembled_201904/rte/rte1.tsv",
    190_781,
    "f59dfe1ceac428c63b463b4b6df41341e22e07faac8602aa83c5e7298908a80f",
    name="rte/rte1.tsv",
)


class RTE(NamedTuple):
    """Pairs of sentences, what the crowd answered, and the right answers.

    Attributes
    ----------
    X : list of 800 pairs (text, hypothesis), without html entities
    annotations : Annotations, 8,000 answers by 164 annotators; 1 is "entailed"
    gold : int array (800,), the answer of the PASCAL RTE-1 test set
    """

    X: list[tuple[str, str]]
    annotations: Annotations
    gold: Codes


def rte(folder: str | Path | None = None, *, download: bool = False) -> RTE:
    """Recognising textual entailment, as Snow et al. (2008) collected it.

    Parameters
    ----------
    folder : holds all_collected_data/rte.standardized.tsv and rte/rte1.tsv; left out, it is
        SLENCODINGS_DATA/rte, the cache, or ../shared/datasets/rte beside the checkout
    download : fetch what is missing from github.com into the folder or the cache

    Examples
    --------
    >>> rte("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'rte' needs the file all_collected_data/rte.standardized.tsv; ...
    """
    home = find("rte", folder, [_VOTES, _PAIRS], download=download)
    # Quotation marks are part of the text, not of the format.
    votes, pairs = (csv_rows(read(home, file), "\t", quotes=False) for file in (_VOTES, _PAIRS))
    text = {row["id"]: (unescape(row["text"]), unescape(row["hypothesis"])) for row in pairs}
    right = {row["orig_id"]: int(row["gold"]) for row in votes}
    items = sorted(right, key=int)
    crowd = coded(
        [row["orig_id"] for row in votes],
        [row["!amt_worker_ids"] for row in votes],
        np.asarray([int(row["response"]) for row in votes], dtype=np.intp),
        [0, 1],
        items=items,
    )
    gold = np.asarray([right[name] for name in items], dtype=np.intp)
    return RTE([text[name] for name in items], crowd, gold)
