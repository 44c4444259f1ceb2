"""Labels that have an order, such as 1 to 5 stars: how far apart answers are, and "at least k".

Labels stand on the last axis in their order, one step from each to the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from slencodings.metrics import checked_pair
from slencodings.opinion import Floats, Opinion


def at_least(opinion: Opinion) -> Opinion:
    """Binomial opinions (..., K - 1) that an answer is at least the second label, the third, ...

    b_k = (sum_{j >= k} b_j, sum_{j < k} b_j),   a_k likewise,   u as it is

    Exact: sums of what a Dirichlet has are a Beta, so evidence adds up over labels as it does over
    people. `credible_interval` says between which these probabilities lie.

    Examples
    --------
    >>> from slencodings import encode
    >>> stars = encode(np.asarray([0.0, 0.0, 0.25, 0.75]), np.asarray(0.2))
    >>> at_least(stars).probability[..., 0]
    array([0.95, 0.9 , 0.65])
    """
    b, u, a = (np.asarray(x, dtype=float) for x in opinion)
    if b.ndim == 0 or b.shape[-1] < 2:
        raise ValueError(
            f"`opinion` must be over two labels or more, in their order; belief {b.shape} came."
        )
    below, prior = (np.cumsum(x, axis=-1)[..., :-1] for x in (b, a))
    above, rest = (np.cumsum(x[..., ::-1], axis=-1)[..., -2::-1] for x in (b, a))
    u = np.repeat(u[..., None], b.shape[-1] - 1, axis=-1)
    return Opinion(np.stack([above, below], axis=-1), u, np.stack([rest, prior], axis=-1))


def wasserstein(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    """How many steps probability has to be moved, (...), in [0, K - 1]; lower is better.

    W = sum_k |F_k - G_k|,   F and G the cumulated probabilities;   the distance of two labels that
    are certain

    Parameters
    ----------
    truth, prediction : array (..., K), probabilities in the order of the labels

    Examples
    --------
    >>> wasserstein([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]], [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    array([2. , 0.5])
    """
    return np.sum(np.abs(_steps(truth, prediction)), axis=-1)


def ranked_probability_score(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    """The Brier score of every "at least k", added up, (...), in [0, K - 1]; lower is better.

    RPS = sum_k (F_k - G_k)^2 (Epstein 1969), lowest on average where G is the chance of each label

    Examples
    --------
    >>> ranked_probability_score([[1.0, 0.0, 0.0]] * 2, [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    array([0.25, 0.5 ])
    """
    return np.sum(_steps(truth, prediction) ** 2, axis=-1)


def absolute_error(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    """How many steps the truth is from the median of what is predicted, (...); lower is better.

    |k - median|, averaged over the labels of a soft truth; between two labels is half a step

    Examples
    --------
    >>> absolute_error([[1.0, 0.0, 0.0]] * 2, [[0.2, 0.7, 0.1], [0.5, 0.5, 0.0]])
    array([1. , 0.5])
    """
    p, q = checked_pair(truth, prediction)
    F = np.cumsum(q, axis=-1)
    # Half but for rounding is half.
    G = F / F[..., -1:] - 0.5
    low, high = np.sum(G < -1e-12, axis=-1), np.sum(G < 1e-12, axis=-1)
    places = np.arange(p.shape[-1], dtype=float)
    return np.sum(p * np.abs(places - ((low + high) / 2)[..., None]), axis=-1)


def _steps(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    p, q = checked_pair(truth, prediction)
    return np.cumsum(p - q, axis=-1)[..., :-1]
