"""Prodigy: one line of JSON a decision."""

from __future__ import annotations

from collections.abc import Iterator

from slencodings.files.exports.answers import Answer, Reader, chosen
from slencodings.files.exports.fields import identity, list_in, moment, object_in, person
from slencodings.files.exports.record import Exported, Json, Name, shown

MARKS = {"_input_hash", "answer"}


def _answers(export: Exported) -> Iterator[Answer]:
    """Options that were chosen, or a label that was accepted or not."""
    item = export.item
    for where, _, task, _ in export.records:
        meta = object_in(task, "meta", where)
        found = [task.get("_input_hash")] if item is None else [p.get(item) for p in (task, meta)]
        hint = "Export with db-out, or name a field that tells tasks apart: item=FIELD."
        known = next((x for x in found if x is not None), None)
        name = identity(known, item or "_input_hash", where, hint)
        who = person(task.get("_annotator_id") or task.get("_session_id"), where)
        answer, time = task.get("answer"), moment(task.get("_timestamp"))
        if answer not in ("accept", "reject"):
            export.left_out[f"answers {shown(answer)}"] += 1
        elif "options" in task or "accept" in task:
            if answer == "reject":
                export.left_out["rejected tasks with options"] += 1
                continue
            options = tuple(_option(o, where) for o in list_in(task, "options", where))
            style = object_in(task, "config", where).get("choice_style")
            several = None if style is None else style != "single"
            labels = chosen(task.get("accept"), where, "accept")
            yield Answer(where, "choice", name, who, labels, options or None, several, time=time)
        elif isinstance(label := task.get("label"), str):
            labels = (label,) if answer == "accept" else ()
            yield Answer(where, "label", name, who, labels, (label,), True, time=time)
        else:
            kind = "spans" if "spans" in task else "free text"
            question = str(task.get("_view_id") or kind)
            yield Answer(where, question, name, who, (), kind=kind)


READER = Reader([MARKS], "prodigy jsonl", _answers)


def _option(option: Json, where: str) -> Name:
    """The id of an option, which is what is accepted."""
    name = option.get("id", option.get("text")) if isinstance(option, dict) else option
    if not isinstance(name, str | int | float):
        raise ValueError(f"{where}: an option must have an id; {shown(option)} came.")
    return name
