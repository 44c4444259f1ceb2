"""A network is one more annotator: what it says of items it has not seen helps to say what is true.

In the first round a network learns from the annotations. Networks that have not seen an item say
what it looks like, which is fused with what people said of it (`trust.truth_with_source`), and the
next round learns from that. Votes on items that no network and no target has seen choose the round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from slencodings.aggregate.em import safe_log
from slencodings.annotations import Annotations
from slencodings.opinion import Floats, Opinion, smooth
from slencodings.trust.source import (
    Sourced,
    as_sure_as_votes,
    surely_lower,
    truth_like,
    truth_with_source,
    word_losses,
)

# The share of items whose votes choose the round.
_HELD_OUT = 0.2


class _Losses(NamedTuple):
    """The log-loss of each held-out vote after a round.

    Attributes
    ----------
    known : by what its annotator says where a label is true, which is what networks say, as they
        are
    believed : the same, if networks are believed as far as is best
    given : by what `SLEClassifier` then says that people would say: the first network by itself,
        later ones by `Rounds.said`
    """

    known: Floats
    believed: Floats
    given: Floats


class Rounds(NamedTuple):
    """What rounds of networks made of a crowd.

    Attributes
    ----------
    target : Opinion (N,) to learn from in the round that is chosen; None if that is the first,
        which learns from the annotations as they are
    truth : Opinion (N,), what is true of the items by people and the networks of that round
    predicted : array (N, K), what those networks say of items that they have not seen; of the first
        round no surer than votes bear out, and nothing if held-out votes do not bear it out
    worth : how far they are believed, see `trust.truth_with_source`
    said : array (K, K), what people say (column) where a label is true (row). A network of later
        rounds says what is true, p, and people would say p @ said; the first says that itself, and
        this is the identity
    losses : the log-loss of held-out votes after each round, by what its networks say is true
    chosen : the last round, counted from 1, that predicts them better than the one before; see
        `learn_in_rounds`
    """

    target: Opinion | None
    truth: Opinion
    predicted: Floats
    worth: float
    said: Floats
    losses: list[float]
    chosen: int


def learn_in_rounds(
    model: Any,
    X: NDArray[Any],
    annotations: Annotations,
    *,
    rounds: int = 3,
    folds: int = 4,
    smoothing: float = 0.01,
    rng: np.random.Generator | int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Rounds:
    """Learn from annotations with networks that help to say what is true, at most so many rounds.

    It ends with the first round that does not predict held-out votes better than the one before by
    more than a standard error (as Breiman et al. 1984 choose trees), that predicts them worse by
    more than two once the one before is believed as far as is best, or that does not say better
    than the one before what people say, whoever they are. It costs a network for each fold and
    round.

    Parameters
    ----------
    model : an `SLEClassifier`, which is cloned
    X : array (N, ...), the items in the order of `annotations.items`; some may have no annotations
    rounds : at least 1
    folds : how many networks a round has, each for the items that it has not seen
    smoothing : the doubt left about everything in targets
    progress : called with how many networks are trained, and how many may have to be
    """
    if rounds < 1 or folds < 2:
        raise ValueError(
            f"`rounds` must be at least 1 and `folds` at least 2; {rounds} and {folds} came."
        )
    check_crowd(X, annotations, folds)
    rng = np.random.default_rng(rng)
    part = _parts(annotations, folds, rng)
    shown = annotations.rows(part[annotations.item] >= 0)
    hidden = annotations.rows(part[annotations.item] < 0)
    found: list[tuple[Floats, Sourced]] = []
    losses: list[_Losses] = []
    target: Opinion | None = None
    for r in range(rounds):

        def on_network(done: int, r: int = r) -> None:
            if progress is not None:
                progress(r * folds + done, rounds * folds)

        source = predicted = cross_fitted(model, X, shown, target, part, on_network)
        if not found:
            # These have learned what people say, and few items make networks too sure of that.
            source = as_sure_as_votes(shown, predicted)
            sourced = truth_with_source(shown, source, rng=rng)
            if sourced.fused and not _borne_out(sourced, hidden):
                # By chance votes were predicted better with them, where that was tried.
                source = np.full(source.shape, 1 / len(annotations.labels))
                sourced = truth_with_source(shown, source, rng=rng)
        else:
            # How far these can be believed cannot be asked of votes that they know of through the
            # networks before them. They have learned what is true, and are believed as they are.
            sourced = truth_like(found[-1][1], shown, source, worth=1.0)
        heard = predicted @ sourced.model.crowd if found else predicted
        losses.append(
            _Losses(
                sourced.vote_losses(hidden, predicted),
                sourced.vote_losses(hidden),
                word_losses(hidden, safe_log(heard)),
            )
        )
        if r > 0 and not _better(*losses[-2:]):
            break
        found.append((source, sourced))
        if not sourced.fused:
            break  # there is nothing of the networks in the next target
        target = smooth(sourced.truth, smoothing)
    truths = [_again(sourced, annotations, predicted, rng) for predicted, sourced in found[-2:]]
    before = smooth(truths[0].truth, smoothing) if len(truths) > 1 else None
    predicted, last = found[-1][0], truths[-1]
    said = np.eye(len(annotations.labels)) if before is None else last.model.crowd
    means = [float(np.mean(each.known)) for each in losses]
    return Rounds(before, last.truth, predicted, last.worth, said, means, len(found))


def _borne_out(sourced: Sourced, hidden: Annotations) -> bool:
    """Whether held-out votes are predicted better, too, if networks are believed."""
    without = sourced.vote_losses(hidden, np.ones(sourced.log_source.shape))
    return surely_lower(sourced.vote_losses(hidden), without, standard_errors=1)


def _better(before: _Losses, now: _Losses) -> bool:
    """Whether a round knows more than the one before, and says no worse what people will say."""
    surer = surely_lower(now.known, before.known, standard_errors=1)
    worse = surely_lower(before.believed, now.believed, standard_errors=2)
    return surer and not worse and bool(np.mean(now.given) < np.mean(before.given))


def _again(
    sourced: Sourced, annotations: Annotations, predicted: Floats, rng: np.random.Generator
) -> Sourced:
    """The same from all annotations."""
    if sourced.fused:
        return truth_like(sourced, annotations, predicted, worth=sourced.worth)
    return truth_with_source(annotations, predicted, rng=rng)


def _parts(annotations: Annotations, folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The fold of each item, (N,), and -1 for those annotated whose votes choose the round."""
    part = rng.permutation(len(annotations.items)) % folds
    known = np.unique(annotations.item)
    part[rng.permutation(known)[: int(np.ceil(_HELD_OUT * len(known)))]] = -1
    return part


