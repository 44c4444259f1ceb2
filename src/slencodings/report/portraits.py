"""One annotator: what they say where a label is true, and the items where they differ most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slencodings.annotations import Annotations
from slencodings.report.chosen import Chosen
from slencodings.report.names import ITEM_LETTERS, rounded, shown
from slencodings.report.summary import OwnConfusion
from slencodings.report.without import likeliest
from slencodings.trust import Weighed

# Labels in the matrix of an annotator, and items that are named.
MOST_CONFUSED, MOST_DIFFER = 8, 5


def own_confusions(annotations: Annotations, weighed: Weighed) -> list[OwnConfusion | None]:
    """What each annotator says where a label is true, for the labels that they say most."""
    a, model = annotations, weighed.crowd.model
    M, K = len(a.annotators), len(a.labels)
    if weighed.source != "learned" or model is None or K < 2:
        return [None] * M
    said = replace(a, item=a.annotator, items=a.annotators).sums()
    most = np.sort(np.argsort(-said, axis=1, kind="stable")[:, :MOST_CONFUSED], axis=1)
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
    said = np.argmax(a.y, axis=1) if a.soft else a.y
    true = likeliest(weighed.truth)[a.item]
    gap = P[a.item, true] - P[a.item, said]
    apart = np.flatnonzero(said != true)
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
            [place.get(i), names[i], int(said[q]), int(true[q]), rounded(P[i, true[q]], 2)]
            for i, q in found.get(m, {}).items()
        ]
        for m in range(len(a.annotators))
    ]
