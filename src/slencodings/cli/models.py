"""From a crowd and features of its items to a trained model, its opinions and its score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.evaluation.scores import Scores, evaluate
from slencodings.files.features import Embed
from slencodings.files.write import Row

if TYPE_CHECKING:
    from slencodings.torch import SLEClassifier

Mask = NDArray[np.bool_]


class Trained(NamedTuple):
    """A model, and which items it has not seen (N,)."""

    model: SLEClassifier
    unseen: Mask


def classifier(**settings: Any) -> SLEClassifier:
    """A classifier, or how to get what it needs."""
    from slencodings.torch import SLEClassifier

    return SLEClassifier(**settings)


def text_encoder(name: str | None, text: str | None) -> Embed | None:
    """What reads texts, by the name of a folder or package; None counts words."""
    if name is None:
        return None
    if text is None:
        raise ValueError("`encoder` reads a column of text; none is named. Name it: text='COLUMN'.")
    try:
        from slencodings.torch.texts import sentence_encoder
    except ImportError as error:
        raise ImportError(
            f"an encoder of texts needs PyTorch ({error}). Install it: pip install "
            "'slencodings[torch]'"
        ) from error
    return sentence_encoder(name)


def load(path: str) -> SLEClassifier:
    """Read a model that `train` made and `save` wrote."""
    return classifier().load(path)


def train(
    annotations: Annotations,
    X: NDArray[Any],
    there: Mask,
    *,
    test: float = 0.2,
    gold: NDArray[np.float64] | None = None,
    seed: int = 0,
    **settings: Any,
) -> Trained:
    """Train on the items that have features and annotations, but for some that are held out.

    Parameters
    ----------
    X, there : features of the items (N, ...), and which items have some (N,)
    test : share of those items to hold out
    gold : what is true (N, K), NaN where unknown; for objective="mtlsl"
    settings : passed to `SLEClassifier`
    """
    if not 0 <= test < 1:
        raise ValueError(f"`test` must be a share in [0, 1); {test} came. 0.2 is usual.")
    usable = there & (np.bincount(annotations.item, minlength=len(there)) > 0)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(usable))
    unseen = np.zeros(len(there), dtype=bool)
    unseen[order[: round(test * len(order))]] = True
    seen = usable & ~unseen
    if seen.sum() < 2:
        raise ValueError(
            f"at least two items with features and annotations are needed to train; {seen.sum()} "
            "came. Look at the names of the items in both files, or hold out less."
        )
    model = classifier(random_state=seed, labels=annotations.labels.tolist(), **settings)
    known = None
    if model.objective == "mtlsl":
        if gold is None or np.isnan(gold[seen]).any():
            raise ValueError(
                "objective='mtlsl' needs the true label of every item that is trained on; "
                f"{0 if gold is None else int((~np.isnan(gold[seen, 0])).sum())} of {seen.sum()} "
                "have one."
            )
        known = annotations.labels[gold[seen].argmax(axis=1)]
    model.fit(X[seen], annotations.of_items(np.flatnonzero(seen)), gold=known)
    return Trained(model, unseen)


def score(
    model: SLEClassifier,
    annotations: Annotations,
    X: NDArray[Any],
    use: Mask,
    *,
    gold: NDArray[np.float64] | None = None,
) -> Scores:
    """How good the model's opinions are on some items, one flat row; see `evaluate`."""
    if not use.any():
        raise ValueError("at least one item is needed to evaluate on; none came.")
    strange = sorted(set(annotations.labels.tolist()) - set(model.classes_.tolist()), key=str)
    if strange or len(annotations.labels) != len(model.classes_):
        known = ", ".join(map(str, model.classes_.tolist()))
        raise ValueError(
            f"the crowd must have the labels the model was trained on, {known}; "
            + (f"{len(strange)} others came, first {strange[0]!r}." if strange else "some miss.")
            + " Name them all: labels=[...]."
        )
    crowd = annotations.of_items(np.flatnonzero(use))
    opinion = model.predict_opinion(X[use])
    order = [model.classes_.tolist().index(name) for name in crowd.labels.tolist()]
    b, u, a = opinion
    codes = None
    if gold is not None:
        known = ~np.isnan(gold[use]).any(axis=1)
        codes = np.where(known, np.nan_to_num(gold[use]).argmax(axis=1), -1)
    return evaluate(type(opinion)(b[:, order], u, a[:, order]), crowd, codes)


def opinion_rows(
    model: SLEClassifier, names: Sequence[Any], X: NDArray[Any], unseen: Mask | None = None
) -> list[Row]:
    """The model's opinion of each item, a row each."""
    opinion = model.predict_opinion(X)
    labels, p = model.classes_.tolist(), opinion.probability
    columns: dict[str, list[Any]] = {"item": list(names)}
    columns |= {f"belief_{k}": opinion.belief[:, i].tolist() for i, k in enumerate(labels)}
    columns["uncertainty"] = opinion.uncertainty.tolist()
    columns |= {f"probability_{k}": p[:, i].tolist() for i, k in enumerate(labels)}
    if unseen is not None:
        columns["split"] = np.where(unseen, "test", "train").tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
