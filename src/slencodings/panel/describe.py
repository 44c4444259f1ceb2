"""Are the models worth having, which of them, and from how many people on not?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.choices import Alignment
from slencodings.opinion import Floats
from slencodings.panel.alternative import AlternativeAnnotatorTest, alternative_annotator_tests
from slencodings.panel.confidence import stated_confidence
from slencodings.panel.families import effective_votes
from slencodings.panel.held_out import (
    HeldOutPeople,
    Score,
    best_share,
    by_number_of_people,
    compare_losses,
    hold_out,
    mix,
)
from slencodings.panel.rows import About, Judge, Panel, Step
from slencodings.panel.sides import choose_people, family, once_each
from slencodings.trust import Crowd


def describe_panel(
    annotations: Annotations,
    *,
    people: Any = None,
    models: Any = None,
    costs: Mapping[Any, float] | None = None,
    alignment: Alignment = "accuracy",
    epsilon: float = 0.2,
    sources: Mapping[str, Floats] | None = None,
    folds: int = 5,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Panel:
    """Say whether models are worth having beside people, by predicting people's held-out votes.

    Each vote of a person is predicted from the others on its item, with all that is learned taken
    from other items: by people alone, with all models, with each model, and with all but one. What
    is predicted with models is averaged with people alone by how both did on other items, so that
    models that do not help get no share.

    Parameters
    ----------
    people, models : either of the two: names or patterns such as "gpt*", or a mask (M,)
    costs : of an answer of each model, for the path of those that gain most for their price
    alignment, epsilon : of the alternative annotator test
    sources : kinds of stated confidence, as in `stated_confidence`
    folds, bootstrap, seed : items are dealt and resampled so often, by a generator of this seed
    progress : called with fits done and in all

    Examples
    --------
    >>> from slencodings.datasets import simulated_panel
    >>> crowd = simulated_panel(100, judges={"good": 0.9, "dice": 0.3}, rng=0).annotations
    >>> panel = describe_panel(crowd, models=["good", "dice"], folds=2, bootstrap=100)
    >>> panel.together.gain > 0, [judge.alone.better for judge in panel.judges]
    (True, [False, True])
    """
    is_person = choose_people(annotations, people=people, models=models)
    a, repeated = once_each(annotations)
    held = hold_out(a, is_person, folds=folds, seed=seed)
    everyone = held.judges
    prices = None if costs is None else _prices(a, everyone, costs)
    tried = _Tried(held, bootstrap, progress, costs is not None)
    tests = alternative_annotator_tests(a, is_person, alignment=alignment, epsilon=epsilon)
    path = [] if prices is None else _path(a.annotators, tried, prices)
    crowds = tried.panel(()).crowds, tried.panel(everyone).crowds
    return Panel(
        about=_about(annotations, held, repeated, bootstrap),
        alone=tried.score((), ()),
        together=tried.score(everyone, ()),
        share=tried.share(everyone),
        judges=[
            _judge(tried, m, tests.get(a.annotators[m]), None if prices is None else prices[m])
            for m in everyone
        ],
        families=effective_votes(a, is_person, bootstrap=bootstrap, seed=seed),
        people=by_number_of_people(held, *crowds, bootstrap=bootstrap, seed=seed),
        path=path,
        stated=stated_confidence(
            annotations, is_person, sources=sources, bootstrap=bootstrap, seed=seed
        ),
    )


def _about(annotations: Annotations, held: HeldOutPeople, repeated: int, bootstrap: int) -> About:
    """How much there was to go by, and what the results depend on."""
    a = held.annotations
    return About(
        people=len(np.unique(a.annotator[held.people[a.annotator]])),
        models=len(held.judges),
        items=len(a.items),
        annotations=len(annotations.item),
        repeated=repeated,
        labels=len(a.labels),
        predicted=len(held.votes),
        folds=held.n_folds,
        bootstrap=bootstrap,
        seed=held.seed,
    )


def _judge(
    tried: _Tried, m: int, test: AlternativeAnnotatorTest | None, cost: float | None
) -> Judge:
    """What the model with this code is worth, alone and beside the other models."""
    a, everyone = tried.held.annotations, tried.held.judges
    return Judge(
        judge=a.annotators[m],
        family=family(a.annotators[m]),
        answers=int(np.sum(a.annotator == m)),
        alone=tried.score((m,), ()),
        given_others=tried.score(everyone, tuple(j for j in everyone if j != m)),
        test=test,
        cost=cost,
    )


class _Fitted(NamedTuple):
    """People and some judges: a crowd for each fold, what it predicts, and the loss of each vote.

    `chances` (S, K) are of this panel itself, `losses` (S,) of it averaged with people alone.
    """

    crowds: list[Crowd]
    chances: Floats
    losses: Floats


class _Tried:
    """Panels of people and some of the judges, each learned once."""

    def __init__(
        self,
        held: HeldOutPeople,
        bootstrap: int,
        progress: Callable[[int, int], None],
        path: bool,
    ):
        """All that there may be to fit: one judge, all but one, and those on the path between."""
        self.held, self._bootstrap = held, bootstrap
        self._fitted: dict[tuple[int, ...], _Fitted] = {}
        J, done = len(held.judges), count(1)
        sets = {0: 1, 1: J, J - 1: J, J: 1}
        if path:
            sets |= {n: J - n + 1 for n in range(2, J - 1)}
        total = held.n_folds * sum(sets.values())
        self._tell = lambda: progress(min(next(done), total), total)

    def panel(self, judges: tuple[int, ...]) -> _Fitted:
        """People and these judges."""
        if judges not in self._fitted:
            held = self.held
            # Panels with some of the models differ from that with all of them in who is asked, not
            # also in how strongly what is learned is held back.
            some = bool(judges) and judges != held.judges
            like = self.panel(held.judges).crowds if some else None
            crowds = held.learn(judges, self._tell, like)
            mixed = chances = held.chances(crowds, judges)
            if judges:
                votes = held.annotations.rows(held.votes)
                mixed, _ = mix(votes, held.fold[votes.item], self.panel(()).chances, chances)
            self._fitted[judges] = _Fitted(crowds, chances, held.losses(mixed))
        return self._fitted[judges]

    def score(self, judges: tuple[int, ...], other: tuple[int, ...]) -> Score:
        """How well a panel predicts people, and how much better than another."""
        held = self.held
        item = held.annotations.item[held.votes]
        own, theirs = self.panel(judges).losses, self.panel(other).losses
        return compare_losses(item, own, theirs, bootstrap=self._bootstrap, seed=held.seed)

    def share(self, judges: tuple[int, ...]) -> float:
        """How much of the targets is to be with models: nothing where held-out votes lose by it."""
        alone, together, held = self.panel(()), self.panel(judges), self.held
        if np.mean(together.losses) >= np.mean(alone.losses):
            return 0.0
        votes = held.annotations.rows(held.votes)
        return best_share(votes, alone.chances, together.chances)

    def loss(self, judges: tuple[int, ...]) -> float:
        """The mean loss of people's votes."""
        return float(np.mean(self.panel(judges).losses))