def cross_fitted(
    model: Any,
    X: NDArray[Any],
    shown: Annotations,
    target: Opinion | None,
    part: NDArray[np.intp],
    on_network: Callable[[int], None],
) -> Floats:
    """What networks say of the items that they have not seen, (N, K); their mean if none has."""
    labels, folds = shown.labels.tolist(), int(part.max()) + 1
    result = np.zeros((len(part), len(labels)))
    for f in range(folds):
        taught = np.flatnonzero((part >= 0) & (part != f))
        network = clone(model).set_params(labels=labels)
        if target is None:
            network.fit(X[taught], shown.of_items(taught))
        else:
            # Whom to trust is in the targets.
            network.set_params(reliability=None).fit(X[taught], target.rows(taught))
        rest = part == f
        if rest.any():
            result[rest] = network.predict_proba(X[rest])
        if (part < 0).any():
            result[part < 0] += network.predict_proba(X[part < 0]) / folds
        on_network(f + 1)
    return result


def check_crowd(X: NDArray[Any], annotations: Annotations, folds: int) -> None:
    """Items need a row of features each, and enough of them annotations."""
    N, known = len(annotations.items), len(np.unique(annotations.item))
    if len(X) != N:
        raise ValueError(f"each of {N} items needs its row of X; {len(X)} rows came.")
    if known < 10 * folds:
        raise ValueError(
            f"networks that help need {10 * folds} annotated items, ten for each fold; {known} "
            "came. Leave them out: rounds=1, or no features."
        )
