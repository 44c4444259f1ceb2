"""What a method makes of a crowd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Called with how many iterations are done, and how many there can be: a method that converges
# ends before, so that the time left by this is the most that it takes.
Progress: TypeAlias = Callable[[int, int], None]


class Aggregate(NamedTuple):
    """A label distribution for every item, and what was learned on the way.

    Attributes
    ----------
    probability : array (N, K), in the order of `annotations.items` and `annotations.labels`
    reliability : array (M,), in [0, 1], ready for `sle(annotations, reliability=...)`; None where
        the method learns none
    details : what else the method learned, by name
    """

    probability: NDArray[np.float64]
    reliability: NDArray[np.float64] | None
    details: dict[str, Any]
