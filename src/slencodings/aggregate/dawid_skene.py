"""Dawid and Skene: a confusion matrix for every annotator, and the truth they agree on."""

from __future__ import annotations

import numpy as np

from slencodings.aggregate import em
from slencodings.aggregate.result import Aggregate, OnStep
from slencodings.annotations import Annotations
from slencodings.opinion import Floats


def dawid_skene(
    annotations: Annotations,
    *,
    n_iter: int = 100,
    tol: float = 1e-5,
    prior_strength: float = 1.0,
    gold: em.Gold = None,
    use_confidence: bool = True,
    progress: OnStep | None = None,
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
    >>> table = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 0]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> dawid_skene(crowd).reliability.round(2)
    array([0.95, 0.95, 0.45])
    """
    em.check_steps(n_iter, tol)
    em.check_strength("prior_strength", prior_strength, "0 turns it off.")
    known = em.gold_codes(annotations, gold)
    ballots = em.ballots_of(annotations, use_confidence=use_confidence)
    N, M, K = ballots.shape
    A, by_cell = ballots.tables(ballots.item, ballots.cell, (N, M * K))
    votes = ballots.by_choice(ballots.weight)
    used = ballots.by_cell(ballots.weight)[:, :, None] > 0
    del ballots

    pseudo = prior_strength * em.expected_answers(K)

    def fit(q: Floats) -> Floats:
        mass = (by_cell @ q).reshape(M, K, K) + pseudo
        if prior_strength == 0:
            # Only labels that an annotator used can be impossible by accident.
            mass = np.where(used, np.maximum(mass, em.FLOOR), 0)
        total = np.sum(mass, axis=1, keepdims=True)
        return np.divide(mass, total, out=np.full(mass.shape, 1 / K), where=total > 0)

    def log_likelihood(E: Floats) -> tuple[Floats, float]:
        log_E = np.log(E, out=np.zeros(E.shape), where=E > 0)
        return A @ log_E.reshape(M * K, K), float(np.sum(pseudo * log_E))

    learned = em.learn(votes, known, fit, log_likelihood, n_iter=n_iter, tol=tol, progress=progress)
    confusion = np.swapaxes(learned.annotators, 1, 2)
    accuracy, kappa = em.accuracy_and_kappa(learned.prior, confusion)
    details = {"kappa": kappa, "confusion": confusion}
    return Aggregate(learned.probability, accuracy, details | learned.details)
