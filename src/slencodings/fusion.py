"""Make one opinion of many.

Every operator reduces one axis of an `Opinion`; `axis` counts the axes of `uncertainty`. Folding
pairs is not offered because it is wrong: three certain votes fold to .25/.25/.50.

The evidence family weighs source i by `w_i = m / u_i`, with `m` the smallest uncertainty and
0 / 0 = 1. That is the printed formula divided by its largest term, so dogmatic sources need no
special case and many sources cannot underflow.

| operator          | evidence of the result | vacuous sources | same opinion twice |
|-------------------|------------------------|-----------------|--------------------|
| `fuse`            | sum                    | change nothing  | counts twice       |
| `fuse_average`    | mean                   | dilute          | counts once        |
| `fuse_weighted`   | mean by confidence     | change nothing  | counts once        |
| `fuse_constraint` | (Dempster's rule)      | change nothing  | counts twice       |
| `fuse_compromise` | (consensus first)      | dilute          | counts once        |
"""

from __future__ import annotations

from functools import reduce
from math import prod
from types import ModuleType

import array_api_compat
import numpy as np

from slencodings.opinion import Array, Opinion

# 2**K sets of labels are looked at; past this the arrays outgrow the answer.
_MOST_LABELS_TO_COMPROMISE = 12


def fuse(opinion: Opinion, *, axis: int = -1) -> Opinion:
    """Add up the evidence of independent sources: cumulative fusion (Eq. 3, and Eq. 6).

    b = sum(w b) / (sum(w c) + m),   u = m / (same),   c_i = sum_k b_ik

    Certain sources outweigh all others and are averaged. A vacuous source changes nothing, so a
    missing annotation is one with `uncertainty=1`.

    Examples
    --------
    >>> from slencodings import encode
    >>> fuse(encode(np.eye(2), np.asarray([0.5, 0.5]))).belief
    array([0.33333333, 0.33333333])
    """
    xp, b, u, a, axis = _sources(opinion, axis)
    w, m = _shares(xp, u, axis)
    believed = _weighted_sum(xp, w, b, axis)
    total = xp.sum(believed, axis=-1) + m
    base_rate = _mean_base_rate(xp, a, w * xp.sum(b, axis=-1), axis)
    return Opinion(believed / total[..., None], m / total, base_rate)


def fuse_average(opinion: Opinion, *, axis: int = -1) -> Opinion:
    """Average the evidence of dependent sources, such as one person asked twice.

    b = sum(w b) / sum(w),   u = N m / sum(w),   a = mean(a)

    Examples
    --------
    >>> from slencodings import encode
    >>> fuse_average(encode(np.eye(2), np.asarray([0.5, 0.5]))).belief
    array([0.25, 0.25])
    """
    xp, b, u, a, axis = _sources(opinion, axis)
    w, m = _shares(xp, u, axis)
    total = xp.sum(w, axis=axis)
    belief = _weighted_sum(xp, w, b, axis) / total[..., None]
    return Opinion(belief, u.shape[axis] * m / total, _mean_base_rate(xp, a, xp.ones_like(u), axis))


def fuse_weighted(opinion: Opinion, *, axis: int = -1) -> Opinion:
    """Average the evidence by confidence: who is unsure hardly counts.

    b = sum(w c b) / sum(w c),   u = m sum(c) / sum(w c);   vacuous where all are

    Examples
    --------
    >>> from slencodings import encode
    >>> fuse_weighted(encode(np.eye(2), np.asarray([0.5, 1.0]))).belief
    array([0.5, 0. ])
    """
    xp, b, u, a, axis = _sources(opinion, axis)
    w, m = _shares(xp, u, axis)
    c = xp.sum(b, axis=-1)
    total = xp.sum(w * c, axis=axis)
    vacuous = total == 0
    total = xp.where(vacuous, xp.ones_like(total), total)
    belief = _weighted_sum(xp, w * c, b, axis) / total[..., None]
    uncertainty = xp.where(vacuous, xp.ones_like(m), m * xp.sum(c, axis=axis) / total)
    return Opinion(belief, uncertainty, _mean_base_rate(xp, a, c, axis))


