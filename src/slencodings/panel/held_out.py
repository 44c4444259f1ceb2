"""People's votes on held-out items, predicted from other people and from some of the models.

And from how many people an item on the models stop helping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate.agreement import spread
from slencodings.annotations import Annotations
from slencodings.evaluation.measure import middle, resample_groups
from slencodings.evaluation.predicted import log_loss
from slencodings.opinion import Codes, Floats
from slencodings.trust import Crowd, learn_crowd

# Fewer votes than these tell nothing, and more people than these are rarely asked.
_LEAST_VOTES, _MOST_PEOPLE = 30, 12


@dataclass(frozen=True, eq=False)
class HeldOutPeople:
    """What is predicted: the votes of people on items that another person answered as well.

    Attributes
    ----------
    annotations : one of each annotator and item
    people : (M,), who is a person
    fold : (N,), the fold of each item; -1 where there is nothing to predict, which only teaches
    seed : of what is drawn in learning
    """

    annotations: Annotations
    people: NDArray[np.bool_]
    fold: Codes
    seed: int

    @cached_property
    def votes(self) -> Codes:
        """The annotations that are predicted, (S,)."""
        a = self.annotations
        return np.flatnonzero(self.people[a.annotator] & (self.fold[a.item] >= 0))

    @property
    def judges(self) -> tuple[int, ...]:
        """The models that answered something, as codes."""
        seen = np.unique(self.annotations.annotator)
        return tuple(seen[~self.people[seen]].tolist())

    @property
    def n_folds(self) -> int:
        """How many folds."""
        return int(self.fold.max()) + 1

    def panel(self, judges: Sequence[int]) -> Annotations:
        """What people and these judges said."""
        kept = self.people.copy()
        kept[list(judges)] = True
        return self.annotations.rows(kept[self.annotations.annotator])

    def learn(
        self,
        judges: Sequence[int],
        tell: Callable[[], None],
        like: Sequence[Crowd] | None = None,
    ) -> list[Crowd]:
        """A crowd of people and these judges for each fold, learned from the items of the others.

        Only people's votes are predicted: models that agree with each other earn nothing by it.
        What was chosen for crowds of other judges, `like`, is not chosen anew for these.
        """
        a, crowds = self.panel(judges), list[Crowd]()
        for f in range(self.n_folds):
            tell()
            train = a.rows((self.fold != f)[a.item])
            chosen = None if like is None else like[f]
            crowds.append(learn_crowd(train, scored=self.people, like=chosen, rng=self.seed))
        return crowds

    def chances(self, crowds: Sequence[Crowd], judges: Sequence[int]) -> Floats:
        """How likely each predicted vote was by the others on its item, (S, K)."""
        a = self.panel(judges)
        fold, p = self.fold[a.item], np.zeros((len(a.item), len(a.labels)))
        for f, crowd in enumerate(crowds):
            p[fold == f] = crowd.predict(a.rows(fold == f))
        return p[self.people[a.annotator] & (fold >= 0)]

    def losses(self, chances: Floats) -> Floats:
        """The log-loss of each predicted vote, (S,)."""
        return log_loss(self.annotations.rows(self.votes).vectors, chances)


def hold_out(
    annotations: Annotations, people: NDArray[np.bool_], *, folds: int = 5, seed: int = 0
) -> HeldOutPeople:
    """Deal the items that two people answered, or more, into folds."""
    a = annotations
    shared = np.flatnonzero(np.bincount(a.item[people[a.annotator]], minlength=len(a.items)) > 1)
    if folds < 2 or len(shared) < 2 * folds:
        raise ValueError(
            "models are judged by people's votes on held-out items, so at least two folds and two "
            f"items a fold that two people answered are needed; folds={folds} and {len(shared)} "
            "such items came."
        )
    fold = np.full(len(a.items), -1)
    fold[np.random.default_rng(seed).permutation(shared)] = np.arange(len(shared)) % folds
    return HeldOutPeople(a, people, fold, seed)


class Mixed(NamedTuple):
    """What people alone predict and what people with models do, averaged.

    Attributes
    ----------
    chances : (S, K)
    share : (folds,), how much of it is with models, by the votes of the other folds
    """

    chances: Floats
    share: Floats


def mix(votes: Annotations, fold: Codes, alone: Floats, together: Floats) -> Mixed:
    """Average two predictions of votes (S, K), of folds (S,), by how they did in other folds.

    Both come from the same people, so they depend on each other and are averaged. Models that
    would make the prediction of other items worse get no share at all: then people stand alone.
    """
    share = np.asarray(
        [
            best_share(votes.rows(fold != f), alone[fold != f], together[fold != f])
            for f in range(int(fold.max()) + 1)
        ]
    )
    m = share[fold][:, None]
    return Mixed((1 - m) * alone + m * together, share)


def best_share(votes: Annotations, alone: Floats, together: Floats) -> float:
    """m in [0, 1] with the lowest log-loss of (1 - m) alone + m together.

    Its derivative, sum y (together - alone) / P, falls in m: where it is not above 0 at m = 0 the
    models help nobody, and where it is not below 0 at m = 1 nothing is gained without them.
    """
    from scipy.optimize import brentq

    y = votes.vectors
    given = y > 0
    y, p, q = y[given], alone[given], together[given]

    def slope(m: float) -> float:
        return float(np.sum(y * (q - p) / ((1 - m) * p + m * q)))

    if slope(0.0) <= 0:
        return 0.0
    if slope(1.0) >= 0:
        return 1.0
    return float(brentq(slope, 0.0, 1.0, xtol=1e-6))


class Score(NamedTuple):
    """The mean log-loss of people's votes, and how far below another it is, with intervals."""

    votes: float
    votes_low: float | None
    votes_high: float | None
    gain: float
    gain_low: float | None
    gain_high: float | None

    @property
    def better(self) -> bool:
        """Whether it is below the other for sure."""
        return self.gain_low is not None and self.gain_low > 0


