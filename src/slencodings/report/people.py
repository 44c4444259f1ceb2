"""The annotators of a report: how far to trust each, and who agrees with whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.agreement import Judgments, judgments
from slencodings.annotations import Annotations
from slencodings.annotators import describe_annotators
from slencodings.annotators.verdicts import Verdict
from slencodings.report.names import NAME_LETTERS, rounded, shown
from slencodings.report.portraits import differs_most, own_confusions, trends
from slencodings.report.summary import KindTable, Pairs, People, Person, Source
from slencodings.report.todo import Chosen
from slencodings.report.without import Without
from slencodings.trust import Weighed

# Annotators that are listed, and those in the picture of who agrees with whom.
MOST_LISTED, MOST_PAIRED = 500, 25
_NOTE = 300
# What is told of an annotator by what was learned, and by what their peers say.
_LEARNED = ("above_chance", "above_chance_low", "above_chance_high", "accuracy")
_BY_PEERS = ("agreement", "agreement_low", "agreement_high", "kappa", "stated", "earned",
             "overconfidence")  # fmt: skip
# The worst first.
VERDICTS = get_args(Verdict)

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
    chosen: Chosen,
    times: NDArray[Any] | None,
    sources: KindTable | None,
    of_models: Sequence[str],
) -> People:
    """A row for each annotator, the worst first; agreement of pairs; and what to know."""
    a = annotations
    if not a.named:
        return _nobody_named(weighed.source)
    judged, M = judgments(a).shared(), len(a.annotators)
    estimates = ["agreement", "kappa"]
    roster = describe_annotators(
        a, crowd=weighed.crowd, estimates=estimates, sort="annotations", groups=0
    )
    texts = shown(a.annotators.tolist(), NAME_LETTERS)
    known = {
        "reliability": weighed.reliability,
        "items_changed": np.bincount(without.annotator[without.changed], minlength=M),
        "confusion": own_confusions(a, weighed),
        "differs": differs_most(a, weighed, chosen),
        "trend": trends(a, without, times),
    }
    busiest = zip(roster.to_rows(), _places_in_crowd(roster.columns["annotator"], a), strict=True)
    rows = [
        _person(row, texts[m], {name: x[m] for name, x in known.items()}, weighed.source)
        for row, m in list(busiest)[:MOST_LISTED]
    ]
    rows.sort(key=_worth_a_look)
    return {
        "why_not": NOT_SHARED if not len(judged.item) else None,
        "total": M,
        "listed": _listed(M, len(rows)),
        "source": weighed.source,
        "rows": rows,
        "pairs": pair_agreement(judged, M, len(a.labels), texts),
        "sources": sources,
        "notes": [
            note if len(note) <= _NOTE else note[:_NOTE] + "…"
            for note in (*of_models, *roster.notes)
        ],
    }


def _nobody_named(source: Source) -> People:
    return {
        "why_not": NO_NAMES,
        "total": 0,
        "listed": "",
        "source": source,
        "rows": [],
        "pairs": None,
        "sources": None,
        "notes": [],
    }


def _places_in_crowd(names: list[Any], a: Annotations) -> list[int]:
    """Where the annotators of a roster stand; names that JSON cannot say are text there."""
    place = {name: m for m, name in enumerate(a.annotators.tolist())}
    as_text = {str(name): m for name, m in place.items()}
    return [place[name] if name in place else as_text[str(name)] for name in names]


def _person(row: Mapping[str, Any], name: str, known: Mapping[str, Any], source: Source) -> Person:
    confused = row["said"] is not None
    pair = shown([row["said"], row["peers_say"]], NAME_LETTERS) if confused else [None, None]
    learned = source == "learned"
    person = {
        "annotator": name,
        **{key: row[key] if learned else None for key in ("verdict", "reason")},
        **{key: _round(row[key]) if learned else None for key in _LEARNED},
        "reliability": _round(known["reliability"]) if source == "given" else None,
        **{key: row[key] for key in ("annotations", "shared_items")},
        **{key: _round(row[key]) for key in _BY_PEERS},
        "said": pair[0],
        "peers_say": pair[1],
        "confused_share": _round(row["confused_share"]),
        "items_changed": int(known["items_changed"]),
        **{key: known[key] for key in ("confusion", "differs", "trend")},
    }
    return cast(Person, person)


def _worth_a_look(row: Person) -> tuple[int, bool, float]:
    """The worst first: by verdict and what was learned, by what came, or by agreement."""
    rank = VERDICTS.index(row["verdict"]) if row["verdict"] else 0
    values = (row["above_chance"], row["reliability"], row["agreement"])
    value = next((x for x in values if x is not None), None)
    return rank, value is None, value or 0.0


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
        return (
            "The only annotator is listed."
            if total == 1
            else f"All {total:,} annotators are listed."
        )
    return f"The {listed:,} busiest of {total:,} annotators are listed; sle reliability lists all."


def _round(x: Any) -> Any:
    return None if x is None or np.isnan(x) else rounded(x)
