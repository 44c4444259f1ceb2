"""The divergence of Dirichlets, against mpmath and against its own laws, in three libraries."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jax_numbers import float64
from scipy import integrate, stats
from strategies import Arrays, assert_close, assert_relatively_close

from slencodings.divergence import kl_and_gradients, kl_divergence

CASES = json.loads((Path(__file__).parent / "data" / "kl.json").read_text())["cases"]
KINDS = sorted({case["kind"] for case in CASES})
every_kind = pytest.mark.parametrize("kind", KINDS)
CONCENTRATIONS = st.floats(-2, 8).map(lambda power: 10.0**power)


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [
        {name: np.asarray(case[name]) for name in ("alpha", "beta", "kl", "in_alpha", "in_beta")}
        for case in CASES
        if case["kind"] == kind
    ]


def assert_gradient_close(actual: Any, expected: np.ndarray, tol: float) -> None:
    """Equal to `tol` of the largest part: the others may be what is left of a difference."""
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=0, atol=tol * abs(expected).max())


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = (draw(st.integers(1, 3)), draw(st.integers(2, 5)))
    alpha, beta = (draw(arrays(float, shape, elements=CONCENTRATIONS)) for _ in range(2))
    return alpha, beta


# -- values and gradients ----------------------------------------------------------------------


@every_kind
def test_values_and_gradients_are_those_of_mpmath(kind: str) -> None:
    for case in of_kind(kind):
        kl, in_alpha, in_beta = kl_and_gradients(case["alpha"], case["beta"])
        assert_relatively_close(kl, case["kl"], 1e-9)
        assert_gradient_close(in_alpha, case["in_alpha"], 1e-7)
        assert_gradient_close(in_beta, case["in_beta"], 1e-7)


@pytest.mark.parametrize("kind", ["wide", "one scale", "ends"])
def test_single_precision_is_enough_where_opinions_differ(kind: str) -> None:
    for case in of_kind(kind):
        alpha, beta = np.float32(case["alpha"]), np.float32(case["beta"])
        single = kl_and_gradients(alpha, beta)
        double = kl_and_gradients(alpha.astype(float), beta.astype(float))
        assert all(part is not None and part.dtype == np.float32 for part in single)
        assert_relatively_close(single[0], double[0], 5e-5)
        for came, expected in zip(single[1:], double[1:], strict=True):
            assert_gradient_close(came, np.asarray(expected), 5e-5)


def test_the_value_is_the_integral() -> None:
    p: Any = stats.beta(2.5, 0.8)
    q: Any = stats.beta(1.2, 3.0)
    expected, _ = integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), 0, 1, limit=200)
    assert_close(kl_divergence(np.asarray([2.5, 0.8]), np.asarray([1.2, 3.0])), expected, 1e-7)


def test_what_is_not_asked_for_is_not_there() -> None:
    alpha, beta = np.asarray([1.0, 2.0]), np.asarray([2.0, 2.0])
    kl, in_alpha, in_beta = kl_and_gradients(alpha, beta)
    assert kl_and_gradients(alpha, beta, first=False, second=False) == (kl, None, None)
    assert_close(kl_and_gradients(alpha, beta, second=False)[1], in_alpha)
    assert_close(kl_and_gradients(alpha, beta, first=False)[2], in_beta)


# -- laws --------------------------------------------------------------------------------------


@given(pairs(), st.sampled_from([np.float32, np.float64]))
def test_it_is_finite_and_never_negative(pair: Any, dtype: type) -> None:
    parts: Any = kl_and_gradients(*(x.astype(dtype) for x in pair))
    assert (parts[0] >= 0).all()
    assert all(np.isfinite(part).all() for part in parts)


@given(pairs(), st.floats(1e-9, 1e-3))
def test_it_is_not_negative_for_what_hardly_differs(pair: Any, step: float) -> None:
    alpha, _ = pair
    assert (kl_divergence(alpha, alpha * (1 + step)) >= 0).all()


@given(pairs(), st.sampled_from([np.float32, np.float64]))
def test_it_is_zero_for_equal_ones_and_so_are_its_gradients(pair: Any, dtype: type) -> None:
    alpha = pair[0].astype(dtype)
    for part in kl_and_gradients(alpha, alpha.copy()):
        assert_close(part, np.zeros_like(part), 0)


@given(pairs())
def test_the_order_of_labels_does_not_matter(pair: Any) -> None:
    alpha, beta = pair
    kl = kl_divergence(alpha, beta)
    assert_close(kl_divergence(alpha[:, ::-1], beta[:, ::-1]) / (1 + kl), kl / (1 + kl), 1e-9)


def test_merging_labels_brings_two_closer() -> None:
    alpha, beta = np.asarray([3.0, 1.0, 0.5]), np.asarray([1.0, 20.0, 4.0])
    merged = (np.asarray([x[0], x[1] + x[2]]) for x in (alpha, beta))
    assert kl_divergence(*merged) < kl_divergence(alpha, beta)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_concentration_is_not_taken_for_zero(bad: float) -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(kl_divergence(np.asarray([bad, 1.0]), np.asarray([1.0, 1.0])))


# -- libraries ---------------------------------------------------------------------------------


def some_pair() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    alpha, beta = 10 ** rng.uniform(-2, 6, (2, 6, 3))
    # Two equal ones and two of one mean, where absolute values and minima have their kinks.
    beta[0], beta[1] = alpha[0], 2 * alpha[1]
    return alpha, beta


def test_every_library_gives_the_same_numbers(xp: Arrays) -> None:
    alpha, beta = some_pair()
    came = kl_and_gradients(xp.array(alpha), xp.array(beta))
    for part, expected in zip(came, kl_and_gradients(alpha, beta), strict=True):
        assert_gradient_close(part, np.asarray(expected), 1e-12)


def of_jax(kind: str, K: int, dtype: type) -> list[Any]:
    """The cases of a kind with K labels at once: JAX compiles for every shape anew."""
    cases = [case for case in of_kind(kind) if len(case["alpha"]) == K]
    names = ("alpha", "beta", "kl", "in_alpha", "in_beta")
    return [np.asarray([case[name] for case in cases], dtype=dtype) for name in names]


def assert_gradients_close(actual: Any, expected: Any, tol: float) -> None:
    for row, right in zip(np.asarray(actual), np.asarray(expected), strict=True):
        assert_gradient_close(row, right, tol)


@every_kind
def test_jax_compiles_maps_and_differentiates_it(kind: str) -> None:
    jax = pytest.importorskip("jax")
    with float64(True):
        alpha, beta, kl, in_alpha, in_beta = of_jax(kind, 3, float)
        both = jax.jit(jax.vmap(jax.value_and_grad(kl_divergence, argnums=(0, 1))))
        value, gradients = both(jax.numpy.asarray(alpha), jax.numpy.asarray(beta))
        assert_relatively_close(value, kl, 1e-9)
        assert_gradients_close(gradients[0], in_alpha, 1e-7)
        assert_gradients_close(gradients[1], in_beta, 1e-7)


def test_jax_finds_no_gradient_between_equal_ones() -> None:
    jax = pytest.importorskip("jax")
    alpha = jax.numpy.asarray([0.1, 7.0, 8.0, 1e6])
    derive = jax.jit(jax.grad(kl_divergence, argnums=(0, 1)))
    for gradient in derive(alpha, alpha + 0):
        np.testing.assert_allclose(gradient, np.zeros(4), atol=1e-6)


def test_jax_in_single_precision_is_sane() -> None:
    jax = pytest.importorskip("jax")
    alpha, beta, kl, in_alpha, _ = of_jax("one scale", 3, np.float32)
    both = jax.jit(jax.vmap(jax.value_and_grad(kl_divergence)))
    value, gradient = both(jax.numpy.asarray(alpha), jax.numpy.asarray(beta))
    assert value.dtype == np.float32
    assert_relatively_close(value, kl, 1e-4)
    assert_gradients_close(gradient, in_alpha, 1e-4)
