"""Tables in whatever engine they live: how each is opened, looked at, joined and given back.

Written once in narwhals. Tables that are not lazy run in DuckDB (pandas, PyArrow, a dict of
arrays) or lazy Polars, and the result comes back as what they were.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from numbers import Integral, Real
from typing import Any, TypeAlias, cast

import narwhals as nw
import numpy as np

from slencodings.tables import databases
from slencodings.tables.roles import check_names

Frame: TypeAlias = nw.LazyFrame[Any]
Metadata: TypeAlias = dict[str, Any]
GiveBack: TypeAlias = Callable[[Frame, Metadata], Any]

# Our names inside the engines. They differ by more than case, which DuckDB and Spark ignore.
ITEM, ANNOTATOR, LABEL, ROW = "sle_item", "sle_annotator", "sle_label", "sle_row"
STATED, UNCERTAINTY, RELIABILITY = "sle_stated", "sle_uncertainty", "sle_reliability"
# The part of one annotation that a row is, where somebody said several things of one item.
SHARE = "sle_share"


def probability(k: int) -> str:
    """Our column for the probability of label k, where labels are soft."""
    return f"sle_p{k}"


def prior(k: int) -> str:
    """Our column for the base rate of label k, where base rates are given by row."""
    return f"sle_a{k}"


def fold(operation: Callable[[nw.Expr, nw.Expr], nw.Expr], values: Iterable[nw.Expr]) -> nw.Expr:
    """Like `reduce`, in a balanced tree: expressions may be nested only so deep."""
    values = list(values)
    while len(values) > 1:
        pairs = zip_longest(values[::2], values[1::2])
        values = [x if y is None else operation(x, y) for x, y in pairs]
    return values[0]


def open_table(
    table: Any, wanted: Sequence[tuple[str, Any]] | None = None
) -> tuple[Frame, GiveBack]:
    """A lazy frame over the table, and the way back to the caller's own kind of table.

    `wanted` are roles and the columns that play them; only those are taken, unless it is None.
    """
    if isinstance(table, Mapping):
        return _open_mapping(cast("Mapping[str, Any]", table), wanted)
    try:
        frame: nw.DataFrame[Any] | Frame = nw.from_native(table)
    except TypeError:
        raise TypeError(
            "a table must be a pandas, Polars, PyArrow, Dask, Spark or Ibis table, a DuckDB "
            f"relation or a dict of columns; {type(table).__name__} came. For a file use the "
            "command line, `sle encode FILE -o OUT`, or read it first: "
            "duckdb.sql(\"FROM 'crowd.csv'\")."
        ) from None
    if wanted is not None:
        # A relation may have two columns of one name, and a schema may not.
        names = table.columns if frame.implementation.is_duckdb() else frame.collect_schema()
        names = _chosen(list(names), wanted)
        if is_spark(frame):
            _check_dots(names)
        frame = frame.select(*names)
    if is_database(frame):
        if wanted is not None:
            databases.check_types(frame.to_native())
        return frame.lazy(), lambda result, about: databases.portable(result.to_native())
    if isinstance(frame, nw.LazyFrame):
        return frame, lambda result, about: result.to_native()
    if frame.implementation.is_polars():
        return frame.lazy(), lambda result, _: _sorted(result).collect().to_native()
    import duckdb

    if frame.implementation.is_pyarrow():
        return _relation(duckdb.from_arrow, frame.to_native()), _as_pyarrow
    pandas = frame.to_native()
    if _is_plain(frame) and find_spec("polars") and find_spec("pyarrow"):
        # Both give the same; over rows in memory Polars is about twice as fast.
        return frame.lazy("polars"), _as_pandas
    for name in (name for name, dtype in frame.schema.items() if dtype == nw.Object):
        typed = pandas[name].convert_dtypes()
        typed = as_column(name, typed.tolist()) if typed.dtype == object else typed
        pandas = pandas.assign(**{name: typed})
    return _relation(duckdb.from_df, pandas), _as_pandas


def _relation(read: Callable[[Any], Any], table: Any) -> Frame:
    import duckdb

    try:
        return nw.from_native(read(table))
    except duckdb.NotImplementedException as error:
        raise ValueError(
            f"columns must hold text, numbers, dates or lists of numbers; one does not: {error}. "
            "Convert it first."
        ) from None


def _is_plain(frame: nw.DataFrame[Any]) -> bool:
    """Whether pandas itself knows the columns as numbers, text or truth values."""
    known = all(t.is_numeric() or t == nw.String or t == nw.Boolean for t in frame.schema.values())
    return known and not any(str(dtype) == "object" for dtype in frame.to_native().dtypes)


def _as_pandas(result: Frame, about: Metadata) -> Any:
    native = _sorted(result).collect("pandas").to_native()
    native.attrs["slencodings"] = about
    return native


def _as_pyarrow(result: Frame, about: Metadata) -> Any:
    native = _sorted(result).collect("pyarrow").to_native()
    metadata = {b"slencodings": json.dumps(about, default=str).encode()}
    return native.replace_schema_metadata((native.schema.metadata or {}) | metadata)


def _open_mapping(table: Mapping[str, Any], wanted: Any) -> tuple[Frame, GiveBack]:
    names = list(table) if wanted is None else _chosen(list(table), wanted)
    columns = {name: as_column(name, table[name]) for name in names}
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(
            f"columns must be equally long; {sizes} came. Write None where a value is missing."
        )
    return _relation(_from_dict, columns), lambda result, _: to_arrays(_sorted(result))


def _from_dict(sle_columns: Mapping[str, object]) -> Any:
    import duckdb

    # The query finds the variable by its name, which no table of the user's should have.
    return duckdb.sql("FROM sle_columns")


def as_column(name: str, given: Any) -> Any:
    """An array that DuckDB reads as it is meant: it guesses the type of objects by a sample."""
    if not isinstance(given, list | tuple):
        given = np.asarray(given)
        if given.ndim == 0:
            raise ValueError(f"column {name!r} must hold one value per row; {given!r} came.")
        if given.ndim == 1 and given.dtype.kind not in "OSTU":
            dtype = "M8[us]" if given.dtype.kind == "M" else given.dtype.newbyteorder("=")
            return np.ascontiguousarray(given, dtype=dtype)
        given = given.tolist()
    values = cast("Sequence[Any]", given)
    # One look at the types of values is faster than one at each value.
    types: set[Any] = set(map(type, values))
    if any(issubclass(kind, float) or _stands_for_none(kind) for kind in types):
        missing = [is_missing(v) for v in values]
        known = [v for v, gone in zip(values, missing, strict=True) if not gone]
    else:
        missing, known = [False] * len(values), values
    kinds = {kind_of(v): v for v in dict(zip(map(type, known), known, strict=True)).values()}
    if len(kinds) > 1:
        # Engines would make 1 and "1" the same item.
        raise ValueError(
            f"column {name!r} must hold values of one type; {', '.join(sorted(kinds))} came, "
            f"such as {' and '.join(repr(kinds[k]) for k in sorted(kinds))}. "
            "Make them all text first: str(value)."
        )
    if "number" in kinds:
        integers = all(isinstance(v, Integral) for v in known)
        filled = [0 if gone else v for v, gone in zip(values, missing, strict=True)]
        array = np.asarray(filled, dtype=None if integers else float)
        return np.ma.masked_array(array, missing) if any(missing) else array
    array = np.empty(len(values), dtype=object)
    if "list" in kinds:
        values = [None if gone else _floats(v) for v, gone in zip(values, missing, strict=True)]
    elif any(missing):
        values = [None if gone else v for v, gone in zip(values, missing, strict=True)]
    for i, value in enumerate(values):  # Not at once: lists would be taken for rows of a matrix.
        array[i] = value
    return array


def is_missing(value: Any) -> bool:
    """Whether a value of Python stands for none."""
    nothing = _stands_for_none(cast("Any", type(value)))
    return nothing or (isinstance(value, float) and value != value)


def _stands_for_none(kind: Any) -> bool:
    return kind.__name__ in ("NoneType", "NAType", "NaTType")


def kind_of(value: Any) -> str:
    """What kind of value it is, whichever library's."""
    kinds: dict[str, Any] = {"bool": bool | np.bool_, "number": Real | Decimal, "str": str}
    kinds["list"] = (list, tuple, np.ndarray)
    return next((k for k, types in kinds.items() if isinstance(value, types)), type(value).__name__)


