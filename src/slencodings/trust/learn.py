"""Learn whom to trust from the crowd itself."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from slencodings.annotations import Annotations
from slencodings.trust import objective
from slencodings.trust.objective import Floats, Parts, Ridge
from slencodings.trust.value import Trust

# Of more labels what a vote says about others is not learned.
MOST_MEANT = 100


def learn_trust(
    annotations: Annotations,
    *,
    by_annotator: bool = True,
    by_confidence: bool = True,
    meaning: bool = True,
    ridge: Ridge | None = None,
    max_levels: int = 20,
    rng: np.random.Generator | int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Trust:
    """Learn what annotations are worth by predicting each from the others on its item.

    minimise sum_q - y_q . log P_q + ridges,   P_q = (sum w v + a) / (sum w + 1) over the others,
    w = exp(t + t_annotator + t_level),   v = y C,   a = label frequencies

    Levels are those of `annotations.confidence`; a constant has none. Items with one annotation
    teach nothing. `objective` has the formulas in full.

    Parameters
    ----------
    by_annotator, by_confidence, meaning : which parts to learn
    ridge : how strongly to hold back each part; chosen on held-out items when absent
    max_levels : if more values than these are stated, as many of their quantiles are the levels
    rng : a generator or the seed of one, for the items held out
    progress : called with through how many annotations it went, one by one and again in every
        iteration, and through how many it may have to; what a fit did not need to counts as done

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [q // 3 for q in range(54)], "who": ["ann", "bob", "eve"] * 18}
    >>> said["label"] = [0, 0, 1, 1, 1, 0, 0, 0, 0] * 6
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> r = learn_trust(crowd, meaning=False).reliability
    >>> r["ann"] > r["eve"], r["bob"] > r["eve"]
    (True, True)
    """
    item, who = annotations.item, annotations.annotator
    paired = np.bincount(item, minlength=len(annotations.items))[item] > 1
    if not np.any(paired):
        raise ValueError(
            "trust is learned by comparing annotations of the same item, so some item needs two; "
            f"{len(item)} annotations came and each is alone on its item."
        )
    if max_levels < 1:
        raise ValueError(f"`max_levels` must be at least 1; {max_levels} came. 20 is usual.")
    levels, level = np.zeros(0), np.zeros(len(item), dtype=np.intp)
    if by_confidence:
        x = annotations.confidence
        levels = _levels(x[paired], max_levels)
        level = np.searchsorted((levels[1:] + levels[:-1]) / 2, x)
    levels = levels if len(levels) > 1 else np.zeros(0)
    M, K, L = len(annotations.annotators), len(annotations.labels), max(len(levels), 1)
    y = annotations.y
    given = np.bincount(y[paired], minlength=K) if y.ndim == 1 else y[paired].sum(axis=0)
    # One annotation more, spread evenly: a label that nobody gave is not impossible.
    a = (given + 1 / K) / (given.sum() + 1)
    votes = objective.votes(item, who, level, y, a, M, L)
    parts = Parts(by_annotator, len(levels) > 0, meaning)
    losses = {"votes": objective.losses(votes, np.full(len(votes.item), 0.5), np.eye(K)).mean()}
    pairs = objective.folds(votes, np.random.default_rng(rng)) if ridge is None else []
    chosen_from = objective.trials(parts) * sum(len(train.item) for train, _ in pairs)
    went = _counter(progress, objective.MOST * (chosen_from + len(votes.item)))
    if ridge is None:
        ridge, held_out = objective.choose(pairs, parts, went)
        losses |= {} if math.isnan(held_out) else {"held_out": held_out}
    found, converged = objective.fit(votes, parts, ridge, went=went)
    losses["learned"] = objective.losses(votes, found.worth(votes), found.C).mean()
    top = found.level.max()
    worth = np.exp(found.scale + found.annotator + top)
    return Trust(
        annotators=annotations.annotators,
        worth=worth,
        count=np.bincount(votes.annotator, minlength=M),
        typical_worth=float(np.exp(np.log(worth).mean())),
        levels=levels,
        share=np.exp(found.level - top)[: len(levels)],
        level_count=np.bincount(votes.level, minlength=L)[: len(levels)],
        labels=annotations.labels,
        meaning=found.C,
        base_rate=a,
        ridge=ridge,
        losses={name: float(loss) for name, loss in losses.items()},
        from_uncertainty=annotations.stated is None,
        converged=converged,
    )


def _counter(progress: Callable[[int, int], None] | None, total: int) -> Callable[[int], None]:
    """What adds up how far it went and tells it."""
    done = 0

    def went(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    return went


def _levels(x: Floats, most: int) -> Floats:
    """The values that occur, or the middles of quantile bins if they are more than `most`."""
    values = np.unique(x)
    if len(values) <= most:
        return values
    return np.unique(np.quantile(x, (np.arange(most) + 0.5) / most, method="inverted_cdf"))
