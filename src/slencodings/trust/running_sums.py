"""Sums of what came before and after, within groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slencodings.opinion import Codes, Floats


class Groups(NamedTuple):
    """Elements in groups that have an order: each can add up those before and after it.

    Attributes
    ----------
    order : (B,), the elements sorted by group, and by time within; None if they are already
    first, last : (B,), where the group of each sorted element begins and ends
    """

    order: Codes | None
    first: Codes
    last: Codes

    @classmethod
    def of(cls, group: Codes) -> Groups:
        """Elements that come in the order of time, whatever the order of their groups."""
        sorted_already = bool(np.all(group[1:] >= group[:-1]))
        order = None if sorted_already else np.argsort(group, kind="stable")
        g = group if order is None else group[order]
        new = np.flatnonzero(np.r_[True, g[1:] != g[:-1]]) if len(g) else np.zeros(0, np.intp)
        size = np.diff(np.r_[new, len(g)])
        return cls(order, np.repeat(new, size), np.repeat(new + size - 1, size))

    def before_and_after(self, value: Floats) -> tuple[Floats, Floats]:
        """For each element, the sums of those before it and after it in its group.

        The values are (B,), or several for each element, (B, K).
        """
        x, upto = self._added_up(value)
        without = upto - x
        return self._back(without - without[self.first]), self._back(upto[self.last] - upto)

    def after(self, value: Floats) -> Floats:
        """For each element, the sum of those after it in its group."""
        _, upto = self._added_up(value)
        return self._back(upto[self.last] - upto)

    def others(self, value: Floats) -> Floats:
        """For each element, the sum of all others in its group."""
        x, upto = self._added_up(value)
        before = upto - x
        return self._back(upto[self.last] - before[self.first] - x)

    def _added_up(self, value: Floats) -> tuple[Floats, Floats]:
        x = value if self.order is None else value[self.order]
        return x, np.cumsum(x, axis=0)

    def _back(self, value: Floats) -> Floats:
        """From the sorted order to that of the elements."""
        if self.order is None:
            return value
        back = np.empty(value.shape)
        back[self.order] = value
        return back
