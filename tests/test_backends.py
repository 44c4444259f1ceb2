"""Gradients, compilation and batching: PyTorch and JAX get the same numbers as NumPy."""

import shutil
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from jax_numbers import float64
from strategies import Arrays, assert_close, to_numpy

from slencodings import (
    Opinion,
    alpha,
    check,
    discount,
    encode,
    from_alpha,
    fuse,
    fuse_average,
    fuse_compromise,
    fuse_constraint,
    fuse_weighted,
    maximize_uncertainty,
    smooth,
    unfuse,
)

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

Function = Callable[[Opinion], Any]


def binomial(opinion: Opinion) -> Opinion:
    b, u, a = opinion
    return Opinion(b[..., :2], u, a[..., :2])


# Every function of the two modules, as one of a crowd.
FUNCTIONS: dict[str, Function] = {
    "encode": lambda o: encode(o.belief, o.uncertainty, base_rate=o.base_rate),
    "discount": lambda o: discount(o, 0.7),
    "discount by each": lambda o: discount(o, 1 - o.uncertainty),
    "discount by an opinion": lambda o: discount(o, binomial(o)),
    "smooth": lambda o: smooth(o, 0.01),
    "maximize_uncertainty": maximize_uncertainty,
    "alpha": alpha,
    "from_alpha": lambda o: from_alpha(o.belief + 1, base_rate=o.base_rate),
    "mode": lambda o: o.mode,
    "probability": lambda o: o.probability,
    "fuse": fuse,
    "fuse_average": fuse_average,
    "fuse_weighted": fuse_weighted,
    "fuse_constraint": fuse_constraint,
    "fuse_compromise": fuse_compromise,
    "unfuse": lambda o: unfuse(fuse(o), o.rows((..., 0))),
}
LIMITS = [(0, 0, 0), (1, 1, 1), (0, 0.5, 1), (0.5, 0, 0)]
every_function = pytest.mark.parametrize("name", FUNCTIONS)

# PyTorch says this of the caches in array-api-compat, which hold what cannot change.
about_caches = pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cach")


def opinions(*uncertainty: float) -> Opinion:
    """Two items, and no two beliefs alike, so that no minimum has a kink."""
    rng = np.random.default_rng(0)
    shape = (2, len(uncertainty))
    y, a = (rng.dirichlet(np.ones(3), size=shape) for _ in range(2))
    return encode(y, np.broadcast_to(uncertainty, shape), base_rate=a)


def to_torch(opinion: Opinion, **kwargs: Any) -> Opinion:
    return Opinion(*(torch.tensor(np.array(x), **kwargs) for x in opinion))


def to_jax(opinion: Opinion) -> Opinion:
    return Opinion(*map(jax.numpy.asarray, opinion))


def weighted_total(result: Any) -> Any:
    """A number out of any result, to which no two parts of it contribute alike."""
    parts = result if isinstance(result, Opinion) else [result]
    total = 0.0
    for i, part in enumerate(parts, start=1):
        for k in range(part.shape[-1]):
            total = total + (i + 0.1 * k) * part[..., k].sum()
    return total


@pytest.fixture(scope="module")
def _x64() -> Any:
    with float64(True):
        yield


in_double = pytest.mark.usefixtures("_x64")


@every_function
def test_every_library_gives_the_same_numbers(xp: Arrays, name: str) -> None:
    said = opinions(0.0, 0.3, 0.3, 1.0) if name != "unfuse" else opinions(0.2, 0.3, 0.3, 1.0)
    assert_close(FUNCTIONS[name](xp(said)), FUNCTIONS[name](said))


# -- gradients ---------------------------------------------------------------------------------


@every_function
@pytest.mark.parametrize("uncertainty", [(0.2, 0.5, 0.8), (0.3, 0.3, 0.6), (0.4,) * 3])
def test_gradients_are_those_of_finite_differences(
    name: str, uncertainty: tuple[float, ...]
) -> None:
    def function(*parts: Any) -> Any:
        result = FUNCTIONS[name](Opinion(*parts))
        return tuple(result) if isinstance(result, Opinion) else result

    opinion = to_torch(opinions(*uncertainty), requires_grad=True)
    assert torch.autograd.gradcheck(function, tuple(opinion))


@pytest.mark.parametrize(
    ("name", "uncertainty"),
    # A certain source cannot be taken out.
    [(name, u) for name, u in product(FUNCTIONS, LIMITS) if name != "unfuse" or u[0] > 0],
)
def test_no_gradient_is_nan_at_the_limits(name: str, uncertainty: tuple[float, ...]) -> None:
    opinion = to_torch(opinions(*uncertainty), requires_grad=True)
    weighted_total(FUNCTIONS[name](opinion)).backward()
    gradients = [part.grad for part in opinion if part.grad is not None]
    assert gradients
    assert all(bool(torch.isfinite(g).all()) for g in gradients)


def total(name: str, opinion: Opinion) -> Any:
    return weighted_total(FUNCTIONS[name](opinion))


