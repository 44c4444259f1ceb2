"""Crowdsourcing platforms: Amazon Mechanical Turk and Toloka, and the tables of crowd-kit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from slencodings.files.exports.answers import Answer, chosen
from slencodings.files.exports.load import Record, identity, is_nothing, person, shown

TASK_ANSWERS = "Answer.taskAnswers"


def dialect(record: dict[str, Any]) -> str | None:
    """The platform that a record is from."""
    if {"HITId", "WorkerId"} <= record.keys() and any(n.startswith("Answer.") for n in record):
        return "mturk batch csv"
    if any(name.startswith("OUTPUT:") for name in record):
        return "toloka assignments"
    # The old name of workers, which is found nowhere else; newer tables are plain long ones.
    return "toloka crowd-kit" if {"task", "performer", "label"} <= record.keys() else None


def answers(
    records: Iterable[Record], dialect: str, left_out: Counter[str], item: str | None
) -> Iterator[Answer]:
    """The answers in a table of results, without those that the requester rejected."""
    mturk = dialect == "mturk batch csv"
    status, worker = (
        ("AssignmentStatus", "WorkerId") if mturk else ("ASSIGNMENT:status", "ASSIGNMENT:worker_id")
    )
    for where, _, row, _ in records:
        if dialect == "toloka crowd-kit":
            who = person(row.get("worker", row.get("performer")), where)
            labels = chosen(row.get("label"), where, "label")
            yield Answer(where, "label", _item(row, item or "task", where), who, labels)
            continue
        if str(row.get(status)).lower() == "rejected":
            left_out["rejected assignments"] += 1
            continue
        name = _item(row, item or ("HITId" if mturk else _toloka_item(row)), where)
        found = _mturk(row, where) if mturk else _toloka(row)
        answered = False
        for question, value, options, several in found:
            labels = chosen(value, where, question)
            if labels or options:
                answered = True
                who = person(row.get(worker), where)
                yield Answer(where, question, name, who, labels, options, several)
        left_out["assignments without answers"] += not answered


def _item(row: dict[str, Any], name: str, where: str) -> Any:
    hint = f"The columns are {', '.join(map(repr, list(row)[:20]))}: item=COLUMN."
    return identity(row.get(name), repr(name), where, hint)


def _toloka_item(row: dict[str, Any]) -> str:
    """The task's own id, or its only input."""
    inputs = [name for name in row if name.startswith("INPUT:")]
    named = not is_nothing(row.get("ASSIGNMENT:task_id"))
    return "ASSIGNMENT:task_id" if named or len(inputs) != 1 else inputs[0]


Found = Iterator[tuple[str, Any, tuple[str, ...] | None, bool | None]]


def _toloka(row: dict[str, Any]) -> Found:
    for name, value in row.items():
        if name.startswith("OUTPUT:"):
            yield name.removeprefix("OUTPUT:"), value, None, False


def _mturk(row: dict[str, Any], where: str) -> Found:
    for name, value in row.items():
        # What was left blank in a form is written as {}.
        if name.startswith("Answer.") and name != TASK_ANSWERS and value != "{}":
            yield name.removeprefix("Answer."), value, None, False
    if is_nothing(row.get(TASK_ANSWERS)):
        return
    try:
        said = json.loads(row[TASK_ANSWERS])
    except (TypeError, ValueError, RecursionError):
        raise ValueError(
            f"{where}: {TASK_ANSWERS!r} must be JSON; {shown(row[TASK_ANSWERS])} came. "
            "Download the results again, not through a spreadsheet."
        ) from None
    for form in said if isinstance(said, list) else [said]:
        if not isinstance(form, dict):
            raise ValueError(f"{where}: {TASK_ANSWERS!r} must hold objects; {shown(form)} came.")
        yield from (_widget(name, value) for name, value in form.items())


def _widget(name: str, value: Any) -> tuple[str, Any, tuple[str, ...] | None, bool | None]:
    """What a widget of a form holds: a label, labels, or which of its options are on."""
    if not isinstance(value, dict):
        return name, value, None, False
    if "label" in value:
        return name, value["label"], None, False
    if "labels" in value:
        return name, value["labels"], None, True
    if value and all(isinstance(on, bool) for on in value.values()):
        return name, [x for x, on in value.items() if on], tuple(value), None
    return name, [json.dumps(value)], None, False
