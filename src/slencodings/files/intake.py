"""From files of annotations to rows that are known to be sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import duckdb

from slencodings.files import formats as readers
from slencodings.files.duckdb import Connection, Relation, Say, Step, read
from slencodings.files.formats import quote
from slencodings.files.locate import Source
from slencodings.files.store import Store, check_roles, known_labels
from slencodings.tables.fuse import MOST_MEANT, as_learned
from slencodings.tables.rows import Duplicates, Missing, Rows, survey
from slencodings.trust.obtain import learn_from
from slencodings.trust.value import Trust


class Reading(NamedTuple):
    """How files of annotations are to be read.

    Attributes
    ----------
    columns : the column (or number) for each role; those left out or None are found by name
    format : one of `readers.FORMATS`, or of `exports.FORMATS`; found if left out
    trust : "none", "learned" from the files with this seed, or the name of a stored one
    """

    columns: Mapping[str, Any]
    confidence_scale: Any = None
    labels: Sequence[str] | None = None
    missing: Missing = "error"
    duplicates: Duplicates = "all"
    format: str | None = None
    trust: str = "none"
    seed: int = 0


class Surveyed(NamedTuple):
    """What was read: the table, the column of each role, the scale of confidence, and the rows."""

    crowd: Relation
    chosen: dict[str, Any]
    scale: Any
    rows: Rows


def survey_files(
    connection: Connection,
    source: Source,
    reading: Reading,
    *,
    stored: Trust | None,
    known: Store | None = None,
    step: Step,
    say: Say,
) -> Surveyed:
    """Read files and look at their values; like what is in a store, if that is known."""
    columns, trust, missing = reading.columns, reading.trust, reading.missing
    step("reading", source.megabytes, "MB")
    crowd, chosen = read(connection, source, source.format(reading.format), columns)
    trusted = trust == "learned" or stored is not None
    unused = trusted and columns.get("reliability") is None
    unused = chosen.pop("reliability", None) if unused else None
    say("columns", ", ".join(f"{role} = {shown(c)}" for role, c in chosen.items()))
    if unused is not None:
        say("note", f"column {unused!r} is not used: trust says how reliable annotators are")
    if source.empty:
        say("note", f"{source.empty:,} empty files are left out")
    step("checking", None, "")
    ends = reading.confidence_scale
    labels = typed_labels(connection, crowd, chosen["label"], reading.labels)
    if known is not None:
        check_roles(known, chosen, source.name)
        stated = isinstance(chosen.get("confidence"), str)
        ends = known.confidence_scale if ends is None and stated else ends
        labels = labels if stored else known_labels(known, crowd, chosen["label"], labels)
    scale = _scale(crowd, chosen, ends, missing, say)
    how = {"labels": labels, "missing": missing, "duplicates": reading.duplicates}
    if trust == "learned":
        stored = _learned(crowd, chosen, how, reading.seed, step, say)
    elif stored is not None and "annotator" in chosen:
        name = trust if trust != "none" else "the trust of the store"
        _note_new(crowd, chosen["annotator"], stored, name, say)
    rows = _rows(crowd, chosen, scale, stored, how)
    return Surveyed(crowd, chosen, scale, rows)


def _learned(
    crowd: Relation,
    chosen: dict[str, Any],
    reading: dict[str, Any],
    seed: int,
    step: Step,
    say: Say,
) -> Trust:
    roles = {role: spec for role, spec in chosen.items() if role != "reliability"}
    how = {"seed": seed, "most_meant": MOST_MEANT, "say": say, "step": step}
    how["progress"] = lambda done, total: step("learning", total, "", done)
    trust = learn_from(crowd, roles, **how, **reading)
    step("checking", None, "")
    return trust


def _rows(
    crowd: Relation,
    chosen: dict[str, Any],
    scale: Any,
    trust: Trust | None,
    reading: dict[str, Any],
) -> Rows:
    said = {role: spec for role, spec in chosen.items() if role not in readers.NUMBERS}
    doubt = {role: spec for role, spec in chosen.items() if role in readers.NUMBERS}
    doubt["confidence_scale"] = scale
    doubt = doubt if trust is None else as_learned(trust, **doubt)
    return survey(crowd, **said, **doubt, **reading, trust=trust)


def _note_new(crowd: Relation, annotator: str, trust: Trust, name: str, say: Say) -> None:
    """Tell how many annotators a stored trust does not know."""
    found = crowd.project(quote(annotator)).distinct().fetchall()
    here = {name for (name,) in found if name is not None}
    if new := here - set(trust.annotators.tolist()):
        say(
            "note",
            f"{len(new):,} of {len(here):,} annotators are new to {name}, such as {min(new)!r}; "
            "they get its typical worth",
        )


def shown(column: Any) -> str:
    """The column, columns or number of a role, as people write them."""
    return ", ".join(column) if isinstance(column, list) else f"{column}"


def _scale(crowd: Relation, chosen: dict[str, Any], scale: Any, missing: Missing, say: Say) -> Any:
    """The ends of the confidence scale; or what it is worth, learned from the crowd."""
    if scale is not None and not isinstance(chosen.get("confidence"), str):
        raise ValueError(
            "a confidence scale needs a column of confidence; none was found. "
            "Name it: --confidence COLUMN."
        )
    if scale != "calibrated":
        return scale or (0, 1)
    from slencodings.confidence import calibrate
    from slencodings.tables.arrays import from_table

    said = {role: spec for role, spec in chosen.items() if role != "reliability"}
    # Only confidence that was stated can be compared, so what is missing is not trusted here.
    absent = "error" if missing == "error" else "drop"
    stated = from_table(crowd, **said, confidence_scale=lambda c: c, missing=absent)
    learned = calibrate(stated, stated.uncertainty)
    say("learned", f"what stated confidence is worth:\n{learned}")
    return learned


def described(scale: Any) -> Any:
    """The scale of confidence in plain values."""
    return list(scale) if isinstance(scale, tuple) else scale.to_rows()


def typed_labels(
    connection: Connection, crowd: Relation, label: Any, labels: Sequence[str] | None
) -> list[Any] | None:
    """Labels from the command line, which are text, in the type of their column."""
    types = dict(zip(crowd.columns, map(str, crowd.types), strict=True))
    type = types[label] if isinstance(label, str) else "DOUBLE[]"
    if labels is None or type.endswith("]"):  # Lists of probabilities have labels of any type.
        return None if labels is None else list(labels)
    try:
        cast = f"SELECT CAST(? AS {type})"
        return [connection.execute(cast, [word]).fetchall()[0][0] for word in labels]
    except duckdb.ConversionException as error:
        raise ValueError(
            f"--labels must be of the type of column {label!r}, {type}; {','.join(labels)} came."
        ) from error
