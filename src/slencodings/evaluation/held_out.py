"""Score every method on the same held-out votes, and call one best only if it shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings import metrics
from slencodings.annotations import Annotations
from slencodings.evaluation.gold import as_truth
from slencodings.evaluation.methods import Fitted, Method, methods_for
from slencodings.evaluation.predictors import crowd_habits
from slencodings.evaluation.rows import About, Row
from slencodings.evaluation.text import as_text
from slencodings.opinion import Codes, Floats

# What is scored of each method: log-losses of a vote by anybody, the same without the detour
# through the crowd's habits, and of a vote by this annotator; Brier score and agreement.
SCORES = ("votes", "direct", "own", "brier", "agreement")


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on the same held-out votes of one crowd.

    Attributes
    ----------
    rows : one `Row` each, best first. `votes`, `direct`, `own` are mean log-losses of held-out
        votes by anybody, the same not through the crowd's habits, and by this annotator, each with
        `_low` and `_high`. `behind` is `votes` less those of the first row on the same items, also
        with `_low` and `_high`; `best` and `best_own` say whether all paired intervals are above 0.
        `own` is None if there are not several annotators to tell apart.
        `brier` and `agreement` of what `votes` predicts; `uncertainty`, the mean over items;
        `seconds` of one fit; `converged`. With gold: `accuracy` (labels that tie count in parts),
        `_low`, `_high`, `macro_f1`; `truth`, the mean log-loss of the gold labels, with `_low`,
        `_high` and `best_truth`; `too_sure`, the mean probability of the likeliest label less
        accuracy; with a soft truth `jsd` (root) and `nes`
    notes : what people should know besides, a sentence each
    about : sizes, folds, resamples and seed
    """

    rows: list[Row]
    notes: list[str]
    about: About

    def __str__(self) -> str:
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
    truth = as_truth(a, gold)
    rng = np.random.default_rng(seed)
    fold = _deal(a, folds, rng)
    steps = int(fold.max()) + 2
    sums = np.zeros((len(chosen), len(SCORES), len(a.items)))
    fits: dict[str, Fitted] = {}
    seconds: list[float] = []
    for i, (name, method) in enumerate(chosen.items()):
        for f in range(steps - 1):
            progress(i * steps + f, len(chosen) * steps, name)
            train, test = (a.rows(keep[a.item]) for keep in (fold != f, fold == f))
            for s, score in enumerate(_score(method, train, test)):
                sums[i, s] += np.bincount(test.item, score, len(a.items))
        progress(i * steps + steps - 1, len(chosen) * steps, name)
        start = time.perf_counter()
        fits[name] = fit = method(a)
        seconds.append(time.perf_counter() - start)
        notes += [f"{name}: {note}" for note in fit.notes]
        notes += [] if fit.converged else [f"{name} did not converge"]
    counts = np.bincount(a.item, minlength=len(a.items)) * (fold >= 0)
    rows = _measure(fits, seconds, sums, counts, bootstrap, rng, own=len(a.annotators) > 1)
    if truth is not None:
        _measure_gold(rows, list(fits.values()), truth, bootstrap, rng)
    about = About(
        annotations=len(a.item),
        items=len(a.items),
        annotators=len(a.annotators) if a.named else None,
        labels=len(a.labels),
        scored=int(counts.sum()),
        folds=steps - 1,
        bootstrap=bootstrap,
        seed=seed,
    )
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


def _deal(a: Annotations, folds: int, rng: np.random.Generator) -> Codes:
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
    return np.stack(
        [
            *(_log_loss(y, p) for p in (votes, direct, own)),
            np.sum((votes - y) ** 2, axis=1),
            np.sum(y * metrics.top_shares(votes), axis=1),
        ]
    )


def _log_loss(y: Floats, p: Floats) -> Floats:
    """- sum_k y_k log p_k, infinite where what was said got no chance."""
    with np.errstate(divide="ignore"):
        # Rounding may leave a certain label a hair above 1.
        return np.sum(y * np.where(y > 0, -np.log(np.minimum(p, 1)), 0), axis=1)


