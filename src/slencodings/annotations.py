"""Who said what about which item, and how unsure they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from slencodings.columns import (
    ANNOTATOR,
    ITEM,
    LABEL,
    ROW,
    UNCERTAINTY,
    Frame,
    is_spark,
    look_up,
    probability,
    to_arrays,
)
from slencodings.opinion import Opinion
from slencodings.survey import Duplicates, Missing, survey


@dataclass(frozen=True)
class Annotations:
    """A crowd as integer codes: R annotations of N items by M annotators with K labels.

    Attributes
    ----------
    item, annotator : int array (R,), positions in `items` and `annotators`
    y : int array (R,), positions in `labels`; or float array (R, K), probabilities
    uncertainty : float array (R,), in [0, 1]: how unsure the annotator was
    items, annotators, labels : arrays (N,), (M,), (K,), the names behind the codes; items that
        nobody labelled are there too
    """

    item: NDArray[np.intp]
    annotator: NDArray[np.intp]
    y: NDArray[Any]
    uncertainty: NDArray[np.float64]
    items: NDArray[Any]
    annotators: NDArray[Any]
    labels: NDArray[Any]

    @property
    def soft(self) -> bool:
        """Whether labels are probabilities rather than one label each."""
        return self.y.ndim == 2

    @property
    def vectors(self) -> NDArray[np.float64]:
        """The labels as vectors (R, K)."""
        if self.soft:
            return self.y
        return np.eye(len(self.labels), dtype=np.float64)[self.y]

    def rows(self, index: Any) -> Annotations:
        """Take some of the annotations; items, annotators and labels stay, so codes still fit.

        >>> said = from_table({"item": ["p", "q"], "label": [1, 0]}, item="item", label="label")
        >>> said.rows([1]).item, said.rows([1]).items
        (array([1]), array(['p', 'q'], dtype=object))
        """
        names = ("item", "annotator", "y", "uncertainty")
        return replace(self, **{name: getattr(self, name)[index] for name in names})

    def sums(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Add up the labels of each item, each times its weight: an array (N, K).

        >>> crowd = {"item": ["p", "p", "q"], "label": [1, 1, 0]}
        >>> from_table(crowd, item="item", label="label").sums()
        array([[0., 2.],
               [1., 0.]])
        """
        shape = len(self.items), len(self.labels)
        if self.soft:
            weighted = self.y if weight is None else self.y * weight[:, None]
            columns = [np.bincount(self.item, column, shape[0]) for column in weighted.T]
            return np.stack(columns, axis=-1, dtype=float)
        cells = self.item * shape[1] + self.y
        counted: NDArray[Any] = np.bincount(cells, weight, shape[0] * shape[1])
        return counted.reshape(shape).astype(float)

    def per_annotation(self, reliability: Any) -> NDArray[np.float64]:
        """Reliability as one number per annotation (R,), checked to lie in [0, 1].

        Takes a number, an array (M,) in the order of `annotators`, an array (R,), a mapping from
        annotator to number, or nothing for full trust. An array of M = R values is per annotator.
        A binomial Opinion (trustworthy, not) counts by its projected probability.
        """
        if reliability is None:
            reliability = 1.0
        if isinstance(reliability, Opinion):
            if reliability.belief.shape[-1] != 2:
                raise ValueError(
                    "`reliability` as an opinion must be binomial, (trustworthy, not); one over "
                    f"{reliability.belief.shape[-1]} labels came. Pass a number in [0, 1]."
                )
            reliability = reliability.probability[..., 0]
        if hasattr(reliability, "to_dict"):  # a pandas Series, which may be in another order
            named: dict[Any, Any] = reliability.to_dict()
            reliability = named if set(named) == set(self.annotators.tolist()) else reliability
        if isinstance(reliability, Mapping):
            unknown = [name for name in self.annotators.tolist() if name not in reliability]
            if unknown:
                raise ValueError(
                    f"`reliability` must know every annotator; {len(unknown)} of "
                    f"{len(self.annotators)} are missing, first {unknown[0]!r}. "
                    "Add them, for example dict.fromkeys(crowd.annotators, 0.8) | reliability."
                )
            reliability = [reliability[name] for name in self.annotators.tolist()]
        r = np.asarray(reliability, dtype=float)
        M, R = len(self.annotators), len(self.item)
        if r.shape not in {(), (M,), (R,)}:
            raise ValueError(
                f"`reliability` must be a number, one per annotator ({M},) or one per annotation "
                f"({R},); shape {r.shape} came."
            )
        bad = ~((r >= 0) & (r <= 1))
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"`reliability` must lie in [0, 1]; {bad.sum()} of {bad.size} values do not, "
                f"first {np.atleast_1d(r)[first]:g} at position {first}. "
                "Map a score such as kappa first: np.clip(kappa, 0, 1)."
            )
        if r.ndim == 0:
            return np.full(R, float(r))
        return r[self.annotator] if len(r) == M else r


