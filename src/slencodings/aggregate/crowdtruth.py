"""CrowdTruth: items, annotators and labels judge each other by agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.agreement import MAX_PAIRS, Judgments, judgments, others, pairs, spread
from slencodings.aggregate.result import Aggregate
from slencodings.annotations import Annotations

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_EPS = 1e-8  # SMALL_NUMBER_CONST of the package, which results depend on


def crowdtruth(
    annotations: Annotations,
    *,
    open_ended: bool = False,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_pairs: int = MAX_PAIRS,
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
    max_pairs : refuse to list more; annotators with one judgment need none

    Examples
    --------
    >>> from slencodings.annotations import from_table
    >>> said = {"item": [1, 1, 1, 2, 2, 2], "who": ["ann", "bob", "cyd"] * 2,
    ...         "label": ["yes", "yes", "no", "no", "no", "no"]}
    >>> crowdtruth(from_table(said, item="item", annotator="who", label="label")).reliability
    array([0.83993335, 0.83993335, 0.45753616])
    """
    if not (tol > 0 and max_iter >= 1):
        raise ValueError(
            f"`tol` must be above 0 and `max_iter` at least 1; {tol} and {max_iter} came. "
            "Leave them out for the usual 0.001 and 1000."
        )
    N, M, K = len(annotations.items), len(annotations.annotators), len(annotations.labels)
    said = judgments(annotations)
    shared = said.shared()
    items, item = np.unique(shared.item, return_inverse=True)
    people, annotator = np.unique(shared.annotator, return_inverse=True)
    shared = shared._replace(item=item, annotator=annotator)
    votes = _votes(shared, K)
    table = None if open_ended else _pair_table(shared, K, max_pairs)

    now = initial = _Quality(
        *(np.ones(n) for n in (len(items), len(people), K, *[len(people)] * 2))
    )
    iterations, converged = 0, len(items) == 0
    while not converged and iterations < max_iter:
        before, now = now, _update(votes, table, now)
        iterations += 1
        initial = now if iterations == 1 else initial
        converged = _change(before, now) < tol

    wqs = np.clip(now.annotator, 0, 1)
    reliability = np.full(M, np.mean(wqs) if len(wqs) else 1.0)
    reliability[people] = wqs
    probability, score, unweighted = _scores(said, reliability, N, K)
    labelled = len(np.unique(said.item))
    details = {
        "item_quality": _scatter(items, now.item, N),
        "annotator_quality": _scatter(people, now.annotator, M),
        "label_quality": now.label,
        "annotator_agreement": _scatter(people, now.wwa, M),
        "crowd_agreement": _scatter(people, now.wua, M),
        "label_score": score,
        "initial_item_quality": _scatter(items, initial.item, N),
        "initial_annotator_quality": _scatter(people, initial.annotator, M),
        "initial_label_quality": initial.label,
        "initial_label_score": _scores(said, np.ones(M), N, K)[1],
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
    >>> from slencodings.annotations import from_table
    >>> said = {"item": [1] * 7, "label": ["yes"] * 4 + ["no"] * 3}
    >>> sentence_relation_score(from_table(said, item="item", label="label")).probability
    array([[0.6, 0.8]])
    """
    n = annotations.sums()
    unlabelled = np.sum(n, axis=-1) == 0
    n[unlabelled] = 1
    norm = np.sum(n, axis=-1) if normalize else np.sqrt(np.sum(n**2, axis=-1))
    return Aggregate(n / norm[:, None], None, {"unlabelled": int(unlabelled.sum())})


class _Quality(NamedTuple):
    """What one iteration makes of the one before."""

    item: Floats  # UQS
    annotator: Floats  # WQS
    label: Floats  # AQS
    wwa: Floats
    wua: Floats


class _Votes(NamedTuple):
    """Judgments as E votes in C cells of an item and a label.

    A judgment for one label is one vote. Any other has one for every label of its item, also for
    those it gives nothing: then the rest of the crowd is known from its votes alone.
    """

    item: Ints  # (J,)
    annotator: Ints  # (J,)
    once: NDArray[np.bool_]  # (J,)
    row: Ints  # (E,)
    label: Ints  # (E,)
    value: Floats  # (E,)
    cell: Ints  # (E,)
    lone: NDArray[np.bool_]  # (E,), whether it is all of its judgment
    cell_item: Ints  # (C,)
    cell_label: Ints  # (C,)


def _votes(said: Judgments, K: int) -> _Votes:
    cells, cell = np.unique(said.item[said.row] * K + said.label, return_inverse=True)
    cell_item, cell_label = np.divmod(cells, K)
    lone = np.bincount(said.row, minlength=len(said.item)) == 1
    wide = np.flatnonzero(~lone)
    labels_of = np.bincount(cell_item, minlength=int(np.max(said.item, initial=-1)) + 1)
    first = np.cumsum(labels_of) - labels_of
    place, step = spread(labels_of[said.item[wide]])
    wide_row = wide[place]
    wide_cell = first[said.item[wide_row]] + step
    wide_value = said.look_up(wide_row, cell_label[wide_cell])
    keep = lone[said.row]
    row = np.concatenate([said.row[keep], wide_row])
    cell = np.concatenate([cell[keep], wide_cell])
    value = np.concatenate([said.value[keep], wide_value])
    return _Votes(
        said.item, said.annotator, said.once, row, cell_label[cell], value, cell, lone[row],
        cell_item, cell_label,
    )  # fmt: skip


class _PairTable(NamedTuple):
    """Annotators i, j and a label that j gives on items of both, in G groups."""

    given: csr_array  # (G, N), what j gives to the label on an item
    both: csr_array  # (G, N), ... times what i gives to it
    i: Ints  # (G,)
    j: Ints  # (G,)
    label: Ints  # (G,)


def _pair_table(said: Judgments, K: int, max_pairs: int) -> _PairTable:
    from scipy.sparse import csr_array

    seen = np.flatnonzero(~said.once).astype(np.int32 if len(said.once) < 2**31 else np.intp)
    left, right = pairs(
        said.item[seen],
        max_pairs=max_pairs,
        instead="Pass open_ended=True, which needs none, or raise max_pairs.",
    )
    left, right = seen[left], seen[right]
    place, vote = said.votes_of(np.concatenate([right, left]))
    i = np.concatenate([left, right])[place]
    del left, right, place
    N, M = (int(np.max(x, initial=-1)) + 1 for x in (said.item, said.annotator))
    key = (said.annotator[i] * M + said.annotator[said.row[vote]]) * K + said.label[vote]
    order = np.argsort(key)
    key, i, vote = key[order], i[order], vote[order]
    del order
    start = np.flatnonzero(np.diff(key, prepend=-1))
    pair, label = np.divmod(key[start], K)
    shape, end = (len(start), N), np.append(start, len(key))
    del key
    item, value = said.item[said.row[vote]], said.value[vote]
    given = csr_array((value, item, end), shape=shape)
    both = csr_array((value * said.look_up(i, said.label[vote]), item, end), shape=shape, copy=True)
    both.eliminate_zeros()
    return _PairTable(given, both, *np.divmod(pair, max(M, 1)), label)


def _update(votes: _Votes, table: _PairTable | None, old: _Quality) -> _Quality:
    """One iteration, all from the qualities `old`: Jacobi's way."""
    N, M, J = len(old.item), len(old.annotator), len(votes.item)
    item, who, row, label, cell = votes.item, votes.annotator, votes.row, votes.label, votes.cell
    w, uqs, q = old.annotator[who], old.item[item], old.label[label]

    # sum over peers j of w_j cos(i, j): with unit vectors, one dot product with their sum
    x = np.sqrt(q) * votes.value
    norm = np.sqrt(np.bincount(row, x**2, J))[row]
    x = np.divide(x, norm, out=np.zeros_like(x), where=norm > 0)
    alike = np.bincount(row, x * others(w[row] * x, cell), J)
    peers = others(w, item)
    UQS = _ratio(np.bincount(item, w * alike, N) / 2, np.bincount(item, w * peers, N) / 2)
    WWA = _ratio(np.bincount(who, uqs * alike, M), np.bincount(who, uqs * peers, M))

    # the cosine of w_i V_i with the rest of the crowd, which also has labels that i does not give
    own = w[row] * votes.value
    rest = others(own, cell)
    S = np.bincount(cell, own, len(votes.cell_item))
    elsewhere = others(old.label[votes.cell_label] * S**2, votes.cell_item)[cell]
    rest_squared = np.bincount(row, q * rest**2 + np.where(votes.lone, elsewhere, 0), J)
    root = np.sqrt(np.bincount(row, q * own**2, J) * rest_squared)
    tiny = root < _EPS
    cosine = np.where(tiny, _EPS, np.bincount(row, q * own * rest, J) / np.where(tiny, 1, root))
    WUA = _ratio(np.bincount(who, uqs * cosine, M), np.bincount(who, uqs, M))

    AQS = old.label if table is None else _label_quality(votes, table, old, peers, own, rest)
    return _Quality(UQS, WWA * WUA, AQS, WWA, WUA)


def _label_quality(
    votes: _Votes, table: _PairTable, old: _Quality, peers: Floats, own: Floats, rest: Floats
) -> Floats:
    """AQS_k: if j gives k, does i? The mean over ordered pairs of annotators."""
    K = len(old.label)
    given, both = table.given @ old.item, table.both @ old.item
    weight = np.where(given > 0, old.annotator[table.i] * old.annotator[table.j], 0)
    share = both / np.where(given > 0, given, 1)
    total = np.bincount(table.label, weight * share, K)
    weights = np.bincount(table.label, weight, K)
    if np.any(votes.once):
        # Who is seen once shares that item only, and what j gives and its quality cancel.
        w, once, cell = old.annotator[votes.annotator], votes.once, votes.cell
        partners = np.where(once, peers, np.bincount(votes.item, w * once)[votes.item])[votes.row]
        there = np.bincount(cell, own * once[votes.row])[cell]
        counts = (votes.value > 0) & (old.item[votes.item] > 0)[votes.row]
        w = np.where(counts, w[votes.row], 0)
        total = total + np.bincount(votes.label, w * np.where(once[votes.row], rest, there), K)
        weights = weights + np.bincount(votes.label, w * partners, K)
    known = weights > _EPS
    return np.where(known, np.maximum(total / np.where(known, weights, 1), _EPS), _EPS)


def _scores(said: Judgments, weight: Floats, N: int, K: int) -> tuple[Floats, Floats, int]:
    """Label distributions (N, K), raw label scores (N, K), and how many items went unweighted."""
    count = np.bincount(said.item, minlength=N)
    w = np.where(count[said.item] > 1, weight[said.annotator], 1.0)
    mass = np.bincount(said.item, w, N)
    cell = said.item[said.row] * K + said.label
    total = np.bincount(cell, w[said.row] * said.value, N * K).reshape(N, K)
    score = np.where(count[:, None] > 0, total / np.maximum(mass, _EPS)[:, None], np.nan)
    unweighted = (mass < _EPS) & (count > 0)
    plain = np.bincount(cell, said.value, N * K).reshape(N, K)
    total = np.where(unweighted[:, None], plain, total)
    silent = np.sum(total, axis=-1) == 0
    total[silent] = 1
    return total / np.sum(total, axis=-1, keepdims=True), score, int(np.sum(unweighted))


def _ratio(total: NDArray[Any], weight: NDArray[Any]) -> Floats:
    return total / np.maximum(weight, _EPS)


def _change(a: _Quality, b: _Quality) -> float:
    return max(float(np.max(np.abs(x - y))) for x, y in zip(a[:3], b[:3], strict=True))


def _scatter(at: Ints, value: Floats, n: int) -> NDArray[Any]:
    """NaN for those who are not there."""
    result = np.full(n, np.nan)
    result[at] = value
    return result
