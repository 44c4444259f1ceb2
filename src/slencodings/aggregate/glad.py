"""GLAD: able annotators and easy items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from slencodings.aggregate.em import Floats, ballots, check_steps, gold_codes, posterior
from slencodings.aggregate.result import Aggregate, Progress
from slencodings.annotations import Annotations

# No crowd reaches it: 10**9 votes in conflict on one item put its log-ease at -18.
_FAR = 30.0


def glad(
    annotations: Annotations,
    *,
    n_iter: int = 200,
    tol: float = 1e-4,
    gold: Any = None,
    use_confidence: bool = True,
    progress: Progress | None = None,
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
    >>> said = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 1]}
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> glad(crowd).details["ability"].round(2)
    array([1.17, 1.17, 0.34])
    """
    check_steps(n_iter, tol)
    known = gold_codes(annotations, gold)
    said = ballots(annotations, use_confidence=use_confidence)
    N, M, K = said.shape
    others = np.log(max(K - 1, 1))
    # Steps in units of each ability's own precision: those of busy annotators are known best.
    unit = np.concatenate([1 / np.sqrt(1 + 0.3 * said.by_annotator(said.weight)), np.ones(N)])

    def learn(z: Floats) -> tuple[Floats, float, Floats]:
        """The truth (N, K), the log-posterior at a, b = 1 + unit * z, and its slope in z."""
        a, b = np.split(1 + unit * z, [M])
        ease = np.exp(np.clip(b, -_FAR, _FAR))[said.item]
        x = a[said.annotator] * ease
        # log p(right) - log p(a certain wrong one) = x + log(K - 1)
        q, evidence = posterior(said.by_choice(said.weight * (x + others)) - np.log(K), known)
        e = np.exp(-np.abs(x))
        wrong = -(np.maximum(x, 0) + np.log1p(e)) - others
        surprise = said.weight * (q.ravel()[said.choice] - right(x))
        slope = np.concatenate([said.by_annotator(surprise * ease), said.by_item(surprise * x)])
        normal = np.sum((unit * z) ** 2) / 2
        value = float(np.sum(evidence) + np.sum(said.weight * wrong) - normal)
        return q, value, (slope - unit * z) * unit

    z, iterations, converged = _climb(learn, np.zeros(M + N), n_iter, tol, progress)
    q, value, _ = learn(z)
    a, b = np.split(1 + unit * z, [M])
    # Items that nobody labelled know nothing of their ease.
    labelled = np.unique(said.item)
    return Aggregate(
        q,
        right(a * np.exp(np.mean(b[labelled]) if len(labelled) else 1.0)),
        {
            "ability": a,
            "ease": np.exp(b),
            "log_posterior": value,
            "converged": converged,
            "iterations": iterations,
        },
    )


def right(x: Floats) -> Floats:
    """The sigmoid: p(right) where ability times ease is x."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _climb(
    learn: Callable[[Floats], tuple[Any, float, Floats]],
    z: Floats,
    n_iter: int,
    tol: float,
    progress: Progress | None,
) -> tuple[Floats, int, bool]:
    """Maximise by L-BFGS (Nocedal & Wright, algorithm 7.4), halving steps that do not pay.

    SciPy's hands its sums to threads that wait for each other: on a busy machine ten times slower.
    """
    _, value, slope = learn(z)
    past: deque[tuple[Floats, Floats, float]] = deque(maxlen=10)
    for iteration in range(n_iter):
        steepest = np.max(np.abs(slope), initial=0)
        if steepest < tol:
            return z, iteration, True
        way = slope.copy()
        gains: list[float] = []
        for moved, bent, curved in reversed(past):
            gains.append(_dot(moved, way) / curved)
            way -= gains[-1] * bent
        way *= past[-1][2] / _dot(past[-1][1], past[-1][1]) if past else min(1, 1 / steepest)
        for (moved, bent, curved), gain in zip(past, reversed(gains), strict=True):
            way += (gain - _dot(bent, way) / curved) * moved
        promise, size = _dot(slope, way), 1.0
        _, new_value, new_slope = learn(z + way)
        while not new_value >= value + 1e-4 * size * promise - 1e-13 * abs(value):
            size /= 2
            if size < 1e-10:
                return z, iteration, False
            _, new_value, new_slope = learn(z + size * way)
        moved, bent = size * way, slope - new_slope
        z, value, slope = z + moved, new_value, new_slope
        if (curved := _dot(moved, bent)) > 1e-12 * _dot(bent, bent):
            past.append((moved, bent, curved))
        if progress is not None:
            progress(iteration + 1, n_iter)
    return z, n_iter, bool(np.max(np.abs(slope), initial=0) < tol)


def _dot(x: Floats, y: Floats) -> float:
    return float(np.einsum("i,i->", x, y))
