"""From the columns of anyone's table to ours: what each must hold, and as which expression.

Nothing here judges a value; `checks` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw

from slencodings.tables.engines import (
    ROW,
    Frame,
    is_missing,
    kind_of,
    numbered,
    prior,
    small,
)

# A column per label; past this engines choke on their own queries.
MOST_COLUMNS = 1000


class Number(NamedTuple):
    """Something in [low, high] that a column, a number or a mapping from annotator says."""

    name: str
    column: str
    spec: Any
    low: float
    high: float
    hint: str


def identifier(schema: nw.Schema, name: str) -> nw.Expr:
    """A column of names: NaN is no name, and categories are their text."""
    column, dtype = nw.col(name), schema[name]
    if dtype.is_nested() or dtype == nw.Object:
        raise ValueError(
            f"column {name!r} must hold names: text, numbers or dates; {dtype} came. "
            "Make them text first."
        )
    if dtype.is_float():
        return column.fill_nan(None)
    categories = dtype == nw.Categorical or dtype == nw.Enum
    return column.cast(nw.String) if categories else column


def misfits(dtype: Any, values: Sequence[Any]) -> list[Any]:
    """The values that a column of this type cannot hold."""
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return [v for v in values if not isinstance(v, str)]
    kind = "bool" if dtype == nw.Boolean else "number" if dtype.is_numeric() else None
    return [v for v in values if is_missing(v) or (kind and kind_of(v) != kind)]


def number(schema: nw.Schema, value: Number) -> nw.Expr:
    """The column or the number, as ours."""
    spec, name = value.spec, value.name
    if isinstance(spec, str):
        _check_numeric(schema[spec], spec, name)
        return nw.col(spec).cast(nw.Float64).fill_nan(None).alias(value.column)
    check_range(value, spec)
    return nw.lit(float(spec)).alias(value.column)


def _check_numeric(dtype: Any, column: str, role: str) -> None:
    # A column that is null in all rows has no type yet.
    if not dtype.is_numeric() and dtype not in (nw.Boolean, nw.Unknown):
        raise ValueError(
            f"column {column!r} for `{role}` must hold numbers; {dtype} came. "
            "Map its words to numbers first."
        )


def check_range(value: Number, given: Any, of: str = "") -> None:
    """Refuse a number out of its range; `of` says whose it is."""
    if isinstance(given, Real) and value.low <= float(given) <= value.high:
        return
    came = repr(given) if given is None or isinstance(given, Real) else type(given).__name__
    raise ValueError(
        f"`{value.name}` must be a column, a number in [{value.low:g}, {value.high:g}] or a "
        f"mapping from annotator to such numbers; {came} came{of}. {value.hint}".rstrip()
    )


def list_length(frame: Frame, name: str) -> int:
    """The length that all lists in a column have."""
    dtype = frame.collect_schema()[name]
    if not isinstance(dtype, nw.List | nw.Array):
        raise ValueError(
            f"column {name!r} must hold lists of probabilities; {dtype} came. "
            "Pass the K columns instead if there is one per label: ['p_yes', 'p_no']."
        )
    frame = frame.select(_lists(name, dtype).list.len().cast(nw.Int64).alias("sle_n"))
    n = nw.col("sle_n")
    found = small(frame.select(n.min().alias("sle_least"), n.max().alias("sle_most")))
    (least,), (most,) = found.values()
    if least != most:
        others = (numbered(frame) or frame).filter(n != most)
        first, counted = small(others.head(1)), small(others.select(nw.len().alias("sle_n")))
        at = f" at row {first[ROW][0]} (from 0)" if ROW in first else ""
        raise ValueError(
            f"the lists in column {name!r} must be equally long; the longest has {most} values, "
            f"{counted['sle_n'][0]} rows have fewer, first {first['sle_n'][0]}{at}. "
            "Write 0 for a label that is ruled out, and null where there is no annotation."
        )
    return int(most or 0)


def _lists(name: str, dtype: Any) -> nw.Expr:
    """Polars keeps arrays of fixed length apart from lists."""
    column = nw.col(name)
    return column.cast(nw.List(dtype.inner)) if isinstance(dtype, nw.Array) else column


def soft_columns(
    schema: nw.Schema, role: str, spec: str | Sequence[str], count: int, name: Callable[[int], str]
) -> list[nw.Expr]:
    """K columns of probabilities, or one column of lists, as K expressions."""
    if isinstance(spec, str):
        dtype: Any = schema[spec]
        _check_numeric(dtype.inner, spec, role)
        each = [_lists(spec, dtype).list.get(k) for k in range(count)]
    else:
        for column in spec:
            _check_numeric(schema[column], column, role)
        each = map(nw.col, spec)
    return [x.cast(nw.Float64).fill_nan(None).alias(name(k)) for k, x in enumerate(each)]


def soft_names(frame: Frame, label: str | Sequence[str], labels: Sequence[Any] | None) -> list[Any]:
    """The names of soft labels: those given, the columns' own, or 0, 1, 2 for a list."""
    count = list_length(frame, label) if isinstance(label, str) else len(label)
    if labels is None:
        labels = range(count) if isinstance(label, str) else label
    if len(labels) != count:
        raise ValueError(
            f"`labels` must name the {count} probabilities in their order; {len(labels)} came: "
            f"{', '.join(map(repr, labels))}."
        )
    check_count(labels)
    if count > MOST_COLUMNS:
        raise ValueError(
            f"soft labels in a table may be at most {MOST_COLUMNS}; {count} came. Use arrays "
            "beyond: fuse(encode(y, uncertainty))."
        )
    return list(labels)


