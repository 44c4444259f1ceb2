"""Confidence, reliability and disagreement at once: UDS factuality, votes that were not shown.

Everything is learned on the published train split. Then each annotation of the test split is
predicted from the other on its predicate. Nothing is known of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.rows import Job, Row
from slencodings import Annotations, aggregate, confidence, metrics
from slencodings.datasets import uds_factuality
from slencodings.trust import learn_trust

Floats = NDArray[np.float64]

# Others are compared with it: what votes are worth if nobody is told apart.
PLAIN = "votes, worth learned"
METHODS = (
    "votes, one count each",
    PLAIN,
    "+ confidence as stated",
    "+ confidence calibrated",
    "+ reliability from agreement",
    "+ both of these",
    "+ confidence learned",
    "+ reliability learned",
    "+ both learned",
    "+ both learned, and what a vote means",
)
_RESAMPLES = 2_000
_ONE_COUNT = 1 / 3


def jobs() -> list[Job]:
    """The two splits to test on."""
    return [{"experiment": "votes", "setting": split, "seed": 0} for split in ("dev", "test")]


def rows(experiment: str, setting: str, seed: int) -> Iterator[Row]:
    """Mean log-loss of each method, and how far it is from that of plain votes, with 95 % limits.

    Items are drawn with replacement, the same for all methods.
    """
    rng = np.random.default_rng(seed)
    item, found = losses(setting)
    n = int(item.max()) + 1
    counts = np.bincount(item, minlength=n)
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES)
    size = drawn @ counts
    plain = np.bincount(item, found[PLAIN], n)
    for method in METHODS:
        mine = np.bincount(item, found[method], n)
        ahead = drawn @ (mine - plain) / size
        values = {
            "log-loss": float(mine.sum() / counts.sum()),
            "less than plain votes": float((mine - plain).sum() / counts.sum()),
            "low": float(np.quantile(ahead, 0.025)),
            "high": float(np.quantile(ahead, 0.975)),
        }
        for metric, value in values.items():
            yield {
                "experiment": experiment,
                "setting": setting,
                "annotations": "all",
                "method": method,
                "seed": seed,
                "metric": metric,
                "value": value,
            }


@lru_cache
def losses(split: str) -> tuple[NDArray[np.intp], dict[str, Floats]]:
    """The item (R,) of each annotation that has another beside it; the losses (R,) by method."""
    data = uds_factuality()
    told = data.split[data.annotations.item]
    train, test = data.annotations.rows(told == "train"), data.annotations.rows(told == split)
    stated, asked = data.stated[told == "train"], data.stated[told == split]
    found = {
        "votes, one count each": _loss(test, np.full(len(asked), _ONE_COUNT), train),
        PLAIN: _learned(train, stated, test, asked, by_annotator=False, by_confidence=False),
        "+ confidence as stated": _loss(test, aggregate.certainty(test), train),
    }
    earned = confidence.calibrate(train, stated)(asked)
    trust = aggregate.reliability_opinion(_sure(train), chance=True)
    for name, reliability, doubt in (
        ("+ confidence calibrated", None, earned),
        ("+ reliability from agreement", trust, np.zeros(len(asked))),
        ("+ both of these", trust, earned),
    ):
        told_apart = replace(test, uncertainty=doubt)
        c = aggregate.certainty(told_apart, reliability=reliability)
        found[name] = _loss(test, c, train)
    for name, annotator, level, meaning in (
        ("+ confidence learned", False, True, False),
        ("+ reliability learned", True, False, False),
        ("+ both learned", True, True, False),
        ("+ both learned, and what a vote means", True, True, True),
    ):
        found[name] = _learned(
            train,
            stated,
            test,
            asked,
            by_annotator=annotator,
            by_confidence=level,
            meaning=meaning,
        )
    scored = ~np.isnan(found[PLAIN])
    _, item = np.unique(test.item[scored], return_inverse=True)
    return item, {name: loss[scored] for name, loss in found.items()}


def _learned(
    train: Annotations,
    stated: NDArray[np.intp],
    test: Annotations,
    asked: NDArray[np.intp],
    *,
    by_annotator: bool,
    by_confidence: bool,
    meaning: bool = False,
) -> Floats:
    trust = learn_trust(
        _sure(train),
        stated,
        by_annotator=by_annotator,
        by_confidence=by_confidence,
        meaning=meaning,
    )
    return trust.log_loss(_sure(test), asked)


def _loss(test: Annotations, certainty: Floats, train: Annotations) -> Floats:
    a = train.sums().sum(axis=0)
    K = len(test.labels)
    return metrics.held_out_log_loss(
        test.item, test.y, certainty, n_labels=K, base_rate=a / a.sum(), each=True
    )


def _sure(annotations: Annotations) -> Annotations:
    return replace(annotations, uncertainty=np.zeros(len(annotations.item)))
