"""One annotator: what they say where a label is true, where they differ most, and over time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.annotators.intervals import interval
from slencodings.report.names import ITEM_LETTERS, rounded, shown
from slencodings.report.summary import OwnConfusion, Part
from slencodings.report.todo import Chosen
from slencodings.report.without import Without, likeliest
from slencodings.trust import Weighed

# Labels in the matrix of an annotator, and items that are named.
MOST_CONFUSED, MOST_DIFFER = 8, 5
# Parts of an annotator's time at most, and annotations in each at least.
MOST_PARTS, FEWEST_IN_PART = 6, 10
# Times of more days than this are told by the day.
_BY_THE_DAY = np.timedelta64(3, "D")


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
    annotations: Annotations, weighed: Weighed, chosen: Chosen
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
) -> list[list[Part]]:
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
    found: list[list[Part]] = [[] for _ in range(M)]
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


def fell(trend: list[Part]) -> bool:
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
