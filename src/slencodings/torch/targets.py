"""What a classifier learns from: opinions, annotations, distributions or labels, as arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from slencodings.aggregate import sle
from slencodings.annotations import Annotations
from slencodings.opinion import Opinion, check, encode, smooth
from slencodings.tables.arrays import dense
from slencodings.trust import learn_trust

KL = ("reverse_kl", "forward_kl")
OBJECTIVES = (*KL, "cross_entropy", "soft_kl", "mtlsl", "votes")


class Target(NamedTuple):
    """What there is to learn about some rows of X.

    Attributes
    ----------
    labels : array (K,)
    rows : int array (n,), the rows of X that something is known about
    values : arrays (n, ...), what the loss takes besides the prediction
    base_rate : array (K,)
    """

    labels: NDArray[Any]
    rows: NDArray[np.intp]
    values: tuple[NDArray[Any], ...]
    base_rate: NDArray[np.float64]


class _Said(NamedTuple):
    """A target of any kind: opinions, if they are asked for, or votes (N, K), and their names."""

    labels: NDArray[Any]
    opinion: Opinion | None
    votes: NDArray[np.float64]
    items: NDArray[Any] | None = None
    hard: bool = False


def read_target(
    y: Any,
    *,
    n_rows: int,
    objective: str,
    labels: Any = None,
    reliability: Any = None,
    smoothing: float = 0.01,
    items: Any = None,
    gold: Any = None,
) -> Target:
    """Read a target of any kind into what an objective needs; see `SLEClassifier.fit`.

    Examples
    --------
    >>> read_target(["no", "yes"], n_rows=2, objective="cross_entropy").values
    (array([[1., 0.], [0., 1.]]),)
    """
    said = _said(y, objective, labels, reliability, smoothing)
    K = len(said.labels)
    if K < 2:
        raise ValueError(
            f"a classifier needs at least 2 classes; {K} class came. Name those that the rows "
            "at hand do not have: labels=[...]."
        )
    at = _rows(said, n_rows, items)
    votes = said.votes[at]
    total = votes.sum(axis=-1)
    known = total > 0
    opinion = None if said.opinion is None else said.opinion.rows(at)
    if isinstance(y, Annotations) and opinion is not None:
        # Nobody said anything that counts, which is not to say that there is nothing to know.
        known &= opinion.uncertainty < 1
    if not known.any():
        raise ValueError(f"some row needs a target; {len(known)} rows came and none has one.")
    shares = votes / np.where(known, total, 1)[:, None]
    match objective:
        case "reverse_kl" | "forward_kl":
            assert opinion is not None
            values = tuple(opinion)
        case "cross_entropy" | "soft_kl":
            values = (shares,)
        case "mtlsl":
            codes = shares.argmax(axis=-1) if gold is None and said.hard else None
            codes = _gold_codes(gold, said.labels, n_rows) if codes is None else codes
            values = (codes, smooth(encode(shares), smoothing).probability)
        case _:
            values = (votes,)
    base_rate = np.full(K, 1 / K) if opinion is None else opinion.base_rate[known].mean(axis=0)
    return Target(
        said.labels,
        np.flatnonzero(known),
        tuple(v[known] for v in values),
        base_rate / base_rate.sum(),
    )


def _said(y: Any, objective: str, labels: Any, reliability: Any, smoothing: float) -> _Said:
    if isinstance(y, Annotations):
        return _annotated(_relabelled(y, labels), objective, reliability, smoothing)
    if reliability is not None:
        raise ValueError(
            "`reliability` is for annotations, which name their annotators; "
            f"{type(y).__name__} came as target. Leave it out, or pass Annotations."
        )
    if isinstance(y, Opinion):
        return _believed(_numpy(y), labels, None, objective)
    columns = [str(c) for c in getattr(y, "columns", ())]
    if any(c.startswith("belief_") for c in columns):
        items, names, opinion = dense(y, item=columns[0])
        if labels is not None:
            b, u, a = opinion
            at = _codes([str(label) for label in labels], names, "the labels", "of the table")
            names, opinion = labels, Opinion(b[:, at], u, a[:, at])
        return _believed(opinion, names, items, objective)
    any_type: Any = None
    y = np.asarray(check_array(y, ensure_2d=False, dtype=any_type, input_name="y"))
    if y.ndim == 2 and y.shape[1] > 1:
        return _shared(y, labels, objective, smoothing)
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    names, codes = np.unique(y, return_inverse=True)
    if labels is not None:
        names, codes = _names(labels), _codes(y, labels, "`y`")
    votes = np.eye(len(names))[codes]
    return _Said(names, _smoothed(votes, objective, smoothing), votes, hard=True)


def _annotated(
    annotations: Annotations, objective: str, reliability: Any, smoothing: float
) -> _Said:
    votes, opinion = annotations.sums(), None
    if objective not in KL and reliability is not None:
        raise ValueError(
            f"objective={objective!r} learns from plain votes and would not heed `reliability`. "
            "Use 'reverse_kl', or leave reliability out."
        )
    if objective in KL and isinstance(reliability, str):
        if reliability != "learned":
            raise ValueError(f"`reliability` in words is 'learned'; {reliability!r} came.")
        opinion = learn_trust(annotations).opinion(annotations)
    elif objective in KL:
        opinion = sle(annotations, reliability=reliability, smoothing=smoothing)
    return _Said(annotations.labels, opinion, votes, annotations.items)


def _believed(opinion: Opinion, labels: Any, items: Any, objective: str) -> _Said:
    if objective == "votes":
        raise ValueError(
            "objective='votes' counts votes, and opinions came. Pass Annotations or counts (N, K)."
        )
    check(opinion)
    if opinion.uncertainty.ndim != 1:
        raise ValueError(f"one opinion per row, (N,), is needed; {opinion.uncertainty.shape} came.")
    certain = opinion.uncertainty <= 0
    if objective in KL and certain.any():
        raise ValueError(
            f"targets need some doubt; {certain.sum()} of {len(certain)} have uncertainty 0, which "
            "is infinite evidence. Smooth them: sle.smooth(target, 0.01)."
        )
    names = _column_names(labels, opinion.belief.shape[1])
    return _Said(names, opinion, opinion.probability, items)


def _shared(y: Any, labels: Any, objective: str, smoothing: float) -> _Said:
    """Rows of probabilities; of votes, where those are asked for."""
    if y.dtype.kind not in "biuf":
        raise ValueError(
            f"a target of two axes is probabilities (N, K); {y.dtype} came. For one label a row "
            "pass one axis."
        )
    y = y.astype(float)
    total = y.sum(axis=1)
    bad = (y < 0).any(axis=1) | ((objective != "votes") & (np.abs(total - 1) > 1e-3))
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"rows of probabilities must not be negative and must sum to 1; {bad.sum()} of "
            f"{len(bad)} do not, first row {i} with the sum {total[i]:g}. Divide counts by their "
            "sum, or learn from them as they are: objective='votes'."
        )
    names = _column_names(labels, y.shape[1])
    return _Said(names, _smoothed(y, objective, smoothing), y)


def _smoothed(y: NDArray[np.float64], objective: str, smoothing: float) -> Opinion | None:
    if objective not in KL:
        return None
    if not 0 < smoothing < 1:
        raise ValueError(
            f"`smoothing` of labels must lie between 0 and 1; {smoothing!r} came. "
            "0.01 leaves one percent of doubt."
        )
    return smooth(encode(y / y.sum(axis=-1, keepdims=True)), smoothing)


def _rows(said: _Said, n_rows: int, items: Any) -> Any:
    """The place of the target of each row of X."""
    if items is None:
        if len(said.votes) != n_rows:
            raise ValueError(
                f"each row of X needs its target; X has {n_rows} rows and the target is for "
                f"{len(said.votes)}. Name the rows of X if it is a part: fit(..., items=[...])."
            )
        return np.arange(n_rows)
    if said.items is None:
        raise ValueError(
            "`items` names the rows of X for targets that name theirs, Annotations or a table of "
            "opinions; this target has no names. Leave `items` out."
        )
    items = np.asarray(items).tolist()
    if len(items) != n_rows:
        raise ValueError(f"`items` must name the {n_rows} rows of X; {len(items)} names came.")
    return _codes(items, said.items, "`items`", "items of the target")


def _relabelled(annotations: Annotations, labels: Any) -> Annotations:
    if labels is None:
        return annotations
    at = _codes(annotations.labels, labels, "the annotations")
    y = annotations.y @ np.eye(len(labels))[at] if annotations.soft else at[annotations.y]
    return replace(annotations, y=y, labels=_names(labels))


def _gold_codes(gold: Any, labels: NDArray[Any], n_rows: int) -> NDArray[np.intp]:
    if gold is None:
        raise ValueError(
            "objective='mtlsl' learns one gold label a row as well; none came. "
            "Pass them: fit(X, target, gold=[...])."
        )
    codes = _codes(gold, labels, "`gold`")
    if len(codes) != n_rows:
        raise ValueError(f"`gold` must have a label for each of {n_rows} rows; {len(codes)} came.")
    return codes


def _codes(values: Any, names: Any, what: str, known: str = "labels") -> NDArray[np.intp]:
    """The place of each value among the names, and an error that counts those that have none."""
    place = {name: k for k, name in enumerate(np.asarray(names).tolist())}
    values = np.asarray(values).tolist()
    new = [value for value in values if value not in place]
    if new:
        some = ", ".join(map(repr, list(place)[:10])) + ", ..." * (len(place) > 10)
        raise ValueError(
            f"{what} must be among the {len(place)} {known} ({some}); {len(new)} of {len(values)} "
            f"are not, first {new[0]!r}."
        )
    return np.asarray([place[value] for value in values], dtype=np.intp)


def _column_names(labels: Any, K: int) -> NDArray[Any]:
    names = _names(range(K) if labels is None else labels)
    if len(names) != K:
        raise ValueError(f"the target has {K} labels; {len(names)} are known.")
    return names


def _names(labels: Any) -> NDArray[Any]:
    return np.asarray(list(labels) if isinstance(labels, range) else labels)


def _numpy(opinion: Opinion) -> Opinion:
    """Opinions of any array library, on any device."""
    arrays = (x.detach().cpu() if hasattr(x, "detach") else x for x in opinion)
    return Opinion(*(np.asarray(x, dtype=float) for x in arrays))
