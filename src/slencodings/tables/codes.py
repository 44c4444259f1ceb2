"""A pandas table that has nothing wrong to arrays, without a query.

An engine would join names to their places and collect them, which takes several times as long.
"""

from __future__ import annotations

import sys
from importlib import import_module
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats
from slencodings.tables import columns as col
from slencodings.tables.labels import natural
from slencodings.tables.roles import Reading, twins

# The places of values among the sorted distinct ones, -1 where there is none; and those.
_Coded: TypeAlias = tuple[Codes, NDArray[Any]]


def read_codes(table: Any, reading: Reading) -> Annotations | None:
    """The annotations of a plain and sound pandas table; None for any other.

    Left to engines are tables and types of other libraries, soft labels, labels that are given,
    mappings, duplicates to be found, and all that is wrong, which they count and show.
    """
    if not _simple(table, reading):
        return None
    said, item = _label_codes(table[reading.label]), _codes(table[reading.item])
    if said is None or item is None or np.min(item[0]) < 0:
        return None
    (y, labels), (i, items) = said, item
    answered = np.flatnonzero(y >= 0) if np.min(y) < 0 else slice(None)
    y, i = y[answered], i[answered]
    who = np.zeros(len(y), dtype=np.intp), np.asarray(["anonymous"], dtype=object)
    if reading.annotator is not None:
        who = _codes(table[reading.annotator].iloc[answered])
    value, to_uncertainty = col.stated(reading)
    stated = _numbers(table, value, answered, len(y))
    reliability = _numbers(table, col.reliability(reading.reliability), answered, len(y))
    if who is None or np.min(who[0]) < 0 or stated is None or reliability is None:
        return None
    return Annotations(
        item=i,
        annotator=who[0],
        y=y,
        uncertainty=to_uncertainty(stated),
        items=items,
        annotators=who[1],
        labels=labels,
        stated=None if reading.confidence is None else stated,
        reliability=None if reading.reliability is None else reliability,
    )


def _simple(table: Any, reading: Reading) -> bool:
    """Whether it is a pandas table, and each role is played by a column of its own or a number."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(table, pandas.DataFrame):
        return False
    names: list[Any] = list(table.columns)
    scale, doubt = reading.confidence_scale, (reading.uncertainty, reading.confidence)
    return (
        all(isinstance(name, str) for name in names)
        and all(isinstance(name, str) and name in names for _, name in reading.wanted)
        and twins(names) is None
        and len(table) > 0
        and isinstance(reading.label, str)
        and reading.labels is None
        and reading.missing in ("error", "drop", "trust")
        and reading.duplicates == "all"
        and None in doubt
        and (reading.confidence is None or (scale is not None and not callable(scale)))
    )


def _label_codes(column: Any) -> _Coded | None:
    """The same of labels, of which there must be two: numbers written as text go by value."""
    coded = _codes(column)
    if coded is None or len(coded[1]) < 2:
        return None
    y, names = coded
    found = names.tolist()
    place = {label: k for k, label in enumerate(sorted(found, key=natural(found)))}
    codes = np.asarray([*(place[label] for label in found), -1], dtype=np.intp)
    return codes[y], np.asarray(list(place), dtype=object if isinstance(found[0], str) else None)


def _codes(column: Any) -> _Coded | None:
    """Codes of text, whole numbers and truth values; None of other types."""
    pd: Any = import_module("pandas")
    kind = _kind(column)
    if kind in ("i", "u"):
        values = column.to_numpy()
        low, high = int(np.min(values)), int(np.max(values))
        if high - low < 4 * len(values):
            return _place_codes(values, low, high)
    if kind in ("i", "u", "b"):
        return pd.factorize(column.to_numpy(), sort=True)
    if isinstance(column.dtype, pd.StringDtype):
        codes, names = pd.factorize(column, sort=True)
        return codes, names.to_numpy(dtype=object)
    if kind != "O" or pd.api.types.infer_dtype(column, skipna=True) != "string":
        return None
    codes, names = pd.factorize(column)
    # Text is sorted faster than objects that are text.
    order = np.asarray(names.astype("string").argsort())
    return np.append(np.argsort(order), -1)[codes], names.to_numpy(dtype=object)[order]


def _kind(column: Any) -> str:
    """NumPy's letter for the type; nothing for types of pandas alone."""
    dtype: Any = column.dtype
    return dtype.kind if type(dtype).__module__.startswith("numpy") else ""


def _place_codes(values: NDArray[Any], low: int, high: int) -> _Coded:
    """Codes of whole numbers between two that are near: by looking up instead of hashing."""
    offset = values.astype(np.int64) - low
    there = np.zeros(high - low + 1, dtype=bool)
    there[offset] = True
    names = np.flatnonzero(there)
    place = np.empty(len(there), dtype=np.intp)
    place[names] = np.arange(len(names))
    return place[offset], (names + low).astype(values.dtype)


def _numbers(table: Any, value: col.Number, answered: Any, rows: int) -> Floats | None:
    """What a column says of the annotations, or a number of all; None if it must be checked."""
    if not isinstance(value.spec, str):
        if not isinstance(value.spec, Real):
            return None
        col.check_range(value, value.spec)
        return np.full(rows, float(value.spec))
    column = table[value.spec]
    if _kind(column) not in ("i", "u", "f"):
        return None
    x = column.to_numpy()[answered].astype(np.float64)
    # Written so that NaN fails it.
    return x if np.all((x >= value.low) & (x <= value.high)) else None
