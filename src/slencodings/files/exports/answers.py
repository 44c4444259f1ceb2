"""What annotators answered, whatever the tool, and the long table that it makes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from slencodings.annotations import counted
from slencodings.files.exports.fields import is_nothing, is_number
from slencodings.files.exports.record import Exported, Json, Name, Object, shown
from slencodings.tables.roles import find_columns, listed

T = TypeVar("T")

# What the tokens of an answer tell of confidence stands beside what was stated of it.
BY_TOKENS = "confidence by tokens"
# The most rows that are made of fewer: beyond, memory is not enough on most machines.
MOST_ROWS = 10_000_000
# Text is free if it is longer than any label, or if it hardly ever comes twice.
LONGEST_LABEL, MANY_LABELS = 200, 100


class Export(NamedTuple):
    """What an annotation tool knew, as a long table.

    Attributes
    ----------
    tool : the tool and dialect, such as "label-studio json"
    columns : equally long lists by name: item, label, and where the tool tells them annotator,
        confidence, question (the label that a yes or no is about) and time; of tables with several
        labels in a cell also what else they have
    notes : what was left out or taken for something, in words
    """

    tool: str
    columns: dict[str, list[Any]]
    notes: tuple[str, ...]

    def rows(self) -> Iterator[dict[str, Name | None]]:
        """The rows of the table, for a file of JSONL."""
        for row in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, row, strict=True))


class Answer(NamedTuple):
    """What one annotator said to one question about one item.

    Attributes
    ----------
    annotation : the same for all answers that were given together
    labels : what was chosen
    options : what could be chosen; None where the tool does not tell
    several : whether more than one could be chosen; None where the tool does not tell
    kind : "choice", or what was given instead of one: "spans", "free text", "a ranking",
        "confidence" in another answer
    failed : whether it was asked for in vain: it is no vote, and its item stays
    time : when it was given, as the tool writes it
    beside : what else stands in its row, by the names of columns
    """

    annotation: Hashable
    question: str
    item: Name
    annotator: Name | None
    labels: tuple[Name, ...]
    options: tuple[Name, ...] | None = None
    several: bool | None = False
    kind: str = "choice"
    failed: bool = False
    time: str | None = None
    beside: Mapping[str, Name | None] | None = None


class Reader(NamedTuple):
    """How the exports of one tool are read; each is in a module that is called like the tool.

    Attributes
    ----------
    marks : names that records of the tool have, all of one set; * is any text, and [].name a name
        in a list of objects. Only who bears them is asked for its dialect
    dialect : the tool and dialect, such as "argilla v2"; where marks do not tell, from a record to
        that or None
    answers : from its records to answers
    plain : columns of a dialect without marks, and its name: it is read if it is asked for
    """

    marks: Sequence[set[str]]
    dialect: str | Callable[[Object], str | None]
    answers: Callable[[Exported], Iterator[Answer]]
    plain: tuple[set[str], str] | None = None


def chosen(value: Json | list[str], where: str, name: str) -> tuple[Name, ...]:
    """The labels in a value: one, those in a list, or none if there is no value."""
    found: dict[Name, None] = {}
    for v in value if isinstance(value, list) else [value]:
        if is_nothing(v):
            continue
        if not isinstance(v, str | int | float):
            raise ValueError(
                f"{where}: a label of {name!r} must be text or a number; {shown(v)} came. "
                "Ask for another question, or export the choices alone."
            )
        found[v] = None
    return tuple(found)


def as_integer(value: T) -> T | int:
    """A whole number that was written as text, as a number; all else as it is."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value):
        return int(value)
    return value


class _Row(NamedTuple):
    """A row of the table, and the answer that it comes from."""

    answer: Answer
    item: Name
    label: Name | None
    question: Name | None = None


