"""Real crowds in the shared folder, and made-up files in their form."""

import csv
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slencodings.datasets import download
from slencodings.datasets.cifar10s import cifar10s
from slencodings.datasets.convabuse import convabuse
from slencodings.datasets.mre import mre
from slencodings.datasets.rte import rte
from slencodings.datasets.truth_inference import truth_inference
from slencodings.datasets.uds_factuality import uds_factuality

SHARED = Path(__file__).parents[1].parent / "shared" / "datasets"
LOADERS = {
    "rte": rte,
    "uds_factuality": uds_factuality,
    "cifar10s": cifar10s,
    "convabuse": convabuse,
    "mre": mre,
}
KNOWN_TRUTH = ("web", "trec", "sentiment", "adult", "fact_eval")


def module(name):
    """The module of a loader, which has the name of the function in it."""
    return sys.modules[f"slencodings.datasets.{name}"]


@cache
def loaded(name, **how) -> Any:
    return truth_inference(name, **how) if name in KNOWN_TRUTH else LOADERS[name](**how)


def real(name, **how) -> Any:
    """A crowd, or a skip."""
    try:
        return loaded(name, **how)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


def original(path):
    """A file in the shared folder, or a skip."""
    if not (SHARED / path).exists():
        pytest.skip(f"{SHARED / path} is not there")
    return SHARED / path


def rows_of(path):
    with original(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def unpin(monkeypatch):
    """Let made-up files be read: what they must be is not looked at."""
    monkeypatch.setattr(download, "check", lambda file, data, path: file.content(data))


def per_item(crowd):
    n = np.bincount(crowd.annotations.item, minlength=len(crowd.annotations.items))
    return dict(sorted(Counter(n.tolist()).items()))


def repeats(crowd):
    """(item, annotator) pairs that occur more than once, and how often."""
    said = crowd.annotations
    pairs = Counter(zip(said.item.tolist(), said.annotator.tolist(), strict=True))
    return Counter(n for n in pairs.values() if n > 1)


def votes_of(crowd):
    return crowd.annotations.sums()


def write_rows(path, rows, delimiter=","):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
