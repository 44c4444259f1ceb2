"""Toloka: the assignments of a pool, and the tables of crowd-kit."""

from __future__ import annotations

from collections.abc import Iterator

from slencodings.files.exports.answers import Answer, Reader, chosen
from slencodings.files.exports.fields import is_nothing, moment, person
from slencodings.files.exports.mturk import item_in
from slencodings.files.exports.record import Exported, Object

# The old name of workers, which is found nowhere else; newer tables are plain long ones.
CROWD_KIT = {"task", "performer", "label"}


def _dialect(record: Object) -> str | None:
    assignments = any(name.startswith("OUTPUT:") for name in record)
    return "toloka assignments" if assignments else "toloka crowd-kit"


def _answers(export: Exported) -> Iterator[Answer]:
    """Those that the requester did not reject."""
    for where, _, row, _ in export.records:
        if export.dialect == "toloka crowd-kit":
            who = person(row.get("worker", row.get("performer")), where)
            labels = chosen(row.get("label"), where, "label")
            yield Answer(where, "label", item_in(row, export.item or "task", where), who, labels)
            continue
        if str(row.get("ASSIGNMENT:status")).lower() == "rejected":
            export.left_out["rejected assignments"] += 1
            continue
        name = item_in(row, export.item or _usual_item(row), where)
        who = person(row.get("ASSIGNMENT:worker_id"), where)
        time = moment(row.get("ASSIGNMENT:submitted"))
        answered = False
        for column, value in row.items():
            question = column.removeprefix("OUTPUT:")
            if question != column and (labels := chosen(value, where, question)):
                answered = True
                yield Answer(where, question, name, who, labels, time=time)
        export.left_out["assignments without answers"] += not answered


READER = Reader(
    [{"OUTPUT:*"}, CROWD_KIT], _dialect, _answers, plain=({"task", "label"}, "toloka crowd-kit")
)


def _usual_item(row: Object) -> str:
    """The task's own id, or its only input."""
    inputs = [name for name in row if name.startswith("INPUT:")]
    named = not is_nothing(row.get("ASSIGNMENT:task_id"))
    return "ASSIGNMENT:task_id" if named or len(inputs) != 1 else inputs[0]
