"""From the columns of anyone's table to ours, still lazy in the table's own engine.

Written once in narwhals. Tables that are not lazy run in DuckDB (pandas, PyArrow, a dict of
arrays) or lazy Polars, and the result comes back as what they were. Nothing here looks at a
value; `survey` does.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np

Frame: TypeAlias = nw.LazyFrame[Any]

# Our names inside the engines. They differ by more than case, which DuckDB and Spark ignore.
ITEM, ANNOTATOR, LABEL, ROW = "sle_item", "sle_annotator", "sle_label", "sle_row"
STATED, UNCERTAINTY, RELIABILITY = "sle_stated", "sle_uncertainty", "sle_reliability"


def probability(k: int) -> str:
    """Our column for the probability of label k, where labels are soft."""
    return f"sle_p{k}"


def prior(k: int) -> str:
    """Our column for the base rate of label k, where base rates are given by row."""
    return f"sle_a{k}"


class Number(NamedTuple):
    """Something in [low, high] that a column, a number or a mapping from annotator says."""

    name: str
    column: str
    spec: Any
    low: float
    high: float
    hint: str


def open_table(table: Any) -> tuple[Frame, Callable[[Frame, dict[str, Any]], Any]]:
    """A lazy frame over the table, and the way back to the caller's own kind of table."""
    if isinstance(table, Mapping):
        return _open_mapping(table)
    try:
        frame = nw.from_native(table)
    except TypeError:
        raise TypeError(
            "a table must be a pandas, Polars, PyArrow or Dask table, a DuckDB relation or a dict "
            f"of columns; {type(table).__name__} came. For a file use the command line, "
            "`sle encode FILE -o OUT`, or read it first: duckdb.sql(\"FROM 'crowd.csv'\")."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        return frame, lambda result, _: result.to_native()
    _refuse_mixed_ids(frame)
    if frame.implementation.is_polars():
        return frame.lazy(), lambda result, _: _sorted(result).collect().to_native()
    kind = "pyarrow" if frame.implementation.is_pyarrow() else "pandas"

    def give_back(result: Frame, about: dict[str, Any]) -> Any:
        native = _sorted(result).collect(kind).to_native()
        if kind == "pandas":
            native.attrs["slencodings"] = about
            return native
        import json

        metadata = (native.schema.metadata or {}) | {b"slencodings": json.dumps(about).encode()}
        return native.replace_schema_metadata(metadata)

    return frame.lazy("duckdb"), give_back


def _open_mapping(table: Mapping[str, Any]) -> tuple[Frame, Callable[..., Any]]:
    import duckdb

    columns = {str(name): _column(values) for name, values in table.items()}
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"columns must be equally long; {sizes} came.")
    relation = duckdb.sql("SELECT * FROM columns") if columns else duckdb.sql("SELECT 1 WHERE 1=0")
    return nw.from_native(relation), lambda result, _: to_arrays(_sorted(result))


def _column(values: Any) -> Any:
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    return array.astype(object) if array.dtype.kind in "US" else array


def _sorted(frame: Frame) -> Frame:
    """In the order of its leading identifiers: engines group in any order."""
    names = frame.collect_schema().names()
    return frame.sort(*[n for n in names[:2] if n in ("label", names[0])])


def to_arrays(frame: Frame) -> dict[str, Any]:
    """All of a lazy frame as NumPy arrays."""
    if frame.implementation.is_duckdb():
        arrays = frame.to_native().fetchnumpy()
        return {k: np.ma.filled(_float_if_masked(v), np.nan) for k, v in arrays.items()}
    eager = frame.collect()
    return {name: eager[name].to_numpy() for name in eager.columns}


def _float_if_masked(array: Any) -> Any:
    masked = isinstance(array, np.ma.MaskedArray) and bool(np.ma.is_masked(array))
    return array.astype(float) if masked and array.dtype.kind in "iub" else array


def _refuse_mixed_ids(frame: nw.DataFrame[Any]) -> None:
    """Engines would make 1 and "1" the same item; only pandas can hold both in one column."""
    for name, dtype in frame.schema.items():
        if dtype != nw.Object:
            continue
        values = [v for v in frame[name].to_list() if v is not None and v == v]
        kinds = {type(v).__name__ for v in values}
        if len(kinds) > 1 and kinds & {"str", "int", "float", "bool"}:
            first = {k: next(v for v in values if type(v).__name__ == k) for k in sorted(kinds)}
            raise ValueError(
                f"column {name!r} must hold values of one type; {', '.join(sorted(kinds))} came, "
                f"such as {first}. Make it text first: table[{name!r}].astype(str)."
            )


