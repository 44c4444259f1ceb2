"""How far apart two Dirichlet distributions are, in any array library and without cancellation.

The textbook formula subtracts numbers of the size A log A from each other: in float32 it is off by
14 % at a concentration of 1e6 and negative at 1e7. Here the logarithm of the gamma function is
taken apart, and each part contributes its own divergence

    G(x, y) = g(y) - g(x) - g'(x) (y - x),   g = log Gamma,   KL = sum_k G(a_k, b_k) - G(A, B)

- y log(y/x) - (y - x), of x log x - x: summed over the labels by hand, as it is by far the largest;
- e(y/x - 1) / 2 with e(t) = t - log(1 + t), of - log(x) / 2;
- that of the rest of Stirling's series, where x and y are large;
- where one of them is small, both are raised by eight, and log Gamma(x) is
  log Gamma(x + 8) - log(x (x + 1) ... (x + 7)).

Only logarithms are needed, so that it is fast and runs wherever the array API does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from operator import add
from types import ModuleType
from typing import Any, TypeAlias

import array_api_compat

Array: TypeAlias = Any
_compat: Any = array_api_compat

# Stirling's series, B_2k / (2k (2k - 1)) for k = 1, 2, ...: from 8 on what is left out is below
# 1e-11, and below 1e-10 of the derivatives.
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)
_LARGE = 8.0
# x (x + 1) ... (x + 7) is the product of w + c for w = x (x + 7): its factors i and 7 - i at once.
_PAIRS = (6.0, 10.0, 12.0)  # and 0


def kl_divergence(alpha: Array, beta: Array) -> Array:
    """KL(Dir(alpha) || Dir(beta)), (...), zero for equal ones and never negative.

    log Gamma(A) - log Gamma(B) - sum_k (log Gamma(a_k) - log Gamma(b_k))
    + sum_k (a_k - b_k)(psi(a_k) - psi(A)),   computed as the head of this module says

    Parameters
    ----------
    alpha, beta : array (..., K), above 0 and finite, of the same library and floating type

    Examples
    --------
    >>> import numpy as np
    >>> round(float(kl_divergence(np.asarray([2e7, 1e7]), np.asarray([2e7, 1e7 + 1e4]))), 6)
    3.331853
    """
    if _compat.is_jax_array(alpha):
        return _with_derivatives_for_jax()(alpha, beta)
    return kl_and_gradients(alpha, beta, first=False, second=False)[0]


def kl_and_gradients(
    alpha: Array, beta: Array, *, first: bool = True, second: bool = True
) -> tuple[Array, Array | None, Array | None]:
    """`kl_divergence`, and its derivatives in alpha and in beta as far as they are asked for.

    (a_k - b_k) psi'(a_k) - (A - B) psi'(A)   and   psi(b_k) - psi(a_k) - psi(B) + psi(A)

    Examples
    --------
    >>> import numpy as np
    >>> kl_and_gradients(np.asarray([1.0, 1.0]), np.asarray([1.0, 2.0]))[2].round(6)
    array([-0.5,  0.5])
    """
    xp = _compat.array_namespace(alpha, beta)
    A, B = xp.sum(alpha, axis=-1, keepdims=True), xp.sum(beta, axis=-1, keepdims=True)
    p, q = alpha / A, beta / B
    # Logarithms of ratios as log(1 + what the larger has more), which is precise near and far.
    sign = _sign(xp, q - p)
    log_pq = sign * xp.log1p(sign * (q - p) / xp.minimum(p, q))

    # From here on the total is a last label.
    x, y = xp.concat([alpha, A], axis=-1), xp.concat([beta, B], axis=-1)
    gap, low = y - x, xp.minimum(x, y)
    small = xp.astype(low < _LARGE, x.dtype)
    raised = _LARGE * small
    s, r = x + raised, y + raised
    sign = _sign(xp, gap)
    more, w = sign * gap, low * (low + 7)
    more_w = more * (x + y + 7)
    log_xy, log_sr = sign * xp.log1p(more / low), sign * xp.log1p(more / (low + raised))
    log_products = sign * _log_products(xp, w, more_w * small)
    reciprocals, *squares = _sums(x, 2 if first else 1)
    inverse, m, slope, *curve = _series(s, 3 if first else 2)
    inverse_r, m_r, *slope_r = _series(r, 2 if second else 1)

    rest = gap * (0.5 * inverse - slope) - 0.5 * log_sr + (m_r - m)
    rest = rest + small * (r * log_sr - y * log_xy + gap * reciprocals - log_products)
    kl = xp.sum(B * (p - q + q * log_pq) + rest[..., :-1], axis=-1) - rest[..., -1]
    # Rounding may leave what hardly differs a hair below zero; NaN stays.
    kl = xp.maximum(kl, xp.zeros_like(kl))

    in_alpha = in_beta = None
    if first:
        # psi'(x) less 1/x, which is put together by hand: it cancels where one label has most.
        raised_only = squares[0] - _LARGE * inverse / x
        rest = gap * (0.5 * inverse * inverse + curve[0] + small * raised_only)
        in_alpha = (p - q) / p * (B / A) - rest[..., :-1] + rest[..., -1:]
    if second:
        # psi(y) - psi(x), less log(y/x).
        rest = 0.5 * gap * inverse * inverse_r + (slope_r[0] - slope)
        rest = rest + small * (log_sr - log_xy - (_sums(y, 1)[0] - reciprocals))
        in_beta = log_pq + rest[..., :-1] - rest[..., -1:]
    return kl, in_alpha, in_beta


@cache
def _with_derivatives_for_jax() -> Callable[[Array, Array], Array]:
    # Compiled, JAX may work out a sign twice and differently, and its own derivative is then off.
    import jax

    @jax.custom_jvp
    def kl(alpha: Array, beta: Array) -> Array:
        return kl_and_gradients(alpha, beta, first=False, second=False)[0]

    @kl.defjvp
    def derive(at: tuple[Array, Array], along: tuple[Array, Array]) -> tuple[Array, Array]:
        value, in_alpha, in_beta = kl_and_gradients(*at)
        return value, (in_alpha * along[0] + in_beta * along[1]).sum(axis=-1)

    return kl


def _sign(xp: ModuleType, x: Array) -> Array:
    """1 or -1, and 1 for 0: derivatives there would be lost by the sign 0 of `xp.sign`."""
    return xp.copysign(xp.ones_like(x), x)


def _series(x: Array, count: int) -> list[Array]:
    """1/x; what follows (x - 1/2) log x - x + log(2 pi)/2 in Stirling's series, its derivatives."""
    inverse = 1 / x
    square = inverse * inverse
    result = [inverse]
    for order in range(count):
        ks = range(len(_SERIES), 0, -1)
        terms = [_SERIES[k - 1] * (1, 1 - 2 * k, (2 * k - 1) * 2 * k)[order] for k in ks]
        total: Array = terms[0]
        for term in terms[1:]:
            total = total * square + term
        total = total * square if order else total
        result.append(total if order == 1 else total * inverse)
    return result


def _log_products(xp: ModuleType, w: Array, more: Array) -> Array:
    """log of the product of (v + c) / (w + c) for v = w + more, more >= 0, two and two at once.

    (v + c)(v + d) = (w + c)(w + d) + more (w + v + c + d)
    """
    both = more + 2 * w
    outer = more * (both + 12) / (w * (w + 12))
    inner = more * (both + 16) / ((w + 6) * (w + 10))
    return xp.log1p(outer) + xp.log1p(inner)


def _sums(x: Array, count: int) -> list[Array]:
    """1/x + 1/(x + 1) + ... + 1/(x + 7), and the same of the squares."""
    w, slope = x * (x + 7), 2 * x + 7
    inverses: list[Array] = [1 / w, *(1 / (w + c) for c in _PAIRS)]
    total = reduce(add, inverses)
    if count == 1:
        return [slope * total]
    squares = reduce(add, [v * v for v in inverses])
    return [slope * total, slope * slope * squares - 2 * total]
