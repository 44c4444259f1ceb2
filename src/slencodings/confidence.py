"""Stated confidence to uncertainty.

`linear` and `probability` take people at their word, `interval` and `entropy` read what they gave;
`calibrate` asks what their word was worth, which is usually less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slencodings.annotations import Annotations, counted, leave_one_out
from slencodings.opinion import Codes, Floats, Opinion


def linear(score: Any, *, low: float, high: float) -> Any:
    """Uncertainty from a scale: none at `high`, total at `low`.

    u = (high - score) / (high - low)

    Plain arithmetic: `score` may be an array, a Series, or a narwhals, Polars or Spark expression.
    Where 1 is the surest answer, `high` is 1.

    Examples
    --------
    >>> linear(np.asarray([1, 3, 5]), low=1, high=5)
    array([1. , 0.5, 0. ])
    """
    if not (math.isfinite(low) and math.isfinite(high) and low != high):
        raise ValueError(
            f"`low` and `high` must be two different finite scores; low={low} and high={high} "
            "came. For answers from 1 (guessed) to 5 (sure) pass low=1, high=5."
        )
    span = high - low
    return high - score if span == 1 else (high - score) / span


def probability(p: Any) -> Any:
    """Uncertainty from a stated probability of being right, `u = 1 - p`, in any arithmetic.

    Examples
    --------
    >>> probability(np.asarray([1.0, 0.75]))
    array([0.  , 0.25])
    """
    return 1 - p


def interval(lower: ArrayLike, best: ArrayLike, upper: ArrayLike) -> Opinion:
    """The binomial opinion of who says "probably `best`, between `lower` and `upper`".

    b = (lower, 1 - upper),   u = upper - lower,   a = (best - lower) / u, and a half where u = 0;
    then b + u a = best: the projected probability is the best guess.

    Parameters
    ----------
    lower, best, upper : arrays (...) in [0, 1] that broadcast, lower <= best <= upper

    Examples
    --------
    >>> opinion = interval(0.5, 0.7, 0.9)
    >>> opinion.uncertainty, opinion.probability
    (array(0.4), array([0.7, 0.3]))
    """
    low, best, high = np.broadcast_arrays(*(np.asarray(x, float) for x in (lower, best, upper)))
    bad = np.flatnonzero(~((low >= 0) & (low <= best) & (best <= high) & (high <= 1)))
    if len(bad):
        first = ", ".join(f"{x.flat[bad[0]]:g}" for x in (low, best, high))
        raise ValueError(
            "an interval must have 0 <= lower <= best <= upper <= 1; "
            f"{len(bad)} of {low.size} do not, first ({first}) at position {bad[0]}. "
            "Divide percentages by 100, and put the smaller bound first."
        )
    u = np.asarray(high - low)
    a = np.where(u > 0, (best - low) / np.where(u > 0, u, 1), 0.5)
    return Opinion(np.stack([low, 1 - high], axis=-1), u, np.stack([a, 1 - a], axis=-1))


def entropy(y: ArrayLike) -> Floats:
    """How spread out a soft label is, as a measure of its annotator's uncertainty.

    u = - sum_k y_k log y_k / log K,   in [0, 1];   0 if there is only one label

    Parameters
    ----------
    y : array (..., K), probabilities

    Examples
    --------
    >>> entropy([[0.5, 0.5], [0.0, 1.0]])
    array([1., 0.])
    """
    y = np.asarray(y, dtype=float)
    if y.ndim == 0 or y.shape[-1] == 0:
        raise ValueError(
            f"`y` must be probabilities with the K labels on the last axis; shape {y.shape} came. "
            "A label code has no entropy: its annotator chose one label."
        )
    bad = np.flatnonzero(~((np.min(y, axis=-1) >= 0) & (abs(np.sum(y, axis=-1) - 1) <= 5e-3)))
    if len(bad):
        raise ValueError(
            "`y` must be probabilities, not negative and with sum 1 over the last axis; "
            f"{len(bad)} of {y.size // y.shape[-1]} are not, first at row {bad[0]}. "
            "Divide scores by their sum: y / y.sum(-1, keepdims=True)."
        )
    H = 0.0 - np.sum(y * np.log(np.where(y > 0, y, 1)), axis=-1)
    # Rounding may leave a uniform label a hair above one.
    return np.clip(H / math.log(max(y.shape[-1], 2)), 0, 1)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What stated confidence is worth: a step function from stated confidence to uncertainty.

    Attributes
    ----------
    level : array (L,), ascending: the levels of confidence, or the lower edges of their bins
    agreement : array (L,), the share of peers who said the same, as observed
    count : array (L,), annotations behind it
    uncertainty : array (L,), not increasing: the agreement, shrunk, made monotone and corrected
        for chance, as doubt
    """

    level: Floats
    agreement: Floats
    count: Codes
    uncertainty: Floats

    def __call__(self, stated: Any) -> Any:
        """Uncertainty of stated confidence: of the level at or below, or of the lowest one.

        `stated` is an array, or a narwhals expression if this is to run inside a table. What is
        missing (NaN, null) stays missing.
        """
        import narwhals as nw

        if isinstance(stated, nw.Expr):
            # NaN counts as large in some engines and as missing in others.
            stated = stated.cast(nw.Float64()).fill_nan(None)
            first, *rest = self.to_rows()
            steps = nw.lit(first["uncertainty"])
            for row in rest:
                surer = nw.when(stated >= row["level"])
                steps = surer.then(nw.lit(row["uncertainty"])).otherwise(steps)
            return nw.when(~stated.is_null()).then(steps)
        x = np.asarray(stated, dtype=float)
        at = np.searchsorted(self.level, x, side="right") - 1
        return np.where(np.isnan(x), np.nan, self.uncertainty[np.maximum(at, 0)])

    def to_rows(self) -> list[dict[str, float]]:
        """One dict per level, for a table or a plot."""
        names = [field.name for field in fields(self)]
        rows = zip(*(getattr(self, name).tolist() for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def __str__(self) -> str:
        head = f"{'stated':>10} {'annotations':>12} {'agreement':>10} {'uncertainty':>12}"
        return "\n".join(
            [head]
            + [
                f"{row['level']:>10.4g} {row['count']:>12,} {row['agreement']:>10.3f} "
                f"{row['uncertainty']:>12.3f}"
                for row in self.to_rows()
            ]
        )


def calibrate(
    annotations: Annotations, *, prior_strength: float = 10.0, max_levels: int = 20
) -> Calibration:
    """Learn what stated confidence is worth from how often peers on the item say the same.

    p_l = (sum of agreement at level l + s p) / (n_l + s),   p the overall rate; made monotone;
    u_l = 1 - (p_l - p_e) / (1 - p_e), clipped to [0, 1],   p_e = sum_k f_k^2, agreement by chance

    An annotation agrees with the mean label of its peers by their dot product, soft labels too.
    Levels are those of `annotations.confidence`, the higher the surer. Confidence that is worth
    nothing comes out flat, and so does a scale that runs backwards: turn `stated` round then. Where
    only one label was ever used, 1 - p_e = 0 and nobody disagreed: u = 0.

    Parameters
    ----------
    prior_strength : s, the annotations at the overall rate that each level starts with
    max_levels : if more values than these occur, they are cut into as many quantile bins

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [q // 2 for q in range(200)], "label": [0, 0, 1, 1, 0, 1, 1, 1] * 25,
    ...          "sure": [3, 3, 3, 3, 1, 1, 3, 3] * 25}
    >>> print(calibrate(from_table(table, item="item", label="label", confidence="sure",
    ...                            confidence_scale=(1, 3))))
        stated  annotations  agreement  uncertainty
             1           50      0.000        1.000
             3          150      1.000        0.033
    """
    x = annotations.confidence
    if not (0 <= prior_strength < math.inf and max_levels >= 1):
        raise ValueError(
            "`prior_strength` must be at least 0 and finite, `max_levels` at least 1; "
            f"{prior_strength} and {max_levels} came. Leave them out for the usual 10 and 20."
        )
    agreement, paired, chance = _agreement(annotations)
    level = _edges_of_levels(x[paired], max_levels)
    at = np.searchsorted(level, x[paired], side="right") - 1
    count = np.bincount(at)
    agreed = np.bincount(at, agreement[paired])
    overall, s = np.sum(agreed) / np.sum(count), prior_strength

    from scipy.optimize import isotonic_regression

    p = isotonic_regression((agreed + s * overall) / (count + s), weights=count + s).x
    # Chance agreement of 1 to rounding: one label was used, so that every p is 1 too.
    certainty = (p - chance) / (1 - chance) if chance < 1 - 1e-12 else np.ones_like(p)
    return Calibration(level, agreed / count, count, 1 - np.clip(certainty, 0, 1))


def _agreement(annotations: Annotations) -> tuple[Floats, NDArray[np.bool_], float]:
    """Agreement with peers (R,), who has peers (R,), and agreement by chance among those."""
    item, y = annotations.item, annotations.y
    n = np.bincount(item, minlength=len(annotations.items))[item]
    paired = n > 1
    if not np.any(paired):
        raise ValueError(
            "calibrating compares annotations of the same item, so some item needs two; "
            f"of {counted(len(item), 'annotation')} each is alone on its item. "
            "Use linear(score, low=..., high=...), which takes confidence at its word."
        )
    if annotations.soft:
        agreed = np.sum(y * leave_one_out(y, item), axis=-1)
        f = np.mean(y[paired], axis=0)
    else:
        agreed = leave_one_out(np.ones(len(y)), item * len(annotations.labels) + y)
        f = np.bincount(y[paired]) / np.sum(paired)
    return agreed / np.maximum(n - 1, 1), paired, float(np.sum(f**2))


def _edges_of_levels(x: Floats, most: int) -> Floats:
    """The values that occur, or the lower edges of quantile bins if they are more than `most`."""
    values = np.unique(x)
    if len(values) <= most:
        return values
    return np.unique(np.quantile(x, np.arange(most) / most, method="inverted_cdf"))