def fuse_constraint(opinion: Opinion, *, axis: int = -1) -> Opinion:
    """Keep what no source rules out: belief constraint fusion, Dempster's rule on single labels.

    b_k ~ prod_i (b_ik + u_i) - prod_i u_i,   u ~ prod_i u_i,   scaled to sum to one

    Sources that rule out every label together have no fused opinion: that is an error (NaN
    where the values cannot be read, under jit).

    Examples
    --------
    >>> from slencodings import encode
    >>> fuse_constraint(encode(np.eye(2), np.asarray([0.5, 0.5]))).belief
    array([0.33333333, 0.33333333])
    """
    xp, b, u, a, axis = _sources(opinion, axis)
    # The formula divided by prod_i u_i: log1p keeps what little is believed, and no product
    # underflows. A certain source has no u_i to divide by, and leaves nothing to uncertainty.
    certain = (u == 0)[..., None]
    odds = b / _where_one(xp, certain, u[..., None])
    kept = xp.where(certain, _log(xp, b + u[..., None]), xp.log1p(odds))
    kept = xp.sum(kept, axis=axis)
    largest = xp.max(kept, axis=-1, keepdims=True)
    _refuse(
        xp,
        largest == -float("inf"),
        "fuse_constraint has no answer where sources rule out every label together "
        "(total conflict); {count} of {size} items do. Smooth the opinions first: "
        "smooth(opinion, 0.01), or use fuse, which averages certain sources.",
    )
    decided = xp.any(certain, axis=axis)
    gap = xp.where(decided, xp.full_like(kept, -float("inf")), -kept)
    largest = _finite(xp, largest)
    belief = -xp.expm1(gap) * xp.exp(kept - largest)
    uncertainty = xp.where(decided, xp.zeros_like(largest), xp.exp(-largest))[..., 0]
    total = xp.sum(belief, axis=-1) + uncertainty
    base_rate = _mean_base_rate(xp, a, xp.sum(b, axis=-1), axis)
    return Opinion(belief / total[..., None], uncertainty / total, base_rate)


def fuse_compromise(opinion: Opinion, *, axis: int = -1) -> Opinion:
    """Keep what all agree on and turn the rest into vagueness: consensus and compromise fusion.

    Beliefs that differ become belief in *sets* of labels ("a cat or a dog"). An `Opinion` has no
    place for those, so for K > 2 they are shared out by base rate, here and only here; belief in
    the set of all labels is uncertainty. Sources must share their base rate. Looks at 2**K sets.

    Examples
    --------
    >>> from slencodings import encode
    >>> fuse_compromise(encode(np.asarray([[0.8, 0.2], [0.2, 0.8]]))).belief
    array([0.2, 0.2])
    """
    xp, b, u, a, axis = _sources(opinion, axis)
    K = b.shape[-1]
    if K > _MOST_LABELS_TO_COMPROMISE:
        raise ValueError(
            f"fuse_compromise looks at 2**K sets of labels, so K may be at most "
            f"{_MOST_LABELS_TO_COMPROMISE}; {K} came. fuse_weighted is the usual stand-in."
        )
    a = _mean_base_rate(xp, a, xp.ones_like(u), axis)
    shared = xp.min(b, axis=axis)
    rest = b - xp.expand_dims(shared, axis=axis)
    log_u = _log(xp, u)
    ignorance = xp.exp(xp.sum(log_u, axis=axis))

    # log of: what source i alone believes while all the others are ignorant, (..., N, K)
    alone = _log(xp, rest) + _log_product_of_others(xp, log_u, u == 0, axis)[..., None]
    # log of: all tuples of residues inside a set. Sets are bit masks: k is in s if s >> k & 1.
    inside = [xp.sum(_log(xp, x), axis=axis) for x in _sums_over_sets(xp, rest)]
    largest = _finite(xp, reduce(xp.maximum, inside, xp.max(xp.max(alone, axis=-1), axis=axis)))
    alone = xp.sum(xp.exp(alone - xp.expand_dims(largest[..., None], axis=axis)), axis=axis)
    compromise = [xp.exp(x - largest) for x in inside]
    # Leave out the tuples that fit into a smaller set: their union is that one.
    for k in range(K):
        for s in range(2**K):
            if s >> k & 1:
                compromise[s] = compromise[s] - compromise[s ^ 1 << k]
    compromise = [_not_negative(xp, x) for x in compromise]

    total = sum(compromise) + xp.sum(alone, axis=-1)
    left = _not_negative(xp, 1 - xp.sum(shared, axis=-1) - ignorance)
    nothing = total == 0
    scale = xp.where(nothing, xp.zeros_like(total), left / _where_one(xp, nothing, total))
    belief = [shared[..., k] + scale * alone[..., k] for k in range(K)]
    _share_out(xp, belief, [scale * x for x in compromise], a)
    u = ignorance + xp.where(nothing, left, scale * compromise[-1])
    return Opinion(xp.stack(belief, axis=-1), u, a)


