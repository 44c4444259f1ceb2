"""Do encodings recover the true distribution? Made-up crowds of the paper (Figure 1, Table 4).

(a) reliability varies at full confidence; (b) confidence varies at high, (c) at low reliability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from experiments.rows import Job, Row
from slencodings import Annotations, Opinion, aggregate, confidence, metrics
from slencodings.datasets import SyntheticCrowd, synthetic
from slencodings.trust import Ridge, learn_crowd

Floats = NDArray[np.float64]
Beta = tuple[float, float]

# From very low to perfect. Four are the sets of Table 3, the others fill the curves.
RANGE: dict[str, Beta] = {
    f"Beta({a:g}, {b:g})": (a, b)
    for a, b in (
        *((1, 10), (2, 10), (3, 10), (5, 10), (7, 10), (10, 10)),
        *((10, 7), (10, 5), (10, 3), (10, 2), (10, 1), (10, 0.5), (10, 0.2), (10, 0)),
    )
}
SETS = ("Beta(10, 0)", "Beta(10, 1)", "Beta(10, 10)", "Beta(1, 10)")
EXPERIMENTS = ("a", "b", "c")
METRICS = ("F1", "JSD", "NES")
METHODS = (
    *("MV", "Soft", "CrowdTruth", "Dawid-Skene", "SLE mode", "SLE mean"),
    "SLE mode, estimated reliability",
    "SLE mode, estimated confidence",
    "SLE mode, both estimated",
    "SLE mode, learned trust",
)


def jobs(seeds: int, *, quick: bool = False) -> list[Job]:
    """One crowd each; quick is the four sets of Table 3 alone."""
    settings = SETS if quick else RANGE
    return [
        {"experiment": experiment, "setting": setting, "seed": seed}
        for experiment in EXPERIMENTS
        for setting in settings
        for seed in range(seeds)
    ]


def rows(experiment: str, setting: str, seed: int) -> Iterator[Row]:
    """Every method on one crowd, on all annotations and on the more reliable half."""
    about: Row = {"experiment": experiment, "setting": setting, "seed": seed}
    crowd = draw(experiment, RANGE[setting], seed)
    estimated = agreement(crowd.annotations)
    for kind in ("all", "filtered"):
        for method, probability in predictions(crowd, estimated, half=kind == "filtered"):
            for metric, value in scores(crowd.truth, probability).items():
                yield about | {
                    "annotations": kind,
                    "method": method,
                    "metric": metric,
                    "value": value,
                }


def draw(experiment: str, varies: Beta, seed: int) -> SyntheticCrowd:
    """Ten annotators of 70 true labels. The seed alone decides the draws, whatever came before."""
    drawn = {
        "a": {"confidence": (10, 0), "reliability": varies},
        "b": {"confidence": varies, "reliability": (10, 1)},
        "c": {"confidence": varies, "reliability": (1, 10)},
    }[experiment]
    entropy = [seed, ord(experiment), *(round(10 * x) for x in varies)]
    return synthetic(rng=np.random.default_rng(entropy), **drawn)


def agreement(annotations: Annotations) -> Floats:
    """Reliability as a practitioner would estimate it: agreement with others beyond chance."""
    return aggregate.reliability_opinion(annotations, chance=True).probability[:, 0]


def predictions(
    crowd: SyntheticCrowd, estimated: Floats, *, half: bool
) -> Iterator[tuple[str, Floats]]:
    """What each method takes the true distributions for, by name.

    Who knows the reliability filters by it; who estimates it filters by the estimate.
    """
    said, guessed = crowd.annotations, crowd.annotations
    if half:
        said, _ = aggregate.filter_by_reliability(said, crowd.reliability, quantile=0.5)
        guessed, _ = aggregate.filter_by_reliability(guessed, estimated, quantile=0.5)
    yield "MV", aggregate.majority_vote(said).probability
    yield "Soft", aggregate.soft_vote(said).probability
    yield "CrowdTruth", aggregate.crowdtruth(said).probability
    hard = replace(said, y=said.y.argmax(axis=1))
    yield "Dawid-Skene", aggregate.dawid_skene(hard, use_confidence=False).probability
    r = crowd.reliability
    # One at a time, so that who wants the first few does not wait for the others.
    for name, encode in {
        "": lambda: aggregate.sle(said, reliability=r, smoothing=0),
        ", estimated reliability": lambda: aggregate.sle(
            guessed, reliability=estimated, smoothing=0
        ),
        ", estimated confidence": lambda: aggregate.sle(unsure(said), reliability=r, smoothing=0),
        ", both estimated": lambda: aggregate.sle(
            unsure(guessed), reliability=estimated, smoothing=0
        ),
        ", learned trust": lambda: learned(guessed),
    }.items():
        opinion = encode()
        yield f"SLE mode{name}", opinion.mode
        yield f"SLE mean{name}", opinion.probability


def unsure(annotations: Annotations) -> Annotations:
    """The same, with how spread out each label is in place of what annotators said of themselves.

    The paper's last section proposes it.
    """
    return replace(annotations, uncertainty=confidence.entropy(annotations.y))


def learned(annotations: Annotations) -> Opinion:
    """What people would say, learned from this crowd alone."""
    # Ridges as they are: choosing them would take most of the time of all experiments.
    return learn_crowd(annotations, ridge=Ridge()).votes(annotations)


def scores(truth: Floats, prediction: Floats) -> dict[str, float]:
    """F1 (macro and micro), JSD (mean distance) and NES. Of tied labels the first one counts."""
    y, p, K = first(truth), first(prediction), truth.shape[1]
    # As scikit-learn's f1_score, whose checks of what comes took four fifths of the time of all.
    right, size = np.bincount(y[y == p], minlength=K), np.bincount([*y, *p], minlength=K)
    return {
        "F1": float(np.mean(2 * right / np.maximum(size, 1))),
        "F1 micro": float(np.mean(y == p)),
        "JSD": float(np.mean(metrics.jsd(truth, prediction, root=True))),
        "NES": metrics.entropy_similarity(truth, prediction),
    }


def first(p: Floats) -> NDArray[np.intp]:
    """The first of the most probable labels; rounding breaks no tie."""
    return np.argmax(p >= np.max(p, axis=-1, keepdims=True) * (1 - 1e-12), axis=-1)
