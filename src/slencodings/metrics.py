"""How good a label distribution is: what scikit-learn lacks.

Truth comes first. Labels lie on the last axis, and probabilities sum to one over it.
"""

from __future__ import annotations

import math
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from slencodings.annotations import ROOM_OF_SUMS, counted, leave_one_out, safe_log, sums_by
from slencodings.opinion import Codes, Floats


def jsd(
    truth: ArrayLike, prediction: ArrayLike, *, base: float = math.e, root: bool = False
) -> Floats:
    """Jensen-Shannon divergence of each item; lower is better.

    JSD = (KL(p || m) + KL(q || m)) / 2,   m = (p + q) / 2,   in [0, log 2]

    Parameters
    ----------
    truth, prediction : array (..., K), probabilities; the result has shape (...)
    base : of the logarithm; 2 puts the range at [0, 1]
    root : take the square root, which is a distance; the paper's tables do, with base e

    Examples
    --------
    >>> jsd([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]], base=2)
    array([1., 0.])
    """
    if not 1 < base < math.inf:
        raise ValueError(
            f"`base` of the logarithm must be finite and above 1; {base:g} came. "
            "Leave it out for the natural logarithm, or pass base=2."
        )
    p, q = checked_pair(truth, prediction)
    # p / m, written so that the smallest number there is does not halve to nothing
    total = np.where(p + q > 0, p + q, 1)
    divergence = np.sum(_xlogy(p, 2 * p / total) + _xlogy(q, 2 * q / total), axis=-1) / 2
    # Rounding may leave distributions that hardly differ a hair below zero.
    divergence = np.maximum(divergence, 0) / math.log(base)
    return np.sqrt(divergence) if root else divergence


def entropy_similarity(truth: ArrayLike, prediction: ArrayLike) -> float:
    """Normalised entropy similarity (NES): are the same items disputed? Higher is better.

    NES = cosine of (h(p_1), ..., h(p_N)) and (h(q_1), ..., h(q_N)),   h = H / log K,   in [0, 1]

    One cosine over all items, not a mean over them. Where every distribution of one side is
    one-hot, its vector is zero; the limit of a tiny equal entropy stands in, a vector of ones.

    Parameters
    ----------
    truth, prediction : array (..., K), probabilities

    Examples
    --------
    >>> truth = [[0.5, 0.5], [1.0, 0.0]]
    >>> entropy_similarity(truth, [[0.8, 0.2], [0.0, 1.0]])
    1.0
    >>> round(entropy_similarity(truth, [[1.0, 0.0], [0.0, 1.0]]), 3)
    0.707
    """
    p, q = _entropies(truth, prediction)
    return _cosine(p, q)


def entropy_correlation(truth: ArrayLike, prediction: ArrayLike) -> float:
    """Normalised entropy correlation (NEC): Pearson's, of the entropies; higher is better.

    NEC = correlation of (h(p_1), ..., h(p_N)) and (h(q_1), ..., h(q_N)),   h = H / log K,
    in [-1, 1]. It is nan where one side has the same entropy throughout (to rounding), as one-hot
    predictions have: a constant goes up and down with nothing.

    Parameters
    ----------
    truth, prediction : array (..., K), probabilities

    Examples
    --------
    >>> truth = [[0.5, 0.5], [0.7, 0.3], [1.0, 0.0]]
    >>> round(entropy_correlation(truth, [[0.5, 0.5], [0.3, 0.7], [0.0, 1.0]]), 3)
    1.0
    >>> entropy_correlation(truth, [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    nan
    """
    p, q = _entropies(truth, prediction)
    if any(np.ptp(h) <= 1e-12 * np.max(h) for h in (p, q)):
        return math.nan
    return _cosine(p - np.mean(p), q - np.mean(q))


@overload
def held_out_log_loss(
    item: ArrayLike,
    y: ArrayLike,
    certainty: ArrayLike,
    *,
    n_labels: int | None = None,
    base_rate: ArrayLike | None = None,
    each: Literal[False] = False,
) -> float: ...


@overload
def held_out_log_loss(
    item: ArrayLike,
    y: ArrayLike,
    certainty: ArrayLike,
    *,
    n_labels: int | None = None,
    base_rate: ArrayLike | None = None,
    each: Literal[True],
) -> Floats: ...


