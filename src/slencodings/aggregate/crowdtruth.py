"""CrowdTruth: items, annotators and labels judge each other by agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.agreement import Judgments, check_pairs, judgments, spread
from slencodings.aggregate.result import Aggregate, OnStep
from slencodings.aggregate.votes import votes_or_one_each
from slencodings.annotations import Annotations, leave_one_out
from slencodings.opinion import Codes, Floats

_EPS = 1e-8  # SMALL_NUMBER_CONST of the package, which results depend on

# Each is listed both ways at 6 bytes a way (13 where labels are soft): 3 GB.
MAX_PAIRS = 250_000_000
# So many rows are worked on at a time: their intermediate results stay in the processor's caches.
_BLOCK = 2**18


def crowdtruth(
    annotations: Annotations,
    *,
    open_ended: bool = False,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_pairs: int = MAX_PAIRS,
    progress: OnStep | None = None,
) -> Aggregate:
    """CrowdTruth 2.0: votes weighted by annotator quality (Dumitrache et al. 2018).

    UAS_uk = sum_i WQS_i y_iuk / sum_i WQS_i;   `probability` is UAS over its sum, `reliability` WQS

    WQS is agreement with peers (WWA) times that with the rest of the crowd (WUA), both weighted by
    item (UQS) and label quality (AQS), which WQS weighs in turn. An item with one judgment keeps
    it; in `details` its quality is NaN, as is that of annotators seen only on such, whose
    reliability is the mean. "unweighted" counts items where no annotator has any quality left, so
    that all count the same. Who judged an item twice counts once, by the mean.

    Parameters
    ----------
    open_ended : leave AQS at 1, as for free answers; then no pairs of annotations are listed
    tol, max_iter : stop when nothing changes by `tol`; `details["converged"]` says if it came to it
    max_pairs : refuse to list more, at 12 bytes each; annotators with one judgment need none
    progress : called with iterations done and `max_iter`, which few crowds need

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1, 1, 1, 2, 2, 2], "who": ["ann", "bob", "cyd"] * 2,
    ...          "label": ["yes", "yes", "no", "no", "no", "no"]}
    >>> crowdtruth(from_table(table, item="item", annotator="who", label="label")).reliability
    array([0.83993335, 0.83993335, 0.45753616])
    """
    if not (tol > 0 and max_iter >= 1):
        raise ValueError(
            f"`tol` must be above 0 and `max_iter` at least 1; {tol} and {max_iter} came. "
            "Leave them out for the usual 0.001 and 1000."
        )
    N, M, K = len(annotations.items), len(annotations.annotators), len(annotations.labels)
    judged = judgments(annotations)
    shared = judged.shared()
    items, item = np.unique(shared.item, return_inverse=True)
    people, annotator = np.unique(shared.annotator, return_inverse=True)
    shared = shared._replace(item=item, annotator=annotator)
    votes = list(votes_in_blocks(shared, K))
    pairs = None if open_ended else list(pairs_in_blocks(shared, K, max_pairs))

    sizes = len(items), len(people), K, len(people), len(people)
    update = partial(_update, shared, votes, pairs)
    now, initial, iterations, converged = _iterate(
        _Quality(*map(np.ones, sizes)), update, tol, max_iter, progress
    )
    del votes, pairs, update

    wqs = np.clip(now.annotator, 0, 1)
    reliability = np.full(M, np.mean(wqs) if len(wqs) else 1.0)
    reliability[people] = wqs
    probability, score, unweighted = _scores(judged, reliability, N, K)
    labelled = len(np.unique(judged.item))
    details = {
        **_qualities(now, items, people, N, M),
        "annotator_agreement": _scatter(people, now.wwa, M),
        "crowd_agreement": _scatter(people, now.wua, M),
        "label_score": score,
        **{f"initial_{k}": v for k, v in _qualities(initial, items, people, N, M).items()},
        "initial_label_score": _scores(judged, np.ones(M), N, K)[1],
        "iterations": iterations,
        "converged": converged,
        "unweighted": unweighted,
        "alone": labelled - len(items),
        "unlabelled": N - labelled,
    }
    return Aggregate(probability, reliability, details)


def sentence_relation_score(annotations: Annotations, *, normalize: bool = False) -> Aggregate:
    """The older CrowdTruth score, as Uma et al. (2021) train on it.

    SRS_uk = n_uk / ||n_u||_2,   the cosine of an item's votes with label k

    It does not sum to one; `normalize` divides by the sum, which leaves `soft_vote`. Where nobody
    voted all labels score the same (`details["unlabelled"]` counts those).

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1] * 7, "label": ["yes"] * 4 + ["no"] * 3}
    >>> sentence_relation_score(from_table(table, item="item", label="label")).probability
    array([[0.6, 0.8]])
    """
    n, unlabelled = votes_or_one_each(annotations)
    norm = np.sum(n, axis=-1) if normalize else np.sqrt(np.sum(n**2, axis=-1))
    return Aggregate(n / norm[:, None], None, {"unlabelled": int(unlabelled.sum())})


class _Quality(NamedTuple):
    """What one iteration makes of the one before."""

    item: Floats  # UQS
    annotator: Floats  # WQS
    label: Floats  # AQS
    wwa: Floats
    wua: Floats


def _iterate(
    start: _Quality,
    update: Callable[[_Quality], _Quality],
    tol: float,
    max_iter: int,
    progress: OnStep | None,
) -> tuple[_Quality, _Quality, int, bool]:
    """Until nothing changes by `tol`: the last, the first, how many there are, and if it ended so.

    Without items there is nothing to do.
    """
    now = initial = start
    iterations, converged = 0, not len(start.item)
    while not converged and iterations < max_iter:
        before, now = now, update(now)
        iterations += 1
        initial = now if iterations == 1 else initial
        judging = zip(before[:3], now[:3], strict=True)
        converged = all(np.max(np.abs(x - y)) < tol for x, y in judging)
        if progress is not None:
            progress(iterations, max_iter)
    return now, initial, iterations, converged


def _update(
    judged: Judgments, blocks: list[VoteBlock], pairs: list[PairBlock] | None, old: _Quality
) -> _Quality:
    """One iteration, all from the qualities `old`: Jacobi's way."""
    M, K = len(old.annotator), len(old.label)
    UQS = np.empty(len(old.item))
    agreed, could_agree, fitted, could_fit = sums = np.zeros((4, M))
    shares = np.zeros((2, K))
    for votes in blocks:
        item, who, row, cell = votes.item, votes.annotator, votes.row, votes.cell
        N, J = votes.items.stop - votes.items.start, len(item)
        w, uqs, q = old.annotator[who], old.item[votes.items][item], old.label[votes.label]

        # sum over peers j of w_j cos(i, j): with unit vectors, one dot product with their sum
        x = np.sqrt(q) * votes.value
        norm = np.sqrt(np.bincount(row, x**2, J))[row]
        x = np.divide(x, norm, out=np.zeros_like(x), where=norm > 0)
        alike = np.bincount(row, x * leave_one_out(w[row] * x, cell), J)
        peers = leave_one_out(w, item)
        UQS[votes.items] = _ratio(
            np.bincount(item, w * alike, N) / 2, np.bincount(item, w * peers, N) / 2
        )

        # the cosine of w_i V_i with the rest of the crowd, which also has labels that i does not
        own = w[row] * votes.value
        rest = leave_one_out(own, cell)
        S = np.bincount(cell, own, len(votes.cell_item))
        elsewhere = leave_one_out(old.label[votes.cell_label] * S**2, votes.cell_item)[cell]
        rest_squared = np.bincount(row, q * rest**2 + np.where(votes.lone, elsewhere, 0), J)
        root = np.sqrt(np.bincount(row, q * own**2, J) * rest_squared)
        tiny = root < _EPS
        cosine = np.bincount(row, q * own * rest, J) / np.where(tiny, 1, root)
        cosine[tiny] = _EPS

        for total, value in zip(sums, (alike, peers, cosine, 1), strict=True):
            total += np.bincount(who, uqs * value, M)
        if pairs is not None and votes.once.any():
            shares += _shares_with_strangers(votes, old, peers, own, rest)
    WWA, WUA = _ratio(agreed, could_agree), _ratio(fitted, could_fit)
    AQS = old.label if pairs is None else _label_quality(judged, pairs, old, *shares)
    return _Quality(UQS, WWA * WUA, AQS, WWA, WUA)


