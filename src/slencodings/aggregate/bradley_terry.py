"""Which of two is better: scores of what was compared, and opinions on pairs, by Bradley-Terry.

Judge m, shown option l on the left and r on the right, answers by the odds of Davidson (1970)

left : tie : right  =  exp(x / 2) : exp(t) : exp(-x / 2),   x = d_m (s_l - s_r) + b_m

s are the scores of options, d_m > 0 is how well a judge tells them apart (1 is usual, 0 would be
without looking), b_m how far they prefer the left whatever stands there, t how common ties are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from slencodings.annotations import sums_by
from slencodings.kinds.pairs import LABELS, Pairs
from slencodings.opinion import Codes, Floats, Opinion

# How far scores, and the logarithms of d and b, lie from 0 before anything is seen: standard
# deviations, chosen by judgments that were held out. Judges are all alike where that predicts best.
_SPREADS = (0.5, 1.5, 4.0)
_JUDGE_SPREADS = (0.0, 0.5)
_FOLDS = 4
# Options that are linked by comparisons are known together, which takes a matrix of this size.
MOST_LINKED = 3000


class Linked(NamedTuple):
    """Options that comparisons link, (Q,), their pairs, (I,), and the covariance of scores (Q, Q).

    Scores of different such sets are independent.
    """

    options: Codes
    pairs: Codes
    covariance: Floats


class BradleyTerry(NamedTuple):
    """What comparisons teach.

    Attributes
    ----------
    score, deviation : (P,), of options, with mean 0, and their standard deviations
    discrimination : d (M,), of judges
    side : b (M,), how far judges prefer the left, in logarithms of odds
    log_tie : t; minus infinity where nobody ever calls a tie
    opinion : binomial Opinion (N,), that the left one is better, a tie counting half; by scores
        alone, so without the side that anything stood on
    spread, judge_spread : how far scores and judges were let differ
    held_out : mean log-loss of judgments while choosing those; NaN if they were given
    converged : whether learning came to an end
    """

    score: Floats
    deviation: Floats
    discrimination: Floats
    side: Floats
    log_tie: float
    opinion: Opinion
    spread: float
    judge_spread: float
    held_out: float
    converged: bool

    def predict(self, pairs: Pairs) -> Floats:
        """The chance of left, tie and right for each judgment (R, 3), by who judges."""
        a = pairs.annotations
        x = self.score[pairs.left] - self.score[pairs.right]
        return davidson_chances(
            self.discrimination[a.annotator] * x[a.item] + self.side[a.annotator], self.log_tie
        )

    def information(self, x: Floats) -> Floats:
        """What a judgment by a usual judge tells of a difference of scores x, as Fisher has it."""
        return fisher_information(davidson_chances(x, self.log_tie))

    def linked(self, pairs: Pairs) -> list[Linked]:
        """The options that comparisons link, and what is not known of their scores."""
        return _linked(pairs, self.score, self.discrimination, self.side, self.log_tie, self.spread)


def bradley_terry(
    pairs: Pairs,
    *,
    spread: float | None = None,
    judge_spread: float | None = None,
    sides: bool = True,
    prior_weight: float = 2.0,
    rng: np.random.Generator | int = 0,
) -> BradleyTerry:
    """Score options by comparisons, with how well judges tell them apart and what side they favour.

    Scores, log d and b are normal around 0 before anything is seen, with standard deviation
    `spread` for scores and `judge_spread` for judges around what judges have in common; the most
    likely values are taken. An opinion has the mean and the variance that the scores give to "left
    is better" (Laplace's approximation, judges held fixed), so it grows surer as comparisons of
    both options, with each other or with others, add up.

    Parameters
    ----------
    spread, judge_spread : chosen by held-out judgments when absent; judge_spread=0: all alike
    sides : whether a side may be favoured; where places were drawn by lot, nothing is lost by it
    prior_weight : W of the Dirichlets that opinions stand for
    rng : a generator or the seed of one, for what is held out

    Examples
    --------
    >>> from slencodings import pairs_from_table
    >>> games = {"left": ["a", "a", "b", "c"], "right": ["b", "c", "c", "a"],
    ...          "winner": ["left", "left", "left", "right"]}
    >>> found = bradley_terry(pairs_from_table(games, left="left", right="right", winner="winner"))
    >>> bool(found.score[0] > found.score[2]), bool(found.opinion.probability[0, 0] > 0.5)
    (True, True)
    """
    _check(pairs, spread, judge_spread)
    tries = [
        (s, j)
        for s in (_SPREADS if spread is None else (spread,))
        for j in (_JUDGE_SPREADS if judge_spread is None else (judge_spread,))
        if j == 0 or len(pairs.annotations.annotators) > 1 or judge_spread is not None
    ]
    R, held_out = len(pairs.annotations.item), math.nan
    fold = np.random.default_rng(rng).permutation(np.arange(R) % _FOLDS)
    if len(tries) > 1:
        losses = {each: _held_out_loss(pairs, fold, *each, sides) for each in tries}
        held_out = min(losses.values())
        tries = [each for each in tries if losses[each] == held_out]
    spread, judge_spread = tries[0]
    at = _fit(pairs, spread, judge_spread, sides)
    score, d, b, t = at.unpack(pairs)
    variance, of_pair = _variances(pairs, _linked(pairs, score, d, b, t, spread), spread)
    x = score[pairs.left] - score[pairs.right]
    return BradleyTerry(
        score=score - np.mean(score),
        deviation=np.sqrt(variance),
        discrimination=d,
        side=b,
        log_tie=t,
        opinion=_opinions(x, of_pair, t, prior_weight),
        spread=spread,
        judge_spread=judge_spread,
        held_out=held_out,
        converged=at.converged,
    )


class _Found(NamedTuple):
    """The parameters in one row: P scores, M log d, M b around the shared one, that, and t."""

    theta: Floats
    ties: bool
    converged: bool

    def unpack(self, pairs: Pairs) -> tuple[Floats, Floats, Floats, float]:
        """Scores (P,), discrimination (M,), side (M,) and t."""
        P, M = len(pairs.options), len(pairs.annotations.annotators)
        s, log_d, b = np.split(self.theta[: P + 2 * M], [P, P + M])
        shared, t = self.theta[P + 2 * M :]
        return s, np.exp(log_d), b + shared, float(t) if self.ties else -math.inf


def _fit(pairs: Pairs, spread: float, judge_spread: float, sides: bool) -> _Found:
    """The likeliest parameters, by L-BFGS from scores of 0."""
    from scipy.optimize import minimize

    a, P = pairs.annotations, len(pairs.options)
    M, y, w = len(a.annotators), a.vectors, 1 - a.uncertainty
    left, right, who = pairs.left[a.item], pairs.right[a.item], a.annotator
    ties = bool(np.any(y[:, 1] > 0))
    learned = judge_spread > 0
    # What judges have in common is held back by a wide prior, or all for the left have no end.
    deviations = np.r_[np.full(P, spread), np.full(2 * M, judge_spread or 1.0), 3.0, 3.0]

    def objective(theta: Floats) -> tuple[float, Floats]:
        s, d, b, t = _Found(theta, ties, True).unpack(pairs)
        gap = s[left] - s[right]
        log_p = _log_chances(d[who] * gap + b[who], t)
        chance, p = np.sum(y * np.where(y > 0, log_p, 0), axis=1), np.exp(log_p)
        error = w[:, None] * (p - y)
        by_x = (error[:, 0] - error[:, 2]) / 2
        by_score = sums_by(left, by_x * d[who], P) - sums_by(right, by_x * d[who], P)
        by_judge = [sums_by(who, by_x * d[who] * gap, M), sums_by(who, by_x, M) * sides]
        shared = [np.sum(by_x) * sides, np.sum(error[:, 1]) * ties]
        gradient = np.concatenate([by_score, *(learned * g for g in by_judge), shared])
        z = theta / deviations
        return float(np.sum(z**2) / 2 - w @ chance), gradient + z / deviations

    start = np.zeros(P + 2 * M + 2)
    found = minimize(objective, start, method="L-BFGS-B", jac=True, options={"maxiter": 500})
    return _Found(found.x, ties, bool(found.success))


def davidson_chances(x: Floats, t: float) -> Floats:
    """Left, tie and right, (..., 3)."""
    return np.exp(_log_chances(x, t))


def _log_chances(x: Floats, t: float) -> Floats:
    """Their logarithms, where chances themselves may be too small for a number."""
    z = np.stack([x / 2, np.full_like(x, t), -x / 2], axis=-1)
    z -= np.max(z, axis=-1, keepdims=True)
    return z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True))


def _held_out_loss(
    pairs: Pairs, fold: Codes, spread: float, judge_spread: float, sides: bool
) -> float:
    """The mean log-loss of judgments, each by what the other folds teach."""
    a, losses = pairs.annotations, np.zeros(len(fold))
    for f in range(_FOLDS):
        test = fold == f
        score, d, b, t = _fit(pairs.rows(~test), spread, judge_spread, sides).unpack(pairs)
        x = (score[pairs.left] - score[pairs.right])[a.item[test]]
        p = davidson_chances(d[a.annotator[test]] * x + b[a.annotator[test]], t)
        losses[test] = judgment_losses(p, a.vectors[test])
    return float(np.mean(losses)) if len(losses) else 0.0


def judgment_losses(p: Floats, y: Floats) -> Floats:
    """- log of the chance of each judgment; a tie that was never seen has one in a million."""
    return -np.sum(y * np.log(np.maximum(p, 1e-6)), axis=1)


def _variances(pairs: Pairs, sets: list[Linked], spread: float) -> tuple[Floats, Floats]:
    """Of each score less their mean (P,), and of the difference of scores in each pair (N,).

    Judgments tell nothing of what all scores have in common, so that C 1 = spread^2 1, and the
    variance of a score less the mean is C_pp - spread^2 / P.
    """
    P = len(pairs.options)
    variance, of_pair, place = np.zeros(P), np.zeros(len(pairs.left)), np.empty(P, dtype=np.intp)
    for linked in sets:
        place[linked.options] = np.arange(len(linked.options))
        variance[linked.options] = np.diag(linked.covariance) - spread**2 / P
        i, j = place[pairs.left[linked.pairs]], place[pairs.right[linked.pairs]]
        of_pair[linked.pairs] = variance_of_gaps(linked.covariance, i, j)
    return variance, of_pair


def variance_of_gaps(C: Floats, one: Codes, other: Codes) -> Floats:
    """d' C d of the difference d of two scores, by their places in the covariance."""
    return C[one, one] + C[other, other] - 2 * C[one, other]


