"""How exactly JAX counts, by whatever name its version knows that, and how it compiles."""

from contextlib import AbstractContextManager
from importlib import import_module
from importlib.metadata import distributions
from typing import Any


def float64(on: bool) -> AbstractContextManager[Any]:
    """Within this, JAX counts in float64, or in float32."""
    here: Any = import_module("jax")
    place = here if hasattr(here, "enable_x64") else import_module("jax.experimental")
    return place.enable_x64(on)


def quick_to_compile() -> str:
    """Flags of XLA, which compiles each small computation of the tests once, and runs it once."""
    flags = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    known = next((found.version for found in distributions(name="jax")), "")
    # What makes faster code of several steps takes as long again. XLA ends a process over a flag
    # that it does not know, and older ones than this do not, nor may later ones.
    return flags + " --xla_cpu_use_fusion_emitters=false" * known.startswith("0.10.")
