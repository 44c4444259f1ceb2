"""Which items a report lists; what to annotate next and by whom, and what to decide."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats
from slencodings.report.names import NAME_LETTERS, rounded, shown
from slencodings.report.summary import Next, Open
from slencodings.triage import Triage, assign, triage
from slencodings.triage.outlook import look_ahead
from slencodings.triage.status import Limits
from slencodings.trust import Weighed

# So many are listed that a page stays below 3 MB: items, annotations in all and of one item.
MOST_ITEMS, MOST_VOTES, MOST_EACH = 2_000, 15_000, 30


class ListedItems(NamedTuple):
    """The items that are listed, in order, and how many of them were drawn at random."""

    items: Codes
    drawn: int

    @property
    def place(self) -> dict[int, int]:
        """Where each of them is in the list."""
        return {i: n for n, i in enumerate(self.items.tolist())}


def choose(
    a: Annotations, u: Floats, conflict: Floats, seed: int, first: Codes | None = None
) -> ListedItems:
    """Which items to list, the most uncertain first.

    All if there is room; else those that must be, `first`, a third by uncertainty, a third by
    conflict, and the rest at random.
    """
    N = len(u)
    by_doubt, by_conflict = (np.argsort(-x, kind="stable") for x in (u, conflict))
    n = np.minimum(np.bincount(a.item, minlength=N), MOST_EACH)
    if N <= MOST_ITEMS and n.sum() <= MOST_VOTES:
        return ListedItems(by_doubt, 0)
    at_random = np.random.default_rng(seed).permutation(N)
    third, room = MOST_ITEMS // 3, MOST_VOTES // 3
    taken, drawn = np.zeros(N, dtype=bool), 0
    if first is not None:
        taken[first] = True
    for queue in (by_doubt, by_conflict, at_random):
        last = queue is at_random
        size = MOST_ITEMS - int(taken.sum()) if last else third
        cost = MOST_VOTES - int(n[taken].sum()) if last else room
        free = queue[~taken[queue]][:size]
        free = free[np.cumsum(n[free]) <= cost]
        taken[free] = True
        drawn = len(free)
    return ListedItems(by_doubt[taken[by_doubt]], drawn)


# Items that are named as the next to annotate or to decide, and annotators for each.
_NEXT, _ASKED = 25, 5


class Todo(NamedTuple):
    """What is the matter with each item, (N,), and the first of those to do something about.

    Attributes
    ----------
    why : "settled", "few" or "conflict"
    few : items to annotate, those first where it mends most, then the least likely to be right
    conflict : items to decide, the sharpest conflict first
    limits : by which this was decided
    plan : what `triage` would do next
    """

    why: NDArray[np.str_]
    few: Codes
    conflict: Codes
    limits: Limits
    plan: Triage


def find_todo(annotations: Annotations, weighed: Weighed, limits: Limits) -> Todo:
    """Which items are open, and why."""
    plan = triage(annotations, weighed=weighed, **limits._asdict())
    why = plan.status
    place = {name: n for n, name in enumerate(plan.items.tolist())}
    unsure = np.asarray([place[row["item"]] for row in plan.to_rows()], dtype=np.intp)
    sharp = np.argsort(-plan.conflict, kind="stable")
    few, split = unsure[why[unsure] == "few"], sharp[why[sharp] == "conflict"]
    return Todo(why, few[:_NEXT], split[:_NEXT], limits, plan)


def describe_next(
    annotations: Annotations, weighed: Weighed, todo: Todo, chosen: ListedItems
) -> Next:
    """The items to annotate and to decide, each with its place in the list of items."""
    a, place = annotations, chosen.place
    named = shown(a.annotators.tolist(), NAME_LETTERS)
    asked = _ask(a, todo.few, look_ahead(a, weighed).value) if a.named else {}

    def open_item(i: int) -> Open:
        return {
            "row": place[i],
            "conflict": rounded(weighed.conflict[i]),
            "ask": [named[m] for m in asked.get(i, [])],
        }

    return {
        "named": a.named,
        "plan": todo.plan.summary().splitlines()[1:],
        "few": [open_item(i) for i in todo.few.tolist()],
        "conflict": [open_item(i) for i in todo.conflict.tolist()],
    }


def _ask(a: Annotations, items: Codes, useful: Floats) -> dict[int, list[int]]:
    """Whom to ask about each item: those who have not seen it, who tell most first."""
    planned = np.zeros(len(a.items), dtype=np.intp)
    planned[items] = _ASKED
    given = assign(a, planned, value=useful)
    order = np.argsort(-useful[given.annotator], kind="stable")
    found: dict[int, list[int]] = {}
    for i, m in zip(given.item[order].tolist(), given.annotator[order].tolist(), strict=True):
        found.setdefault(i, []).append(m)
    return found
