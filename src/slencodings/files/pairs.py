"""Files of comparisons to files of preferences and of scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slencodings.aggregate import bradley_terry
from slencodings.annotations import by_annotators, counted
from slencodings.choices import CsvStyle
from slencodings.files.duckdb import opened
from slencodings.files.preferences import preference_rows, score_rows
from slencodings.files.rows import check_rows_target, write_rows
from slencodings.kinds.pairs import Pairs
from slencodings.progress import Say
from slencodings.tables.pairs import pairs_from_table
from slencodings.tables.roles import Reading, find_columns

# What a prompt is called, before what any item may be called.
_PROMPTS = ("prompt", "question", "instruction", "query")


def read_pairs(
    source: str | Sequence[str], columns: Sequence[str], reading: Reading, say: Say
) -> Pairs:
    """Read files with a row for each comparison; `columns` are left, right and winner."""
    if len(columns) != 3:
        raise ValueError(
            "`pairwise` must name three columns, of what stood left, what stood right and which "
            f"won; {len(columns)} came. Such as pairwise='left,right,winner'."
        )
    _refuse_others(reading)
    with opened(source, reading, say) as (called, table):
        free = [name for name in table.names if name not in columns]
        usual = find_columns(free)
        prompt = next((name for name in free if name.lower() in _PROMPTS), None)
        item = reading.item or prompt or usual.get("item")
        judge = reading.annotator or usual.get("annotator")
        ends = dict(zip(("left", "right", "winner"), columns, strict=True))
        roles = {**ends, "annotator": judge, "item": item}
        played = {role: name for role, name in roles.items() if name is not None}
        say("columns", ", ".join(f"{role} = {name}" for role, name in played.items()))
        present = [name for name in played.values() if name in table.names]
        pairs = pairs_from_table(table.pick(present), **ends, annotator=judge, item=item)
    a = pairs.annotations
    judges = by_annotators(len(a.annotators) if a.named else None)
    judgments, options = counted(len(a.item), "judgment"), counted(len(pairs.options), "option")
    say("read", f"{called}: {judgments} of {options}{judges}")
    return pairs


def _refuse_others(reading: Reading) -> None:
    """Refuse what is said of labels and of single answers, which pairs do not have."""
    labels = (
        "label",
        "confidence",
        "uncertainty",
        "reliability",
        "question",
        "multi",
        "merge_case",
    )
    given = [name for name in labels if getattr(reading, name)]
    given += ["ordered" if reading.ordered else "labels"] * (reading.labels is not None)
    if given:
        raise ValueError(
            f"`{given[0]}` is of answers that are labels, and rows of `pairwise` say which of two "
            "is better. Leave one of them out."
        )


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
                say("wrote", f"{name}: {counted(len(rows), 'row')}")
