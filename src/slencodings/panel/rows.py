"""What was found out about a panel: values, and flat rows of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from slencodings.panel.alternative import AlternativeAnnotatorTest
from slencodings.panel.confidence import Stated
from slencodings.panel.curve import WithPeople
from slencodings.panel.families import Family
from slencodings.panel.held_out import Score

Row = dict[str, Any]


class About(NamedTuple):
    """What was looked at: so many people, models, items and predicted votes; and how."""

    people: int
    models: int
    items: int
    annotations: int
    repeated: int
    labels: int
    predicted: int
    folds: int
    bootstrap: int
    seed: int


class Judge(NamedTuple):
    """A model.

    Attributes
    ----------
    judge, family : its name, and by that its family
    answers : of how many items
    alone : people with only this model; its gain is on people alone
    given_others : the whole panel; its gain is on the panel without this model
    test : the alternative annotator test; None where nobody has enough items
    cost : of an answer, if it was given
    """

    judge: Any
    family: str
    answers: int
    alone: Score
    given_others: Score
    test: AlternativeAnnotatorTest | None
    cost: float | None

    def to_row(self) -> Row:
        """As plain values."""
        test = self.test
        return {
            "part": "judge",
            "name": str(self.judge),
            "family": self.family,
            "answers": self.answers,
            "cost": self.cost,
            **self.alone._asdict(),
            **_prefixed("given_others", self.given_others),
            "winning_rate": None if test is None else test.winning_rate,
            "advantage_probability": None if test is None else test.advantage_probability,
            "passed": None if test is None else test.passed,
        }


class Step(NamedTuple):
    """A model that is added to the panel, as it gains most for its price.

    Attributes
    ----------
    judge : who is added; None for people alone
    cost : of an answer of all so far
    score : of the panel so far; its gain is on people alone
    """

    judge: Any
    cost: float
    score: Score


@dataclass(frozen=True, eq=False)
class Panel:
    """Whether models are worth having beside people, and which.

    Attributes
    ----------
    about : what was looked at
    alone : log-loss of people's held-out votes by people alone; its gain is 0
    together : the same by people and all models, averaged with people alone by `share`
    share : how much of the targets is with models; 0 where people predict better alone
    judges, families, people, path, stated : as in their classes; no path without costs
    """

    about: About
    alone: Score
    together: Score
    share: float
    judges: list[Judge]
    families: list[Family]
    people: list[WithPeople]
    path: list[Step]
    stated: list[Stated]

    def to_rows(self) -> list[Row]:
        """One dict for each part and name, of strings, numbers and None."""
        sets = [("people alone", self.alone, 0.0), ("people and models", self.together, self.share)]
        rows: list[Row] = [
            {"part": "panel", "name": name, "share": share, **score._asdict()}
            for name, score, share in sets
        ]
        rows += [judge.to_row() for judge in self.judges]
        rows += [
            {
                "part": "family",
                "name": f.family,
                "judges": [str(judge) for judge in f.judges],
                "agreement": f.agreement,
                "expected": f.expected,
                "correlation": f.correlation,
                "effective_votes": f.votes,
                "effective_votes_low": f.votes_low,
                "effective_votes_high": f.votes_high,
            }
            for f in self.families
        ]
        rows += [
            {
                "part": "people",
                "name": str(p.people),
                "predicted": p.predicted,
                "alone": p.alone,
                "share": p.share,
                **p.score._asdict(),
            }
            for p in self.people
        ]
        rows += [
            {"part": "path", "name": str(step.judge), "cost": step.cost, **step.score._asdict()}
            for step in self.path
        ]
        return rows + [stated.to_row() for stated in self.stated]

    def __str__(self) -> str:
        from slencodings.panel.text import as_text

        return as_text(self)


def _prefixed(prefix: str, score: Score) -> Row:
    gains = {name: x for name, x in score._asdict().items() if name.startswith("gain")}
    return {f"{prefix}_{name}": x for name, x in gains.items()}
