"""Means of scores, how far they would move on other items, and who is ahead for sure.

Of held-out votes, and of gold labels where the truth is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from slencodings import metrics
from slencodings.aggregate.em import gold_codes
from slencodings.annotations import Annotations, sums_by
from slencodings.evaluation.learner import Encoding
from slencodings.evaluation.predicted import LOSSES, SCORES, log_loss
from slencodings.evaluation.rows import Row
from slencodings.kinds.ordered import absolute_error
from slencodings.opinion import Codes, Floats

# Resamples that are in memory at a time.
_AT_ONCE = 50
# Items are drawn again and folds are not, though others would move the scores as well: with J = 5
# folds by sqrt(1 + J n_test / n_train), as Nadeau and Bengio (2003) correct for it.
OTHER_FOLDS = 1.5
# Scores that only labels in an order have.
_OF_AN_ORDER = ("ranked", "steps", "wasserstein")


class Interval(NamedTuple):
    """Between which a number lies; nothing where that cannot be told."""

    low: float | None
    high: float | None


class Resampled(NamedTuple):
    """A score of all methods, lower is better.

    Attributes
    ----------
    mean : (methods,)
    drawn : (resamples, methods), means over items drawn with replacement, the same for all
    wider : how many times as wide an interval must be above 0 for a star
    """

    mean: Floats
    drawn: Floats
    wider: float = 1.0

    @property
    def leader(self) -> int:
        """Whose mean is lowest."""
        return int(np.argmin(self.mean))

    def interval(self, i: int) -> Interval:
        """Where the mean of a method lies."""
        return middle(self.drawn[:, i])

    def behind(self, i: int) -> Interval:
        """How far a method is behind the leader, on the same items."""
        with np.errstate(invalid="ignore"):
            return middle(self.drawn[:, i] - self.drawn[:, self.leader])

    def best(self, i: int) -> bool:
        """Whether it leads others, and how far each is behind is above 0 for sure."""
        rivals = [j for j in range(len(self.mean)) if j != i == self.leader]
        gaps = [(float(self.mean[j] - self.mean[i]), self.behind(j).low) for j in rivals]
        return bool(gaps) and all(told_apart(gap, low, self.wider) for gap, low in gaps)


def told_apart(gap: float, low: float | None, wider: float = OTHER_FOLDS) -> bool:
    """Whether a gap is above 0 for sure: its interval, made wider by so many times, ends above 0.

    >>> told_apart(0.3, 0.11), told_apart(0.3, 0.09), told_apart(0.3, 0.09, 1.0)
    (True, False, True)
    """
    if low is None or low <= 0:
        return False
    return math.isinf(gap) or wider * (gap - low) < gap


def measure(
    targets: dict[str, Encoding],
    seconds: list[float],
    sums: Floats,
    counts: Floats,
    bootstrap: int,
    rng: np.random.Generator,
    *,
    direct: bool = True,
    own: bool,
    joint: bool,
    ordered: bool,
) -> list[Row]:
    """Rows of means and intervals, and who is behind whom, from scores added up by item.

    `sums` are (methods, S, N) over `counts` (S, N). Without `own` nothing is said of this
    annotator, without `joint` nothing of several votes together, without `direct` nothing of votes
    not through the crowd's habits, and unless labels are `ordered` nothing of the steps between.
    """
    scored = counts[0] > 0
    sums, counts = sums[:, :, scored], counts[:, scored]
    mean: Floats = sums.sum(axis=2) / counts.sum(axis=1)
    S = len(LOSSES)
    by_item = np.moveaxis(sums[:, :S], 2, 0).reshape(len(counts[0]), -1)
    drawn = resample(by_item, np.tile(counts[:S].T, (1, len(targets))), bootstrap, rng)
    drawn = drawn.reshape(bootstrap, len(targets), S)
    asked = {"votes": True, "direct": direct, "own": own, "joint": joint}
    losses = {
        name: Resampled(mean[:, s], drawn[:, :, s], OTHER_FOLDS) if asked[name] else None
        for s, name in enumerate(LOSSES)
    }
    rows: list[Row] = []
    for i, (name, target) in enumerate(targets.items()):
        u = target.uncertainty
        row = {
            "method": name,
            "seconds": seconds[i],
            "uncertainty": None if u is None else float(np.mean(u)),
            "converged": bool(target.converged),
            **{score: None if x is None else float(x.mean[i]) for score, x in losses.items()},
            **{
                score: float(x) if ordered or score not in _OF_AN_ORDER else None
                for score, x in zip(SCORES[S:], mean[i, S:], strict=True)
            },
            **_intervals(i, losses),
            "doubts": target.doubts,
        }
        rows.append(cast(Row, row))
    return rows


def _intervals(i: int, losses: Mapping[str, Resampled | None]) -> dict[str, float | None]:
    """Where the losses of a method lie, how far it is behind, and whether it is best for sure."""
    found: dict[str, float | None] = {}
    for name, loss in losses.items():
        ends = (None, None) if loss is None else loss.interval(i)
        found[f"{name}_low"], found[f"{name}_high"] = ends
    for name, behind in (("votes", "behind"), ("joint", "joint_behind")):
        loss = losses[name]
        found[behind] = None if loss is None else float(loss.mean[i] - loss.mean.min())
        ends = (None, None) if loss is None else loss.behind(i)
        found[f"{behind}_low"], found[f"{behind}_high"] = ends
    for name, best in (("votes", "best"), ("own", "best_own"), ("joint", "best_joint")):
        loss = losses[name]
        found[best] = loss is not None and loss.best(i)
    return found


def as_truth(a: Annotations, gold: Any) -> Floats | None:
    """Gold labels as distributions (N, K), NaN where unknown; a soft truth is checked and kept."""
    if gold is None:
        return None
    N, K = len(a.items), len(a.labels)
    if np.ndim(gold) == 2:
        truth = np.asarray(gold, dtype=float)
        known = ~np.isnan(truth).any(axis=1)
        if truth.shape != (N, K) or not np.allclose(truth[known].sum(axis=1), 1, atol=5e-3):
            raise ValueError(
                f"`gold` as a soft truth must be ({N}, {K}), probabilities of each item's labels; "
                f"shape {truth.shape} came, sums to {truth[known].sum(axis=1)[:1]}. "
                "Set the rows of unknown items to NaN."
            )
    else:
        codes = gold_codes(a, gold)
        truth = np.where((codes >= 0)[:, None], np.eye(K)[codes], np.nan)
    if np.isnan(truth).any(axis=1).all():
        raise ValueError("`gold` must know at least one item; none came. Leave it out.")
    return truth


def codes_of_truth(truth: Floats) -> Codes:
    """The likeliest true label of each item, (N,), -1 where nothing is known."""
    known = ~np.isnan(truth).any(axis=1)
    return np.where(known, np.argmax(np.nan_to_num(truth), axis=1), -1)


def measure_gold(
    rows: list[Row],
    targets: list[Encoding],
    truth: Floats,
    bootstrap: int,
    rng: np.random.Generator,
    *,
    ordered: bool,
) -> None:
    """How right each method is where the truth is known; into the rows."""
    known = ~np.isnan(truth).any(axis=1)
    truth = truth[known]
    soft = bool(np.any((truth > 0) & (truth < 1)))
    given = [target.probability[known] for target in targets]
    shares = np.stack([metrics.shares_right(truth, p) for p in given], axis=1)
    losses = np.stack([log_loss(truth, p) for p in given], axis=1)
    both = np.concatenate([shares, losses], axis=1)
    drawn = np.split(resample(both, np.ones((len(truth), 1)), bootstrap, rng), 2, axis=1)
    right, lost = (
        Resampled(x.mean(axis=0), d) for x, d in zip((shares, losses), drawn, strict=True)
    )
    for i, (row, p) in enumerate(zip(rows, given, strict=True)):
        row["accuracy"] = float(right.mean[i])
        row["accuracy_low"], row["accuracy_high"] = right.interval(i)
        row["truth"] = float(lost.mean[i])
        row["truth_low"], row["truth_high"] = lost.interval(i)
        row["best_truth"] = lost.best(i)
        row["too_sure"] = float(p.max(axis=1).mean()) - row["accuracy"]
        row["macro_f1"] = metrics.macro_f1(truth, p)
        if ordered:
            row["truth_steps"] = float(np.mean(absolute_error(truth, p)))
        if soft:
            row["jsd"] = float(np.mean(metrics.jsd(truth, p, root=True)))
            row["nes"] = metrics.entropy_similarity(truth, p)


def resample(sums: Floats, counts: NDArray[Any], n: int, rng: np.random.Generator) -> Floats:
    """Means of items drawn with replacement, (n, S), from sums over counts, both (N, S)."""
    N = len(sums)
    endless = np.isinf(sums)
    finite = np.where(endless, 0, sums)
    drawn = np.empty((n, sums.shape[1]))
    for b in range(0, n, _AT_ONCE):
        some = range(b, min(b + _AT_ONCE, n))
        times = np.stack([np.bincount(rng.integers(0, N, N), minlength=N) for _ in some])
        times = times.astype(float)
        means = times @ finite / (times @ counts)
        drawn[b : b + len(some)] = np.where(times @ endless > 0, np.inf, means)
    return drawn


def resample_groups(group: Codes, values: Floats, n: int, rng: np.random.Generator) -> Floats:
    """The same, (n, V), of values (R, V), whose groups (R,) are drawn whole."""
    of = np.unique(group, return_inverse=True)[1]
    sums = np.stack([sums_by(of, column) for column in values.T], axis=1)
    counts = np.tile(np.bincount(of)[:, None], (1, values.shape[1]))
    return resample(sums, counts, n, rng)


def middle(drawn: Floats) -> Interval:
    """The middle 95 of 100 resamples; infinity less infinity has none."""
    if not len(drawn) or np.isnan(drawn).any():
        return Interval(None, None)
    low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    return Interval(float(low), float(high))
