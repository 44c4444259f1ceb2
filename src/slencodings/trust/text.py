"""What was learned about a crowd, as text to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slencodings.opinion import Floats

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd

# How many annotators and confusions are shown, and labels in a full matrix.
_SHOWN = 10


def in_words(crowd: Crowd) -> str:
    """Who is right how often, what confidence is worth, what is confused, and how well it fits."""
    return "\n".join(
        [
            f"Annotators ({len(crowd.annotators):,}), by how often they are right above chance",
            *_annotators(crowd),
            "\nWhat stated confidence is worth",
            *_levels_in_words(crowd),
            "\nWhat people say (column) where a label is true (row)",
            *(
                ["  not learned"]
                if crowd.model is None
                else _matrix(crowd, crowd.model.crowd, "{} is called {} by {:.1%}")
            ),
            "\nWhat a vote (row) says about what others say (column)",
            *(
                ["  that they say the same, and no more"]
                if crowd.meaning is None
                else _matrix(crowd, crowd.meaning, "{} says {} by {:.1%}")
            ),
            f"\nThe next vote is read off the truth by {crowd.through_truth:.0%}, else off votes",
            crowd.gain(),
        ]
    )


def _annotators(crowd: Crowd) -> list[str]:
    skill = crowd.above_chance
    low, high = crowd.above_chance_interval()
    order = np.argsort(-np.nan_to_num(skill, nan=-np.inf), kind="stable")
    rows = [
        f"{_short(crowd.annotators[m], 24):>24} {crowd.count[m]:>12,} {crowd.accuracy[m]:>8.2f} "
        f"{skill[m]:>8.2f} {low[m]:>7.2f} to {high[m]:>5.2f} {crowd.worth[m]:>8.3g}"
        for m in order.tolist()
    ]
    half = _SHOWN // 2
    some = rows if len(rows) <= _SHOWN else [*rows[:half], f"{'...':>24}", *rows[-half:]]
    head = f"{'annotator':>24} {'annotations':>12} {'right':>8} {'above':>8} {'interval':>16} "
    return [f"{head}{'worth':>8}", *some]


def _levels_in_words(crowd: Crowd) -> list[str]:
    if not len(crowd.levels):
        return ["  the same at any confidence: not learned"]
    levels = zip(crowd.levels, crowd.level_count, crowd.share, strict=True)
    return [f"{'stated':>24} {'annotations':>12} {'share':>8}"] + [
        f"{level:>24.4g} {n:>12,} {share:>8.3f}" for level, n, share in levels
    ]


def _matrix(crowd: Crowd, shares: Floats, pair: str) -> list[str]:
    """Shares (K, K) by pairs of labels; of many labels the largest between different ones."""
    names = [_short(label, 9) for label in crowd.labels.tolist()]
    if len(names) <= _SHOWN:
        return [" ".join(f"{name:>9}" for name in ["", *names])] + [
            " ".join([f"{name:>9}", *(f"{p:>9.3f}" for p in row)])
            for name, row in zip(names, shares, strict=True)
        ]
    off = np.where(np.eye(len(names)) == 1, 0, shares)
    largest = np.argsort(-off, axis=None, kind="stable")[:_SHOWN]
    chosen: list[int] = largest.tolist()
    places = [divmod(place, len(names)) for place in chosen]
    return ["  " + pair.format(names[j], names[k], off[j, k]) for j, k in places]


def _short(name: Any, width: int) -> str:
    text = str(name)
    return text if len(text) <= width else text[: width - 1] + "…"
