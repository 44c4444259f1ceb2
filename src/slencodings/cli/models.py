"""From a crowd and features of its items to a trained model, its opinions and its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, counted, names_like, some
from slencodings.evaluation.measure import codes_of_truth
from slencodings.evaluation.scores import Scores, evaluate
from slencodings.files import crowd as files
from slencodings.files.features import Embed, read_features
from slencodings.files.job import Also, Known
from slencodings.files.write import AnyRow, check_place
from slencodings.opinion import Opinion
from slencodings.progress import Progress, Say
from slencodings.trust.crowd import Crowd

if TYPE_CHECKING:
    from slencodings.torch import SLEClassifier
    from slencodings.torch.rounds import Helped

Mask = NDArray[np.bool_]


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
    from slencodings.torch.texts import sentence_encoder

    return sentence_encoder(name)


def load(path: str) -> SLEClassifier:
    """Read a model that `train` made and `save` wrote."""
    return classifier().load(path)


def check_model_place(path: str, *inputs: str) -> None:
    """Refuse a place where no model can be written, or a name that says it is something else."""
    here = Path(path)
    if here.suffix.lower() != ".safetensors":
        raise ValueError(
            f"a model is a safetensors file; {here.name!r} came. Name it {here.stem}.safetensors."
        )
    check_place(path, inputs)


class ModelInput(NamedTuple):
    """What a model sees of the items of a crowd.

    Attributes
    ----------
    X, there : features (N, ...), and which items have some (N,)
    questions : the labels that the last columns of X ask about; None if they ask about none
    """

    X: NDArray[Any]
    there: Mask
    questions: list[str] | None


def features_of(
    crowd: files.ReadCrowd,
    source: str,
    *,
    asked: list[str] | None = None,
    feature_item: str | None,
    text: str | None,
    embed: Embed | None,
) -> ModelInput:
    """Features of a crowd's items.

    Of yes or no questions about several labels, such as "7 / sports", a file may have features of
    each; else they are those of the item 7, with a column for each label that is 1 if it is asked.
    `asked` are the labels that a trained model knows.
    """
    names = crowd.annotations.items.tolist()
    questions = crowd.questions or []
    abouts = [str(n).removesuffix(f" / {q}") for n, q in zip(names, questions, strict=False)]
    _, X, there = read_features(
        source, [*names, *abouts], feature_item=feature_item, text=text, embed=embed
    )
    N = len(names)
    if not questions or there[:N].any():
        return ModelInput(X[:N], there[:N], None)
    known = asked or sorted(set(questions))
    if strange := sorted(set(questions) - set(known)):
        raise ValueError(
            f"the crowd must choose among the labels the model was trained on, {', '.join(known)}; "
            f"{counted(len(strange), 'other')} came, first {strange[0]!r}."
        )
    one_hot = np.asarray(questions)[:, None] == np.asarray(known)
    of_items = slice(N, 2 * N)
    both = np.hstack([X[of_items].reshape(N, -1), one_hot.astype(X.dtype)])
    return ModelInput(both, there[of_items], known)


def train(
    annotations: Annotations,
    X: NDArray[Any],
    there: Mask,
    *,
    test: float = 0.2,
    gold: NDArray[np.float64] | None = None,
    sets: NDArray[np.intp] | None = None,
    seed: int = 0,
    **settings: Any,
) -> tuple[SLEClassifier, Mask]:
    """A model of the items that have features and annotations, but for some held out, and which.

    Parameters
    ----------
    X, there : features of the items (N, ...), and which items have some (N,)
    test : share of those items to hold out
    gold : what is true (N, K), NaN where unknown; for objective="mtlsl"
    sets : (N,), items of one set are held out together; each alone when absent
    settings : passed to `SLEClassifier`
    """
    if not 0 <= test < 1:
        raise ValueError(f"`test` must be a share in [0, 1); {test} came. 0.2 is usual.")
    usable = there & (np.bincount(annotations.item, minlength=len(there)) > 0)
    set_of = np.arange(len(there)) if sets is None else sets
    order = np.random.default_rng(seed).permutation(np.unique(set_of[usable]))
    unseen = usable & np.isin(set_of, order[: round(test * len(order))])
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
    return model, unseen


def network_source(
    features: str,
    *,
    feature_item: str | None,
    text: str | None,
    embed: Embed | None,
    truth: bool,
    seed: int,
    say: Say,
    progress: Progress,
) -> Also:
    """What networks know of items, for `encode_file`: cross-fitted on features of a file.

    Items that the file has and nobody annotated get opinions too; annotated ones that it lacks have
    those of the crowd.
    """
    model = classifier(objective="cross_entropy", random_state=seed)

    def also(annotations: Annotations, crowd: Crowd) -> Known:
        from slencodings.torch import truth_with_network, votes_with_network

        names = annotations.items.tolist()
        found = read_features(features, names, feature_item=feature_item, text=text, embed=embed)
        new = len(found.items) - len(names)
        items = _like_names(found.items, names)
        a = replace(annotations, items=items)
        b, u, base_rate = crowd.truth(a) if truth else crowd.votes(a)
        at = np.flatnonzero(found.there)
        help_ = truth_with_network if truth else votes_with_network
        helped = help_(
            model,
            found.X[at],
            a.of_items(at),
            crowd,
            rng=seed,
            progress=lambda done, total: progress("networks", done, total, "networks"),
        )
        b[at], u[at], _ = helped.opinion
        say("network", _in_words(helped, truth=truth))
        if new:
            what = "the network's opinion" if helped.worth else "vacuous ones"
            say("note", f"{counted(new, 'item')} of {features} without annotations: {what}")
        if len(at) < len(items):
            say(
                "note", f"{counted(len(items) - len(at), 'item')} without features, by people alone"
            )
        return Known(items, Opinion(b, u, base_rate))

    return also


def _in_words(helped: Helped, *, truth: bool) -> str:
    """What was made of a network, in words."""
    if not helped.worth:
        return "not used: held-out votes are predicted no better with it"
    if truth:
        return (
            f"one more source, to the power of {helped.worth:g}; round {len(helped.losses)} is "
            "taken, by held-out votes"
        )
    without, loss = helped.losses
    return (
        f"one more source, worth {helped.worth:g} x the prior weight: held-out vote log-loss, with "
        f"others and without, {without:.3f} -> {loss:.3f}"
    )


def _like_names(names: list[Any], known: list[Any]) -> NDArray[Any]:
    """Names of items, those of the file as the crowd's are: texts, or as they come."""
    as_text = all(isinstance(name, str) for name in known)
    result = np.empty(len(names), dtype=object)
    result[:] = [str(name) if as_text else name for name in names]
    return result


