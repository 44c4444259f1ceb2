"""Opinions, and what can be done to one of them.

An opinion says how far each label is believed, how much is left uncertain, and what to expect of
what is left: `sum(belief) + uncertainty == 1`. It is a Dirichlet distribution in other words.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import array_api_compat
import numpy as np
from numpy.typing import NDArray

# Where arrays are NumPy's: numbers, and places in a list of names.
Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]
# The array API standard has no type to name yet; a NumPy, PyTorch, JAX or CuPy array is meant.
Array: TypeAlias = Any
# W of the Dirichlets that opinions stand for, unless it is said or learned.
USUAL_WEIGHT = 2.0
# Of the standard normal, for intervals of 95 in 100.
Z_95 = 1.959963984540054
# Its own types are unions with libraries that may be absent, unknown to a type checker.
_compat: Any = array_api_compat


class Opinion(NamedTuple):
    """Belief, uncertainty and base rate; it has the shape of its uncertainty.

    Attributes
    ----------
    belief : array (..., K), not negative
    uncertainty : array (...), in [0, 1]; 0 is dogmatic, 1 is vacuous
    base_rate : array (..., K), sums to one over the last axis

    Examples
    --------
    >>> opinion = encode(np.asarray([[1.0, 0.0], [0.0, 1.0]]), np.asarray([0.0, 0.5]))
    >>> opinion.probability
    array([[1.  , 0.  ],
           [0.25, 0.75]])
    """

    belief: Array
    uncertainty: Array
    base_rate: Array

    @property
    def probability(self) -> Array:
        """The expected label distribution, `P = b + u a` (Eq. 2), shape (..., K)."""
        b, u, a = self
        return b + u[..., None] * a

    @property
    def mode(self) -> Array:
        """The believed labels alone, `b / sum(b)`, and the base rate where nothing is believed."""
        b, _, a = self
        xp = _compat.array_namespace(b)
        c = xp.sum(b, axis=-1, keepdims=True)
        vacuous = c == 0
        return xp.where(vacuous, a, b / xp.where(vacuous, xp.ones_like(c), c))

    def rows(self, index: Any) -> Opinion:
        """Take some of the opinions: `index` counts the axes of `uncertainty`.

        >>> encode(np.eye(3), np.asarray([0.1, 0.2, 0.3])).rows([2, 0]).uncertainty
        array([0.3, 0.1])
        """
        b, u, a = self
        if not isinstance(index, tuple):
            index = (index,)
        with_labels: Any = (*index, slice(None))
        return Opinion(b[with_labels], u[index], a[with_labels])


def encode(y: Array, uncertainty: Array = 0.0, *, base_rate: Array | None = None) -> Opinion:
    """Turn labels into opinions (Eq. 5).

    b = (1 - u) y,   u = uncertainty,   a = 1 / K

    Parameters
    ----------
    y : array (..., K), one-hot or probabilities over the last axis
    uncertainty : array (...), in [0, 1]
    base_rate : array (..., K), uniform when absent

    Examples
    --------
    >>> encode(np.asarray([0.0, 1.0]), np.asarray(0.25)).belief
    array([0.  , 0.75])
    """
    xp, y, u, a = _floats(y, uncertainty, 1.0 if base_rate is None else base_rate)
    if y.ndim == 0:
        raise ValueError(
            "`y` needs the K labels on its last axis; a single number came. "
            "Turn label codes into vectors first: np.eye(K)[codes]."
        )
    shape = _broadcast(("y without its last axis", y.shape[:-1]), ("uncertainty", u.shape))
    u = xp.broadcast_to(u, shape)
    b = (1 - u)[..., None] * y
    return Opinion(b, u, _per_label(xp, a, b.shape, uniform=base_rate is None))


def discount(opinion: Opinion, reliability: Array | Opinion) -> Opinion:
    """Trust an opinion only as far as its source is reliable (Eq. 4).

    b' = r b,   u' = 1 - r sum(b) = u + (1 - r) sum(b),   a' = a

    Parameters
    ----------
    reliability : array that broadcasts to the shape of the opinion, in [0, 1]; or a binomial
        Opinion (trustworthy, not), of which only the projected probability counts

    Examples
    --------
    >>> discount(encode(np.eye(2), 0.5), [0.5, 0.0])
    Opinion(belief=array([[0.25, 0.  ], [0.  , 0.  ]]),
            uncertainty=array([0.75, 1.  ]),
            base_rate=array([[0.5, 0.5], [0.5, 0.5]]))
    """
    if isinstance(reliability, Opinion):
        if reliability.belief.shape[-1] != 2:
            raise ValueError(
                "`reliability` as an opinion must be binomial, (trustworthy, not); "
                f"one over {reliability.belief.shape[-1]} labels came. "
                "Pass a number in [0, 1], such as reliability.probability[..., 0]."
            )
        reliability = reliability.probability[..., 0]
    xp, b, u, a, r = _floats(*opinion, reliability)
    _broadcast(("opinion", u.shape), ("reliability", r.shape), onto="opinion")
    # This form of u' is exact where r = 1, so certainty survives full trust.
    c = xp.sum(b, axis=-1)
    return Opinion(r[..., None] * b, u + (1 - r) * c, a)


def smooth(opinion: Opinion, amount: Array) -> Opinion:
    """Move a share of the belief to uncertainty (Eq. 11, with its mass conserved).

    b' = (1 - e) b,   u' = u + e sum(b);   the same as `discount(opinion, 1 - e)`

    Examples
    --------
    >>> smooth(encode(np.asarray([0.0, 1.0])), 0.01).belief
    array([0.  , 0.99])
    """
    xp, b, u, a, e = _floats(*opinion, amount)
    _broadcast(("opinion", u.shape), ("amount", e.shape), onto="opinion")
    return Opinion((1 - e)[..., None] * b, u + e * xp.sum(b, axis=-1), a)


def maximize_uncertainty(opinion: Opinion) -> Opinion:
    """Believe as little as the projected probability allows; that probability stays.

    u' = min over a_k > 0 of P_k / a_k,   b' = P - a u'

    Examples
    --------
    >>> maximize_uncertainty(encode(np.asarray([0.75, 0.25]))).belief
    array([0.5, 0. ])
    """
    xp, b, u, a = _floats(*opinion)
    P = Opinion(b, u, a).probability
    impossible = a <= 0
    ratio = P / xp.where(impossible, xp.ones_like(a), a)
    u = xp.min(xp.where(impossible, xp.full_like(ratio, float("inf")), ratio), axis=-1)
    # Rounding may leave a label a hair below zero belief.
    b = P - a * u[..., None]
    return Opinion(xp.where(b < 0, xp.zeros_like(b), b), u, a)


def alpha(
    opinion: Opinion, *, prior_weight: float = 2.0, base_weight: float | None = None
) -> Array:
    """The concentrations of the Dirichlet that an opinion stands for (Eq. 1).

    alpha = W b / u + C a,   C = W unless said;   infinite for what a dogmatic opinion believes

    Parameters
    ----------
    prior_weight : W, the pseudo-counts that a vacuous opinion is worth
    base_weight : C; the paper prints W = 2, C = K, whose mean is Eq. 2 only where K = 2

    Examples
    --------
    >>> alpha(encode(np.asarray([0.0, 1.0]), np.asarray(0.5)))
    array([1., 3.])
    """
    xp, b, u, a = _floats(*opinion)
    C = prior_weight if base_weight is None else base_weight
    u = u[..., None]
    dogmatic = u == 0
    ratio = b / xp.where(dogmatic, xp.ones_like(u), u)
    ratio = xp.where(dogmatic & (b > 0), xp.full_like(b, float("inf")), ratio)
    return prior_weight * ratio + C * a


def from_alpha(
    alpha: Array,
    *,
    base_rate: Array | None = None,
    prior_weight: float = 2.0,
    base_weight: float | None = None,
) -> Opinion:
    """The opinion that a Dirichlet stands for: the inverse of `alpha`.

    b = (alpha - C a) / S,   u = W / S,   S = sum(alpha) - C + W

    Parameters
    ----------
    alpha : array (..., K), finite, each at least C a_k (less would be negative belief)
    base_rate : array (..., K), uniform when absent

    Examples
    --------
    >>> from_alpha(np.asarray([1.0, 3.0])).belief
    array([0. , 0.5])
    """
    C = prior_weight if base_weight is None else base_weight
    xp, alpha, a = _floats(alpha, 1.0 if base_rate is None else base_rate)
    if alpha.ndim == 0:
        raise ValueError(
            "`alpha` needs the K labels on its last axis; a single number came. "
            "A Beta(s, t) is the Dirichlet np.asarray([s, t])."
        )
    a = _per_label(xp, a, alpha.shape, uniform=base_rate is None)
    S = xp.sum(alpha, axis=-1) - C + prior_weight
    return Opinion((alpha - C * a) / S[..., None], prior_weight / S, a)


def credible_interval(
    opinion: Opinion, *, coverage: float = 0.95, prior_weight: float = 2.0
) -> tuple[Floats, Floats]:
    """Between which the probability of each label lies: two arrays (..., K), of NumPy.

    Quantiles of Beta(alpha_k, sum(alpha) - alpha_k), which is what a Dirichlet says of one label;
    both are P where the opinion is dogmatic.

    Examples
    --------
    >>> low, high = credible_interval(encode(np.asarray([0.9, 0.1]), np.asarray(0.1)))
    >>> low.round(2), high.round(2)
    (array([0.68, 0.03]), array([0.97, 0.32]))
    """
    from scipy.special import betaincinv

    if not 0 < coverage < 1:
        raise ValueError(f"`coverage` must lie between 0 and 1; {coverage:g} came. 0.95 is usual.")
    numbers = Opinion(*(np.asarray(x, dtype=float) for x in opinion))
    P, alphas = numbers.probability, alpha(numbers, prior_weight=prior_weight)
    rest = prior_weight / np.where(numbers.uncertainty > 0, numbers.uncertainty, 1)[..., None]
    rest = rest - alphas
    known = (numbers.uncertainty > 0)[..., None] & (alphas > 0) & (rest > 0)
    a, b = np.where(known, alphas, 1), np.where(known, rest, 1)
    tail = (1 - coverage) / 2
    ends: list[Floats] = [np.where(known, betaincinv(a, b, x), P) for x in (tail, 1 - tail)]
    return ends[0], ends[1]


def check(opinion: Opinion) -> Opinion:
    """Return the opinion if it is one, and say what is wrong if not.

    Examples
    --------
    >>> check(Opinion(np.asarray([0.5, 0.6]), np.asarray(0.2), np.asarray([0.5, 0.5])))
    Traceback (most recent call last):
    ValueError: belief and uncertainty must sum to 1; 1 of 1 opinions do not, first 1.3 ...
    """
    xp, b, u, a = _floats(*opinion)
    if b.shape != a.shape or b.shape[:-1] != u.shape or b.ndim == 0:
        raise ValueError(
            "an opinion of shape S needs belief and base_rate (*S, K) and uncertainty S; "
            f"belief {_shape(b)}, uncertainty {_shape(u)}, base_rate {_shape(a)} came."
        )
    room = float(xp.finfo(b.dtype).eps) ** 0.5
    mass, prior = xp.sum(b, axis=-1) + u, xp.sum(a, axis=-1)
    lowest = xp.min(xp.concat([b, a, u[..., None]], axis=-1), axis=-1)
    # Each condition is written so that NaN fails it.
    for what, value, fine in (
        ("belief, uncertainty and base rate must not be negative", lowest, lowest >= -room),
        ("belief and uncertainty must sum to 1", mass, xp.abs(mass - 1) <= room),
        ("base_rate must sum to 1", prior, xp.abs(prior - 1) <= room),
    ):
        bad = xp.astype(xp.reshape(~fine, (-1,)), xp.int32)
        count = int(xp.sum(bad))
        if count:
            at = int(xp.argmax(bad))
            first = float(xp.reshape(value, (-1,))[at])
            raise ValueError(
                f"{what}; {count} of {bad.shape[0]} opinions do not, "
                f"first {first:g} at index {_index(at, u.shape)}. "
                "encode(y, uncertainty) and from_alpha(alpha) make opinions that do."
            )
    return opinion


def as_floats(x: Any) -> Floats:
    """An array of any library as NumPy's in double precision, off its graph and device."""
    if hasattr(x, "detach"):
        x = x.detach().cpu().double()
    return np.asarray(x, dtype=float)


