"""What of a file counts for nothing, or nearly so, told to whoever encodes it."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import duckdb

from slencodings.annotations import counted
from slencodings.files.write import quote
from slencodings.progress import Say
from slencodings.tables.roles import NUMBERS, Reading, columns_of

Relation: TypeAlias = duckdb.DuckDBPyRelation

# Items with more uncertainty than this have next to no evidence; in so many rows they are counted.
OPEN, MOST_ROWS = 0.9, 1_000_000


def note_lost(crowd: Relation, reading: Reading, *, stated: bool, say: Say) -> None:
    """Tell how many annotations are dropped, and how many are at the end of a scale that is 0.

    `stated` : whether confidence is taken at its word.
    """
    labelled = f"{quote(columns_of(reading.label)[0])} IS NOT NULL"
    numbers = [name for role in NUMBERS for name in columns_of(getattr(reading, role))]
    absent = [f"({quote(n)} IS NULL OR isnan({quote(n)}::DOUBLE))" for n in numbers]
    needed = numbers
    if reading.annotator is not None:
        absent, needed = [*absent, f"{quote(reading.annotator)} IS NULL"], [*numbers, "annotator"]
    if reading.missing == "drop" and absent:
        lost = _count(crowd, f"{labelled} AND ({' OR '.join(absent)})")
        if lost:
            rows = counted(lost, "row")
            say("note", f"{rows} without {' or '.join(needed)} left out (--missing drop)")
    if stated and (end := _end(reading)):
        column, value, shown = end
        if none := _count(crowd, f"{labelled} AND {quote(column)} = {value!r}"):
            say("note", f"{counted(none, 'annotation')} at {shown}, which counts for nothing")


def _count(crowd: Relation, condition: str) -> int:
    return crowd.aggregate(f"count_if({condition})").fetchall()[0][0]


def _end(reading: Reading) -> tuple[str, float, str] | None:
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


def note_open(opinions: Relation, rows: int, say: Say) -> None:
    """Tell how many items have next to no evidence."""
    if "uncertainty" not in opinions.columns or rows > MOST_ROWS:
        return
    item = quote(opinions.columns[0])
    found = opinions.aggregate(f"count(DISTINCT {item}) FILTER (uncertainty > {OPEN})")
    if n := found.fetchall()[0][0]:
        items = counted(n, "item")
        say("note", f"{items} with next to no evidence: uncertainty above {OPEN:g}")
