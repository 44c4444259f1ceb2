"""When annotations were made: a column of times, as it was named or found by its usual name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted
from slencodings.files.locate import Relation
from slencodings.files.write import literal, quote
from slencodings.progress import Say

# The usual names of such columns, the likeliest first; compared without case and punctuation.
USUAL_TIMES = (
    "timestamp datetime annotatedat labeledat labelledat submittedat createdat completedat time "
    "date created submitted submittime submissiontime annotationtime annotationdate creationtime "
    "createdon submittedon finishedat endtime enddate updatedat"
)
# Seconds of 1973; what is smaller is a duration rather than a time.
_FIRST_SECOND = 1e8
# Seconds since 1970 in a number of seconds, of milliseconds or of microseconds.
_UNITS = ((1e14, 1e6), (1e11, 1e3), (0.0, 1.0))
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
# Days as people write them: what comes first has no say in 2026-11-16.
_DAYS = {"month first": ("%m/%d/%Y",), "day first": ("%d/%m/%Y",), "dots": ("%d.%m.%Y",)}


class _Column(NamedTuple):
    """How many values a column has, how many of them fit each way to read it, and an example."""

    filled: int
    fits: dict[str, int]
    example: str | None
    low: float
    high: float


def find_time(names: Sequence[str]) -> str | None:
    """The column that tells by its name when annotations were made.

    >>> find_time(["item", "Created At", "label"]), find_time(["item", "label"])
    ('Created At', None)
    """
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in reversed(names)}
    return next((plain[usual] for usual in USUAL_TIMES.split() if usual in plain), None)


def read_times(
    rows: Relation,
    roles: tuple[str, str],
    time: str,
    annotations: Annotations,
    *,
    named: bool,
    say: Say,
) -> NDArray[Any] | None:
    """When each annotation was made, (R,): times, or numbers that only have an order.

    Of several rows of one annotator and item the first counts. Unknown ones are NaT or NaN. A
    column that was `named` must hold times; one that was found by its name is else left, and that
    is said.

    Parameters
    ----------
    rows : a relation with the columns of items, of annotators (`roles`) and of times
    """
    how, why_not = _reading(_look(rows, time), time, named=named)
    if how is not None and not named and _tells_of_items(rows, roles[0], time):
        how = None
        why_not = (
            f"column {time!r} has one value for all annotations of an item, so it may tell of the "
            f"item; time={time!r} takes it for when it was annotated."
        )
    if how is None:
        if named:
            raise ValueError(f"{why_not} Name another: time='COLUMN'.")
        say("note", f"{why_not} It is not used; time='COLUMN' names another")
        return None
    item, annotator = map(quote, roles)
    found = rows.aggregate(
        f"{item}, {annotator}, min({_ways(time)[how]})", f"{item}, {annotator}"
    ).fetchall()
    a = annotations
    places = [{name: n for n, name in enumerate(x.tolist())} for x in (a.items, a.annotators)]
    first: dict[tuple[int, int], float] = {
        (places[0][i], places[1][m]): t
        for i, m, t in found
        if t is not None and i in places[0] and m in places[1]
    }
    pairs = zip(a.item.tolist(), a.annotator.tolist(), strict=True)
    times = np.asarray([first.get(pair, np.nan) for pair in pairs], dtype=float)
    if how == "number" and np.nanmin(times, initial=np.inf) < _FIRST_SECOND:
        return times
    if how == "number":
        top = np.nanmax(times, initial=0)
        times = times / next(unit for least, unit in _UNITS if top >= least)
    return _as_datetimes(times)


def _tells_of_items(rows: Relation, item: str, time: str) -> bool:
    """Whether all annotations of an item have the same time, wherever there are several."""
    each = rows.aggregate(f"count(*) AS n, count(DISTINCT {quote(time)}) AS times", quote(item))
    several, apart = each.aggregate("count_if(n > 1), count_if(times > 1)").fetchall()[0]
    return several > 0 and apart == 0


def _as_datetimes(seconds: NDArray[Any]) -> NDArray[Any]:
    known = np.isfinite(seconds)
    times = np.full(len(seconds), np.datetime64("NaT", "s"))
    times[known] = np.floor(seconds[known]).astype("int64").astype("datetime64[s]")
    return times


def _ways(time: str) -> dict[str, str]:
    """The ways to read a column of times, each as seconds or as a number, NULL where it fails."""
    text = f"nullif(trim(CAST({quote(time)} AS VARCHAR)), '')"
    ways = {
        "number": f"TRY_CAST({text} AS DOUBLE)",
        "usual": f"epoch(TRY_CAST({text} AS TIMESTAMP))",
    }
    for name, days in _DAYS.items():
        forms = ", ".join(literal(day + clock) for day in days for clock in _CLOCKS)
        ways[name] = f"epoch(try_strptime({text}, [{forms}]))"
    return ways


def _look(rows: Relation, time: str) -> _Column:
    ways = _ways(time)
    text = f"nullif(trim(CAST({quote(time)} AS VARCHAR)), '')"
    counts = ", ".join(f"count({way})" for way in ways.values())
    odd = " AND ".join(f"{ways[name]} IS NULL" for name in ("number", "usual", *_DAYS))
    found = rows.aggregate(
        f"count({text}), coalesce(min({text}) FILTER ({odd}), min({text})), "
        f"min({ways['number']}), max({ways['number']}), {counts}"
    ).fetchall()[0]
    filled, example, low, high, *fits = found
    return _Column(filled, dict(zip(ways, fits, strict=True)), example, low or 0, high or 0)


def _reading(column: _Column, time: str, *, named: bool) -> tuple[str | None, str]:
    """The way to read a column of times; or None, and why not."""
    fits = [name for name, count in column.fits.items() if count == column.filled > 0]
    if not column.filled:
        return None, f"column {time!r} must hold times; it is empty."
    if "number" in fits and not named and column.low < _FIRST_SECOND:
        return None, (
            f"column {time!r} holds numbers from {column.low:g} to {column.high:g}, which may be "
            f"how long it took; time={time!r} takes them for the order."
        )
    if {"month first", "day first"} <= {*fits}:
        return None, (
            f"in column {time!r} the day or the month may come first, such as in "
            f"{column.example!r}; write times as 2026-11-16 10:30."
        )
    if not fits:
        most = max(column.fits.values())
        missed = column.filled - most
        return None, (
            f"column {time!r} must hold times, such as 2026-11-16 10:30, 11/16/2026 10:30 or "
            f"seconds since 1970; {counted(missed, 'row')} {'does' if missed == 1 else 'do'} not "
            f"fit the others, such as {column.example!r}."
        )
    return fits[0], ""
