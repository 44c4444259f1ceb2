"""The annotators of a report: how far to trust each, where each differs, who agrees with whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.agreement import Judgments, judgments
from slencodings.annotations import Annotations
from slencodings.annotators import describe_annotators
from slencodings.annotators.intervals import interval
from slencodings.annotators.verdicts import Verdict
from slencodings.choices import WeightsFrom
from slencodings.report.names import ITEM_LETTERS, NAME_LETTERS, rounded, shown, which_are_listed
from slencodings.report.summary import (
    KindTable,
    ListedPeople,
    OwnConfusion,
    Period,
    Person,
    WhoAgrees,
)
from slencodings.report.todo import ListedItems
from slencodings.report.without import Without, likeliest
from slencodings.trust import Weighed

# Labels in the matrix of an annotator, and items that are named.
MOST_CONFUSED, MOST_DIFFER = 8, 5
# Parts of an annotator's time at most, and annotations in each at least.
MOST_PARTS, FEWEST_IN_PART = 6, 10
# Times of more days than this are told by the day.
_BY_THE_DAY = np.timedelta64(3, "D")
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
    chosen: ListedItems,
    *,
    times: NDArray[Any] | None,
    sources: KindTable | None,
    of_models: Sequence[str],
) -> ListedPeople:
    """A row for each annotator, the worst first; agreement of pairs; and what to know."""
    a = annotations
    if not a.named:
        return _nobody(weighed.source)
    judged, M = judgments(a).shared(), len(a.annotators)
    texts = shown(a.annotators.tolist(), NAME_LETTERS)
    roster = describe_annotators(
        a, crowd=weighed.crowd, estimates=["agreement", "kappa"], sort="annotations", groups=0
    )
    known = {
        "reliability": weighed.reliability,
        "items_changed": np.bincount(without.annotator[without.changed], minlength=M),
        "confusion": own_confusions(a, weighed),
        "differs": differs_most(a, weighed, chosen),
        "trend": trends(a, without, times),
    }
    places = _places_in_crowd(roster.columns["annotator"], a)
    rows = _people_listed(roster.to_rows(), places, texts, known, weighed.source)
    return {
        "why_not": NOT_SHARED if not len(judged.item) else None,
        "listed": which_are_listed(
            M,
            len(rows),
            "annotator",
            f"The {len(rows):,} busiest of {M:,} annotators are listed; sle reliability lists all.",
        ),
        "source": weighed.source,
        "rows": rows,
        "pairs": pair_agreement(judged, M, len(a.labels), texts),
        "sources": sources,
        "notes": [
            note if len(note) <= _NOTE else note[:_NOTE] + "…"
            for note in (*of_models, *roster.notes)
        ],
    }


def _nobody(source: WeightsFrom) -> ListedPeople:
    """Where nobody is named there is nobody to tell apart."""
    return {
        "why_not": NO_NAMES,
        "listed": "",
        "source": source,
        "rows": [],
        "pairs": None,
        "sources": None,
        "notes": [],
    }


def _people_listed(
    roster: Sequence[Mapping[str, Any]],
    places: Sequence[int],
    texts: Sequence[str],
    known: Mapping[str, Sequence[Any] | NDArray[Any]],
    source: WeightsFrom,
) -> list[Person]:
    """The busiest annotators of a roster, which has them first; of those the worst first."""
    busiest = list(zip(roster, places, strict=True))[:MOST_LISTED]
    rows = [
        _person(row, texts[m], {name: x[m] for name, x in known.items()}, source)
        for row, m in busiest
    ]
    return sorted(rows, key=_worth_a_look)


def _places_in_crowd(names: list[Any], a: Annotations) -> list[int]:
    """Where the annotators of a roster stand; names that JSON cannot say are text there."""
    place = {name: m for m, name in enumerate(a.annotators.tolist())}
    as_text = {str(name): m for name, m in place.items()}
    return [place[name] if name in place else as_text[str(name)] for name in names]


def _person(
    row: Mapping[str, Any], name: str, known: Mapping[str, Any], source: WeightsFrom
) -> Person:
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


def pair_agreement(judged: Judgments, M: int, K: int, names: list[str]) -> WhoAgrees | None:
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


def _round(x: Any) -> Any:
    return None if x is None or np.isnan(x) else rounded(x)


def own_confusions(annotations: Annotations, weighed: Weighed) -> list[OwnConfusion | None]:
    """What each annotator says where a label is true, for the labels that they say most."""
    a, model = annotations, weighed.crowd.model
    M, K = len(a.annotators), len(a.labels)
    if weighed.source != "learned" or model is None or K < 2:
        return [None] * M
    given = replace(a, item=a.annotator, items=a.annotators).sums()
    most = np.sort(np.argsort(-given, axis=1, kind="stable")[:, :MOST_CONFUSED], axis=1)
    shares = (model.confusion[m][np.ix_(own, own)] for m, own in enumerate(most))
    return [
        {"labels": own, "share": [[rounded(x, 2) for x in row] for row in share]}
        for own, share in zip(most.tolist(), shares, strict=True)
    ]


def differs_most(
    annotations: Annotations, weighed: Weighed, chosen: ListedItems
) -> list[list[list[Any]]]:
    """For each annotator the items where what they said is least likely true, the worst first.

    Each is the item's place in the list or None, its name, what they said, what is likely true
    instead, and how probably. A list rather than a dict, as these are many.
    """
    a, P = annotations, np.asarray(weighed.truth.probability)
    label = np.argmax(a.y, axis=1) if a.soft else a.y
    true = likeliest(weighed.truth)[a.item]
    gap = P[a.item, true] - P[a.item, label]
    apart = np.flatnonzero(label != true)
    apart = apart[np.lexsort((-gap[apart], a.annotator[apart]))]
    place = chosen.place
    found: dict[int, dict[int, int]] = {}
    for q in apart.tolist():
        mine = found.setdefault(int(a.annotator[q]), {})
        if len(mine) < MOST_DIFFER:
            mine.setdefault(int(a.item[q]), q)
    used = sorted({i for mine in found.values() for i in mine})
    names = dict(zip(used, shown(a.items[used].tolist(), ITEM_LETTERS), strict=True))
    return [
        [
            [place.get(i), names[i], int(label[q]), int(true[q]), rounded(P[i, true[q]], 2)]
            for i, q in found.get(m, {}).items()
        ]
        for m in range(len(a.annotators))
    ]


def trends(
    annotations: Annotations, without: Without, times: NDArray[Any] | None
) -> list[list[Period]]:
    """For each annotator the parts of their time, and how often they were right in each.

    Right is who said what is likeliest true of an item by all others on it, so items without
    others are left out. Parts have about as many annotations each; what was said at one time is in
    one part. None where there would not be two of them.
    """
    a, M = annotations, len(annotations.annotators)
    if times is None or not a.named:
        return [[] for _ in range(M)]
    label = np.argmax(a.y, axis=1) if a.soft else a.y
    right = label == without.leader[without.pair]
    shared = np.bincount(without.item, minlength=len(a.items))[a.item] > 1
    known = np.flatnonzero(shared & (times == times))  # NaT and NaN are not equal to themselves.
    order = known[np.lexsort((times[known], a.annotator[known]))]
    first = np.searchsorted(a.annotator[order], np.arange(M + 1))
    parts = [
        (m, order[first[m] :][start:stop])
        for m in range(M)
        for start, stop in _parts_of_time(times[order[first[m] : first[m + 1]]])
    ]
    share = np.asarray([right[rows].mean() for _, rows in parts])
    low, high = interval(share, np.asarray([float(len(rows)) for _, rows in parts]))
    found: list[list[Period]] = [[] for _ in range(M)]
    for (m, rows), x, least, most in zip(parts, share, low, high, strict=True):
        own = times[order[first[m] : first[m + 1]]]
        found[m].append(
            {
                "begin": _time_as_text(times[rows[0]], own),
                "end": _time_as_text(times[rows[-1]], own),
                "annotations": len(rows),
                "right": rounded(x),
                "right_low": rounded(least),
                "right_high": rounded(most),
            }
        )
    return found


def fell(trend: list[Period]) -> bool:
    """Whether somebody is for sure less often right in the last part than in the first."""
    return bool(trend) and trend[-1]["right_high"] < trend[0]["right_low"]


def _parts_of_time(times: NDArray[Any]) -> list[tuple[int, int]]:
    """Where parts of sorted times begin and end; none if there are not two."""
    n = len(times)
    count = min(MOST_PARTS, n // FEWEST_IN_PART)
    ends = [0]
    for k in range(1, count):
        at = int(np.searchsorted(times, np.asarray(times[k * n // count])))
        if at - ends[-1] >= FEWEST_IN_PART and n - at >= FEWEST_IN_PART:
            ends.append(at)
    return list(zip(ends, [*ends[1:], n], strict=True)) if len(ends) > 1 else []


def _time_as_text(time: Any, own: NDArray[Any]) -> str:
    """A time as text: by the day where somebody's times are of many."""
    if own.dtype.kind != "M":
        return f"{time:g}"
    many = own[-1] - own[0] > _BY_THE_DAY
    return str(time.astype("datetime64[D]" if many else "datetime64[m]")).replace("T", " ")