def _prices(
    a: Annotations, judges: tuple[int, ...], costs: Mapping[Any, float]
) -> dict[int, float]:
    """The price of an answer of each judge."""
    names = {m: a.annotators[m] for m in judges}
    bad = [name for name in names.values() if not costs.get(name, 0) > 0]
    if bad:
        raise ValueError(
            f"`costs` must have a price above 0 for an answer of each model; {len(bad)} of "
            f"{len(names)} have none, first {bad[0]!r}."
        )
    return {m: float(costs[name]) for m, name in names.items()}


def _path(names: NDArray[Any], tried: _Tried, prices: Mapping[int, float]) -> list[Step]:
    """Add the judge that gains most for its price, until none gains anything."""
    chosen: tuple[int, ...] = ()
    path = [Step(None, 0.0, tried.score((), ()))]
    while left := [m for m in prices if m not in chosen]:
        sets = {m: tuple(sorted((*chosen, m))) for m in left}
        worth = {m: (tried.loss(chosen) - tried.loss(sets[m])) / prices[m] for m in left}
        best = max(left, key=lambda m: worth[m])
        if worth[best] <= 0:
            break
        chosen = sets[best]
        cost = sum(prices[m] for m in chosen)
        path.append(Step(names[best], cost, tried.score(chosen, ())))
    return path
