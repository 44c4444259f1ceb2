"""Learn what people would say, what is true and whom to trust, from the crowd itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations, base_rate_of, counted, sums_by
from slencodings.opinion import USUAL_WEIGHT, Codes, Floats
from slencodings.trust.crowd import Crowd, People
from slencodings.trust.fit_worth import Parts, learn_worth
from slencodings.trust.truth import learn_truth, through_truth
from slencodings.trust.worth import ONE_COUNT, Ridge, Votes

# Beyond these labels, or numbers in all confusions, what is said where a label is true is not
# learned: there is too little to learn each from, and too much to hold.
MOST_LABELS, _MOST_CELLS = 100, 10_000_000
# Beyond these, a vote is for its label and says nothing about others.
MOST_MEANT = 30
# Of more annotations a part is learned from, but about so many of each annotator.
_MOST_TO_FIT, _PER_ANNOTATOR = 100_000, 100


def learn_crowd(
    annotations: Annotations,
    *,
    by_annotator: bool = True,
    by_confidence: bool = True,
    scored: Any = None,
    ridge: Ridge | None = None,
    like: Crowd | None = None,
    max_levels: int = 20,
    rng: np.random.Generator | int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Crowd:
    """Learn about a crowd by predicting its votes from each other.

    First what annotators say where a label is true (`aggregate.shrunk_dawid_skene`), then what
    votes are worth (`worth` has the formulas), then how sure opinions should be: W under which
    votes on an item are most likely together, given one of them, two, ... or all but one. No gold
    labels are needed. Items with one annotation teach only how common labels are. Of more than 100
    labels the first is not learned: votes are then not read as truth.

    Parameters
    ----------
    by_annotator, by_confidence : whether annotators, and levels of confidence, differ in worth
    scored : whose votes are predicted, everybody's when absent: some annotators, or a mask (M,)
        in the order of `annotations.annotators`. The others only help to predict them
    ridge : how strongly to hold back each part of worth; chosen on held-out items when absent
    like : a crowd learned from some of these annotations; whatever was chosen on held-out items
        for it is taken as it is, in a third of the time
    max_levels : if more values than these are stated, as many of their quantiles are the levels
    rng : a generator or the seed of one, for the order of votes and the items held out
    progress : called with through how many annotations it went, one by one and again in every
        iteration, and through how many it may have to; what a fit did not need to counts as done

    Returns
    -------
    `losses` has the mean log-loss of predicted votes, half from all others on their item and half
    from those before them in a random order: "votes" if all are worth half the prior, "learned"
    on the annotations learned from, "held_out" on items left out while choosing. Of more than
    100,000 annotations those of some items are learned from, of about 100 by each annotator.

    Examples
    --------
    >>> from slencodings import from_table
    >>> said = {"item": [q // 3 for q in range(54)], "who": ["ann", "bob", "eve"] * 18}
    >>> said["label"] = [0, 0, 1, 1, 1, 0, 0, 0, 0] * 6
    >>> crowd = learn_crowd(from_table(said, item="item", annotator="who", label="label"))
    >>> crowd.annotators[crowd.accuracy.argmin()]
    'eve'
    """
    _check_comparable(annotations, max_levels)
    rng = np.random.default_rng(rng)
    a = annotations.rows(random_order(annotations, rng))
    scored_votes = scored_annotators(a, scored)[a.annotator]
    levels, level = (
        _levels_of_confidence(a, max_levels) if by_confidence else (np.zeros(0), 0 * a.item)
    )
    K, M, L = len(a.labels), len(a.annotators), len(levels)
    some = enough_items(a, _MOST_TO_FIT, rng.random(len(a.items)))[a.item]
    votes = _votes_alone(a.rows(some), scored_votes[some], level[some], max(L, 1))
    model, has_model = None, learns_confusions(a)
    if has_model:
        taught = None if like is None else like.model
        # At once, as the truth behind each vote is the largest there is, and not kept.
        model, votes = through_truth(*learn_truth(a, a.rows(some), rng, taught), votes, rng)
    votes = votes.some(np.bincount(votes.item, minlength=len(a.items)) > 1)
    parts = Parts(by_annotator and M > 1, L > 0, has_model, has_model and 1 < K <= MOST_MEANT)
    found = learn_worth(votes, parts, ridge, like, rng, progress)
    top = found.at.level.max()
    worths = np.exp(found.at.scale + found.at.annotator + top)
    crowd = replace(
        _unknown_crowd(a, scored_votes),
        worth=worths,
        typical_worth=float(np.exp(np.log(worths).mean())),
        levels=levels,
        share=np.exp(found.at.level - top)[:L],
        level_count=np.bincount(level, minlength=L)[:L],
        meaning=found.at.meaning,
        through_truth=found.at.through_truth,
        model=model,
        ridge=found.ridge,
        losses=found.losses,
        converged=found.converged,
    )
    # How sure it is and who is right are read off its own answers.
    weight = _prior_weight(crowd, a, scored_votes, rng)
    return replace(crowd, prior_weight=weight, people=crowd.judge_people(a))


def count_each(annotations: Annotations) -> Crowd:
    """A crowd of whom nothing is known: every annotation is one count, whoever gave it.

    For annotations that cannot be compared, as each is alone on its item.
    """
    crowd = _unknown_crowd(annotations, slice(None))
    return replace(crowd, people=crowd.judge_people(annotations))


def _unknown_crowd(a: Annotations, scored: NDArray[np.bool_] | slice) -> Crowd:
    """The same, of whom it is not even told how often they are right."""
    M = len(a.annotators)
    return Crowd(
        annotators=a.annotators,
        worth=np.full(M, ONE_COUNT),
        count=np.bincount(a.annotator, minlength=M),
        typical_worth=ONE_COUNT,
        levels=np.zeros(0),
        share=np.zeros(0),
        level_count=np.zeros(0, dtype=np.intp),
        labels=a.labels,
        base_rate=base_rate_of(a.rows(scored).sums().sum(axis=0)),
        meaning=None,
        through_truth=0.0,
        prior_weight=USUAL_WEIGHT,
        model=None,
        people=People(*np.zeros((4, M))),
        ridge=Ridge(),
        losses={},
        converged=True,
        from_uncertainty=a.stated is None,
    )


def learns_confusions(a: Annotations) -> bool:
    """Whether what each annotator says where a label is true is few enough numbers to learn."""
    K = len(a.labels)
    return K <= MOST_LABELS and len(a.annotators) * K**2 <= _MOST_CELLS


def _check_comparable(a: Annotations, max_levels: int) -> None:
    if not np.any(np.bincount(a.item, minlength=1) > 1):
        raise ValueError(
            "a crowd is learned by comparing annotations of the same item, so some item needs two; "
            f"of {counted(len(a.item), 'annotation')} each is alone on its item."
        )
    if max_levels < 1:
        raise ValueError(f"`max_levels` must be at least 1; {max_levels} came. 20 is usual.")


def enough_items(a: Annotations, size: int, lots: Floats) -> NDArray[np.bool_]:
    """Items whose annotations are enough to learn from, (N,), by lots in [0, 1).

    About `size` annotations in all, and more where annotators are rare.
    """
    n = np.bincount(a.annotator)
    rarest = np.full(len(a.items), len(a.item))
    np.minimum.at(rarest, a.item, n[a.annotator])
    share = size / max(len(a.item), 1)
    return lots < np.maximum(share, _PER_ANNOTATOR / np.maximum(rarest, 1))


def _votes_alone(a: Annotations, scored: NDArray[np.bool_], level: Codes, n_levels: int) -> Votes:
    """The votes, of which nothing is known about the truth behind them."""
    N, M, K = len(a.items), len(a.annotators), len(a.labels)
    vote, label, share = np.arange(len(a.item)), a.y, np.ones(len(a.item))
    if a.soft:
        vote, label = np.nonzero(a.y)
        share = a.y[vote, label]
    counted = scored.astype(float)
    nothing = np.zeros(len(vote))
    return Votes(
        item=a.item,
        annotator=a.annotator,
        level=level,
        scored=counted,
        vote=vote,
        label=label,
        share=share,
        all_say=nothing,
        earlier_say=nothing,
        base_rate=base_rate_of(sums_by(label, share * counted[vote], K)),
        sizes=(N, M, n_levels),
    )


def scored_annotators(annotations: Annotations, scored: Any) -> NDArray[np.bool_]:
    """Whose votes are predicted, as a mask (M,): of everybody, by name, or a mask already."""
    names = annotations.annotators.tolist()
    if scored is None:
        return np.ones(len(names), dtype=bool)
    mask = np.asarray(list(cast("set[Any]", scored)) if isinstance(scored, Set) else scored)
    if mask.dtype == bool and mask.shape == (len(names),):
        chosen = mask
    else:
        wanted = set(mask.ravel().tolist())
        unknown = sorted(wanted - set(names), key=str)
        if unknown:
            raise ValueError(
                f"`scored` must name annotators, or be a mask ({len(names)},); {len(unknown)} of "
                f"{len(wanted)} are not among them, first {unknown[0]!r}."
            )
        chosen = np.asarray([name in wanted for name in names])
    if not np.any(chosen[annotations.annotator]):
        raise ValueError("`scored` must leave somebody who annotated; nobody is left.")
    return chosen


def random_order(a: Annotations, rng: np.random.Generator) -> Codes:
    """The annotations sorted by item, in a random order within that is the same for any rows."""
    columns = a.y.T if a.soft else a.y[None]
    order = np.lexsort((a.uncertainty, a.confidence, *columns, a.annotator, a.item))
    return order[np.lexsort((rng.random(len(order)), a.item[order]))]


def _levels_of_confidence(a: Annotations, most: int) -> tuple[Floats, Codes]:
    """The levels of confidence and the level of each annotation.

    They are the values that occur, or the middles of quantile bins if those are too many; none if
    everybody states the same.
    """
    x = a.confidence
    seen = x[np.bincount(a.item)[a.item] > 1]
    levels = np.unique(seen)
    if len(levels) > most:
        at = (np.arange(most) + 0.5) / most
        levels = np.unique(np.quantile(seen, at, method="inverted_cdf"))
    if len(levels) < 2:
        return np.zeros(0), np.zeros(len(x), dtype=np.intp)
    return levels, np.searchsorted((levels[1:] + levels[:-1]) / 2, x)


def _prior_weight(
    crowd: Crowd, s: Annotations, scored: NDArray[np.bool_], rng: np.random.Generator
) -> float:
    """W under which the later votes on items are most likely together, given the earlier ones.

    - sum_i log DirichletMultinomial(n_i | W P_i / u_i), of opinions from a random number of votes,
    held back to 2 as if by one observation of log W.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    size = np.bincount(s.item, minlength=len(s.items))
    first = np.cumsum(size) - size
    given = 1 + np.floor(rng.random(len(size)) * (size - 1))
    shown = np.arange(len(s.item)) - first[s.item] < given[s.item]
    opinion = crowd.votes(s.rows(shown))
    n = s.rows(~shown & scored).sums()
    some = np.sum(n, axis=1) > 0
    u, total = opinion.uncertainty[some], np.sum(n[some], axis=1)
    # Labels that nobody gave add nothing.
    item, label = np.nonzero(n)
    votes, share = n[item, label], opinion.probability[item, label] / opinion.uncertainty[item]

    def loss(log_weight: float) -> float:
        A, alpha = math.exp(log_weight) / u, math.exp(log_weight) * share
        each = np.sum(gammaln(A + total) - gammaln(A))
        each -= np.sum(gammaln(alpha + votes) - gammaln(alpha))
        return float(each) + (log_weight - math.log(USUAL_WEIGHT)) ** 2 / 2

    return float(np.exp(minimize_scalar(loss, bounds=(-6, 8), method="bounded").x))