def check_names(names: Sequence[str], wanted: Sequence[tuple[str, str]]) -> None:
    """Every wanted column is there, and no two columns differ by case alone."""
    for role, name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1) or list(names[:1])
            raise ValueError(
                f"there is no column {name!r} for `{role}`; the columns are "
                f"{', '.join(map(repr, names))}. Did you mean {role}={near[0]!r}?"
                if names
                else f"there is no column {name!r} for `{role}`; the table has no columns."
            )
    folded: dict[str, str] = {}
    for name in names:
        if (twin := folded.setdefault(name.casefold(), name)) != name:
            raise ValueError(
                f"column names must differ by more than case, which some engines ignore; "
                f"{twin!r} and {name!r} came. Rename one of them."
            )


def identifier(schema: nw.Schema, name: str) -> nw.Expr:
    """A column of names: NaN is no name, and categories are their text."""
    column = nw.col(name)
    if schema[name].is_float():
        return column.fill_nan(None)
    if schema[name] in (nw.Categorical, nw.Enum):
        return column.cast(nw.String)
    return column


def number(schema: nw.Schema, value: Number, annotator: str | None) -> nw.Expr:
    """The column, the number, or what `look_up` found for the annotator."""
    spec, name = value.spec, value.name
    if isinstance(spec, str):
        if not schema[spec].is_numeric():
            raise ValueError(
                f"column {spec!r} for `{name}` must hold numbers; {schema[spec]} came. "
                f"Map its words to numbers first, from {value.low:g} to {value.high:g}."
            )
        column = nw.col(spec).cast(nw.Float64)
        return column.fill_nan(None).alias(value.column)
    if isinstance(spec, Mapping):
        if annotator is None:
            raise ValueError(
                f"`{name}` by annotator needs to know who annotated; no annotator column came. "
                "Pass annotator='the column'."
            )
        _check_range(value, list(spec.values()))
        return nw.col(f"{value.column}_known").alias(value.column)
    _check_range(value, [spec])
    return nw.lit(float(spec)).alias(value.column)


def _check_range(value: Number, given: list[Any]) -> None:
    for v in given:
        if not isinstance(v, int | float | np.number) or not value.low <= float(v) <= value.high:
            raise ValueError(
                f"`{value.name}` must be a column name or lie in [{value.low:g}, {value.high:g}]; "
                f"{v!r} came.{value.hint}"
            )


def look_up(frame: Frame, column: str, mapping: Mapping[Any, float], name: str) -> Frame:
    """Add a column of the mapping's numbers for the values of another, null where unknown."""
    keys, values = list(mapping), np.asarray(list(mapping.values()), dtype=float)
    if frame.implementation.is_duckdb():
        # DuckDB would search a literal map from its start for every row; a join does not.
        known = {"sle_key": _column(keys), "sle_value": values}  # noqa: F841 (the query reads it)
        quoted = '"' + column.replace('"', '""') + '"'
        joined = frame.to_native().query(
            "t",
            f"SELECT t.*, known.sle_value AS {name} "
            f"FROM t LEFT JOIN known ON t.{quoted} = known.sle_key",
        )
        return nw.from_native(joined)
    found = nw.col(column).replace_strict(
        keys, values.tolist(), default=None, return_dtype=nw.Float64
    )
    return frame.with_columns(found.alias(name))


def list_length(frame: Frame, name: str) -> int:
    """The length of the longest list in a column."""
    schema = frame.collect_schema()
    if not isinstance(schema[name], nw.List | nw.Array):
        raise ValueError(
            f"column {name!r} must hold lists of probabilities; {schema[name]} came. "
            "Pass the K columns instead if there is one per label: ['p_yes', 'p_no']."
        )
    (longest,) = small(frame.select(nw.col(name).list.len().max().alias("n")))["n"]
    return int(longest or 0)


def soft_columns(
    spec: str | Sequence[str], count: int, name: Callable[[int], str]
) -> list[nw.Expr]:
    """K columns of probabilities, or one column of lists, as K expressions."""
    lists = isinstance(spec, str)
    each = [nw.col(spec).list.get(k) for k in range(count)] if lists else map(nw.col, spec)
    return [x.cast(nw.Float64).fill_nan(None).alias(name(k)) for k, x in enumerate(each)]


def small(frame: Frame) -> dict[str, list[Any]]:
    """A few rows as Python values."""
    if frame.implementation.is_duckdb():
        relation = frame.to_native()
        columns = zip(*relation.fetchall(), strict=True)
        return dict(zip(relation.columns, map(list, columns), strict=False)) or {
            c: [] for c in relation.columns
        }
    if frame.implementation.is_polars():
        return frame.collect(engine="streaming").to_dict(as_series=False)
    return frame.collect().to_dict(as_series=False)


def numbered(frame: Frame) -> Frame | None:
    """The frame with its row numbers in ROW, or None where the engine keeps no order."""
    if frame.implementation.is_polars():
        return nw.from_native(frame.to_native().with_row_index(ROW))
    if frame.implementation.is_duckdb():
        return nw.from_native(frame.to_native().project(f"*, row_number() OVER () - 1 AS {ROW}"))
    return None
