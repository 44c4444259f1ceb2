"""When annotations were made, from a column of dates, times or numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted
from slencodings.files.scan import Table
from slencodings.files.write import quote
from slencodings.tables.roles import listed, nearest


def read_times(
    table: Table, item: str, annotator: str | None, time: str, annotations: Annotations
) -> NDArray[Any]:
    """The time of each annotation, (R,): numbers, or datetime64 with NaT where there is none.

    Of who answers an item several times, the first. Text may be ISO 8601 dates and times, or
    numbers such as seconds.
    """
    if annotator is None:
        raise ValueError(
            "`time` is of what somebody said, and no column says who annotated. "
            "Name it: annotator='COLUMN'."
        )
    if time not in table.names:
        near = nearest(time, table.names)
        raise ValueError(
            f"there is no column {time!r} for `time`; the columns are {listed(table.names)}."
            + (f" Did you mean time={near!r}?" if near else "")
        )
    rows = table.pick([item, annotator, time], texts=[time])
    what, text = quote(time), f"nullif(trim({quote(time)}::VARCHAR), '')"
    kinds = f"try_cast({text} AS DOUBLE)", f"epoch_us(try_cast({text} AS TIMESTAMP))"
    ((there, numbers, dates, strange),) = rows.aggregate(
        f"count({text}), count({kinds[0]}), count({kinds[1]}), "
        f"min(CASE WHEN {kinds[0]} IS NULL AND {kinds[1]} IS NULL THEN {what}::VARCHAR END)"
    ).fetchall()
    if there == 0 or there not in (numbers, dates):
        came = "none came" if there == 0 else f"{counted(there - max(numbers, dates), 'row')} of "
        came += "" if there == 0 else f"{there:,} have something else"
        raise ValueError(
            f"`time` needs a column of dates and times such as 2026-01-31 or 2026-01-31T12:00:00, "
            f"or of numbers; {came} in {time!r}{f', such as {strange!r}' if strange else ''}. "
            "Write them all alike."
        )
    kind = kinds[0] if there == numbers else kinds[1]
    who, which = quote(annotator), quote(item)
    found = rows.aggregate(f"{which}, {who}, min({kind})", f"{which}, {who}").fetchall()
    known = {(i, m): t for i, m, t in found if t is not None}
    a = annotations
    items, people = a.items.tolist(), a.annotators.tolist()
    each = [known.get((items[i], people[m])) for i, m in zip(a.item, a.annotator, strict=True)]
    if there == numbers:
        return np.asarray([np.nan if t is None else t for t in each], dtype=float)
    return np.asarray(["NaT" if t is None else t for t in each], dtype="datetime64[us]")
