from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

class _Continuous:
    def ppf(self, q: ArrayLike, *shape: ArrayLike) -> NDArray[np.float64]: ...
    def isf(self, q: ArrayLike, *shape: ArrayLike) -> NDArray[np.float64]: ...

norm: _Continuous
t: _Continuous
beta: _Continuous

def __getattr__(name: str) -> Any: ...
