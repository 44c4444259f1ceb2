"""Pairs in the columns that preference trainers read, and scores of what was compared."""

from __future__ import annotations

from typing import NotRequired, TypedDict

import numpy as np

from slencodings.aggregate import BradleyTerry
from slencodings.kinds.pairs import Pairs
from slencodings.opinion import Z_95


class Preference(TypedDict):
    """One pair: the better option, the other, how likely that is and how far scores are apart.

    Pairs without prompts have none: a trainer takes the column for what was asked.
    """

    prompt: NotRequired[str]
    chosen: str
    rejected: str
    probability: float
    margin: float
    belief: float
    disbelief: float
    uncertainty: float
    judgments: int


class ScoredOption(TypedDict):
    """One option: its score with an interval, and how many judgments it has."""

    option: str
    score: float
    low: float
    high: float
    judgments: int


def preference_rows(pairs: Pairs, found: BradleyTerry) -> list[Preference]:
    """A row for each pair, in the columns that preference trainers such as TRL's read.

    `chosen` is likelier the better of the two, with `probability` as a soft target; `margin` is how
    far its score is ahead; `belief`, `disbelief` and `uncertainty` are the opinion on that. Both
    placings of two options are one pair. `prompt` is there if pairs have one, which is TRL's
    explicit form; else `chosen` and `rejected` hold all of it.

    Examples
    --------
    >>> from slencodings import aggregate, pairs_from_table
    >>> games = {"left": ["x", "y"], "right": ["y", "x"], "winner": ["x", "left"]}
    >>> pairs = pairs_from_table(games, left="left", right="right", winner="winner")
    >>> [(row["chosen"], row["judgments"]) for row in
    ...  preference_rows(pairs, aggregate.bradley_terry(pairs, spread=1.0, judge_spread=0.0))]
    [('x', 2)]
    """
    a = pairs.annotations
    n = np.bincount(a.item, minlength=len(a.items))
    rows: dict[tuple[str | None, frozenset[int]], Preference] = {}
    for i, (left, right) in enumerate(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)):
        prompt = None if pairs.prompts is None else str(pairs.prompts[i])
        key = prompt, frozenset((left, right))
        if key in rows:
            rows[key]["judgments"] += int(n[i])
            continue
        P, b, u = found.opinion.probability[i], found.opinion.belief[i], found.opinion.uncertainty
        first = int(P[0] < P[1])
        ends = (left, right)[first], (right, left)[first]
        row: Preference = {
            "chosen": str(pairs.options[ends[0]]),
            "rejected": str(pairs.options[ends[1]]),
            "probability": float(P[first]),
            "margin": float(found.score[ends[0]] - found.score[ends[1]]),
            "belief": float(b[first]),
            "disbelief": float(b[1 - first]),
            "uncertainty": float(u[i]),
            "judgments": int(n[i]),
        }
        rows[key] = row if prompt is None else {"prompt": prompt, **row}
    return list(rows.values())


def score_rows(pairs: Pairs, found: BradleyTerry) -> list[ScoredOption]:
    """A row for each option, the best first."""
    a, P = pairs.annotations, len(pairs.options)
    n = sum(np.bincount(side[a.item], minlength=P) for side in (pairs.left, pairs.right))
    return [
        {
            "option": str(pairs.options[p]),
            "score": float(found.score[p]),
            "low": float(found.score[p] - Z_95 * found.deviation[p]),
            "high": float(found.score[p] + Z_95 * found.deviation[p]),
            "judgments": int(np.asarray(n)[p]),
        }
        for p in np.argsort(-found.score, kind="stable").tolist()
    ]
