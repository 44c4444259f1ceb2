"""Score every method on the same held-out votes, and call one best only if it shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings import metrics
from slencodings.annotations import Annotations
from slencodings.evaluation import gold as right
from slencodings.evaluation.methods import Fitted, Method, methods_for
from slencodings.evaluation.predictors import Floats, crowd_habits

# What is scored of each method: log-losses of a vote by anybody, the same without the detour
# through the crowd's habits, and of a vote by this annotator; Brier score and agreement.
SCORES = ("votes", "direct", "own", "brier", "agreement")


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on the same held-out votes of one crowd.

    Attributes
    ----------
    rows : one dict per method, best first. `votes`, `direct`, `own` are mean log-losses of held-out
        votes by anybody, the same not through the crowd's habits, and by this annotator, each with
        `_low` and `_high`. `behind` is `votes` less those of the first row on the same items, also
        with `_low` and `_high`; `best` and `best_own` say whether all paired intervals are above 0.
        `brier` and `agreement` of what `votes` predicts; `uncertainty`, the mean over items;
        `seconds` of one fit; `converged`. With gold: `accuracy` (labels that tie count in parts),
        `_low`, `_high`, `macro_f1`; with a soft truth `jsd` (root) and `nes`
    notes : what people should know besides, a sentence each
    about : sizes, folds, resamples and seed
    """

    rows: list[dict[str, Any]]
    notes: list[str]
    about: dict[str, Any]

    def __str__(self) -> str:
        from slencodings.evaluation.text import as_text

        return as_text(self.rows, self.notes, self.about)