def _share_out(xp: ModuleType, belief: list[Array], sets: list[Array], a: Array) -> None:
    """Add belief in sets of labels, by bit mask, to that in their labels, by base rate."""
    prior = _sums_over_sets(xp, a)
    for s in range(1, len(sets) - 1):
        # A set of labels that nobody expects is shared out evenly.
        unexpected = prior[s] == 0
        each = sets[s] / xp.where(unexpected, s.bit_count(), prior[s])
        for k in range(len(belief)):
            if s >> k & 1:
                belief[k] = belief[k] + each * _where_one(xp, unexpected, a[..., k])


def unfuse(fused: Opinion, source: Opinion) -> Opinion:
    """Take one source out again: the inverse of `fuse`, evidence minus evidence.

    b = (B v - b_i U) / D,   u = U v / D,   with the fused (B, U), the source (b_i, v), and
    D = the sum of the numerators. The evidence of a certain source is infinite and cannot be
    taken from anything: that is an error (NaN under jit).

    Examples
    --------
    >>> from slencodings import encode
    >>> said = encode(np.eye(2), np.asarray([0.5, 0.2]))
    >>> unfuse(fuse(said), said.rows(0)).belief
    array([0. , 0.8])
    """
    B, U, A = fused
    b, v, a = source
    xp = array_api_compat.array_namespace(B, b)
    _refuse(
        xp,
        v == 0,
        "unfuse cannot take out a certain source, whose evidence is infinite; {count} of {size} "
        "sources are certain. Smooth before fusing: smooth(opinion, 0.01).",
    )
    rest = _not_negative(xp, v[..., None] * B - U[..., None] * b)
    total = xp.sum(rest, axis=-1) + U * v
    # a' = (w A - w_i a) / (w - w_i) as a step from A, so that a shared base rate stays itself.
    # No step where nothing is left but rounding, which would make it a leap.
    taken = xp.sum(b, axis=-1) * U
    left = xp.sum(B, axis=-1) * v - taken
    some = left > float(xp.finfo(B.dtype).eps) ** 0.5 * taken
    step = xp.where(some, taken / _where_one(xp, ~some, left), xp.zeros_like(left))
    base_rate = _not_negative(xp, A + step[..., None] * (A - a))
    base_rate = base_rate / xp.sum(base_rate, axis=-1, keepdims=True)
    return Opinion(rest / total[..., None], U * v / total, base_rate)


def _sources(opinion: Opinion, axis: int) -> tuple[ModuleType, Array, Array, Array, int]:
    """The namespace, the triple, and the axis counted from the front."""
    b, u, a = opinion
    n = u.ndim
    if not -n <= axis < n:
        raise ValueError(
            f"fusing reduces one axis of the opinions, and they have {n} "
            f"(shape {tuple(u.shape)}); axis={axis} came."
            + (" A single opinion needs no fusing." if n == 0 else "")
        )
    if u.shape[axis] == 0:
        raise ValueError(
            f"fusing needs at least one opinion; axis {axis} of shape {tuple(u.shape)} is empty. "
            "An item nobody annotated is one vacuous opinion: encode(y, uncertainty=1)."
        )
    return array_api_compat.array_namespace(b), b, u, a, axis % n


