"""A network is one more annotator: what it says of items it has not seen helps to say what is true.

In the first round a network learns from the annotations. Networks that have not seen an item say
what it looks like, which is fused with what people said of it (`trust.truth_with_source`), and the
next round learns from that. Votes on items that no network and no target has seen choose the round.

So are the targets made of items with few annotations, or none: what networks say is fused with what
people did say. How much they count is chosen on held-out votes, and may be nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from slencodings.aggregate.em import safe_log
from slencodings.annotations import Annotations
from slencodings.fusion import fuse
from slencodings.opinion import Floats, Opinion, encode, maximize_uncertainty, smooth
from slencodings.trust.crowd import Crowd
from slencodings.trust.learn_crowd import count_each, learn_crowd
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
# What a network's opinion may be worth, in units of the prior weight, as a vote's worth is.
_WORTHS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_FOLDS = 4
_ROUNDS = 3


class _Losses(NamedTuple):
    """The log-loss of each held-out vote after a round.

    Attributes
    ----------
    known : by what its annotator says where a label is true, which is what networks say, as they
        are
    believed : the same, if networks are believed as far as is best
    given : their mean by what people get, which is one network: the first says what people would
        say, later ones do by `Rounds.said`
    """

    known: Floats
    believed: Floats
    given: float


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
        predicted, unseen = cross_fitted(
            model, X, shown, target, part, progress=progress, done=r, rounds=rounds
        )
        if not found:
            source, sourced = _first_truth(shown, hidden, predicted, rng)
        else:
            # How far these can be believed cannot be asked of votes that they know of through the
            # networks before them. They have learned what is true, and are believed as they are.
            source, sourced = predicted, truth_like(found[-1][1], shown, predicted, worth=1.0)
        heard = unseen @ sourced.model.crowd if found else unseen
        known, believed = sourced.vote_losses(hidden, predicted), sourced.vote_losses(hidden)
        losses.append(_Losses(known, believed, _mean_loss(hidden, heard, part)))
        if r > 0 and not _better(*losses[-2:]):
            break
        found.append((source, sourced))
        if not sourced.fused:
            break  # there is nothing of the networks in the next target
        target = smooth(sourced.truth, smoothing)
    truths = [_again(sourced, annotations, predicted, rng) for predicted, sourced in found[-2:]]
    before = smooth(truths[0].truth, smoothing) if len(truths) > 1 else None
    predicted, last = found[-1][0], truths[-1]
    habits = np.eye(len(annotations.labels)) if before is None else last.model.crowd
    means = [float(np.mean(each.known)) for each in losses]
    return Rounds(
        before, last.truth, predicted, last.worth, said=habits, losses=means, chosen=len(found)
    )


def _first_truth(
    shown: Annotations, hidden: Annotations, predicted: Floats, rng: np.random.Generator
) -> tuple[Floats, Sourced]:
    """What the first networks are taken to say, and what is true with them."""
    # These have learned what people say, and few items make networks too sure of that.
    source = as_sure_as_votes(shown, predicted)
    sourced = truth_with_source(shown, source, rng=rng)
    if sourced.fused and not _borne_out(sourced, hidden):
        # By chance votes were predicted better with them, where that was tried.
        source = np.full(source.shape, 1 / len(shown.labels))
        sourced = truth_with_source(shown, source, rng=rng)
    return source, sourced


def _borne_out(sourced: Sourced, hidden: Annotations) -> bool:
    """Whether held-out votes are predicted better, too, if networks are believed."""
    without = sourced.vote_losses(hidden, np.ones(sourced.log_source.shape))
    return surely_lower(sourced.vote_losses(hidden), without, standard_errors=1)


def _better(before: _Losses, now: _Losses) -> bool:
    """Whether a round knows more than the one before, and says no worse what people will say."""
    surer = surely_lower(now.known, before.known, standard_errors=1)
    worse = surely_lower(before.believed, now.believed, standard_errors=2)
    return surer and not worse and now.given < before.given


def _mean_loss(hidden: Annotations, heard: Floats, part: NDArray[np.intp]) -> float:
    """The log-loss of held-out votes, the mean over networks; heard is of each, (folds, n, K)."""
    asked = hidden.of_items(np.flatnonzero(part < 0))
    return float(np.mean([word_losses(asked, safe_log(p)) for p in heard]))


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
    *,
    progress: Callable[[int, int], None] | None,
    done: int = 0,
    rounds: int = 1,
) -> tuple[Floats, Floats]:
    """What networks say of the items that they have not seen, (N, K); their mean if none has.

    Beside it what each says of those that none has seen, (folds, n, K). So many of all `rounds` are
    `done`, for `progress`.
    """
    labels, folds = shown.labels.tolist(), int(part.max()) + 1
    unseen = np.flatnonzero(part < 0)
    result, each = np.zeros((len(part), len(labels))), np.zeros((folds, len(unseen), len(labels)))
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
        if len(unseen):
            each[f] = network.predict_proba(X[unseen])
        if progress is not None:
            progress(done * folds + f + 1, rounds * folds)
    result[unseen] = np.mean(each, axis=0)
    return result, each


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


class Helped(NamedTuple):
    """Opinions of items by people and a network.

    Attributes
    ----------
    opinion : Opinion (N,), with the base rate that the crowd's have
    worth : how much the network counts, 0 if it is not used: of votes in units of the prior weight,
        of truth as a power of its probabilities
    losses : the log-loss of held-out votes without a network and with it; of truth, of each
        round up to the one that is taken
    """

    opinion: Opinion
    worth: float
    losses: list[float]


def votes_with_network(
    model: Any,
    X: NDArray[Any],
    annotations: Annotations,
    crowd: Crowd,
    *,
    rng: np.random.Generator | int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Helped:
    """What the next person would say of each item, by those who spoke and by networks.

    The crowd's opinion is fused with the network's, p discounted to u = 1 / (1 + w). Of all w the
    one is taken by which votes are predicted best, half of it from the others on their item and
    half without any, by crowds and networks that have not seen the item.

    Parameters
    ----------
    model : an `SLEClassifier`, which is cloned
    X : array (N, ...), the items in the order of `annotations.items`; some may have no annotations
    crowd : what was learned of these annotations
    progress : called with how many networks are trained, and how many have to be
    """
    check_crowd(X, annotations, _FOLDS)
    a, rng = annotations, np.random.default_rng(rng)
    part = rng.permutation(len(a.items)) % _FOLDS
    p, _ = cross_fitted(model, X, a, None, part, progress=progress)
    losses = dict.fromkeys(_WORTHS, 0.0)
    for f in range(_FOLDS):
        held_out = a.rows(part[a.item] == f)
        known = _like(crowd, a.rows(part[a.item] != f))
        rest = known.votes_of(known.evidence_of_others(held_out))
        nobody = Opinion(0 * rest.belief, np.ones(len(held_out.item)), rest.base_rate)
        for worth in _WORTHS:
            for opinion in (rest, nobody):
                P = _fused(opinion, p[held_out.item], worth).probability
                losses[worth] -= float(np.sum(held_out.vectors * np.log(P))) / 2
    best = min(losses, key=lambda worth: losses[worth])
    compared = [losses[worth] / len(a.item) for worth in (0.0, best)]
    return Helped(_fused(crowd.votes(a), p, best), best, compared)


def truth_with_network(
    model: Any,
    X: NDArray[Any],
    annotations: Annotations,
    crowd: Crowd,
    *,
    rng: np.random.Generator | int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Helped:
    """Which label is right of each item, by annotators and by networks; see `learn_in_rounds`.

    Where held-out votes are predicted best without a network, it is the crowd's own answer. The
    parameters are those of `votes_with_network`.
    """
    truth = crowd.truth(annotations)
    found = learn_in_rounds(model, X, annotations, rounds=_ROUNDS, rng=rng, progress=progress)
    if found.worth:
        P = found.truth.probability
        truth = maximize_uncertainty(Opinion(P, np.zeros(len(P)), truth.base_rate))
    return Helped(truth, found.worth, found.losses[: found.chosen])


def _like(crowd: Crowd, annotations: Annotations) -> Crowd:
    """The crowd as some of its annotations teach it; where nothing can be learned, each counts."""
    if not crowd.learned or not np.any(np.bincount(annotations.item) > 1):
        return count_each(annotations)
    return learn_crowd(annotations, like=crowd)


def _fused(opinion: Opinion, p: Floats, worth: float) -> Opinion:
    """Opinions (n,) and the network's, p (n, K) of this worth."""
    network = encode(p, np.full(len(p), 1 / (1 + worth)))
    pairs = (opinion.belief, network.belief), (opinion.uncertainty, network.uncertainty)
    b, u = (np.stack(pair, axis=1) for pair in pairs)
    return fuse(Opinion(b, u, np.stack([opinion.base_rate] * 2, axis=1)))
