"""Tables that have nothing wrong to arrays, without a query.

An engine would join names to their places and collect them, which takes several times as long, and
of a few rows a hundred times.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from numbers import Real
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, as_names
from slencodings.opinion import Codes, Floats
from slencodings.tables import columns as col
from slencodings.tables.engines import as_column, unmasked
from slencodings.tables.roles import Reading, twins

# The places of values among the sorted distinct ones, -1 where there is none; and those.
_Coded: TypeAlias = tuple[Codes, NDArray[Any]]
# More rows than these DuckDB codes as fast.
_FEW = 50_000
# What DuckDB hands out as NumPy has it.
_SIMPLE_TYPES = {"VARCHAR", "BOOLEAN", "DOUBLE", "FLOAT", "BIGINT", "INTEGER", "SMALLINT"}


def read_codes(table: Any, reading: Reading) -> Annotations | None:
    """The annotations of a plain and sound table of pandas, of arrays or of few rows in DuckDB.

    None for any other. Left to engines are tables and types of other libraries, soft labels,
    mappings, duplicates to be found, and all that is wrong, which they count and show.
    """
    columns = _columns(table, reading) if _simple(reading) else None
    if columns is None:
        return None
    answers = _label_codes(columns[str(reading.label)], reading.labels)
    item = _codes(columns[str(reading.item)])
    if answers is None or item is None or np.min(item[0]) < 0:
        return None
    scale = reading.confidence_scale
    as_stated = replace(reading, confidence_scale=col.unchanged) if scale is None else reading
    (doubt, to_uncertainty), trust = col.stated(as_stated), col.reliability(reading.reliability)
    (y, labels), (i, items) = answers, item
    answered = np.flatnonzero(y >= 0) if np.min(y) < 0 else slice(None)
    y, i = y[answered], i[answered]
    who = np.zeros(len(y), dtype=np.intp), np.asarray(["anonymous"], dtype=object)
    if reading.annotator is not None:
        who = _codes(_at(columns[reading.annotator], answered))
    stated, reliability = (_numbers(columns, x, answered, len(y)) for x in (doubt, trust))
    if who is None or np.min(who[0]) < 0 or stated is None or reliability is None:
        return None
    if reading.confidence is not None and scale is None:
        to_uncertainty = at_its_word
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
        ordered=reading.ordered,
    )


def at_its_word(stated: Floats) -> Floats:
    """The uncertainty of confidence whose scale nobody named: none, unless all is in [0, 1]."""
    literal = np.all((stated >= 0) & (stated <= 1))
    return 1 - stated if literal else np.zeros(len(stated))


def _simple(reading: Reading) -> bool:
    """Whether each role is played by a column of its own or a number."""
    scale, doubt = reading.confidence_scale, (reading.uncertainty, reading.confidence)
    return (
        isinstance(reading.label, str)
        and not reading.base_rate
        and reading.missing in ("error", "drop", "trust")
        and reading.duplicates == "all"
        and None in doubt
        and (reading.confidence is None or not callable(scale))
    )


def _columns(table: Any, reading: Reading) -> Mapping[str, Any] | None:
    """The columns that play a role, of pandas or as arrays; None if others must open the table."""
    pandas, duckdb = (sys.modules.get(name) for name in ("pandas", "duckdb"))
    relation = duckdb is not None and isinstance(table, duckdb.DuckDBPyRelation)
    frame = pandas is not None and isinstance(table, pandas.DataFrame)
    if not (relation or frame or isinstance(cast("object", table), Mapping)):
        return None
    names: list[Any] = list(table.columns if relation or frame else table)
    wanted = list(dict.fromkeys(name for _, name in reading.wanted))
    if (
        not all(isinstance(name, str) for name in [*names, *wanted])
        or not set(wanted) <= set(names)
        or twins(names) is not None
    ):
        return None
    if frame:
        return table if len(table) else None
    columns = _fetched(table, wanted) if relation else {n: as_column(n, table[n]) for n in wanted}
    sizes = {len(values) for values in columns.values()}
    return columns if len(sizes) == 1 and 0 < max(sizes) <= _FEW else None


def _fetched(relation: Any, names: list[str]) -> dict[str, Any]:
    """The columns of a relation, or the first of too many rows; none if types are its own."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    if not {types[name] for name in names} <= _SIMPLE_TYPES:
        return {}
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    found = relation.project(quoted).limit(_FEW + 1).fetchnumpy()
    return {name: unmasked(found[name]) for name in names}


