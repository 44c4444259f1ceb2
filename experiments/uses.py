"""What are opinions for? Networks on the digits crowd: votes, errors, strange inputs, and doubt.

Every network is the same and is trained by the same plan; only target and loss differ. A network
that predicts opinions says how unsure it is by u; five networks say it by how far they differ; one
network of cross-entropy has nothing but its probabilities to say it by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import digamma
from scipy.stats import spearmanr

from experiments.rounds import PLANS, cut
from experiments.rows import Job, Row
from slencodings import Annotations, Opinion, aggregate, datasets, metrics, smooth
from slencodings.evaluation import coverage, dirichlet_log_loss
from slencodings.torch import SLEClassifier
from slencodings.trust import Crowd, count_each, learn_crowd

Floats = NDArray[np.float64]

METHODS = (
    "CE",
    "CE on learned votes",
    "five CE",
    "Votes",
    "SLE as stated",
    "SLE on learned votes",
    "SLE on learned truth",
)
# Those that say how unsure they are.
DOUBTING = METHODS[2:]
# How many items are learned from, and annotations on each; the other is as in the crowd.
ITEMS, ANNOTATIONS = (150, 300, 600, 1200), (1, 2, 3, 5, 10, 20)
USUAL_ITEMS, USUAL_ANNOTATIONS = 1200, 5
# Each seed leaves two digits out, so that five seeds leave out each of ten once.
SEEDS = 5
_HIDDEN, _MEMBERS, _SMOOTHING = 64, 5, 0.01


class Guess(NamedTuple):
    """What is predicted of n items.

    Attributes
    ----------
    probability : (n, K)
    doubt : (n,), u, or how far networks differ; None where nothing says it
    spread : (n,), 1 over the concentration of the Dirichlet predicted; 0 where there is none
    information : (n,), what knowing the probabilities would tell about the next vote
        ("epistemic"); the rest of the entropy of P is the noise that stays ("aleatoric")
    """

    probability: Floats
    doubt: Floats | None
    spread: Floats
    information: Floats | None = None


USUAL = ("all digits", "two left out")
OTHERS = (
    *(f"{n} items" for n in ITEMS if n != USUAL_ITEMS),
    *(f"{n} annotations" for n in ANNOTATIONS if n != USUAL_ANNOTATIONS),
)


def jobs(seeds: int = SEEDS, settings: Sequence[str] | None = None) -> list[Job]:
    """All methods as usual and without two digits; doubting ones with fewer and more to learn."""
    return [
        {"experiment": "uses", "setting": name, "method": method, "seed": seed}
        for names, methods in ((USUAL, METHODS), (OTHERS, DOUBTING))
        for seed in range(seeds)
        for name in names
        for method in methods
        if settings is None or name in settings
    ]


def rows(experiment: str, setting: str, method: str, seed: int) -> Iterator[Row]:
    """Learn from some digits and score what is said of 597 others."""
    torch.set_num_threads(1)
    crowd = datasets.digits_crowd(rng=seed, per_item=max(ANNOTATIONS))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(crowd.X))
    train, test = order[:USUAL_ITEMS], order[USUAL_ITEMS:]
    n, unit = setting.split(" ", 1) if setting[0].isdigit() else ("", "")
    if unit == "items":
        train = train[: int(n)]
    strange = np.isin(crowd.gold, (2 * seed, 2 * seed + 1))
    if setting == "two left out":
        train = train[~strange[train]]
    per_item = int(n) if unit == "annotations" else USUAL_ANNOTATIONS
    # The same votes are asked about, however many are learned from.
    asked = cut(crowd.annotations, USUAL_ANNOTATIONS, rng).of_items(test)
    taught = cut(crowd.annotations, per_item, rng).of_items(train)
    X = crowd.X.astype(np.float32)
    guess = learn(method, X[train], taught, X[test], seed)
    found = {"strange": strange[test]} if setting == "two left out" else {"gold": crowd.gold[test]}
    result = scores(guess, asked, **found)
    if method == "SLE as stated" and setting != "two left out":
        # Doubt is learned from what people state of items: is it foreseen of new ones?
        stated = aggregate.sle(asked, smoothing=_SMOOTHING).uncertainty
        result["doubt foreseen"] = float(spearmanr(guess.doubt, stated).statistic)
    for metric, value in result.items():
        yield {
            "experiment": experiment,
            "setting": setting,
            "annotations": "all",
            "method": method,
            "seed": seed,
            "metric": metric,
            "value": value,
        }


def scores(
    guess: Guess,
    asked: Annotations,
    gold: NDArray[np.intp] | None = None,
    strange: NDArray[np.bool_] | None = None,
) -> dict[str, float]:
    """How good a guess is of votes and gold labels; or how well it knows what is strange to it."""
    P, doubt, spread, information = guess
    ways = {"probability": -P.max(axis=1)}
    if doubt is not None and information is not None:
        noise = metrics.cross_entropy(P, P) - information
        ways |= {"doubt": doubt, "information": information, "noise": noise}
    if strange is not None:
        return {f"strange by {way}": metrics.auroc(strange, by) for way, by in ways.items()}
    assert gold is not None
    votes = asked.sums()
    right = P.argmax(axis=1) == gold
    result = {
        "votes": -float(np.mean(np.log(P[asked.item, asked.y]))),
        "accuracy": float(np.mean(right)),
        "calibration, votes": metrics.calibration_error(votes / votes.sum(axis=1)[:, None], P),
        "calibration, gold": metrics.calibration_error(np.eye(P.shape[1])[gold], P),
        "votes together": float(
            np.sum(dirichlet_log_loss(votes.astype(int), P, spread)) / votes.sum()
        ),
        "coverage of 90 %": float(coverage(votes.astype(int), P, spread, levels=(0.9,))[0]),
    }
    result |= {f"errors by {way}": metrics.auroc(~right, by) for way, by in ways.items()}
    return result | ({} if doubt is None else {"doubt": float(np.mean(doubt))})


def learn(
    method: str, X: NDArray[np.float32], crowd: Annotations, new: NDArray[np.float32], seed: int
) -> Guess:
    """Learn from a crowd in one of the ways, and say what new items are."""
    W = 2.0

    def network(objective: str, y: Any, seed: int = seed) -> Opinion:
        model = SLEClassifier(
            objective=objective,
            hidden=(_HIDDEN,),
            labels=list(range(len(crowd.labels))),
            prior_weight=W,
            random_state=seed,
            **PLANS["digits"]._asdict(),
        )
        return model.fit(X, y).predict_opinion(new)

    def certain(p: Floats, doubt: Floats | None = None) -> Guess:
        return Guess(p, doubt, np.zeros(len(p)))

    match method:
        case "CE":
            shares = aggregate.soft_vote(crowd).probability
            return certain(network("cross_entropy", shares).probability)
        case "CE on learned votes":
            shares = _learned(crowd).votes(crowd).probability
            return certain(network("cross_entropy", shares).probability)
        case "five CE":
            shares = aggregate.soft_vote(crowd).probability
            each = [
                network("cross_entropy", shares, _MEMBERS * seed + k).probability
                for k in range(_MEMBERS)
            ]
            return together(np.stack(each))
        case "Votes":
            said = network("votes", crowd.sums())
        case "SLE as stated":
            said = network("reverse_kl", aggregate.sle(crowd, smoothing=_SMOOTHING))
        case "SLE on learned votes" | "SLE on learned truth":
            learned = _learned(crowd)
            W = learned.prior_weight
            truth = method.endswith("truth")
            target = learned.truth(crowd) if truth else learned.votes(crowd)
            said = network("reverse_kl", smooth(target, _SMOOTHING))
        case _:
            raise ValueError(f"`method` must be one of {', '.join(METHODS)}; {method!r} came.")
    P, u = said.probability, said.uncertainty
    return Guess(P, u, u / W, information(P, u / W))


def information(P: Floats, spread: Floats) -> Floats:
    """What knowing p would tell about the next vote, of Dirichlets of mean P and 1 / spread counts.

    H(P) - E H(p),   E H(p) = psi(A + 1) - sum_k P_k psi(alpha_k + 1),   alpha = A P,   A = 1/spread
    """
    A = 1 / spread
    noise = digamma(A + 1) - np.sum(P * digamma(A[:, None] * P + 1), axis=1)
    return metrics.cross_entropy(P, P) - noise


def together(each: Floats) -> Guess:
    """Several networks (M, n, K) as one: their mean, and how far they differ.

    doubt: the information that knowing the network would give,   H(mean P) - mean H(P)
    spread: that of the Dirichlet with the networks' variance, 1 / A with
    1 / (1 + A) = sum_k var P_k / sum_k P_k (1 - P_k)
    """
    P = each.mean(axis=0)
    doubt = metrics.cross_entropy(P, P) - np.mean(
        [metrics.cross_entropy(p, p) for p in each], axis=0
    )
    share = each.var(axis=0).sum(axis=1) / np.sum(P * (1 - P), axis=1)
    doubt = np.maximum(doubt, 0)
    return Guess(P, doubt, share / (1 - share), doubt)


def _learned(crowd: Annotations) -> Crowd:
    """What is learned of a crowd; where no two annotations share an item, nothing can be."""
    shared = bool(np.any(np.bincount(crowd.item) > 1))
    return learn_crowd(crowd) if shared else count_each(crowd)
