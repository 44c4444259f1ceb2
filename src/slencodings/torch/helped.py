"""Targets of items with few annotations, or none: a network is one more source.

Networks that have not seen an item say what people would say of it, or what is true, and that is
fused with what people did say. How much they count is chosen on held-out votes, and may be nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.fusion import fuse
from slencodings.opinion import Floats, Opinion, encode, maximize_uncertainty
from slencodings.torch.rounds import check_crowd, cross_fitted, learn_in_rounds
from slencodings.trust.crowd import Crowd
from slencodings.trust.learn_crowd import count_each, learn_crowd

# What a network's opinion may be worth, in units of the prior weight, as a vote's worth is.
_WORTHS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_FOLDS = 4
_ROUNDS = 3


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

    def on_network(done: int) -> None:
        if progress is not None:
            progress(done, _FOLDS)

    p = cross_fitted(model, X, a, None, part, on_network)
    losses = dict.fromkeys(_WORTHS, 0.0)
    for f in range(_FOLDS):
        held_out = a.rows(part[a.item] == f)
        known = _like(crowd, a.rows(part[a.item] != f))
        others = known.votes_of(known.evidence_of_others(held_out))
        nobody = Opinion(0 * others.belief, np.ones(len(held_out.item)), others.base_rate)
        for worth in _WORTHS:
            for opinion in (others, nobody):
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
