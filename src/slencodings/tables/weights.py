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
from slencodings.opinion import Floats
from slencodings.tables.columns import misfits
from slencodings.tables.engines import (
    ANNOTATOR,
    LABEL,
    UNCERTAINTY,
    Frame,
    computed,
    join_known,
    look_up,
)

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd

WORTH = "sle_worth"
# The place of a row's label among those of the crowd, and a label that may be true.
PLACE, TRUE = "sle_place", "sle_true"
# Of which number on annotators are known, by label; and the number of annotator and label.
_FIRST, _CODE = "sle_first", "sle_code"
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
    """Give every row WORTH, PLACE, and the log-likelihood of its label if each of them is true.

    It is how much larger that is than if the first were: what is the same for all tells nothing.
    """
    known, log_likelihood = _known(crowd)
    apart = log_likelihood - log_likelihood[:, :1]
    known |= {likelihood(k): apart[:, k] for k in range(1, len(crowd.labels))}
    return _weighed(join_known(_coded(frame, crowd), [_CODE], known))


def by_truth(frame: Frame, crowd: Crowd) -> Frame:
    """A row per row and label that may be TRUE, with the LIKELIHOOD of its LABEL; and WORTH."""
    (known, log_likelihood), K = _known(crowd), len(crowd.labels)
    table = {name: np.repeat(values, K) for name, values in known.items()}
    table |= {TRUE: crowd.labels.tolist() * len(log_likelihood), LIKELIHOOD: log_likelihood.ravel()}
    return _weighed(join_known(_coded(frame, crowd), [_CODE], table))


def _known(crowd: Crowd) -> tuple[dict[str, Any], Floats]:
    """What is known of each annotator and label said, and log-likelihoods by it and by truth.

    The last is of rows that say nothing: they tell nothing, and are worth nothing.
    """
    assert crowd.model is not None
    everybody = np.concatenate([crowd.model.confusion, crowd.model.crowd[None]])
    K = len(crowd.labels)
    log_likelihood = in_steps(np.log(everybody)).transpose(0, 2, 1).reshape(-1, K)
    worth = np.repeat(np.append(crowd.worth, crowd.typical_worth), K)
    keys = {_CODE: np.arange(len(worth) + 1), WORTH: np.append(worth, 0.0)}
    return keys, np.concatenate([log_likelihood, np.zeros((1, K))])


def _coded(frame: Frame, crowd: Crowd) -> Frame:
    """Rows with their _SHARE, the place of their label in PLACE, and who said which in _CODE.

    One whole number is found faster than two names, of which one is text.
    """
    M, K = len(crowd.annotators), len(crowd.labels)
    firsts = {name: float(m * K) for m, name in enumerate(crowd.annotators.tolist())}
    frame, first = _of_annotator(_shared(frame, crowd), firsts, float(M * K), _FIRST)
    labels = {label: float(k) for k, label in enumerate(crowd.labels.tolist())}
    frame = look_up(frame, LABEL, labels, PLACE)
    code = (first + nw.col(PLACE)).fill_null(float((M + 1) * K))
    return frame.with_columns(code.cast(nw.Int64).alias(_CODE))


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
    """WORTH of annotators and labels as that of rows."""
    return frame.with_columns(in_steps(nw.col(WORTH) * nw.col(_SHARE)).alias(WORTH))


def _shared(frame: Frame, crowd: Crowd) -> Frame:
    """Give every row the share of worth at the nearest level of confidence, the lower of two.

    This is a column before anything is joined: DuckDB would work it out anew for every label.
    """
    if not len(crowd.levels):
        return frame.with_columns(nw.lit(1.0).alias(_SHARE))
    stated = nw.col(UNCERTAINTY)
    edges = ((crowd.levels[1:] + crowd.levels[:-1]) / 2).tolist()
    if crowd.from_uncertainty:
        # To round every row, as `Annotations.confidence` does, takes longer than to find its level.
        stated, edges = 0 - stated, [-doubt_at(edge) for edge in edges]
    # NaN counts as large in some engines and as missing in others.
    frame = frame.with_columns(stated.cast(nw.Float64()).fill_nan(None).alias(_SHARE))
    share = _between(nw.col(_SHARE), edges, crowd.share.tolist())
    frame = frame.with_columns(nw.when(~nw.col(_SHARE).is_null()).then(share).alias(_SHARE))
    return computed(frame)  # SQLite reads expressions only so deep.


def doubt_at(confidence: float) -> float:
    """The least uncertainty whose confidence, as `Annotations.confidence` has it, is not higher."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if np.round(1 - middle, 12) > confidence:
            low = middle
        else:
            high = middle
    return high


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
