"""Put what can be known of each annotator side by side."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import (
    dawid_skene,
    mace,
    pairwise_kappa,
    reliability_opinion,
    share_of_agreement,
)
from slencodings.aggregate.agreement import Judgments, judgments
from slencodings.annotations import Annotations
from slencodings.annotators.intervals import (
    Interval,
    agreement_sample_size,
    effective_sample_size,
    groups_of_items,
    interval,
)
from slencodings.annotators.roster import Columns, Roster
from slencodings.opinion import Codes, Floats
from slencodings.trust import learn_trust
from slencodings.trust.objective import Ridge

Progress = Callable[[int, int], object]

ESTIMATES = ("learned", "agreement", "kappa", "dawid_skene", "mace")
# What of an annotator can be sorted by, beside the estimates
_SORTABLE = ("annotator", "annotations", "shared_items", "given", "stated", "earned",
           "overconfidence", "confused", "confused_share")  # fmt: skip
# Who shares fewer items has no interval from refits.
FEWEST_ITEMS = 5
# With the 50 steps that MACE usually takes it often has not come to an end.
_MACE_STEPS = 500
# How many annotators a note names.
_NAMED = 5


def describe_annotators(
    annotations: Annotations,
    *,
    reliability: Any = None,
    estimates: Sequence[str] = ESTIMATES,
    sort: str | None = None,
    groups: int = 20,
    rng: np.random.Generator | int = 0,
    progress: Progress = lambda done, total: None,
) -> Roster:
    """Tell whom to trust, who is too sure and what is confused, a row for each annotator.

    `annotator`, `annotations`, and `shared_items`, which others judged too and the rest is about;
    then estimates, each between its `_low` and `_high`, None if unknown:

    - `learned`, reliability by `learn_trust`; about the typical one if no item is shared
    - `agreement` (`share_of_agreement`) and `kappa` (`pairwise_kappa`), which may be negative
    - `dawid_skene`, expected accuracy, and `mace`, how often they know the answer
    - `given`, the mean of `reliability`, if any came

    `stated` is mean confidence, `earned` is agreement beyond chance as in `calibrate` (peers err
    too: compare annotators), `overconfidence` the difference if stated is on [0, 1]; None if nobody
    stated any. The commonest disagreement is having `said` one label where `peers_say` another:
    `confused` times, a `confused_share` of all times it was said.

    Intervals (`intervals`) tell what other items would give, by refits without each of G groups.
    They do not tell how far `learned` is held back by its ridges, or `mace` by its priors. Who
    shares fewer than 5 items has only that of agreement, which needs no refits.

    Parameters
    ----------
    reliability : as in `Annotations.per_annotation`
    estimates : which of the five to compute
    sort : a column, highest first (names: lowest), unknown last; the first estimate when absent
    groups : G, or 0 for no refits
    rng : a generator or the seed of one, for the groups, ridges and starts
    progress : called with how many of all fits are done, and how many there are

    Examples
    --------
    >>> from slencodings import from_table
    >>> answers = {"item": [1, 1, 1, 2, 2, 2], "who": ["ann", "bob", "cyd"] * 2,
    ...            "label": ["yes", "yes", "no", "no", "no", "no"]}
    >>> crowd = from_table(answers, item="item", annotator="who", label="label")
    >>> row = describe_annotators(crowd, sort="agreement", groups=0).to_rows()[-1]
    >>> row["annotator"], row["agreement"], row["said"], row["peers_say"], row["confused_share"]
    ('cyd', 0.5, 'no', 'yes', 0.5)
    """
    annotations = annotations.completed(reliability)
    by = _check(annotations, estimates, sort, groups)
    M, who = len(annotations.annotators), annotations.annotator
    judged = judgments(annotations).shared()
    columns: Columns = {
        "annotator": [_plain(name) for name in annotations.annotators.tolist()],
        "annotations": np.bincount(who, minlength=M).tolist(),
        "shared_items": np.bincount(judged.annotator, minlength=M).tolist(),
    }
    if annotations.reliability is not None:
        columns["given"] = _list(_means(who, annotations.reliability, M))
    fit = _Fit(dict.fromkeys(estimates, np.full(M, np.nan)), None, None, [])
    if len(judged.item):
        fit = _fit(annotations, estimates, rng)
    intervals = _intervals(annotations, judged, fit, groups, rng, progress)
    for name, values in fit.values.items():
        low, high = intervals[name]
        columns |= {name: _list(values), f"{name}_low": _list(low), f"{name}_high": _list(high)}
    columns |= _confidence(annotations, judged)
    columns |= _confusion(judged, M, annotations.labels)
    notes = _notes(columns, judged, annotations.labels) + fit.notes
    order = _order(columns[by], names=by == "annotator")
    return Roster({name: [values[m] for m in order] for name, values in columns.items()}, notes)


def _check(
    annotations: Annotations,
    estimates: Sequence[str],
    sort: str | None,
    groups: int,
) -> str:
    """Refuse what makes no sense before time is spent on it, and return what to sort by."""
    if not annotations.named:
        raise ValueError(
            "annotators are told apart by their ids, and these "
            f"{len(annotations.item):,} annotations came without. "
            "Name the column: from_table(..., annotator='worker')."
        )
    if isinstance(estimates, str) or not estimates or set(estimates) - set(ESTIMATES):
        raise ValueError(
            f"`estimates` must be some of {', '.join(ESTIMATES)}, in a list; {estimates!r} came. "
            "Leave it out for all of them."
        )
    given = annotations.reliability is not None
    known = [*estimates, *(name for name in _SORTABLE if name != "given" or given)]
    if sort is not None and sort not in known:
        raise ValueError(
            f"`sort` must be one of {', '.join(known)}; {sort!r} came. "
            f"Leave it out to sort by {estimates[0]}."
        )
    if operator.index(groups) < 0 or groups == 1:
        raise ValueError(
            f"`groups` of items are left out in turn, so at least 2 are needed; {groups} came. "
            "20 is usual, 0 for no refits."
        )
    return sort or estimates[0]


class _Fit(NamedTuple):
    """What the estimators say of each annotator, (M,) each, and where to start them again."""

    values: dict[str, Floats]
    ridge: Ridge | None
    start: tuple[Floats, Floats] | None
    notes: list[str]


def _fit(
    annotations: Annotations,
    estimates: Iterable[str],
    rng: np.random.Generator | int,
    like: _Fit | None = None,
) -> _Fit:
    """All estimates; `like` another fit, so with its ridges, and with MACE from where it ended.

    Nothing tells the errors of who shares no item, or is never sure at all, from those of others;
    Dawid-Skene and MACE give their priors then, which say nothing about the annotator.
    """
    heard = _shared_items(annotations.rows(annotations.uncertainty < 1)) > 0
    values: dict[str, Floats] = {}
    notes: list[str] = []
    ridge, start = (None, None) if like is None else (like.ridge, like.start)
    for name in estimates:
        converged = True
        match name:
            case "agreement":
                values[name] = share_of_agreement(annotations)
            case "kappa":
                try:
                    values[name] = pairwise_kappa(annotations)
                except ValueError as error:  # it would take too many pairs
                    values[name] = np.full(len(heard), np.nan)
                    notes.append(f"There is no kappa: {error}")
            case "dawid_skene":
                found = dawid_skene(annotations)
                values[name] = np.where(heard, np.asarray(found.reliability), np.nan)
                converged = found.details["converged"]
            case "mace":
                draw = np.random.default_rng(rng)
                found = mace(annotations, n_iter=_MACE_STEPS, rng=draw, initial=start)
                know = np.asarray(found.reliability)
                start = np.stack([found.details["spamming"], know], 1), found.details["strategy"]
                values[name] = np.where(heard, know, np.nan)
                converged = found.details["converged"]
            case _:
                trust = learn_trust(annotations, ridge=ridge, rng=rng)
                values[name] = trust.worth / (1 + trust.worth)
                ridge, converged = trust.ridge, trust.converged
        if not converged:
            notes.append(f"`{name}` did not converge: take it for a rough guide.")
    return _Fit(values, ridge, start, notes)


def _shared_items(annotations: Annotations) -> Codes:
    """How many items each annotator shares with others, (M,)."""
    judged = judgments(annotations).shared()
    return np.bincount(judged.annotator, minlength=len(annotations.annotators))


def _intervals(
    annotations: Annotations,
    judged: Judgments,
    fit: _Fit,
    groups: int,
    rng: np.random.Generator | int,
    progress: Progress,
) -> dict[str, Interval]:
    """Low and high of each estimate, (M,) each, NaN for none."""
    M = len(annotations.annotators)
    size = agreement_sample_size(judged, M, len(annotations.labels))
    none = np.full(M, np.nan)
    intervals = dict.fromkeys(fit.values, (none, none))
    if "agreement" in fit.values:
        intervals["agreement"] = interval(fit.values["agreement"], size)
    names = [name for name in fit.values if name != "agreement"]
    items = np.unique(judged.item)
    G = min(groups, len(items))
    if G < 2 or not names:
        progress(1, 1)
        return intervals
    progress(1, 1 + G)
    group = groups_of_items(items, len(annotations.items), G, rng)
    refits: dict[str, list[Floats]] = {name: [] for name in names}
    for g in range(G):
        keep = group[annotations.item] != g
        again = _fit(annotations.rows(keep), names, rng, fit)
        for name in names:
            refits[name].append(again.values[name])
        progress(2 + g, 1 + G)
    n = np.bincount(judged.annotator, minlength=M)
    seen = np.unique(judged.annotator * G + group[judged.item]) // G
    spread = np.bincount(seen, minlength=M)
    enough = (n >= FEWEST_ITEMS) & (spread > 1)
    for name in names:
        # Kappa is a share of agreement, stretched: it too knows more than n tosses.
        low, most = (-1, size) if name == "kappa" else (0, n)
        x, again = ((v - low) / (1 - low) for v in (fit.values[name], np.stack(refits[name])))
        most = np.where(enough, most, np.nan)
        ends = interval(x, effective_sample_size(x, again, most, spread))
        intervals[name] = ends[0] * (1 - low) + low, ends[1] * (1 - low) + low
    return intervals


def _confidence(annotations: Annotations, judged: Judgments) -> Columns:
    """Mean stated confidence on shared items, what it earned, and by how much it is too high."""
    M, stated = len(annotations.annotators), np.full(len(annotations.item), np.nan)
    if annotations.stated is not None:
        stated = annotations.stated
    shared = np.isin(annotations.item, judged.item)
    says = _means(annotations.annotator[shared], stated[shared], M)
    opinion = reliability_opinion(annotations, chance=True)
    known = 1 - opinion.uncertainty
    earned = np.where(np.isnan(says), np.nan, opinion.belief[:, 0] / np.where(known > 0, known, 1))
    comparable = np.all((stated >= 0) & (stated <= 1))
    over = says - earned if comparable else np.full(M, np.nan)
    return {"stated": _list(says), "earned": _list(earned), "overconfidence": _list(over)}


def _confusion(judged: Judgments, M: int, labels: NDArray[Any]) -> Columns:
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
    names = [_plain(label) for label in labels.tolist()]
    for at in order[np.unique(who[order], return_index=True)[1]].tolist():
        most = names[mine[at]], names[times.col[at]], float(n[at]), float(share[at])
        for column, value in zip(columns.values(), most, strict=True):
            column[who[at]] = value
    return columns


def _notes(columns: Columns, judged: Judgments, labels: NDArray[Any]) -> list[str]:
    """What a reader of the columns has to know."""
    shared, M = columns["shared_items"], len(columns["annotator"])
    notes: list[str] = []

    def those(who: Iterable[bool]) -> str:
        names = [str(n) for n, w in zip(columns["annotator"], who, strict=True) if w]
        some = ", ".join(names[:_NAMED]) + ", ..." * (len(names) > _NAMED)
        return f"{len(names):,} of {M:,} annotators ({some})" if names else ""

    if not any(shared):
        notes.append("No item was judged by two annotators, so nobody can be compared.")
    elif alone := those(n == 0 for n in shared):
        notes.append(
            f"No item is shared with anybody by {alone}. `learned` is about that of a typical "
            "annotator; the rest is unknown, as reliability the mean of the others "
            "(`as_reliability`)."
        )
    if few := those(0 < n < FEWEST_ITEMS for n in shared):
        notes.append(
            f"Fewer than {FEWEST_ITEMS} items are shared by {few}: too few for intervals, but for "
            "that of agreement."
        )
    used = np.unique(judged.label)
    if len(used) == 1:
        notes.append(
            f"Only one label was given where annotators can be compared, {labels[used[0]]}: all "
            "agree, kappa is 1, and nothing tells them apart."
        )
    if below := those(k is not None and k < 0 for k in columns.get("kappa", [None] * M)):
        notes.append(
            f"Kappa is negative, less agreement than by chance, for {below}. It is shown as it is; "
            "as reliability it is 0 (`as_reliability`)."
        )
    if set(columns["stated"]) != {None} and set(columns["overconfidence"]) == {None}:
        notes.append(
            "Stated confidence is not on [0, 1], so it is not compared with what it earned. Map it "
            "first, for example (stated - 1) / 4 if it is 1 to 5."
        )
    return notes


def _order(values: list[Any], *, names: bool) -> list[int]:
    """Places of the values, the highest first but for names, equal ones as they come."""
    known = [m for m, value in enumerate(values) if value is not None]
    known.sort(key=lambda m: str(values[m]) if names else values[m], reverse=not names)
    return known + [m for m, value in enumerate(values) if value is None]


def _means(group: Codes, x: Floats, size: int) -> Floats:
    n = np.bincount(group, minlength=size)
    return np.where(n > 0, np.bincount(group, x, size) / np.maximum(n, 1), np.nan)


def _list(x: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in x.tolist()]


def _plain(name: Any) -> Any:
    """A name as JSON can say it."""
    missing = name is None or (isinstance(name, float) and math.isnan(name))
    return None if missing else name if isinstance(name, str | int | float) else str(name)
