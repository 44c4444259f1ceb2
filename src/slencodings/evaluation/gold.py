"""How right a method is, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from slencodings.aggregate.em import gold_codes
from slencodings.annotations import Annotations
from slencodings.opinion import Floats


def as_truth(a: Annotations, gold: Any) -> Floats | None:
    """Gold labels as distributions (N, K), NaN where unknown; a soft truth is checked and kept."""
    if gold is None:
        return None
    N, K = len(a.items), len(a.labels)
    if np.ndim(gold) == 2:
        truth = np.asarray(gold, dtype=float)
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