def _label_quality(
    judged: Judgments, pairs: list[PairBlock], old: _Quality, total: Floats, weights: Floats
) -> Floats:
    """AQS_k: if j gives k, does i? The mean over ordered pairs of annotators."""
    K, worth = len(old.label), old.item[judged.item[judged.row]] * judged.value
    w = old.annotator[judged.annotator[judged.row]]
    for some in pairs:
        start = np.flatnonzero(some.first)
        vote, given = some.vote[start], worth[some.vote]
        both = np.add.reduceat(given * some.same, start)
        given = np.add.reduceat(given, start)
        w_i = np.repeat(old.annotator[some.annotators], some.groups)
        weight = np.where(given > 0, w_i * w[vote], 0)
        share = both / np.where(given > 0, given, 1)
        total = total + np.bincount(judged.label[vote], weight * share, K)
        weights = weights + np.bincount(judged.label[vote], weight, K)
    known = weights > _EPS
    return np.where(known, np.maximum(total / np.where(known, weights, 1), _EPS), _EPS)


def _shares_with_strangers(
    votes: VoteBlock, old: _Quality, peers: Floats, own: Floats, rest: Floats
) -> Floats:
    """Sums over pairs, weighted and of weights, (2, K), of which one is seen only once.

    They share that item only, and what j gives and the item's quality cancel. Where that quality is
    0 nobody agrees, so whoever is seen there only has no weight either, and the pair adds nothing.
    """
    K, w, once, cell = len(old.label), old.annotator[votes.annotator], votes.once, votes.cell
    partners = np.where(once, peers, np.bincount(votes.item, w * once)[votes.item])[votes.row]
    there = np.bincount(cell, own * once[votes.row])[cell]
    w = np.where(votes.value > 0, w[votes.row], 0)
    given = w * np.where(once[votes.row], rest, there), w * partners
    return np.stack([np.bincount(votes.label, x, K) for x in given], dtype=float)


