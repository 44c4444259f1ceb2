"""Each judge of pairs: how well they tell options apart, which side they favour, who agrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, get_args

import numpy as np

from slencodings.aggregate import (
    BradleyTerry,
    bradley_terry,
    krippendorff_alpha,
    share_of_agreement,
)
from slencodings.aggregate.agreement import Judgments, judgments
from slencodings.aggregate.bradley_terry import davidson_chances, fisher_information
from slencodings.annotations import Annotations, sums_by
from slencodings.annotators.intervals import agreement_sample_size, interval
from slencodings.annotators.roster import Columns, Roster, as_list, as_plain, with_interval
from slencodings.annotators.verdicts import (
    FEWEST_ITEMS,
    Judged,
    Verdict,
    shared_items,
    typical_skill,
    verdict,
)
from slencodings.kinds.pairs import LABELS, Pairs
from slencodings.opinion import Z_95, Codes, Floats

# Judges are left out in so many groups at most; of fewer each is left out alone.
_GROUPS = 20
# Before anything is seen: d is 1 and b is 0, both give or take this.
_PRIOR = 1.0
_STEPS = 100


class _Fit(NamedTuple):
    """d and b of each judge, (M,), and their standard deviations."""

    d: Floats
    b: Floats
    d_deviation: Floats
    b_deviation: Floats


def describe_judges(
    pairs: Pairs,
    *,
    found: BradleyTerry | None = None,
    rng: np.random.Generator | int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Roster:
    """Say of each judge of pairs how far to trust them, the worst first.

    Each is held against scores that were learned without them (of more than 20 judges, without the
    20th part that they are in): of judge m the odds of left, tie and right are those of
    `bradley_terry` with x = d_m gap + b_m, where `gap` is how far apart the others see the two.

    | column | is |
    |---|---|
    | verdict, reason | as `verdict` has it, by the interval of d |
    | discrimination | d_m over that of the median judge; 0 without looking, below 0 against all |
    | side, left_wins | b_m, and the share that the left would win among equals, 1 / (1 + e^-b) |
    | ties | the share of their judgments that are ties |
    | agreement | how often another judge of the same two says the same, wherever they stood |
    | annotations, shared_items | judgments, and pairs that another judged, too |

    `discrimination`, `side` and `agreement` have `_low` and `_high`, which hold 95 in 100.

    Parameters
    ----------
    found : what `bradley_terry` learned of the pairs; learned here when absent

    Examples
    --------
    >>> from slencodings import pairs_from_table
    >>> games = {"left": list("abacbc") * 12, "right": list("bacacb") * 12,
    ...          "won": list("aaaabb") * 10 + ["left", "right"] * 6, "who": ["x"] * 30 + ["y"] * 42}
    >>> pairs = pairs_from_table(games, left="left", right="right", winner="won", annotator="who")
    >>> [(row["annotator"], row["verdict"]) for row in describe_judges(pairs).to_rows()]
    [('x', 'fine'), ('y', 'fine')]
    """
    a, M = pairs.annotations, len(pairs.annotations.annotators)
    if not a.named or M < 2:
        raise ValueError(
            "judges are held against each other, so two or more are needed; "
            f"{'one' if a.named else 'none that is named'} came. Name the column of who judged: "
            "annotator='judge'."
        )
    learned = found or bradley_terry(pairs, rng=rng)
    fit = _fit(a, _by_others(pairs, learned, rng, progress), learned.log_tie)
    n, crowd = np.bincount(a.annotator, minlength=M), pairs.unplaced.annotations
    judged = judgments(crowd).shared()
    agreement = share_of_agreement(crowd)
    ends = interval(agreement, agreement_sample_size(judged, M, len(LABELS)))
    # Scores have no scale but that of those who judge.
    median = float(np.median(fit.d[n >= FEWEST_ITEMS])) if np.any(n >= FEWEST_ITEMS) else 0.0
    usual = median if median > 0 else 1.0
    d, spread, side_spread = fit.d / usual, Z_95 * fit.d_deviation / usual, Z_95 * fit.b_deviation
    verdicts = _verdicts(d, d - spread, d + spread, n)
    tied = sums_by(a.annotator, a.vectors[:, LABELS.index("tie")], M)

    def known(x: Floats) -> Floats:
        return np.where(n > 0, x, np.nan)

    columns: Columns = {
        "annotator": [as_plain(name) for name in a.annotators.tolist()],
        "verdict": [each.verdict for each in verdicts],
        "reason": [each.reason for each in verdicts],
        **with_interval("discrimination", *map(known, (d, d - spread, d + spread))),
        **with_interval("side", *map(known, (fit.b, fit.b - side_spread, fit.b + side_spread))),
        "left_wins": as_list(known(1 / (1 + np.exp(-fit.b)))),
        "ties": as_list(known(tied / np.maximum(n, 1))),
        **with_interval("agreement", agreement, *ends),
        "annotations": n.tolist(),
        "shared_items": shared_items(crowd).tolist(),
    }
    ranks, apart = get_args(Verdict), columns["discrimination"]
    order = sorted(range(M), key=lambda m: (ranks.index(columns["verdict"][m]), apart[m] or 0))
    return Roster(
        {name: [x[m] for m in order] for name, x in columns.items()}, [], [_note(crowd, judged)]
    )


def _note(crowd: Annotations, judged: Judgments) -> str:
    """How far judges agree on the pairs that several judged."""
    if not len(judged.item):
        return "No two judges judged the same pair, so nothing tells how often they agree."
    return (
        f"Krippendorff's ordinal alpha of judgments is {krippendorff_alpha(crowd).alpha:.2f}, "
        "a tie between left and right: 1 is perfect agreement, 0 as by chance."
    )


def _by_others(
    pairs: Pairs,
    found: BradleyTerry,
    rng: np.random.Generator | int,
    progress: Callable[[int, int], None],
) -> Floats:
    """How far apart the others see the two of each judgment, (R,); 0 where there are none."""
    a, M = pairs.annotations, len(pairs.annotations.annotators)
    G = min(M, _GROUPS)
    group = np.random.default_rng(rng).permutation(np.arange(M) % G)[a.annotator]
    gap = np.zeros(len(a.item))
    for g in range(G):
        progress(g, G)
        mine = group == g
        if np.any(mine) and not np.all(mine):
            learned = bradley_terry(
                pairs.rows(~mine), spread=found.spread, judge_spread=found.judge_spread
            )
            item = a.item[mine]
            gap[mine] = learned.score[pairs.left[item]] - learned.score[pairs.right[item]]
    progress(G, G)
    return gap


def _fit(a: Annotations, gap: Floats, t: float) -> _Fit:
    """The likeliest d and b of each judge, by Newton's steps for all of them at once.

    log P(y | x) is concave in x, and x = d gap + b is linear, so there is one maximum.
    """
    M, who, y = len(a.annotators), a.annotator, a.vectors
    d, b = np.ones(M), np.zeros(M)
    hessian = np.zeros((3, M))
    for _ in range(_STEPS):
        p = davidson_chances(d[who] * gap + b[who], t)
        slope = ((y - p)[:, 0] - (y - p)[:, 2]) / 2
        by_d = sums_by(who, slope * gap, M) - (d - 1) / _PRIOR**2
        by_b = sums_by(who, slope, M) - b / _PRIOR**2
        information = fisher_information(p)
        moments = (gap**2, gap, np.ones_like(gap))
        hessian = np.stack([sums_by(who, information * x, M) for x in moments])
        hessian[[0, 2]] += 1 / _PRIOR**2
        determinant = hessian[0] * hessian[2] - hessian[1] ** 2
        step_d = (hessian[2] * by_d - hessian[1] * by_b) / determinant
        step_b = (hessian[0] * by_b - hessian[1] * by_d) / determinant
        # Where the curve flattens a whole step may overshoot.
        short = 1 / np.maximum(1, np.maximum(np.abs(step_d), np.abs(step_b)))
        d, b = d + short * step_d, b + short * step_b
        if max(np.abs(step_d).max(), np.abs(step_b).max()) < 1e-10:
            break
    determinant = hessian[0] * hessian[2] - hessian[1] ** 2
    return _Fit(d, b, np.sqrt(hessian[2] / determinant), np.sqrt(hessian[0] / determinant))


def _verdicts(d: Floats, low: Floats, high: Floats, judged: Codes) -> list[Judged]:
    typical = typical_skill(d, low, judged)
    reasons = {
        "against the crowd": "prefers what others find worse",
        "at chance": "tells options apart no better than by guessing",
        "too few to tell": "may be guessing or as good as is typical",
        "look at": f"clearly below the typical {typical:.2f}",
        "fine": "tells options apart, as is usual",
    }

    def one(low: float, high: float, n: int) -> Judged:
        found = verdict(low, high, typical=typical, shared=n)
        few = f"{n or 'no'} judgment{'s' * (n != 1)}"
        return Judged(found, few if n < FEWEST_ITEMS else reasons[found])

    return list(map(one, low.tolist(), high.tolist(), judged.tolist()))
