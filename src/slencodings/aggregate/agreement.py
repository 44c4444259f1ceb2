"""How far annotators agree with their peers, and the crowd with itself.

A *judgment* is what one annotator says of one item. Who annotated an item more than once has one
judgment of it, the mean of theirs: nobody is their own peer. How unsure annotators were does not
count here; say it with soft labels if it should.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted, leave_one_out
from slencodings.choices import LabelScale, check_word
from slencodings.opinion import Codes, Floats

# One million items with five annotations each have as many; at 200 to 300 bytes a pair, 3 GB.
MAX_PAIRS = 10_000_000
# What sums to one does so to rounding.
ONE = 1 - 1e-12


class Judgments(NamedTuple):
    """J judgments, sorted by item and annotator, as E votes.

    Attributes
    ----------
    item, annotator : int arrays (J,)
    row, label, value : arrays (E,), sorted by judgment and label: `value` > 0 for `label`
    """

    item: Codes
    annotator: Codes
    row: Codes
    label: Codes
    value: Floats

    @property
    def peers(self) -> Codes:
        """How many others judge the same item, (J,)."""
        return np.bincount(self.item)[self.item] - 1

    @property
    def once(self) -> NDArray[np.bool_]:
        """Whether this is the only judgment of its annotator, (J,)."""
        return (np.bincount(self.annotator) == 1)[self.annotator]

    def shared(self) -> Judgments:
        """Those on items that others judge too."""
        keep = self.peers > 0
        if np.all(keep):
            return self
        votes = keep[self.row]
        row = (np.cumsum(keep) - 1)[self.row[votes]]
        return Judgments(
            self.item[keep], self.annotator[keep], row, self.label[votes], self.value[votes]
        )

    def look_up(self, row: NDArray[Any], label: NDArray[Any]) -> Floats:
        """What the judgments `row` give to `label`."""
        if not len(self.row):
            return np.zeros(len(row))
        K = 1 + max(int(np.max(self.label)), int(np.max(label, initial=0)))
        known = self.row * K + self.label
        wanted = np.multiply(row, K, dtype=np.int64)
        wanted += label
        at = np.searchsorted(known, wanted)
        at[at == len(known)] = 0
        return np.where(known[at] == wanted, self.value[at], 0.0)

    def votes_of(self, rows: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        """The votes of each of `rows` in turn: which row (by its place) and which vote."""
        count = np.bincount(self.row, minlength=len(self.item))
        if np.all(count == 1):
            return slice(None), rows
        first = np.cumsum(count) - count
        place, step = spread(count[rows])
        return place, first[rows][place] + step


def judgments(annotations: Annotations) -> Judgments:
    """What each annotator says of each item, once."""
    M, K = max(len(annotations.annotators), 1), max(len(annotations.labels), 1)
    key = annotations.item * M + annotations.annotator
    if annotations.soft:
        names, of, size = np.unique(key, return_inverse=True, return_counts=True)
        mean = replace(annotations, item=of, items=names).sums() / size[:, None]
        row, label = np.nonzero(mean)
        value = mean[row, label]
    else:
        # One sort of whole numbers, which takes neither an order nor its inverse.
        key *= K
        key += annotations.y
        key.sort()
        first = np.flatnonzero(np.diff(key, prepend=-1))
        count = np.diff(first, append=len(key))
        pair, label = np.divmod(key[first], K)
        del key, first
        new = np.diff(pair, prepend=-1) > 0
        names, row = pair[new], np.cumsum(new) - 1
        value = count / np.bincount(row, count)[row]
    item, annotator = np.divmod(names, M)
    return Judgments(item, annotator, row, label, value)


def pairs(item: Codes, *, max_pairs: int, instead: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """All pairs of places in a sorted array that have the same item, the lower place first."""
    count = np.bincount(item)
    check_pairs(count, max_pairs=max_pairs, instead=instead)
    end = np.cumsum(count)[item]
    left, right = spread(end - np.arange(len(item)) - 1)
    right += left
    right += 1
    return left, right


def check_pairs(count: Codes, *, max_pairs: int, instead: str) -> None:
    """Refuse items with so many judgments that comparing them two by two takes too long."""
    total = int(np.sum(count * (count - 1) // 2))
    if total > max_pairs:
        raise ValueError(
            f"comparing annotators two by two takes {total:,} pairs of annotations, "
            f"{int(np.max(count)):,} annotations on one item among them; "
            f"max_pairs={max_pairs:,} came. {instead}"
        )


def spread(count: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Each place as often as it counts, and the numbers from 0 beside."""
    # Half the memory, where it is needed most.
    small = max(len(count), int(np.sum(count))) < 2**31
    dtype = np.int32 if small else np.intp
    place = np.repeat(np.arange(len(count), dtype=dtype), count)
    step = np.arange(len(place), dtype=dtype)
    step -= np.repeat((np.cumsum(count) - count).astype(dtype), count)
    return place, step