def _floats(values: Any) -> list[Any]:
    return [float(v) if kind_of(v) == "number" else v for v in values]


def _sorted(frame: Frame) -> Frame:
    """In the order of its leading identifiers: engines group in any order."""
    names = frame.collect_schema().names()
    return frame.sort(*[n for n in names[:2] if n in ("label", names[0])])


def to_arrays(frame: Frame) -> dict[str, Any]:
    """All of a lazy frame as NumPy arrays."""
    if frame.implementation.is_duckdb():
        arrays = frame.to_native().fetchnumpy()
        return {name: unmasked(values) for name, values in arrays.items()}
    frame = nw.from_native(databases.portable(frame.to_native())) if is_database(frame) else frame
    eager = frame.collect()
    arrays = {name: eager[name].to_numpy() for name in eager.columns}
    return {k: v.astype(object) if v.dtype.kind in "TU" else v for k, v in arrays.items()}


def unmasked(array: Any) -> Any:
    """What is missing is NaN among floats, NaT among times, None among all else."""
    if not np.ma.is_masked(array):
        return np.asarray(array)
    if array.dtype.kind in "fM":
        return array.filled(np.nan if array.dtype.kind == "f" else np.datetime64("NaT"))
    return np.where(np.ma.getmaskarray(array), None, array.data.astype(object))