def held_out_log_loss(
    item: ArrayLike,
    y: ArrayLike,
    certainty: ArrayLike,
    *,
    n_labels: int | None = None,
    base_rate: ArrayLike | None = None,
    each: bool = False,
) -> float | Floats:
    """Log-loss of the annotations, each predicted by the others on its item; lower is better.

    loss_q = - sum_k y_qk log P_qk,   in [0, inf];   the mean over annotations that have others
    P_q = (sum w y + a) / (sum w + 1) over the others,   w = c / (1 - c)

    P_q is the probability of the others' fused opinion, whatever the prior weight. Others who are
    certain (c = 1) outweigh the rest and are averaged: a label none of them gave costs infinity.

    Parameters
    ----------
    item : int array (R,), codes from 0
    y : int array (R,), label codes from 0; or float array (R, K), probabilities
    certainty : array (R,) or one number, c = reliability x (1 - uncertainty), in [0, 1]
    n_labels : K, which codes need and probabilities do not
    base_rate : array (K,), uniform when absent
    each : give the losses (R,), with nan where an annotation is alone on its item

    Examples
    --------
    >>> held_out_log_loss([0, 0, 1], [1, 1, 0], [0.5, 0.5, 0.9], n_labels=2, each=True)
    array([0.28768207, 0.28768207,        nan])
    """
    i = _codes("item", item)
    q, k, share, K = _entries(y, len(i), n_labels)
    c = _certainties(certainty, len(i))
    a = _base_rate(base_rate, K)
    mass = sums_by(q, share, len(i))
    certain = np.asarray(c == 1, dtype=float)
    w = np.where(c == 1, 0, c / np.where(c == 1, 1, 1 - c))
    total = (leave_one_out(w * mass, i) + 1)[q]
    infinite = leave_one_out(certain * mass, i)[q]
    given = i[q] * K + k
    limit = leave_one_out(certain[q] * share, given) / np.where(infinite > 0, infinite, 1)
    P = np.where(infinite > 0, limit, (leave_one_out(w[q] * share, given) + a[k]) / total)
    loss = sums_by(q, share * -safe_log(P), len(i))
    alone = np.bincount(i)[i] == 1
    if each:
        return np.where(alone, math.nan, loss)
    if np.all(alone):
        raise ValueError(
            "annotations are predicted by the others on their item, so some item needs two; "
            f"of {counted(len(i), 'annotation')} each is alone. each=True gives nan for such."
        )
    return float(np.mean(loss[~alone]))