def _linked(
    pairs: Pairs, score: Floats, d: Floats, side: Floats, t: float, spread: float
) -> list[Linked]:
    """The inverse C of what judgments tell about scores, for each set of options they link."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    a, P = pairs.annotations, len(pairs.options)
    left, right, who = pairs.left[a.item], pairs.right[a.item], a.annotator
    x = d[who] * (score[left] - score[right]) + side[who]
    information = fisher_information(davidson_chances(x, t)) * (1 - a.uncertainty) * d[who] ** 2
    between = csr_array((information, (left, right)), shape=(P, P))
    pair_links = csr_array((np.ones(len(pairs.left)), (pairs.left, pairs.right)), shape=(P, P))
    n_sets, linked = connected_components(pair_links, directed=False)
    own = sums_by(left, information, P) + sums_by(right, information, P) + 1 / spread**2
    between = (between + between.T).tocsr()
    order, size = np.argsort(linked, kind="stable"), np.bincount(linked, minlength=n_sets)
    if size.max(initial=0) > MOST_LINKED:
        raise ValueError(
            f"scores of at most {MOST_LINKED:,} options that comparisons link can be learned "
            f"together; {size.max():,} came. Compare within groups, such as those of one prompt."
        )
    item = np.argsort(linked[pairs.left], kind="stable")
    items = np.bincount(linked[pairs.left], minlength=n_sets)
    sets: list[Linked] = []
    for members, here in zip(
        np.split(order, np.cumsum(size)[:-1]), np.split(item, np.cumsum(items)[:-1]), strict=True
    ):
        block = -between[members][:, members].toarray()
        block[np.diag_indices(len(members))] += own[members]
        sets.append(Linked(members, here, np.linalg.inv(block).astype(float)))
    return sets


def fisher_information(p: Floats) -> Floats:
    """What a judgment with these chances (..., 3) tells of x: minus the slope of its slope."""
    left, right = p[..., 0], p[..., 2]
    return (left + right - (left - right) ** 2) / 4


def _opinions(x: Floats, variance: Floats, t: float, W: float) -> Opinion:
    """Left is better, by a difference of scores and its variance.

    P = p_left + p_tie / 2,   P (1 - P) / (A + 1) = (dP/dx)^2 variance,   u = W / A
    """
    left, tie, right = np.moveaxis(davidson_chances(x, t), -1, 0)
    P = left + tie / 2
    lean = (left - right) / 2
    slope = left * (0.5 - lean) - tie * lean / 2
    spread = slope**2 * variance
    room = P * (1 - P) - spread
    # No surer than nothing where scores may lie anywhere, and no less sure than P allows.
    u = np.where(room > 0, W * spread / np.where(room > 0, room, 1), 1)
    u = np.minimum(u, 2 * np.minimum(P, 1 - P))
    a = np.full((len(x), 2), 0.5)
    return Opinion(np.stack([P, 1 - P], axis=1) - u[:, None] * a, u, a)


def _check(pairs: Pairs, spread: float | None, judge_spread: float | None) -> None:
    if tuple(pairs.annotations.labels.tolist()) != LABELS:
        raise ValueError(
            f"the labels of pairs must be {', '.join(LABELS)}; "
            f"{pairs.annotations.labels[:5]} came. pairs_from_table makes such pairs."
        )
    if not len(pairs.annotations.item):
        raise ValueError("scores need at least one comparison; none came.")
    for name, value, least in (("spread", spread, 1e-6), ("judge_spread", judge_spread, 0)):
        if value is not None and not least <= value < math.inf:
            raise ValueError(
                f"`{name}` must be a finite standard deviation, {'above' if least else 'at least'} "
                f"0; {value:g} came. Leave it out to have it chosen."
            )
