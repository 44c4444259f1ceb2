"""From the columns of anyone's table to ours: names, answers and numbers.

Answers are labels, or probabilities of all that are possible. Nothing here judges a value of a
column; `checks` does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from numbers import Real
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import narwhals as nw

from slencodings.annotations import counted, some
from slencodings.confidence import linear
from slencodings.tables.engines import (
    LABEL,
    RELIABILITY,
    ROW,
    STATED,
    Frame,
    fold,
    is_missing,
    kind_of,
    numbered,
    prior,
    probability,
    small,
)
from slencodings.tables.roles import Reading

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd

# A column per label; past this engines choke on their own queries.
MOST_COLUMNS = 1000


class Answers(NamedTuple):
    """What rows answer: `columns` to be called by our `names`, and the labels, if they are known.

    They are one column of labels or, if `soft`, one of probabilities for each.
    """

    columns: list[nw.Expr]
    names: list[str]
    labels: list[Any] | None
    soft: bool


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


def check_numeric(dtype: Any, column: str, role: str) -> None:
    """Refuse a column of something else than numbers."""
    # A column that is null in all rows has no type yet.
    if not dtype.is_numeric() and dtype not in (nw.Boolean, nw.Unknown):
        raise ValueError(
            f"column {column!r} for `{role}` must hold numbers; {dtype} came. "
            "Map its words to numbers first."
        )


def answers_of(frame: Frame, reading: Reading, crowd: Crowd | None) -> Answers:
    """Labels or probabilities, whichever the columns hold."""
    schema, label, labels = frame.collect_schema(), reading.label, reading.labels
    soft = not isinstance(label, str) or isinstance(schema[label], nw.List | nw.Array)
    if crowd is not None:
        hard = None if soft else str(label)
        labels = _known_names(crowd, schema, reading.annotator, hard, labels)
    elif labels is not None and not soft:
        check_count(list(labels), named=reading.named)
    if not soft:
        column, labels = label_column(schema, str(label), labels, reading)
        return Answers([column.alias(LABEL)], [LABEL], labels, soft=False)
    names = soft_names(frame, cast("Any", label), labels)
    p = probability
    columns = soft_columns(schema, "label", cast("Any", label), len(names), p)
    return Answers(columns, [p(k) for k in range(len(names))], names, soft=True)


def _known_names(
    crowd: Crowd, schema: nw.Schema, annotator: str | None, label: str | None, labels: Any
) -> Any:
    """The labels, and an error if columns and crowd know them or the annotators by other names."""
    known = {"annotators": crowd.annotators.tolist(), "labels": crowd.labels.tolist()}
    if known["annotators"] == ["anonymous"]:  # Nobody was told apart.
        known["annotators"] = []
    for role, column in (("annotators", annotator), ("labels", label)):
        names = [name for name in known[role] if name is not None]
        if column is not None and (wrong := misfits(schema[column], names)):
            raise ValueError(
                f"`crowd` must know {role} as column {column!r} does, by {schema[column]}; "
                f"{wrong[0]!r} came. Change the column, or learn from a table like this one."
            )
    if label is None:  # Names say which probability is whose.
        return labels
    if labels is not None and list(labels) != known["labels"]:
        raise ValueError(
            f"`labels` are those that the crowd was learned for, {some(known['labels'])}; "
            f"{some(labels)} came. Leave `labels` out."
        )
    return known["labels"]


def settled(
    frame: Frame, answers: Answers, reading: Reading, rows: int | None, values: Frame | list[Any]
) -> tuple[Frame, list[Any]]:
    """The frame with answers as they are to be, and all labels: those of `values`, or of rows."""
    labels = answers.labels
    if labels is None:
        labels = found_labels(values, reading.label, rows)
        check_count(labels, rows)
    if answers.soft:
        return _normalised(frame, answers.names), labels
    return whole_numbers(frame, labels)


def _normalised(frame: Frame, answered: list[str]) -> Frame:
    """Sums of exactly one, so that all forms agree on what was written with few digits."""
    frame = frame.with_columns(fold(add, map(nw.col, answered)).alias("sle_sum"))
    return frame.with_columns(*(nw.col(p) / nw.col("sle_sum") for p in answered)).drop("sle_sum")


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


def soft_columns(
    schema: nw.Schema, role: str, spec: str | Sequence[str], count: int, name: Callable[[int], str]
) -> list[nw.Expr]:
    """K columns of probabilities, or one column of lists, as K expressions."""
    if isinstance(spec, str):
        dtype: Any = schema[spec]
        check_numeric(dtype.inner, spec, role)
        each = [_lists(spec, dtype).list.get(k) for k in range(count)]
    else:
        for column in spec:
            check_numeric(schema[column], column, role)
        each = map(nw.col, spec)
    return [x.cast(nw.Float64).fill_nan(None).alias(name(k)) for k, x in enumerate(each)]


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
        unequal = (numbered(frame) or frame).filter(n != most)
        first, shorter = small(unequal.head(1)), small(unequal.select(nw.len().alias("sle_n")))
        at = f" in row {first[ROW][0] + 1} of the data" if ROW in first else ""
        raise ValueError(
            f"the lists in column {name!r} must be equally long; the longest has {most} values, "
            f"fewer are in {counted(shorter['sle_n'][0], 'row')}, first {first['sle_n'][0]}{at}. "
            "Write 0 for a label that is ruled out, and null where there is no annotation."
        )
    return int(most or 0)


def _lists(name: str, dtype: Any) -> nw.Expr:
    """Polars keeps arrays of fixed length apart from lists."""
    column = nw.col(name)
    return column.cast(nw.List(dtype.inner)) if isinstance(dtype, nw.Array) else column


def label_column(
    schema: nw.Schema, name: str, labels: Sequence[Any] | None, reading: Reading
) -> tuple[nw.Expr, list[Any] | None]:
    """The column of labels, and the labels given as values that it can hold."""
    column, dtype = identifier(schema, name), schema[name]
    given = [] if labels is None else list(labels)
    if wrong := misfits(dtype, given):
        text = any(dtype == kind for kind in (nw.String, nw.Categorical, nw.Enum))
        words = "text" if text else "numbers"
        words = "True and False" if dtype == nw.Boolean else words
        raise ValueError(
            f"`{reading.named}` must be of the type of column {name!r}, {dtype}; {wrong[0]!r} "
            f"came. Pass {words}."
        )
    if dtype == nw.Unknown and given:
        # Null in all rows, so that any type will do.
        first = given[0]
        dtype = nw.String() if isinstance(first, str) else nw.Float64()
        dtype = nw.Boolean() if isinstance(first, bool) else dtype
        column = column.cast(dtype)
    if dtype.is_numeric():
        integers = dtype.is_integer() and all(float(v).is_integer() for v in given)
        column = column.cast(nw.Int64 if integers else nw.Float64)
        column = column if integers else column.fill_nan(None)
        given = [int(v) if integers else float(v) for v in given]
    return column, None if labels is None else given


def check_count(labels: Sequence[Any], rows: int | None = None, named: str = "labels") -> None:
    """Refuse labels that are fewer than two, or that repeat; `named` is what they came as."""
    repeated = [v for v, n in Counter(labels).items() if n > 1]
    if repeated:
        raise ValueError(f"`{named}` must differ; {repeated[0]!r} came more than once.")
    if len(labels) < 2:
        only = f"only {labels[0]!r}" if labels else "none"
        where = "" if rows is None else f", in {counted(rows, 'row')}"
        raise ValueError(
            f"at least two labels are needed; {only} came{where}. If others are possible, name "
            f"them all ({named}=[{repr(labels[0]) + ', ' if labels else ''}...])."
        )


def found_labels(values: Frame | list[Any], label: Any, rows: int | None) -> list[Any]:
    """The labels that occur in rows or among values, in their order."""
    if not isinstance(values, list):
        values = small(values.group_by(LABEL).agg(nw.len().alias("sle_n")))[LABEL]
    found = [v for v in values if v is not None and v == v]
    if not found:
        where = "all rows" if rows is None else counted(rows, "row")
        raise ValueError(
            f"no annotation has a label: column {label!r} is empty in {where}. "
            "Name the possible labels to get vacuous opinions all the same: labels=[...]."
        )
    return sorted(found, key=natural(found))


def natural(labels: list[Any]) -> Any:
    """Sort key: numbers written as text by value, all else as it is."""
    digits = all(isinstance(v, str) and v.isdecimal() for v in labels)
    return _by_value if digits else None


def _by_value(text: str) -> tuple[int, str]:
    return int(text), text


def whole_numbers(frame: Frame, labels: list[Any]) -> tuple[Frame, list[Any]]:
    """Whole numbers turn into floats where some are missing; turn them back."""
    if not all(isinstance(v, float) and v.is_integer() for v in labels):
        return frame, labels
    # Dask has no whole numbers among nulls.
    if not frame.implementation.is_dask():
        frame = frame.with_columns(nw.col(LABEL).cast(nw.Int64))
    return frame, [int(v) for v in labels]


def typed_labels(reading: Reading, table: Any) -> Reading:
    """The reading with labels, which were typed as text, in the type of their column."""
    labels, column = reading.labels, reading.label
    if labels is None or not isinstance(column, str):
        return reading
    dtype: Any = nw.from_native(table).collect_schema()[column]
    if dtype.is_nested():  # Lists of probabilities have labels of any type.
        return reading
    kinds: dict[Any, Callable[[str], Any]] = {
        nw.Boolean: lambda word: {"true": True, "false": False}[word.lower()],
        nw.Date: date.fromisoformat,
        nw.Datetime: datetime.fromisoformat,
    }
    number = int if dtype.is_integer() else float if dtype.is_numeric() else None
    read = number or next((read for kind, read in kinds.items() if dtype == kind), str)
    try:
        return replace(reading, labels=[read(word) for word in labels])
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"`{reading.named}` must be of the type of column {column!r}, {dtype}; "
            f"{','.join(labels)} came."
        ) from error


class Number(NamedTuple):
    """Something in [low, high] that a column, a number or a mapping from annotator says."""

    name: str
    column: str
    spec: Any
    low: float
    high: float
    hint: str


def numbers_of(reading: Reading, crowd: Crowd | None) -> tuple[list[Number], Callable[[Any], Any]]:
    """What was said of doubt and of annotators, and how the first becomes uncertainty."""
    doubt, to_uncertainty = stated(reading)
    if crowd is not None and as_stated(crowd) and reading.confidence is not None:
        # Its worth was learned as it is; the ends of a scale say what may come.
        to_uncertainty = unchanged
        if not reading.confidence_scale:
            levels = [0.0, 1.0, *crowd.levels.tolist()]
            check_constant(doubt._replace(low=min(levels), high=max(levels)))
            doubt = doubt._replace(low=-math.inf, high=math.inf)
    return [doubt, reliability(reading.reliability)], to_uncertainty


def stated(reading: Reading) -> tuple[Number, Callable[[Any], Any]]:
    """What the annotators said of their doubt, and how it becomes uncertainty."""
    uncertainty, confidence = reading.uncertainty, reading.confidence
    scale = (0, 1) if reading.confidence_scale is None else reading.confidence_scale
    if uncertainty is not None and confidence is not None:
        raise ValueError(
            "`uncertainty` and `confidence` say the same thing twice; both came. Pass one of them."
        )
    if confidence is None:
        spec = 0.0 if uncertainty is None else uncertainty
        hint = "If it is confidence on a scale, pass it as `confidence`, confidence_scale=(1, 5)."
        return Number("uncertainty", STATED, spec, 0.0, 1.0, hint), unchanged
    if callable(scale):
        return Number("confidence", STATED, confidence, -float("inf"), float("inf"), ""), scale
    try:
        low, high = (float(end) for end in scale)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low != high):
        raise ValueError(
            "`confidence_scale` must be the two ends of the scale, or a map from confidence to "
            f"uncertainty; {scale!r} came. For 1 (guessed) to 5 (sure): confidence_scale=(1, 5)."
        )
    hint = "Name the ends of the scale if they are others: confidence_scale=(1, 5)."
    return (
        Number("confidence", STATED, confidence, min(low, high), max(low, high), hint),
        lambda c: linear(c, low=low, high=high),
    )


def reliability(reliability: Any) -> Number:
    """What is said of the annotators by somebody else; full trust if nothing is."""
    spec = 1.0 if reliability is None else reliability
    hint = "Map a score such as kappa first: clip it to [0, 1]."
    return Number("reliability", RELIABILITY, spec, 0.0, 1.0, hint)


def as_stated(crowd: Crowd) -> bool:
    """Whether confidence is read as it was stated, on whatever scale; or not at all."""
    return not crowd.from_uncertainty or not len(crowd.levels)


def unchanged(confidence: Any) -> Any:
    """Confidence as it was stated."""
    return confidence


def number(schema: nw.Schema, value: Number) -> nw.Expr:
    """The column or the number, as ours."""
    spec, name = value.spec, value.name
    if isinstance(spec, str):
        check_numeric(schema[spec], spec, name)
        return nw.col(spec).cast(nw.Float64).fill_nan(None).alias(value.column)
    check_range(value, spec)
    return nw.lit(float(spec)).alias(value.column)


def check_constant(value: Number) -> None:
    """Refuse one number for all that is out of its range."""
    if not isinstance(value.spec, str | Mapping):
        check_range(value, value.spec)


def check_range(value: Number, given: Any, of: str = "") -> None:
    """Refuse a number out of its range; `of` says whose it is."""
    if isinstance(given, Real) and value.low <= float(given) <= value.high:
        return
    came = repr(given) if given is None or isinstance(given, Real) else type(given).__name__
    raise ValueError(
        f"`{value.name}` must be a column, a number in [{value.low:g}, {value.high:g}] or a "
        f"mapping from annotator to such numbers; {came} came{of}. {value.hint}".rstrip()
    )
