"""Confidence, reliability and disagreement at once: UDS factuality.

Everything is learned on the published train split. Then each annotation of the test split is
predicted: from the other on its predicate, with nothing known of the sentence (votes); or from the
sentence, by a network trained on each kind of target (network).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from experiments import real
from experiments.data import PLANS, load, part
from experiments.rows import Job, Row
from slencodings import Annotations, aggregate, confidence, metrics
from slencodings.datasets import uds_factuality
from slencodings.trust import learn_crowd

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
)
# Networks are compared with the one that learns from shares of votes.
SOFT = "CE"
_RESAMPLES = 2_000
_ONE_COUNT = 1 / 3
_SEEDS = 5


def jobs() -> list[Job]:
    """Two splits to predict votes of, and a network for each method."""
    splits = [
        {"setting": split, "method": method} for split in ("dev", "test") for method in METHODS
    ]
    networks = [{"setting": "test", "method": method} for method in real.methods("uds")]
    return [{"experiment": "votes", **job, "seed": 0} for job in splits] + [
        {"experiment": "network", **job, "seed": 0} for job in networks
    ]


def rows(experiment: str, setting: str, method: str, seed: int) -> Iterator[Row]:
    """Means over items, and how far they are from those of the plain method, with 95 % limits.

    Items are drawn with replacement, the same for all methods.
    """
    plain = PLAIN if experiment == "votes" else SOFT
    if experiment == "votes":
        item, found = losses(setting)
        mine, theirs = _by_item(item, found[method]), _by_item(item, found[plain])
    else:
        mine, theirs = predicted(method), predicted(plain)
    rng = np.random.default_rng(seed)
    n = len(next(iter(mine.values())))
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES)
    for metric, score in SCORES[experiment].items():
        behind = score(mine, drawn) - score(theirs, drawn)
        once = np.ones((1, n))
        value = score(mine, once)[0]
        values = {
            metric: value,
            f"{metric}, change": value - score(theirs, once)[0],
            f"{metric}, low": np.quantile(behind, 0.025),
            f"{metric}, high": np.quantile(behind, 0.975),
        }
        for name, x in values.items():
            yield {
                "experiment": experiment,
                "setting": setting,
                "annotations": "all",
                "method": method,
                "seed": seed,
                "metric": name,
                "value": float(x),
            }


Parts = dict[str, Floats]


def _by_item(item: NDArray[np.intp], loss: Floats) -> Parts:
    return {"loss": np.bincount(item, loss), "votes": np.bincount(item).astype(float)}


def _log_loss(parts: Parts, times: Floats) -> Floats:
    return times @ parts["loss"] / (times @ parts["votes"])


def _jsd(parts: Parts, times: Floats) -> Floats:
    return times @ parts["jsd"] / times.sum(axis=1)


def _nes(parts: Parts, times: Floats) -> Floats:
    """The cosine of entropies, item by item as often as it was drawn; the mean over seeds."""
    h = parts["crowd"][:, None]
    both, own = times @ (h * parts["entropy"]), times @ parts["entropy"] ** 2
    return np.mean(both / np.sqrt((times @ h**2) * own), axis=1)


SCORES: dict[str, dict[str, Callable[[Parts, Floats], Floats]]] = {
    "votes": {"log-loss": _log_loss},
    "network": {"log-loss": _log_loss, "JSD": _jsd, "NES": _nes},
}


@lru_cache
def predicted(method: str) -> Parts:
    """What a network makes of each test item, (N,), mean over seeds; entropies (N, seeds)."""
    torch.set_num_threads(1)
    data = load("uds", layers=PLANS["uds"].layers)
    train, test = data.splits[0]
    crowd = part(data.tested, test)
    votes = crowd.sums()
    share = votes / votes.sum(axis=1, keepdims=True)
    p = [
        real.learn(data, method, train, test, seed, PLANS["uds"]).probability
        for seed in range(_SEEDS)
    ]
    return {
        "votes": votes.sum(axis=1),
        "loss": np.mean([votes.sum(axis=1) * metrics.cross_entropy(share, q) for q in p], axis=0),
        "jsd": np.mean([metrics.jsd(share, q, root=True) for q in p], axis=0),
        "crowd": metrics.cross_entropy(share, share),
        "entropy": np.stack([metrics.cross_entropy(q, q) for q in p], axis=1),
    }


@lru_cache
def losses(split: str) -> tuple[NDArray[np.intp], dict[str, Floats]]:
    """The item (R,) of each annotation that has another beside it; the losses (R,) by method."""
    data = uds_factuality()
    told = data.split[data.annotations.item]
    train, test = data.annotations.rows(told == "train"), data.annotations.rows(told == split)
    found = {
        "votes, one count each": _loss(test, np.full(len(test.item), _ONE_COUNT), train),
        PLAIN: _learned(train, test, by_annotator=False, by_confidence=False),
        "+ confidence as stated": _loss(test, aggregate.certainty(test), train),
    }
    earned = confidence.calibrate(train)(test.confidence)
    trust = aggregate.reliability_opinion(_sure(train), chance=True)
    for name, reliability, doubt in (
        ("+ confidence calibrated", None, earned),
        ("+ reliability from agreement", trust, np.zeros(len(test.item))),
        ("+ both of these", trust, earned),
    ):
        told_apart = replace(test, uncertainty=doubt)
        c = aggregate.certainty(told_apart, reliability=reliability)
        found[name] = _loss(test, c, train)
    for name, annotator, level in (
        ("+ confidence learned", False, True),
        ("+ reliability learned", True, False),
        ("+ both learned", True, True),
    ):
        found[name] = _learned(train, test, by_annotator=annotator, by_confidence=level)
    scored = ~np.isnan(found[PLAIN])
    _, item = np.unique(test.item[scored], return_inverse=True)
    return item, {name: loss[scored] for name, loss in found.items()}


def _learned(
    train: Annotations,
    test: Annotations,
    *,
    by_annotator: bool,
    by_confidence: bool,
) -> Floats:
    crowd = learn_crowd(_sure(train), by_annotator=by_annotator, by_confidence=by_confidence)
    loss = -np.sum(test.vectors * np.log(crowd.predict(_sure(test))), axis=1)
    return np.where(np.bincount(test.item)[test.item] > 1, loss, np.nan)


def _loss(test: Annotations, certainty: Floats, train: Annotations) -> Floats:
    a = train.sums().sum(axis=0)
    K = len(test.labels)
    return metrics.held_out_log_loss(
        test.item, test.y, certainty, n_labels=K, base_rate=a / a.sum(), each=True
    )


def _sure(annotations: Annotations) -> Annotations:
    return replace(annotations, uncertainty=np.zeros(len(annotations.item)))
