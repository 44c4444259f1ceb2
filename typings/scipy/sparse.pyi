from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

class _Sparse:
    data: NDArray[np.float64]
    shape: tuple[int, int]
    @property
    def T(self) -> csr_array: ...
    @overload
    def __matmul__(self, other: _Sparse) -> csr_array: ...
    @overload
    def __matmul__(self, other: NDArray[Any]) -> NDArray[np.float64]: ...
    def __sub__(self, other: _Sparse) -> csr_array: ...
    def __getitem__(self, row: NDArray[np.intp]) -> csr_array: ...
    def multiply(self, other: NDArray[Any]) -> coo_array: ...
    def toarray(self) -> NDArray[np.float64]: ...

class csr_array(_Sparse):
    # Values with rows and columns, or with columns and where each row starts.
    def __init__(
        self,
        content: _Sparse
        | tuple[ArrayLike, tuple[ArrayLike, ArrayLike]]
        | tuple[ArrayLike, ArrayLike, ArrayLike],
        shape: tuple[int, int] | None = None,
    ) -> None: ...

class coo_array(_Sparse):
    row: NDArray[np.int32]
    col: NDArray[np.int32]
    def __init__(self, content: _Sparse, shape: tuple[int, int] | None = None) -> None: ...

def __getattr__(name: str) -> Any: ...