def _shares(xp: ModuleType, u: Array, axis: int) -> tuple[Array, Array]:
    """w = m / u with 0 / 0 = 1, and the smallest uncertainty m without the axis."""
    m = xp.min(u, axis=axis, keepdims=True)
    dogmatic = u == 0
    one = xp.ones_like(u)
    w = xp.where(dogmatic, one, m / xp.where(dogmatic, one, u))
    return w, xp.squeeze(m, axis=axis)


def _mean_base_rate(xp: ModuleType, a: Array, weight: Array, axis: int) -> Array:
    """Base rates averaged by weight, plainly where all weights are zero."""
    total = xp.sum(weight, axis=axis, keepdims=True)
    share = _where_one(xp, total == 0, weight) / _where_one(xp, total == 0, total)
    mixed = _weighted_sum(xp, share, a, axis)
    # The shares of very many sources do not add up to one; this does.
    return mixed / xp.sum(mixed, axis=-1, keepdims=True)


def _weighted_sum(xp: ModuleType, weight: Array, x: Array, axis: int) -> Array:
    """sum_i weight_i x_i over an axis, for x with one more axis, last."""
    if array_api_compat.is_numpy_namespace(xp):
        # NumPy would write the product out and sum it along a short axis, four times slower.
        # Elsewhere a matrix product may be rounded to half precision on the caller's behalf.
        weight, x = np.moveaxis(weight, axis, -1), np.moveaxis(x, axis, -2)
        return (weight[..., None, :] @ x)[..., 0, :]
    return xp.sum(weight[..., None] * x, axis=axis)


def _sums_over_sets(xp: ModuleType, x: Array) -> list[Array]:
    """The sum of `x` over each of the 2**K sets of its last axis, by bit mask."""
    sums = [xp.zeros_like(x[..., 0])]
    for k in range(x.shape[-1]):
        sums += [subset + x[..., k] for subset in sums]
    return sums


def _not_negative(xp: ModuleType, x: Array) -> Array:
    """What is left of a subtraction may be a hair below nothing by rounding."""
    return xp.where(x < 0, xp.zeros_like(x), x)


def _where_one(xp: ModuleType, condition: Array, x: Array) -> Array:
    return xp.where(condition, xp.ones_like(x), x)


def _log(xp: ModuleType, x: Array) -> Array:
    """The logarithm with log 0 = -inf, free of warnings and of NaN gradients."""
    zero = x <= 0
    return xp.where(zero, xp.full_like(x, -float("inf")), xp.log(_where_one(xp, zero, x)))


def _finite(xp: ModuleType, x: Array) -> Array:
    return xp.where(x == -float("inf"), xp.zeros_like(x), x)


def _log_product_of_others(xp: ModuleType, log_u: Array, zero: Array, axis: int) -> Array:
    """log of prod_{j != i} u_j for each source i, where some u may be 0."""
    known = _finite(xp, log_u)
    zeros = xp.astype(zero, known.dtype)
    rest = xp.sum(known, axis=axis, keepdims=True) - known
    other_zeros = xp.sum(zeros, axis=axis, keepdims=True) - zeros
    return xp.where(other_zeros > 0, xp.full_like(known, -float("inf")), rest)


def _refuse(xp: ModuleType, bad: Array, message: str) -> None:
    """Raise where `bad` holds, if the values can be read: a tracer has none yet."""
    if array_api_compat.is_torch_namespace(xp) and xp.compiler.is_compiling():
        return
    try:
        count = int(xp.sum(xp.astype(bad, xp.int32)))
    except (TypeError, RuntimeError):  # JAX inside jit, PyTorch inside vmap
        return
    if count:
        raise ValueError(message.format(count=count, size=prod(bad.shape)))
