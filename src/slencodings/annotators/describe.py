"""Put what can be known of each annotator side by side."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import krippendorff_alpha, reliability_opinion, severity
from slencodings.aggregate.agreement import Judgments, judgments, weighted_mean
from slencodings.annotations import Annotations, counted, plainly, sums_by
from slencodings.annotators.drift import drift
from slencodings.annotators.estimates import ESTIMATES, Fit, Progress, fit, intervals
from slencodings.annotators.intervals import interval
from slencodings.annotators.roster import (
    Columns,
    Level,
    Roster,
    as_list,
    as_plain,
    with_interval,
)
from slencodings.annotators.verdicts import FEWEST_ITEMS, Verdict, judge, shared_items
from slencodings.opinion import Codes, Floats
from slencodings.trust import Crowd, count_each, learn_crowd

# What of an annotator can be sorted by, beside the estimates
_SORTABLE = ("verdict", "annotator", "above_chance", "accuracy", "chance", "worth_for_votes",
             "annotations", "shared_items", "given", "stated", "earned", "overconfidence",
             "confused", "confused_share")  # fmt: skip
# How many annotators a note names.
_NAMED = 5


def describe_annotators(
    annotations: Annotations,
    *,
    crowd: Crowd | None = None,
    reliability: Any = None,
    scored: Any = None,
    time: Any = None,
    estimates: Sequence[str] = ("agreement",),
    sort: str = "verdict",
    groups: int = 20,
    rng: np.random.Generator | int = 0,
    progress: Progress = lambda done, total: None,
) -> Roster:
    """Tell whom to trust, who is too sure and what is confused, a row for each annotator.

    `annotator`; a `verdict` (see `verdict`) and its `reason`; `above_chance`, how often they are
    right by what the crowd takes for true, 0 for guessing and 1 for always, between `_low` and
    `_high`; `accuracy`, the same as a share, and `chance`, what giving their labels without looking
    would come to; `worth_for_votes`, what an annotation of theirs counts in predicting votes;
    `annotations`, and `shared_items`, which others judged too and all of this is about. Then
    estimates if asked for, each between its `_low` and `_high`, None if unknown:

    - `agreement` (`share_of_agreement`) and `kappa` (`pairwise_kappa`), which may be negative
    - `dawid_skene`, expected accuracy, and `mace`, how often they know the answer
    - `given`, the mean of `reliability`, if any came

    `stated` is mean confidence, `earned` is agreement beyond chance as in `calibrate` (peers err
    too: compare annotators), `overconfidence` the difference if stated is on [0, 1]; None if nobody
    stated any. The commonest disagreement is having `said` one label where `peers_say` another:
    `confused` times, a `confused_share` of all times it was said.

    With a `time`, `drift_since` is the likeliest time of a change for the worse, `agreement_before`
    and `agreement_after` how far others agreed before it and after it, `drift_p` its p-value and
    `drift` whether they got worse for sure: see `drift`. Where labels have an order, `severity` is
    how many steps above the others they answer, between `_low` and `_high`.

    Intervals of kappa, Dawid-Skene and MACE (`intervals`) come from refits without each of G groups
    of items, which takes time; all others are closed forms. Who shares fewer than 5 items has none
    from refits.

    Parameters
    ----------
    crowd : what was learned of it already; learned here when absent
    reliability : as in `Annotations.per_annotation`
    scored : whose votes are predicted, as in `learn_crowd`
    time : of each annotation, (R,), as in `drift`
    estimates : which of agreement, kappa, dawid_skene and mace to compute
    sort : "verdict", the worst first; or a column, highest first (names: lowest), unknown last
    groups : G, or 0 for no refits
    rng : a generator or the seed of one, for what is held out, groups and starts
    progress : called with how much is done, and how much there is

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [q // 3 for q in range(54)], "who": ["ann", "bob", "eve"] * 18}
    >>> said["label"] = ["no", "no", "yes", "yes", "yes", "no", "no", "no", "yes"] * 6
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> row = describe_annotators(crowd).to_rows()[0]
    >>> row["annotator"], row["verdict"], row["said"], row["peers_say"]
    ('eve', 'against the crowd', 'yes', 'no')
    """
    a = annotations.completed(reliability)
    _check_asked(a, estimates, sort, groups)
    judged = judgments(a).shared()
    refits = any(name != "agreement" for name in estimates) and groups > 0
    if crowd is None:
        crowd = count_each(a)
        if np.any(np.bincount(a.item, minlength=1) > 1):
            on_step = None if refits else progress
            crowd = learn_crowd(a, scored=scored, rng=rng, progress=on_step)
    columns = _learned_columns(a, crowd)
    found = Fit(dict.fromkeys(estimates, np.full(len(a.annotators), np.nan)), None, [])
    if len(judged.item):
        found = fit(a, estimates, rng)
    ends = intervals(a, judged, found, groups, rng, progress)
    for name, values in found.values.items():
        columns |= with_interval(name, values, *ends[name])
    if a.ordered:
        columns |= with_interval("severity", *severity(a))
    if time is not None:
        columns |= _drift(a, time, rng)
    columns |= _confidence(a, judged)
    columns |= _confusion(judged, len(a.annotators), a.labels)
    notes = _notes(columns, judged, a.labels) + found.notes
    if a.ordered and len(judged.item):
        notes.append(
            f"Krippendorff's ordinal alpha of the crowd is {krippendorff_alpha(a).alpha:.2f}: 1 is "
            "perfect agreement, 0 as by chance."
        )
    order = _worst_first(columns) if sort == "verdict" else _order(columns, sort)
    ordered = {name: [values[m] for m in order] for name, values in columns.items()}
    return Roster(ordered, _levels(a, crowd), notes)


def _check_asked(a: Annotations, estimates: Sequence[str], sort: str, groups: int) -> None:
    """Refuse what makes no sense before time is spent on it."""
    if not a.named:
        raise ValueError(
            "annotators are told apart by their ids, and these "
            f"{counted(len(a.item), 'annotation')} came without. "
            "Name their column: annotator='COLUMN'."
        )
    if isinstance(estimates, str) or set(estimates) - set(ESTIMATES):
        raise ValueError(
            f"`estimates` must be some of {', '.join(ESTIMATES)}, in a list; {estimates!r} came."
        )
    given = a.reliability is not None
    known = [*(name for name in _SORTABLE if name != "given" or given), *estimates]
    if sort not in known:
        raise ValueError(
            f"`sort` must be one of {', '.join(known)}; {sort!r} came. "
            "Leave it out for the worst first."
        )
    if operator.index(groups) < 0 or groups == 1:
        raise ValueError(
            f"`groups` of items are left out in turn, so at least 2 are needed; {groups} came. "
            "20 is usual, 0 for no refits."
        )


def _learned_columns(a: Annotations, crowd: Crowd) -> Columns:
    """What the learned crowd tells; nothing of who shares no item but how much they did."""
    shared, M = shared_items(a), len(a.annotators)
    found = judge(a, crowd)

    def known(x: Floats) -> Floats:
        # Alone on all of their items, they are as right as they say.
        return np.where(shared > 0, x, np.nan)

    low, high = crowd.above_chance_interval()
    columns: Columns = {
        "annotator": [as_plain(name) for name in a.annotators.tolist()],
        "verdict": [judged.verdict for judged in found],
        "reason": [judged.reason for judged in found],
        **with_interval("above_chance", known(crowd.above_chance), known(low), known(high)),
        "accuracy": as_list(known(crowd.accuracy)),
        "chance": as_list(known(crowd.people.chance)),
        "worth_for_votes": as_list(known(crowd.worth)),
        "annotations": np.bincount(a.annotator, minlength=M).tolist(),
        "shared_items": shared.tolist(),
    }
    if a.reliability is not None:
        columns["given"] = as_list(_means(a.annotator, a.reliability, M))
    return columns


def _confidence(annotations: Annotations, judged: Judgments) -> Columns:
    """Mean stated confidence on shared items, what it earned, and by how much it is too high."""
    M, stated = len(annotations.annotators), _at_its_word(annotations)
    shared = np.isin(annotations.item, judged.item)
    says = _means(annotations.annotator[shared], stated[shared], M)
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
    names = [as_plain(label) for label in labels.tolist()]
    for at in order[np.unique(who[order], return_index=True)[1]].tolist():
        most = names[mine[at]], names[times.col[at]], float(n[at]), float(share[at])
        for column, value in zip(columns.values(), most, strict=True):
            column[who[at]] = value
    return columns


def _means(group: Codes, x: Floats, size: int) -> Floats:
    """The mean of each group, (size,); NaN for none."""
    return weighted_mean(np.bincount(group, x, size), np.bincount(group, minlength=size))


def _levels(a: Annotations, crowd: Crowd) -> list[Level]:
    """Whether confidence is earned, at each level from the lowest; none if it was not stated."""
    L = len(crowd.levels)
    if not L:
        return []
    shared = (np.bincount(a.item, minlength=len(a.items)) > 1)[a.item]
    level = crowd.level_of(a)[shared]
    P = crowd.truth(a).probability[a.item]
    right = np.sum(P * a.vectors, axis=1)[shared]
    n = np.bincount(level, minlength=L)
    p = sums_by(level, right, L) / np.maximum(n, 1)
    low, high = interval(p, n.astype(float))
    known = [[x[k] if n[k] else None for k in range(L)] for x in (p, low, high)]
    return [
        Level(*row)
        for row in zip(crowd.levels.tolist(), n.tolist(), *known, crowd.share.tolist(), strict=True)
    ]


def _drift(a: Annotations, time: Any, rng: np.random.Generator | int) -> Columns:
    """Whose answers got worse, and when."""
    rows = drift(a, time, rng=rng)
    return {
        "drift": [row.alarm for row in rows],
        "drift_since": [row.since for row in rows],
        "drift_p": [row.p_value for row in rows],
        "agreement_before": [row.before for row in rows],
        "agreement_after": [row.after for row in rows],
    }


def _notes(columns: Columns, judged: Judgments, labels: NDArray[Any]) -> list[str]:
    """What a reader of the columns has to know."""
    shared, M = columns["shared_items"], len(columns["annotator"])
    notes: list[str] = []

    def those(who: Iterable[bool]) -> str:
        names = [plainly(n) for n, w in zip(columns["annotator"], who, strict=True) if w]
        some = ", ".join(names[:_NAMED]) + ", ..." * (len(names) > _NAMED)
        return f"{len(names):,} of {M:,} annotators ({some})" if names else ""

    if not any(shared):
        notes.append("No item was judged by two annotators, so nobody can be compared.")
    elif alone := those(n == 0 for n in shared):
        notes.append(f"No item is shared with anybody by {alone}, so nothing is known of them.")
    if few := those(0 < n < FEWEST_ITEMS for n in shared):
        notes.append(f"Fewer than {FEWEST_ITEMS} items are shared by {few}: too few to tell.")
    used = np.unique(judged.label)
    if len(used) == 1:
        notes.append(
            f"Only one label was given where annotators can be compared, {labels[used[0]]}: all "
            "agree, and nothing tells them apart."
        )
    if below := those(k is not None and k < 0 for k in columns.get("kappa", [None] * M)):
        notes.append(
            f"Kappa is negative, less agreement than by chance, for {below}. It is shown as it is; "
            "as reliability it is 0 (`as_reliability`)."
        )
    if set(columns["stated"]) != {None} and set(columns["overconfidence"]) == {None}:
        notes.append(
            "Stated confidence is not on [0, 1], so it is not compared with what it earned. Name "
            "the ends of its scale by `confidence_scale`, such as 1-5."
        )
    return notes


def _worst_first(columns: Columns) -> list[int]:
    """Places of the annotators by verdict, then by how often they are right; unknown ones last."""
    rank, right = get_args(Verdict), columns["above_chance"]

    def key(m: int) -> tuple[int, bool, float]:
        return rank.index(columns["verdict"][m]), right[m] is None, right[m] or 0.0

    return sorted(range(len(right)), key=key)


def _order(columns: Columns, by: str) -> list[int]:
    """Places of the values, the highest first but for names, equal ones as they come."""
    values, names = columns[by], by == "annotator"
    known = [m for m, value in enumerate(values) if value is not None]
    known.sort(key=lambda m: str(values[m]) if names else values[m], reverse=not names)
    return known + [m for m, value in enumerate(values) if value is None]
