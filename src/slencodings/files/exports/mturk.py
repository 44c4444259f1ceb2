"""Amazon Mechanical Turk: the results of a batch, with answers by field or by form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from slencodings.files.exports.answers import Answer, Reader, chosen
from slencodings.files.exports.fields import identity, is_nothing, person
from slencodings.files.exports.record import Exported, Json, Name, Object, shown
from slencodings.tables.roles import listed

MARKS = {"HITId", "WorkerId", "Answer.*"}
TASK_ANSWERS = "Answer.taskAnswers"


class _Given(NamedTuple):
    """A question, what was given, and what else could be."""

    question: str
    value: Json
    options: tuple[str, ...] | None = None
    several: bool | None = False


def _answers(export: Exported) -> Iterator[Answer]:
    """Those that the requester did not reject."""
    for where, _, row, _ in export.records:
        if str(row.get("AssignmentStatus")).lower() == "rejected":
            export.left_out["rejected assignments"] += 1
            continue
        name, who = item_in(row, export.item or "HITId", where), person(row.get("WorkerId"), where)
        answered = False
        for question, value, options, several in _given(row, where):
            labels = chosen(value, where, question)
            if labels or options:
                answered = True
                yield Answer(where, question, name, who, labels, options, several)
        export.left_out["assignments without answers"] += not answered


READER = Reader([MARKS], "mturk batch csv", _answers)


def item_in(row: Object, name: str, where: str) -> Name:
    """The item of a row, in the column of this name."""
    hint = f"The columns are {listed(list(row))}: item='COLUMN'."
    return identity(row.get(name), repr(name), where, hint)


def _given(row: Object, where: str) -> Iterator[_Given]:
    for name, value in row.items():
        # What was left blank in a form is written as {}.
        if name.startswith("Answer.") and name != TASK_ANSWERS and value != "{}":
            yield _Given(name.removeprefix("Answer."), value)
    written = row.get(TASK_ANSWERS)
    if is_nothing(written):
        return
    try:
        forms: Json = json.loads(str(written))
    except (ValueError, RecursionError):
        raise ValueError(
            f"{where}: {TASK_ANSWERS!r} must be JSON; {shown(written)} came. "
            "Download the results again, not through a spreadsheet."
        ) from None
    for form in forms if isinstance(forms, list) else [forms]:
        if not isinstance(form, dict):
            raise ValueError(f"{where}: {TASK_ANSWERS!r} must hold objects; {shown(form)} came.")
        yield from (_widget(name, value) for name, value in form.items())


def _widget(name: str, value: Json) -> _Given:
    """What a widget of a form holds: a label, labels, or which of its options are on."""
    if not isinstance(value, dict):
        return _Given(name, value)
    if "label" in value:
        return _Given(name, value["label"])
    if "labels" in value:
        return _Given(name, value["labels"], None, True)
    if value and all(isinstance(on, bool) for on in value.values()):
        return _Given(name, [x for x, on in value.items() if on], tuple(value), None)
    return _Given(name, [json.dumps(value)])
