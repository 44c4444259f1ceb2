"""The annotators of a report: how far to trust each, and who agrees with whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slencodings.aggregate.agreement import Judgments, judgments
from slencodings.annotations import Annotations
from slencodings.annotators import describe_annotators
from slencodings.opinion import Codes
from slencodings.report.items import NAME_LETTERS
from slencodings.report.names import shown
from slencodings.report.summary import Pairs, People, Person
from slencodings.report.without import Without
from slencodings.trust.apply import Weighed

# Annotators that are listed, and those in the picture of who agrees with whom.
MOST_LISTED, MOST_PAIRED = 500, 25
# Crowds with more annotations or labels have no intervals from refits, which would take minutes.
MOST_REFITTED, MOST_LABELS = 20_000, 20
# Parts of the items that are left out in turn, for intervals.
_GROUPS = 10
_NOTE = 300

NO_NAMES = (
    "No column says who annotated, so people cannot be told apart. Name it with --annotator COLUMN "
    "to see whom to trust."
)
NOT_SHARED = (
    "No item was annotated by two people, so nobody can be compared: all are trusted alike. A few "
    "items that several people annotate would tell them apart."
)


def describe_people(
    annotations: Annotations,
    weighed: Weighed,
    without: Without,
    seed: int,
    progress: Callable[[int, int], object],
) -> People:
    """A row for each annotator, most reliable first; agreement of pairs; and what to know."""
    a = annotations
    if not a.named:
        return {
            "why_not": NO_NAMES,
            "total": 0,
            "listed": "",
            "reliability": weighed.source,
            "rows": [],
            "pairs": None,
            "notes": [],
        }
    small = len(a.item) <= MOST_REFITTED and len(a.labels) <= MOST_LABELS
    learned = weighed.source == "learned"
    # What was learned is known already; only its intervals take fits.
    fitted = ["learned"] if learned and small else []
    judged = judgments(a).shared()
    roster = describe_annotators(
        a,
        estimates=[*fitted, "agreement", "kappa"],
        sort="annotations",
        groups=_GROUPS if small else 0,
        rng=seed,
        progress=progress,
    )
    M = len(a.annotators)
    place = {name: m for m, name in enumerate(a.annotators.tolist())}
    texts = shown(place, NAME_LETTERS)
    items_changed = np.bincount(without.annotator[without.changed], minlength=M)
    rows = [
        _person(row, m, texts, weighed, items_changed)
        for row, m in zip(
            roster.to_rows(), _places(roster.columns["annotator"], place), strict=True
        )
    ]
    listed = rows[:MOST_LISTED]
    listed.sort(key=lambda row: -(row["reliability"] or 0))
    notes = [note if len(note) <= _NOTE else note[:_NOTE] + "…" for note in roster.notes]
    if learned and not small:
        notes.append(
            f"With more than {MOST_REFITTED:,} annotations or {MOST_LABELS} labels there are "
            "intervals of agreement only; sle reliability computes the others."
        )
    return {
        "why_not": NOT_SHARED if not len(judged.item) else None,
        "total": M,
        "listed": _listed(M, len(listed)),
        "reliability": weighed.source,
        "rows": listed,
        "pairs": pair_agreement(judged, M, len(a.labels), texts),
        "notes": notes,
    }


def _places(names: list[Any], place: dict[Any, int]) -> list[int]:
    """Where the annotators of a roster stand; names that JSON cannot say are text there."""
    as_text = {str(name): m for name, m in place.items()}
    return [place[name] if name in place else as_text[str(name)] for name in names]


def _person(
    row: dict[str, Any], m: int, texts: list[str], weighed: Weighed, items_changed: Codes
) -> Person:
    confused = row["said"] is not None
    pair = shown([row["said"], row["peers_say"]], NAME_LETTERS) if confused else [None, None]
    return {
        "annotator": texts[m],
        # Where nothing could be learned, full trust in everybody says nothing of anybody.
        "reliability": None if weighed.source == "alike" else _round(weighed.reliability[m]),
        "reliability_low": _round(row.get("learned_low")),
        "reliability_high": _round(row.get("learned_high")),
        "annotations": row["annotations"],
        "shared_items": row["shared_items"],
        "agreement": _round(row["agreement"]),
        "agreement_low": _round(row["agreement_low"]),
        "agreement_high": _round(row["agreement_high"]),
        "kappa": _round(row["kappa"]),
        "stated": _round(row["stated"]),
        "earned": _round(row["earned"]),
        "overconfidence": _round(row["overconfidence"]),
        "said": pair[0],
        "peers_say": pair[1],
        "confused_share": _round(row["confused_share"]),
        "items_changed": int(items_changed[m]),
    }


def pair_agreement(judged: Judgments, M: int, K: int, names: list[str]) -> Pairs | None:
    """How often the busiest annotators agree two by two on items they share.

    agreement_mn = mean over shared items of y_m . y_n;   None where they share none
    """
    from scipy.sparse import csr_array

    n = np.bincount(judged.annotator, minlength=M)
    busy = np.argsort(-n, kind="stable")[:MOST_PAIRED]
    busy = np.sort(busy[n[busy] > 0])
    if len(busy) < 2:
        return None
    place = np.full(M, -1)
    place[busy] = np.arange(len(busy))
    mine = place[judged.annotator]
    keep, votes = mine >= 0, (mine >= 0)[judged.row]
    N = int(judged.item.max()) + 1
    met = csr_array((np.ones(keep.sum()), (mine[keep], judged.item[keep])), shape=(len(busy), N))
    cell = judged.item[judged.row[votes]] * K + judged.label[votes]
    used, column = np.unique(cell, return_inverse=True)
    y = csr_array(
        (judged.value[votes], (mine[judged.row[votes]], column)), shape=(len(busy), len(used))
    )
    together, shared = (y @ y.T).toarray(), (met @ met.T).toarray()
    B = range(len(busy))
    return {
        "annotators": [names[m] for m in busy],
        "total": int(np.count_nonzero(n)),
        "agreement": [
            [_round(together[i, j] / shared[i, j]) if shared[i, j] and i != j else None for j in B]
            for i in B
        ],
        "shared": [[int(shared[i, j]) for j in B] for i in B],
    }


def _listed(total: int, listed: int) -> str:
    if listed == total:
        return f"All {total:,} annotators are listed."
    return f"The {listed:,} busiest of {total:,} annotators are listed; sle reliability lists all."


def _round(x: Any) -> Any:
    return x if x is None or isinstance(x, int) else round(float(x), 4)
