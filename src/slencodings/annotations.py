"""Who said what about which item, and how unsure they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
        return self.y if self.soft else np.eye(len(self.labels))[self.y]

    def sums(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Add up the labels of each item, each times its weight: an array (N, K).

        >>> crowd = Annotations(*(np.asarray(x) for x in (
        ...     [0, 0, 1], [0, 1, 0], [1, 1, 0], [0.0, 0.5, 0.0], ["p", "q"], ["ann", "bob"], [0, 1])))
        >>> crowd.sums()
        array([[0., 2.],
               [1., 0.]])
        """
        shape = len(self.items), len(self.labels)
        if self.soft:
            weighted = self.y if weight is None else self.y * weight[:, None]
            columns = [np.bincount(self.item, column, shape[0]) for column in weighted.T]
            return np.stack(columns, axis=-1)
        return (
            np.bincount(self.item * shape[1] + self.y, weight, shape[0] * shape[1])
            .reshape(shape)
            .astype(float)
        )

    def per_annotation(self, reliability: Any) -> NDArray[np.float64]:
        """Reliability as one number per annotation (R,), checked to lie in [0, 1].

        Takes a number, an array (M,) in the order of `annotators`, an array (R,), a mapping from
        annotator to number, or nothing for full trust. An array of M = R values is per annotator.
        """
        if reliability is None:
            reliability = 1.0
        if isinstance(reliability, Mapping):
            unknown = [name for name in self.annotators.tolist() if name not in reliability]
            if unknown:
                raise ValueError(
                    f"`reliability` must know every annotator; {len(unknown)} of "
                    f"{len(self.annotators)} are missing, first {unknown[0]!r}. "
                    "Add them, for example dict.fromkeys(annotations.annotators, 0.8) | reliability."
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