def compare_losses(item: Codes, own: Floats, other: Floats, *, bootstrap: int, seed: int) -> Score:
    """How far losses (S,) are below others of the same votes, items resampled together."""
    both = np.stack([own, other - own], axis=1)
    drawn = resample_groups(item, both, bootstrap, np.random.default_rng(seed))
    votes, gain = middle(drawn[:, 0]), middle(drawn[:, 1])
    return Score(float(np.mean(own)), *votes, float(np.mean(other - own)), *gain)


class WithPeople(NamedTuple):
    """People's votes, predicted from so many other people, alone and with models.

    Attributes
    ----------
    people : how many others on the item are asked
    predicted : how many votes are predicted
    alone : log-loss by those people only
    score : with models as well; its gain is on people alone
    share : how much of the prediction is with models
    """

    people: int
    predicted: int
    alone: float
    score: Score
    share: float


def by_number_of_people(
    held_out: HeldOutPeople,
    alone: Sequence[Crowd],
    together: Sequence[Crowd],
    *,
    bootstrap: int,
    seed: int,
) -> list[WithPeople]:
    """Predict people's votes from 0, 1, 2, ... of the other people on their items.

    Parameters
    ----------
    alone, together : for each fold a crowd of people, and one of people and models
    """
    a, found = held_out.annotations, list[WithPeople]()
    asked = _Asked.of(held_out, np.random.default_rng(seed))
    for n in range(_MOST_PEOPLE + 1):
        enough = np.flatnonzero(asked.n_others >= n)
        if len(enough) < _LEAST_VOTES:
            break
        votes = a.rows(held_out.votes[enough])
        fold = held_out.fold[votes.item]
        rows, of_vote = asked.people(enough, n)
        models, of_models = asked.models(enough)
        by_people = _chances(a, rows, of_vote, alone, fold)
        rows, of_vote = np.concatenate([rows, models]), np.concatenate([of_vote, of_models])
        mixed = mix(votes, fold, by_people, _chances(a, rows, of_vote, together, fold))
        own, other = (log_loss(votes.vectors, p) for p in (mixed.chances, by_people))
        score = compare_losses(votes.item, own, other, bootstrap=bootstrap, seed=seed)
        share = float(np.mean(mixed.share))
        found.append(WithPeople(n, len(enough), float(np.mean(other)), score, share))
    return found


class _Asked(NamedTuple):
    """Whom to ask about the item of each predicted vote, in a random order.

    Attributes
    ----------
    order : annotations of people, sorted by item, in random order within
    first, size, rank : (S,), where the item of a vote begins in there, how many are on it, and the
        place of the vote itself among them
    judges, first_judge, judges_on : the same of annotations by models
    """

    order: Codes
    first: Codes
    size: Codes
    rank: Codes
    judges: Codes
    first_judge: Codes
    judges_on: Codes

    @classmethod
    def of(cls, held_out: HeldOutPeople, rng: np.random.Generator) -> _Asked:
        a, N = held_out.annotations, len(held_out.annotations.items)
        person = held_out.people[a.annotator]
        order = np.lexsort((rng.random(len(a.item)), a.item))
        people, judges = order[person[order]], order[~person[order]]
        item = a.item[held_out.votes]
        place = np.empty(len(a.item), dtype=np.intp)
        place[people] = np.arange(len(people))
        sizes = [np.bincount(a.item[rows], minlength=N) for rows in (people, judges)]
        starts = [np.cumsum(size) - size for size in sizes]
        rank = place[held_out.votes] - starts[0][item]
        return cls(
            people, starts[0][item], sizes[0][item], rank, judges, starts[1][item], sizes[1][item]
        )

    @property
    def n_others(self) -> Codes:
        """How many other people are on the item of each vote, (S,)."""
        return self.size - 1

    def people(self, votes: Codes, n: int) -> tuple[Codes, Codes]:
        """The next n people on the item after each vote, around, and the vote they are for."""
        after = self.rank[votes][:, None] + 1 + np.arange(n)
        places = self.first[votes][:, None] + after % self.size[votes][:, None]
        return self.order[places].ravel(), np.repeat(np.arange(len(votes)), n)

    def models(self, votes: Codes) -> tuple[Codes, Codes]:
        """All models on the item of each vote, and the vote they are for."""
        of_vote, within = spread(self.judges_on[votes])
        return self.judges[self.first_judge[votes][of_vote] + within], of_vote


def _chances(
    a: Annotations, rows: Codes, of_vote: Codes, crowds: Sequence[Crowd], fold: Codes
) -> Floats:
    """What would be said, (S, K), by annotations that were chosen for each vote."""
    chosen = replace(a.rows(rows), item=of_vote, items=np.arange(len(fold)))
    p = np.zeros((len(fold), len(a.labels)))
    for f, crowd in enumerate(crowds):
        here = fold == f
        some = chosen.rows(here[of_vote])
        p[here] = crowd.votes(some).probability[here]
    return p