def _measure(
    fits: dict[str, Fitted],
    seconds: list[float],
    sums: Floats,
    counts: Codes,
    bootstrap: int,
    rng: np.random.Generator,
    *,
    own: bool,
) -> list[Row]:
    """Means, intervals, and who is behind whom; without `own` nothing of this annotator."""
    scored = counts > 0
    sums, counts = sums[:, :, scored], counts[scored]
    mean: Floats = sums.sum(axis=2) / counts.sum()
    losses = sums[:, :3].reshape(-1, len(counts))
    drawn = _resample(losses.T, counts, bootstrap, rng).reshape(bootstrap, len(fits), 3)
    leader, own_leader = int(np.argmin(mean[:, 0])), int(np.argmin(mean[:, 2]))
    rows: list[Row] = []
    for i, (name, fit) in enumerate(fits.items()):
        votes, direct, this, brier, agreement = mean[i].tolist()
        ends = [_interval(drawn[:, i, s]) for s in range(3)]
        behind = _interval(drawn[:, i, 0] - drawn[:, leader, 0])
        rows.append(
            {
                "method": name,
                "seconds": seconds[i],
                "uncertainty": None if fit.uncertainty is None else float(np.mean(fit.uncertainty)),
                "converged": bool(fit.converged),
                "votes": votes,
                "direct": direct,
                "own": this if own else None,
                "brier": brier,
                "agreement": agreement,
                "votes_low": ends[0].low,
                "votes_high": ends[0].high,
                "direct_low": ends[1].low,
                "direct_high": ends[1].high,
                "own_low": ends[2].low if own else None,
                "own_high": ends[2].high if own else None,
                "behind": votes - float(mean[leader, 0]),
                "behind_low": behind.low,
                "behind_high": behind.high,
                "best": i == leader and _ahead(drawn[:, :, 0], leader),
                "best_own": own and i == own_leader and _ahead(drawn[:, :, 2], own_leader),
            }
        )
    return rows


def _ahead(drawn: Floats, leader: int) -> bool:
    """Whether there are others, and the interval of how far each is behind is above 0."""
    behind = np.delete(drawn, leader, axis=1) - drawn[:, [leader]]
    lows = [_interval(column).low for column in behind.T]
    return bool(lows) and all(low is not None and low > 0 for low in lows)


def _measure_gold(
    rows: list[Row],
    fits: list[Fitted],
    truth: Floats,
    bootstrap: int,
    rng: np.random.Generator,
) -> None:
    """How right each method is where the truth is known; into the rows."""
    known = ~np.isnan(truth).any(axis=1)
    truth = truth[known]
    soft = bool(np.any((truth > 0) & (truth < 1)))
    given = [fit.probability[known] for fit in fits]
    shares = np.stack([metrics.shares_right(truth, p) for p in given], axis=1)
    losses = np.stack([_log_loss(truth, p) for p in given], axis=1)
    both = np.concatenate([shares, losses], axis=1)
    drawn, drawn_losses = np.split(_resample(both, np.ones(len(truth)), bootstrap, rng), 2, axis=1)
    leader = int(np.argmin(losses.mean(axis=0)))
    for i, (row, p) in enumerate(zip(rows, given, strict=True)):
        row["accuracy"] = float(shares[:, i].mean())
        row["accuracy_low"], row["accuracy_high"] = _interval(drawn[:, i])
        row["truth"] = float(losses[:, i].mean())
        row["truth_low"], row["truth_high"] = _interval(drawn_losses[:, i])
        row["best_truth"] = i == leader and _ahead(drawn_losses, leader)
        row["too_sure"] = float(p.max(axis=1).mean()) - row["accuracy"]
        row["macro_f1"] = metrics.macro_f1(truth, p)
        if soft:
            row["jsd"] = float(np.mean(metrics.jsd(truth, p, root=True)))
            row["nes"] = metrics.entropy_similarity(truth, p)


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


class _Interval(NamedTuple):
    low: float | None
    high: float | None


def _interval(drawn: Floats) -> _Interval:
    """The middle 95 of 100 resamples; infinity less infinity has none."""
    if not len(drawn) or np.isnan(drawn).any():
        return _Interval(None, None)
    low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    return _Interval(float(low), float(high))
