"""MACE: annotators who either know the answer or say something of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from slencodings.aggregate import em
from slencodings.aggregate.result import Aggregate, OnStep
from slencodings.annotations import Annotations
from slencodings.choices import Inference, check_word
from slencodings.opinion import Codes, Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Hovy et al.'s own: pseudo-counts of a strategy in VB, and of anything in EM (over K).
_STRATEGY_PRIOR = 10.0
_EM_SMOOTHING = 0.01


# Spamming and knowing (M, 2), and strategies (M, K).
_Start = tuple[Floats, Floats]


class _Cast(NamedTuple):
    """The votes by choice and cell (N K, M K), turned, their sums by cell (M, K), and gold (N,)."""

    table: csr_array
    turned: csr_array
    votes: Floats
    gold: Codes


class _Run(NamedTuple):
    """Where one start led: spamming and knowing (M, 2), strategies (M, K), truth (N, K)."""

    behaviour: Floats
    strategy: Floats
    probability: Floats
    history: list[float]
    converged: bool


def mace(
    annotations: Annotations,
    *,
    method: Inference = "vb",
    n_restarts: int = 10,
    n_iter: int = 50,
    tol: float = 1e-6,
    theta_prior: tuple[float, float] = (0.5, 0.5),
    gold: em.Gold = None,
    use_confidence: bool = True,
    rng: np.random.Generator | None = None,
    initial: tuple[Any, Any] | None = None,
    progress: OnStep | None = None,
) -> Aggregate:
    """Infer the truth, who knows it and what the others say instead (Hovy et al. 2013).

    log q_it = -log K + sum_q w_q sum_l y_ql log(g_m x_ml + [l = t] k_m)

    Annotator m knows with k, else guesses with g and says l with x_l. The best of `n_restarts`.

    Parameters
    ----------
    method : "vb", Beta(`theta_prior`) for (g, k) and Dirichlet(10) for x; "em", pseudo-counts .01/K
    n_iter, tol : end a start after so many iterations or when the gain per annotation is below tol
    gold, use_confidence : as in `dawid_skene`
    rng : np.random.Generator for the starts; the same ones every time when absent
    initial : (g and k (M, 2), x (M, K)), the only start
    progress : called with iterations done, of all starts, and n_restarts * n_iter; the iterations
        that a start did not need count as done

    Returns
    -------
    `reliability` (M,) is k; `details` has strategy (M, K), spamming (M,) g (in VB k + g < 1),
    log_likelihood of each start, best, and of the best its history, converged and iterations.

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 1]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> mace(crowd, method="em").probability.round(2)
    array([[1., 0.],
           [0., 1.]])
    """
    check_word("method", method, Inference)
    em.check_count("n_restarts", n_restarts)
    em.check_steps(n_iter, tol)
    prior = _check_prior(theta_prior)
    known = em.gold_codes(annotations, gold)
    ballots = em.ballots_of(annotations, use_confidence=use_confidence)
    N, M, K = ballots.shape
    draw = np.random.default_rng(0) if rng is None else rng
    starts = [_draw(M, K, draw) for _ in range(n_restarts if initial is None else 0)]
    starts += [] if initial is None else [_check_initial(initial, M, K)]
    tables = ballots.tables(ballots.choice, ballots.cell, (N * K, M * K))
    cast = _Cast(*tables, ballots.by_cell(ballots.weight), known)
    del ballots

    if method == "vb":
        update = partial(_update_vb, prior)
    else:
        update = partial(_update_em, _EM_SMOOTHING / K)
    learn = partial(_learn_from_start, cast, update=update, n_iter=n_iter, tol=tol)
    best, scores = _best_of(starts, learn, n_iter, progress)
    return Aggregate(
        best.probability,
        np.clip(best.behaviour[:, 1], 0, 1),
        {
            "strategy": best.strategy,
            "spamming": best.behaviour[:, 0],
            "log_likelihood": np.asarray(scores),
            "best": scores.index(best.history[-1]),
            "history": np.asarray(best.history),
            "converged": best.converged,
            "iterations": len(best.history) - 1,
        },
    )


def _best_of(
    starts: list[_Start], learn: Callable[..., _Run], n_iter: int, progress: OnStep | None
) -> tuple[_Run, list[float]]:
    """Where the likeliest of all starts led, the first of equals, and how likely each was."""

    def report(at: int, done: int) -> None:
        if progress is not None:
            progress(at * n_iter + done, len(starts) * n_iter)

    best, scores = None, list[float]()
    for at, start in enumerate(starts):
        run = learn(start, on_step=partial(report, at))
        report(at, n_iter)
        scores.append(run.history[-1])
        if best is None or run.history[-1] > best.history[-1]:
            best = run
    assert best is not None
    return best, scores


def _update_vb(prior: Floats, knew: Floats, guessed: Floats) -> _Start:
    """Behaviour and strategy of what annotators knew and guessed, with their priors."""
    counts = _by_behaviour(knew, guessed)
    return _geometric_mean(counts + prior), _geometric_mean(guessed + _STRATEGY_PRIOR)


def _update_em(smoothing: float, knew: Floats, guessed: Floats) -> _Start:
    """The same, with as many pseudo-counts of everything."""
    return _mean(_by_behaviour(knew, guessed) + smoothing), _mean(guessed + smoothing)


def _by_behaviour(knew: Floats, guessed: Floats) -> Floats:
    return np.stack([np.sum(guessed, axis=1), np.sum(knew, axis=1)], axis=1)


def _learn_from_start(
    cast: _Cast,
    start: _Start,
    *,
    update: Callable[[Floats, Floats], _Start],
    n_iter: int,
    tol: float,
    on_step: Callable[[int], None],
) -> _Run:
    """From one start; `update` makes behaviour and strategy of what annotators knew and guessed."""
    (A, by_cell, votes, gold), (behaviour, strategy) = cast, start
    N, K = len(gold), votes.shape[1]
    history: list[float] = []
    while True:
        guess = behaviour[:, :1] * strategy
        know = behaviour[:, 1:]
        # All votes as guesses, then for each label what its votes gain if they knew.
        gain = (A @ np.log1p(know / guess).ravel()).reshape(N, K)
        gain -= np.log(K)
        q, evidence = em.posterior(gain, gold)
        history.append(float(np.sum(evidence) + np.sum(votes * np.log(guess))))
        change = abs(history[-1] - history[-2]) if len(history) > 1 else np.inf
        converged = bool(change < tol * max(np.sum(votes), 1))
        if converged or len(history) > n_iter:
            return _Run(behaviour, strategy, q, history, converged)
        knew = (by_cell @ q.ravel()).reshape(votes.shape) * (know / (guess + know))
        behaviour, strategy = update(knew, votes - knew)
        if len(history) < n_iter:
            on_step(len(history))


def _mean(counts: Floats) -> Floats:
    return counts / np.sum(counts, axis=1, keepdims=True)


def _geometric_mean(counts: Floats) -> Floats:
    """exp E[log p] of a Dirichlet: less than the mean, the more so the less is known."""
    from scipy.special import digamma

    return np.exp(digamma(counts) - digamma(np.sum(counts, axis=1, keepdims=True)))


def _draw(M: int, K: int, rng: np.random.Generator) -> _Start:
    return _mean(1 + 0.5 * rng.random((M, 2))), _mean(1 + 0.5 * rng.random((M, K)))


def _check_prior(theta_prior: Any) -> Floats:
    prior = np.asarray(theta_prior, dtype=float)
    if prior.shape != (2,) or not np.all((prior > 0) & (prior < np.inf)):
        raise ValueError(
            "`theta_prior` must be two positive numbers, for spamming and for knowing; "
            f"{theta_prior!r} came. Leave it out for (0.5, 0.5)."
        )
    return prior


def _check_initial(initial: tuple[Any, Any], M: int, K: int) -> _Start:
    behaviour, strategy = (np.asarray(x, dtype=float) for x in initial)
    if behaviour.shape != (M, 2) or strategy.shape != (M, K):
        raise ValueError(
            f"`initial` must be spamming and knowing ({M}, 2) and strategies ({M}, {K}); shapes "
            f"{behaviour.shape} and {strategy.shape} came."
        )
    if not (np.all(behaviour > 0) and np.all(strategy > 0)):
        raise ValueError("`initial` must be positive throughout; what starts at 0 stays there.")
    return behaviour, strategy