def cross_entropy(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    """Cross-entropy of each item, - sum_k p_k log q_k, in [0, inf]; lower is better.

    Parameters
    ----------
    truth, prediction : array (..., K), probabilities; the result has shape (...)

    Examples
    --------
    >>> cross_entropy([[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]])
    array([0.69314718,        inf])
    """
    p, q = checked_pair(truth, prediction)
    # Rounding may leave a certain label a hair above 1, and -0.0 would look odd.
    return 0.0 - np.sum(_xlogy(p, np.minimum(q, 1)), axis=-1)


def brier(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    """Brier score of each item (...), sum_k (p_k - q_k)^2, in [0, 2]; lower is better.

    Examples
    --------
    >>> brier([[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]])
    array([0., 2.])
    """
    p, q = checked_pair(truth, prediction)
    return np.sum((p - q) ** 2, axis=-1)


def shares_right(truth: ArrayLike, prediction: ArrayLike) -> Floats:
    """Whether each item's likeliest label is the truth's, (...); labels that tie count in parts.

    Their mean is the accuracy, which for one label an item is the micro-averaged F1.

    Examples
    --------
    >>> shares_right([[1.0, 0.0], [0.4, 0.6]], [[0.5, 0.5], [0.1, 0.9]])
    array([0.5, 1. ])
    """
    p, q = checked_pair(truth, prediction)
    return np.sum(top_shares(p) * top_shares(q), axis=-1)


def macro_f1(truth: ArrayLike, prediction: ArrayLike) -> float:
    """The mean of each label's F1 over labels true or predicted somewhere; higher is better.

    F1_k = 2 |true and predicted| / (|true| + |predicted|);   labels that tie count in parts

    Examples
    --------
    >>> round(macro_f1(np.eye(3)[[0, 0, 1]], np.eye(3)[[0, 1, 1]]), 3)
    0.667
    """
    p, q = (top_shares(x).reshape(-1, x.shape[-1]) for x in checked_pair(truth, prediction))
    size = np.sum(p + q, axis=0)
    used = size > 0
    f1: Floats = 2 * np.sum(p * q, axis=0)[used] / size[used]
    return float(np.mean(f1)) if len(f1) else math.nan


def calibration_error(truth: ArrayLike, prediction: ArrayLike, *, bins: int = 15) -> float:
    """Expected calibration error (ECE): is the likeliest label as likely as it is said to be?

    ECE = sum_bins |sum_{i in bin} (p_i[top of q_i] - max q_i)| / N,   in [0, 1]; lower is better

    Bins of max q are of equal width, ((j - 1) / bins, j / bins]: Guo et al., "On calibration of
    modern neural networks", ICML 2017. A soft truth counts with what it gives to that label, and
    labels that tie at the top count in parts.

    Parameters
    ----------
    truth, prediction : array (..., K), probabilities; nan where there are no items

    Examples
    --------
    >>> round(calibration_error([[1.0, 0.0], [0.5, 0.5]], [[0.8, 0.2], [0.1, 0.9]]), 3)
    0.3
    """
    if bins < 1 or bins != int(bins):
        raise ValueError(f"`bins` must be a whole number of at least 1; {bins} came. 15 is usual.")
    p, q = (x.reshape(-1, x.shape[-1]) for x in checked_pair(truth, prediction))
    top = np.max(q, axis=-1)
    gap = np.sum(p * top_shares(q), axis=-1) - top
    # Rounding may leave a certain label a hair above 1.
    place = np.ceil(np.minimum(top, 1) * bins).astype(np.intp)
    return float(np.sum(np.abs(sums_by(place, gap)))) / len(q) if len(q) else math.nan


def auroc(positive: ArrayLike, score: ArrayLike) -> float:
    """How often a positive outranks a negative (area under the ROC curve); ties count half.

    AUROC = sum_ij w_i (1 - w_j) ([s_i > s_j] + [s_i = s_j] / 2) / (sum w  sum (1 - w)),   in [0, 1]

    nan where one of the two kinds is missing.

    Parameters
    ----------
    positive : array (N,), true or false; or shares w in [0, 1] of what is positive in parts
    score : array (N,), higher for what should be positive

    Examples
    --------
    >>> auroc([True, True, False], [0.9, 0.2, 0.2])
    0.75
    """
    w, s = np.asarray(positive, dtype=float), np.asarray(score, dtype=float)
    # Written so that NaN fails it.
    if w.shape != s.shape or w.ndim != 1 or not np.all((w >= 0) & (w <= 1) & (s == s)):
        raise ValueError(
            "`positive` in [0, 1] and `score` must be numbers (N,), one each for every item; "
            f"shapes {w.shape} and {s.shape} came, with {np.sum(~((w >= 0) & (w <= 1)))} and "
            f"{np.sum(np.isnan(s))} values that are none. Leave items without a score out."
        )
    place = np.unique(s, return_inverse=True)[1]
    up, down = sums_by(place, w), sums_by(place, 1 - w)
    pairs = np.sum(up) * np.sum(down)
    return float(up @ (np.cumsum(down) - down / 2) / pairs) if pairs > 0 else math.nan


def top_shares(x: Floats) -> Floats:
    """The likeliest label as a vector; those that tie, to rounding, share it equally."""
    lead = x >= np.max(x, axis=-1, keepdims=True) * (1 - 1e-12)
    return lead.astype(float) / np.sum(lead, axis=-1, keepdims=True)


def _entropies(truth: ArrayLike, prediction: ArrayLike) -> list[Floats]:
    """H / log K of all items, a vector for each side."""
    pair = [x.reshape(-1, x.shape[-1]) for x in checked_pair(truth, prediction)]
    N, K = pair[0].shape
    if N == 0:
        raise ValueError(
            "entropies are compared over items, so at least one is needed; none came, "
            f"shape {np.shape(truth)}. Look at what was selected before the call."
        )
    # -0.0 would do no harm but looks odd
    return [(0.0 - np.sum(_xlogy(x, x), axis=-1)) / math.log(max(K, 2)) for x in pair]


def _cosine(p: Floats, q: Floats) -> float:
    """Cosine; each side is scaled by its largest entry, so that no square underflows."""
    p, q = (h / np.max(np.abs(h)) if np.any(h) else np.ones_like(h) for h in (p, q))
    cosine = float(p @ q) / math.sqrt(float(p @ p) * float(q @ q))
    return max(-1.0, min(1.0, cosine))


def _xlogy(x: Floats, y: Floats) -> Floats:
    """x log y with 0 log 0 = 0."""
    return x * np.where(x > 0, safe_log(y), 0)


def checked_pair(truth: ArrayLike, prediction: ArrayLike) -> tuple[Floats, Floats]:
    """Truth and prediction as probabilities (..., K), refused if they are none."""
    p, q = (np.asarray(x, dtype=float) for x in (truth, prediction))
    if p.shape != q.shape or p.ndim == 0 or p.shape[-1] == 0:
        raise ValueError(
            "`truth` and `prediction` must have the same shape (..., K), probabilities over K "
            f"labels last; {p.shape} and {q.shape} came. "
            "Turn label codes into vectors first: np.eye(K)[codes]."
        )
    return _probabilities("truth", p), _probabilities("prediction", q)


def _probabilities(name: str, x: Floats) -> Floats:
    total = np.sum(x, axis=-1)
    # Written so that NaN fails it.
    fine = (np.abs(total - 1) <= ROOM_OF_SUMS) & (np.min(x, axis=-1) >= 0)
    if not np.all(fine):
        rows = x.reshape(-1, x.shape[-1])
        bad = np.flatnonzero(~fine)
        raise ValueError(
            f"`{name}` must be probabilities, not negative and with sum 1 over the last axis; "
            f"{len(bad)} of {len(rows)} are not, first {np.array2string(rows[bad[0]], threshold=9)}"
            f" at row {bad[0]}. Divide counts by their sum: x / x.sum(-1, keepdims=True)."
        )
    return x


def _entries(y: ArrayLike, R: int, n_labels: int | None) -> tuple[Codes, Codes, Floats, int]:
    """Labels as (annotation, label, share) for every share above zero, and K."""
    labels = np.asarray(y)
    if labels.ndim not in {1, 2} or len(labels) != R or labels.shape[1:] == (0,):
        raise ValueError(
            f"`y` must be label codes ({R},) or probabilities ({R}, K), a row for each in `item`; "
            f"shape {labels.shape} came. Select the same rows of both."
        )
    if labels.ndim == 2:
        if n_labels not in {None, labels.shape[1]}:
            raise ValueError(
                f"`y` has probabilities of {labels.shape[1]} labels, but n_labels={n_labels} came. "
                "Leave n_labels out."
            )
        labels = _probabilities("y", labels.astype(float))
        row, label = np.nonzero(labels)
        return row, label, labels[row, label], labels.shape[1]
    if n_labels is None:
        raise ValueError(
            "`y` as label codes does not say how many labels there are. "
            "Pass n_labels=len(annotations.labels)."
        )
    return np.arange(R), _codes("y", labels, n_labels), np.ones(R), n_labels


def _codes(name: str, values: ArrayLike, below: int | None = None) -> Codes:
    codes = np.asarray(values)
    if codes.ndim != 1 or not (codes.size == 0 or np.issubdtype(codes.dtype, np.integer)):
        raise ValueError(
            f"`{name}` must be integer codes (R,); {codes.dtype} of shape {codes.shape} came. "
            f"Make codes of names first: np.unique({name}, return_inverse=True)[1]."
        )
    bad = np.flatnonzero((codes < 0) | (codes >= (math.inf if below is None else below)))
    if len(bad):
        raise ValueError(
            f"`{name}` must be codes from 0{'' if below is None else f' to {below - 1}'}; "
            f"{len(bad)} of {len(codes)} are not, first {codes[bad[0]]} at row {bad[0]}. "
            f"Make codes of names first: np.unique({name}, return_inverse=True)[1]."
        )
    return codes.astype(np.intp)


def _certainties(certainty: ArrayLike, size: int) -> Floats:
    c = np.asarray(certainty, dtype=float)
    if c.shape not in {(), (size,)}:
        raise ValueError(
            f"`certainty` must be a number or have one for each row of `item`, ({size},); "
            f"shape {c.shape} came. Spread one per annotator with certainty[annotator]."
        )
    c = np.broadcast_to(c, (size,))
    bad = np.flatnonzero(~((c >= 0) & (c <= 1)))
    if len(bad):
        raise ValueError(
            f"`certainty` must lie in [0, 1]; {len(bad)} of {size} values do not, "
            f"first {c[bad[0]]:g} at row {bad[0]}. It is reliability * (1 - uncertainty)."
        )
    return c


def _base_rate(base_rate: ArrayLike | None, K: int) -> Floats:
    if base_rate is None:
        return np.ones(K) / K
    a = np.asarray(base_rate, dtype=float)
    if a.shape != (K,):
        raise ValueError(
            f"`base_rate` needs one value per label, ({K},); shape {a.shape} came. "
            "Leave it out for equal ones."
        )
    return _probabilities("base_rate", a)
