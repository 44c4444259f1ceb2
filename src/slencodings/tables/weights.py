"""What each row brings by a learned crowd, looked up in its engine: its worth, and what it tells.

An annotation is worth that of its annotator times the share of its level of confidence, and its
log-likelihood if a label is true is found by annotator and label. Annotators who are new are
typical, and those who gave no name are one, if they were learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from slencodings.annotations import in_steps
from slencodings.tables.columns import misfits
from slencodings.tables.engines import (
    ANNOTATOR,
    LABEL,
    UNCERTAINTY,
    Frame,
    join_known,
    look_up,
)

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd

WORTH = "sle_worth"
# The annotator's place among those of the crowd, and the label that may be true.
_PLACE, TRUE = "sle_place", "sle_true"
# The share of worth at the level of confidence.
_SHARE = "sle_share_of_worth"
LIKELIHOOD = "sle_likelihood"


def likelihood(k: int) -> str:
    """Our column for the log-likelihood of annotations if label k is true."""
    return f"sle_l{k}"


def add_worth(frame: Frame, crowd: Crowd) -> Frame:
    """Give every row its WORTH, as `crowd.annotation_worth` has it."""
    worths = dict(zip(crowd.annotators.tolist(), crowd.worth.tolist(), strict=True))
    frame, worth = _of_annotator(_shared(frame, crowd), worths, crowd.typical_worth, WORTH)
    return frame.with_columns(in_steps(worth * nw.col(_SHARE)).alias(WORTH))


def add_likelihoods(frame: Frame, crowd: Crowd) -> Frame:
    """Give every row WORTH and the log-likelihood of its LABEL if each of the labels is true."""
    known, told = _known(crowd)
    table = known | {likelihood(k): told[:, k] for k in range(told.shape[1])}
    return _weighed(join_known(_placed(frame, crowd), [_PLACE, LABEL], table))


def by_truth(frame: Frame, crowd: Crowd) -> Frame:
    """A row per row and label that may be TRUE, with the LIKELIHOOD of its LABEL; and WORTH."""
    (known, told), K = _known(crowd), len(crowd.labels)
    table = {name: [v for v in values for _ in range(K)] for name, values in known.items()}
    table |= {TRUE: crowd.labels.tolist() * len(told), LIKELIHOOD: told.ravel()}
    return _weighed(join_known(_placed(frame, crowd), [_PLACE, LABEL], table))


def _known(crowd: Crowd) -> tuple[dict[str, Any], Any]:
    """What is known of each annotator and label said, and log-likelihoods by it and by truth."""
    assert crowd.model is not None
    everybody = np.concatenate([crowd.model.confusion, crowd.model.crowd[None]])
    told = in_steps(np.log(everybody)).transpose(0, 2, 1)
    M, K = told.shape[:2]
    worth = np.append(crowd.worth, crowd.typical_worth)
    keys = {
        _PLACE: np.repeat(np.arange(M, dtype=float), K),
        LABEL: crowd.labels.tolist() * M,
        WORTH: np.repeat(worth, K),
    }
    return keys, told.reshape(M * K, K)


def _placed(frame: Frame, crowd: Crowd) -> Frame:
    """Rows with their _SHARE and the annotator's place in the crowd; the next one if new."""
    places = {name: float(m) for m, name in enumerate(crowd.annotators.tolist())}
    frame, place = _of_annotator(_shared(frame, crowd), places, float(len(places)), _PLACE)
    return frame.with_columns(place.alias(_PLACE))


def _of_annotator(
    frame: Frame, known: dict[Any, float], new: float, name: str
) -> tuple[Frame, nw.Expr]:
    """What is known of the annotator of each row, or what holds for somebody new."""
    schema = frame.collect_schema()
    if ANNOTATOR not in schema.names():
        return frame, nw.lit(known.get("anonymous", new))
    nobody = known.pop(None, new)
    # Crowds without annotators have one by a name that columns of numbers cannot hold.
    strange = misfits(schema[ANNOTATOR], list(known))
    known = {name: x for name, x in known.items() if name not in strange}
    if not known:
        return frame, nw.lit(new)
    frame = look_up(frame, ANNOTATOR, known, name)
    found = nw.col(name).fill_null(new)
    return frame, nw.when(nw.col(ANNOTATOR).is_null()).then(nw.lit(nobody)).otherwise(found)


def _weighed(frame: Frame) -> Frame:
    """Rows that say nothing tell nothing."""
    worth = nw.col(WORTH).fill_null(0.0) * nw.col(_SHARE)
    return frame.with_columns(in_steps(worth).alias(WORTH))


def _shared(frame: Frame, crowd: Crowd) -> Frame:
    """Give every row the share of worth at the nearest level of confidence, the lower of two.

    This is a column before anything is joined: DuckDB would work it out anew for every label.
    """
    if not len(crowd.levels):
        return frame.with_columns(nw.lit(1.0).alias(_SHARE))
    stated = nw.col(UNCERTAINTY)
    # Rounded as `Annotations.confidence` is.
    stated = (1 - stated).round(12) if crowd.from_uncertainty else stated
    # NaN counts as large in some engines and as missing in others.
    frame = frame.with_columns(stated.cast(nw.Float64()).fill_nan(None).alias(_SHARE))
    middle = (crowd.levels[1:] + crowd.levels[:-1]) / 2
    share = _between(nw.col(_SHARE), middle.tolist(), crowd.share.tolist())
    return frame.with_columns(nw.when(~nw.col(_SHARE).is_null()).then(share).alias(_SHARE))


def _between(x: nw.Expr, edges: Sequence[float], values: Sequence[float]) -> nw.Expr:
    """The value of the interval between edges that x is in, found by halving."""
    if not edges:
        return nw.lit(values[0])
    m = len(edges) // 2
    lower, upper = (
        _between(x, edges[:m], values[: m + 1]),
        _between(x, edges[m + 1 :], values[m + 1 :]),
    )
    return nw.when(x > edges[m]).then(upper).otherwise(lower)
