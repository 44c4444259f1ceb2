"""GLAD: able annotators and easy items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from slencodings.aggregate import em
from slencodings.aggregate.result import Aggregate, OnStep
from slencodings.annotations import Annotations, sums_by
from slencodings.opinion import Codes, Floats

# No crowd reaches it: 10**9 votes in conflict on one item put its log-ease at -18.
_FAR = 30.0
# From a place to the value there, the slope, and what comes of it besides.
_LogPosterior = Callable[[Floats], tuple[float, Floats, Floats]]


def glad(
    annotations: Annotations,
    *,
    n_iter: int = 200,
    tol: float = 1e-4,
    gold: em.Gold = None,
    use_confidence: bool = True,
    progress: OnStep | None = None,
) -> Aggregate:
    """Infer the truth, annotators' ability a and items' ease exp(b) (Whitehill et al. 2009).

    p(right) = sigmoid(a_m exp(b_i)), a wrong label (1 - p(right)) / (K - 1);   a, b ~ N(1, 1)

    Instead of alternating, the log-posterior of (a, b) is maximised with the truth summed out, by
    L-BFGS from a = b = 1: EM climbs the same function.

    Parameters
    ----------
    n_iter, tol : stop after so many steps, or where the log-posterior is this flat in every a, b
    gold, use_confidence, progress : as in `dawid_skene`

    Returns
    -------
    `reliability` (M,) is p(right) at the mean log-ease of labelled items; `details` has ability
    (M,), ease (N,) exp(b), log_posterior, converged, iterations.

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 1]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> glad(crowd).details["ability"].round(2)
    array([1.17, 1.17, 0.34])
    """
    from scipy.special import expit

    em.check_steps(n_iter, tol)
    known = em.gold_codes(annotations, gold)
    ballots = em.ballots_of(annotations, use_confidence=use_confidence)
    log_posterior, unit = _log_posterior_of(ballots, known)
    z, iterations, converged = _maximise(log_posterior, np.zeros(len(unit)), n_iter, tol, progress)
    value, _, q = log_posterior(z)
    a, b = np.split(1 + unit * z, [ballots.shape[1]])
    # Items that nobody labelled know nothing of their ease.
    labelled = np.unique(ballots.item)
    return Aggregate(
        q,
        expit(a * np.exp(np.mean(b[labelled]) if len(labelled) else 1.0)),
        {
            "ability": a,
            "ease": np.exp(b),
            "log_posterior": value,
            "converged": converged,
            "iterations": iterations,
        },
    )


def _log_posterior_of(ballots: em.Ballots, gold: Codes) -> tuple[_LogPosterior, Floats]:
    """The log-posterior at a, b = 1 + unit * z, its slope in z and the truth (N, K); and the unit.

    Steps are in units of each ability's own precision: those of busy annotators are known best.
    """
    (N, M, K), w = ballots.shape, ballots.weight
    item, annotator = ballots.item.astype(np.intp), ballots.annotator.astype(np.intp)
    # Labels before items, as `em.posterior` goes through them: to turn them cost a tenth.
    choice = ballots.choice % K * N + item
    # log p(right) - log p(a certain wrong one) = x + log(K - 1)
    log_others = np.log(max(K - 1, 1))
    offset = log_others * sums_by(choice, w, N * K) - np.log(K)
    unit = np.concatenate([1 / np.sqrt(1 + 0.3 * ballots.by_annotator(w)), np.ones(N)])
    # Memory for a number a vote, kept: to get it anew each time took a third of the time.
    x, e, sigmoid = np.empty((3, len(w)))

    def log_posterior(z: Floats) -> tuple[float, Floats, Floats]:
        a, b = np.split(1 + unit * z, [M])
        ease = np.exp(np.clip(b, -_FAR, _FAR))
        np.multiply(_take(a, annotator, x), _take(ease, item, e), out=x)
        chosen = sums_by(choice, np.multiply(w, x, out=e), N * K)
        chosen += offset
        q, evidence = em.posterior(chosen.reshape(K, N).T, gold)
        np.exp(np.negative(np.abs(x, out=e), out=e), out=e)
        np.add(e, 1, out=e)
        # sigmoid(x) is 1 / (1 + e) where x > 0, else as far below a half as that is above.
        np.subtract(np.divide(1, e, out=sigmoid), 0.5, out=sigmoid)
        np.add(np.copysign(sigmoid, x, out=sigmoid), 0.5, out=sigmoid)
        wrong = -_dot(w, np.log(e, out=e)) - _dot(w, np.maximum(x, 0, out=e))
        # What each vote pulls at its x: how likely it is the true label, less how likely it is
        # right by ability and ease.
        pull = np.subtract(_take(q.T.ravel(), choice, e), sigmoid, out=sigmoid)
        np.multiply(pull, w, out=pull)
        easy = sums_by(item, np.multiply(pull, x, out=x), N)
        able = sums_by(annotator, np.multiply(pull, _take(ease, item, e), out=e), M)
        slope = np.concatenate([able, easy])
        normal = np.sum((unit * z) ** 2) / 2
        value = float(np.sum(evidence) + wrong - log_others * np.sum(w) - normal)
        return value, (slope - unit * z) * unit, q

    return log_posterior, unit


def _take(values: Floats, at: Codes, out: Floats) -> Floats:
    """`values[at]`, written to `out`; that no place is outside is known."""
    return np.take(values, at, out=out, mode="clip")


def _maximise(
    f: _LogPosterior,
    x: Floats,
    n_iter: int,
    tol: float,
    progress: OnStep | None,
) -> tuple[Floats, int, bool]:
    """Where f, which gives its slope beside, is highest; after how many steps; and if it converged.

    L-BFGS (Nocedal & Wright 2006, algorithm 7.4): q becomes the direction, s are the last steps,
    y how far the slope fell on each, rho = 1 / (s . y). Steps that do not pay are halved.
    SciPy's hands its sums to threads that wait for each other: 1.3 to 6 times slower.
    """
    value, slope, _ = f(x)
    past: deque[tuple[Floats, Floats, float]] = deque(maxlen=10)
    for iteration in range(n_iter):
        steepest = np.max(np.abs(slope), initial=0)
        if steepest < tol:
            return x, iteration, True
        q = slope.copy()
        alphas: list[float] = []
        for s, y, rho in reversed(past):
            alphas.append(rho * _dot(s, q))
            q -= alphas[-1] * y
        if past:
            _, y, rho = past[-1]
            q /= rho * _dot(y, y)
        else:
            q *= min(1, 1 / steepest)
        for (s, y, rho), alpha in zip(past, reversed(alphas), strict=True):
            q += (alpha - rho * _dot(y, q)) * s
        expected, size = _dot(slope, q), 1.0
        new_value, new_slope, _ = f(x + q)
        while not new_value >= value + 1e-4 * size * expected - 1e-13 * abs(value):
            size /= 2
            if size < 1e-10:
                return x, iteration, False
            new_value, new_slope, _ = f(x + size * q)
        s, y = size * q, slope - new_slope
        x, value, slope = x + s, new_value, new_slope
        if _dot(s, y) > 1e-12 * _dot(y, y):
            past.append((s, y, 1 / _dot(s, y)))
        if progress is not None:
            progress(iteration + 1, n_iter)
    return x, n_iter, bool(np.max(np.abs(slope), initial=0) < tol)


def _dot(x: Floats, y: Floats) -> float:
    return float(np.einsum("i,i->", x, y))
