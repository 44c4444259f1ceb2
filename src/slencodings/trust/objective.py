"""What annotations are worth: the objective of `learn_trust`, its gradient and its minimum.

An annotation q of item i is worth w_q = exp(t + t_annotator + t_level), in units of the prior
weight, of the label vector v_q = y_q C. Predicted from the others on its item,

num_qk = sum of w v_k over the others + a_k,   den_q = sum of w over the others + 1,
loss = sum_q (log den_q - sum_k y_qk log num_qk)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

# Worth is learned up to ten thousandfold, its parts up to a hundredfold. So others and prior weigh
# at least 1 beside an own worth of 1e8, and `total - own` keeps half of the digits.
_SCALE, _PART, _LEAK = math.log(1e4), math.log(1e2), 15.0
# More annotations than these choose no better strength of the ridges, nor do more digits.
_ENOUGH, _ROUGHLY = 50_000, 1e-7
_GRID = (0.1, 1.0, 10.0)
# Iterations of a fit.
MOST = 500


class Ridge(NamedTuple):
    """How strongly each part is held back: half the inverse variance of its logarithms.

    `scale` holds the mean of log worth near 0. Where meaning is learned too, doubt can be said by
    C as well as by the prior, and worth would run away for a gain that nobody can see.
    """

    annotator: float = 1.0
    level: float = 0.1
    meaning: float = 1.0
    scale: float = 1.0


class Parts(NamedTuple):
    """Which parts are learned."""

    annotator: bool = True
    level: bool = True
    meaning: bool = True


@dataclass(frozen=True)
class Votes:
    """Annotations of items that have at least two of them, sorted by item.

    `row` are their places among all, `y` is (R,) or (R, K), and `cell` of the same shape says
    which places of an array (N, K) it fills.
    """

    row: Codes
    item: Codes
    annotator: Codes
    level: Codes
    y: NDArray[Any]
    cell: Codes
    base_rate: Floats
    sizes: tuple[int, int, int]

    @property
    def share(self) -> Any:
        """How much of each cell is named."""
        return self.y if self.y.ndim == 2 else 1.0

    def some(self, keep: NDArray[np.bool_]) -> Votes:
        """The annotations of the items to keep."""
        kept = keep[self.item]
        item = (np.cumsum(keep) - 1)[self.item[kept]]
        y, (_, M, L) = self.y[kept], self.sizes
        return replace(
            self,
            row=self.row[kept],
            item=item,
            annotator=self.annotator[kept],
            level=self.level[kept],
            y=y,
            cell=_cells(item, y, len(self.base_rate)),
            sizes=(int(keep.sum()), M, L),
        )


def votes(
    item: Codes, annotator: Codes, level: Codes, y: NDArray[Any], base_rate: Floats, M: int, L: int
) -> Votes:
    """Annotations as the objective reads them, those alone on their item left out."""
    n = np.bincount(item)
    order = np.argsort(item, kind="stable")
    order = order[n[item[order]] > 1]
    item = (np.cumsum(n > 1) - 1)[item[order]]
    y = y[order]
    cell = _cells(item, y, len(base_rate))
    sizes = int(np.sum(n > 1)), M, L
    return Votes(order, item, annotator[order], level[order], y, cell, base_rate, sizes)


def _cells(item: Codes, y: NDArray[Any], K: int) -> Codes:
    return item * K + y if y.ndim == 1 else item[:, None] * K + np.arange(K)


def _sums(group: Codes, x: Floats, size: int) -> Floats:
    # Nothing at all is counted as whole numbers.
    return np.bincount(group, x, size).astype(float, copy=False)


def _times(rows: Floats, C: Floats) -> Floats:
    """rows @ C; for few labels BLAS would start threads that wait for each other."""
    return np.einsum("ij,jk->ik", rows, C) if C.shape[-1] <= 32 else rows @ C


def losses(votes: Votes, w: Floats, C: Floats) -> Floats:
    """The loss of each annotation, (R,), if the others are worth w and say y C."""
    num, den, *_ = _predict(votes, w, C)
    scored = votes.share * np.log(num)
    return np.log(den) - (scored.sum(axis=1) if scored.ndim == 2 else scored)


def _predict(votes: Votes, w: Floats, C: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """num and den of what is scored; the sums of w y (N, K); and what each row says of its cells.

    The prior keeps `total - own` away from zero, so its rounding does no harm.
    """
    y, a, (N, *_) = votes.y, votes.base_rate, votes.sizes
    if y.ndim == 1:
        v, own, weight, prior = np.diag(C)[y], w, w, a[y]
    else:
        v, own, weight, prior = _times(y, C), w[:, None], w[:, None] * y, a
    F = _sums(votes.cell.ravel(), weight.ravel(), N * len(a)).reshape(N, len(a))
    num = np.maximum(_times(F, C).ravel()[votes.cell] - own * v, 0) + prior
    den = np.maximum(F.sum(axis=1)[votes.item] - w, 0) + 1
    return num, den, F, v


def loss_and_gradient(votes: Votes, w: Floats, C: Floats) -> tuple[float, Floats, Floats]:
    """The loss, and its derivatives in w (R,) and in C (K, K).

    G_ik = sum_q y_qk / num_qk,   D_i = sum_q 1 / den_q
    dL/dw_q = - sum_k v_qk (G_ik - y_qk / num_qk) + D_i - 1 / den_q
    dL/dC_jk = - sum_q w_q y_qj (G_ik - y_qk / num_qk),   up to what is equal for all k
    """
    y, (N, *_), K = votes.y, votes.sizes, len(C)
    num, den, F, v = _predict(votes, w, C)
    r = votes.share / num
    loss = float(np.sum(np.log(den)) - np.sum(votes.share * np.log(num)))
    G = _sums(votes.cell.ravel(), r.ravel(), N * K).reshape(N, K)
    D = _sums(votes.item, 1 / den, N)
    dw = v * r - votes.share * _times(G, C.T).ravel()[votes.cell]
    if y.ndim == 1:
        own = np.diag(np.bincount(y, w * r, K))
    else:
        dw, own = dw.sum(axis=1), y.T @ (w[:, None] * r)
    return loss, dw + D[votes.item] - 1 / den, own - F.T @ G


class Learned(NamedTuple):
    """The parameters: logarithms of worth, and the logits of C below its diagonal of zeros.

    logit_jk = deviation_jk - leak for j != k: every label leaks the same to all others, but for
    the deviations, which a ridge holds back. Infinite leak is C = 1: votes mean what they say.
    """

    scale: float
    annotator: Floats
    level: Floats
    leak: float
    deviation: Floats

    @property
    def C(self) -> Floats:
        """What a vote for label j (row) says about label k (column)."""
        off = ~np.eye(len(self.deviation), dtype=bool)
        z = np.exp(np.where(off, self.deviation - self.leak, 0))
        return z / z.sum(axis=1, keepdims=True)

    def worth(self, votes: Votes) -> Floats:
        """What each annotation is worth, (R,), in units of the prior weight."""
        w = np.exp(self.scale + self.annotator)[votes.annotator]
        return w * np.exp(self.level)[votes.level]


def objective(
    x: Floats, votes: Votes, parts: Parts, ridge: Ridge, free: NDArray[np.bool_]
) -> tuple[float, Floats]:
    """Mean loss and ridges at the free parameters x, and the gradient there."""
    at = _unpack(x, votes, parts, free)
    w, C = at.worth(votes), at.C
    loss, dw, dC = loss_and_gradient(votes, w, C)
    dw *= w
    _, M, L = votes.sizes
    dz = C * (dC - (C * dC).sum(axis=1, keepdims=True))
    np.fill_diagonal(dz, 0)
    # The mean, so that the parts themselves stay centred at 0.
    mean = at.scale + at.annotator.mean() + at.level.mean()
    pull = 2 * ridge.scale * mean
    gradient = np.concatenate(
        [
            [dw.sum() + pull],
            np.bincount(votes.annotator, dw, M) + 2 * ridge.annotator * at.annotator + pull / M,
            np.bincount(votes.level, dw, L) + 2 * ridge.level * at.level + pull / L,
            [-dz.sum()],
            (dz + 2 * ridge.meaning * at.deviation).ravel(),
        ]
    )
    held = (at.annotator, at.level, at.deviation, mean)
    held_back = sum(r * float(np.sum(np.square(x))) for r, x in zip(ridge, held, strict=True))
    R = len(votes.item)
    return (loss + held_back) / R, gradient[free] / R


def _free(votes: Votes, parts: Parts) -> NDArray[np.bool_]:
    """Which of all parameters are learned."""
    _, M, L = votes.sizes
    off = ~np.eye(len(votes.base_rate), dtype=bool).ravel()
    worth = [[True], np.full(M, parts.annotator), np.full(L, parts.level)]
    return np.concatenate([*worth, [parts.meaning], off & parts.meaning])


def _unpack(x: Floats, votes: Votes, parts: Parts, free: NDArray[np.bool_]) -> Learned:
    _, M, L = votes.sizes
    K = len(votes.base_rate)
    full = np.zeros(len(free))
    full[free] = x
    t, m, level, b, d = np.split(full, np.cumsum([1, M, L, 1]))
    leak = float(b[0]) if parts.meaning else math.inf
    return Learned(float(t[0]), m, level, leak, d.reshape(K, K))


def fit(
    votes: Votes,
    parts: Parts,
    ridge: Ridge,
    start: Learned | None = None,
    tol: float = 1e-9,
    went: Callable[[int], None] = lambda rows: None,
) -> tuple[Learned, bool]:
    """Minimise the objective by L-BFGS-B; and whether it came to an end.

    It starts from worth 1 and five percent of leak, and ends where a step gains less than `tol`.
    `went` is told through how many annotations it went; in the end also those it did not need to.
    """
    from scipy.optimize import minimize

    free, (_, M, L), K = _free(votes, parts), votes.sizes, len(votes.base_rate)
    if start is None:
        leak = 3 + math.log(max(K - 1, 1))
        start = Learned(0.0, np.zeros(M), np.zeros(L), leak, np.zeros((K, K)))
    x = np.concatenate(
        [[start.scale], start.annotator, start.level, [start.leak], start.deviation.ravel()]
    )
    bound = np.concatenate([[_SCALE], np.full(M + L, _PART), [_LEAK], np.full(K * K, _PART)])
    low = -bound
    low[1 + M + L] = 0
    found = minimize(
        objective,
        x[free],
        args=(votes, parts, ridge, free),
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([low[free], bound[free]], axis=1),
        callback=lambda x: went(len(votes.item)),
        options={"maxiter": MOST, "ftol": tol, "gtol": 1e-6},
    )
    went((MOST - int(found.nit)) * len(votes.item))
    return _unpack(found.x, votes, parts, free), bool(found.success)


def folds(votes: Votes, rng: np.random.Generator, n_folds: int = 3) -> list[tuple[Votes, Votes]]:
    """Votes to learn from and votes of other items to predict; each item is predicted once."""
    N, R = votes.sizes[0], len(votes.item)
    fold = rng.permutation(N) % n_folds
    if R > _ENOUGH:
        votes = votes.some(rng.random(N) < _ENOUGH / R)
        fold = fold[: votes.sizes[0]]
    pairs = [(votes.some(fold != f), votes.some(fold == f)) for f in range(n_folds)]
    return [(train, test) for train, test in pairs if len(train.item) and len(test.item)]


def trials(parts: Parts) -> int:
    """How many ridges `choose` tries."""
    return 1 + (len(_GRID) - 1) * sum(parts)


def choose(
    pairs: list[tuple[Votes, Votes]],
    parts: Parts,
    went: Callable[[int], None] = lambda rows: None,
) -> tuple[Ridge, float]:
    """The ridges under which held-out items are predicted best, one after the other; and how well.

    `pairs` are `folds`: what is predicted, with what the others taught.
    """
    starts: list[Learned | None] = [None] * len(pairs)

    def held_out(ridge: Ridge) -> float:
        total: list[Floats] = []
        for f, (train, test) in enumerate(pairs):
            starts[f] = at = fit(train, parts, ridge, starts[f], _ROUGHLY, went)[0]
            total.append(losses(test, at.worth(test), at.C))
        return float(np.mean(np.concatenate(total)))

    best = Ridge()
    if not pairs:
        return best, math.nan
    score = held_out(best)
    for name in (name for name, on in parts._asdict().items() if on):
        others = [strength for strength in _GRID if strength != getattr(best, name)]
        for ridge in [best._replace(**{name: strength}) for strength in others]:
            if (tried := held_out(ridge)) < score:
                best, score = ridge, tried
    return best, score
