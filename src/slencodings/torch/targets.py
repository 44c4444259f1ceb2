"""What a classifier learns from: opinions, annotations, distributions or labels, as arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from slencodings.aggregate import sle
from slencodings.annotations import Annotations, some
from slencodings.choices import TrainingObjective
from slencodings.opinion import Codes, Floats, Opinion, as_floats, check, encode, smooth
from slencodings.tables.arrays import dense
from slencodings.torch.losses import LEARNED
from slencodings.trust import count_each, learn_crowd


class Target(NamedTuple):
    """What there is to learn about some rows of X.

    Attributes
    ----------
    labels : array (K,)
    rows : int array (n,), the rows of X that something is known about
    values : arrays (n, ...), what the loss takes besides the prediction
    base_rate : array (K,)
    votes : array (n, K), what people said of the rows, if it came from people
    items : array (n,), what the rows are called, if they have names
    """

    labels: NDArray[Any]
    rows: Codes
    values: tuple[NDArray[Any], ...]
    base_rate: Floats
    votes: Floats | None
    items: NDArray[Any] | None


class _Given(NamedTuple):
    """A target of any kind: opinions, if they are asked for, or votes (N, K), and their names."""

    labels: NDArray[Any]
    opinion: Opinion | None
    votes: Floats
    items: NDArray[Any] | None = None
    hard: bool = False


def read_target(
    y: Any,
    *,
    n_rows: int,
    objective: TrainingObjective,
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
    given = _read(y, objective, labels, reliability, smoothing)
    K = len(given.labels)
    if K < 2:
        raise ValueError(
            f"a classifier needs at least 2 classes; {K} class came. Name those that the rows "
            "at hand do not have: labels=[...]."
        )
    at = _rows(given, n_rows, items)
    votes = given.votes[at]
    total = votes.sum(axis=-1)
    known = total > 0
    opinion = None if given.opinion is None else given.opinion.rows(at)
    if isinstance(y, Annotations) and opinion is not None:
        # Nobody said anything that counts, which is not to say that there is nothing to know.
        known &= opinion.uncertainty < 1
    if not known.any():
        raise ValueError(f"some row needs a target; {len(known)} rows came and none has one.")
    shares = votes / np.where(known, total, 1)[:, None]
    match LEARNED[objective]:
        case "opinion":
            assert opinion is not None
            values = tuple(opinion)
        case "shares":
            values = (shares,)
        case "gold and shares":
            codes = shares.argmax(axis=-1) if gold is None and given.hard else None
            codes = _gold_codes(gold, given.labels, n_rows) if codes is None else codes
            values = (codes, smooth(encode(shares), smoothing).probability)
        case "votes":
            values = (votes,)
    base_rate = np.full(K, 1 / K) if opinion is None else opinion.base_rate[known].mean(axis=0)
    return Target(
        given.labels,
        np.flatnonzero(known),
        tuple(v[known] for v in values),
        base_rate / base_rate.sum(),
        votes[known] if isinstance(y, Annotations) else None,
        None if given.items is None else np.asarray(given.items)[at][known],
    )


def in_order(y: Any, n_rows: int, labels: Any, items: Any) -> Annotations:
    """Annotations with an item for each row of X, in its order, and all labels."""
    if not isinstance(y, Annotations):
        raise ValueError(
            f"`rounds` fuse networks with annotations; {type(y).__name__} came as target. Pass "
            "Annotations, or leave rounds out."
        )
    a = _relabelled(y, labels)
    at = _rows(_Given(a.labels, None, a.sums(), a.items), n_rows, items)
    return a.of_items(at)


def _read(
    y: Any, objective: TrainingObjective, labels: Any, reliability: Any, smoothing: float
) -> _Given:
    if isinstance(y, Annotations):
        return _annotated(_relabelled(y, labels), objective, reliability, smoothing)
    if reliability is not None:
        raise ValueError(
            "`reliability` is for annotations, which name their annotators; "
            f"{type(y).__name__} came as target. Leave it out, or pass Annotations."
        )
    if isinstance(y, Opinion):
        return _believed(Opinion(*map(as_floats, y)), labels, None, objective)
    columns = [str(c) for c in getattr(y, "columns", ())]
    if any(c.startswith("belief_") for c in columns):
        items, names, opinion = dense(y, item=columns[0])
        if labels is not None:
            b, u, a = opinion
            at = _codes([str(label) for label in labels], names, "the labels", "of the table")
            names, opinion = labels, Opinion(b[:, at], u, a[:, at])
        return _believed(opinion, names, items, objective)
    array = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    if array.ndim == 2 and array.shape[1] > 1:
        return _shared(array, labels, objective, smoothing)
    column = column_or_1d(array, warn=True)
    check_classification_targets(column)
    names, codes = np.unique(column, return_inverse=True)
    if labels is not None:
        names, codes = _names(labels), _codes(column, labels, "`y`")
    votes = np.eye(len(names))[codes]
    return _Given(names, _smoothed(votes, objective, smoothing), votes, hard=True)


def _annotated(
    annotations: Annotations, objective: TrainingObjective, reliability: Any, smoothing: float
) -> _Given:
    votes, opinion = annotations.sums(), None
    opinionated = LEARNED[objective] == "opinion"
    if not opinionated and reliability is not None:
        raise ValueError(
            f"objective={objective!r} learns from plain votes and would not heed `reliability`. "
            "Use 'reverse_kl', or leave reliability out."
        )
    if opinionated and isinstance(reliability, str):
        if reliability != "learned":
            raise ValueError(f"`reliability` in words is 'learned'; {reliability!r} came.")
        shared = np.any(np.bincount(annotations.item, minlength=1) > 1)
        crowd = learn_crowd(annotations) if shared else count_each(annotations)
        opinion = crowd.votes(annotations)
    elif opinionated:
        opinion = sle(annotations, reliability=reliability, smoothing=smoothing)
        # Who is not trusted at all does not say when to stop either.
        votes = annotations.rows(annotations.per_annotation(reliability) > 0).sums()
    return _Given(annotations.labels, opinion, votes, annotations.items)


def _believed(opinion: Opinion, labels: Any, items: Any, objective: TrainingObjective) -> _Given:
    learned = LEARNED[objective]
    if learned == "votes":
        raise ValueError(
            f"objective={objective!r} counts votes, and opinions came. Pass Annotations or counts "
            "(N, K)."
        )
    check(opinion)
    if opinion.uncertainty.ndim != 1:
        raise ValueError(f"one opinion per row, (N,), is needed; {opinion.uncertainty.shape} came.")
    certain = opinion.uncertainty <= 0
    if learned == "opinion" and certain.any():
        raise ValueError(
            f"targets need some doubt; {certain.sum()} of {len(certain)} have uncertainty 0, which "
            "is infinite evidence. Smooth them: sle.smooth(target, 0.01)."
        )
    names = _column_names(labels, opinion.belief.shape[1])
    return _Given(names, opinion, opinion.probability, items)


def _shared(y: NDArray[Any], labels: Any, objective: TrainingObjective, smoothing: float) -> _Given:
    """Rows of probabilities; of votes, where those are asked for."""
    if y.dtype.kind not in "biuf":
        raise ValueError(
            f"a target of two axes is probabilities (N, K); {y.dtype} came. For one label a row "
            "pass one axis."
        )
    y = y.astype(float)
    total = y.sum(axis=1)
    bad = (y < 0).any(axis=1) | ((LEARNED[objective] != "votes") & (np.abs(total - 1) > 1e-3))
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"rows of probabilities must not be negative and must sum to 1; {bad.sum()} of "
            f"{len(bad)} do not, first row {i} with the sum {total[i]:g}. Divide counts by their "
            "sum, or learn from them as they are: objective='votes'."
        )
    names = _column_names(labels, y.shape[1])
    return _Given(names, _smoothed(y, objective, smoothing), y)


def _smoothed(y: Floats, objective: TrainingObjective, smoothing: float) -> Opinion | None:
    if LEARNED[objective] != "opinion":
        return None
    if not 0 < smoothing < 1:
        raise ValueError(
            f"`smoothing` of labels must lie between 0 and 1; {smoothing!r} came. "
            "0.01 leaves one percent of doubt."
        )
    return smooth(encode(y / y.sum(axis=-1, keepdims=True)), smoothing)


def _rows(given: _Given, n_rows: int, items: Any) -> Any:
    """The place of the target of each row of X."""
    if items is None:
        if len(given.votes) != n_rows:
            raise ValueError(
                f"each row of X needs its target; X has {n_rows} rows and the target is for "
                f"{len(given.votes)}. Name the rows of X if it is a part: fit(..., items=[...])."
            )
        return np.arange(n_rows)
    if given.items is None:
        raise ValueError(
            "`items` names the rows of X for targets that name theirs, Annotations or a table of "
            "opinions; this target has no names. Leave `items` out."
        )
    items = np.asarray(items).tolist()
    if len(items) != n_rows:
        raise ValueError(f"`items` must name the {n_rows} rows of X; {len(items)} names came.")
    return _codes(items, given.items, "`items`", "items of the target")


def _relabelled(annotations: Annotations, labels: Any) -> Annotations:
    if labels is None:
        return annotations
    at = _codes(annotations.labels, labels, "the annotations")
    y = annotations.y @ np.eye(len(labels))[at] if annotations.soft else at[annotations.y]
    return replace(annotations, y=y, labels=_names(labels))


def _gold_codes(gold: Any, labels: NDArray[Any], n_rows: int) -> Codes:
    if gold is None:
        raise ValueError(
            "objective='mtlsl' learns one gold label a row as well; none came. "
            "Pass them: fit(X, target, gold=[...])."
        )
    codes = _codes(gold, labels, "`gold`")
    if len(codes) != n_rows:
        raise ValueError(f"`gold` must have a label for each of {n_rows} rows; {len(codes)} came.")
    return codes


def _codes(values: Any, names: Any, what: str, known: str = "labels") -> Codes:
    """The place of each value among the names, and an error that counts those that have none."""
    place = {name: k for k, name in enumerate(np.asarray(names).tolist())}
    values = np.asarray(values).tolist()
    new = [value for value in values if value not in place]
    if new:
        raise ValueError(
            f"{what} must be among the {len(place)} {known} ({some(list(place))}); {len(new)} of "
            f"{len(values)} are not, first {new[0]!r}."
        )
    return np.asarray([place[value] for value in values], dtype=np.intp)


def _column_names(labels: Any, K: int) -> NDArray[Any]:
    names = _names(range(K) if labels is None else labels)
    if len(names) != K:
        raise ValueError(f"the target has {K} labels; {len(names)} are known.")
    return names


def _names(labels: Any) -> NDArray[Any]:
    return np.asarray(list(labels) if isinstance(labels, range) else labels)
