from collections.abc import Mapping
from os import PathLike
from typing import Any

from torch import Tensor

def save_file(
    tensors: Mapping[str, Tensor],
    filename: str | PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None: ...
def __getattr__(name: str) -> Any: ...
