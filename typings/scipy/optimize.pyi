from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

class OptimizeResult:
    x: NDArray[np.float64]
    fun: float
    nit: int
    success: bool
    message: str

# jac=True: `fun` gives the value and its gradient.
def minimize(
    fun: Callable[..., tuple[float, NDArray[np.float64]]],
    x0: NDArray[np.float64],
    args: tuple[Any, ...] = (),
    method: str | None = None,
    jac: bool = False,
    *,
    bounds: NDArray[np.float64] | None = None,
    callback: Callable[[NDArray[np.float64]], None] | None = None,
    options: Mapping[str, float] | None = None,
) -> OptimizeResult: ...
def isotonic_regression(
    y: NDArray[np.float64], *, weights: ArrayLike | None = None
) -> OptimizeResult: ...
def __getattr__(name: str) -> Any: ...
