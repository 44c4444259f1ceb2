"""Bayesian classifier combination: confusions with their uncertainty, and types of items."""

from __future__ import annotations

import numpy as np

from slencodings.aggregate import em
from slencodings.aggregate.result import Aggregate, OnStep
from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats


def bcc(
    annotations: Annotations,
    *,
    types: int = 1,
    n_iter: int = 100,
    tol: float = 1e-5,
    prior_strength: float = 1.0,
    gold: em.Gold = None,
    use_confidence: bool = True,
    rng: np.random.Generator | None = None,
    progress: OnStep | None = None,
) -> Aggregate:
    """Infer the truth, with what is not known of confusions and labels summed out.

    log q_ih = E log p_h + sum_q w_q sum_l y_ql E log E_mhl + const,   h = (label c, type t),
    E_mh ~ Dirichlet(s_c + sum_q w_q q_ih y_q),   p ~ Dirichlet(1 + sum_i q_ih)

    by variational Bayes. With one type an item is Kim & Ghahramani's IBCC (2012). With several,
    items of one label come in types on which all annotators change what they say together, so that
    errors may be shared, as in EBCC (Li et al. 2019), where annotators' confusions belong to types.

    Parameters
    ----------
    types : of items for each label
    n_iter, tol : stop after so many iterations, or where no probability moves by more than tol
    prior_strength : sum of s_c, pseudo-annotations of each label and type by each annotator, 0.9 of
        them right
    gold, use_confidence, progress : as in `dawid_skene`
    rng : gives items a first type, where there are several; a generator of seed 0 when absent

    Returns
    -------
    `reliability` (M,) is the expected accuracy; `details` has kappa (M,), confusion (M, K, K) by
    truth and label said, confusion_by_type (M, K, T, K), prior (K,), prior_by_type (K, T),
    converged and iterations.

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 0]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> bcc(crowd).probability.argmax(axis=1)
    array([0, 1])
    """
    from scipy.special import digamma

    em.check_count("types", types)
    em.check_steps(n_iter, tol)
    em.check_strength("prior_strength", prior_strength, "1 is usual.")
    known = em.gold_codes(annotations, gold)
    ballots = em.ballots_of(annotations, use_confidence=use_confidence)
    N, M, K = ballots.shape
    A, by_cell = ballots.tables(ballots.item, ballots.cell, (N, M * K))
    votes = ballots.by_choice(ballots.weight)
    del ballots
    informed = (np.sum(votes, axis=1) > 0) | (known >= 0)
    expected = max(prior_strength, em.FLOOR) * em.expected_answers(K)
    pseudo = np.repeat(expected, types, axis=0).T  # (K said, H)
    q = _start(votes, known, types, rng)
    converged, iterations, count = False, 0, np.ones(K * types)

    def counted(q: Floats) -> tuple[Floats, Floats]:
        """The Dirichlets: of what annotators say (M, K, H), and of how common each kind is (H,)."""
        return (by_cell @ q).reshape(M, K, K * types) + pseudo, 1.0 + np.sum(q[informed], axis=0)

    while iterations < n_iter and not converged:
        alpha, count = counted(q)
        log_E = digamma(alpha) - digamma(np.sum(alpha, axis=1, keepdims=True))
        log_p = digamma(count) - digamma(np.atleast_1d(np.sum(count)))
        log_joint = A @ log_E.reshape(M * K, K * types) + log_p
        new = _pinned(em.posterior(log_joint, np.full(N, -1))[0], log_joint, known, types)
        moved = np.abs(new[informed] - q[informed])
        converged = bool(np.max(moved, initial=0.0) <= tol)
        q, iterations = new, iterations + 1
        if progress is not None:
            progress(iterations, n_iter)
    truth = np.sum(q.reshape(N, K, types), axis=2)
    # Nothing is known of an item that nobody labelled, but how common labels were a step ago.
    truth[~informed] = np.sum((count / np.sum(count)).reshape(K, types), axis=1)
    accuracy, details = _means(*counted(q), types)
    return Aggregate(truth, accuracy, details | {"converged": converged, "iterations": iterations})


def _means(alpha: Floats, count: Floats, types: int) -> tuple[Floats, dict[str, Floats]]:
    """What the means of the Dirichlets say of labels and annotators; accuracy (M,) first."""
    M, K, _ = alpha.shape
    p = (count / np.sum(count)).reshape(K, types)
    by_type = (alpha / np.sum(alpha, axis=1, keepdims=True)).reshape(M, K, K, types)
    confusion = np.einsum("mlct,ct->mcl", by_type, p / np.sum(p, axis=1, keepdims=True))
    prior = np.sum(p, axis=1)
    accuracy, kappa = em.accuracy_and_kappa(prior, confusion)
    return accuracy, {
        "kappa": kappa,
        "confusion": confusion,
        "confusion_by_type": np.moveaxis(by_type, 1, 3),
        "prior": prior,
        "prior_by_type": p,
    }


def _start(votes: Floats, gold: Codes, types: int, rng: np.random.Generator | None) -> Floats:
    """Shares of votes, spread over the types at random, (N, K * T)."""
    N, K = votes.shape
    cast = np.sum(votes, axis=1, keepdims=True)
    share = np.divide(votes, cast, out=np.full(votes.shape, 1 / K), where=cast > 0)
    em.pin(share, gold)
    if types == 1:
        return share
    rng = np.random.default_rng(0) if rng is None else rng
    kind = rng.dirichlet(np.ones(types), size=N)
    return (share[:, :, None] * kind[:, None]).reshape(N, K * types)


def _pinned(q: Floats, log_joint: Floats, gold: Codes, types: int) -> Floats:
    """The same, but gold items have their label, in whichever type."""
    known = np.flatnonzero(gold >= 0)
    if not len(known):
        return q
    H: int = q.shape[1]
    of_label = np.arange(H) // types
    allowed = of_label == gold[known][:, None]
    only = np.where(allowed, log_joint[known], -np.inf)
    q[known] = em.posterior(only, np.full(len(known), -1))[0]
    return q
