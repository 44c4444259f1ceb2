"""What a summary holds: numbers and text that JSON can say, for a page or for use elsewhere."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from slencodings.annotators.verdicts import Verdict
from slencodings.choices import WeightsFrom

Kind = Literal["few", "conflict", "settled"]


class PerItem(TypedDict):
    """How many annotations items have."""

    mean: float
    least: int
    most: int


class Histogram(TypedDict):
    """How many items lie between two edges, for each state."""

    edges: list[float]
    items: dict[Kind, list[int]]


class Scored(TypedDict):
    """How right the page is where gold labels tell, on so many items.

    `right` is how often the likeliest true label is gold's, and `votes_right` the label with most
    votes; `log_loss` is of gold under the probabilities that are shown, and `sure` their mean.
    """

    items: int
    right: float
    right_low: float
    right_high: float
    votes_right: float
    log_loss: float | None
    sure: float


class Glance(TypedDict):
    """Sizes, agreement and how open the items are.

    `truth` says whether what is true was learned apart from what people say, and `wrong` how many
    items would then be wrong if each had its likeliest label.
    """

    items: int
    annotators: int | None
    annotations: int
    labels: int
    ordered: bool
    questions: bool
    stated: list[float] | None
    per_item: PerItem
    alpha: list[float] | None
    why: dict[Kind, int]
    uncertainty: float
    doubts: Histogram
    probabilities: Histogram
    source: WeightsFrom
    truth: bool
    wrong: float | None
    scored: Scored | None
    least_votes: int
    least_probability: float
    conflict: float


class Item(TypedDict):
    """An item that is listed; each annotation as `items.as_vote` has it.

    `label` and `probability` are of what is likeliest true; `people_say`, `belief` and
    `uncertainty` of what people would say. `text` and `fields` are what came with the item.
    """

    item: str
    text: str | None
    fields: list[str | None]
    gold: int | None
    why: str
    reason: str
    votes: int
    label: int
    probability: float
    people_say: int
    belief: list[list[float]]
    uncertainty: float
    conflict: float
    annotations: list[list[Any]]


class Items(TypedDict):
    """The items that are listed, the annotators of theirs, and the names of what came with them.

    `pictures` are the fields whose values are addresses of pictures.
    """

    listed: str
    text: str | None
    fields: list[str]
    pictures: list[str]
    annotators: list[str]
    rows: list[Item]


class OwnConfusion(TypedDict):
    """What an annotator says (columns) where a label is true (rows), for some labels."""

    labels: list[int]
    share: list[list[float]]


class Period(TypedDict):
    """A part of an annotator's time, and how often they were right in it by what others say."""

    begin: str
    end: str
    annotations: int
    right: float
    right_low: float
    right_high: float


class Person(TypedDict):
    """An annotator that is listed; where they differ as `people.differs_most` has it."""

    annotator: str
    verdict: Verdict | None
    reason: str | None
    above_chance: float | None
    above_chance_low: float | None
    above_chance_high: float | None
    accuracy: float | None
    reliability: float | None
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
    confusion: OwnConfusion | None
    differs: list[list[Any]]
    trend: list[Period]


class WhoAgrees(TypedDict):
    """Who agrees with whom, among the busiest."""

    annotators: list[str]
    total: int
    agreement: list[list[float | None]]
    shared: list[list[int]]


class ListedPeople(TypedDict):
    """The annotators that are listed, and why not if there are none."""

    why_not: str | None
    listed: str
    source: WeightsFrom
    rows: list[Person]
    pairs: WhoAgrees | None
    sources: KindTable | None
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


class Dot(TypedDict):
    """A value with an interval, in a chart."""

    name: str
    value: float
    low: float | None
    high: float | None


class KindTable(TypedDict):
    """What only some kinds of labels have: a table, and a chart where there are dots."""

    name: str
    title: str
    caption: str
    axis: str
    dots: list[Dot]
    heads: list[str]
    rows: list[list[str]]


class LabelShares(TypedDict):
    """How often each label was given, leads, and is confused."""

    names: list[str]
    given: list[float]
    leading: list[int]
    drawn: list[int]
    confused: Confused | None
    points: Points | None
    kinds: list[KindTable]


class EncodingScore(TypedDict):
    """How well an encoding predicts held-out votes; None for infinite."""

    method: str
    votes: float | None
    votes_low: float | None
    votes_high: float | None
    best: bool


class Compared(TypedDict):
    """Encodings side by side, and why not if there are none."""

    why_not: str | None
    items: int
    sampled: bool
    scored: int
    folds: int
    rows: list[EncodingScore]
    lessons: list[str]
    notes: list[str]


class Open(TypedDict):
    """An item to annotate or to decide; `row` is its place in the list of items."""

    row: int
    conflict: float
    ask: list[str]


class Next(TypedDict):
    """What to annotate next, and what to decide; `plan` is what the next annotations would mend."""

    named: bool
    plan: list[str]
    few: list[Open]
    conflict: list[Open]


class Summary(TypedDict):
    """All that a report says."""

    title: str
    crowd: Glance
    items: Items
    annotators: ListedPeople
    labels: LabelShares
    compared: Compared
    next: Next
    made: dict[str, str]