def tabulate(
    answers: Iterable[Answer],
    *,
    who: str,
    tool: str,
    question: str | None,
    confidence: str | None,
    left_out: Counter[str],
) -> Export:
    """The answers to one question as a long table."""
    asked: dict[str, list[Answer]] = {}
    for answer in answers:
        asked.setdefault(answer.question, []).append(answer)
    notes = [_left_out(n, what) for what, n in left_out.items() if n]
    if not asked:
        return export(tool, {"item": []}, notes, who)
    kinds = {name: _kind_of_question(given) for name, given in asked.items()}
    sure = _confidence(asked, kinds, confidence, who, question)
    if sure is not None:
        kinds[sure] = "confidence"
    open = [
        name
        for name, kind in kinds.items()
        if kind == "choice" and not all(a.failed for a in asked[name])
    ]
    name, label = _chosen_question(asked, kinds, open, question, who)
    given = asked[name]
    used = ("choice", BY_TOKENS)
    unused = [f"{n!r} ({kinds[n]})" for n in asked if kinds[n] not in used and n != sure]
    notes += [f"questions without labels not used: {', '.join(unused)}"] if unused else []
    rows, row_notes = _rows_of(given, name, label, who)
    notes += row_notes
    columns: dict[str, list[Any]] = {
        "item": [row.item for row in rows],
        "annotator": [row.answer.annotator for row in rows],
        "label": [row.label for row in rows],
    }
    if sure is not None:
        columns["confidence"] = _stated(asked[sure], rows)
        notes.append(f"confidence is the answer to {sure!r}")
    for other in (n for n, kind in kinds.items() if kind == BY_TOKENS and n != sure):
        columns[other] = _stated(asked[other], rows)
    if any(row.answer.time is not None for row in rows):
        columns["time"] = [row.answer.time for row in rows]
    if any(row.question is not None for row in rows):
        columns["question"] = [row.question for row in rows]
    beside = [row.answer.beside or {} for row in rows]
    for other in dict.fromkeys(name for found in beside for name in found if name not in columns):
        columns[other] = [found.get(other) for found in beside]
    return export(tool, columns, notes, who)


def _rows_of(
    given: list[Answer], name: str, label: Name | None, who: str
) -> tuple[list[_Row], list[str]]:
    """The answers to a question as rows, and what to tell of them.

    They are a yes or no to one label, or to each where several may be chosen; else the label.
    """
    several = any(a.several or (a.several is None and len(a.labels) > 1) for a in given)
    every = {x for a in given for x in (*a.labels, *(a.options or ()))}
    if several and len(every) == 1:
        (label,) = every
    if label is not None:
        return _about(given, label), [f"yes or no to {label!r}"]
    if several:
        rows = _yes_or_no(given, name, who)
        count = len({row.question for row in rows})
        return rows, [f"{name!r} has several labels at once: a yes or no for each of {count}"]
    rows = [_Row(a, a.item, a.labels[0]) for a in given if a.labels]
    blank = sum(not a.labels and not a.failed for a in given)
    notes = [f"{counted(blank, 'answer')} without a label left out"] if blank else []
    if vain := _in_vain(given) if rows else []:
        rows += vain
        items = counted(len({row.item for row in vain}), "item")
        notes.append(f"{items} without any other answer kept: nothing is known of them")
    return rows, notes


def _left_out(n: int, what: str) -> str:
    """What is left out and how often; of one thing, the first plural loses its s."""
    named = re.sub(r"s\b", "", what, count=1) if n == 1 else what
    return f"{n:,} {named} left out"


def _stated(answers: list[Answer], rows: list[_Row]) -> list[float | None]:
    """What else was answered with each row, as numbers."""
    found = {a.annotation: _number(a.labels[0]) for a in answers if a.labels}
    return [found.get(row.answer.annotation) for row in rows]


def export(tool: str, columns: dict[str, list[Any]], notes: Sequence[str], who: str) -> Export:
    """An Export with columns of one type each, without those that hold nothing."""
    if not columns["item"]:
        why = "; ".join(notes)
        raise ValueError(f"{who} has no annotations ({why}). Annotate first, or export them too.")
    if all(name is None for name in columns.get("annotator", ())):
        columns.pop("annotator", None)
    for name in ("item", "annotator", "label", "question"):
        if name in columns:
            columns[name] = _alike(columns[name], name, who)
    first = ("item", "annotator", "label", "confidence", "question")
    order = [*(name for name in first if name in columns), *columns]
    return Export(tool, {name: columns[name] for name in order}, tuple(notes))


def _kind_of_question(given: list[Answer]) -> str:
    """What the answers to a question are: labels, or else something that is not fused."""
    other = next((a.kind for a in given if a.kind != "choice"), None)
    texts = [label for a in given for label in a.labels if isinstance(label, str)]
    different = len(set(texts))
    long = any(len(text) > LONGEST_LABEL or "\n" in text for text in texts)
    free = long or (different > MANY_LABELS and different > len(texts) / 2)
    return other or ("free text" if free else "choice")


def _confidence(
    asked: dict[str, list[Answer]],
    kinds: dict[str, str],
    wanted: str | None,
    who: str,
    question: str | None,
) -> str | None:
    """The question that asks how sure the annotator is: the one named, or one of a usual name."""
    if wanted is not None and wanted not in asked:
        raise ValueError(
            f"{who} has no question {wanted!r} for `confidence`; there are {listed(list(asked))}."
        )
    numbers = [n for n in asked if kinds[n] in ("choice", "confidence")]
    name = wanted or find_columns(numbers).get("confidence")
    if name is None:
        return None
    words = [x for a in asked[name] for x in a.labels if _number(x) is None]
    if wanted is None:
        return None if words or len(asked) == 1 or name == question else name
    if not words:
        return name
    raise ValueError(
        f"{who}: confidence must be answered with numbers; {shown(words[0])} came for {name!r}. "
        "Leave `confidence` out, or map its words to numbers in the export."
    )


