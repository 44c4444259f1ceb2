# The part of SciPy that we use, which has no types of its own. pyright reads `typings/` unasked.

from typing import Any

def __getattr__(name: str) -> Any: ...
