"""Prodigy: one line of JSON a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from slencodings.files.exports.answers import Answer, chosen
from slencodings.files.exports.load import Record, identity, member, person, shown


def dialect(record: dict[str, Any]) -> str | None:
    """The dialect of Prodigy that a record is in."""
    return "prodigy jsonl" if {"_input_hash", "answer"} <= record.keys() else None


def answers(
    records: Iterable[Record], dialect: str, left_out: Counter[str], item: str | None
) -> Iterator[Answer]:
    """The answers in an export: options that were chosen, or a label that was accepted or not."""
    for where, _, task, _ in records:
        meta = member(task, "meta", dict, where)
        found = [task.get("_input_hash")] if item is None else [p.get(item) for p in (task, meta)]
        name = next((x for x in found if x is not None), None)
        hint = "Export with db-out, or name a field that tells tasks apart: item=FIELD."
        name = identity(name, item or "_input_hash", where, hint)
        who = person(task.get("_annotator_id") or task.get("_session_id"), where)
        answer = task.get("answer")
        if answer not in ("accept", "reject"):
            left_out[f"answers {shown(answer)}"] += 1
        elif "options" in task or "accept" in task:
            if answer == "reject":
                left_out["tasks with options that were rejected"] += 1
                continue
            options = tuple(_option(o, where) for o in member(task, "options", list, where))
            style = member(task, "config", dict, where).get("choice_style")
            several = None if style is None else style != "single"
            labels = chosen(task.get("accept"), where, "accept")
            yield Answer(where, "choice", name, who, labels, options or None, several)
        elif isinstance(task.get("label"), str):
            label = task["label"]
            labels = (label,) if answer == "accept" else ()
            yield Answer(where, "label", name, who, labels, (label,), True)
        else:
            kind = "spans" if "spans" in task else "free text"
            question = str(task.get("_view_id") or kind)
            yield Answer(where, question, name, who, (), kind=kind)


def _option(option: Any, where: str) -> Any:
    """The id of an option, which is what is accepted."""
    name = option.get("id", option.get("text")) if isinstance(option, dict) else option
    if not isinstance(name, str | int | float):
        raise ValueError(f"{where}: an option must have an id; {shown(option)} came.")
    return name
