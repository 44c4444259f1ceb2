"""How right a method is, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from slencodings import metrics
from slencodings.aggregate.ballots import gold_codes
from slencodings.annotations import Annotations
from slencodings.comparison.others import Floats


def as_truth(a: Annotations, gold: Any) -> Floats | None:
    """Gold labels as distributions (N, K), NaN where unknown; a soft truth is checked and kept."""
    if gold is None:
        return None
    N, K = len(a.items), len(a.labels)
    given = None if isinstance(gold, dict) else np.asarray(gold)
    if given is not None and given.ndim == 2:
        truth = given.astype(float)
        known = ~np.isnan(truth).any(axis=1)
        if truth.shape != (N, K) or not np.allclose(truth[known].sum(axis=1), 1, atol=5e-3):
            raise ValueError(
                f"`gold` as a soft truth must be ({N}, {K}), probabilities of each item's labels; "
                f"shape {truth.shape} came, sums to {truth[known].sum(axis=1)[:1]}. "
                "Set the rows of unknown items to NaN."
            )
    else:
        codes = gold_codes(a, gold)
        truth = np.where((codes >= 0)[:, None], np.eye(K)[codes], np.nan)
    if np.isnan(truth).any(axis=1).all():
        raise ValueError("`gold` must know at least one item; none came. Leave it out.")
    return truth


def shares_right(truth: Floats, probability: Floats) -> Floats:
    """Whether each item's likeliest label is the truth's, (N,); labels that tie count in parts."""
    return np.sum(_top(truth) * _top(probability), axis=1)


def macro_f1(truth: Floats, probability: Floats) -> float:
    """F1 of each label that is true or given somewhere, and their mean; ties count in parts."""
    both = np.einsum("nj,nk->jk", _top(truth), _top(probability))
    used = both.sum(axis=0) + both.sum(axis=1)
    return float(np.mean(2 * np.diag(both)[used > 0] / used[used > 0]))


def distances(truth: Floats, probability: Floats) -> dict[str, float]:
    """Mean root JSD (the paper's) and NES, for a truth that is a distribution."""
    return {
        "jsd": float(np.mean(metrics.jsd(truth, probability, root=True))),
        "nes": metrics.entropy_similarity(truth, probability),
    }


def _top(probability: Floats) -> Floats:
    lead = probability >= probability.max(axis=1, keepdims=True) * (1 - 1e-12)
    return lead / lead.sum(axis=1, keepdims=True)
