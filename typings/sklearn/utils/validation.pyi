from typing import Any

from numpy.typing import NDArray

def check_array(
    array: Any, *, ensure_2d: bool = True, dtype: Any = "numeric", input_name: str = ""
) -> NDArray[Any]: ...
def check_is_fitted(estimator: Any, attributes: str | None = None) -> None: ...
def column_or_1d(y: Any, *, warn: bool = False) -> NDArray[Any]: ...
def validate_data(
    estimator: Any,
    X: Any,
    *,
    reset: bool = True,
    dtype: Any = "numeric",
    ensure_2d: bool = True,
    allow_nd: bool = False,
) -> NDArray[Any]: ...
def __getattr__(name: str) -> Any: ...
