"""A part of a large crowd that methods are compared on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted
from slencodings.opinion import Codes, Floats
from slencodings.trust.learn_crowd import enough_items


class Part(NamedTuple):
    """The annotations to compare on, and of their N items what is known and which are scored.

    Attributes
    ----------
    annotations : all annotations of some items
    truth : (N, K), NaN where unknown; or nothing
    sets : (N,), which questions belong together; or nothing
    scored : (N,), the items whose votes are predicted: the others only teach
    """

    annotations: Annotations
    truth: Floats | None
    sets: Codes | None
    scored: NDArray[np.bool_]


def all_of(a: Annotations, truth: Floats | None, sets: Codes | None) -> Part:
    """Everything there is."""
    return Part(a, truth, sets, np.ones(len(a.items), dtype=bool))


def drawn(everything: Part, size: int, rng: np.random.Generator) -> tuple[Part, str]:
    """About `size` annotations by lot, and what to say of that.

    What is drawn is scored as if it were all. Besides, items that are only learned from, until each
    annotator has about as many as a crowd is learned from; and, scored by their truth alone, as
    many annotations of items whose truth is known.
    """
    a, truth, sets, _ = everything
    # What belongs together has one lot.
    together = np.arange(len(a.items)) if sets is None else sets
    lots: Floats = rng.random(int(together.max()) + 1)[together]
    scored = lots < size / len(a.item)
    kept = scored | enough_items(a, size, lots)
    if truth is not None:
        known: NDArray[np.bool_] = np.asarray(~np.isnan(truth).any(axis=1))
        n = np.bincount(a.item, minlength=len(a.items))
        known &= lots < size / max(int(n[known].sum()), 1)
        kept |= known
        truth = np.where(known[:, None], truth, np.nan)
    items = np.flatnonzero(kept)
    note = (
        f"compared on {counted(int(scored.sum()), 'item')} of {len(a.items):,}, drawn by lot: of "
        f"{counted(len(a.item), 'annotation')} about {size:,}. Raise `max_annotations` to compare "
        "on more"
    )
    return Part(
        a.of_items(items),
        None if truth is None else truth[items],
        None if sets is None else np.unique(sets[items], return_inverse=True)[1],
        scored[items],
    ), note
