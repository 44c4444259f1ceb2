"""From the columns of anyone's table to ours: what each must hold, and as which expression.

Nothing here judges a value; `checks` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw

from slencodings.confidence import linear
from slencodings.tables.engines import (
    ANNOTATOR,
    ITEM,
    RELIABILITY,
    ROW,
    STATED,
    Frame,
    is_missing,
    kind_of,
    look_up,
    numbered,
)
from slencodings.tables.roles import Reading

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd


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
        to_uncertainty = _unchanged
        if not reading.confidence_scale:
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
        return Number("uncertainty", STATED, spec, 0.0, 1.0, hint), lambda u: u
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


def _unchanged(confidence: Any) -> Any:
    return confidence


def selected(
    frame: Frame,
    reading: Reading,
    columns: list[nw.Expr],
    numbers: list[Number],
    ordered: bool,
) -> Frame:
    """The columns in our words, in the order of rows where that is needed."""
    schema, annotator = frame.collect_schema(), reading.annotator
    mappings = [value for value in numbers if isinstance(value.spec, Mapping)]
    frame = frame.select(
        identifier(schema, str(reading.item)).alias(ITEM),
        *([] if annotator is None else [identifier(schema, annotator).alias(ANNOTATOR)]),
        *columns,
        *(number(schema, value) for value in numbers if value not in mappings),
    )
    if ordered or reading.duplicates in ("first", "last"):
        frame = _in_order(frame)
    return _looked_up(frame, schema, mappings, annotator) if mappings else frame


def _in_order(frame: Frame) -> Frame:
    with_rows = numbered(frame)
    if with_rows is None:
        raise ValueError(
            "duplicates='first' and 'last' need rows in an order, which "
            f"{frame.implementation.name.lower()} does not keep. Sort and drop them there, or pass "
            "duplicates='all' or duplicates='error'."
        )
    return with_rows


def _looked_up(
    frame: Frame, schema: nw.Schema, mappings: list[Number], annotator: str | None
) -> Frame:
    """The frame with what mappings know of each annotator."""
    if ROW not in frame.collect_schema().names():
        # Looking up need not keep the order of rows.
        frame = numbered(frame) or frame
    for value in mappings:
        _check_mapping(schema, value, annotator)
        frame = look_up(frame, ANNOTATOR, value.spec, value.column)
    return frame


def _check_mapping(schema: nw.Schema, value: Number, annotator: str | None) -> None:
    if annotator is None:
        raise ValueError(
            f"`{value.name}` by annotator needs to know who annotated; no annotator column came. "
            "Pass annotator='COLUMN'."
        )
    if wrong := misfits(schema[annotator], list(value.spec)):
        raise ValueError(
            f"`{value.name}` must know annotators as column {annotator!r} does, by "
            f"{schema[annotator]}; {wrong[0]!r} came. Change the mapping or the column."
        )
    for name, given in value.spec.items():
        check_range(value, given, f" for {name!r}")


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
        check_numeric(schema[spec], spec, name)
        return nw.col(spec).cast(nw.Float64).fill_nan(None).alias(value.column)
    check_range(value, spec)
    return nw.lit(float(spec)).alias(value.column)


def check_numeric(dtype: Any, column: str, role: str) -> None:
    """Refuse a column of something else than numbers."""
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
