"""People and language models made up, where it is known who copies from whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.datasets.local import coded
from slencodings.opinion import Codes

# Three of one family, one of its own kind and one that guesses.
_JUDGES: Mapping[str, float] = {
    "gpt-large": 0.85,
    "gpt-mini": 0.85,
    "gpt-nano": 0.85,
    "llama": 0.75,
    "dice": 1 / 3,
}


class SimulatedPanel(NamedTuple):
    """What a panel said, and what is known because it was made up.

    Attributes
    ----------
    annotations : people are called p00, p01, ...
    people : (M,), who is a person
    truth : (N,), the right labels
    """

    annotations: Annotations
    people: NDArray[np.bool_]
    truth: Codes


def simulated_panel(
    n_items: int = 300,
    *,
    n_labels: int = 3,
    people: int = 6,
    people_per_item: int = 3,
    accuracy: float = 0.75,
    judges: Mapping[str, float] = _JUDGES,
    copied: float = 0.9,
    rng: np.random.Generator | int,
) -> SimulatedPanel:
    """Let people and models label items; who errs names any of the other labels.

    Parameters
    ----------
    people, people_per_item, accuracy : how many there are, how many see an item, how often right
    judges : how often each model is right
    copied : the share of items on which a model says what its family says; a family has the same
        name up to the first "-"

    Examples
    --------
    >>> panel = simulated_panel(rng=0)
    >>> len(panel.annotations.item), int(panel.people.sum())
    (2400, 6)
    """
    rng = np.random.default_rng(rng)
    truth = rng.integers(0, n_labels, n_items)

    def answers(right: float) -> Codes:
        wrong = (truth + rng.integers(1, n_labels, n_items)) % n_labels
        return np.where(rng.random(n_items) < right, truth, wrong)

    names = [f"p{m:02}" for m in range(people)]
    seen = np.argsort(rng.random((n_items, people)), axis=1)[:, :people_per_item]
    by_person = np.stack([answers(accuracy) for _ in names], axis=1)
    item = np.repeat(np.arange(n_items), people_per_item).tolist()
    who = [names[m] for m in seen.ravel().tolist()]
    label = np.take_along_axis(by_person, seen, axis=1).ravel().tolist()
    shared: dict[str, Codes] = {}
    for name, right in judges.items():
        common = shared.setdefault(name.split("-", maxsplit=1)[0], answers(right))
        own = np.where(rng.random(n_items) < copied, common, answers(right))
        item += range(n_items)
        who += [name] * n_items
        label += own.tolist()
    labels = list(range(n_labels))
    crowd = coded(item, who, np.asarray(label), labels, items=list(range(n_items)))
    is_person = np.asarray([name in names for name in crowd.annotators.tolist()])
    return SimulatedPanel(crowd, is_person, truth)
