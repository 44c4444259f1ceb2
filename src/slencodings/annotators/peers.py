"""What the peers of annotators tell: whether confidence is earned, and what is confused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import reliability_opinion
from slencodings.aggregate.agreement import Judgments
from slencodings.annotations import Annotations
from slencodings.annotators.roster import Columns
from slencodings.opinion import Codes, Floats


def confidence(annotations: Annotations, judged: Judgments) -> Columns:
    """Mean stated confidence on shared items, what it earned, and by how much it is too high."""
    M, stated = len(annotations.annotators), _at_its_word(annotations)
    shared = np.isin(annotations.item, judged.item)
    says = means(annotations.annotator[shared], stated[shared], M)
    opinion = reliability_opinion(annotations, chance=True)
    known = 1 - opinion.uncertainty
    earned = np.where(np.isnan(says), np.nan, opinion.belief[:, 0] / np.where(known > 0, known, 1))
    comparable = np.all((stated >= 0) & (stated <= 1))
    over = says - earned if comparable else np.full(M, np.nan)
    return {"stated": as_list(says), "earned": as_list(earned), "overconfidence": as_list(over)}


def _at_its_word(a: Annotations) -> Floats:
    """Stated confidence, (R,), on [0, 1] where the ends of its scale are known; else as stated."""
    if a.stated is None:
        return np.full(len(a.item), np.nan)
    literal = np.all((a.stated >= 0) & (a.stated <= 1))
    if literal or not np.any(a.uncertainty):
        return a.stated
    # Of a scale whose ends were named, each level has become an uncertainty.
    levels = len(np.unique(a.stated))
    pairs = len(np.unique(np.stack([a.stated, a.uncertainty]), axis=1).T)
    return 1 - a.uncertainty if pairs == levels else a.stated


def confusion(judged: Judgments, M: int, labels: NDArray[Any]) -> Columns:
    """The label each annotator says and the one their peers say instead, most often.

    times_mlk = sum over m's judgments of y_l (mean of the peers' y)_k,   the largest for l != k
    """
    from scipy.sparse import coo_array, csr_array

    J, K = len(judged.item), len(labels)
    columns: Columns = {
        name: [None] * M for name in ("said", "peers_say", "confused", "confused_share")
    }
    if not J:
        return columns
    y = csr_array((judged.value, (judged.row, judged.label)), shape=(J, K))
    of = np.unique(judged.item, return_inverse=True)[1]
    on_item = csr_array((np.ones(J), (of, np.arange(J))))
    peers = csr_array(((on_item @ y)[of] - y).multiply(1 / judged.peers[:, None]))
    own = judged.annotator[judged.row] * K + judged.label
    times = coo_array(csr_array((judged.value, (own, judged.row)), shape=(M * K, J)) @ peers)
    who, mine = np.divmod(times.row.astype(np.intp), K)
    # Rounded, so that what is equal but for rounding is settled by the share, then by the order.
    n = np.round(times.data, 9)
    share = np.round(times.data / np.bincount(own, judged.value, M * K)[times.row], 9)
    order = np.lexsort((times.col, mine, -share, -n, who))
    order = order[((mine != times.col) & (n > 0))[order]]
    names = [as_plain(label) for label in labels.tolist()]
    for at in order[np.unique(who[order], return_index=True)[1]].tolist():
        most = names[mine[at]], names[times.col[at]], float(n[at]), float(share[at])
        for column, value in zip(columns.values(), most, strict=True):
            column[who[at]] = value
    return columns


def means(group: Codes, x: Floats, size: int) -> Floats:
    """The mean of each group, (size,); NaN for none."""
    n = np.bincount(group, minlength=size)
    return np.where(n > 0, np.bincount(group, x, size) / np.maximum(n, 1), np.nan)


def with_interval(name: str, value: Floats, low: Floats, high: Floats) -> Columns:
    """An estimate of each annotator and where it lies, as columns."""
    return {name: as_list(value), f"{name}_low": as_list(low), f"{name}_high": as_list(high)}


def as_list(x: Floats) -> list[float | None]:
    """Numbers as JSON can say them."""
    return [None if math.isnan(value) else value for value in x.tolist()]


def as_plain(name: Any) -> Any:
    """A name as JSON can say it."""
    missing = name is None or (isinstance(name, float) and math.isnan(name))
    return None if missing else name if isinstance(name, str | int | float) else str(name)