def score(
    model: SLEClassifier,
    annotations: Annotations,
    X: NDArray[Any],
    use: Mask,
    *,
    gold: NDArray[np.float64] | None = None,
    sets: NDArray[np.intp] | None = None,
) -> Scores:
    """How good the model's opinions are on some items, one flat row; see `evaluate`."""
    if not use.any():
        raise ValueError("at least one item is needed to evaluate on; none came.")
    known = model.classes_.tolist()
    labels = names_like(annotations.labels, known).tolist()
    strange = sorted(set(labels) - set(known), key=str)
    if strange or len(labels) != len(known):
        raise ValueError(
            f"the crowd must have the labels the model was trained on, {some(known)}; "
            + (
                f"{counted(len(strange), 'other')} came, first {strange[0]!r}."
                if strange
                else "some miss."
            )
            + " Name them all: labels=[...]."
        )
    crowd = annotations.of_items(np.flatnonzero(use))
    opinion = model.predict_opinion(X[use])
    order = [known.index(name) for name in labels]
    b, u, a = opinion
    codes = None if gold is None else codes_of_truth(gold[use])
    predicted = type(opinion)(b[:, order], u, a[:, order])
    return evaluate(predicted, crowd, codes, sets=None if sets is None else sets[use])


def opinion_rows(
    model: SLEClassifier, names: Sequence[Any], X: NDArray[Any], unseen: Mask | None = None
) -> list[AnyRow]:
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
