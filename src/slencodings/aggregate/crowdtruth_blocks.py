"""What CrowdTruth goes through, in blocks: votes of items, and pairs of judgments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.agreement import Judgments, check_pairs, spread
from slencodings.opinion import Codes, Floats

# So many rows are worked on at a time: their intermediate results stay in the processor's caches.
_BLOCK = 2**18


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
        items, judged.item, judged.annotator, once, row, cell_label[cell], value, cell, lone[row],
        cell_item, cell_label,
    )  # fmt: skip


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
