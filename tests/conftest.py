"""Fixtures that several test files share."""

import os
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings
from strategies import Arrays

# The machine is noisy, so no test is timed; a build must give the same answer twice.
settings.register_profile(
    "slencodings", max_examples=50, deadline=None, derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("slencodings")


def _read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


@pytest.fixture(
    scope="module", params=["numpy", "numpy-read-only", "array-api-strict", "torch", "jax"]
)
def xp(request: pytest.FixtureRequest) -> Iterator[Arrays]:
    """The array libraries in turn. Only their own tests import them, and JAX counts in float64."""
    match request.param:
        case "numpy":
            yield Arrays(request.param, np.asarray)
        case "numpy-read-only":
            yield Arrays(request.param, _read_only)
        case "array-api-strict":
            yield Arrays(request.param, pytest.importorskip("array_api_strict").asarray)
        case "torch":
            yield Arrays(request.param, pytest.importorskip("torch").asarray)
        case "jax":
            jax = pytest.importorskip("jax")
            with jax.enable_x64(True):
                yield Arrays(request.param, jax.numpy.asarray)
