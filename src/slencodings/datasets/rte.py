"""RTE: does the text entail the hypothesis? 800 pairs, ten answers each (Snow et al. 2008)."""

from __future__ import annotations

import csv
from html import unescape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.datasets.local import coded, find

_VOTES, _PAIRS = "all_collected_data/rte.standardized.tsv", "rte/rte1.tsv"


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
    gold: NDArray[np.intp]


def rte(folder: str | Path | None = None) -> RTE:
    """Recognising textual entailment, as Snow et al. (2008) collected it, from a local folder.

    Parameters
    ----------
    folder : holds all_collected_data/rte.standardized.tsv and rte/rte1.tsv; left out, it is
        SLENCODINGS_DATA/rte, or ../shared/datasets/rte beside the checkout

    Examples
    --------
    >>> rte("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'rte' needs the file all_collected_data/rte.standardized.tsv; ...
    """
    home = find("rte", folder, _VOTES)
    votes = _rows(home / _VOTES)
    text = {
        row["id"]: (unescape(row["text"]), unescape(row["hypothesis"]))
        for row in _rows(home / _PAIRS)
    }
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


def _rows(path: Path) -> list[dict[str, str]]:
    """Quotation marks are part of the text, not of the format."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
