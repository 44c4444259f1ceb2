"""What networks say of items, as probabilities and doubt, and how good that is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from slencodings import Annotations, metrics
from slencodings.evaluation import coverage, dirichlet_log_loss

Floats = NDArray[np.float64]


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

    def first(self, n: int) -> Guess:
        """The same of the first n items."""
        P, doubt, spread, information = self
        return Guess(
            P[:n],
            None if doubt is None else doubt[:n],
            spread[:n],
            None if information is None else information[:n],
        )


def scores(guess: Guess, asked: Annotations, gold: NDArray[np.intp]) -> dict[str, float]:
    """How good a guess is of votes and gold labels, and how well it knows its own errors.

    *JSD* is the mean distance (the root) from the shares of votes, *F1 macro* is of gold labels.
    *risk* is the share of errors among the surer, averaged over how many are taken: the area under
    the risk-coverage curve.
    """
    P, doubt, spread, _ = guess
    votes, known = asked.sums(), gold >= 0
    right = P[known].argmax(axis=1) == gold[known]
    truth, shares = np.eye(P.shape[1])[gold[known]], votes / votes.sum(axis=1)[:, None]
    result = {
        "votes": -float(np.mean(np.log(P[asked.item, asked.y]))),
        "JSD": float(np.mean(metrics.jsd(shares, P, root=True))),
        "accuracy": float(np.mean(right)),
        "F1 macro": metrics.macro_f1(truth, P[known]),
        "calibration, votes": metrics.calibration_error(shares, P),
        "calibration, gold": metrics.calibration_error(truth, P[known]),
        "votes together": float(
            np.sum(dirichlet_log_loss(votes.astype(int), P, spread)) / votes.sum()
        ),
        "coverage of 90 %": float(coverage(votes.astype(int), P, spread, levels=(0.9,))[0]),
    }
    for way, by in _ways(guess).items():
        result[f"errors by {way}"] = metrics.auroc(~right, by[known])
        result[f"risk by {way}"] = risk(~right, by[known])
    return result | ({} if doubt is None else {"doubt": float(np.mean(doubt))})


def scores_of_strange(guess: Guess, strange: NDArray[np.bool_]) -> dict[str, float]:
    """How well a guess knows what is strange to it."""
    return {f"strange by {way}": metrics.auroc(strange, by) for way, by in _ways(guess).items()}


def risk(wrong: NDArray[np.bool_], by: Floats) -> float:
    """The share of errors among the first n by rising doubt, averaged over n."""
    first = np.cumsum(wrong[np.argsort(by, kind="stable")])
    return float(np.mean(first / np.arange(1, len(wrong) + 1)))


def _ways(guess: Guess) -> dict[str, Floats]:
    """What errors and strange inputs may be found by."""
    P, doubt, _, information = guess
    ways = {"probability": -P.max(axis=1)}
    if doubt is None or information is None:
        return ways
    noise = metrics.cross_entropy(P, P) - information
    return ways | {"doubt": doubt, "information": information, "noise": noise}


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