def _scores(judged: Judgments, weight: Floats, N: int, K: int) -> tuple[Floats, Floats, int]:
    """Label distributions (N, K), raw label scores (N, K), and how many items went unweighted."""
    count = np.bincount(judged.item, minlength=N)
    w = np.where(count[judged.item] > 1, weight[judged.annotator], 1.0)
    mass = np.bincount(judged.item, w, N)
    cell = judged.item[judged.row] * K + judged.label
    total = np.bincount(cell, w[judged.row] * judged.value, N * K).reshape(N, K)
    score = np.where(count[:, None] > 0, total / np.maximum(mass, _EPS)[:, None], np.nan)
    unweighted = (mass < _EPS) & (count > 0)
    plain = np.bincount(cell, judged.value, N * K).reshape(N, K)
    total = np.where(unweighted[:, None], plain, total)
    silent = np.sum(total, axis=-1) == 0
    total[silent] = 1
    return total / np.sum(total, axis=-1, keepdims=True), score, int(np.sum(unweighted))


def _qualities(
    found: _Quality, items: Codes, people: Codes, N: int, M: int
) -> dict[str, NDArray[Any]]:
    """Of all N items, M annotators and labels, NaN for those that could not be judged."""
    return {
        "item_quality": _scatter(items, found.item, N),
        "annotator_quality": _scatter(people, found.annotator, M),
        "label_quality": found.label,
    }


def _ratio(total: NDArray[Any], weight: NDArray[Any]) -> Floats:
    return total / np.maximum(weight, _EPS)


def _scatter(at: Codes, value: Floats, n: int) -> NDArray[Any]:
    """NaN for those who are not there."""
    result = np.full(n, np.nan)
    result[at] = value
    return result


class VoteBlock(NamedTuple):
    """Judgments of some items, as E votes in C cells of an item and a label.

    A judgment for one label is one vote. Any other has one for every label of its item, also for
    those it gives nothing: then the rest of the crowd is known from its votes alone.
    """

    items: slice  # which of all items; in `item` and `cell_item` the first is 0
    item: Codes  # (J,)
    annotator: Codes  # (J,)
    once: NDArray[np.bool_]  # (J,)
    row: Codes  # (E,)
    label: Codes  # (E,)
    value: Floats  # (E,)
    cell: Codes  # (E,)
    lone: NDArray[np.bool_]  # (E,), whether it is all of its judgment
    cell_item: Codes  # (C,)
    cell_label: Codes  # (C,)


