"""One accuracy for every annotator: Dawid and Skene's model with a single coin."""

from __future__ import annotations

from typing import Any

import numpy as np

from slencodings.aggregate.dawid_skene import above_chance
from slencodings.aggregate.em import (
    EXPECTED_ACCURACY,
    FLOOR,
    Floats,
    ballots,
    check_steps,
    check_strength,
    class_prior,
    gold_codes,
    pin,
    posterior,
    safe_log,
)
from slencodings.aggregate.result import Aggregate, Progress
from slencodings.annotations import Annotations


def one_coin(
    annotations: Annotations,
    *,
    n_iter: int = 100,
    tol: float = 1e-5,
    prior_strength: float = 1.0,
    gold: Any = None,
    use_confidence: bool = True,
    progress: Progress | None = None,
) -> Aggregate:
    """Infer the truth and one accuracy per annotator by EM (Zhang et al. 2016).

    log q_ic = log p_c + sum_q w_q (y_qc log r_m + (1 - y_qc) log((1 - r_m) / (K - 1))),
    r_m = (0.9 s + sum_q w_q sum_c q_ic y_qc) / (s + sum_q w_q),   p = mean q

    The arguments are those of `dawid_skene`; s is `prior_strength`. `reliability` is r (M,);
    `details` has kappa (M,), prior (K,), elbo, converged and iterations. An annotator without
    annotations has 0.9, and 1 / K if s = 0.

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 0]}
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> one_coin(crowd).reliability.round(2)
    array([0.97, 0.97, 0.3 ])
    """
    check_steps(n_iter, tol)
    check_strength("prior_strength", prior_strength, "0 turns it off.")
    known = gold_codes(annotations, gold)
    said = ballots(annotations, use_confidence=use_confidence)
    N, M, K = said.shape
    votes = said.by_choice(said.weight)
    cast = np.sum(votes, axis=-1, keepdims=True)
    given = said.by_annotator(said.weight)
    A = said.table(said.choice, said.annotator, (N * K, M))
    weight = max(float(np.sum(said.weight)), 1)
    del said
    informed = (cast[:, 0] > 0) | (known >= 0)
    used = np.sum(votes, axis=0) + np.bincount(known[known >= 0], minlength=K)

    pseudo = EXPECTED_ACCURACY * prior_strength

    def fit(q: Floats) -> tuple[Floats, Floats]:
        right: Floats = A.T @ q.ravel() + pseudo
        asked = given + prior_strength
        r = np.divide(right, asked, out=np.full(M, 1 / K), where=asked > 0)
        return class_prior(q, informed, used), r

    q = np.divide(votes, cast, out=votes, where=cast > 0)
    pin(q, known)
    p, r = fit(q)
    bounds: list[float] = []
    converged = False
    while len(bounds) < n_iter and not converged:
        # With one label nobody can be wrong, and the second line is multiplied by nothing.
        log_right = np.log(np.clip(r, FLOOR, 1))
        log_wrong = np.log(np.clip(1 - r, FLOOR, 1) / max(K - 1, 1))
        odds = (A @ (log_right - log_wrong)).reshape(N, K)
        q, evidence = posterior(odds + safe_log(p), known)
        # Every vote is wrong before it is right for one label.
        bounds.append(
            float(
                np.sum(evidence)
                + np.sum(given * log_wrong)
                + np.sum(pseudo * log_right + (prior_strength - pseudo) * log_wrong)
            )
        )
        p, r = fit(q)
        gain = bounds[-1] - bounds[-2] if len(bounds) > 1 else np.inf
        converged = bool(abs(gain) < tol * weight)
        if progress is not None:
            progress(len(bounds), n_iter)
    r = np.clip(r, 0, 1)
    same = np.sum(p**2)
    chance = r * same + (1 - r) * (1 - same) / max(K - 1, 1)
    return Aggregate(
        q,
        r,
        {
            "kappa": above_chance(r, chance),
            "prior": p,
            "elbo": np.asarray(bounds),
            "converged": converged,
            "iterations": len(bounds),
        },
    )
