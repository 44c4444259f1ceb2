"""How many votes a family of models really has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import shrunk_dawid_skene
from slencodings.annotations import Annotations
from slencodings.evaluation.measure import middle, resample
from slencodings.opinion import Floats
from slencodings.panel.sides import family

EVERYONE = "all models"


class Family(NamedTuple):
    """Models that may agree for one reason.

    Attributes
    ----------
    family, judges : its name and its members
    agreement : how often two of them say the same of an item
    expected : how often they would if only the truth made them agree
    correlation : how far agreement goes beyond that, from 0 to 1, where they are copies
    votes, votes_low, votes_high : how many independent votes they are as good as
    """

    family: str
    judges: list[Any]
    agreement: float
    expected: float
    correlation: float
    votes: float
    votes_low: float | None
    votes_high: float | None


def effective_votes(
    annotations: Annotations,
    people: NDArray[np.bool_],
    *,
    families: Mapping[str, Sequence[Any]] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> list[Family]:
    """How many independent votes the members of each family are as good as.

    n_eff = n / (1 + (n - 1) r),   r = (A - E) / (1 - E)

    is Kish's effective sample size (1965). A is how often two members say the same of an item, and
    E how often they would if each erred alone: sum_t p_t sum_k c_tk d_tk, with p how common truths
    are and c and d what the two say where t is true. These come from the model of Dawid and Skene
    with people and one of the two at a time, so that copies cannot vote each other right. For soft
    labels A is the overlap of two answers and 1 becomes that of equal ones.

    Parameters
    ----------
    people : (M,), who is a person
    families : members by name; by the beginnings of names when absent, and all models together
    bootstrap, seed : items are resampled so often for the intervals

    Examples
    --------
    >>> from slencodings.datasets import simulated_panel
    >>> judges = {f"gpt-{n}": 0.8 for n in range(9)}
    >>> panel = simulated_panel(judges=judges, copied=1, rng=0)
    >>> [(f.family, len(f.judges), f.votes) for f in effective_votes(*panel[:2])]
    [('gpt', 9, 1.0)]
    """
    a = annotations
    names = a.annotators.tolist()
    seen = np.bincount(a.annotator, minlength=len(names)) > 0
    judges = [name for name, who, some in zip(names, people, seen, strict=True) if some and not who]
    if families is None:
        families = _by_name(judges)
    place = {name: m for m, name in enumerate(names)}
    strange = [name for members in families.values() for name in members if name not in judges]
    if strange:
        raise ValueError(
            f"`families` must be made of models; {len(strange)} of their members are none, first "
            f"{strange[0]!r}. The models are {', '.join(map(repr, judges[:10]))}."
        )
    answers_of = {m: _answers(a, people, m) for m in (place[name] for name in judges)}
    return [
        _family(a, name, [place[x] for x in members], answers_of, bootstrap, seed)
        for name, members in families.items()
        if len(members) > 1
    ]


def _by_name(judges: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name in judges:
        found.setdefault(family(name), []).append(name)
    return found if len(found) == 1 else found | {EVERYONE: judges}


def _answers(a: Annotations, people: NDArray[np.bool_], m: int) -> tuple[Floats, Floats]:
    """How common truths are, (K,), and what a model says where one holds, (K, K)."""
    rows = people[a.annotator] | (a.annotator == m)
    found = shrunk_dawid_skene(a.rows(rows), use_confidence=False).details
    return found["prior"], found["confusion"][m]


def _family(
    a: Annotations,
    name: str,
    members: list[int],
    answers_of: Mapping[int, tuple[Floats, Floats]],
    bootstrap: int,
    seed: int,
) -> Family:
    """All pairs of members, on the items that both answered, weigh the same."""
    pairs = list(combinations(members, 2))
    answers = np.zeros((len(members), len(a.items), len(a.labels)))
    for i, m in enumerate(members):
        own = a.annotator == m
        answers[i, a.item[own]] = a.vectors[own]
    at = {m: i for i, m in enumerate(members)}
    sums = np.zeros((len(a.items), 3 * len(pairs)))
    counts = np.zeros(sums.shape)
    for k, (m, n) in enumerate(pairs):
        x, y = answers[at[m]], answers[at[n]]
        both = (x.sum(axis=1) > 0) & (y.sum(axis=1) > 0)
        (p, c), (q, d) = answers_of[m], answers_of[n]
        alone = float((p + q) / 2 @ np.sum(c * d, axis=1))
        sums[:, 3 * k] = np.sum(x * y, axis=1)
        sums[both, 3 * k + 1] = alone
        sums[both, 3 * k + 2] = np.sqrt(np.sum(x**2, axis=1) * np.sum(y**2, axis=1))[both]
        counts[both, 3 * k : 3 * k + 3] = 1
    shared = counts[:, ::3].sum(axis=1) > 0
    sums, counts = sums[shared], counts[shared]
    once = np.sum(sums, axis=0) / np.maximum(np.sum(counts, axis=0), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = resample(sums, counts, bootstrap, np.random.default_rng(seed))
    # A pair that shares no item in a draw says nothing in it.
    A, E, r = _correlation(once)
    each = np.asarray([r, *(_correlation(x)[2] for x in drawn)])
    votes = len(members) / (1 + (len(members) - 1) * each)
    judges = [a.annotators[m] for m in members]
    return Family(name, judges, A, E, r, float(votes[0]), *middle(votes[1:]))


def _correlation(means: Floats) -> tuple[float, float, float]:
    """A, E and r of pairs, each with agreement, what is expected and the most there could be."""
    A, E, most = (float(np.nanmean(x)) for x in np.reshape(means, (-1, 3)).T)
    r = (A - E) / (most - E) if most > E else 1.0
    return A, E, min(max(r, 0.0), 1.0)
