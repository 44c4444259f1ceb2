"""Trust over time: whose answers got worse, with an alarm that rarely sounds for nothing."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.agreement import Judgments, judgments, peer_agreement
from slencodings.annotations import Annotations, sums_by
from slencodings.annotators.roster import as_plain
from slencodings.opinion import Codes, Floats

# So many answers before a change and after it can tell one.
LEAST_ON_A_SIDE = 10
# As many reorderings that look as bad settle that there is nothing to see.
_ENOUGH = 10
# Reorderings of one annotator in memory at a time, in numbers.
_AT_ONCE = 2_000_000


class Drift(NamedTuple):
    """Whether one annotator's answers got worse.

    Attributes
    ----------
    annotator : who
    annotations : how many, with a time, on items that others answered
    agreement : how far others agreed in each quarter of these, in the order of time
    since : the time of the first answer after the likeliest change for the worse
    before, after : how far others agreed before it and after it
    p_value : how often answers in any other order would look as bad
    alarm : whether they got worse for sure, with all that were tested in mind

    The last five are None, and there is no alarm, for who has too few answers.
    """

    annotator: Any
    annotations: int
    agreement: list[float]
    since: Any
    before: float | None
    after: float | None
    p_value: float | None
    alarm: bool


def drift(
    annotations: Annotations,
    time: Any,
    *,
    level: float = 0.05,
    rng: np.random.Generator | int = 0,
) -> list[Drift]:
    """Look for annotators whose answers got worse at some time, one row each.

    d = how far the others agree with an answer - how far they agree with each other
    T = max over times t of (mean of d before t - mean of d from t on) sqrt(n_before n_after / n)

    If nothing changed, d is as likely in any other order, which gives the p-value without any
    further assumption (Besag and Clifford 1991). Subtracting what others agree among themselves
    takes out that items get harder, for items with three answers or more. Of two answers one cannot
    tell whose got worse, and both are looked at. Alarms are Holm's: in a crowd where nothing
    changes, the chance of any is at most `level`.

    Parameters
    ----------
    time : (R,), of each annotation: numbers, dates or text that sorts; None, NaN or NaT if unknown
    level : the chance of a false alarm that is borne, of all annotators together
    rng : a generator or the seed of one, for the reorderings

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [q // 4 for q in range(240)], "who": ["ann", "bob", "cyd", "dan"] * 60}
    >>> said["label"] = [1 if who != "dan" or i < 30 else 0
    ...                  for i, who in zip(said["item"], said["who"])]
    >>> crowd = from_table(said, item="item", annotator="who", label="label")
    >>> [(row.annotator, row.since) for row in drift(crowd, said["item"]) if row.alarm]
    [('dan', 30)]
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` must lie between 0 and 1; {level:g} came. 0.05 is usual.")
    a = annotations
    when, times = _ranked(time, len(a.item))
    known = when >= 0
    judged = judgments(a.rows(known)).shared()
    rank = _first_times(a, when, judged)
    M = len(a.annotators)
    agreed = peer_agreement(judged, len(a.labels))
    d = agreed - _among_others(judged, agreed)
    streams = np.random.default_rng(rng).spawn(M)
    tested = np.sum(np.bincount(judged.annotator, minlength=M) >= 2 * LEAST_ON_A_SIDE)
    most = max(999, math.ceil(4 * float(tested) / level))
    rows: list[Drift] = []
    for m, name in enumerate(a.annotators.tolist()):
        mine = np.flatnonzero(judged.annotator == m)
        mine = mine[np.argsort(rank[mine], kind="stable")]
        quarters = [float(np.mean(agreed[part])) for part in np.array_split(mine, 4) if len(part)]
        row = Drift(as_plain(name), len(mine), quarters, None, None, None, None, False)
        # Where a change may lie, between two times, with enough answers on both sides.
        at = np.arange(LEAST_ON_A_SIDE, len(mine) - LEAST_ON_A_SIDE + 1)
        at = at[rank[mine[at]] > rank[mine[at - 1]]]
        if len(at):
            worst = at[int(np.argmax(_falls(d[mine], at)))]
            row = row._replace(
                since=as_time(times[rank[mine[worst]]]),
                before=float(np.mean(agreed[mine[:worst]])),
                after=float(np.mean(agreed[mine[worst:]])),
                p_value=_p_value(d[mine], at, most, streams[m]),
            )
        rows.append(row)
    return _alarmed(rows, level)


def _ranked(time: Any, R: int) -> tuple[Codes, NDArray[Any]]:
    """The place of each time among all there are, -1 where it is unknown, and those."""
    given = np.asarray(time)
    if given.shape != (R,):
        raise ValueError(
            f"`time` needs one for each of the {R} annotations, ({R},); shape {given.shape} came."
        )
    unknown = np.asarray([x is None or x != x for x in given.tolist()], dtype=bool)
    if given.dtype.kind == "M":
        unknown = np.isnat(given)
    try:
        times, place = np.unique(given[~unknown], return_inverse=True)
    except TypeError:
        kinds = sorted({type(x).__name__ for x in given[~unknown].tolist()})
        raise ValueError(
            f"`time` must be of one kind, to be sorted; {' and '.join(kinds)} came. "
            "Make them all dates, or all numbers."
        ) from None
    when = np.full(R, -1, dtype=np.intp)
    when[~unknown] = place
    return when, times


def as_time(x: Any) -> Any:
    """A time as JSON can say it: a number, or text."""
    if isinstance(x, np.datetime64):
        return str(x.astype("datetime64[s]"))
    return as_plain(x.item() if isinstance(x, np.generic) else x)


def _first_times(a: Annotations, when: Codes, judged: Judgments) -> Codes:
    """The time of each judgment: of who answered several times, the first."""
    M, known = len(a.annotators), when >= 0
    cell = a.item[known] * M + a.annotator[known]
    order = np.lexsort((when[known], cell))
    cells, first = np.unique(cell[order], return_index=True)
    earliest = when[known][order][first]
    return earliest[np.searchsorted(cells, judged.item * M + judged.annotator)]


def _among_others(judged: Judgments, agreed: Floats) -> Floats:
    """How far the others on the item of each judgment agree with each other, (J,).

    (sum of all pairs - those with the judgment) / pairs of others;   of two answers, the mean of
    all agreement, which is the same for all
    """
    n = judged.peers.astype(float)
    pairs = sums_by(judged.item, agreed * n)[judged.item] - 2 * agreed * n
    several = n > 1
    usual = float(np.mean(agreed)) if len(agreed) else 0.0
    return np.where(several, pairs / np.where(several, n * (n - 1), 1), usual)


def _falls(d: Floats, at: Codes) -> Floats:
    """How far the mean falls at each split, (..., S), in units that are alike for all splits."""
    n = d.shape[-1]
    total = np.cumsum(d, axis=-1)
    before = total[..., at - 1]
    fall = before / at - (total[..., -1:] - before) / (n - at)
    return fall * np.sqrt(at * (n - at) / n)


def _p_value(d: Floats, at: Codes, most: int, rng: np.random.Generator) -> float:
    """How often other orders of the same values fall as far; drawn until that is settled."""
    # Sums in another order differ by rounding, and what is equal but for that is as far.
    as_far = float(np.max(_falls(d, at))) - 1e-9
    done, reached, size = 0, 0, 100
    while done < most:
        size = min(size, most - done, max(_AT_ONCE // len(d), 1))
        drawn = rng.permuted(np.tile(d, (size, 1)), axis=1)
        far = np.max(_falls(drawn, at), axis=1) >= as_far
        if reached + np.sum(far) >= _ENOUGH:
            last = int(np.flatnonzero(far)[_ENOUGH - reached - 1])
            return _ENOUGH / (done + last + 1)
        done, reached, size = done + size, reached + int(np.sum(far)), size * 4
    return (reached + 1) / (most + 1)


def _alarmed(rows: list[Drift], level: float) -> list[Drift]:
    """Rows with alarms by Holm's procedure: the smallest p-values first, until one is too large."""
    tested = [(row.p_value, m) for m, row in enumerate(rows) if row.p_value is not None]
    for k, (p, m) in enumerate(sorted(tested)):
        if p > level / (len(tested) - k):
            break
        rows[m] = rows[m]._replace(alarm=True)
    return rows
