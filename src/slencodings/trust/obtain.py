"""Trust for a table of annotations: learned from it, or learned before and stored."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slencodings.tables.arrays import from_table
from slencodings.trust.learn import learn_trust
from slencodings.trust.value import Trust

Say = Callable[[str, str], None]
Step = Callable[[str, float | None, str], None]

_HOW = "Make one: sle encode IN -o OUT --trust learned --save-trust trust.json"


def learn_from(
    table: Any,
    columns: Mapping[str, Any],
    *,
    say: Say,
    step: Step,
    seed: int = 0,
    most_meant: int,
    missing: Any = "error",
    progress: Callable[[int, int], None] | None = None,
    **how: Any,
) -> Trust:
    """Learn trust from a table, and tell what was learned.

    Confidence is taken as stated, on whatever scale that is. Beyond `most_meant` labels, what a
    vote says about others is not learned. `progress` is as in `learn_trust`. `how` goes to
    `from_table`: labels, duplicates.
    """
    # Only confidence that was stated can be compared, so what is missing is not trusted here.
    absent = "error" if missing == "error" else "drop"
    said = from_table(table, **columns, confidence_scale=None, missing=absent, **how)
    step("learning", None, "")
    few = len(said.labels) <= most_meant
    try:
        trust = learn_trust(said, meaning=few, rng=seed, progress=progress)
    except ValueError as error:
        raise ValueError(f"{error} Pass trust='none' to fuse without learning.") from error
    _tell(trust, say)
    if not few:
        say("note", f"of more than {most_meant} labels, what votes say about others is not learned")
    if "annotator" not in columns:
        say("note", "no annotator column was found, so one worth is learned for all")
    return trust


def _tell(trust: Trust, say: Say) -> None:
    votes, held_out = trust.losses["votes"], trust.losses.get("held_out")
    gain = (
        f"too few to hold some out; vote log-loss {votes:.3f} (votes) -> "
        f"{trust.losses['learned']:.3f} on these themselves"
        if held_out is None
        else f"held-out vote log-loss {votes:.3f} (votes) -> {held_out:.3f}"
    )
    say("learned", f"trust from {trust.count.sum():,} annotations: {gain}")
    say("detail", f"trust:\n{trust}")
    if held_out is not None and held_out >= votes:
        say("note", "it predicts votes no better than counting them does; --trust none is simpler")
    if not trust.converged:
        say("note", "learning did not come to an end; what it had found by then is used")


def load(name: str) -> Trust:
    """Read a trust that was stored as JSON."""
    path = Path(name)
    if not path.is_file():
        words = ["none", "learned", *(p.name for p in Path(path.parent).glob("*.json"))]
        near = difflib.get_close_matches(path.name, words, 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise FileNotFoundError(
            f"trust must be 'none', 'learned' or a file with a stored one; there is no file "
            f"{name!r}.{meant}"
        )
    try:
        return Trust.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        why = "it is no text"
    except ValueError as error:
        why = str(error).removesuffix(" Make it with trust.to_json().").removesuffix(".")
    raise ValueError(f"{path.name} is not a stored trust: {why}. {_HOW}")