def peer_agreement(judged: Judgments, K: int) -> Floats:
    """The expected agreement of each judgment with one of its peers, (J,)."""
    cell = np.unique(judged.item[judged.row] * K + judged.label, return_inverse=True)[1]
    together = judged.value * leave_one_out(judged.value, cell)
    return np.bincount(judged.row, together, len(judged.item)) / judged.peers


def share_of_agreement(annotations: Annotations) -> Floats:
    """How often each annotator's peers say the same, (M,) in [0, 1] (Tratz & Hovy 2010).

    p_m = mean over m's judgments of   sum over the n - 1 peers j of  y_m . y_j / (n - 1)

    Soft labels agree by their dot product: the chance that labels drawn from both are the same.
    NaN for those who share no item with anybody; `as_reliability` maps it.

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1, 1, 1, 2, 2], "who": ["ann", "bob", "cyd", "ann", "bob"],
    ...          "label": ["yes", "yes", "no", "no", "no"]}
    >>> share_of_agreement(from_table(table, item="item", annotator="who", label="label"))
    array([0.75, 0.75, 0.  ])
    """
    judged = judgments(annotations).shared()
    agreed = peer_agreement(judged, len(annotations.labels))
    M = len(annotations.annotators)
    return weighted_mean(
        np.bincount(judged.annotator, agreed, M), np.bincount(judged.annotator, minlength=M)
    )


def g_index(annotations: Annotations) -> Floats:
    """Agreement with peers beyond guessing among K labels, (M,) (Holley & Guilford; Gwet 2008).

    G_m = (p_m - 1/K) / (1 - 1/K),   which is 2 p_m - 1 where K = 2;   p is `share_of_agreement`

    K counts `annotations.labels`, used or not. Down to -1 / (K - 1) for who agrees with nobody; 1
    where there is only one label; NaN as in `share_of_agreement`.

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1, 1, 1, 2, 2], "who": ["ann", "bob", "cyd", "ann", "bob"],
    ...          "label": ["yes", "yes", "no", "no", "no"]}
    >>> g_index(from_table(table, item="item", annotator="who", label="label"))
    array([ 0.5,  0.5, -1. ])
    """
    p, K = share_of_agreement(annotations), len(annotations.labels)
    return p if K == 1 else (p - 1 / K) / (1 - 1 / K)


class Alpha(NamedTuple):
    """Krippendorff's alpha and an interval for it, NaN if none was asked for."""

    alpha: float
    low: float
    high: float


def krippendorff_alpha(
    annotations: Annotations,
    *,
    level: LabelScale | None = None,
    bootstrap: int = 0,
    coverage: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Alpha:
    """How much of the disagreement that chance would bring is absent from the crowd.

    alpha = 1 - D_o / D_e,   D_o = sum_u D(u) / (m_u - 1),   D_e = D(all) / (n - 1),   and D(s) the
    distance of two annotations drawn from s, summed over pairs; soft labels are drawn from, too.

    1 for perfect agreement, also on a single label; 0 as by chance. Every annotation counts, a
    second one by the same annotator too; alone on its item it does not. Memory grows with the
    labels given, not with K x K (Krippendorff 2011).

    Parameters
    ----------
    level : "nominal"; "ordinal", labels in the order of `annotations.labels`; or "interval",
        labels that are numbers. When absent, "ordinal" for annotations that are `ordered`
    bootstrap : resamples of the items for an interval that holds `coverage` of them, from `rng`

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1, 1, 2, 2, 3, 3], "label": ["a", "a", "b", "b", "a", "b"]}
    >>> round(krippendorff_alpha(from_table(table, item="item", label="label")).alpha, 4)
    0.4444
    """
    if level is None:
        level = "ordinal" if annotations.ordered else "nominal"
    check_word("level", level, LabelScale)
    if bootstrap and not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"bootstrap={bootstrap} needs a generator to draw from; rng={rng!r} came. "
            "Pass rng=np.random.default_rng(0)."
        )
    if bootstrap < 0 or not 0 < coverage < 1:
        raise ValueError(
            "`bootstrap` must not be negative and `coverage` must lie between 0 and 1; "
            f"{bootstrap} and {coverage} came. The usual are 1000 and 0.95."
        )
    counts = _count(annotations, level)
    N = len(counts.size)
    estimate = _alpha(counts, np.ones(N))
    if not bootstrap or rng is None:
        return Alpha(estimate, np.nan, np.nan)
    drawn = [
        _alpha(counts, np.bincount(rng.integers(0, N, N), minlength=N)) for _ in range(bootstrap)
    ]
    low, high = np.quantile(drawn, [(1 - coverage) / 2, (1 + coverage) / 2])
    return Alpha(estimate, float(low), float(high))


