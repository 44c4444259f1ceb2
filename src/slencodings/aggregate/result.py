"""What a method makes of a crowd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from slencodings.opinion import Floats

# Called with how many iterations are done, and how many there can be: a method that converges
# ends before, so that the time left by this is the most that it takes.
OnStep: TypeAlias = Callable[[int, int], None]


class Aggregate(NamedTuple):
    """A label distribution for every item, and what was learned on the way.

    Attributes
    ----------
    probability : array (N, K), in the order of `annotations.items` and `annotations.labels`
    reliability : array (M,), in [0, 1], ready for `sle(annotations, reliability=...)`; None where
        the method learns none
    details : what else the method learned, by name
    """

    probability: Floats
    reliability: Floats | None
    details: dict[str, Any]
