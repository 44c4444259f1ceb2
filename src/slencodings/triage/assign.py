"""Who is to annotate what, and what may be spent on that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slencodings.annotations import Annotations
from slencodings.annotators.verdicts import pairs_met
from slencodings.opinion import Codes, Floats
from slencodings.triage.outlook import MOST_EACH


class Assignment(NamedTuple):
    """Who is to annotate what.

    Attributes
    ----------
    item, annotator : int arrays (A,), positions in `items` and `annotators`, sorted
    unassigned : int array (N,), planned annotations of each item that nobody is left to give
    """

    item: Codes
    annotator: Codes
    unassigned: Codes

    @property
    def by_item(self) -> Codes:
        """How many annotations each item gets, by whomever, (N,)."""
        return np.bincount(self.item, minlength=len(self.unassigned)) + self.unassigned


def assign(
    annotations: Annotations, planned: ArrayLike, *, value: ArrayLike, capacity: Any = None
) -> Assignment:
    """Who gives the planned annotations: those of most value first, nobody an item twice.

    From the annotator of most value to the least, each takes up to their capacity of items they
    have not annotated, those first that have the fewest others to turn to. Nobody of value 0 is
    asked. Nearly always the best sum of value; not always, as nobody swaps afterwards.

    Parameters
    ----------
    planned : int array (N,), further annotations of each item
    value : (M,), what an annotation of each is worth, 0 or more, such as per unit of cost
    capacity : further annotations of each annotator at most, a number or (M,). If absent, work is
        spread: all take an equal share, and equal shares again of what is left

    Examples
    --------
    >>> from slencodings import from_table
    >>> rows = {"item": ["p", "p", "q"], "who": ["ann", "bob", "ann"], "label": [1, 0, 1]}
    >>> crowd = from_table(rows, item="item", annotator="who", label="label")
    >>> assign(crowd, [1, 1], value=[0.9, 0.6])
    Assignment(item=array([1]), annotator=array([1]), unassigned=array([1, 0]))
    """
    N, M = len(annotations.items), len(annotations.annotators)
    wanted = counts("planned", planned, N, "item")
    active = np.flatnonzero(wanted)
    left = wanted[active]
    r = _values(value, M)
    order: list[int] = np.argsort(-r, kind="stable")[: np.count_nonzero(r)].tolist()
    done, who = pairs_met(annotations)
    done, who = np.searchsorted(active, done[wanted[done] > 0]), who[wanted[done] > 0]
    met: list[Codes] = np.split(done, np.searchsorted(who, np.arange(1, M + 1)))[:M]
    known = [len(items) for items in met]
    share = -(-int(left.sum()) // max(len(order), 1))
    room = np.full(M, share) if capacity is None else counts("capacity", capacity, M, "annotator")
    before = None
    while left.any() and left.sum() != before and (before is None or capacity is None):
        before = left.sum()
        seen = np.concatenate([done[:0], *(met[m] for m in order)])
        later = len(order) - np.bincount(seen, minlength=len(active))
        for m in order:
            can = np.ones(len(active), dtype=bool)
            can[met[m]] = False
            later -= can  # who comes after m
            open_ = np.flatnonzero(can & (left > 0))
            n = min(int(room[m]), len(open_))
            # The least to spare first; a unique key makes ties go by order.
            spare = (later - left)[open_] * len(open_) + np.arange(len(open_))
            chosen = open_[np.argpartition(spare, n - 1)[:n]] if n else open_[:0]
            left[chosen] -= 1
            met[m] = np.concatenate([met[m], chosen])
    new: list[Codes] = [items[n:] for items, n in zip(met, known, strict=True)]
    item = active[np.concatenate([np.empty(0, dtype=np.intp), *new])]
    annotator = np.repeat(np.arange(M), [len(items) for items in new])
    rows = np.lexsort((annotator, item))
    unassigned = np.zeros(N, dtype=np.intp)
    unassigned[active] = left
    return Assignment(item[rows], annotator[rows], unassigned)


def _values(value: ArrayLike, M: int) -> Floats:
    r = np.asarray(value, dtype=float)
    if r.shape != (M,) or not np.all(r >= 0):
        raise ValueError(
            f"`value` must be one number of at least 0 for each annotator, ({M},); shape {r.shape} "
            f"came{', or something below 0' * (r.shape == (M,))}."
        )
    return r


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
        item, annotator = pairs_met(a)
        met = np.bincount(item[self.value[annotator] > 0], minlength=N)
        return np.minimum(np.count_nonzero(self.value) - met, MOST_EACH)

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
