"""UDS factuality: did it happen? Two answers a predicate, each with a confidence from 0 to 4."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.datasets.local import coded, find

_VOTES, _TEXT = "raw/sentence/annotations/factuality.zip", "derived_ewt_text.json.gz"
_SUREST = 4


class UDSFactuality(NamedTuple):
    """Predicates in sentences, whether the crowd took them for facts, and how sure they were.

    Attributes
    ----------
    X : list of N pairs (sentence, predicate); empty where the sentence or the token is not there
    annotations : Annotations of 27,403 predicates; uncertainty is (4 - stated) / 4
    gold : None, there is none
    stated : int array (R,), the stated confidence, from 0 to 4
    split : array (N,) of "train", "dev" and "test"
    """

    X: list[tuple[str, str]]
    annotations: Annotations
    gold: None
    stated: NDArray[np.intp]
    split: NDArray[np.str_]


def uds_factuality(folder: str | Path | None = None) -> UDSFactuality:
    """Factuality of Universal Decompositional Semantics 2.0 (White et al. 2020), from a folder.

    Parameters
    ----------
    folder : holds raw/sentence/annotations/factuality.zip and, for the text,
        derived_ewt_text.json.gz; left out, it is SLENCODINGS_DATA/uds_factuality, or
        ../shared/datasets/uds_confidence beside the checkout

    Examples
    --------
    >>> uds_factuality("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'uds_factuality' needs the file raw/sentence/annotations/factu...
    """
    home = find("uds_factuality", folder, _VOTES, shared="uds_confidence")
    with ZipFile(home / _VOTES) as archive:
        data: dict[str, Any] = json.loads(archive.read("factuality.json"))["data"]
    with gzip.open(home / _TEXT, "rt", encoding="utf-8") as file:
        sentences: dict[str, Any] = json.load(file)
    nodes = {
        node: (sentence, said["factuality"]["factual"])
        for sentence, its in data.items()
        for node, said in its.items()
    }
    rows = [
        (node, who, value, said["confidence"][who])
        for node, (_, said) in nodes.items()
        for who, value in said["value"].items()
    ]
    item, annotator, y, stated = map(list, zip(*rows, strict=True))
    sure = np.asarray(stated, dtype=np.intp)
    crowd = coded(
        item,
        annotator,
        np.asarray(y, dtype=np.intp),
        [0, 1],
        items=list(nodes),
        uncertainty=(_SUREST - sure) / _SUREST,
    )
    X = [_pair(sentences.get(sentence), node) for node, (sentence, _) in nodes.items()]
    split = np.asarray([sentence.split("-")[1] for sentence, _ in nodes.values()])
    return UDSFactuality(X, crowd, None, sure, split)


def _pair(sentence: dict[str, Any] | None, node: str) -> tuple[str, str]:
    """The sentence and its token, counted from 1 in an older version of the corpus."""
    if sentence is None:
        return "", ""
    at = int(node.rsplit("-", 1)[1])
    tokens = sentence["tokens"]
    return sentence["text"], tokens[at - 1] if at <= len(tokens) else ""
