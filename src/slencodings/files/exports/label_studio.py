"""Label Studio: tasks (JSON), one record an annotation (JSON-MIN, CSV), and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from slencodings.files.exports.answers import Answer, Reader, chosen
from slencodings.files.exports.fields import (
    as_object,
    identity,
    is_number,
    list_in,
    moment,
    object_in,
    person,
)
from slencodings.files.exports.memory import as_python
from slencodings.files.exports.record import Exported, Json, Name, Object
from slencodings.opinion import Opinion

# Where each kind of control keeps its answer; all others mark regions.
CHOICES = {"choices": "choices", "taxonomy": "taxonomy", "pairwise": "selected"}
NUMBERS = {"rating": "rating", "number": "number"}
TEXTS = {"textarea": "free text", "ranker": "a ranking", "datetime": "free text"}
# What JSON-MIN and CSV say of each annotation beside the data and the answers.
FLAT = {"annotator", "annotation_id", "lead_time"}
ABOUT = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")


def _dialect(record: Object) -> str | None:
    many = record.get("annotations", record.get("completions"))
    if isinstance(record.get("data"), dict) and isinstance(many, list):
        return "label-studio json"
    if record.keys() >= FLAT:
        # Only text has no null.
        texts = all(isinstance(value, str) for value in record.values())
        return "label-studio csv" if texts else "label-studio json-min"
    return None


def _answers(export: Exported) -> Iterator[Answer]:
    return _tasks(export) if export.dialect == "label-studio json" else _flat(export)


READER = Reader([{"data", "annotations"}, {"data", "completions"}, FLAT], _dialect, _answers)


def _tasks(export: Exported) -> Iterator[Answer]:
    records, _, item, left_out = export
    projects: dict[str | int, str] = {}
    seen: dict[object, str] = {}
    for where, _, task, _ in records:
        if "data" not in task:
            raise ValueError(
                f"{where} is no task of Label Studio: it has no data, but {list(task)}."
            )
        _check_project(task.get("project"), where, projects)
        data = object_in(task, "data", where)
        if item is not None and item not in data:
            raise ValueError(
                f"{where}: the data must have {item!r} for `item`; it has {sorted(data)}."
            )
        name = task.get("id") if item is None else data[item]
        hint = "Export it again as JSON, or name a field of the data: item=FIELD."
        name = identity(name, "a task's id", where, hint)
        many = list_in(task, "annotations" if "annotations" in task else "completions", where)
        left_out["predictions"] += len(list_in(task, "predictions", where))
        left_out["drafts"] += len(list_in(task, "drafts", where))
        left_out["tasks without annotations"] += not many
        for each in many:
            hint = " Export the annotations in full, not their ids."
            annotation = as_object(each, "an annotation", where, hint)
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                left_out["skipped annotations"] += 1
                continue
            number = annotation.get("id")
            number = number if isinstance(number, str | int) else object()
            if number in seen:
                raise ValueError(
                    f"{where}: annotation {number!r} came before, in {seen[number]}. Are two "
                    "exports in one file? Export once more, and use that alone."
                )
            seen[number] = where
            yield from _results(annotation, (where, len(seen)), name, where)


def _check_project(project: object, where: str, projects: dict[str | int, str]) -> None:
    """Refuse a second project; `projects` are those so far, each with where it was first."""
    if isinstance(project, str | int):
        projects.setdefault(project, where)
    if len(projects) > 1:
        both = " and ".join(f"{p!r} ({at})" for p, at in projects.items())
        raise ValueError(
            f"an export must hold one project; {both} came. Export each to its own file."
        )


def _results(annotation: Object, key: tuple[str, int], item: Name, where: str) -> Iterator[Answer]:
    """The answers of one annotation; those to one question come in one or more results."""
    by = annotation.get("completed_by")
    who = person(by.get("email") or by.get("id") if isinstance(by, dict) else by, where)
    found: dict[str, list[Name]] = {}
    kinds: dict[str, str] = {}
    for each in list_in(annotation, "result", where):
        result = as_object(each, "a result", where)
        kind, name = str(result.get("type")).lower(), result.get("from_name")
        name = name if isinstance(name, str) else kind
        value = object_in(result, "value", where)
        inside = CHOICES.get(kind) or NUMBERS.get(kind)
        # A choice about a region has the place of the region beside it.
        if inside is None or value.keys() - {inside}:
            kinds[name] = TEXTS.get(kind, "spans")
            continue
        given = value.get(inside)
        if kind == "taxonomy" and isinstance(given, list):
            given = [_path(each) for each in given]
        if kind in NUMBERS:
            kinds.setdefault(name, "number")
        found.setdefault(name, []).extend(chosen(given, where, name))
    time = moment(annotation.get("created_at"))
    for name in dict.fromkeys([*found, *kinds]):
        labels = tuple(dict.fromkeys(found.get(name, ())))
        kind = kinds.get(name, "choice")
        several = False if kind == "number" else None
        kind = "choice" if kind == "number" else kind
        yield Answer(key, name, item, who, labels, None, several, kind, time=time)


def _path(steps: Json) -> Json:
    """A place in a taxonomy as one label."""
    return " / ".join(map(str, steps)) if isinstance(steps, list) else steps


def _flat(export: Exported) -> Iterator[Answer]:
    """One record an annotation: the data and the answers side by side."""
    records, _, item, left_out = export
    seen: dict[str, str] = {}
    for where, _, row, _ in records:
        number = str(row.get("annotation_id"))
        if number in seen:
            raise ValueError(
                f"{where}: annotation {number} came before, in {seen[number]}. Are two exports "
                "in one file? Export once more, and use that alone."
            )
        seen[number] = where
        hint = f"The columns are {sorted(row)}: item='COLUMN'."
        name = identity(row.get(item or "id"), item or "id", where, hint)
        who = person(row.get("annotator"), where)
        # The answers stand between the task's id and the annotator, unless columns were sorted.
        names = list(row)
        start, end = (names.index(n) if n in row else -1 for n in ("id", "annotator"))
        known = names[: start + 1] if 0 <= start < end else []
        answered, time = 0, moment(row.get("created_at"))
        for question in (n for n in names if n not in (*known, *ABOUT, item)):
            labels, several, kind = _cell(row[question], where, question)
            if labels or kind != "choice":
                answered += 1
                yield Answer(where, question, name, who, labels, None, several, kind, time=time)
        left_out["records without answers"] += not answered


def _cell(value: Json, where: str, name: str) -> tuple[tuple[Name, ...], bool | None, str]:
    """The labels in a cell: a word, or JSON such as {"choices": [...]} and [{"rating": 4}]."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    each = value if isinstance(value, list) else [value]
    objects = [v for v in each if isinstance(v, dict)]
    if len(objects) < len(each) or not each:
        return chosen(value, where, name), None, "choice"
    found: list[Name] = []
    for v in objects:
        inside = next((k for k in ("choices", "rating", "number", "selected") if k in v), None)
        if inside is None or v.keys() - {inside}:
            return (), None, "free text" if "text" in v and "start" not in v else "spans"
        found.extend(chosen(v[inside], where, name))
    return tuple(dict.fromkeys(found)), None, "choice"