def _chosen_question(
    asked: dict[str, list[Answer]],
    kinds: dict[str, str],
    open: list[str],
    question: str | None,
    who: str,
) -> tuple[str, Name | None]:
    """The question to read, and the one label of it if that is all that is asked for."""
    if question is None:
        if len(open) == 1:
            return open[0], None
        if not open:
            found = ", ".join(f"{n!r} is {kind}" for n, kind in list(kinds.items())[:10])
            raise ValueError(
                f"{who} must have a question with labels to choose from, or a rating; {found}. "
                "Spans, masks, free text and rankings cannot be fused: make each part, such as a "
                "token or a region, an item with a label of its own, or export a classification."
            )
        # Data of items may stand beside what was asked, and nobody differs about those.
        first = next((name for name in open if _people_differ(asked[name])), open[0])
        raise ValueError(
            f"{who} has {len(open)} questions: {listed(open)}. Say which one: question={first!r}."
        )
    if question in asked:
        if kinds[question] == "choice":
            return question, None
        raise ValueError(
            f"{who}: {question!r} is {kinds[question]}, which cannot be fused. "
            f"Questions with labels: {listed(open) or 'none'}."
        )
    for name in open:
        for label in {label for a in asked[name] for label in (*a.labels, *(a.options or ()))}:
            if question == f"{name}={label}":
                return name, label
    raise ValueError(
        f"{who} has no question {question!r}; there are {listed(list(asked))}. For one label of a "
        "question with several labels at once: question='QUESTION=LABEL'."
    )


def _people_differ(given: list[Answer]) -> bool:
    """Whether two answers about one item differ."""
    labels: dict[Name, tuple[Name, ...]] = {}
    return any(labels.setdefault(a.item, a.labels) != a.labels for a in given)


def _in_vain(given: list[Answer]) -> list[_Row]:
    """Rows without a label for items of which all answers failed: no vote, and no lost item."""
    known = {a.item for a in given if a.labels}
    return [_Row(a, a.item, None) for a in given if a.failed and a.item not in known]


def _about(given: list[Answer], label: Name) -> list[_Row]:
    """Yes or no to one label, by those who could choose it; the items stay what they are."""
    able = [a for a in given if a.options is None or label in a.options]
    return [_Row(a, a.item, "yes" if label in a.labels else "no") for a in able]


def _yes_or_no(given: list[Answer], name: str, who: str) -> list[_Row]:
    """Yes or no to every label: an item for each item and label, such as "7 / sports"."""
    labels = tuple(dict.fromkeys(x for a in given for x in (*(a.options or ()), *a.labels)))
    size = sum(len(labels if a.options is None else a.options) for a in given)
    one = f"Ask for one label at a time: question={f'{name}={labels[0]}'!r}." if labels else ""
    if size > MOST_ROWS:
        raise ValueError(
            f"{who}: {len(given):,} answers to {name!r} about {len(labels):,} labels make {size:,} "
            f"rows, more than {MOST_ROWS:,}. {one}"
        )
    rows = [
        _Row(a, f"{a.item} / {x}", "yes" if x in a.labels else "no", x)
        for a in given
        for x in (labels if a.options is None else a.options)
    ]
    if len({row.item for row in rows}) < len({(row.answer.item, row.question) for row in rows}):
        raise ValueError(
            f"{who}: items and labels of {name!r} cannot be told apart when they are joined with "
            f"' / '. {one}"
        )
    return rows


def _alike(values: list[Any], name: str, who: str) -> list[Any]:
    """Values of one type: as they are if they have one, else all as text."""
    known = [v for v in values if v is not None]
    if all(type(v) is str for v in known) or all(type(v) is bool for v in known):
        return values
    if all(is_number(v) and math.isfinite(v) for v in known):
        if not all(v == int(v) for v in known):
            return [None if v is None else float(v) for v in values]
        if all(-(2**63) <= v < 2**63 for v in known):
            return [None if v is None else int(v) for v in values]
    texts: dict[str, Any] = {}
    for v in known:
        if type(texts.setdefault(_text(v), v)) is not type(v):
            raise ValueError(
                f"{who}: {name} must be named in one way; both {texts[_text(v)]!r} and {v!r} came. "
                "Name them all as text, or all as numbers, in the export."
            )
    return [None if v is None else _text(v) for v in values]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any) -> int | float | None:
    """A number, also where a table has made text of it; None if it is none."""
    text = isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?", value)
    value = float(value) if text else value
    return value if is_number(value) and math.isfinite(value) else None