def _chosen(names: Sequence[str], wanted: Sequence[tuple[str, Any]]) -> list[str]:
    check_names(names, wanted)
    return list(dict.fromkeys(name for _, name in wanted))


def _check_dots(names: Sequence[str]) -> None:
    if name := next((name for name in names if "." in name), None):
        raise ValueError(
            f"Spark takes a dot in a column's name for a field of a column; {name!r} came. "
            f"Rename it first: table.withColumnRenamed({name!r}, {name.replace('.', '_')!r})."
        )


def look_up(frame: Frame, column: str, mapping: Mapping[Any, float], name: str) -> Frame:
    """Add a column of the mapping's numbers for the values of another, null where unknown."""
    keys, values = list(mapping), np.asarray(list(mapping.values()), dtype=float)
    if not frame.implementation.is_dask():
        return join_known(frame, [column], {column: keys, name: values})
    # Dask can hold no null among floats, so unknown is NaN first.
    found = nw.col(column).replace_strict(
        keys, values.tolist(), default=float("nan"), return_dtype=nw.Float64
    )
    return frame.with_columns(found.fill_nan(None).alias(name))


def renamed(frame: Frame, column: str, old: Sequence[str], new: Sequence[Any]) -> Frame:
    """The frame with other values in a column of names."""
    if is_spark(frame) or is_database(frame) or frame.implementation.is_polars():
        known = {column: old, "sle_new": new}
        return join_known(frame, [column], known).drop(column).rename({"sle_new": column})
    return frame.with_columns(nw.col(column).replace_strict(old, new, default=None))


def is_spark(frame: Frame | nw.DataFrame[Any]) -> bool:
    """Whether the table lives in Spark, be it here or behind Spark Connect."""
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def is_database(frame: Frame | nw.DataFrame[Any]) -> bool:
    """Whether the table lives in a database that Ibis knows."""
    return frame.implementation.is_ibis()


def distinct(frame: Frame) -> Frame:
    """Each row once."""
    if is_database(frame) or frame.implementation.is_duckdb():
        # narwhals would number all rows to find the first of each.
        return nw.from_native(frame.to_native().distinct())
    return frame.unique()


def computed(frame: Frame) -> Frame:
    """The frame, whose columns are used more than once."""
    return nw.from_native(databases.computed(frame.to_native())) if is_database(frame) else frame


