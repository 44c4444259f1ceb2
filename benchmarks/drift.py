"""How often the alarm of `annotators.drift` sounds where nothing changes, and where something does.

`python -m benchmarks.drift` prints the shares that docs/trust.md tells; a minute.
"""

from __future__ import annotations

import numpy as np

from slencodings import Annotations
from slencodings.annotators import drift

PEOPLE, LABELS = 6, 3


def crowd(
    rng: np.random.Generator, items: int, votes: int, harder: float = 0.0, dice: float = 0.0
) -> Annotations:
    """Items in the order of time; all are right 80 % of the time, and err by chance.

    `harder` is how much less often at the end; from the middle on, person 0 throws dice so often.
    """
    item = np.repeat(np.arange(items), votes)
    who = np.argsort(rng.random((items, PEOPLE)), axis=1)[:, :votes].ravel()
    skill = np.clip(0.8 + rng.normal(0, 0.1, items)[item] - harder * item / items, 0, 1)
    throws = (who == 0) & (item >= items / 2) & (rng.random(len(item)) < dice)
    right = rng.random(len(item)) < np.where(throws, 1 / LABELS, skill)
    truth = rng.integers(0, LABELS, items)[item]
    y = np.where(right, truth, (truth + rng.integers(1, LABELS, len(item))) % LABELS)
    return Annotations(
        item,
        who,
        y,
        np.zeros(len(item)),
        np.arange(items),
        np.arange(PEOPLE),
        np.arange(LABELS),
    )


def main() -> None:
    """Print shares of crowds with an alarm."""
    print("crowds where nothing changes, with any alarm (400 of 80 items each)")
    for votes in (2, 3, 5):
        for harder in (0.0, 0.5):
            rng = np.random.default_rng(0)
            alarms = 0
            for _ in range(400):
                a = crowd(rng, 80, votes, harder)
                alarms += any(row.alarm for row in drift(a, a.item, rng=rng))
            print(f"  {votes} answers an item, accuracy falls by {harder:g}: {alarms / 400:.1%}")
    print("crowds of three answers an item, where one throws dice from the middle on (100 each)")
    for items in (120, 200, 400):
        rng = np.random.default_rng(1)
        found = others = 0
        for _ in range(100):
            a = crowd(rng, items, 3, dice=1.0)
            rows = drift(a, a.item, rng=rng)
            found += rows[0].alarm
            others += any(row.alarm for row in rows[1:])
        size = items * 3 // PEOPLE
        print(f"  {size} answers each: found {found / 100:.0%}, another one {others / 100:.0%}")


if __name__ == "__main__":
    main()
