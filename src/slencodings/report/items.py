"""The items of a report: which are listed, and what is told of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from slencodings.annotations import Annotations
from slencodings.evaluation.measure import codes_of_truth
from slencodings.opinion import Codes, Floats
from slencodings.report.names import ITEM_LETTERS, NAME_LETTERS, rounded, shown, which_are_listed
from slencodings.report.summary import Item, Items
from slencodings.report.todo import MOST_EACH, ListedItems, Todo
from slencodings.report.without import Without, likeliest
from slencodings.triage import reasons
from slencodings.trust import Weighed

# Labels of an item whose belief is told one by one.
_BELIEFS = 6
TEXT_LETTERS = 500
# Addresses of pictures in the web, or in files beside the page; never on another machine's disk.
_PICTURE = re.compile(
    r"(https?://\S+|(?!//|\\\\)[^:?#]+)\.(png|jpe?g|gif|webp|svg|bmp|avif)([?#]\S*)?", re.IGNORECASE
)


class ItemColumns(NamedTuple):
    """What came with the items, each with a value for every item, (N,).

    Attributes
    ----------
    text : the name of what to read of an item, and the text; None if nobody asked for it
    fields : what else to show of an item, by name
    gold : (N, K), what is known to be true, NaN where nothing is; None if nothing is
    """

    text: tuple[str, Sequence[Any]] | None = None
    fields: Mapping[str, Sequence[Any]] = {}
    gold: Floats | None = None


def describe_items(
    annotations: Annotations,
    weighed: Weighed,
    without: Without,
    todo: Todo,
    chosen: ListedItems,
    *,
    columns: ItemColumns,
    seed: int,
) -> Items:
    """The items that are listed, each with its annotations, the heaviest first."""
    a, people = annotations, dict[int, int]()
    order = np.argsort(a.item, kind="stable")
    first = np.searchsorted(a.item[order], np.arange(len(a.items) + 1))

    def annotations_of(i: int) -> list[list[Any]]:
        rows = order[first[i] : first[i + 1]]
        heaviest = rows[np.argsort(-weighed.weight[rows], kind="stable")[:MOST_EACH]]
        return [as_vote(a, weighed, without, q, people) for q in heaviest.tolist()]

    rows = _rows(a, weighed, todo, chosen, columns, annotations_of)
    everybody = shown(a.annotators.tolist(), NAME_LETTERS)
    return {
        "listed": which_are_listed(
            len(a.items),
            len(rows),
            "item",
            f"{len(rows):,} of {len(a.items):,} items are listed, to keep this page small: the "
            f"most uncertain, those in sharpest conflict, and {chosen.drawn:,} drawn at random "
            f"(seed {seed}). Search, filters and sorting see these alone; sle encode gives the "
            "opinion of every item.",
        ),
        "text": columns.text[0] if columns.text else None,
        "fields": list(columns.fields),
        "pictures": [name for name, values in columns.fields.items() if are_pictures(values)],
        "annotators": [everybody[m] for m in people],
        "rows": rows,
    }


def _rows(
    a: Annotations,
    weighed: Weighed,
    todo: Todo,
    chosen: ListedItems,
    columns: ItemColumns,
    annotations_of: Callable[[int], list[list[Any]]],
) -> list[Item]:
    """What is told of each item that is listed."""
    true, people_say = likeliest(weighed.truth), likeliest(weighed.votes)
    P, b = np.asarray(weighed.truth.probability), np.asarray(weighed.votes.belief)
    names = shown(a.items[chosen.items].tolist(), ITEM_LETTERS)
    n = np.bincount(a.item, minlength=len(a.items))
    gold = None if columns.gold is None else codes_of_truth(columns.gold)
    whys = _reasons(a, weighed, todo, chosen.items)
    return [
        {
            "item": name,
            "text": as_text(columns.text[1][i]) if columns.text else None,
            "fields": [as_text(values[i]) for values in columns.fields.values()],
            "gold": None if gold is None or gold[i] < 0 else int(gold[i]),
            "why": str(todo.why[i]),
            "reason": why,
            "votes": int(n[i]),
            "label": int(true[i]),
            "probability": rounded(P[i, true[i]]),
            "people_say": int(people_say[i]),
            "belief": _most_believed(b[i]),
            "uncertainty": rounded(weighed.votes.uncertainty[i]),
            "conflict": rounded(weighed.conflict[i]),
            "annotations": annotations_of(i),
        }
        for i, name, why in zip(chosen.items.tolist(), names, whys, strict=True)
    ]


def _most_believed(belief: Floats) -> list[list[float]]:
    """The labels that are believed most, and how far."""
    top = np.argsort(-belief, kind="stable")[:_BELIEFS]
    return [[k, rounded(belief[k])] for k in top.tolist() if belief[k] >= 5e-4]


def _reasons(a: Annotations, weighed: Weighed, todo: Todo, items: Codes) -> list[str]:
    """Why these items are settled or open; of these alone, as it takes a while for very many."""
    truth = weighed.truth.rows(items)
    evidence = weighed.evidence._replace(n=weighed.evidence.n[items])
    return reasons(
        a.of_items(items),
        weighed._replace(truth=truth, evidence=evidence),
        todo.why[items],
        least_votes=todo.limits.least_votes,
        least_probability=todo.limits.least_probability,
    )


def as_text(value: Any) -> str | None:
    """A value as text that is not too long, which loses its end; None where there is none."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    text = str(value)
    text = text if len(text) <= TEXT_LETTERS else text[: TEXT_LETTERS - 1] + "…"
    return text.encode(errors="replace").decode()


def are_pictures(values: Sequence[Any]) -> bool:
    """Whether all values there are look like addresses of pictures, and are not cut."""
    there = [str(value) for value in values if value is not None]
    return bool(there) and all(_PICTURE.fullmatch(x) and len(x) <= TEXT_LETTERS for x in there)


def as_vote(
    a: Annotations,
    weighed: Weighed,
    without: Without,
    q: int,
    people: dict[int, int],
) -> list[Any]:
    """Annotator, label, its share, stated confidence, weight; label and probability without.

    A list rather than a dict, as these are most of the page; with the digits that are shown.
    """
    label = int(np.argmax(a.y[q])) if a.soft else int(a.y[q])
    who = int(a.annotator[q])
    at = without.pair[q]
    return [
        people.setdefault(who, len(people)),
        label,
        rounded(a.y[q][label], 2) if a.soft else 1,
        None if a.stated is None else rounded(a.stated[q]),
        rounded(weighed.weight[q], 2),
        int(without.leader[at]),
        rounded(without.probability[at], 2),
    ]
