"""Which operator when? One thing at a time is changed about a usual crowd.

Ten annotators of 500 items with five labels, good ones (confidence and reliability from
Beta(10, 1), Set 2 of the paper) or poor ones (Beta(10, 10), Set 3). There is one right label and
they vote for one (facts); or opinions on the item are divided, truth is how far, and they vote for
one (views) or tell how far (soft labels). How much does the fused opinion know of the truth, and
does it know how much it knows?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

import slencodings as sle
from experiments.rows import Job, Row
from experiments.synthetic import agreement, scores
from slencodings import Annotations, Opinion, metrics
from slencodings.datasets.synthetic import recalibrate
from slencodings.trust import Ridge, learn_crowd

Floats = NDArray[np.float64]

SWEEPS: dict[str, tuple[float, ...]] = {
    "annotators": (1, 2, 3, 5, 10, 20, 50),
    "labels": (2, 3, 5, 10, 20),
    "items": (70, 300, 1_000, 10_000, 100_000),
    "noise": (0, 0.05, 0.1, 0.2, 0.3),
    "together": (0, 0.25, 0.5, 0.75, 1),
}
USUAL = {"annotators": 10, "labels": 5, "items": 500, "noise": 0, "together": 0}
CROWDS = {"good": (10, 1), "poor": (10, 10)}
KINDS = ("facts", "views", "soft labels")
OPERATORS: dict[str, Callable[[Opinion], Opinion]] = {
    "cumulative": sle.fuse,
    "average": sle.fuse_average,
    "weighted": sle.fuse_weighted,
    "constraint": sle.fuse_constraint,
    "compromise": sle.fuse_compromise,
}
METHODS = (
    *("soft vote", *OPERATORS),
    "cumulative, full trust",
    "cumulative, estimated reliability",
    "cumulative, learned trust",
)
# Compromise looks at every set of labels and every annotator at each: too much beyond these.
_COMPROMISE = {"labels": 5, "annotators": 20, "items": 1_000}
# Intervals are looked at on so many items, and trust is learned from so many.
_SEEN, _LEARNED = 500, 2_000
_LEVEL = 0.9


def jobs(seeds: int, *, quick: bool = False) -> list[Job]:
    """One crowd each; quick leaves out the largest value of everything."""
    return [
        {"experiment": f"{sweep}, {quality} crowd, {kind}", "setting": f"{value:g}", "seed": seed}
        for sweep, values in SWEEPS.items()
        for value in (values[:-1] if quick else values)
        for quality in CROWDS
        for kind in KINDS
        for seed in range(seeds)
    ]


def rows(experiment: str, setting: str, seed: int) -> Iterator[Row]:
    """Every operator on one crowd."""
    sweep, quality, kind = experiment.replace(" crowd", "").split(", ")
    about: Row = {"experiment": experiment, "setting": setting, "seed": seed, "annotations": "all"}
    crowd = USUAL | {sweep: float(setting)}
    # The same people and truths for every value, so that only what is changed makes a difference.
    rng = np.random.default_rng([seed, list(CROWDS).index(quality)])
    M = int(crowd["annotators"])
    c, r = rng.beta(*CROWDS[quality], (2, max(M, 50)))[:, :M]
    truth = rng.dirichlet(np.ones(int(crowd["labels"])), size=int(crowd["items"]))
    if kind == "facts":
        truth = np.eye(truth.shape[1])[truth.argmax(axis=1)]
    y = say(truth, c, r, together=crowd["together"], votes=kind != "soft labels", rng=rng)
    stated = np.clip(r + crowd["noise"] * rng.standard_normal(M), 0, 1)
    for method, found in predictions(y, c, stated, crowd):
        p = found.probability if isinstance(found, Opinion) else found
        measured = distances(truth, p)
        # A fact has probability 0 or 1, which no interval of a Dirichlet distribution contains.
        if isinstance(found, Opinion) and kind != "facts":
            measured |= sureness(truth, found)
        for metric, value in measured.items():
            yield about | {"method": method, "metric": metric, "value": value}


def say(
    truth: Floats,
    confidence: Floats,
    reliability: Floats,
    *,
    together: float,
    votes: bool,
    rng: np.random.Generator,
) -> Floats:
    """What everybody says about every item (N, M, K): Algorithm 1, with errors that may be shared.

    An annotator errs with probability 1 - r. With probability `together` the coin and the wrong
    order of labels are those of the item, the same for all, else they are their own. How often
    somebody errs does not depend on it.
    """
    (N, K), M = truth.shape, len(reliability)
    shared = rng.random((N, M)) < together
    coin = np.where(shared, rng.random((N, 1)), rng.random((N, M)))
    key = np.where(shared[..., None], rng.random((N, 1, K)), rng.random((N, M, K)))
    wrong = np.take_along_axis(truth[:, None], np.argsort(key, axis=-1), axis=-1)
    y = np.where((coin < reliability)[..., None], truth[:, None], wrong)
    y = recalibrate(y, confidence)
    if not votes:
        return y
    upto = np.cumsum(y, axis=-1)
    chosen = (upto <= rng.random((N, M, 1)) * upto[..., -1:]).sum(axis=-1)
    return np.eye(K)[chosen]


def predictions(
    y: Floats, c: Floats, r: Floats, crowd: dict[str, float]
) -> Iterator[tuple[str, Opinion | Floats]]:
    """What each operator makes of the crowd, and what some do who know less of it."""
    said = sle.encode(y, np.broadcast_to(1 - c, y.shape[:2]))
    believed = sle.discount(said, r)
    yield "soft vote", y.mean(axis=1)
    for name, operator in OPERATORS.items():
        if name != "compromise" or all(crowd[k] <= most for k, most in _COMPROMISE.items()):
            yield name, operator(believed)
    yield "cumulative, full trust", sle.fuse(said)
    if len(c) > 1:
        crowd_said = flat(y, c)
        some = crowd_said.rows(crowd_said.item < _LEARNED)
        estimated = agreement(some)
        yield "cumulative, estimated reliability", sle.fuse(sle.discount(said, estimated))
        learned = learn_crowd(some, ridge=Ridge())
        yield "cumulative, learned trust", learned.votes(crowd_said)


def flat(y: Floats, c: Floats) -> Annotations:
    """The same crowd as a list of annotations."""
    N, M, K = y.shape
    item, annotator = np.divmod(np.arange(N * M), M)
    names = {"items": np.arange(N), "annotators": np.arange(M), "labels": np.arange(K)}
    return Annotations(item, annotator, y.reshape(-1, K), 1 - c[annotator], **names)


def distances(truth: Floats, prediction: Floats) -> dict[str, float]:
    """How far a prediction is from the truth: F1, JSD, and what it costs in log-loss.

    loss = cross-entropy - entropy of the truth, in nats: KL(truth || prediction), 0 at best
    """
    kl = np.mean(metrics.cross_entropy(truth, prediction) - metrics.cross_entropy(truth, truth))
    found = scores(truth, prediction)
    return {"F1": found["F1"], "JSD": found["JSD"], "loss": float(kl)}


def sureness(truth: Floats, opinion: Opinion) -> dict[str, float]:
    """Whether the opinion is as sure as it may be.

    coverage: the share of true probabilities within their 90 % intervals. interval score (Gneiting
    & Raftery 2007): width + 20 x how far outside the truth lies; lower is better, and nobody gains
    by claiming to be more or less sure than they are.
    """
    some = Opinion(*(x[:_SEEN] for x in opinion))
    alpha, p = sle.alpha(some), truth[:_SEEN]
    tail = (1 - _LEVEL) / 2
    # Where there is no doubt left, or too little for the function, the mean is the interval.
    with np.errstate(invalid="ignore"):
        rest = alpha.sum(axis=-1, keepdims=True) - alpha
        low, high = (
            np.where(np.isnan(x), some.probability, x)
            for x in (beta.ppf(tail, alpha, rest), beta.ppf(1 - tail, alpha, rest))
        )
    outside = np.maximum(low - p, 0) + np.maximum(p - high, 0)
    return {
        "coverage": float(np.mean(outside == 0)),
        "interval score": float(np.mean(high - low + outside / tail)),
        "uncertainty": float(np.mean(opinion.uncertainty)),
    }