def _per_label(xp: ModuleType, a: Array, shape: tuple[int, ...], *, uniform: bool) -> Array:
    """A base rate in the shape of the belief; `uniform` divides a one among the labels."""
    K = shape[-1]
    if uniform:
        a = a / K
    elif a.ndim == 0 or a.shape[-1] != K:
        raise ValueError(
            f"`base_rate` needs {K} values on its last axis, one per label; shape {_shape(a)} came."
        )
    _broadcast(("belief", shape), ("base_rate", a.shape), onto="belief")
    return xp.broadcast_to(a, shape)


def _floats(*values: Any) -> tuple[Any, ...]:
    """The namespace of the arrays among `values`, then all of them as floating arrays of it."""
    arrays: list[Array] = [v for v in values if _is_array(v)]
    if not arrays:
        arrays = [np.asarray(v, dtype=float) for v in values]
    xp: ModuleType = _compat.array_namespace(*arrays)
    device = _compat.device(arrays[0])
    floating = [x.dtype for x in arrays if xp.isdtype(x.dtype, "real floating")]
    dtype = xp.result_type(*floating) if floating else xp.asarray(0.0).dtype
    return xp, *(_as(xp, v, dtype, device) for v in values)


def _is_array(value: Any) -> bool:
    # A NumPy scalar is a number like any other: it fits every namespace and widens no dtype.
    return _compat.is_array_api_obj(value) and not isinstance(value, np.generic)


def _as(xp: ModuleType, value: Any, dtype: Any, device: Any) -> Array:
    if _is_array(value):
        return value if value.dtype == dtype else xp.astype(value, dtype)
    return xp.asarray(value, dtype=dtype, device=device)


def _broadcast(*named: tuple[str, tuple[int, ...]], onto: str | None = None) -> tuple[int, ...]:
    """The common shape; with `onto`, refuse to grow the array of that name."""
    shapes = ", ".join(f"{name} {_shape(s)}" for name, s in named)
    try:
        shape = np.broadcast_shapes(*(tuple(s) for _, s in named))
    except ValueError:
        raise ValueError(f"shapes must broadcast together; {shapes} came.") from None
    if onto is not None and shape != tuple(dict(named)[onto]):
        raise ValueError(
            f"shapes must broadcast to that of `{onto}`; {shapes} came. "
            "Give the smaller one axes of size 1 in the right places: x[:, None]."
        )
    return shape


def _shape(x: Any) -> tuple[int, ...]:
    sizes: Any = getattr(x, "shape", x)
    return tuple(int(n) for n in sizes)


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else ()
