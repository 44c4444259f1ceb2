"""All of it at once: what is open and why, where to annotate next, by whom, and what it mends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted, plainly
from slencodings.opinion import Codes, Floats
from slencodings.triage.assign import Assignment, resources_of
from slencodings.triage.outlook import NEXT, Outlook, look_ahead, plan
from slencodings.triage.status import CONFLICT, LEAST_PROBABILITY, LEAST_VOTES, reasons, status
from slencodings.trust import Weighed, weigh

# Of what will be said, to tell what a plan mends, on few items and on many: these make up for it.
_DRAWS, _MANY, _FEWER_DRAWS = 256, 2_000, 64


class OpenItem(TypedDict):
    """One item of a `Triage`."""

    item: Any
    status: str
    reason: str
    label: Any
    probability: float
    votes: int
    conflict: float
    planned: int
    mends: float
    annotators: list[Any]
    unassigned: int


@dataclass(frozen=True, eq=False)
class Triage:
    """What to do about each item; arrays (N,) in the order of `items`.

    Attributes
    ----------
    items, annotators : arrays (N,), (M,), names
    status : "settled", "few" or "conflict"; see `status`
    reason : why, in a few words
    label, probability : what is likeliest true, and how likely
    votes, conflict : how many annotations, and how far they contradict each other
    planned : further annotations that the budget pays for
    mends : how many wrong labels these are expected to mend, by those who are asked
    assignment : who is to give them, and what is left unassigned
    errors, errors_after : labels expected to be wrong if each item has its likeliest, now and then
    next_mends : how many the next 100 annotations after these are expected to mend
    budget, spent : what could be paid, and what is
    truth : whether who is right was learned; else an error is what the next person would not say
    """

    items: NDArray[Any]
    annotators: NDArray[Any]
    status: NDArray[np.str_]
    reason: list[str]
    label: NDArray[Any]
    probability: Floats
    votes: Codes
    conflict: Floats
    planned: Codes
    mends: Floats
    assignment: Assignment
    errors: float
    errors_after: float
    next_mends: float
    budget: float
    spent: float
    truth: bool

    def to_rows(self, limit: int | None = None) -> list[OpenItem]:
        """One row for each item, at most `limit`: what mends most first, then the least likely."""
        # Rounded, so that what is equal but for rounding stands in the order of items.
        p, mends = np.round(self.probability, 9), np.round(self.mends, 9)
        order = np.lexsort((p, self.status == "settled", -mends))[:limit]
        item, annotator, unassigned = self.assignment
        first, last = (np.searchsorted(item, order, side) for side in ("left", "right"))
        names = self.annotators[annotator].tolist()
        columns: dict[str, list[Any]] = {
            "item": self.items[order].tolist(),
            "status": self.status[order].tolist(),
            "reason": [self.reason[i] for i in order],
            "label": self.label[order].tolist(),
            "probability": self.probability[order].tolist(),
            "votes": self.votes[order].tolist(),
            "conflict": self.conflict[order].tolist(),
            "planned": self.planned[order].tolist(),
            "mends": self.mends[order].tolist(),
            "annotators": [names[i:j] for i, j in zip(first, last, strict=True)],
            "unassigned": unassigned[order].tolist(),
        }
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return cast(list[OpenItem], rows)

    def summary(self) -> str:
        """What is known and what is to be done, in a few sentences."""
        n = {name: int(np.sum(self.status == name)) for name in ("settled", "few", "conflict")}
        lines = [
            f"{counted(len(self.items), 'item')}: {n['settled']:,} settled, {n['few']:,} with too "
            f"few opinions, {n['conflict']:,} in conflict.",
            f"If each has its likeliest label, {_amount(self.errors)} are expected to be wrong."
            + (
                ""
                if self.truth
                else " (Who is right was not learned: wrong is what the next person would not say.)"
            ),
            self._planned(),
        ]
        alone = int(self.assignment.unassigned.sum())
        if alone:
            lines.append(f"{alone:,} of them need somebody new: nobody else is left for the item.")
        if self.next_mends > 0:
            lines.append(f"The next {NEXT} are expected to mend {_amount(self.next_mends)} labels.")
        elif self.planned.any():
            lines.append("More than these are not expected to change a label.")
        return "\n".join(lines)

    def _planned(self) -> str:
        n = int(self.planned.sum())
        if not n and self.budget > 0:
            return "No annotation that could be asked for is expected to change a label."
        cost = "" if self.spent == n else f" that cost {self.spent:g}"
        return (
            f"{counted(n, 'annotation')}{cost} of {counted(int(np.sum(self.planned > 0)), 'item')}"
            f": expected errors {_amount(self.errors)} -> {_amount(self.errors_after)}."
        )

    def table(self, limit: int) -> tuple[list[str], list[list[str]]]:
        """The heads of a table and its cells, the most worthwhile items first."""
        heads = ["item", "status", "why", "planned", "mends", "by whom"]
        cells = [
            [
                str(row["item"]),
                row["status"],
                row["reason"],
                f"{row['planned']:,}",
                f"{row['mends']:z.3f}",
                ", ".join(map(plainly, row["annotators"]))
                + (" and " if row["annotators"] and row["unassigned"] else "")
                + (f"{row['unassigned']:,} new" if row["unassigned"] else ""),
            ]
            for row in self.to_rows(limit)
        ]
        return heads, cells


def triage(
    annotations: Annotations,
    *,
    weighed: Weighed | None = None,
    budget: float = NEXT,
    capacity: Any = None,
    costs: Mapping[Any, float] | None = None,
    newcomers: bool = True,
    least_votes: int = LEAST_VOTES,
    least_probability: float = LEAST_PROBABILITY,
    conflict: float = CONFLICT,
) -> Triage:
    """Which items are open and why, which to annotate next and by whom, and what that mends.

    Errors are expected by what is likely true: sum over items of (1 - max_k P). What one more
    annotation would say is averaged over, by what the annotator says where each label is true
    (`Outlook`); annotations go where they mend most (`plan`). Nobody who is at
    chance or against the crowd is asked, nobody twice about an item, and those first who tell most,
    or most for what they cost. Nobody knows what they will say: spend a part, collect, plan again.

    Parameters
    ----------
    weighed : what `trust.weigh` gave; weighed here when absent
    budget : how many annotations can be paid; with `costs`, what they may cost together
    capacity : further annotations of each annotator at most, a number or (M,). If absent, work is
        spread; with costs, who tells most for the money gets all there is
    costs : what an annotation of each annotator costs, by name
    newcomers : whether somebody new may annotate what nobody is left for; such annotations are
        planned and left unassigned, as if by a typical annotator, but not where `costs` are known
    least_votes, least_probability, conflict : as in `status`

    Examples
    --------
    >>> from slencodings import from_table
    >>> rows = {"item": list("ppppq"), "who": list("abcda"), "y": [1, 0, 0, 1, 0]}
    >>> crowd = from_table(rows, item="item", annotator="who", label="y", reliability=0.6)
    >>> todo = triage(crowd, budget=2)
    >>> [(row["item"], row["status"], row["planned"]) for row in todo.to_rows()]
    [('p', 'conflict', 2), ('q', 'few', 0)]
    """
    a, N = annotations, len(annotations.items)
    weighed = weigh(a) if weighed is None else weighed
    found = status(
        weighed, least_votes=least_votes, least_probability=least_probability, conflict=conflict
    )
    outlook = look_ahead(a, weighed)
    resources = resources_of(a, outlook.value, budget, capacity, costs, newcomers)
    planned = plan(outlook, resources.affordable(N), resources.most_each(a))
    given = resources.assign(a, planned.planned, planned.gain)
    asked = given.by_item
    mends = _mends(outlook, given, asked)
    P, errors = weighed.truth.probability, float(np.sum(outlook.risk))
    return Triage(
        items=a.items,
        annotators=a.annotators,
        status=found,
        reason=reasons(
            a, weighed, found, least_votes=least_votes, least_probability=least_probability
        ),
        label=a.labels[np.argmax(P, axis=1)] if N else a.labels[:0],
        probability=np.max(P, axis=1, initial=0),
        votes=weighed.evidence.n.astype(np.intp),
        conflict=weighed.conflict,
        planned=asked,
        mends=mends,
        assignment=given,
        errors=errors,
        errors_after=errors - float(np.sum(mends)),
        next_mends=planned.next_gain,
        budget=budget,
        spent=resources.cost(given),
        truth=weighed.crowd.model is not None,
    )


def _mends(outlook: Outlook, given: Assignment, asked: Codes) -> Floats:
    """How many labels each item's annotations mend, (N,), by those who are asked; new ones last."""
    items = np.flatnonzero(asked)
    draws = _DRAWS if len(items) <= _MANY else _FEWER_DRAWS
    place = np.arange(len(given.item)) - np.searchsorted(given.item, given.item)
    who = np.full((len(items), int(asked.max(initial=0))), outlook.typical)
    who[np.searchsorted(items, given.item), place] = given.annotator
    mends = np.zeros(len(asked))
    for n in np.unique(asked[items]).tolist():
        some = np.flatnonzero(asked[items] == n)
        mends[items[some]] = outlook.mended(items[some], who[some, :n], draws, fresh=True)[:, -1]
    return mends


def _amount(x: float) -> str:
    """Whole numbers of many, one digit of few."""
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}"
