"""What a comparison gives: a row for each method, and what was compared on."""

from __future__ import annotations

from typing import Any, NamedTuple, NotRequired, TypedDict

from slencodings.annotations import Annotations


class Row(TypedDict):
    """A method's scores on held-out votes; what they mean stands at `Comparison`."""

    method: str
    seconds: float
    uncertainty: float | None
    converged: bool
    votes: float
    direct: float | None
    own: float | None
    joint: float | None
    brier: float
    agreement: float
    ranked: float | None
    steps: float | None
    wasserstein: float | None
    votes_low: float | None
    votes_high: float | None
    direct_low: float | None
    direct_high: float | None
    own_low: float | None
    own_high: float | None
    joint_low: float | None
    joint_high: float | None
    behind: float
    behind_low: float | None
    behind_high: float | None
    joint_behind: float | None
    joint_behind_low: float | None
    joint_behind_high: float | None
    best: bool
    best_own: bool
    best_joint: bool
    doubts: bool
    accuracy: NotRequired[float]
    accuracy_low: NotRequired[float | None]
    accuracy_high: NotRequired[float | None]
    macro_f1: NotRequired[float]
    truth: NotRequired[float]
    truth_low: NotRequired[float | None]
    truth_high: NotRequired[float | None]
    best_truth: NotRequired[bool]
    too_sure: NotRequired[float]
    truth_steps: NotRequired[float]
    jsd: NotRequired[float]
    nes: NotRequired[float]
    jaccard: NotRequired[float]
    exact_match: NotRequired[float]
    masi: NotRequired[float]
    new_pairs: NotRequired[float]
    new_pairs_low: NotRequired[float | None]
    new_pairs_high: NotRequired[float | None]
    best_new_pairs: NotRequired[bool]


class ComparedOn(NamedTuple):
    """What was compared on; annotators are None where they are not told apart.

    `scored` votes were predicted, of `scored_annotators` annotators, None for everybody. Where
    items are pairs of options, `options` is how many of those there are.
    """

    annotations: int
    items: int
    annotators: int | None
    labels: int
    scored: int
    scored_annotators: int | None
    folds: int
    bootstrap: int
    seed: int
    options: int | None = None

    @classmethod
    def of(cls, a: Annotations, *, scored_annotators: int | None = None, **how: Any) -> ComparedOn:
        """The sizes of a crowd, and how it was compared."""
        people = len(a.annotators) if a.named else None
        sizes = len(a.item), len(a.items), people, len(a.labels)
        return cls(*sizes, scored_annotators=scored_annotators, **how)
