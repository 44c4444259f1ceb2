"""UDS factuality: did it happen? Two answers a predicate, each with a confidence from 0 to 4."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import NamedTuple, TypeAlias
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.datasets.download import File, github, pinned, read, there
from slencodings.datasets.local import coded, find

# By sentence, predicate and "factuality", "factual": "value" and "confidence" by annotator.
_Data: TypeAlias = dict[str, dict[str, dict[str, dict[str, dict[str, dict[str, int]]]]]]
# The text of a sentence, and its words.
_Sentence: TypeAlias = tuple[str, list[str]]
_SUREST = 4
_ORIGIN = ("decompositional-semantics-initiative/decomp", "973705b0")
_VOTES = pinned(
    _ORIGIN,
    "decomp/data/2.0/raw/sentence/annotations/factuality.zip",
    271_901,
    "982902da528d398b5bbaf1b37aa9794bfe805e5a587ce5a3250c33e4eba9cbfb",
    name="raw/sentence/annotations/factuality.zip",
)


def _sentences(ids: bytes, *parts: bytes) -> bytes:
    """The text and words of every sentence that UDS numbers, from the CoNLL-U files of EWT.

    Words have whole numbers; 29-30 is "didn't" before it is split, 8.1 a word that is left out.
    """
    found: dict[str, _Sentence] = {}
    for block in b"\n".join(parts).decode("utf-8").split("\n\n"):
        lines = block.split("\n")
        about = dict(
            line[2:].split(" = ", 1) for line in lines if line[:1] == "#" and " = " in line
        )
        cells = [line.split("\t", 2) for line in lines if line[:1] != "#"]
        tokens = [cell[1] for cell in cells if cell[0].isdigit()]
        if "sent_id" in about:
            found[about["sent_id"]] = about["text"], tokens
    numbered: dict[str, dict[str, str]] = json.loads(ids)
    named = {uds: found.get(its["sentence_id"]) for uds, its in numbered.items()}
    text = {uds: {"text": its[0], "tokens": its[1]} for uds, its in named.items() if its}
    return gzip.compress(json.dumps(text, ensure_ascii=False).encode("utf-8"), 5, mtime=0)


def _content(data: bytes) -> bytes:
    text: dict[str, dict[str, object]] = json.loads(gzip.decompress(data))
    pairs = {uds: [its["text"], its["tokens"]] for uds, its in text.items()}
    return json.dumps(pairs, ensure_ascii=False, sort_keys=True).encode("utf-8")


_EWT = ("UniversalDependencies/UD_English-EWT", "15d613d8")
_TEXT = File(
    "derived_ewt_text.json.gz",
    3_727_627,
    "32c6bec1dffa2f41a936001e76c93a8361791eb55ff497b89f23f9d7f1f7f063",
    (
        github(*_ORIGIN, "decomp/data/ud_ids.json", 2_219_492),
        github(*_EWT, "en_ewt-ud-train.conllu", 14_000_000),
        github(*_EWT, "en_ewt-ud-dev.conllu", 1_750_000),
        github(*_EWT, "en_ewt-ud-test.conllu", 1_750_000),
    ),
    _sentences,
    _content,
)


class UDSFactuality(NamedTuple):
    """Predicates in sentences, whether the crowd took them for facts, and how sure they were.

    Attributes
    ----------
    X : list of N pairs (sentence, predicate); empty where the sentence or the token is not there
    annotations : Annotations of 27,403 predicates; confidence is stated from 0 to 4, and
        uncertainty is (4 - stated) / 4
    gold : None, there is none
    split : array (N,) of "train", "dev" and "test"
    """

    X: list[tuple[str, str]]
    annotations: Annotations
    gold: None
    split: NDArray[np.str_]


def uds_factuality(folder: str | Path | None = None, *, download: bool = False) -> UDSFactuality:
    """Factuality of Universal Decompositional Semantics 2.0 (White et al. 2020).

    Parameters
    ----------
    folder : holds raw/sentence/annotations/factuality.zip and, for the text,
        derived_ewt_text.json.gz, without which `X` is empty; left out, it is
        SLENCODINGS_DATA/uds_factuality, the cache, or ../shared/datasets/uds_confidence beside
        the checkout
    download : fetch what is missing from github.com into the folder or the cache, first the
        votes, then the text

    Examples
    --------
    >>> uds_factuality("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'uds_factuality' needs the file raw/sentence/annotations/factu...
    """
    home = find(
        "uds_factuality",
        folder,
        [_VOTES],
        extra=[_TEXT],
        shared="uds_confidence",
        download=download,
    )
    with ZipFile(io.BytesIO(read(home, _VOTES))) as archive:
        data: _Data = json.loads(archive.read("factuality.json"))["data"]
    sentences: dict[str, _Sentence] = json.loads(read(home, _TEXT)) if there(home, _TEXT) else {}
    nodes = {
        node: (sentence, answers["factuality"]["factual"])
        for sentence, its in data.items()
        for node, answers in its.items()
    }
    rows = [
        (node, who, value, factual["confidence"][who])
        for node, (_, factual) in nodes.items()
        for who, value in factual["value"].items()
    ]
    item, annotator, y, stated = map(list, zip(*rows, strict=True))
    sure = np.asarray(stated, dtype=float)
    crowd = coded(
        item,
        annotator,
        np.asarray(y, dtype=np.intp),
        [0, 1],
        items=list(nodes),
        uncertainty=(_SUREST - sure) / _SUREST,
        stated=sure,
    )
    X = [_pair(sentences.get(sentence), node) for node, (sentence, _) in nodes.items()]
    split = np.asarray([sentence.split("-")[1] for sentence, _ in nodes.values()])
    return UDSFactuality(X, crowd, None, split)


def _pair(sentence: _Sentence | None, node: str) -> tuple[str, str]:
    """The sentence and its token, counted from 1 in an older version of the corpus."""
    if sentence is None:
        return "", ""
    text, tokens = sentence
    at = int(node.rsplit("-", 1)[1])
    return text, tokens[at - 1] if at <= len(tokens) else ""