def votes_in_blocks(judged: Judgments, K: int) -> Iterator[VoteBlock]:
    """All votes, in blocks of items."""
    once, rows = judged.once, np.cumsum(np.bincount(judged.item))
    # At least as many rows as annotators, so that sums by annotator take no longer than the rest.
    for start, end in _blocks(rows, max(_BLOCK, int(np.max(judged.annotator, initial=0)))):
        first, last = int(rows[start - 1]) if start else 0, int(rows[end - 1])
        low, high = np.searchsorted(judged.row, [first, last])
        some = Judgments(
            judged.item[first:last] - start,
            judged.annotator[first:last],
            judged.row[low:high] - first,
            judged.label[low:high],
            judged.value[low:high],
        )
        yield _votes_of_block(some, K, once[first:last], slice(start, end))


def _votes_of_block(judged: Judgments, K: int, once: NDArray[np.bool_], items: slice) -> VoteBlock:
    cells, cell = np.unique(judged.item[judged.row] * K + judged.label, return_inverse=True)
    cell_item, cell_label = np.divmod(cells, K)
    lone = np.bincount(judged.row, minlength=len(judged.item)) == 1
    wide = np.flatnonzero(~lone)
    labels_of = np.bincount(cell_item, minlength=items.stop - items.start)
    first = np.cumsum(labels_of) - labels_of
    place, step = spread(labels_of[judged.item[wide]])
    wide_row = wide[place]
    wide_cell = first[judged.item[wide_row]] + step
    wide_value = judged.look_up(wide_row, cell_label[wide_cell])
    keep = lone[judged.row]
    row = np.concatenate([judged.row[keep], wide_row])
    cell = np.concatenate([cell[keep], wide_cell])
    value = np.concatenate([judged.value[keep], wide_value])
    return VoteBlock(
        items=items,
        item=judged.item,
        annotator=judged.annotator,
        once=once,
        row=row,
        label=cell_label[cell],
        value=value,
        cell=cell,
        lone=lone[row],
        cell_item=cell_item,
        cell_label=cell_label,
    )


class PairBlock(NamedTuple):
    """What others say of the items of some annotators i: P votes by j, sorted by i, j and label."""

    vote: NDArray[Any]  # (P,)
    first: NDArray[np.bool_]  # (P,), whether it is the first of its i, j and label
    same: NDArray[Any]  # (P,), what i gives to the label
    annotators: slice  # i
    groups: Codes  # how many j and labels each i has


def pairs_in_blocks(judged: Judgments, K: int, max_pairs: int) -> Iterator[PairBlock]:
    """All pairs of judgments of an item, both ways, in blocks of annotators."""
    seen = np.flatnonzero(~judged.once)
    item, annotator = judged.item[seen], judged.annotator[seen]
    n = np.bincount(item)
    check_pairs(
        n,
        max_pairs=max_pairs,
        instead="Pass open_ended=True, which needs none, or raise max_pairs.",
    )
    M = int(np.max(annotator, initial=-1)) + 1
    count = np.bincount(judged.row, minlength=len(judged.item))
    vote = np.cumsum(count) - count
    # A bool takes an eighth of the room.
    hard = bool(np.all(judged.value == 1)) and bool(np.all(count == 1))
    order, start = np.argsort(annotator, kind="stable"), np.cumsum(n) - n
    rows = np.concatenate([[0], np.cumsum(np.bincount(annotator))])
    for low, high in _blocks(np.cumsum(np.bincount(annotator, n[item] - 1)), 8 * _BLOCK):
        mine = order[rows[low] : rows[high]]
        place, step = spread(n[item[mine]])
        peer = start[item[mine]][place] + step
        other = peer != mine[place]
        i, j = seen[mine[place[other]]], seen[peer[other]]
        given = vote[j]
        if not hard:
            place, step = spread(count[j])
            i, given = i[place], given[place] + step
        who, label = judged.annotator[judged.row[given]], judged.label[given]
        key = ((judged.annotator[i] - low) * M + who) * K + label
        by = np.argsort(key)
        first = np.diff(key[by], prepend=-1) > 0
        same = judged.label[vote[i]] == label if hard else judged.look_up(i, label)
        groups = np.bincount(judged.annotator[i[by[first]]] - low, minlength=high - low)
        small = given.astype(np.int32 if len(judged.row) < 2**31 else np.intp)
        yield PairBlock(small[by], first, same[by], slice(low, high), groups)


def _blocks(done: NDArray[Any], size: int) -> Iterator[tuple[int, int]]:
    """From where to where to go so that each part makes about so much of all that is done."""
    _, start = np.unique(np.maximum(done - 1, 0) // size, return_index=True)
    return pairwise([*start.tolist(), len(done)])
