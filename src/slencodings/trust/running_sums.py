"""Sums of what came before and after, within groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slencodings.opinion import Codes, Floats


class OrderedGroups(NamedTuple):
    """Elements in groups that have an order: each can add up the others, those before and after.

    Values are (B,), or (..., B) for several of each element.

    Attributes
    ----------
    order : (B,), the elements sorted by group, and by time within; None if they are already
    place : (B,), where each element is among them
    first, end : (B,), where among them the group of each element begins, and the next one does
    """

    order: Codes | None
    place: Codes
    first: Codes
    end: Codes

    @classmethod
    def of(cls, group: Codes) -> OrderedGroups:
        """Elements that come in the order of time, whatever the order of their groups."""
        B = len(group)
        sorted_already = bool(np.all(group[1:] >= group[:-1]))
        order = None if sorted_already else np.argsort(group, kind="stable")
        g = group if order is None else group[order]
        new = np.flatnonzero(np.r_[True, g[1:] != g[:-1]]) if B else np.zeros(0, np.intp)
        size = np.diff(np.r_[new, B])
        place, first, end = np.arange(B), np.repeat(new, size), np.repeat(new + size, size)
        if order is None:
            return cls(None, place, first, end)
        back = np.empty_like(order)
        back[order] = place
        return cls(order, back, first[back], end[back])

    def others_and_before(self, value: Floats) -> Floats:
        """For each element, the sums of all others in its group and of those before, (2, ..., B).

        One running sum gives both, and its transpose gives slopes. So they are rounded as the sum
        of all elements is, by at most (B + 2) eps sum |value|; `annotations.leave_one_out` rounds
        as the sum of a group is, and costs a sum more for each of the two.

        >>> OrderedGroups.of(np.asarray([0, 0, 0])).others_and_before(np.asarray([1.0, 2.0, 4.0]))
        array([[6., 5., 3.],
               [0., 1., 3.]])
        """
        upto = self._added_up(value)
        start = upto[..., self.first]
        both = np.stack([upto[..., self.end], upto[..., self.place]])
        both -= start
        both[0] -= value
        return both

    def others_and_after(self, of_others: Floats, of_later: Floats) -> Floats:
        """For each element, what all others in its group and those after it have, in one sum.

        It is the transpose of `others_and_before`: who adds up an element has it for another, or
        for an earlier one.
        """
        every, later = self._added_up(of_others), self._added_up(of_later)
        total = every[..., self.end] - every[..., self.first] - of_others
        total += later[..., self.end] - later[..., self.place] - of_later
        return total

    def _added_up(self, value: Floats) -> Floats:
        """The sums of the first 0, 1, ... B values of the sorted elements, (..., B + 1)."""
        upto = np.zeros((*value.shape[:-1], value.shape[-1] + 1))
        np.cumsum(value if self.order is None else value[..., self.order], -1, out=upto[..., 1:])
        return upto
