"""One accuracy for every annotator: Dawid and Skene's model with a single coin."""

from __future__ import annotations

import numpy as np

from slencodings.aggregate import em
from slencodings.aggregate.result import Aggregate, OnStep
from slencodings.annotations import Annotations
from slencodings.choices import ClassPrior, check_word
from slencodings.opinion import Floats


def one_coin(
    annotations: Annotations,
    *,
    n_iter: int = 100,
    tol: float = 1e-5,
    prior: ClassPrior = "learned",
    prior_strength: float = 1.0,
    gold: em.Gold = None,
    use_confidence: bool = True,
    progress: OnStep | None = None,
) -> Aggregate:
    """Infer the truth and one accuracy per annotator by EM (Zhang et al. 2016).

    log q_ic = log p_c + sum_q w_q (y_qc log r_m + (1 - y_qc) log((1 - r_m) / (K - 1))),
    r_m = (0.9 s + sum_q w_q sum_c q_ic y_qc) / (s + sum_q w_q),   p = mean q

    The arguments are those of `dawid_skene`; s is `prior_strength`. `prior="uniform"` keeps p alike
    for all labels: on few items a learned one runs away with the label that most have.

    Returns
    -------
    `reliability` is r (M,); `details` has kappa (M,), prior (K,), elbo, converged and iterations.
    An annotator without annotations has 0.9, and 1 / K if s = 0.

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 0]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> one_coin(crowd).reliability.round(2)
    array([0.97, 0.97, 0.3 ])
    """
    check_word("prior", prior, ClassPrior)
    em.check_steps(n_iter, tol)
    em.check_strength("prior_strength", prior_strength, "0 turns it off.")
    known = em.gold_codes(annotations, gold)
    ballots = em.ballots_of(annotations, use_confidence=use_confidence)
    N, M, K = ballots.shape
    votes = ballots.by_choice(ballots.weight)
    given = ballots.by_annotator(ballots.weight)
    A, by_annotator = ballots.tables(ballots.choice, ballots.annotator, (N * K, M))
    del ballots
    pseudo = em.EXPECTED_ACCURACY * prior_strength

    def fit(q: Floats) -> Floats:
        asked = given + prior_strength
        right = by_annotator @ q.ravel() + pseudo
        return np.divide(right, asked, out=np.full(M, 1 / K), where=asked > 0)

    def log_likelihood(r: Floats) -> tuple[Floats, float]:
        # With one label nobody can be wrong, and the second line is multiplied by nothing.
        log_right = np.log(np.clip(r, em.FLOOR, 1))
        log_wrong = np.log(np.clip(1 - r, em.FLOOR, 1) / max(K - 1, 1))
        odds = (A @ (log_right - log_wrong)).reshape(N, K)
        # Every vote is wrong before it is right for one label.
        doubt = np.sum(pseudo * log_right + (prior_strength - pseudo) * log_wrong)
        return odds, float(np.sum(given * log_wrong) + doubt)

    learned = em.learn(
        votes, known, fit, log_likelihood, n_iter=n_iter, tol=tol, progress=progress, prior=prior
    )
    r = np.clip(learned.annotators, 0, 1)
    same = np.sum(learned.prior**2)
    chance = r * same + (1 - r) * (1 - same) / max(K - 1, 1)
    details = {"kappa": em.above_chance(r, chance)} | learned.details
    return Aggregate(learned.probability, r, details)
