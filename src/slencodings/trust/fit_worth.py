"""What votes are worth, learned: parts and ridges chosen on held-out items, then a fit to all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from slencodings.opinion import Floats
from slencodings.trust.crowd import Crowd
from slencodings.trust.objective import Objective
from slencodings.trust.worth import CHOSEN_BY, ENOUGH, ONE_COUNT, Learned, Ridge, Votes

# Worth is learned up to ten thousandfold, its parts up to a hundredfold.
_SCALE, _PART, _LOGIT = math.log(1e4), math.log(1e2), 6.0
# More digits than these choose no better strength of the ridges; nor do as many where votes are so
# many that only some of them choose.
_ROUGHLY, _OF_MANY = 1e-6, 1e-5
# A fit to all votes ends where a step gains less of their mean loss than this; where they are many,
# than about a hundredth of one vote's.
_CLOSELY, _CLOSELY_OF_MANY = 1e-8, 1e-7
_GRID = (0.1, 1.0, 10.0)
# The second derivative of the loss of a vote in what it is worth, about (.002 to .03 in crowds).
_CURVATURE = 0.01
# Iterations of a fit.
_MOST_STEPS = 500


class Parts(NamedTuple):
    """Which parts are learned."""

    annotator: bool = True
    level: bool = True
    truth: bool = True
    meaning: bool = True


class LearnedWorth(NamedTuple):
    """What votes are worth, how it was held back, and how well it predicts."""

    at: Learned
    ridge: Ridge
    losses: dict[str, float]
    converged: bool


def learn_worth(
    votes: Votes,
    parts: Parts,
    ridge: Ridge | None,
    like: Crowd | None,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None,
) -> LearnedWorth:
    """What votes are worth; what was chosen for a crowd that they are `like` is taken."""
    if like is not None:
        truth, meaning = like.through_truth > 0, like.votes_say_more
        parts, ridge = parts._replace(truth=truth, meaning=meaning), like.ridge
    pairs = _folds(votes, rng) if like is None else []
    # How many fits on each of the folds `_choose` needs.
    strengths = (len(_GRID) - 1) * (parts.annotator + parts.level) if ridge is None else 0
    trials = 1 + parts.truth + parts.meaning + strengths
    total = trials * sum(len(train.item) for train, _ in pairs)
    on_step = _counter(progress, _MOST_STEPS * (total + len(votes.item)))
    objective = Objective.of(votes)
    with _without_threads():
        many = len(votes.item) > ENOUGH
        chosen = _choose(pairs, parts, ridge, on_step, _OF_MANY if many else _ROUGHLY)
        start, tol = _mean(chosen.fits), _CLOSELY_OF_MANY if many else _CLOSELY
        at, converged = _fit(objective, chosen.parts, chosen.ridge, start, tol, on_step)
    plain = Learned(math.log(ONE_COUNT), 0 * at.annotator, 0 * at.level, -math.inf)
    compared = {"votes": plain, "learned": at}
    scored = votes.scored > 0
    losses = {name: float(np.mean(objective.losses(x)[scored])) for name, x in compared.items()}
    losses |= {} if math.isnan(chosen.loss) else {"held_out": chosen.loss}
    return LearnedWorth(at, chosen.ridge, losses, converged)


def _without_threads() -> AbstractContextManager[Any]:
    """Keep SciPy's BLAS to one thread, where threadpoolctl is there to say so.

    L-BFGS-B factors matrices of 20 x 20 in every step. Other threads of OpenBLAS, once they have
    helped with one, spin for longer than all of the work takes.
    """
    import_module("scipy.optimize")  # What is not loaded yet would not be told.
    try:
        threads: Any = import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    return _libraries(threads).limit(limits=1, user_api="blas")


@cache
def _libraries(threads: Any) -> Any:
    """The libraries with threads of this process, looked for once."""
    return threads.ThreadpoolController()


def _counter(progress: Callable[[int, int], None] | None, total: int) -> Callable[[int], None]:
    """What adds up how far it went and tells it."""
    done = 0

    def on_step(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    return on_step


def _folds(votes: Votes, rng: np.random.Generator) -> list[tuple[Votes, Votes]]:
    """Votes to learn from and votes of other items to predict; each item is predicted once."""
    N, R = votes.sizes[0], len(votes.item)
    n_folds = 3 if R <= ENOUGH else 2
    fold = rng.permutation(N) % n_folds
    if R > ENOUGH:
        votes = votes.some(rng.random(N) < CHOSEN_BY / R)
        fold = fold[: votes.sizes[0]]
    pairs = [(votes.some(fold != f), votes.some(fold == f)) for f in range(n_folds)]
    return [(train, test) for train, test in pairs if len(train.item) and len(test.item)]


class ChosenParts(NamedTuple):
    """The ridges and parts under which held-out items are predicted best, and how well.

    `fits` are those to each of the folds, from which others start.
    """

    ridge: Ridge
    parts: Parts
    loss: float
    fits: tuple[Learned, ...] = ()


def _choose(
    pairs: list[tuple[Votes, Votes]],
    parts: Parts,
    ridge: Ridge | None = None,
    on_step: Callable[[int], None] = lambda rows: None,
    tol: float = _ROUGHLY,
) -> ChosenParts:
    """Choose what predicts held-out items best: what votes are read as, then the ridges.

    `pairs` are `_folds`: what is predicted, with what the others taught.
    """
    both = [tuple(map(Objective.of, pair)) for pair in pairs]

    def held_out(tried: ChosenParts) -> ChosenParts:
        """The same with what it is to predict by, from the fits of what it was made of."""
        fits, losses = list[Learned](), list[Floats]()
        for (train, test), start in zip(both, tried.fits or [None] * len(both), strict=True):
            at, _ = _fit(train, tried.parts, tried.ridge, start, tol, on_step)
            fits.append(at)
            losses.append(test.losses(at)[test.votes.scored > 0])
        return tried._replace(loss=float(np.mean(np.concatenate(losses))), fits=tuple(fits))

    best = ChosenParts(ridge or Ridge(), parts, math.nan)
    if not pairs:
        return best
    best = held_out(best)
    for name in ("truth", "meaning"):
        if getattr(parts, name):
            without = held_out(best._replace(parts=best.parts._replace(**{name: False})))
            best = min(best, without, key=attrgetter("loss"))
    if ridge is None:
        for name in ("annotator", "level"):
            if getattr(parts, name):
                grid = [s for s in _GRID if s != getattr(best.ridge, name)]
                tried = [best._replace(ridge=best.ridge._replace(**{name: s})) for s in grid]
                best = min([best, *map(held_out, tried)], key=attrgetter("loss"))
    return best


def _mean(fits: Sequence[Learned]) -> Learned | None:
    """Between fits of the same parts, if there are any."""
    if not fits:
        return None
    scale, annotator, level, logit = (
        np.mean(values, axis=0) for values in zip(*(fit[:4] for fit in fits), strict=True)
    )
    apart = [fit.apart for fit in fits if fit.apart is not None]
    meant = np.mean(apart, axis=0) if apart else None
    return Learned(float(scale), annotator, level, float(logit), meant)


def _fit(
    objective: Objective,
    parts: Parts,
    ridge: Ridge,
    start: Learned | None = None,
    tol: float = _CLOSELY,
    on_step: Callable[[int], None] = lambda rows: None,
) -> tuple[Learned, bool]:
    """Minimise the objective by L-BFGS-B; and whether it converged.

    It starts from worth 1, read as truth by half, from votes that mean what is expected, or from a
    fit that had these parts, and ends where a step gains less than `tol`.
    """
    from scipy.optimize import minimize

    (_, M, L), K = objective.votes.sizes, len(objective.votes.base_rate)
    R, n_meant = len(objective.votes.item), K**2 if parts.meaning else 0
    free = np.repeat([True, parts.annotator, parts.level, parts.truth, True], [1, M, L, 1, n_meant])
    still = np.zeros(len(free))
    still[1 + M + L] = 0.0 if parts.truth else -np.inf
    x = still.copy() if start is None else _pack(start)[: len(free)]

    def unpack(free_values: Floats) -> Learned:
        full = still.copy()
        full[free] = free_values
        level, logit = 1 + M, 1 + M + L
        meant = full[logit + 1 :].reshape(K, K) if parts.meaning else None
        worth = full[1:level], full[level:logit]
        return Learned(float(full[0]), *worth, float(full[logit]), meant)

    unit = _units(objective.votes, ridge, n_meant)[free]

    def value(in_units: Floats) -> tuple[float, Floats]:
        loss, gradient = objective(unpack(in_units * unit), ridge)
        return loss, _pack(gradient)[free] * unit

    bound = np.repeat([_SCALE, _PART, _LOGIT, _PART], [1, M + L, 1, n_meant])[free] / unit
    found = minimize(
        value,
        x[free] / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([-bound, bound], axis=1),
        callback=lambda x: on_step(R),
        options={"maxiter": _MOST_STEPS, "ftol": tol, "gtol": 1e-6},
    )
    on_step((_MOST_STEPS - int(found.nit)) * R)
    return unpack(found.x * unit), bool(found.success)


def _units(votes: Votes, ridge: Ridge, n_meant: int) -> Floats:
    """How far each parameter goes until the loss bends alike: the farther, the fewer votes it has.

    L-BFGS takes all for alike at first, and in these units the first step is about right.
    """
    v, (_, M, L), K = votes, votes.sizes, len(votes.base_rate)
    R, meant = len(v.item), np.repeat(np.bincount(v.label, v.share, K), K)[:n_meant]
    by_annotator = np.bincount(v.annotator, minlength=M)
    by_level = np.bincount(v.level, minlength=L)
    held_back = np.repeat(
        [ridge.scale, ridge.annotator, ridge.level, ridge.truth, ridge.meaning],
        [1, M, L, 1, n_meant],
    )
    n = np.concatenate([[R], by_annotator, by_level, [R], meant])
    return np.sqrt(R / (_CURVATURE * n + 2 * held_back))


def _pack(at: Learned) -> Floats:
    # As np.r_ would, in a tenth of the time.
    apart = [] if at.apart is None else [at.apart.ravel()]
    return np.concatenate([[at.scale], at.annotator, at.level, [at.logit], *apart])
