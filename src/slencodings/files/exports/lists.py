"""Rows with lists of annotators and of what they said, as many data sets have them."""

from __future__ import annotations

from collections.abc import Iterator

from slencodings.files.exports.answers import Answer, Reader, chosen
from slencodings.files.exports.fields import identity, person
from slencodings.files.exports.record import Exported, Object, shown
from slencodings.files.exports.tables import item_column
from slencodings.tables.roles import listed

ANNOTATORS = ("annotators", "annotator_ids", "workers", "worker_ids")
LABELS = ("annotations", "labels", "answers", "label")


def _columns_of_lists(record: Object) -> tuple[str, str]:
    """The columns of annotators and of labels: the first that are there, or the usual."""
    people = (name for name in ANNOTATORS if name in record)
    labels = (name for name in LABELS if name in record)
    return next(people, ANNOTATORS[0]), next(labels, LABELS[0])


def _dialect(record: Object) -> str | None:
    both = all(isinstance(record.get(name), list) for name in _columns_of_lists(record))
    return "rows with lists" if both else None


def _answers(export: Exported) -> Iterator[Answer]:
    """One element for each annotator."""
    for where, _, row, _ in export.records:
        people, question = _columns_of_lists(row)
        who, labels = row.get(people), row.get(question)
        if not isinstance(who, list) or not isinstance(labels, list) or len(who) != len(labels):
            raise ValueError(
                f"{where}: {people!r} and {question!r} must be equally long lists; {shown(who)} "
                f"and {shown(labels)} came."
            )
        column = export.item or item_column(list(row))
        hint = f"The columns are {listed(list(row))}: item='COLUMN'."
        name = identity(row.get(column or ""), repr(column or "an id"), where, hint)
        for n, (annotator, label) in enumerate(zip(who, labels, strict=True)):
            found = chosen(label, where, question)
            several = isinstance(label, list)
            if found or several:
                by = person(annotator, where)
                yield Answer((where, n), question, name, by, found, None, several)
            else:
                export.left_out["annotations without a label"] += 1


READER = Reader([{who, label} for who in ANNOTATORS for label in LABELS], _dialect, _answers)
