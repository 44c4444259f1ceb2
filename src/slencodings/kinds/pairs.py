"""Comparisons of two: a crowd whose items are pairs, and whose labels say which is better."""

from __future__ import annotations

from typing import Any, NamedTuple

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