def from_table(
    table: Any,
    *,
    item: str,
    label: str | Sequence[str],
    annotator: str | None = None,
    uncertainty: Any = None,
    confidence: Any = None,
    confidence_scale: Any = (0, 1),
    labels: Sequence[Any] | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "all",
) -> Annotations:
    """Read a table into arrays, for methods that learn from the crowd as a whole.

    The arguments are those of `fuse_table`. Rows without a label are left out and their items
    stay; the others keep their order. Reliability is not part of what was said: pass it to the
    method that uses it.

    Examples
    --------
    >>> crowd = {"post": ["a", "a", "b"], "who": ["ann", "bob", "ann"], "said": ["yes", "no", "no"]}
    >>> annotations = from_table(crowd, item="post", annotator="who", label="said")
    >>> annotations.y, annotations.labels
    (array([1, 0, 0]), array(['no', 'yes'], dtype=object))
    """
    rows = survey(
        _in_memory(table),
        item=item,
        label=label,
        annotator=annotator,
        uncertainty=uncertainty,
        confidence=confidence,
        confidence_scale=confidence_scale,
        labels=labels,
        missing=missing,
        duplicates=duplicates,
        ordered=True,
    )
    said = probability(0) if rows.soft else LABEL
    frame, items = _coded(rows.frame, ITEM, "sle_i")
    spoken = frame.filter(~nw.col(said).is_null())
    annotators = np.asarray(["anonymous"], dtype=object)
    if annotator is not None:
        spoken, annotators = _coded(spoken, ANNOTATOR, "sle_m")
    if not rows.soft:
        place = {label: k for k, label in enumerate(rows.labels)}
        spoken = look_up(spoken, LABEL, place, "sle_y")
    y = [probability(k) for k in range(len(rows.labels))] if rows.soft else ["sle_y"]
    codes = ["sle_i", *(["sle_m"] if annotator is not None else [])]
    arrays = to_arrays(spoken.select(ROW, *codes, *y, UNCERTAINTY))
    order = np.argsort(arrays[ROW])
    in_order = {name: values[order] for name, values in arrays.items()}
    if any(np.isnan(in_order[c].astype(float)).any() for c in ("sle_i", y[0])):
        raise ValueError(
            "a lazy table must give the same rows each time it is read; this one does not, as a "
            "random sample would. Keep its rows first: relation.to_arrow_table(), frame.collect()."
        )
    who = np.zeros(len(order), dtype=np.intp)
    if annotator is not None:
        nobody = len(annotators)
        who = np.nan_to_num(in_order["sle_m"].astype(float), nan=nobody).astype(np.intp)
        if (who == nobody).any():
            annotators = np.asarray([*annotators, None], dtype=object)
    return Annotations(
        item=in_order["sle_i"].astype(np.intp),
        annotator=who,
        y=np.stack([in_order[c] for c in y], axis=-1)
        if rows.soft
        else in_order["sle_y"].astype(np.intp),
        uncertainty=in_order[UNCERTAINTY].astype(float),
        items=items,
        annotators=annotators,
        labels=_names(rows.labels),
    )


def _in_memory(table: Any) -> Any:
    """Rows of Dask and Spark, collected: they keep no order that could be numbered."""
    frame = None if isinstance(table, Mapping) else nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_dask():
        return frame.collect().to_native()
    if isinstance(frame, nw.LazyFrame) and is_spark(frame):
        return frame.collect("pyarrow").to_native()
    return table


def _coded(frame: Frame, column: str, code: str) -> tuple[Frame, Any]:
    """Add the place of each value among the sorted distinct values, and return those."""
    distinct = frame.select(column).filter(~nw.col(column).is_null()).unique()
    coded = distinct.with_row_index(code, order_by=column)
    arrays = to_arrays(coded)
    names = arrays[column][np.argsort(arrays[code])]
    return frame.join(coded, on=column, how="left"), names


def _names(labels: list[Any]) -> Any:
    return np.asarray(labels, dtype=object if isinstance(labels[0], str) else None)


def shared_base_rate(base_rate: Any, labels: Sequence[Any]) -> NDArray[np.float64]:
    """One base rate per label (K,), from a mapping, K numbers, or nothing for equal ones."""
    K = len(labels)
    if base_rate is None:
        return np.full(K, 1 / K)
    if isinstance(base_rate, Mapping):
        if set(base_rate) != set(labels):
            wrong = sorted(set(base_rate) ^ set(labels), key=str)
            raise ValueError(
                f"`base_rate` must name each of the {K} labels and no other; {len(wrong)} differ, "
                f"first {wrong[0]!r}. The labels are {', '.join(map(repr, labels))}."
            )
        base_rate = [base_rate[name] for name in labels]
    try:
        a = np.asarray(base_rate, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"`base_rate` must be numbers, a mapping from label to number, or columns; "
            f"{base_rate!r} came."
        ) from None
    if a.shape != (K,):
        raise ValueError(
            f"`base_rate` needs one value per label, ({K},); shape {a.shape} came. "
            "Leave it out for equal ones."
        )
    # Written so that NaN fails it.
    if not (np.all(a >= 0) and abs(np.sum(a) - 1) <= 1e-6):
        raise ValueError(
            "`base_rate` must not be negative and must sum to 1; "
            f"the smallest is {np.min(a):g} and the sum {np.sum(a):g}. "
            "Divide counts by their sum: counts / counts.sum()."
        )
    return a


def check_smoothing(smoothing: Any) -> float:
    """The share of each annotation that counts as doubt, in [0, 1)."""
    if not (isinstance(smoothing, Real) and 0 <= float(smoothing) < 1):
        raise ValueError(
            f"`smoothing` must be a number in [0, 1); {smoothing!r} came. "
            "0.01 leaves one percent of doubt, 0 takes certain annotators at their word."
        )
    return float(smoothing)
