"""Dawid and Skene's model with every annotator's confusions shrunk to what the crowd confuses."""

from __future__ import annotations

import numpy as np

from slencodings.aggregate import em
from slencodings.aggregate.result import Aggregate, OnStep
from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats

# An annotator's accuracy is as strong as the crowd's once it is seen in so many annotations.
_ACCURACY_OF_THE_CROWD = 30.0
# Labels are held to be as common as they are said, as strongly as by a tenth of a pair of votes on
# each item and by a hundred pairs for each label. Pairs cannot tell a label that is said too
# often from one that is common, nor can few items, and EM would go on until most items have one
# label; where there are more votes, they outweigh this.
_AS_SAID, _AS_SAID_FOR_LABEL = 0.1, 100.0
# People are held to be usually right, as strongly as by so many annotations of each true label.
_USUALLY_RIGHT = 3.0
# An accuracy of 0 or 1 has no odds to compare; this far from either it counts as that.
_NEARLY = 1e-3


def shrunk_dawid_skene(
    annotations: Annotations,
    *,
    n_iter: int = 100,
    tol: float = 1e-5,
    prior_strength: float = 3.0,
    gold: em.Gold = None,
    use_confidence: bool = True,
    log_source: Floats | None = None,
    along_order: bool = False,
    progress: OnStep | None = None,
) -> Aggregate:
    """Infer the truth and each annotator's confusions, shrunk to the crowd's, by EM.

    log q_ic = log p_c + sum_q w_q sum_l y_ql log E_mcl + const,
    E_mcl ~ s X_mcl + sum_q w_q q_ic y_ql,   p = (1 - h) mean q + h v

    X is what to expect of an annotator of whom only the accuracy is known (`expected_confusions`),
    learned along with the rest; `along_order`, by how many steps they tend to be off, where labels
    have an order (`steps_from_truth`). v is how common labels are among the votes, and h is
    (N / 10 + 100 K) / P, at most 1, with P how many pairs of votes on one item there are. The
    arguments are those of `dawid_skene`; s is `prior_strength`. `log_source` (N, K) is added to
    log q: what is known of each item besides its annotations.

    Returns
    -------
    `reliability` (M,) is the expected accuracy, sum_c p_c E_mcc; `details` has kappa (M,),
    confusion (M, K, K) by truth and label said, crowd (K, K), the same of everybody together,
    prior (K,), elbo, converged and iterations.

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 0]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> shrunk_dawid_skene(crowd).probability.round(2)
    array([[0.95, 0.05],
           [0.05, 0.95]])
    """
    em.check_steps(n_iter, tol)
    em.check_strength("prior_strength", prior_strength, "3 is usual.")
    known = em.gold_codes(annotations, gold)
    ballots = em.ballots_of(annotations, use_confidence=use_confidence)
    N, M, K = ballots.shape
    A, by_cell = ballots.tables(ballots.item, ballots.cell, (N, M * K))
    votes = ballots.by_choice(ballots.weight)
    used = ballots.by_cell(ballots.weight)
    own = habits(used)
    as_said = _AS_SAID * np.count_nonzero(np.any(votes > 0, axis=1)) + _AS_SAID_FOR_LABEL * K
    del ballots

    def mass(q: Floats) -> Floats:
        return np.swapaxes((by_cell @ q).reshape(M, K, K), 1, 2)

    def fit(q: Floats) -> Floats:
        answers = mass(q)
        expected = steps_from_truth(answers) if along_order else expected_confusions(answers, own)
        return confusions(answers, expected, prior_strength)

    def log_likelihood(E: Floats) -> tuple[Floats, float]:
        return A @ np.swapaxes(np.log(E), 1, 2).reshape(M * K, K), 0.0

    learned = em.learn(
        votes, known, fit, log_likelihood,
        n_iter=n_iter, tol=tol, progress=progress, as_said=as_said, log_source=log_source,
        leaps_of=np.any(used > 0, axis=1),
    )  # fmt: skip
    accuracy, kappa = em.accuracy_and_kappa(learned.prior, learned.annotators)
    details = {
        "kappa": kappa,
        "confusion": learned.annotators,
        "crowd": crowd_confusion(mass(learned.probability)),
    }
    return Aggregate(learned.probability, accuracy, details | learned.details)


