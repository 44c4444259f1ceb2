"""How far the parts of an opinion conflict."""

from __future__ import annotations

import numpy as np

from slencodings.opinion import Floats, Opinion


def dissonance(opinion: Opinion) -> Floats:
    """How far opinions on an item conflict, (...), in [0, 1 - u]; for two labels 2 min(b).

    diss = sum_k b_k (sum_{j != k} b_j Bal(b_j, b_k)) / (sum_{j != k} b_j),
    Bal(b_j, b_k) = 1 - |b_j - b_k| / (b_j + b_k) = 2 min(b_j, b_k) / (b_j + b_k), 0 where one is 0

    Uncertainty is the other half, the *vacuity* of the source: Jøsang, Cho and Chen, "Uncertainty
    characteristics of subjective opinions", FUSION 2018.

    Examples
    --------
    >>> b = np.asarray([[0.4, 0.4, 0.0], [0.8, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> dissonance(Opinion(b, 1 - b.sum(-1), np.full((3, 3), 1 / 3)))
    array([0.8, 0. , 0. ])
    """
    b = np.asarray(opinion.belief, dtype=float)
    total = np.zeros(b.shape[:-1])
    for k in range(b.shape[-1]):
        # The sum of the others, not the whole less b_k, which would cancel.
        b_k, b_j = b[..., k, None], np.delete(b, k, axis=-1)
        rest = np.sum(b_j, axis=-1)
        pair = b_k + b_j
        balance = 2 * np.minimum(b_k, b_j) / np.where(pair == 0, 1, pair)
        share = b_j / np.where(rest == 0, 1, rest)[..., None]
        total += b[..., k] * np.sum(share * balance, axis=-1)
    return total
