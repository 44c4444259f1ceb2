"""What the tests of opinions draw, convert and compare."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from slencodings import Opinion, encode

T = TypeVar("T")
EPS = float(np.finfo(float).eps)

# Certain, vacuous and nearly so come as often as all the rest.
MIDDLING = st.floats(0.01, 0.99)
UNSURE = MIDDLING | st.sampled_from([1e-12, 1e-3, 1 - 1e-12, 1.0])
ANY = UNSURE | st.just(0.0)
# Certain or far from it: between the two a limit has not been reached.
CERTAIN_OR_NOT = st.floats(0.05, 1.0) | st.just(0.0)

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
SOURCES = st.integers(1, 6) | st.just(40)
LABELS = st.integers(2, 6)
BATCHES = st.sampled_from([(), (1,), (3,), (2, 2)])


def one_in(n: int) -> settings:
    """One example where others have `n`, for laws that take long; never the simplest alone."""
    return settings(max_examples=max(2, present(settings.default).max_examples // n))


def _rows_that_sum_to_one(shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    def normalise(counts: np.ndarray) -> np.ndarray:
        counts[..., 0] += counts.sum(-1) == 0
        return counts / counts.sum(-1, keepdims=True)

    return arrays(np.int64, shape, elements=st.integers(0, 5)).map(normalise)


@st.composite
def crowds(
    draw: st.DrawFn,
    *,
    uncertainty: st.SearchStrategy[float] = ANY,
    sources: st.SearchStrategy[int] = SOURCES,
    labels: st.SearchStrategy[int] = LABELS,
    batch: st.SearchStrategy[tuple[int, ...]] = BATCHES,
    shared_base_rate: bool = False,
) -> Opinion:
    """Opinions of shape (*batch, N), to be fused over their last axis."""
    K, N, shape = draw(labels), draw(sources), draw(batch)
    y = draw(_rows_that_sum_to_one((*shape, N, K)))
    u = draw(arrays(float, (*shape, N), elements=uncertainty))
    a = draw(_rows_that_sum_to_one((K,) if shared_base_rate else (*shape, N, K)))
    return encode(y, u, base_rate=a)


def small_crowds(**kwargs: Any) -> st.SearchStrategy[Opinion]:
    """Few enough to be worked out in fractions, all tuples of labels one by one."""
    return crowds(
        **{"sources": st.integers(1, 4), "labels": st.integers(2, 4), "batch": st.just(())} | kwargs
    )


def join(*crowds: Opinion) -> Opinion:
    """One crowd out of several."""
    b, u, a = zip(*crowds, strict=True)
    return Opinion(np.concat(b, axis=-2), np.concat(u, axis=-1), np.concat(a, axis=-2))


def vacuous_like(crowd: Opinion) -> Opinion:
    return Opinion(np.zeros_like(crowd.belief), np.ones_like(crowd.uncertainty), crowd.base_rate)


def relabel(opinion: Opinion, order: np.ndarray) -> Opinion:
    b, u, a = opinion
    return Opinion(b[..., order], u, a[..., order])


class Arrays(NamedTuple):
    """An array library: `array` makes a NumPy array its own, calling does so to an opinion.

    JAX compiles each step of a function for each shape, or a `whole` function, which costs less.
    """

    name: str
    array: Callable[[np.ndarray], Any]
    whole: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function

    def __call__(self, opinion: Opinion) -> Opinion:
        return Opinion(*(self.array(np.array(x)) for x in opinion))


def to_numpy(opinion: Opinion) -> Opinion:
    return Opinion(*(np.asarray(x) for x in opinion))


def assert_close(actual: Any, expected: Any, tol: float = 1e-12) -> None:
    """Two opinions, or two arrays, are equal to `tol`; the shapes too."""
    if isinstance(expected, Opinion):
        for name, x, y in zip(Opinion._fields, actual, expected, strict=True):
            _assert_arrays_close(x, y, tol, name)
    else:
        _assert_arrays_close(actual, expected, tol, "array")


def _assert_arrays_close(actual: Any, expected: Any, tol: float, name: str) -> None:
    x, y = np.asarray(actual), np.asarray(expected)
    # Nearly always so, and seen ten times as fast; NaN and infinity are looked at below.
    if x.shape == y.shape and x.dtype == y.dtype and x.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            apart = np.abs(x - y)
            if np.all((apart <= tol + tol * np.abs(y)) & (apart < np.inf)):
                return
    np.testing.assert_allclose(x, y, rtol=tol, atol=tol, strict=True, err_msg=name)


def assert_relatively_close(actual: Any, expected: Any, tol: float = 1e-12) -> None:
    """Each number is equal to `tol` of itself, however small."""
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=0)


def assert_same_row(one: Any, two: Any, *, but: Any = (), tol: float = 1e-12) -> None:
    """Two rows by name are equal, numbers to `tol`; what is in `but` may differ."""
    assert one.keys() == two.keys()
    for name in one.keys() - set(but):
        value = one[name]
        expected = pytest.approx(value, abs=tol) if isinstance(value, float) else value
        assert two[name] == expected, name


def present(value: T | None) -> T:
    """What may be None elsewhere, and is not here."""
    assert value is not None
    return value


def assert_is_opinion(opinion: Opinion, tol: float = 1e-12) -> None:
    """Nothing is negative, and the masses sum to one."""
    b, u, a = to_numpy(opinion)
    assert (b >= 0).all()
    assert (u >= 0).all()
    assert (a >= 0).all()
    np.testing.assert_allclose(b.sum(-1) + u, 1, rtol=0, atol=tol)
    np.testing.assert_allclose(a.sum(-1), 1, rtol=0, atol=tol)