def compare(
    annotations: Annotations,
    *,
    reliability: Any = None,
    gold: Any = None,
    methods: Sequence[str] | None = None,
    folds: int = 5,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Comparison:
    """Compare voting, models of annotators and SLE by how well they predict votes not shown.

    Items are dealt into folds. What a method learns, it learns on the other folds; then each
    annotation is predicted from the others on its item. Methods that infer a truth are scored
    directly, and through the crowd's habits: what people say where the truth is k, learned by EM.

    Parameters
    ----------
    reliability : as in `aggregate.sle`, for the row "SLE, given reliability"; what came with the
        annotations when absent
    gold : mapping from item to label, codes (N,) with -1 for unknown, or a soft truth (N, K) with
        NaN for unknown
    methods : the rows to compute; all that suit the crowd when absent
    folds, bootstrap, seed : items are dealt and resampled so often, by a generator of this seed
    progress : called with fits done, fits in all and the method

    Examples
    --------
    >>> from slencodings.datasets import digits_crowd
    >>> crowd = digits_crowd(rng=0)
    >>> found = compare(crowd.annotations, gold=crowd.gold, methods=["soft votes", "SLE, kappa"])
    >>> [(row["method"], round(row["votes"], 1), row["best"]) for row in found.rows]
    [('SLE, kappa', 1.7, True), ('soft votes', 1.7, False)]
    """
    a, notes = _once_each(annotations, reliability)
    chosen = _chosen(methods_for(a), methods)
    truth = right.as_truth(a, gold)
    rng = np.random.default_rng(seed)
    fold = _deal(a, folds, rng)
    steps = int(fold.max()) + 2
    sums = np.zeros((len(chosen), len(SCORES), len(a.items)))
    rows: list[dict[str, Any]] = []
    probabilities: list[Floats] = []
    for i, (name, method) in enumerate(chosen.items()):
        for f in range(steps - 1):
            progress(i * steps + f, len(chosen) * steps, name)
            train, test = (a.rows(keep[a.item]) for keep in (fold != f, fold == f))
            for s, score in enumerate(_score(method, train, test)):
                sums[i, s] += np.bincount(test.item, score, len(a.items))
        progress(i * steps + steps - 1, len(chosen) * steps, name)
        start = time.perf_counter()
        fit = method(a)
        rows.append({"method": name, "seconds": time.perf_counter() - start, **_said(fit)})
        probabilities.append(fit.probability)
        notes += [f"{name}: {note}" for note in fit.notes]
        notes += [] if fit.converged else [f"{name} did not converge"]
    counts = np.bincount(a.item, minlength=len(a.items)) * (fold >= 0)
    _measure(rows, sums, counts, bootstrap, rng)
    if truth is not None:
        _measure_gold(rows, probabilities, truth, bootstrap, rng)
    about = {
        "annotations": len(a.item),
        "items": len(a.items),
        "annotators": len(a.annotators),
        "labels": len(a.labels),
        "scored": int(counts.sum()),
        "folds": steps - 1,
        "bootstrap": bootstrap,
        "seed": seed,
    }
    return Comparison(sorted(rows, key=lambda row: row["votes"]), notes, about)


def _once_each(annotations: Annotations, reliability: Any) -> tuple[Annotations, list[str]]:
    """The annotations to compare on, with all that was stated of them.

    An annotator's first word on an item only, or they would be among the others who predict them.
    """
    a = annotations.completed(reliability)
    if len(a.annotators) <= 1:
        return a, ["annotators are not told apart, so nothing is learned about them"]
    _, first = np.unique(a.item * len(a.annotators) + a.annotator, return_index=True)
    keep = np.zeros(len(a.item), dtype=bool)
    keep[first] = True
    repeated = int(np.sum(~keep))
    if not repeated:
        return a, []
    note = f"{repeated:,} annotations repeat an (item, annotator) pair and are left out"
    return a.rows(keep), [note]


def _chosen(known: dict[str, Method], wanted: Sequence[str] | None) -> dict[str, Method]:
    if wanted is None:
        return known
    folded = {name.casefold(): name for name in known}
    wrong = [name for name in wanted if name.casefold() not in folded]
    if wrong or not wanted:
        raise ValueError(
            f"`methods` must be some of {', '.join(map(repr, known))}; "
            f"{wrong[0] if wrong else wanted!r} came. Some need annotators, confidence or "
            "reliability, which this crowd may not have."
        )
    return {folded[name.casefold()]: known[folded[name.casefold()]] for name in wanted}


def _deal(a: Annotations, folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """A fold for each item that has two annotations or more; -1 for the others, which train."""
    shared = np.flatnonzero(np.bincount(a.item, minlength=len(a.items)) > 1)
    if folds < 2 or len(shared) < 2:
        raise ValueError(
            "methods are compared on held-out items, so at least two folds and two items with "
            f"several annotations are needed; folds={folds} and {len(shared)} such items came."
        )
    fold = np.full(len(a.items), -1)
    fold[rng.permutation(shared)] = np.arange(len(shared)) % min(folds, len(shared))
    return fold


def _score(method: Method, train: Annotations, test: Annotations) -> Floats:
    """The scores (5, R) of the annotations to test, from what the others taught."""
    fit = method(train)
    votes = direct = fit.reader.predict(test)
    if fit.infers_truth:
        votes = direct @ crowd_habits(fit.reader.predict(train), train)
    own = fit.reader.predict_own(train, test)
    y = test.vectors
    top = votes >= votes.max(axis=1, keepdims=True) * (1 - 1e-12)
    return np.stack(
        [
            *(_log_loss(y, p) for p in (votes, direct, own)),
            np.sum((votes - y) ** 2, axis=1),
            np.sum(y * top, axis=1) / top.sum(axis=1),
        ]
    )


def _log_loss(y: Floats, p: Floats) -> Floats:
    """- sum_k y_k log p_k, infinite where what was said got no chance."""
    with np.errstate(divide="ignore"):
        # Rounding may leave a certain label a hair above 1.
        return np.sum(y * np.where(y > 0, -np.log(np.minimum(p, 1)), 0), axis=1)


def _said(fit: Fitted) -> dict[str, Any]:
    mean = None if fit.uncertainty is None else float(np.mean(fit.uncertainty))
    return {"uncertainty": mean, "converged": bool(fit.converged)}


def _measure(
    rows: list[dict[str, Any]],
    sums: Floats,
    counts: NDArray[Any],
    bootstrap: int,
    rng: np.random.Generator,
) -> None:
    """Means, intervals, and who is behind whom; into the rows."""
    scored = counts > 0
    sums, counts = sums[:, :, scored], counts[scored]
    mean = sums.sum(axis=2) / counts.sum()
    losses = sums[:, :3].reshape(-1, len(counts))
    drawn = _resample(losses.T, counts, bootstrap, rng).reshape(bootstrap, len(rows), 3)
    for i, row in enumerate(rows):
        row.update(zip(SCORES, mean[i].tolist(), strict=True))
        for s, name in enumerate(SCORES[:3]):
            row.update(_interval(name, drawn[:, i, s]))
    leader, own_leader = int(np.argmin(mean[:, 0])), int(np.argmin(mean[:, 2]))
    for i, row in enumerate(rows):
        row["behind"] = float(mean[i, 0] - mean[leader, 0])
        row.update(_interval("behind", drawn[:, i, 0] - drawn[:, leader, 0]))
        row["best"] = i == leader and _ahead(drawn[:, :, 0], leader)
        row["best_own"] = i == own_leader and _ahead(drawn[:, :, 2], own_leader)


def _ahead(drawn: Floats, leader: int) -> bool:
    """Whether there are others and the leader is ahead of each in 97.5 of 100 resamples."""
    others = np.delete(drawn, leader, axis=1) - drawn[:, [leader]]
    return bool(others.size and np.all(np.quantile(others, 0.025, axis=0) > 0))


def _measure_gold(
    rows: list[dict[str, Any]],
    probabilities: list[Floats],
    truth: Floats,
    bootstrap: int,
    rng: np.random.Generator,
) -> None:
    known = ~np.isnan(truth).any(axis=1)
    truth = truth[known]
    soft = bool(np.any((truth > 0) & (truth < 1)))
    given = [p[known] for p in probabilities]
    shares = np.stack([metrics.shares_right(truth, p) for p in given], axis=1)
    drawn = _resample(shares, np.ones(len(truth)), bootstrap, rng)
    for i, (row, p) in enumerate(zip(rows, given, strict=True)):
        row["accuracy"] = float(shares[:, i].mean())
        row.update(_interval("accuracy", drawn[:, i]))
        row["macro_f1"] = metrics.macro_f1(truth, p)
        row.update(right.distances(truth, p) if soft else {})


def _resample(sums: Floats, counts: NDArray[Any], n: int, rng: np.random.Generator) -> Floats:
    """Means of items drawn with replacement, (n, S), from sums (N, S) over counts (N,)."""
    endless = np.isinf(sums)
    finite = np.where(endless, 0, sums)
    drawn = np.empty((n, sums.shape[1]))
    for b in range(n):
        times = np.bincount(rng.integers(0, len(counts), len(counts)), minlength=len(counts))
        drawn[b] = times @ finite / (times @ counts)
        drawn[b, times @ endless > 0] = np.inf
    return drawn


def _interval(name: str, drawn: Floats) -> dict[str, float | None]:
    """The middle 95 of 100 resamples; infinity less infinity has none."""
    if not len(drawn) or np.isnan(drawn).any():
        return {f"{name}_low": None, f"{name}_high": None}
    low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    return {f"{name}_low": float(low), f"{name}_high": float(high)}
