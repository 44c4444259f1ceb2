"""Comparisons of two: a crowd whose items are pairs, and whose labels say which is better."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.opinion import Codes

# Which of the two is better, by where it stood.
LABELS = ("left", "tie", "right")


class Pairs(NamedTuple):
    """A crowd whose items set two options side by side.

    Attributes
    ----------
    annotations : Annotations of N pairs, by judges, with the labels left, tie and right
    left, right : int arrays (N,), positions in `options`
    options : array (P,), the names of what is compared
    prompts : array (N,), what was asked of both; None if nothing was
    """

    annotations: Annotations
    left: Codes
    right: Codes
    options: NDArray[Any]
    prompts: NDArray[Any] | None = None

    def rows(self, index: Any) -> Pairs:
        """Take some of the judgments; pairs, judges and options stay."""
        return self._replace(annotations=self.annotations.rows(index))

    @property
    def met(self) -> Codes:
        """Which two options meet, (N,), the same for both placings and for every prompt."""
        P = len(self.options)
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        return np.unique(low * P + high, return_inverse=True)[1]

    @property
    def unplaced(self) -> Pairs:
        """The same judgments, with both placings of two options of a prompt as one pair.

        The option that comes first in `options` stands left, and labels are in an order: a tie is
        between left and right. It tells what judges agree on, wherever things stood.
        """
        a, turned = self.annotations, self.left > self.right
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        asked = np.zeros(len(low), dtype=np.intp)
        if self.prompts is not None:
            asked = np.unique(self.prompts.astype(str), return_inverse=True)[1]
        keys, first, pair = np.unique(
            np.stack([asked, low, high], axis=1), axis=0, return_index=True, return_inverse=True
        )
        flipped = turned[a.item]
        y = np.where(flipped[:, None], a.y[:, ::-1], a.y) if a.soft else np.where(
            flipped, len(LABELS) - 1 - a.y, a.y
        )  # fmt: skip
        prompts = None if self.prompts is None else self.prompts[first]
        names = names_of_pairs(self.options, keys[:, 1:], prompts)
        annotations = replace(a, item=pair.ravel()[a.item], y=y, items=names, ordered=True)
        return Pairs(annotations, keys[:, 1], keys[:, 2], self.options, prompts)


def names_of_pairs(
    options: NDArray[Any], pairs: Codes, prompts: NDArray[Any] | None = None
) -> NDArray[Any]:
    """What items are called that set two of the options, (N, 2), side by side, (N,)."""
    words = options[pairs] if prompts is None else np.column_stack([prompts, options[pairs]])
    return np.asarray([" | ".join(map(str, row)) for row in words], dtype=object)
