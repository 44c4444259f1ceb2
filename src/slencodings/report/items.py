"""The items of a report: which are listed, and what is told of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats
from slencodings.report.names import shown
from slencodings.report.summary import Item, Items
from slencodings.report.without import Without, likeliest
from slencodings.triage import dissonance
from slencodings.trust.apply import Weighed

# So many are listed that a page stays below 3 MB: items, annotations in all and of one item.
MOST_ITEMS, MOST_VOTES, MOST_EACH = 2_000, 15_000, 30
# Labels of an item whose belief is told one by one.
_BELIEFS = 6
ITEM_LETTERS, NAME_LETTERS = 100, 40
# Pseudo-counts of the prior, as everywhere in the library.
_PRIOR_WEIGHT = 2.0


def describe_items(
    annotations: Annotations,
    weighed: Weighed,
    without: Without,
    why: Any,
    seed: int,
) -> Items:
    """The items that are listed, most uncertain first, each with its annotations."""
    a, opinion = annotations, weighed.opinion
    conflict = dissonance(opinion)
    chosen, drawn = choose(a, np.asarray(opinion.uncertainty), conflict, seed)
    order = np.argsort(a.item, kind="stable")
    first = np.searchsorted(a.item[order], np.arange(len(a.items) + 1))
    rows: list[Item] = []
    people: dict[int, int] = {}
    names, lead = shown(a.items[chosen].tolist(), ITEM_LETTERS), likeliest(opinion)
    P, b, u = (np.asarray(x) for x in (opinion.probability, opinion.belief, opinion.uncertainty))
    for i, name in zip(chosen.tolist(), names, strict=True):
        votes = order[first[i] : first[i + 1]]
        heaviest = np.argsort(-weighed.weight[votes], kind="stable")[:MOST_EACH]
        top = np.argsort(-b[i], kind="stable")[:_BELIEFS]
        top = top[b[i, top] >= 5e-4]
        rows.append(
            {
                "item": name,
                "why": str(why[i]),
                "votes": len(votes),
                "label": int(lead[i]),
                "probability": _round(P[i, lead[i]]),
                "uncertainty": _round(u[i]),
                "conflict": _round(conflict[i]),
                "belief": [[k, _round(b[i, k])] for k in top.tolist()],
                "annotations": [
                    as_vote(a, weighed, without, q, people) for q in votes[heaviest].tolist()
                ],
            }
        )
    everybody = shown(a.annotators.tolist(), NAME_LETTERS)
    return {
        "total": len(a.items),
        "drawn": drawn,
        "listed": _listed(len(a.items), len(rows), drawn, seed),
        "annotators": [everybody[m] for m in people],
        "rows": rows,
    }


def choose(a: Annotations, u: Floats, conflict: Floats, seed: int) -> tuple[Codes, int]:
    """Which items to list, the most uncertain first, and how many of them are drawn at random.

    All if there is room; else a third by uncertainty, a third by conflict, and the rest at random.
    """
    N = len(u)
    by_doubt, by_conflict = (np.argsort(-x, kind="stable") for x in (u, conflict))
    n = np.minimum(np.bincount(a.item, minlength=N), MOST_EACH)
    if N <= MOST_ITEMS and n.sum() <= MOST_VOTES:
        return by_doubt, 0
    at_random = np.random.default_rng(seed).permutation(N)
    third, room = MOST_ITEMS // 3, MOST_VOTES // 3
    taken, drawn = np.zeros(N, dtype=bool), 0
    for queue in (by_doubt, by_conflict, at_random):
        last = queue is at_random
        size = MOST_ITEMS - int(taken.sum()) if last else third
        cost = MOST_VOTES - int(n[taken].sum()) if last else room
        free = queue[~taken[queue]][:size]
        free = free[np.cumsum(n[free]) <= cost]
        taken[free] = True
        drawn = len(free)
    return by_doubt[taken[by_doubt]], drawn


def as_vote(
    a: Annotations,
    weighed: Weighed,
    without: Without,
    q: int,
    people: dict[int, int],
) -> list[Any]:
    """Annotator, label, its share, stated confidence, pseudo-counts; label and probability without.

    A list rather than a dict, as these are most of the page.
    """
    label = int(np.argmax(a.y[q])) if a.soft else int(a.y[q])
    who = int(a.annotator[q])
    at = without.pair[q]
    return [
        people.setdefault(who, len(people)),
        label,
        _round(a.y[q][label]) if a.soft else 1,
        None if a.stated is None else _round(a.stated[q]),
        _round(_PRIOR_WEIGHT * weighed.weight[q], 3),
        int(without.leader[at]),
        _round(without.probability[at]),
    ]


def _listed(total: int, listed: int, drawn: int, seed: int) -> str:
    if listed == total:
        return f"All {total:,} items are listed."
    return (
        f"{listed:,} of {total:,} items are listed, to keep this page small: the most uncertain, "
        f"those in sharpest conflict, and {drawn:,} drawn at random (seed {seed}). "
        "Search, filters and sorting see these alone; sle encode gives the opinion of every item."
    )


def _round(x: Any, digits: int = 4) -> float | int:
    rounded = round(float(x), digits)
    return int(rounded) if rounded == int(rounded) else rounded
