"""Tables to arrays: annotations for methods that learn from all of them, opinions to train on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, as_names, shared_base_rate
from slencodings.choices import Duplicates, Missing
from slencodings.opinion import Floats, Opinion
from slencodings.tables import columns as col
from slencodings.tables.codes import at_its_word, read_codes
from slencodings.tables.engines import (
    ANNOTATOR,
    ITEM,
    LABEL,
    RELIABILITY,
    ROW,
    STATED,
    UNCERTAINTY,
    Frame,
    distinct,
    is_database,
    is_spark,
    look_up,
    open_table,
    probability,
    to_arrays,
)
from slencodings.tables.roles import Reading, in_order
from slencodings.tables.rows import Rows, check_named, read_rows


def from_table(
    table: Any,
    *,
    item: str,
    label: str | Sequence[str],
    annotator: str | None = None,
    uncertainty: Any = None,
    confidence: Any = None,
    confidence_scale: Any = (0, 1),
    reliability: Any = None,
    labels: Sequence[Any] | None = None,
    ordered: Sequence[Any] | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "all",
) -> Annotations:
    """Read a table into arrays, for methods that learn from the crowd as a whole.

    The arguments are those of `fuse_table`; in the place of `labels`, `ordered` names them from
    lowest to highest and says that they have this order. Rows without a label are left out and
    their items stay; the others keep their order. What stands in the table of confidence is kept as
    `stated`, and of reliability as `reliability`. With confidence_scale=None confidence is taken at
    its word if all of it lies in [0, 1], else there is no uncertainty. With duplicates="average"
    what an annotator said several times of an item is one annotation (`Annotations.averaged`).

    Examples
    --------
    >>> crowd = {"post": ["a", "a", "b"], "who": ["ann", "bob", "ann"], "said": ["yes", "no", "no"]}
    >>> annotations = from_table(crowd, item="post", annotator="who", label="said")
    >>> annotations.y, annotations.labels
    (array([1, 0, 0]), array(['no', 'yes'], dtype=object))
    """
    reading = Reading(
        item=item,
        label=label,
        annotator=annotator,
        uncertainty=uncertainty,
        confidence=confidence,
        confidence_scale=confidence_scale,
        reliability=reliability,
        labels=in_order(labels, ordered),
        ordered=ordered is not None,
        missing=missing,
        duplicates=duplicates,
    )
    return read_annotations(table, reading)


def read_annotations(table: Any, reading: Reading) -> Annotations:
    """What `from_table` does; of confidence whose scale is not said, see there."""
    if reading.duplicates == "average":
        check_named(reading)
        return read_annotations(table, replace(reading, duplicates="all")).averaged()
    as_stated = reading
    if reading.confidence_scale is None:
        col.check_constant(col.stated(reading)[0])
        as_stated = replace(reading, confidence_scale=col.unchanged)
    if (plain := read_codes(table, reading)) is not None:
        return plain
    rows = read_rows(_in_memory(table, reading), as_stated, ordered=True)
    y = [probability(k) for k in range(len(rows.labels))] if rows.soft else ["sle_y"]
    arrays, items, annotators = _codes(rows, y, named=reading.annotator is not None)
    u, stated = _doubt(arrays, reading)
    return Annotations(
        item=arrays["sle_i"].astype(np.intp),
        annotator=arrays["sle_m"],
        y=np.stack([arrays[c] for c in y], axis=-1)
        if rows.soft
        else arrays["sle_y"].astype(np.intp),
        uncertainty=u,
        items=items,
        annotators=annotators,
        labels=as_names(rows.labels),
        stated=stated,
        reliability=None if reading.reliability is None else arrays[RELIABILITY].astype(float),
        ordered=reading.ordered,
    )


def _codes(
    rows: Rows, y: Sequence[str], *, named: bool
) -> tuple[dict[str, NDArray[Any]], NDArray[Any], NDArray[Any]]:
    """Rows that have an answer as arrays by column, and the names behind items and annotators."""
    frame, items = _coded(rows.frame, ITEM, "sle_i")
    answered = frame.filter(~nw.col(rows.answer).is_null())
    annotators = np.asarray(["anonymous"], dtype=object)
    if named:
        answered, annotators = _coded(answered, ANNOTATOR, "sle_m")
    else:
        answered = answered.with_columns(nw.lit(0).alias("sle_m"))
    if not rows.soft:
        place = {label: k for k, label in enumerate(rows.labels)}
        answered = look_up(answered, LABEL, place, "sle_y")
    columns = [ROW, "sle_i", "sle_m", *y, STATED, UNCERTAINTY, RELIABILITY]
    arrays = _in_order(answered.select(*columns), found=("sle_i", y[0]))
    # Who gave no name is one more, called None.
    nobody = len(annotators)
    who = np.nan_to_num(arrays["sle_m"].astype(float), nan=nobody).astype(np.intp)
    if (who == nobody).any():
        annotators = np.asarray([*annotators, None], dtype=object)
    return arrays | {"sle_m": who}, items, annotators


def _in_order(frame: Frame, found: Sequence[str]) -> dict[str, NDArray[Any]]:
    """All of a frame as arrays, in the order of its rows; codes must have been `found` for all."""
    arrays = to_arrays(frame)
    if any(np.isnan(arrays[code].astype(float)).any() for code in found):
        raise ValueError(
            "a lazy table must give the same rows each time it is read; this one does not, as a "
            "random sample would. Keep its rows first: relation.to_arrow_table(), frame.collect()."
        )
    order = np.argsort(arrays[ROW])
    return {name: values[order] for name, values in arrays.items()}


def _doubt(arrays: Mapping[str, NDArray[Any]], reading: Reading) -> tuple[Floats, Floats | None]:
    """Uncertainty and stated confidence; what is missing is trusted, so the surest there is."""
    scale, u = reading.confidence_scale, arrays[UNCERTAINTY].astype(float)
    if reading.confidence is None:
        return u, None
    stated = arrays[STATED].astype(float)
    if scale is None or callable(scale):
        surest = np.fmax.reduce(stated, initial=-np.inf)
    else:
        surest = float(scale[1])
    stated = np.where(np.isnan(stated), surest, stated)
    return at_its_word(stated) if scale is None else u, stated


def _in_memory(table: Any, reading: Reading) -> Any:
    """Rows of Dask, Spark and databases, collected: they keep no order that could be numbered."""
    if isinstance(table, Mapping):
        return cast("Any", table)
    frame: Any = nw.from_native(table, pass_through=True)
    if not isinstance(frame, nw.LazyFrame):
        return table
    lazy = cast("Frame", frame)
    if lazy.implementation.is_dask():
        return lazy.collect().to_native()
    if is_spark(lazy) or is_database(lazy):
        return open_table(table, reading.wanted)[0].collect("pyarrow").to_native()
    return table


def _coded(frame: Frame, column: str, code: str) -> tuple[Frame, Any]:
    """Add the place of each value among the sorted distinct values, and return those."""
    named = distinct(frame.select(column).filter(~nw.col(column).is_null()))
    coded = named.with_row_index(code, order_by=column)
    arrays = to_arrays(coded)
    names = arrays[column][np.argsort(arrays[code])]
    return frame.join(coded, on=column, how="left"), names


def dense(table: Any, *, item: str = "item", base_rate: Any = None) -> tuple[Any, Any, Opinion]:
    """Opinions of a wide table as arrays to train on: the items, the labels and the `Opinion`.

    Needs the columns `belief_*` and `uncertainty`; takes `base_rate_*` where they are.

    Examples
    --------
    >>> from slencodings import fuse_table
    >>> crowd = {"item": ["a", "a", "b"], "label": ["yes", "no", "no"]}
    >>> items, labels, target = dense(fuse_table(crowd, item="item", label="label"))
    >>> target.belief.round(3)
    array([[0.497, 0.497],
           [0.99 , 0.   ]])
    """
    frame, _ = open_table(table)
    names = frame.collect_schema().names()
    labels = [n.removeprefix("belief_") for n in names if n.startswith("belief_")]
    if not labels or "uncertainty" not in names or item not in names:
        raise ValueError(
            f"a wide table of opinions has the columns {item!r}, 'uncertainty' and 'belief_*'; "
            f"{', '.join(map(repr, names))} came. Make it with fuse_table(..., form='wide')."
        )
    arrays = to_arrays(frame)
    given = all(f"base_rate_{k}" in names for k in labels)
    b = np.stack([arrays[f"belief_{k}"] for k in labels], axis=-1)
    a = (
        np.stack([arrays[f"base_rate_{k}"] for k in labels], axis=-1)
        if given
        else np.broadcast_to(shared_base_rate(base_rate, labels), b.shape)
    )
    return arrays[item], np.asarray(labels, dtype=object), Opinion(b, arrays["uncertainty"], a)
