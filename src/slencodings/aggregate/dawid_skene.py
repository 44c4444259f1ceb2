"""Dawid and Skene: a confusion matrix for every annotator, and the truth they agree on."""

from __future__ import annotations

from typing import Any

import numpy as np

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


def dawid_skene(
    annotations: Annotations,
    *,
    n_iter: int = 100,
    tol: float = 1e-5,
    prior_strength: float = 1.0,
    gold: Any = None,
    use_confidence: bool = True,
    progress: Progress | None = None,
) -> Aggregate:
    """Infer the truth and each annotator's confusions by EM (Dawid & Skene 1979).

    log q_ic = log p_c + sum_q w_q sum_l y_ql log E_mcl + const,
    E_mcl ~ s_cl + sum_q w_q q_ic y_ql,   p = mean q,   from the vote shares; p where nobody voted

    Parameters
    ----------
    n_iter, tol : stop after so many iterations, or where the bound grows by less per annotation
    prior_strength : sum_l s_cl, pseudo-annotations of each class by each annotator, 0.9 of them
        right; 0 is maximum likelihood
    gold : mapping from item to label, or positions (N,) with -1 for unknown
    use_confidence : w = 1 - uncertainty (w = 1 where nobody told), else w = 1
    progress : called after each iteration with how many are done and n_iter

    Returns
    -------
    `reliability` (M,) is the expected accuracy, sum_c p_c E_mcc; `details` has kappa (M,), the
    same above chance (clip at 0 before use); confusion (M, K, K) by truth and label said; prior
    (K,); elbo, the log-posterior per iteration; converged; iterations.

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 0]}
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> dawid_skene(crowd).reliability.round(2)
    array([0.95, 0.95, 0.45])
    """
    check_steps(n_iter, tol)
    check_strength("prior_strength", prior_strength, "0 turns it off.")
    known = gold_codes(annotations, gold)
    said = ballots(annotations, use_confidence=use_confidence)
    N, M, K = said.shape
    A = said.table(said.item, said.cell, (N, M * K))
    votes = said.by_choice(said.weight)
    seen = said.by_cell(said.weight)[:, :, None] > 0
    cast = np.sum(votes, axis=-1, keepdims=True)
    weight = max(float(np.sum(said.weight)), 1)
    del said
    informed = (cast[:, 0] > 0) | (known >= 0)
    used = np.sum(votes, axis=0) + np.bincount(known[known >= 0], minlength=K)

    c = EXPECTED_ACCURACY
    pseudo = prior_strength * np.where(np.eye(K), c, (1 - c) / max(K - 1, 1))

    def fit(q: Floats) -> tuple[Floats, Floats]:
        mass: Floats = (A.T @ q).reshape(M, K, K) + pseudo
        if prior_strength == 0:
            # Only labels that an annotator used can be impossible by accident.
            mass = np.where(seen, np.maximum(mass, FLOOR), 0)
        total = np.sum(mass, axis=1, keepdims=True)
        E = np.divide(mass, total, out=np.full(mass.shape, 1 / K), where=total > 0)
        return class_prior(q, informed, used), E

    q = np.divide(votes, cast, out=votes, where=cast > 0)
    pin(q, known)
    p, E = fit(q)
    bounds: list[float] = []
    converged = False
    while len(bounds) < n_iter and not converged:
        log_E = np.log(E, out=np.zeros(E.shape), where=E > 0)
        log_joint = A @ log_E.reshape(M * K, K)
        log_joint += safe_log(p)
        q, evidence = posterior(log_joint, known)
        # After the E-step the bound is the evidence itself, each item's prior counted once.
        bounds.append(float(np.sum(evidence) + np.sum(pseudo * log_E)))
        p, E = fit(q)
        gain = bounds[-1] - bounds[-2] if len(bounds) > 1 else np.inf
        converged = bool(abs(gain) < tol * weight)
        if progress is not None:
            progress(len(bounds), n_iter)
    accuracy = np.clip(np.einsum("c,mcc->m", p, E), 0, 1)
    return Aggregate(
        q,
        accuracy,
        {
            "kappa": above_chance(accuracy, (E @ p) @ p),
            "confusion": np.swapaxes(E, 1, 2),
            "prior": p,
            "elbo": np.asarray(bounds),
            "converged": converged,
            "iterations": len(bounds),
        },
    )


def above_chance(accuracy: Floats, chance: Floats) -> Floats:
    """How much of the way from chance to certainty: (accuracy - chance) / (1 - chance), at most 1.

    0 where chance alone is always right: there is no skill to see.
    """
    room = 1 - chance
    gained = np.divide(accuracy - chance, room, out=np.zeros(room.shape), where=room > 1e-12)
    return np.minimum(gained, 1)