def confusions(mass: Floats, expected: Floats, strength: float) -> Floats:
    """What each annotator says (last) where a label is true, (M, K, K), none of it impossible.

    Parameters
    ----------
    mass : (M, K, K), how often each was heard to say a label where one is true, weighted
    expected : (M, K, K), what to expect of each
    strength : of what is expected of them, in annotations of each true label
    """
    total = mass + max(strength, em.FLOOR) * expected
    # NumPy's own sums along so short an axis take five times as long.
    return total / np.einsum("mcl->mc", total)[..., None]


def habits(used: Floats) -> Floats:
    """What each annotator who does not look says where a label is not true, (M, K, K).

    `used` (M, K) is how often each used a label, weighted.
    """
    habit = used + np.sum(used, axis=0) / max(np.sum(used), 1) + em.FLOOR
    wrong = habit[:, None] * ~np.eye(used.shape[1], dtype=bool)
    total = np.sum(wrong, axis=-1, keepdims=True)
    return np.divide(wrong, total, out=wrong, where=total > 0)  # of one label, none is wrong


def expected_confusions(mass: Floats, own: Floats) -> Floats:
    """What the crowd says where a label is true, at each annotator's own accuracy, (M, K, K).

    The odds of being right are the crowd's on that label, times how much better the annotator's
    are than the crowd's on the same items. Wrong answers are half the crowd's, and half what the
    annotator says anyway, as of somebody who does not look: `own`, of `habits`.
    """
    K = mass.shape[-1]
    if K == 1:
        return np.ones(mass.shape)
    crowd = crowd_confusion(mass)
    right, asked = np.diag(crowd), np.sum(mass, axis=(1, 2))
    usual: Floats = np.einsum("mcl,c->m", mass, right)
    usual = np.divide(usual, asked, out=np.full(len(asked), np.mean(right)), where=asked > 0)
    hits = np.einsum("mcc->m", mass) + _ACCURACY_OF_THE_CROWD * usual
    better = _logit(hits / (asked + _ACCURACY_OF_THE_CROWD)) - _logit(usual)
    accuracy = 1 / (1 + np.exp(-_logit(right) - better[:, None]))
    shared = crowd * ~np.eye(K, dtype=bool)
    shared /= np.sum(shared, axis=-1, keepdims=True)
    expected: Floats = shared + own
    expected *= ((1 - accuracy) / 2)[..., None]
    np.einsum("mcc->mc", expected)[:] = accuracy
    return expected


def steps_from_truth(mass: Floats) -> Floats:
    """What annotators say where labels have an order, (M, K, K): so many steps from the truth.

    X_mcl ~ r_m(l - c),   r_m(d) = (D_md + s r(d)) / (E_md + s),   r(d) = D_d / E_d

    D counts how often somebody said a label d steps above the true one and E how often that could
    be, as there is such a label. So who is severe with one label is expected to be so with all.
    """
    M, K, _ = mass.shape
    place = np.arange(K, dtype=np.intp)
    step: Codes = np.subtract.outer(-place, -place) + K - 1
    each = mass.reshape(M, K * K)
    asked = np.repeat(np.sum(mass, axis=2), K, axis=1)
    D, E = (np.stack([np.bincount(step.ravel(), x, 2 * K - 1) for x in y]) for y in (each, asked))
    c = em.EXPECTED_ACCURACY
    usual = np.full(2 * K - 1, (1 - c) / max(K - 1, 1))
    usual[K - 1] = c
    crowd = (np.sum(D, axis=0) + usual) / (np.sum(E, axis=0) + 1)
    own = (D + _ACCURACY_OF_THE_CROWD * crowd) / (E + _ACCURACY_OF_THE_CROWD)
    X = own[:, step]
    return X / np.sum(X, axis=2, keepdims=True)


def crowd_confusion(mass: Floats) -> Floats:
    """What everybody together says (column) where a label is true (row), (K, K).

    Three annotations more of each true label, 0.9 of them right, keep every answer possible.
    """
    total = np.sum(mass, axis=0) + _USUALLY_RIGHT * em.expected_answers(mass.shape[-1])
    return total / np.sum(total, axis=1, keepdims=True)


def _logit(p: Floats) -> Floats:
    p = np.clip(p, _NEARLY, 1 - _NEARLY)
    return np.log(p / (1 - p))
