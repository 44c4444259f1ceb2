"""Five crowds whose truth is known, gathered in one form by Li et al. (2019)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from slencodings.annotations import Annotations
from slencodings.choices import TruthInference, check_word
from slencodings.datasets.download import File, pinned, read
from slencodings.datasets.local import coded, csv_rows, find
from slencodings.opinion import Codes

_ORIGIN = ("yuan-li/truth-inference-at-scale", "ff6d32971fb3ca17e2f0c784a126d8b26495dbce")
# Where a crowd lies there; size and sha256 of its labels and of its truth.
_FILES = {
    "web": (
        "data/SpectralMethodsMeetEM/web",
        (144_423, "90b6e66284288079fab48593c61fb7949f964d007fce077b13d21d0b7ab43211"),
        (17_479, "1b215fe642b88107fc07c0f4b9169b70e178f3a65f76926ea1fbeb86fd688c4d"),
    ),
    "trec": (
        "data/SpectralMethodsMeetEM/trec",
        (958_855, "8bfc1d6036ab5b9e489755db7ea89be80a1ec0fe523527cf7966cb52f662696b"),
        (16_844, "e66a5ae31d542fcf1dc929d568d2f9489245fe201e48ff322b7de1f19f9e5dd6"),
    ),
    "sentiment": (
        "data/crowd_truth_inference/d_sentiment",
        (177_298, "44b1df451bab3752540643eb13d0701f1c14d6bd1068a04703691533c8f61cea"),
        (5_901, "ea4d2bfe7a660efaabb6dcb07b8e9dd53d5c9bd5b271895270fa4b9f6946217c"),
    ),
    "adult": (
        "data/crowd_truth_inference/s5_AdultContent",
        (1_014_087, "d72988724f7cdd628ce21fa1aaabecc4d03aef21bf59644d9e4033b774ac9a32"),
        (2_307, "1c52c5d528d16e031360d87ce384a80611bf23dedd5c7cfddf2c8ffc058772cb"),
    ),
    "fact_eval": (
        "data/crowdscale2013/fact_eval",
        (2_278_676, "c8be134ea9adb9fe5984657dcd1894dce89ba93a539a600a62654c801d6e6d3a"),
        (4_457, "5e0ea8af9d225cd4d03e175d279e5ab00958c6f74c3ebf85b068a271a83ad741"),
    ),
}


class KnownTruth(NamedTuple):
    """What a crowd answered, and the right answers.

    Attributes
    ----------
    X : list of the items' numbers, (N,); their texts and pictures are not published with them
    annotations : Annotations; labels are numbers
    gold : int array (N,), positions in `annotations.labels`; -1 where the truth is not known
    """

    X: list[int]
    annotations: Annotations
    gold: Codes


def truth_inference(
    name: TruthInference, folder: str | Path | None = None, *, download: bool = False
) -> KnownTruth:
    """A crowd of Li et al. (2019), "Exploiting worker correlation for label aggregation".

    Parameters
    ----------
    name : "web", "trec", "sentiment", "adult" or "fact_eval"
    folder : holds web/label.csv and web/truth.csv, say; left out, it is
        SLENCODINGS_DATA/truth_inference, the cache, or ../shared/datasets/truth_inference beside
        the checkout
    download : fetch what is missing from github.com into the folder or the cache

    Examples
    --------
    >>> truth_inference("web", "no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'truth_inference' needs the file web/label.csv; ...
    """
    check_word("name", name, TruthInference)
    files = _files(name)
    home = find("truth_inference", folder, files, download=download)
    votes, truth = (csv_rows(read(home, file)) for file in files)
    items = sorted({int(row["item"]) for row in votes})
    labels = sorted({int(row["label"]) for row in votes})
    crowd = coded(
        [int(row["item"]) for row in votes],
        [int(row["worker"]) for row in votes],
        np.searchsorted(labels, [int(row["label"]) for row in votes]),
        labels,
        items=items,
    )
    gold = np.full(len(items), -1)
    known = np.searchsorted(items, [int(row["item"]) for row in truth])
    gold[known] = np.searchsorted(labels, [int(row["truth"]) for row in truth])
    return KnownTruth(items, crowd, gold)


def _files(name: TruthInference) -> list[File]:
    place, *pins = _FILES[name]
    kinds = ("label.csv", "truth.csv")
    return [
        pinned(_ORIGIN, f"{place}/{kind}", *pin, name=f"{name}/{kind}")
        for kind, pin in zip(kinds, pins, strict=True)
    ]