class _Counts(NamedTuple):
    """Labels on the N items that have two annotations: C cells of an item and a label."""

    size: Floats  # (N,), annotations
    item: Codes  # (C,)
    label: Codes  # (C,)
    votes: Floats  # (C,)
    place: Floats | None  # (K,): where labels lie on a scale; None if nowhere
    ranked: bool  # ... or where they rank, which depends on the counts
    soft: tuple[Codes, Floats] | None  # item and label distribution of each annotation
    K: int


def _count(annotations: Annotations, level: LabelScale) -> _Counts:
    K = len(annotations.labels)
    size = np.bincount(annotations.item, minlength=len(annotations.items))
    paired = size > 1
    if not np.any(paired):
        raise ValueError(
            "alpha compares annotations of the same item, so some item needs two; "
            f"of {counted(len(annotations.item), 'annotation')} each is alone on its item."
        )
    place = _numbers(annotations.labels) if level == "interval" else None
    keep = paired[annotations.item]
    item = (np.cumsum(paired) - 1)[annotations.item[keep]]
    y, soft = annotations.y[keep], None
    if annotations.soft:
        row, label = np.nonzero(y)
        cells, cell = np.unique(item[row] * K + label, return_inverse=True)
        count = np.bincount(cell, y[row, label], len(cells))
        soft = item, y.astype(float)
    else:
        cells, count = np.unique(item * K + y, return_counts=True)
    cell_item, label = np.divmod(cells, K)
    return _Counts(
        size[paired].astype(float), cell_item, label, count.astype(float), place,
        level == "ordinal", soft, K,
    )  # fmt: skip


def _alpha(counts: _Counts, times: NDArray[Any]) -> float:
    """Alpha where each item counts `times` (N,)."""
    m, item, label, n_uk, place, ranked, soft, K = counts
    n = float(np.sum(times * m))
    n_k = np.bincount(label, times[item] * n_uk, K)
    if np.count_nonzero(n_k) <= 1:
        return 1.0
    if ranked:
        # Krippendorff's ordinal distance is the interval distance of mid-ranks.
        place = (np.cumsum(n_k) - n_k / 2) / n
    if place is None:
        within = m**2 - np.bincount(item, n_uk**2, len(m))
        overall = n**2 - np.sum(n_k**2)
    else:
        z = place - np.sum(n_k * place) / n
        mean = np.bincount(item, n_uk * z[label], len(m)) / m
        within = 2 * m * np.bincount(item, n_uk * (z[label] - mean[item]) ** 2, len(m))
        overall = 2 * n * np.sum(n_k * z**2)
    if soft is not None:
        # Two draws from one annotation are not a pair.
        of, y = soft
        own = 1 - np.sum(y**2, axis=-1)
        if place is not None:
            own = 2 * np.sum(y * (place - (y @ place)[:, None]) ** 2, axis=-1)
        self_pairs = np.bincount(of, own, len(m))
        within, overall = within - self_pairs, overall - np.sum(times * self_pairs)
    observed, expected = np.sum(times * within / (m - 1)), overall / (n - 1)
    # Labels in different words may be the same number.
    return float(1 - observed / expected) if expected > 0 else 1.0


def _numbers(labels: NDArray[Any]) -> Floats:
    """Labels as places in [0, 1] on their scale."""
    try:
        z = np.asarray(labels, dtype=float)
    except (TypeError, ValueError):
        z = np.asarray([np.nan])
    if not np.all(np.isfinite(z)):
        raise ValueError(
            "level='interval' needs finite numbers as labels; "
            f"{', '.join(map(repr, labels[:5].tolist()))} came. Use level='ordinal' for labels "
            "with an order, and give it when reading: from_table(..., labels=['low', 'high'])."
        )
    return (z - np.min(z)) / max(float(np.ptp(z)), np.finfo(float).tiny)


def weighted_mean(total: NDArray[Any], weight: NDArray[Any]) -> Floats:
    """Totals over their weights, NaN where there is none."""
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1), np.nan)
