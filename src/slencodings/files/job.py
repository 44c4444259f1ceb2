"""What is to be done with files of annotations, and what was read of them and is told of it.

Tables that stay where they are, on a cluster or in a database, are fused there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from duckdb import ColumnExpression, ConstantExpression
from numpy.typing import NDArray

from slencodings import __version__
from slencodings.annotations import Annotations, counted, names_like, plainly, some
from slencodings.files.forms import about_rows, usual_form
from slencodings.files.locate import Connection, Relation, Source
from slencodings.files.scan import Tell
from slencodings.files.write import quote
from slencodings.opinion import Opinion
from slencodings.progress import Say
from slencodings.tables.checks import Check, check_now
from slencodings.tables.columns import typed_labels
from slencodings.tables.engines import Frame, Metadata
from slencodings.tables.fuse import Fusing, fuse_rows
from slencodings.tables.roles import NUMBERS, Reading, columns_of
from slencodings.tables.rows import Rows, count_repeated, read_rows
from slencodings.trust.crowd import Crowd
from slencodings.trust.learn_from_table import learn_from_table
from slencodings.trust.stored import load_crowd


class Known(NamedTuple):
    """What is known of items in the end, which may be more than were annotated.

    Attributes
    ----------
    items : (N,), names
    opinion : Opinion (N,), of one base rate
    """

    items: NDArray[Any]
    opinion: Opinion


# What knows more of items than their annotations tell: from these and what was learned of them.
Also: TypeAlias = Callable[[Annotations, Crowd], Known]


class Output(NamedTuple):
    """Where opinions are written, how, in which parts, and whether items are in order.

    Nowhere if there is no path; `sort` is None where that is not said.
    """

    path: Path | None
    writer: str
    parts: Sequence[str]
    sort: bool | None


class Job(NamedTuple):
    """What is to be done with files of annotations, and whom to tell how far it is."""

    connection: Connection
    source: Source
    reading: Reading
    fusing: Fusing
    output: Output
    step: Tell
    say: Say
    also: Also | None


class Input(NamedTuple):
    """What was read: the table, how, and its rows, known to be sound."""

    crowd: Relation
    reading: Reading
    rows: Rows


class Weighing(NamedTuple):
    """Whether to learn a crowd, or the one that was stored; neither where it is as stated."""

    how: str
    learns: bool
    crowd: Crowd | None


def only_stated(reading: Reading, fusing: Fusing) -> list[str]:
    """What was asked for that only annotations weighed as stated have, by parameter."""
    scale, operator = reading.confidence_scale, fusing.operator
    asked = {
        "reliability": reading.reliability is not None,
        "uncertainty": _is_number(reading.uncertainty),
        "confidence_scale": scale == "calibrated" or callable(scale),
        "smoothing": fusing.smoothing is not None,
        "operator": operator != "cumulative",
        "base_rate": reading.base_rate is not None or fusing.base_rate is not None,
    }
    return [name for name, came in asked.items() if came]


def choose_weighing(reading: Reading, fusing: Fusing, say: Say) -> Weighing:
    """How to weigh: as was asked; learned if nothing was, but for what only the stated has."""
    needs_stated, weigh = only_stated(reading, fusing), fusing.weigh
    if weigh is None and needs_stated:
        weigh = "stated"
        say(
            "note",
            f"`{needs_stated[0]}` is of annotations weighed as stated, so nothing is learned",
        )
    elif weigh not in (None, "stated") and needs_stated:
        raise ValueError(
            f"what annotations are worth is learned; `{needs_stated[0]}` came with "
            f"weigh={weigh!r}. Leave one of them out, or pass weigh='stated'."
        )
    weigh = weigh or "learned"
    if weigh == "stated" and fusing.reading == "truth":
        raise ValueError(
            "what is true is a question to a learned crowd, and annotations are weighed as stated; "
            "reading='truth' came. Pass weigh='learned', or leave it out."
        )
    if weigh in ("stated", "learned"):
        return Weighing(weigh, weigh == "learned", None)
    return Weighing(weigh, learns=False, crowd=load_crowd(weigh))


def _is_number(spec: Any) -> bool:
    with suppress(TypeError, ValueError):
        return bool(float(spec) == float(spec))
    return False


def read_job(job: Job, weighing: Weighing, crowd: Relation, reading: Reading) -> Input:
    """Look at the values of files, and tell what was read and what of it may surprise."""
    source, say, stored = job.source, job.say, weighing.crowd
    job.step("checking", None, "")
    if reading.confidence_scale is not None:
        reading = replace(reading, confidence_scale=_scale(crowd, reading, say))
    if weighing.learns:
        stored = _learn(job, crowd, reading)
    elif stored is not None:
        stored = _named_as_here(stored, crowd, reading)
        if reading.annotator is not None:
            _note_new(crowd, reading.annotator, stored, weighing.how, say)
    rows = read_rows(crowd, reading, crowd=stored)
    all_kept = reading.duplicates == "all" and reading.annotator is not None
    repeated = count_repeated(rows) if all_kept else None
    note_lost(crowd, reading, stated=stored is None, say=say)
    rows = tell(rows, source.name, len(source.files), say, repeated)
    return Input(crowd, reading, rows)


def _learn(job: Job, crowd: Relation, reading: Reading) -> Crowd:
    job.step("learning", None, "")
    learned = learn_from_table(
        crowd,
        reading,
        seed=job.fusing.seed,
        say=job.say,
        progress=lambda done, total: job.step("learning", total, "", done),
    )
    job.step("checking", None, "")
    return learned


def _named_as_here(stored: Crowd, crowd: Relation, reading: Reading) -> Crowd:
    """A stored crowd with names as columns have them: numbers are text in CSV, and not in JSON."""
    columns = {"annotators": reading.annotator, "labels": reading.label}
    for part, column in columns.items():
        if isinstance(column, str):
            there = crowd.filter(ColumnExpression(column).isnotnull()).project(quote(column))
            names = names_like(getattr(stored, part), [x for (x,) in there.limit(1).fetchall()])
            stored = replace(stored, **{part: names})
    return stored


def _note_new(crowd: Relation, annotator: str, stored: Crowd, name: str, say: Say) -> None:
    """Tell how many annotators a stored crowd does not know."""
    found = crowd.project(quote(annotator)).distinct().fetchall()
    here = {name for (name,) in found if name is not None}
    if new := here - set(stored.annotators.tolist()):
        say(
            "note",
            f"{len(new):,} of {len(here):,} annotators are new to {name}, such as {min(new)!r}; "
            "they get its typical worth",
        )


def _scale(crowd: Relation, reading: Reading, say: Say) -> Any:
    """The ends of the confidence scale; or what it is worth, learned from the crowd."""
    scale, confidence = reading.confidence_scale, reading.confidence
    if confidence is None or (scale == "calibrated" and not isinstance(confidence, str)):
        raise ValueError(
            "a confidence scale needs a column of confidence; none was found. "
            "Name it: confidence='COLUMN'."
        )
    if scale != "calibrated":
        return scale
    from slencodings.confidence import calibrate
    from slencodings.tables.arrays import from_table

    columns = {role: spec for role, spec in reading.columns.items() if role != "reliability"}
    # Only confidence that was stated can be compared, so what is missing is not trusted here.
    absent = "error" if reading.missing == "error" else "drop"
    learned = calibrate(from_table(crowd, **columns, confidence_scale=None, missing=absent))
    say("learned", f"what stated confidence is worth:\n{learned}")
    return learned


def note_lost(crowd: Relation, reading: Reading, *, stated: bool, say: Say) -> None:
    """Tell how many annotations lack what they must have, and how many are at the end of a scale.

    `stated` : whether confidence is taken at its word.
    """
    labelled = _labelled(crowd, reading)
    note_dropped(crowd, reading, say)
    if reading.missing == "trust" and not stated:
        taken = "not learned from, and taken as certain and reliable (missing='trust')"
        _note_absent(labelled, reading, taken, say)
    if stated and (end := end_of_scale(reading)):
        column, value, shown = end
        at_end = labelled.filter(ColumnExpression(column) == ConstantExpression(value))
        note_end(_count(at_end), shown, say)


def note_dropped(crowd: Relation, reading: Reading, say: Say) -> None:
    """Tell how many annotations are left out for want of what they must have, if any are to be."""
    if reading.missing == "drop":
        _note_absent(_labelled(crowd, reading), reading, "left out (missing='drop')", say)


def _labelled(crowd: Relation, reading: Reading) -> Relation:
    return crowd.filter(ColumnExpression(columns_of(reading.label)[0]).isnotnull())


def _note_absent(labelled: Relation, reading: Reading, become: str, say: Say) -> None:
    """Tell how many annotations lack what they must have, and what becomes of them."""
    needed = [name for role in NUMBERS for name in columns_of(getattr(reading, role))]
    absent = [f"({quote(n)} IS NULL OR isnan({quote(n)}::DOUBLE))" for n in needed]
    if reading.annotator is not None:
        absent, needed = [*absent, f"{quote(reading.annotator)} IS NULL"], [*needed, "annotator"]
    if absent and (lost := _count(labelled.filter(" OR ".join(absent)))):
        rows = counted(lost, "row")
        say("note", f"{rows} without {' or '.join(needed)} {become}")


def note_end(n: int, shown: str, say: Say) -> None:
    """Tell how many annotations are at the end of a scale that is 0."""
    if n:
        say("note", f"{counted(n, 'annotation')} at {shown}, which counts for nothing")


def _count(rows: Relation) -> int:
    return rows.aggregate("count(*)").fetchall()[0][0]


def end_of_scale(reading: Reading) -> tuple[str, float, str] | None:
    """The column, the value and the words of what is no confidence at all."""
    if isinstance(reading.uncertainty, str):
        return reading.uncertainty, 1.0, f"{reading.uncertainty!r} 1"
    scale: Any = (0, 1) if reading.confidence_scale is None else reading.confidence_scale
    if not isinstance(reading.confidence, str) or not isinstance(scale, tuple | list):
        return None  # What was learned of a scale has no such end.
    low, high = (float(end) for end in cast("tuple[float, float]", scale))
    return (
        reading.confidence,
        low,
        f"{reading.confidence!r} {low:g}, the low end of {low:g}-{high:g}",
    )


def tell(
    rows: Rows, name: str, files: int, say: Say, repeated: tuple[int, int] | None = None
) -> Rows:
    """Tell how much was read, and what of it may surprise.

    `repeated` : how many rows repeat an earlier pair in one of how many parts, if that was counted;
    the rows come back with it among their counts.
    """
    notes = about_labels(rows.counts["unlabelled"], rows.labels)
    if repeated is not None:
        found, parts = repeated[0] * repeated[1], repeated[1]
        about, where = ("", "") if parts == 1 else ("about ", ", counted on some of the items")
        if found:
            notes.append(
                f"{about}{counted(found, 'row')} repeat{'s' * (found == 1)} an earlier (item, "
                f"annotator) pair{where}; all are kept. `duplicates` average|first|last|error "
                "changes that"
            )
        counts = rows.counts | {"repeated" if parts == 1 else "repeated_about": found}
        rows = rows._replace(counts=counts)
    several = f"{files:,} files, " if files > 1 else ""
    how_many = f"{counted(rows.counts['rows'], 'row')}, {counted(len(rows.labels), 'label')}"
    say("read", f"{name}: {several}{how_many}: {some(rows.labels, plainly)}")
    for note in notes:
        say("note", note)
    return rows


def about_labels(n: int, labels: Sequence[Any]) -> list[str]:
    """How many rows have no label, and which label looks as if it meant that, in words."""
    missing = [f"{counted(n, 'row')} without a label; their items are kept"] if n else []
    return missing + [
        f"{label!r} is taken for a label; if it means none, leave such cells empty"
        for label in labels
        if str(label).casefold() in ("nan", "null", "<na>")
    ]


def refuse_calibrated(reading: Reading, where: str) -> None:
    """Refuse to learn a scale of confidence elsewhere than `where` that is done."""
    if reading.confidence_scale == "calibrated":
        raise ValueError(
            f"confidence scales are learned {where}; `calibrated` came. Name the ends, "
            "confidence_scale=(1, 5), or leave it out: then its worth is learned with that of "
            "annotators."
        )


def fuse_in_place(
    table: Any,
    reading: Reading,
    fusing: Fusing,
    weighing: Weighing,
    *,
    name: str,
    source: Metadata,
    named: Reading | None = None,
    check: Check = check_now,
    say: Say,
) -> tuple[Rows, Frame, Callable[[], Metadata]]:
    """The rows of a table, their opinions, still lazy, and what tells how they were made.

    That is asked for once rows are checked, and tells people what was read.

    Parameters
    ----------
    name : what people call the table
    source : where it is from, to be told with opinions
    named : the reading by the names that people know its columns by, if those are others
    """
    named = named or reading
    reading, crowd = typed_labels(reading, table), weighing.crowd
    if weighing.learns:
        crowd = learn_from_table(table, reading, seed=fusing.seed, say=say)
    rows = read_rows(table, reading, crowd=crowd, check=check)._replace(item=str(named.item))
    form = usual_form(fusing.form, len(rows.labels))
    frame, about = fuse_rows(rows, replace(fusing, form=form))
    about |= {"version": __version__, **source}

    def describe() -> Metadata:
        tell(rows, name, source.get("files", 1), say)
        return about | about_rows(rows, named, weighing, fusing.seed)

    return rows, frame, describe
