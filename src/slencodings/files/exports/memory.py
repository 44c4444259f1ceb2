"""What is in memory, record by record: lists, objects, data frames, data sets of Hugging Face."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, TypeGuard

import narwhals as nw
import numpy as np

from slencodings.files.exports.record import ExportFile, Json, Keyed, Object, Record


def records_in(source: Any, who: str) -> Iterator[Record]:
    """The records of a list, an object of them or of columns, a data frame, or a data set."""
    nowhere = ExportFile(who, "", BytesIO)  # There is no file to open.
    for n, (key, value) in enumerate(_rows_in_memory(source, who), 1):
        if not isinstance(value, dict):
            raise ValueError(f"{who}, record {n} must be a dict; {value!r:.60} came.")
        yield Record(f"{who}, record {n}", key, value, nowhere)


def _rows_in_memory(source: Any, who: str) -> Iterator[Keyed]:
    """What is in memory, row by row, with the key of a row where it has one."""
    if _is_list(source):
        yield from ((None, value) for value in source)
    elif _is_mapping(source):
        yield from _mapping(source, who)
    elif hasattr(source, "column_names") and hasattr(source, "features"):
        yield from ((None, row) for row in _dataset(source))
    else:
        try:
            frame: Any = nw.from_native(source)
        except TypeError:
            raise TypeError(
                "an export must be a file, a data set, a data frame, a list of records or a dict "
                f"of columns; {type(source).__name__} came."
            ) from None
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        for row in frame.iter_rows(named=True):
            yield None, {str(name): as_python(value) for name, value in row.items()}


def _is_list(source: object) -> TypeGuard[Sequence[Json]]:
    return isinstance(source, list | tuple)


def _is_mapping(source: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(source, Mapping)


def _mapping(source: Mapping[str, Any], who: str) -> Iterator[Keyed]:
    values = list(source.values())
    if any(hasattr(value, "column_names") for value in values):
        raise ValueError(
            f"{who} must be one data set; a dict of {list(source)} came. "
            f"Choose one: dataset[{next(iter(source))!r}]."
        )
    if values and all(isinstance(value, dict) for value in values):
        yield from source.items()
    elif all(isinstance(v, list | tuple | np.ndarray) for v in values):
        sizes = {name: len(column) for name, column in source.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"{who}: columns must be equally long; {sizes} came.")
        for row in zip(*values, strict=True):
            yield None, {str(n): as_python(v) for n, v in zip(source, row, strict=True)}
    else:
        yield None, {**source}


def as_python(value: Any) -> Json:
    """A value of NumPy or pandas as Python's own."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    plain: Json = value.tolist() if hasattr(value, "tolist") else value
    return None if isinstance(plain, float) and plain != plain else plain


def _dataset(source: Any) -> Iterator[Object]:
    """The rows of a data set of Hugging Face, classes by their names."""
    features: dict[str, Any] = dict(source.features or {})
    named = {n: _inner(f).int2str for n, f in features.items() if hasattr(_inner(f), "int2str")}
    for row in source:
        plain = {n: as_python(v) for n, v in row.items()}
        yield {n: _decoded(v, named[n]) if n in named else v for n, v in plain.items()}


def _inner(feature: Any) -> Any:
    """The feature of the elements of a list."""
    return feature[0] if _is_list(feature) else getattr(feature, "feature", feature)


def _decoded(code: Json, name: Callable[[int], str]) -> Json:
    if isinstance(code, list):
        return [_decoded(c, name) for c in code]
    return name(code) if isinstance(code, int) and code >= 0 else None
