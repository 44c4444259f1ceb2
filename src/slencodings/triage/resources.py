"""What may be spent on further annotations, and who is asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats
from slencodings.triage.assign import Assignment, assign, not_yet, pairs
from slencodings.triage.plan import MOST_EACH


class Resources(NamedTuple):
    """What an annotation of each annotator is worth (0: not to be asked) and costs, (M,) each.

    Without prices all cost the same; `budget`, `capacity` and `newcomers` are those of `triage`.
    """

    value: Floats
    price: Floats | None
    budget: float
    capacity: Any
    newcomers: bool

    def affordable(self, n_items: int) -> int:
        """How many annotations the budget pays at most."""
        cheapest = 1.0
        if self.price is not None:
            cheapest = float(np.min(self.price[self.value > 0], initial=np.inf))
        return int(min(self.budget // cheapest, n_items * MOST_EACH))

    def most_each(self, a: Annotations) -> Codes:
        """How many further annotations each item can get, (N,)."""
        N = len(a.items)
        if self.newcomers and self.price is None:
            return np.full(N, MOST_EACH)
        return np.minimum(not_yet(self.value, *pairs(a), N), MOST_EACH)

    def assign(self, a: Annotations, planned: Codes, gain: Floats) -> Assignment:
        """Who gives the planned annotations, as far as they can be paid, by what they gain."""
        if self.price is None:
            given = assign(a, planned, value=self.value, capacity=self.capacity)
            none = np.zeros(len(planned), dtype=np.intp)
            return given if self.newcomers else given._replace(unassigned=none)
        room = len(planned) * MOST_EACH if self.capacity is None else self.capacity
        given = assign(a, planned, value=self.value / self.price, capacity=room)
        return _within(given, gain / np.maximum(planned, 1), self.price, self.budget)

    def cost(self, given: Assignment) -> float:
        """What an assignment costs."""
        if self.price is None:
            return float(len(given.item) + given.unassigned.sum())
        return float(np.sum(self.price[given.annotator]))


def resources_of(
    a: Annotations,
    value: Floats,
    budget: float,
    capacity: Any,
    costs: Mapping[Any, float] | None,
    newcomers: bool,
) -> Resources:
    """What there is, checked; nobody can be asked who has no name."""
    price = None if costs is None else _prices(a, costs)
    # Written so that NaN fails it.
    if not 0 <= budget < np.inf:
        raise ValueError(f"`budget` must be a number of at least 0; {budget} came.")
    return Resources(value if a.named else 0 * value, price, budget, capacity, newcomers)


def _within(given: Assignment, gain: Floats, price: Floats, budget: float) -> Assignment:
    """As many of the assigned annotations as the budget pays, most for the money first."""
    cost = price[given.annotator]
    order = np.argsort(-gain[given.item] / cost, kind="stable")
    # Sums of prices such as .1 come out a hair too large.
    paid = np.cumsum(cost[order]) <= budget * (1 + 1e-12)
    kept = np.sort(order[paid])
    none = np.zeros_like(given.unassigned)
    return Assignment(given.item[kept], given.annotator[kept], none)


def _prices(a: Annotations, costs: Mapping[Any, float]) -> Floats:
    """What an annotation of each annotator costs, (M,)."""
    by_text = {str(name): cost for name, cost in costs.items()}
    names = [str(name) for name in a.annotators.tolist()]
    unknown = [name for name in names if name not in by_text]
    if unknown:
        raise ValueError(
            f"`costs` must know every annotator; {len(unknown)} of {len(names)} are missing, first "
            f"{unknown[0]!r}."
        )
    price = np.asarray([by_text[name] for name in names], dtype=float)
    bad = np.flatnonzero(~((price > 0) & (price < np.inf)))
    if len(bad):
        raise ValueError(
            f"`costs` must be above 0; {len(bad)} of {len(names)} are not, first "
            f"{price[bad[0]]:g} of {names[bad[0]]!r}."
        )
    return price
