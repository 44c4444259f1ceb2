"""From how many people an item on the models stop helping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slencodings.aggregate.agreement import spread
from slencodings.annotations import Annotations
from slencodings.evaluation.predicted import log_loss
from slencodings.opinion import Codes, Floats
from slencodings.panel.held_out import HeldOut, Score, compare_losses, mix
from slencodings.trust import Crowd

# Fewer votes than these tell nothing, and more people than these are rarely asked.
_LEAST_VOTES, _MOST_PEOPLE = 30, 12


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
    held_out: HeldOut,
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
        enough = np.flatnonzero(asked.others >= n)
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
    def of(cls, held_out: HeldOut, rng: np.random.Generator) -> _Asked:
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
    def others(self) -> Codes:
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
