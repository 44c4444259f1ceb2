"""MRE: does the sentence say that one term causes (or treats) the other? By crowd and expert."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.datasets.local import coded, find

_GOLD, _VOTES = "ground_truth_{}.csv", "raw/RelEx"
# No expert is written NA in one file and left empty in the other.
_EXPERT = {"1": 1, "-1": 0}
_SAID = {"cause": "[CAUSES]", "treat": "[TREATS]"}


class MRE(NamedTuple):
    """Medical sentences with two terms, what the crowd saw in them, and what an expert did.

    Attributes
    ----------
    X : list of N sentences
    annotations : Annotations; 1 where the relation is among those that the annotator ticked
    gold : int array (N,), what the expert said
    terms : list of N pairs, the two terms in the sentence
    """

    X: list[str]
    annotations: Annotations
    gold: NDArray[np.intp]
    terms: list[tuple[str, str]]


def mre(folder: str | Path | None = None, *, relation: Literal["cause", "treat"] = "cause") -> MRE:
    """Medical relation extraction (Dumitrache et al. 2018), the sentences that an expert judged.

    Parameters
    ----------
    folder : holds ground_truth_{cause,treat}.csv and raw/RelEx; left out, it is
        SLENCODINGS_DATA/mre, or ../shared/datasets/mre beside the checkout
    relation : "cause" or "treat"

    Examples
    --------
    >>> mre("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'mre' needs the file ground_truth_cause.csv; ...
    """
    if relation not in _SAID:
        raise ValueError(f"`relation` must be cause or treat; {relation!r} came.")
    home = find("mre", folder, _GOLD.format(relation))
    judged = {
        int(row["SID"]): row
        for row in _rows(home / _GOLD.format(relation))
        if row["expert"] in _EXPERT
    }
    # A sentence is "904916-FS1" in most batches and 904916 in the others.
    votes = [
        (int(row["sent_id"].split("-")[0]), int(row["_worker_id"]), row["relations"].split())
        for path in sorted((home / _VOTES).glob("*.csv"))
        for row in _rows(path)
    ]
    votes = [vote for vote in votes if vote[0] in judged]
    items = sorted({sentence for sentence, _, _ in votes})
    crowd = coded(
        [sentence for sentence, _, _ in votes],
        [who for _, who, _ in votes],
        np.asarray([_SAID[relation] in ticked for _, _, ticked in votes], dtype=np.intp),
        [0, 1],
        items=items,
    )
    its = [judged[sentence] for sentence in items]
    gold = np.asarray([_EXPERT[row["expert"]] for row in its], dtype=np.intp)
    terms = [(row["term1"], row["term2"]) for row in its]
    return MRE([row["sentence"] for row in its], crowd, gold, terms)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
