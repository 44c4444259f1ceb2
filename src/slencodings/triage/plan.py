"""How open an item is and why, what a further annotation is worth there, and where to put many."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slencodings.opinion import Codes, Floats, Opinion

Goal: TypeAlias = Literal["label", "probability", "uncertainty"]


def dissonance(opinion: Opinion) -> Floats:
    """How far opinions on an item conflict, (...), in [0, 1 - u]; for two labels 2 min(b).

    diss = sum_k b_k (sum_{j != k} b_j Bal(b_j, b_k)) / (sum_{j != k} b_j),
    Bal(b_j, b_k) = 1 - |b_j - b_k| / (b_j + b_k) = 2 min(b_j, b_k) / (b_j + b_k), 0 where one is 0

    Uncertainty is the other half, the *vacuity* of the source: Jøsang, Cho and Chen, "Uncertainty
    characteristics of subjective opinions", FUSION 2018.

    Examples
    --------
    >>> b = np.asarray([[0.4, 0.4, 0.0], [0.8, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> dissonance(Opinion(b, 1 - b.sum(-1), np.full((3, 3), 1 / 3)))
    array([0.8, 0. , 0. ])
    """
    b = np.asarray(opinion.belief, dtype=float)
    total = np.zeros(b.shape[:-1])
    for k in range(b.shape[-1]):
        # The sum of the others, not the whole less b_k, which would cancel.
        b_k, b_j = b[..., k, None], np.delete(b, k, axis=-1)
        rest = np.sum(b_j, axis=-1)
        pair = b_k + b_j
        balance = 2 * np.minimum(b_k, b_j) / np.where(pair == 0, 1, pair)
        share = b_j / np.where(rest == 0, 1, rest)[..., None]
        total += b[..., k] * np.sum(share * balance, axis=-1)
    return total


def why(opinion: Opinion, *, target: float, conflict: float = 0.5) -> NDArray[np.str_]:
    """Why an item is open, (N,): "few" opinions, opinions in "conflict", or it is "settled".

    few       u > target: get more annotations. Whether they conflict is too early to tell
    conflict  enough, but dissonance > conflict: more votes would confirm the split; look at the
              guidelines, ask an expert, or train on the distribution as it is
    settled   enough, and they agree

    Parameters
    ----------
    target : uncertainty to reach, in (0, 1]
    conflict : dissonance to bear, in [0, 1]; between two labels 0.5 is a quarter of all belief
        against the rest (u = 0), and 0.2 a tenth

    Examples
    --------
    >>> b = np.asarray([[0.2, 0.2], [0.5, 0.4], [0.9, 0.0]])
    >>> why(Opinion(b, 1 - b.sum(-1), np.full((3, 2), 0.5)), target=0.2)
    array(['few', 'conflict', 'settled'], dtype='<U8')
    """
    few = np.asarray(opinion.uncertainty) > _reached(target)
    split = dissonance(opinion) > within_one("conflict", conflict)
    return np.where(few, "few", np.where(split, "conflict", "settled"))


def annotations_needed(opinion: Opinion, certainty: float, *, target: float) -> Floats:
    """How many annotations of this certainty bring uncertainty to the target, (N,).

    n = ceil((1 / target - 1 / u) / w),   w = c / (1 - c);   0 where u <= target

    Whole numbers, or inf for never: where c = 0. One that is certain (c = 1) is enough.

    Parameters
    ----------
    certainty : c = reliability x (1 - uncertainty) of a further annotation, in [0, 1]
    target : uncertainty to reach, in (0, 1]

    Examples
    --------
    >>> from slencodings.opinion import encode
    >>> annotations_needed(encode(np.eye(3), [1.0, 0.5, 0.1]), 0.6, target=0.2)
    array([3., 2., 0.])
    """
    u, c = np.asarray(opinion.uncertainty, dtype=float), within_one("certainty", certainty)
    target = _reached(target)
    far = u > target
    if c == 0:
        return np.where(far, np.inf, 0.0)
    missing = 1 / target - 1 / np.where(far, u, 1)
    return np.where(far, np.maximum(np.ceil(missing * ((1 - c) / c)), 1), 0.0)


def plan(
    opinion: Opinion, certainty: float, *, budget: int, goal: Goal = "label", most: Any = None
) -> Codes:
    """The best use of a budget: how many further annotations each item gets, int (N,).

    n annotations of an item reduce what the goal adds up by   n g / (1 + (n - 1) y),
    g by the first,   y = w u / (1 + w u), the share of u that the first takes away

    Each next one gives less, so it is optimal to take the largest gains first. Where nothing is to
    be gained, nothing is spent. Ties go by the order of items.

    Parameters
    ----------
    certainty : c = reliability x (1 - uncertainty) of a further annotation, in [0, 1]
    budget : annotations to give away, at most
    goal : what to reduce; "uncertainty": u, by g = u y. "probability": the expected squared error
        of the probability (Brier score), 1 - sum P^2, by g = y^2 (1 - sum P^2), exact if labels
        come as the opinion predicts. "label": the chance that the leading label is wrong,
        1 - max P; a vote that cannot change the leader takes exactly nothing from it though three
        might, so it is taken to fall as the squared error does, by g = y^2 (1 - max P)
    most : int array (N,), limits for each item, such as the annotators who have not seen it

    Examples
    --------
    >>> from slencodings.opinion import encode
    >>> opinion = encode(np.asarray([[1.0, 0.0], [0.5, 0.5]]), 0.2)
    >>> plan(opinion, 0.5, budget=3, goal="uncertainty"), plan(opinion, 0.5, budget=3)
    (array([2, 1]), array([0, 3]))
    """
    (budget,) = counts("budget", [budget], 1, "plan").tolist()
    g, y = first_gain(opinion, certainty, goal)
    limit = np.full(g.shape, budget)
    if most is not None:
        limit = np.minimum(limit, counts("most", most, len(g), "item"))
    # After one that is certain there is nothing left to gain.
    limit = np.where(g > 0, np.where(y == 1, np.minimum(limit, 1), limit), 0)
    some = limit > 0
    limit[some] = _largest_gains(g[some], y[some], limit[some].astype(float), budget)
    return limit


def first_gain(opinion: Opinion, certainty: float, goal: Goal) -> tuple[Floats, Floats]:
    """What the first further annotation takes: g of the goal and the share y of uncertainty."""
    if goal not in get_args(Goal):
        known = ", ".join(map(repr, get_args(Goal)))
        raise ValueError(f"`goal` must be one of {known}; {goal!r} came.")
    c = within_one("certainty", certainty)
    u, P = (np.asarray(x, dtype=float) for x in (opinion.uncertainty, opinion.probability))
    whole = 1 - c + c * u
    y = c * u / np.where(whole == 0, 1, whole)  # w u / (1 + w u) without its infinities
    if goal == "uncertainty":
        return u * y, y
    risk = 1 - (np.max(P, axis=-1) if goal == "label" else np.sum(P**2, axis=-1))
    # Rounding may leave one label of probability 1 a hair above it.
    return np.maximum(risk, 0) * y**2, y


def _largest_gains(g: Floats, y: Floats, limit: Floats, budget: int) -> Floats:
    """How many of each item's gains are among the `budget` largest of all, ties by order.

    The n-th gain is g (1 - y) / (t (t - y)) with t = 1 + (n - 1) y, which falls with n, so a level
    that gains must reach is searched for; how many reach it is a quadratic equation.
    """
    if limit.sum() <= budget:
        return limit

    def reach(level: float) -> Floats:
        with np.errstate(over="ignore"):
            t = (y + np.sqrt(y**2 + 4 * (1 - y) * (g / level))) / 2
            n = np.floor(1 + (t - 1) / y)
        return np.where(g >= level, np.clip(n, 1, limit), 0)

    t = 1 + (limit - 1) * y
    last = np.where(limit == 1, g, g * (1 - y) / (t * np.where(limit == 1, 1, t - y)))
    low, high = (float(np.nextafter(x, to)) for x, to in ((last.min() / 2, 1), (g.max(), np.inf)))
    while low < (level := float(np.sqrt(low) * np.sqrt(high))) < high:
        low, high = (level, high) if reach(level).sum() > budget else (low, level)
    sure = reach(high)
    ties = reach(low) - sure
    return sure + np.clip(budget - sure.sum() - (np.cumsum(ties) - ties), 0, ties)


def within_one(name: str, value: float) -> float:
    """A number in [0, 1]."""
    # Written so that NaN fails it.
    if not 0 <= value <= 1:
        raise ValueError(f"`{name}` must be a number in [0, 1]; {value} came.")
    return float(value)


def _reached(target: float) -> float:
    """The most uncertainty that meets the target."""
    if not 0 < target <= 1:
        raise ValueError(
            f"`target` is an uncertainty to reach, in (0, 1]; {target} came. "
            "0.2 takes four prior weights of evidence, 0.1 takes nine."
        )
    # Also where only rounding is missing, as where 50 / 3 x 99 comes out a hair above 1650.
    return target * (1 + 1e-12)


def counts(name: str, values: ArrayLike, size: int, each: str) -> Codes:
    """Whole numbers of at least 0, one for all or one for each."""
    n = np.asarray(values)
    if n.shape not in {(), (size,)}:
        raise ValueError(
            f"`{name}` must be a number or one for each {each}, ({size},); shape {n.shape} came."
        )
    bad = np.flatnonzero(~((n >= 0) & (n == np.floor(n)) & (n <= 2**53)))
    if len(bad):
        raise ValueError(
            f"`{name}` must be whole numbers, 0 or more; {len(bad)} of {n.size} are not, "
            f"first {np.atleast_1d(n)[bad[0]]} at position {bad[0]}."
        )
    return np.broadcast_to(n, (size,)).astype(np.intp)
