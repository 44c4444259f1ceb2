"""All of it at once: why, how many, where and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats, Opinion, check
from slencodings.triage.assign import Assignment, assign, not_yet, pairs, per_annotator
from slencodings.triage.plan import (
    Goal,
    annotations_needed,
    dissonance,
    first_gain,
    plan,
    why,
    within_one,
)


class OpenItem(TypedDict):
    """One item of a `Triage`; `needed` is None for never."""

    item: Any
    why: str
    uncertainty: float
    dissonance: float
    needed: int | None
    planned: int
    expected_uncertainty: float
    annotators: list[Any]
    unassigned: int


@dataclass(frozen=True, eq=False)
class Triage:
    """What to do about each item; arrays (N,) in the order of `items`.

    Attributes
    ----------
    items, annotators : arrays (N,), (M,), names
    why : "few", "conflict" or "settled"; see `why`
    uncertainty, dissonance : how open the item is for want of opinions, and for their conflict
    needed : annotations of median certainty until uncertainty meets the target; inf for never
    gain : expected reduction of the goal by the first further annotation
    planned : further annotations that the budget pays for
    expected_uncertainty : after what is planned, by those it is assigned to
    certainty : of a further annotation by the annotator of median reliability
    assignment : who is to give them, and what is left unassigned
    """

    items: NDArray[Any]
    annotators: NDArray[Any]
    why: NDArray[np.str_]
    uncertainty: Floats
    dissonance: Floats
    needed: Floats
    gain: Floats
    planned: Codes
    expected_uncertainty: Floats
    certainty: float
    assignment: Assignment

    def to_rows(self, limit: int | None = None) -> list[OpenItem]:
        """One row for each item, the most worthwhile first, at most `limit`; None for never."""
        order = np.argsort(-self.gain, kind="stable")[:limit]
        item, annotator, unassigned = self.assignment
        first, last = (np.searchsorted(item, order, side) for side in ("left", "right"))
        names = self.annotators[annotator].tolist()
        columns = {
            "item": self.items[order],
            "why": self.why[order],
            "uncertainty": self.uncertainty[order],
            "dissonance": self.dissonance[order],
            "needed": [int(n) if n < np.inf else None for n in self.needed[order]],
            "planned": self.planned[order],
            "expected_uncertainty": self.expected_uncertainty[order],
            "annotators": [names[i:j] for i, j in zip(first, last, strict=True)],
            "unassigned": unassigned[order],
        }
        lists = (v if isinstance(v, list) else v.tolist() for v in columns.values())
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
        return cast(list[OpenItem], rows)

    def summary(self) -> str:
        """What is to be done, in a few sentences."""
        n = {name: int(np.sum(self.why == name)) for name in ("few", "conflict", "settled")}
        never = int(np.sum(np.isinf(self.needed)))
        needed = int(np.sum(self.needed[~np.isinf(self.needed)]))
        lines = [
            f"{len(self.items):,} items: {n['few']:,} have too few opinions, {n['conflict']:,} "
            f"have opinions that conflict, {n['settled']:,} are settled.",
            f"{needed:,} annotations by the median annotator would bring them all to the target"
            + (f", but for {never:,} items that none would." if never else "."),
            f"Planned: {int(self.planned.sum()):,} annotations of "
            f"{int(np.sum(self.planned > 0)):,} items; mean uncertainty "
            f"{_mean_in_words(self.uncertainty)} -> {_mean_in_words(self.expected_uncertainty)}.",
        ]
        alone = int(self.assignment.unassigned.sum())
        if alone:
            lines.append(f"{alone:,} of them need somebody new: all others have seen the item.")
        return "\n".join(lines)

    def table(self, limit: int) -> tuple[list[str], list[list[str]]]:
        """The heads of a table and its cells, the most worthwhile items first."""
        heads = ["item", "why", "uncertainty", "dissonance", "needed", "planned"]
        cells = [
            [
                str(row["item"]),
                row["why"],
                f"{row['uncertainty']:.3f}",
                f"{row['dissonance']:.3f}",
                "never" if row["needed"] is None else f"{row['needed']:,}",
                f"{row['planned']:,}",
                f"{row['expected_uncertainty']:.3f}",
                ", ".join(map(str, row["annotators"])),
            ]
            for row in self.to_rows(limit)
        ]
        return [*heads, "uncertainty after", "by whom"], cells


def triage(
    opinion: Opinion,
    annotations: Annotations,
    *,
    reliability: Any,
    uncertainty: float | None = None,
    target: float = 0.2,
    conflict: float = 0.5,
    budget: int | None = None,
    goal: Goal = "label",
    capacity: Any = None,
    newcomers: bool = True,
) -> Triage:
    """Why each item is open, how many annotations it needs, which to buy, and from whom.

    Parameters
    ----------
    opinion : Opinion (N,), what is known of each item, such as `aggregate.sle(annotations)`
    annotations : who annotated what, so that nobody is asked twice, and the names
    reliability : number, (M,), mapping or binomial opinions, of the annotators
    uncertainty : doubt to expect in a further annotation; the median of the annotations if absent
    target, conflict, goal, capacity : see `why`, `plan` and `assign`
    budget : how many annotations can be paid; what the target needs if absent
    newcomers : whether somebody new may annotate what all have annotated; such annotations are
        planned and left unassigned, otherwise they are not planned

    Examples
    --------
    >>> from slencodings.aggregate import sle
    >>> from slencodings import from_table
    >>> rows = {"item": list("ppppq"), "who": list("abcda"), "y": [1, 0, 0, 1, 0]}
    >>> crowd = from_table(rows, item="item", annotator="who", label="y")
    >>> skill = {"a": 0.6, "b": 0.7, "c": 0.6, "d": 0.5}
    >>> todo = triage(sle(crowd, reliability=skill), crowd, reliability=skill, budget=2)
    >>> [(row["item"], row["why"], row["planned"], row["annotators"]) for row in todo.to_rows()]
    [('q', 'few', 2, ['b', 'c']), ('p', 'conflict', 0, [])]
    """
    N, u = len(annotations.items), np.asarray(check(opinion).uncertainty, dtype=float)
    if u.shape != (N,):
        raise ValueError(
            f"`opinion` needs one opinion for each of the {N} items, ({N},); shape {u.shape} came. "
            "aggregate.sle(annotations) makes such."
        )
    r = per_annotator(annotations, reliability)
    doubt = _median(annotations.uncertainty) if uncertainty is None else uncertainty
    c = r * (1 - within_one("uncertainty", doubt))
    typical = _median(c)
    needed = annotations_needed(opinion, typical, target=target)
    most = None if newcomers else not_yet(r, *pairs(annotations), N)
    if budget is None:
        # What takes billions is never in practice.
        planned = np.where(needed < 2**31, needed, 0).astype(np.intp)
        planned = planned if most is None else np.minimum(planned, most)
    else:
        planned = plan(opinion, typical, budget=budget, goal=goal, most=most)
    assignment = assign(annotations, planned, reliability=r, capacity=capacity)
    return Triage(
        items=annotations.items,
        annotators=annotations.annotators,
        why=why(opinion, target=target, conflict=conflict),
        uncertainty=u,
        dissonance=dissonance(opinion),
        needed=needed,
        gain=first_gain(opinion, typical, goal)[0],
        planned=planned,
        expected_uncertainty=_expected_uncertainty(u, assignment, c, typical),
        certainty=typical,
        assignment=assignment,
    )


def _expected_uncertainty(u: Floats, given: Assignment, c: Floats, typical: float) -> Floats:
    """u / (1 + u sum w); what is unassigned is expected of newcomers as good as the typical one."""
    everybody = np.append(c, typical)
    with np.errstate(divide="ignore"):
        w = everybody / (1 - everybody)  # infinite for the certain
    new = np.where(given.unassigned > 0, w[-1], 0) * np.maximum(given.unassigned, 1)  # inf x 0 = 0
    total = np.bincount(given.item, w[given.annotator], len(u)) + new
    return u / (1 + total * u)


def _mean_in_words(x: Floats) -> str:
    return f"{np.mean(x):.3f}" if len(x) else "none"


def _median(x: Floats) -> float:
    return float(np.median(x)) if len(x) else 0.0