def to_label_studio(
    opinion: Opinion,
    items: Sequence[Any],
    labels: Sequence[Any],
    *,
    from_name: str,
    to_name: str,
    model_version: str = "slencodings",
) -> list[Object]:
    """Fused opinions as predictions that Label Studio takes: the likeliest label and its chance.

    Each is for POST /api/predictions, `task` being the id of the task. Among equally likely labels
    the first in `labels` is taken; an item of which nothing is believed gets no prediction.

    Parameters
    ----------
    opinion : Opinion (N,) over K labels
    items : N ids of tasks, as they were exported
    labels : K labels; numbers are predicted as a rating, text as a choice
    from_name, to_name : the names of the control and of what it is about, in the labelling setup

    Examples
    --------
    >>> opinion = Opinion(np.asarray([[0.1, 0.7]]), np.asarray([0.2]), np.asarray([[0.5, 0.5]]))
    >>> found = to_label_studio(opinion, [7], ["no", "yes"], from_name="spam", to_name="text")
    >>> found[0]["task"], found[0]["score"], found[0]["result"][0]["value"]
    (7, 0.8, {'choices': ['yes']})
    """
    P = np.asarray(opinion.probability, dtype=float)
    if P.shape != (len(items), len(labels)):
        raise ValueError(
            "`opinion` must be one per item over the labels, "
            f"({len(items)}, {len(labels)}); {P.shape} came."
        )
    names = [as_python(label) for label in labels]
    rated = all(map(is_number, names))
    kind = "rating" if rated else "choices"
    believed = np.flatnonzero(np.sum(np.asarray(opinion.belief), axis=-1) > 0).tolist()
    predictions: list[Object] = []
    for i in believed:
        best = int(np.argmax(P[i]))
        value: Object = {kind: names[best] if rated else [str(names[best])]}
        predictions.append(
            {
                "task": as_python(items[i]),
                "model_version": model_version,
                "score": round(float(P[i, best]), 6),
                "result": [
                    {"from_name": from_name, "to_name": to_name, "type": kind, "value": value}
                ],
            }
        )
    return predictions
