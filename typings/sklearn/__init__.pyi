# The part of scikit-learn that we use, which has no types of its own.

from typing import Any

def __getattr__(name: str) -> Any: ...