@pytest.fixture(scope="module")
def jax_gradients(_x64: Any) -> dict[str, Opinion]:
    """Of all functions, so that what compiles them begins once."""

    def every_gradient(opinion: Opinion) -> dict[str, Opinion]:
        return {name: jax.grad(partial(total, name))(opinion) for name in FUNCTIONS}

    return jax.jit(every_gradient)(to_jax(opinions(0.2, 0.3, 0.3)))


@in_double
@every_function
def test_jax_and_torch_have_the_same_gradients(
    jax_gradients: dict[str, Opinion], name: str
) -> None:
    opinion = to_torch(opinions(0.2, 0.3, 0.3), requires_grad=True)
    total(name, opinion).backward()
    expected = (np.zeros(p.shape) if p.grad is None else p.grad for p in opinion)
    assert_close(jax_gradients[name], Opinion(*map(np.asarray, expected)), tol=1e-10)


# -- compilation -------------------------------------------------------------------------------


def every_result(opinion: Opinion) -> dict[str, Any]:
    """Of all functions, so that what compiles them begins once."""
    return {name: function(opinion) for name, function in FUNCTIONS.items()}


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    whole = torch.compile(every_result, fullgraph=True, backend="eager")
    return whole(to_torch(opinions(0.2, 0.3, 0.3)))


@about_caches
@every_function
def test_torch_compiles_all_of_it(compiled: dict[str, Any], name: str) -> None:
    assert_close(compiled[name], FUNCTIONS[name](to_torch(opinions(0.2, 0.3, 0.3))))


@about_caches
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler")
def test_torch_compiles_the_pipeline_to_machine_code() -> None:
    def encode_and_fuse(opinion: Opinion) -> Opinion:
        return fuse(smooth(discount(opinion, 0.7), 0.01))

    opinion = to_torch(opinions(0.0, 0.3, 1.0))
    # One kernel of few numbers needs no pool of processes, no headers that are compiled ahead, and
    # no trials of what vectors the processor has.
    few: Any = {"compile_threads": 1, "cpp_cache_precompile_headers": False}
    few |= {"cpp.vec_isa_ok": False}
    compiled = torch.compile(encode_and_fuse, fullgraph=True, options=few)
    assert_close(compiled(opinion), encode_and_fuse(opinion))


@pytest.fixture(scope="module")
def compiled_by_jax(_x64: Any) -> dict[str, Any]:
    return jax.jit(every_result)(to_jax(opinions(0.2, 0.3, 0.3)))


@in_double
@every_function
def test_jax_compiles_all_of_it(compiled_by_jax: dict[str, Any], name: str) -> None:
    assert_close(compiled_by_jax[name], FUNCTIONS[name](opinions(0.2, 0.3, 0.3)))


@pytest.fixture(scope="module")
def mapped_by_jax(_x64: Any) -> dict[str, Any]:
    return jax.jit(jax.vmap(every_result))(to_jax(opinions(0.2, 0.3, 0.3)))


@in_double
@every_function
def test_jax_maps_over_items(mapped_by_jax: dict[str, Any], name: str) -> None:
    assert_close(mapped_by_jax[name], FUNCTIONS[name](opinions(0.2, 0.3, 0.3)))


@every_function
def test_torch_maps_over_items(name: str) -> None:
    opinion = to_torch(opinions(0.2, 0.3, 0.3))
    assert_close(torch.func.vmap(FUNCTIONS[name])(opinion), FUNCTIONS[name](opinion))


# -- where there is no answer ------------------------------------------------------------------

IMPOSSIBLE: dict[str, Function] = {
    "fuse_constraint": fuse_constraint,
    "unfuse": lambda certain: unfuse(fuse(certain), certain.rows(0)),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_no_answer_is_an_error(xp: Arrays, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} "):
        IMPOSSIBLE[name](xp(encode(np.eye(2))))


@in_double
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_no_answer_is_nan_inside_jax_jit(name: str) -> None:
    b, u, _ = to_numpy(jax.jit(IMPOSSIBLE[name])(to_jax(encode(np.eye(2)))))
    assert np.isnan(b).all()
    assert np.isnan(u)


@about_caches
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_no_answer_is_nan_inside_torch_compile(name: str) -> None:
    compiled = torch.compile(IMPOSSIBLE[name], fullgraph=True, backend="eager")
    b, u, _ = to_numpy(compiled(to_torch(encode(np.eye(2)))))
    assert np.isnan(b).all()
    assert np.isnan(u)


@pytest.fixture(scope="module")
def in_single() -> dict[str, Any]:
    with float64(False):
        said = opinions(0.2, 0.3, 0.3)
        single = Opinion(*(jax.numpy.asarray(np.float32(x)) for x in said))
        return jax.jit(every_result)(check(single))


@every_function
def test_jax_in_single_precision_does_without_warnings(
    in_single: dict[str, Any], name: str
) -> None:
    expected, came = FUNCTIONS[name](opinions(0.2, 0.3, 0.3)), in_single[name]
    if isinstance(expected, Opinion):
        expected = Opinion(*map(np.float32, expected))
    assert_close(came, expected if isinstance(expected, Opinion) else np.float32(expected), 1e-5)
