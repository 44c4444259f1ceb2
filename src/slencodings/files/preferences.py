"""Files of comparisons to what preference trainers read, and to scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from slencodings.aggregate import BradleyTerry, bradley_terry
from slencodings.annotations import by_annotators, counted
from slencodings.choices import CsvStyle
from slencodings.files.duckdb import plain_errors
from slencodings.files.locate import converted, locate
from slencodings.files.scan import scan
from slencodings.files.write import check_rows_target, disk_errors, workspace, write_rows
from slencodings.pairs import Pairs
from slencodings.progress import Say
from slencodings.tables.pairs import pairs_from_table
from slencodings.tables.roles import Reading, find_columns

# Of the standard normal, for intervals of 95 in 100.
_Z = 1.959963984540054
# What a prompt is called, before what any item may be called.
_PROMPTS = ("prompt", "question", "instruction", "query")


class Preference(TypedDict):
    """One pair: the better option, the other, how likely that is and how far scores are apart."""

    prompt: str | None
    chosen: str
    rejected: str
    probability: float
    margin: float
    belief: float
    disbelief: float
    uncertainty: float
    judgments: int


class Scored(TypedDict):
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
    placings of two options are one pair.

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
        rows[key] = {
            "prompt": prompt,
            "chosen": str(pairs.options[ends[0]]),
            "rejected": str(pairs.options[ends[1]]),
            "probability": float(P[first]),
            "margin": float(found.score[ends[0]] - found.score[ends[1]]),
            "belief": float(b[first]),
            "disbelief": float(b[1 - first]),
            "uncertainty": float(u[i]),
            "judgments": int(n[i]),
        }
    return list(rows.values())


def score_rows(pairs: Pairs, found: BradleyTerry) -> list[Scored]:
    """A row for each option, the best first."""
    a, P = pairs.annotations, len(pairs.options)
    n = sum(np.bincount(side[a.item], minlength=P) for side in (pairs.left, pairs.right))
    return [
        {
            "option": str(pairs.options[p]),
            "score": float(found.score[p]),
            "low": float(found.score[p] - _Z * found.deviation[p]),
            "high": float(found.score[p] + _Z * found.deviation[p]),
            "judgments": int(np.asarray(n)[p]),
        }
        for p in np.argsort(-found.score, kind="stable").tolist()
    ]


def read_pairs(
    source: str | Sequence[str], columns: Sequence[str], reading: Reading, say: Say
) -> Pairs:
    """Read files with a row for each comparison; `columns` are left, right and winner."""
    if len(columns) != 3:
        raise ValueError(
            "`pairwise` must name three columns, of what stood left, what stood right and which "
            f"won; {len(columns)} came. Such as pairwise='left,right,winner'."
        )
    left, right, winner = columns
    with disk_errors(), workspace() as (connection, folder):
        found = locate(connection, source, folder)
        found = converted(found, reading, folder, say)
        with plain_errors(found, reading.format):
            table = scan(connection, found, reading.format)
            others = [name for name in table.names if name not in columns]
            usual = find_columns(others)
            prompt = next((name for name in others if name.lower() in _PROMPTS), None)
            item = reading.item or prompt or usual.get("item")
            judge = reading.annotator or usual.get("annotator")
            roles = {
                "left": left,
                "right": right,
                "winner": winner,
                "annotator": judge,
                "item": item,
            }
            played = {role: name for role, name in roles.items() if name is not None}
            say("columns", ", ".join(f"{role} = {name}" for role, name in played.items()))
            present = [name for name in played.values() if name in table.names]
            pairs = pairs_from_table(
                table.pick(present),
                left=left,
                right=right,
                winner=winner,
                annotator=judge,
                item=item,
            )
    a = pairs.annotations
    judges = by_annotators(len(a.annotators) if a.named else None)
    judgments, options = counted(len(a.item), "judgment"), counted(len(pairs.options), "option")
    say("read", f"{found.name}: {judgments} of {options}{judges}")
    return pairs


def encode_pairs(
    source: str | Sequence[str],
    target: str,
    columns: Sequence[str],
    reading: Reading,
    *,
    scores: str | None = None,
    seed: int = 0,
    csv_style: CsvStyle = "plain",
    say: Say = lambda what, text: None,
) -> None:
    """Files of comparisons to a file of preferences, and to one of scores if asked for."""
    for name in (target, scores):
        if name is not None:
            check_rows_target(name, source, csv_style)
    pairs = read_pairs(source, columns, reading, say)
    found = bradley_terry(pairs, rng=seed)
    judges = "differ" if found.judge_spread else "are alike"
    side = float(np.mean(found.side))
    say(
        "learned",
        f"scores; judges {judges}; the {'left' if side > 0 else 'right'} wins "
        f"{100 / (1 + np.exp(-abs(side))):.0f} % of the time among equals",
    )
    about = {"pairwise": list(columns), "seed": seed}
    files = [(target, preference_rows(pairs, found)), (scores, score_rows(pairs, found))]
    for name, rows in files:
        if name is not None:
            write_rows([dict(row) for row in rows], name, about, csv_style)
            if name != "-":
                say("wrote", f"{name}: {len(rows):,} rows")
