"""Subjective logic encodings: the method of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from slencodings.annotations import Annotations, check_smoothing, shared_base_rate
from slencodings.opinion import Floats, Opinion


def sle(
    annotations: Annotations,
    *,
    reliability: Any = None,
    smoothing: float = 0.01,
    base_rate: Any = None,
) -> Opinion:
    """Encode, discount, smooth and fuse: one opinion for every item (Eq. 6), shape (N,).

    b_i = sum_q w_q c_q y_q / T,   u_i = m / T,   T = sum_q w_q c_q + m,   w_q = m / d_q,
    with certainty c = (1 - e) r (1 - u), doubt d = 1 - c, and m the smallest doubt on the item.
    The same as `fuse(smooth(discount(encode(y, u), r), e))` without the empty cells. Where
    somebody is certain (d = 0, which takes smoothing=0), they alone count. An item that nobody
    annotated is vacuous.

    Parameters
    ----------
    reliability : number, (M,), (R,) or mapping; see `Annotations.per_annotation`
    smoothing : e, in [0, 1): the doubt that is left about everybody
    base_rate : array (K,) or mapping from label to number; uniform when absent

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1, 1, 2], "who": ["ann", "bob", "bob"], "label": ["yes", "no", "no"]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> sle(crowd, reliability={"ann": 0.5, "bob": 0.8}, smoothing=0).uncertainty
    array([0.16666667, 0.2       ])
    """
    a = shared_base_rate(base_rate, annotations.labels.tolist())
    c, d = _certainty_and_doubt(annotations, reliability, smoothing)
    m = np.ones(len(annotations.items))
    np.minimum.at(m, annotations.item, d)
    w = np.where(d == 0, 1, m[annotations.item] / np.where(d == 0, 1, d))
    return annotations.fuse(w * c, a, prior=m)


def certainty(
    annotations: Annotations, *, reliability: Any = None, smoothing: float = 0.01
) -> Floats:
    """How far each annotation is believed, (R,): what `metrics.held_out_log_loss` asks for.

    c = (1 - e) r (1 - u);   it is worth W c / (1 - c) pseudo-counts

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": ["p", "p"], "label": ["yes", "no"], "doubt": [0.0, 0.5]}
    >>> crowd = from_table(table, item="item", label="label", uncertainty="doubt")
    >>> certainty(crowd, reliability=0.8, smoothing=0)
    array([0.8, 0.4])
    """
    return _certainty_and_doubt(annotations, reliability, smoothing)[0]


def _certainty_and_doubt(
    annotations: Annotations, reliability: Any, smoothing: float
) -> tuple[Floats, Floats]:
    """c and 1 - c; the latter from its parts, as little doubt would drown in the difference."""
    e = check_smoothing(smoothing)
    r, u = annotations.per_annotation(reliability), annotations.uncertainty
    return (1 - e) * r * (1 - u), e + (1 - e) * (u + (1 - r) * (1 - u))