def check_count(labels: Sequence[Any], rows: int | None = None) -> None:
    """Refuse labels that are fewer than two, or that repeat."""
    repeated = [v for v, n in Counter(labels).items() if n > 1]
    if repeated:
        raise ValueError(f"`labels` must differ; {repeated[0]!r} came more than once.")
    if len(labels) < 2:
        only = f"only {labels[0]!r}" if labels else "none"
        where = "" if rows is None else f", in {rows} rows"
        raise ValueError(
            f"at least two labels are needed; {only} came{where}. If others are possible, name "
            f"them all: labels=[{repr(labels[0]) + ', ' if labels else ''}...]."
        )


def label_column(
    schema: nw.Schema, name: str, labels: Sequence[Any] | None
) -> tuple[nw.Expr, list[Any] | None]:
    """The column of labels, and the labels given as values that it can hold."""
    column, dtype = identifier(schema, name), schema[name]
    given = [] if labels is None else list(labels)
    if labels is not None:
        check_count(given)
    if wrong := misfits(dtype, given):
        text = any(dtype == kind for kind in (nw.String, nw.Categorical, nw.Enum))
        words = "text" if text else "numbers"
        words = "True and False" if dtype == nw.Boolean else words
        raise ValueError(
            f"`labels` must be of the type of column {name!r}, {dtype}; {wrong[0]!r} came. "
            f"Pass {words}."
        )
    if dtype == nw.Unknown and given:
        # Null in all rows, so that any type will do.
        first = given[0]
        dtype = nw.String() if isinstance(first, str) else nw.Float64()
        dtype = nw.Boolean() if isinstance(first, bool) else dtype
        column = column.cast(dtype)
    if dtype.is_numeric():
        whole = dtype.is_integer() and all(float(v).is_integer() for v in given)
        column = column.cast(nw.Int64 if whole else nw.Float64)
        column = column if whole else column.fill_nan(None)
        given = [int(v) if whole else float(v) for v in given]
    return column, None if labels is None else given


def typed_labels(labels: Sequence[str], dtype: Any, column: str) -> list[Any]:
    """Labels that were typed, which are text, in the type of their column."""
    kinds: dict[Any, Callable[[str], Any]] = {
        nw.Boolean: lambda word: {"true": True, "false": False}[word.lower()],
        nw.Date: date.fromisoformat,
        nw.Datetime: datetime.fromisoformat,
    }
    whole = int if dtype.is_integer() else float if dtype.is_numeric() else None
    read = whole or next((read for kind, read in kinds.items() if dtype == kind), str)
    try:
        return [read(word) for word in labels]
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"`labels` must be of the type of column {column!r}, {dtype}; {','.join(labels)} came."
        ) from error


def prior_columns(frame: Frame, base_rate: Any, labels: Sequence[Any] | None) -> list[nw.Expr]:
    """Base rates that are given by row, as K expressions; none if they are not."""
    if base_rate is None:
        return []
    if labels is None:
        raise ValueError(
            "`base_rate` by row needs the order of the labels; none came. Pass labels=[...]."
        )
    count = list_length(frame, base_rate) if isinstance(base_rate, str) else len(base_rate)
    if count != len(labels):
        raise ValueError(f"`base_rate` needs one value per label, {len(labels)}; {count} came.")
    return soft_columns(frame.collect_schema(), "base_rate", base_rate, count, prior)
