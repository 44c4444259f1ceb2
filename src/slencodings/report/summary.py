"""What a summary holds: numbers and text that JSON can say, for a page or for use elsewhere."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Kind = Literal["few", "conflict", "settled"]


class PerItem(TypedDict):
    """How many annotations items have."""

    mean: float
    least: int
    most: int
    one: int


class Glance(TypedDict):
    """Sizes, agreement and how open the items are."""

    items: int
    annotators: int | None
    annotations: int
    labels: int
    soft: bool
    stated: bool
    per_item: PerItem
    alpha: list[float] | None
    why: dict[Kind, int]
    uncertainty: float
    edges: list[float]
    uncertainties: dict[Kind, list[int]]
    trust: Literal["given", "learned", "alike"]
    losses: dict[str, float] | None
    target: float
    conflict: float


class Item(TypedDict):
    """An item that is listed; each annotation as `items.as_vote` has it."""

    item: str
    why: str
    votes: int
    label: int
    probability: float
    uncertainty: float
    conflict: float
    belief: list[list[float]]
    annotations: list[list[Any]]


class Items(TypedDict):
    """The items that are listed, and the annotators of theirs."""

    total: int
    drawn: int
    listed: str
    annotators: list[str]
    rows: list[Item]


class Person(TypedDict):
    """An annotator that is listed."""

    annotator: str
    reliability: float | None
    reliability_low: float | None
    reliability_high: float | None
    annotations: int
    shared_items: int
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    kappa: float | None
    stated: float | None
    earned: float | None
    overconfidence: float | None
    said: str | None
    peers_say: str | None
    confused_share: float | None
    items_changed: int


class Pairs(TypedDict):
    """Who agrees with whom, among the busiest."""

    annotators: list[str]
    total: int
    agreement: list[list[float | None]]
    shared: list[list[int]]


class People(TypedDict):
    """The annotators that are listed, and why not if there are none."""

    why_not: str | None
    total: int
    listed: str
    reliability: Literal["given", "learned", "alike"]
    rows: list[Person]
    pairs: Pairs | None
    notes: list[str]


class ConfusedPair(TypedDict):
    """Two labels that people confuse."""

    labels: list[int]
    times: float
    share: float


class Confused(TypedDict):
    """Which labels are confused with which."""

    labels: list[int]
    share: list[list[float | None]]
    pairs: list[ConfusedPair]


class Points(TypedDict):
    """Items in a triangle: x, y and how many lie there."""

    of: int
    drawn: int
    points: list[list[float]]


class Labels(TypedDict):
    """How often each label was given, leads, and is confused."""

    names: list[str]
    given: list[float]
    leading: list[int]
    drawn: list[int]
    confused: Confused | None
    points: Points | None


class Score(TypedDict):
    """How well an encoding predicts held-out votes; None for infinite."""

    method: str
    votes: float | None
    votes_low: float | None
    votes_high: float | None
    behind_low: float | None
    behind_high: float | None
    best: bool


class Compared(TypedDict):
    """Encodings side by side, and why not if there are none."""

    why_not: str | None
    items: int
    sampled: bool
    scored: int
    folds: int
    rows: list[Score]
    lessons: list[str]
    notes: list[str]


class Open(TypedDict):
    """An item to annotate or to decide."""

    item: str
    uncertainty: float
    conflict: float
    needed: int | None
    ask: list[str]


class Next(TypedDict):
    """What to annotate next, and what to decide."""

    needed: int
    never: int
    named: bool
    certainty: float
    few: list[Open]
    conflict: list[Open]


class Summary(TypedDict):
    """All that a report says."""

    title: str
    crowd: Glance
    items: Items
    annotators: People
    labels: Labels
    compared: Compared
    next: Next
    made: dict[str, str]
