"""Crowds to compare methods on: those that are published, and anybody's folder of CSV files."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from benchmarks.votes.score import one_label_each
from slencodings import datasets
from slencodings.annotations import Annotations
from slencodings.choices import TruthInference
from slencodings.datasets.alttest import AltTest
from slencodings.evaluation.held_out import first_of_each
from slencodings.evaluation.measure import as_truth
from slencodings.files.crowd import read_crowd
from slencodings.opinion import Floats


class Crowd(NamedTuple):
    """Annotations with one label each, one per annotator and item; the truth (N, K) or none."""

    annotations: Annotations
    truth: Floats | None

    @property
    def fingerprint(self) -> str:
        """The same for the same data."""
        a = self.annotations
        parts = [a.item, a.annotator, a.y, a.uncertainty]
        parts += [] if self.truth is None else [self.truth]
        data = b"".join(np.ascontiguousarray(x).tobytes() for x in parts)
        return hashlib.sha256(data).hexdigest()[:12]


ALTTEST = ("10k_prompts", "cebab_stars", "lesion", "mtbench", "wax")
PUBLISHED: dict[str, Callable[[], Any]] = {
    "RTE": datasets.rte,
    "UDS factuality": datasets.uds_factuality,
    "ConvAbuse": datasets.convabuse,
    "MRE, cause": datasets.mre,
    "MRE, treat": partial(datasets.mre, relation="treat"),
    "CIFAR-10S": datasets.cifar10s,
    **{name: partial(datasets.truth_inference, name) for name in get_args(TruthInference)},
    **{f"{name}, people": partial(datasets.alttest, name) for name in ALTTEST},
}


def published(name: str, most: int) -> Crowd:
    """A published crowd, of at most so many items."""
    found = PUBLISHED[name]()
    a = found.annotations
    if isinstance(found, AltTest):
        return prepared(a.rows(found.people[a.annotator]), None, most)
    return prepared(a, as_truth(a, found.gold), most)


def from_folder(folder: Path) -> dict[str, Path]:
    """The CSV files of a folder, by their names."""
    found = {path.stem: path for path in sorted(folder.glob("*.csv"))}
    if not found:
        raise ValueError(
            f"a folder of crowds needs CSV files with columns item, annotator, label and perhaps "
            f"gold; {folder} has none."
        )
    return found


def from_csv(path: Path, most: int) -> Crowd:
    """A crowd of somebody's own, of at most so many items."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        heads = next(csv.reader(file), [])
    found = read_crowd(str(path), gold="gold" if "gold" in heads else None)
    return prepared(found.annotations, found.truth, most)


def prepared(annotations: Annotations, truth: Floats | None, most: int) -> Crowd:
    """As methods are given it; of many items some, first those whose truth is known."""
    a, _ = first_of_each(one_label_each(annotations))
    chance = np.random.default_rng(0).random(len(a.items))
    unknown = np.ones(len(a.items)) if truth is None else np.isnan(truth).any(axis=1)
    labelled = np.bincount(a.item, minlength=len(a.items)) > 0
    order = np.lexsort((chance, unknown))
    kept = np.sort(order[labelled[order]][:most])
    code = np.full(len(a.items), -1)
    code[kept] = np.arange(len(kept))
    some = a.rows(code[a.item] >= 0)
    people, who = np.unique(some.annotator, return_inverse=True)
    fewer = Annotations(
        item=code[some.item],
        annotator=who,
        y=some.y,
        uncertainty=some.uncertainty,
        items=a.items[kept],
        annotators=a.annotators[people],
        labels=a.labels,
        stated=some.stated,
        reliability=some.reliability,
    )
    return Crowd(fewer, None if truth is None else truth[kept])