def join_known(frame: Frame, on: Sequence[str], known: Mapping[str, Any]) -> Frame:
    """A left join with the few rows that are known: adds their columns, null where none fits.

    DuckDB and Spark would search a literal map from its start for every row, and Connect has none;
    Polars would collect the whole column in memory.
    """
    if frame.implementation.is_duckdb():
        _sle_known = {
            f"{name}_known" if name in on else name: as_column(name, values)
            for name, values in known.items()
        }
        added = ", ".join(name for name in known if name not in on)
        same = " AND ".join(f"{name} = {name}_known" for name in on)
        query = f"SELECT sle_rows.*, {added} FROM sle_rows LEFT JOIN _sle_known ON {same}"
        return nw.from_native(frame.to_native().query("sle_rows", query))
    if frame.implementation.is_polars():
        import polars as pl

        schema = frame.to_native().collect_schema()
        few = pl.LazyFrame({name: pl.Series(values) for name, values in known.items()})
        few = few.with_columns(pl.col(name).cast(schema[name]) for name in on)
        rows = frame.to_native().join(few, on=list(on), how="left", maintain_order="left")
        return nw.from_native(rows)
    if frame.implementation.is_dask():
        pandas: Any = import_module("pandas")
        few = pandas.DataFrame(dict(known))
        return nw.from_native(frame.to_native().merge(few, on=list(on), how="left"))
    if is_database(frame):
        return frame.join(nw.from_native(databases.few(known)), on=list(on), how="left")
    pa: Any = import_module("pyarrow")
    table = pa.table({name: pa.array(values) for name, values in known.items()})
    # The hint keeps the rows where they are: this table goes to them.
    few = frame.to_native().sparkSession.createDataFrame(table).hint("broadcast")
    return frame.join(nw.from_native(few), on=list(on), how="left")


def stacked(frame: Frame, columns: Sequence[str], variable: str, value: str) -> Frame:
    """A row per row and column, with the column's name in `variable` and what it held in `value`.

    The columns must hold no nulls, which DuckDB would leave out.
    """
    if frame.implementation.is_duckdb():
        # narwhals would do this in DuckDB's default connection, whichever the table is in.
        query = f"UNPIVOT sle_rows ON {', '.join(columns)} INTO NAME {variable} VALUE {value}"
        return nw.from_native(frame.to_native().query("sle_rows", query))
    if is_database(frame):
        return nw.from_native(databases.stacked(frame.to_native(), columns, variable, value))
    index = [name for name in frame.collect_schema().names() if name not in columns]
    return frame.unpivot(list(columns), index=index, variable_name=variable, value_name=value)


def with_totals(frame: Frame, key: str, totals: Mapping[str, str]) -> Frame:
    """Add what columns sum up to over all rows that have the same key: {name: column}."""
    if frame.implementation.is_duckdb():
        # A window would sort all rows by their key, which takes several times as long.
        names = [n for n in frame.collect_schema().names() if n not in totals]
        sums = ", ".join(f"sum({column}) AS {name}" for name, column in totals.items())
        query = (
            f"WITH sle_all AS MATERIALIZED (FROM sle_rows), sle_totals AS (SELECT {key}, {sums} "
        )
        query += f"FROM sle_all GROUP BY {key}) SELECT {', '.join([*names, *totals])} FROM "
        query += f"(SELECT {', '.join(names)} FROM sle_all) JOIN sle_totals USING ({key})"
        return nw.from_native(frame.to_native().query("sle_rows", query))
    sums = (nw.col(column).sum().over(key).alias(name) for name, column in totals.items())
    return frame.with_columns(*sums)


def small(frame: Frame) -> dict[str, list[Any]]:
    """A few rows as Python values."""
    if frame.implementation.is_duckdb():
        # DuckDB hands out times with a zone only where pytz is installed.
        zoned = [n for n, t in frame.collect_schema().items() if getattr(t, "time_zone", None)]
        relation = frame.with_columns(nw.col(*zoned).cast(nw.String)).to_native()
        columns = list(zip(*relation.fetchall(), strict=True)) or [[] for _ in relation.columns]
        return dict(zip(relation.columns, map(list, columns), strict=True))
    if frame.implementation.is_polars():
        return frame.collect(engine="streaming").to_dict(as_series=False)
    if is_spark(frame):
        rows = frame.to_native().collect()
        return {n: [row[i] for row in rows] for i, n in enumerate(frame.collect_schema())}
    if is_database(frame):
        return databases.rows_of(frame.to_native())
    return frame.collect().to_dict(as_series=False)


def numbered(frame: Frame) -> Frame | None:
    """The frame with its row numbers in ROW, or None where the engine keeps no order."""
    if frame.implementation.is_polars():
        return nw.from_native(frame.to_native().with_row_index(ROW))
    if frame.implementation.is_duckdb():
        return nw.from_native(frame.to_native().project(f"*, row_number() OVER () - 1 AS {ROW}"))
    return None
