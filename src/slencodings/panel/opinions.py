"""What people would say of each item, by people alone and with models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.opinion import Opinion
from slencodings.panel.held_out import best_share, hold_out, mix
from slencodings.panel.sides import choose_people, once_each
from slencodings.trust import Crowd, learn_crowd


@dataclass(frozen=True, eq=False)
class LearnedPanel:
    """A crowd of people, the same with models, and how much each counts.

    Attributes
    ----------
    people : (M,), who is a person
    alone, together : what was learned of people, and of people and models
    share : how much of the opinions is with models; 0 where held-out votes say that they do not
        help, and then people stand alone
    gain : how much lower the log-loss of people's held-out votes is than by people alone
    """

    people: NDArray[np.bool_]
    alone: Crowd
    together: Crowd
    share: float
    gain: float

    def votes_of_people(self, annotations: Annotations) -> Opinion:
        """What the next person would say of each item by what people said, (N,)."""
        return self.alone.votes(annotations.rows(self.people[annotations.annotator]))

    def votes(self, annotations: Annotations) -> Opinion:
        """What the next person would say of each item, (N,), by people and models.

        b = (1 - m) b_alone + m b_together,   u likewise,   m = `share`

        Both opinions come from the same people, so they are averaged, not cumulated. They share
        their base rate, how often people give each label.
        """
        m, a = self.share, once_each(annotations)[0]
        alone, together = self.votes_of_people(a), self.together.votes(a)
        return Opinion(
            (1 - m) * alone.belief + m * together.belief,
            (1 - m) * alone.uncertainty + m * together.uncertainty,
            alone.base_rate,
        )


def learn_panel(
    annotations: Annotations,
    *,
    people: Any = None,
    models: Any = None,
    folds: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LearnedPanel:
    """Learn targets for what people say, with models only as far as they help.

    Parameters
    ----------
    people, models : either of the two: names or patterns such as "gpt*", or a mask (M,)
    folds, seed : items are dealt so, by a generator of this seed, to see whether models help
    progress : called with fits done and in all

    Examples
    --------
    >>> from slencodings.datasets import simulated_panel
    >>> crowd = simulated_panel(100, judges={"good": 0.9, "dice": 0.3}, rng=0).annotations
    >>> panel = learn_panel(crowd, models=["good", "dice"], folds=2)
    >>> panel.share > 0, panel.votes(crowd).probability.shape
    (True, (100, 3))
    """
    is_person = choose_people(annotations, people=people, models=models)
    a, _ = once_each(annotations)
    held = hold_out(a, is_person, folds=folds, seed=seed)
    done, total = count(1), 2 * held.n_folds + 2

    def tell() -> None:
        progress(next(done), total)

    alone = held.chances(held.learn((), tell), ())
    together = held.chances(held.learn(held.judges, tell), held.judges)
    votes = a.rows(held.votes)
    mixed = mix(votes, held.fold[votes.item], alone, together)
    gain = float(np.mean(held.losses(alone) - held.losses(mixed.chances)))
    crowds = list[Crowd]()
    for rows in (is_person[a.annotator], slice(None)):
        tell()
        crowds.append(learn_crowd(a.rows(rows), scored=is_person, rng=seed))
    share = best_share(votes, alone, together) if gain > 0 else 0.0
    return LearnedPanel(is_person, crowds[0], crowds[1], share, gain)