def _at(column: Any, rows: Any) -> Any:
    array = isinstance(cast("object", column), np.ndarray)
    return column[rows] if array else column.iloc[rows]


def _label_codes(column: Any, given: Sequence[Any] | None) -> _Coded | None:
    """The same of labels, of which there must be two: numbers written as text go by value.

    Those that are given must be text or whole numbers, as in the column, and all that it has.
    """
    coded = _codes(column)
    if coded is None:
        return None
    y, names = coded
    found = names.tolist()
    labels = sorted(found, key=col.natural(found)) if given is None else list(given)
    if len(labels) < 2 or (given is not None and not _are_all(labels, found)):
        return None
    if labels == found:
        return y, as_names(found)
    place = {label: k for k, label in enumerate(labels)}
    codes = np.asarray([*(place[label] for label in found), -1], dtype=np.intp)
    return codes[y], as_names(labels)


def _are_all(labels: list[Any], found: list[Any]) -> bool:
    """Whether the labels differ, are of one plain type with those found, and have them all."""
    kinds = set(map(type, [*labels, *found]))
    plain = kinds == {int} or (kinds == {str} and _is_plain_text(labels))
    return plain and len(set(labels)) == len(labels) and {*found} <= {*labels}


def _codes(column: Any) -> _Coded | None:
    """Codes of text, whole numbers and truth values; None of other types."""
    if isinstance(column, np.ndarray):
        return _array_codes(cast("NDArray[Any]", column))
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
    if kind != "O":
        return None
    try:
        codes, names = pd.factorize(column)
    except TypeError:  # Lists have no hash.
        return None
    # Each name is looked at once, and not each row.
    if pd.api.types.infer_dtype(names, skipna=False) != "string":
        return None
    # Text is sorted faster than objects that are text.
    order = np.asarray(names.astype("string").argsort())
    place = np.full(len(order) + 1, -1)
    place[order] = np.arange(len(order))
    return place[codes], names.to_numpy(dtype=object)[order]


def _array_codes(values: NDArray[Any]) -> _Coded | None:
    """Codes of an array of these; text may be missing, where it is None."""
    if values.dtype.kind != "O":
        if np.ma.is_masked(values) or values.dtype.kind not in "iub":
            return None
        names, codes = np.unique(np.asarray(values), return_inverse=True)
        return codes, names
    given: list[Any] = values.tolist()
    kinds = set(map(type, given))
    if kinds == {bool}:
        return _array_codes(values.astype(bool))
    known: list[Any] = sorted({*given} - {None}) if kinds in ({str}, {str, type(None)}) else []
    if not known or not _is_plain_text(known):
        return None
    place: dict[Any, int] = {name: k for k, name in enumerate(known)} | {None: -1}
    codes = np.asarray([place[name] for name in given], dtype=np.intp)
    return codes, np.asarray(known, dtype=object)


def _is_plain_text(words: list[Any]) -> bool:
    """Whether engines read it all: what cannot be encoded is for them to refuse."""
    text = "".join(words)
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in set(text))


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


def _numbers(
    columns: Mapping[str, Any], value: col.Number, answered: Any, rows: int
) -> Floats | None:
    """What a column says of the annotations, or a number of all; None if it must be checked."""
    if not isinstance(value.spec, str):
        sound = isinstance(value.spec, Real) and value.low <= float(value.spec) <= value.high
        return np.full(rows, float(value.spec)) if sound else None
    column = columns[value.spec]
    if _kind(column) not in ("i", "u", "f"):
        return None
    if isinstance(column, np.ndarray):
        x: Floats = np.ma.filled(cast("Floats", column.astype(np.float64)), np.nan)[answered]
    else:
        x = column.to_numpy()[answered].astype(np.float64)
    # Written so that NaN fails it.
    return x if np.all((x >= value.low) & (x <= value.high) & np.isfinite(x)) else None
