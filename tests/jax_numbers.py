"""How exactly JAX counts, by whatever name its version knows that."""

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any


def float64(on: bool) -> AbstractContextManager[Any]:
    """Within this, JAX counts in float64, or in float32."""
    here: Any = import_module("jax")
    place = here if hasattr(here, "enable_x64") else import_module("jax.experimental")
    return place.enable_x64(on)
