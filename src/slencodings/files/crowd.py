"""From a file of annotations to a crowd in memory, for methods that learn from all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, by_annotators, counted
from slencodings.files.crowd_columns import (
    Columns,
    choose_scored,
    fields_of_items,
    groups_of_annotators,
    lacks_some,
    read_gold,
    read_sources,
    sets_of_questions,
    times_of,
)
from slencodings.files.duckdb import plain_errors, watch
from slencodings.files.exports.judges import TOKENS
from slencodings.files.job import about_labels, note_dropped
from slencodings.files.locate import QUESTION, Connection, Relation, locate, read_tool
from slencodings.files.scan import Picked, Tell, choose, scan
from slencodings.files.times import find_time
from slencodings.files.values import read_chosen
from slencodings.files.write import disk_errors, quote, workspace
from slencodings.opinion import Codes, Floats
from slencodings.progress import Progress, Say
from slencodings.tables.arrays import read_annotations
from slencodings.tables.roles import Reading

# Usual ends of scales of confidence, the narrowest first.
USUAL_SCALES = ((1, 5), (0, 4), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))


class ReadCrowd(NamedTuple):
    """Who said what, and what is true.

    Attributes
    ----------
    annotations : Annotations; confidence taken at its word where its scale is known
    truth : (N, K), what is known to be true of each item, NaN where nothing is; None if not asked
    fields : other columns, a text or None for each item, (N,), by name
    scored : the annotators whose votes are predicted, None for everybody
    group : of each annotator, (M,), None for who has none; None if not asked
    times : when each annotation was made, (R,), as `read_times` has it; None if nothing tells
    sources : confidence of each annotation, (R,), by where it is from; None if not asked
    sets : where several labels could be chosen, which of the yes or no questions are about one
        item, (N,); None else
    questions : the label that each of those asks, (N,)
    """

    annotations: Annotations
    truth: Floats | None
    fields: dict[str, list[str | None]]
    scored: list[Any] | None
    group: list[str | None] | None = None
    times: NDArray[Any] | None = None
    sources: dict[str, Floats] | None = None
    sets: Codes | None = None
    questions: list[str] | None = None

    def confidence(self) -> dict[str, Floats] | None:
        """All confidence in [0, 1] that is known, by where it is from; None if none was asked."""
        if self.sources is None:
            return None
        stated = self.annotations.stated
        literal = stated is not None and bool(((stated >= 0) & (stated <= 1)).all())
        return ({"stated": stated} if stated is not None and literal else {}) | self.sources


def read_crowd(
    source: str | Sequence[str],
    reading: Reading | None = None,
    *,
    gold: str | None = None,
    show: Sequence[str] = (),
    scored: str | None = None,
    group: str | None = None,
    time: str | bool = False,
    sources: Sequence[str] | None = None,
    learned: bool = True,
    say: Say = lambda what, text: None,
    progress: Progress = lambda what, done, total, unit: None,
) -> ReadCrowd:
    """Read whole files of annotations.

    Without a scale of confidence, values in [0, 1] are taken at their word, and others only by
    their order. Of `missing`, "trust" makes no sense here.

    Parameters
    ----------
    gold : a column of true labels; K columns of probabilities with commas, in the order of the
        labels; or a file with a column for the item and one for the label
    show : other columns that tell of items, such as their text
    scored : whose votes are predicted, as in `choose_scored`
    group : a column that says of each annotator in which group they are
    time : a column that tells when annotations were made; True to find it by its name
    sources : columns of confidence in [0, 1], which only some need to have; then `confidence` that
        some lack is such a column too, and so is what readers of judges found of tokens
    learned : whether what annotators are worth is learned, so that reliability is read if its
        column is named, and is not looked for
    """
    asked = reading or Reading()
    with disk_errors(), workspace() as (connection, folder):
        found = locate(connection, source, folder)
        found, asked = read_tool(found, asked, folder, say)

        def work(step: Tell) -> ReadCrowd:
            with plain_errors(found, asked.format):
                table = scan(connection, found, asked.format)
                when = find_time(table.names) if time is True else time or None
                used = _used(gold, scored, [*show, group, when, *(sources or [TOKENS])])
                chosen = choose(
                    connection,
                    found,
                    asked,
                    learned=learned,
                    used=used,
                    table=table,
                    say=say,
                    step=step,
                )
                a, reading, confidences, unlabelled = _read(connection, chosen, sources, step, say)
            _tell(a, unlabelled, reading, found.name, say)
            more = Columns(table, asked.item, reading, a, say)
            # A reader of exports says which label a yes or no is about.
            asks = QUESTION in found.known
            sets, questions = sets_of_questions(more) if asks else (None, None)
            return ReadCrowd(
                a,
                truth=None if gold is None else read_gold(connection, folder, more, gold),
                scored=None if scored is None else choose_scored(more, scored),
                fields=fields_of_items(more, show),
                group=None if group is None else groups_of_annotators(more, group),
                times=None if when is None else times_of(more, when, named=time is not True),
                sources=None if sources is None else read_sources(more, confidences),
                sets=sets,
                questions=questions,
            )

        return watch(connection, work, progress)


class _Answers(NamedTuple):
    """What annotators said, how it was read, columns of confidence, and rows that say nothing."""

    annotations: Annotations
    reading: Reading
    confidences: list[str]
    unlabelled: int


def _read(
    connection: Connection,
    chosen: Picked,
    sources: Sequence[str] | None,
    step: Tell,
    say: Say,
) -> _Answers:
    """What the chosen columns hold; confidence that only some stated is a source like others."""
    rows, reading = read_chosen(connection, chosen, say)
    step("checking", None, "")
    confidences = list(sources or [])
    if sources is not None and (stated := _stated_by_some(rows, reading, say)):
        confidences.insert(0, stated)
        reading = replace(reading, confidence=None)
    note_dropped(rows, reading, say)
    unlabelled = _unlabelled(rows, reading)
    return _Answers(read_annotations(rows, reading), reading, confidences, unlabelled)


def _used(gold: str | None, scored: str | None, more: Sequence[str | None]) -> list[str]:
    """The columns that are read for something else than what annotators said."""
    names = [gold, *(gold or "").split(","), (scored or "").partition("=")[0], *more]
    return [text for name in names if name is not None for text in (name, name.strip())]


def _stated_by_some(rows: Relation, reading: Reading, say: Say) -> str | None:
    """The column of confidence if only some said how sure they were."""
    stated = reading.confidence
    if not isinstance(stated, str) or not lacks_some(rows, stated, str(reading.label)):
        return None
    say("note", f"{stated!r} is not of all annotations, so it weighs none of them")
    return stated


def _tell(a: Annotations, unlabelled: int, reading: Reading, name: str, say: Say) -> None:
    """Say what was read, and what people should know of it."""
    if reading.confidence_scale is None and a.stated is not None:
        _note_scale(a.stated, say)
    people = by_annotators(len(a.annotators) if a.named else None)
    say(
        "read",
        f"{name}: {counted(len(a.item), 'annotation')} of "
        f"{counted(len(a.items), 'item')}{people}, {counted(len(a.labels), 'label')}",
    )
    _note_repeated(a, say)
    for note in about_labels(unlabelled, a.labels.tolist()):
        say("note", note)


def _unlabelled(rows: Relation, reading: Reading) -> int:
    """How many rows say nothing of their item."""
    if not isinstance(reading.label, str):
        return 0
    (counts,) = rows.filter(f"{quote(reading.label)} IS NULL").aggregate("count(*)").fetchall()
    return int(counts[0])


def _note_repeated(a: Annotations, say: Say) -> None:
    """Tell if somebody said something about an item more than once."""
    if a.named:
        pairs = np.unique(a.item * len(a.annotators) + a.annotator)
        if repeated := len(a.item) - len(pairs):
            say(
                "note",
                f"{counted(repeated, 'annotation')} more of an (item, annotator) pair that has "
                "one; `duplicates` average|first|last|error changes that",
            )


def _note_scale(stated: Floats, say: Say) -> None:
    """Tell if confidence is on a scale whose ends nobody named."""
    low, high = stated.min(initial=np.inf), stated.max(initial=-np.inf)
    if low < 0 or high > 1:
        # The lowest answer that came is worth nothing if it is taken for the end.
        first, last = next((s for s in USUAL_SCALES if s[0] <= low and high <= s[1]), (low, high))
        say(
            "note",
            f"confidence runs from {low:g} to {high:g}; its worth is learned. The ends of its "
            f"scale as people were shown it, such as confidence_scale=({first:g}, {last:g}), also "
            "take it at its word",
        )
