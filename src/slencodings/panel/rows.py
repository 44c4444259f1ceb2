"""What was found out about a panel: values, flat rows of them, and sentences: what to do first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from slencodings.annotations import counted
from slencodings.evaluation.text import aligned
from slencodings.panel.alternative import AlternativeAnnotatorTest
from slencodings.panel.confidence import Stated
from slencodings.panel.families import EVERYONE, Family
from slencodings.panel.held_out import Score, WithPeople

Row = dict[str, Any]
Table = tuple[list[str], list[list[str]]]


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
        # All of the test but the people that it was about.
        test = zip(AlternativeAnnotatorTest._fields[:3], self.test or [None] * 3, strict=False)
        gains = zip(Score._fields[3:], self.given_others[3:], strict=True)
        return {
            "part": "judge",
            "name": str(self.judge),
            "family": self.family,
            "answers": self.answers,
            "cost": self.cost,
            **self.alone._asdict(),
            **{f"given_others_{name}": x for name, x in gains},
            **dict(test),
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
        return as_text(self)


def advice(panel: Panel) -> list[str]:
    """What to do, in sentences."""
    return [
        *_worth_having(panel),
        *_whom_to_keep(panel),
        *_how_many_votes(panel),
        *_how_many(panel),
    ]


def _worth_having(panel: Panel) -> list[str]:
    p, both = panel.alone, panel.together
    losses = f"log-loss {p.votes:.3f} by people alone, {both.votes:.3f} with models"
    if panel.share == 0:
        return [f"Leave the models out: they do not help to predict what people say ({losses})."]
    gain = f"{both.gain:.3f} lower{_between(both.gain_low, both.gain_high, 3)}"
    if both.better:
        return [f"Use the models beside people: {losses}, {gain}."]
    return [f"The models may help a little, not for sure: {losses}, {gain}."]


def _whom_to_keep(panel: Panel) -> list[str]:
    lines: list[str] = []
    if panel.share == 0:
        return lines
    keep = [j for j in panel.judges if j.given_others.better]
    spare = [j for j in panel.judges if j.given_others.gain <= 0]
    if keep:
        who = "each" if len(keep) > 1 else "it"
        lines.append(
            f"Keep {_in_words(j.judge for j in keep)}: {who} adds something that the others do not "
            "tell."
        )
    elif len(panel.judges) > 1:
        lines.append("No model adds anything for sure that the others do not tell already.")
    if spare:
        lines.append(f"Nothing is lost without {_in_words(j.judge for j in spare)}.")
    if len(panel.path) > 1:
        added = [f"{s.judge} ({s.cost:g}: {s.score.votes:.3f})" for s in panel.path[1:]]
        lines.append(f"By gain for the price, at cost an item: {', then '.join(added)}.")
    tests = {j.judge: j.test for j in panel.judges if j.test is not None}
    return [*lines, stand_ins(tests)] if tests else lines


def stand_ins(tests: Mapping[Any, AlternativeAnnotatorTest]) -> str:
    """Which of the models that were tested may stand in for a person, in a sentence."""
    passed = [judge for judge, test in tests.items() if test.passed]
    who = _in_words(passed) if passed else "no model"
    return (
        f"By the alternative annotator test {who} may stand in for a person, "
        f"of {counted(len(tests), 'model')} tested."
    )


def _how_many_votes(panel: Panel) -> list[str]:
    """Of all models together, and of the families that agree for one reason mostly."""
    together = [f for f in panel.families if f.family == EVERYONE] or panel.families[:1]
    alike = [f for f in panel.families if f not in together and f.correlation > 0.5]
    lines = [
        f"The {len(f.judges)} models have {f.votes:.1f} effective votes"
        f"{_between(f.votes_low, f.votes_high)}; they agree on {f.agreement:.0%} of items where "
        f"{f.expected:.0%} would be expected of the truth alone."
        for f in together
    ]
    return lines + [
        f"The {len(f.judges)} of the family {f.family} have {f.votes:.1f} of them"
        f"{_between(f.votes_low, f.votes_high)}: they err together."
        for f in alike
    ]


def _how_many(panel: Panel) -> list[str]:
    """From how many people on models stop helping."""
    tried = [row for row in panel.people if row.people > 0]
    if not tried or panel.share == 0:
        return []
    helped = [row.people for row in tried if row.score.better]
    if not helped:
        return ["With one other person on an item the models already add nothing for sure."]
    last = max(helped)
    if last == tried[-1].people:
        return [f"They still help beside {_persons(last)} an item, the most that could be tried."]
    return [f"They help beside up to {_persons(last)} an item; from {_persons(last + 1)} on not."]


def _persons(n: int) -> str:
    return "1 person" if n == 1 else f"{n} people"


def _judges(panel: Panel) -> Table:
    """The models: what each adds, alone and given the others, and whether it may replace people."""
    rows = sorted(panel.judges, key=lambda j: -j.alone.gain)
    tests = [j.test for j in rows]
    columns = {
        "model": [str(j.judge) for j in rows],
        "family": [j.family for j in rows],
        "answers": [f"{j.answers:,}" for j in rows],
        "adds to people": [f"{j.alone.gain:+.3f}" for j in rows],
        "interval": [_to(j.alone) for j in rows],
        "adds to the panel": [f"{j.given_others.gain:+.3f}" for j in rows],
        "its interval": [_to(j.given_others) for j in rows],
        "winning rate": [f"{t.winning_rate:.2f}" + "*" * t.passed if t else "" for t in tests],
        "advantage": [f"{t.advantage_probability:.2f}" if t else "" for t in tests],
        "cost": ["" if j.cost is None else f"{j.cost:g}" for j in rows],
    }
    return _table({head: cells for head, cells in columns.items() if any(cells)})


def _people(panel: Panel) -> Table:
    """How far models help beside so many people."""
    rows = panel.people
    return _table({
        "other people": [str(row.people) for row in rows],
        "votes": [f"{row.predicted:,}" for row in rows],
        "people alone": [f"{row.alone:.3f}" for row in rows],
        "with models": [f"{row.score.votes:.3f}" for row in rows],
        "gain": [f"{row.score.gain:+.3f}" for row in rows],
        "interval": [_to(row.score) for row in rows],
    })  # fmt: skip


def _stated(panel: Panel) -> Table:
    """Whether models are as right as they say they are sure."""
    rows = panel.stated
    ends = [(row.overconfidence_low, row.overconfidence_high) for row in rows]
    return _table({
        "model": [str(row.judge) for row in rows],
        "confidence": [row.source for row in rows],
        "answers": [f"{row.answers:,}" for row in rows],
        "stated": [f"{row.stated:.2f}" for row in rows],
        "earned": [f"{row.earned:.2f}" for row in rows],
        "too sure by": [f"{row.overconfidence:+.2f}" for row in rows],
        "interval": ["" if low is None else f"{low:+.2f} to {high:+.2f}" for low, high in ends],
        "sorts": ["" if row.sorts is None else f"{row.sorts:.2f}" for row in rows],
    })  # fmt: skip


def _families(panel: Panel) -> Table:
    """How many votes each family has."""
    rows = panel.families
    ends = [(row.votes_low, row.votes_high) for row in rows]
    return _table({
        "family": [row.family for row in rows],
        "models": [str(len(row.judges)) for row in rows],
        "agree": [f"{row.agreement:.0%}" for row in rows],
        "expected": [f"{row.expected:.0%}" for row in rows],
        "effective votes": [f"{row.votes:.1f}" for row in rows],
        "interval": ["" if low is None else f"{low:.1f} to {high:.1f}" for low, high in ends],
    })  # fmt: skip


def _table(columns: dict[str, list[str]]) -> Table:
    return list(columns), [list(cells) for cells in zip(*columns.values(), strict=True)]


def head(panel: Panel) -> str:
    """What was looked at, in one sentence."""
    about = panel.about
    repeated = f" ({about.repeated:,} repeat one and are averaged with it)" * (about.repeated > 0)
    return (
        f"{counted(about.annotations, 'annotation')}{repeated} of {counted(about.items, 'item')} "
        f"by {_persons(about.people)} and {counted(about.models, 'model')}, "
        f"{counted(about.labels, 'label')}; mean log-loss of {about.predicted:,} held-out votes of "
        f"people, lower is better; {about.folds} folds, {about.bootstrap:,} resamples of items, "
        f"seed {about.seed}."
    )


def tables(panel: Panel) -> list[tuple[str, Table]]:
    """The tables, each with what it shows."""
    found = [
        ("What each model adds: log-loss gained, with 95 % intervals", _judges(panel)),
        ("How many votes they have", _families(panel)),
        ("Beside how many people", _people(panel)),
        ("Is stated confidence earned?", _stated(panel)),
    ]
    return [(title, table) for title, table in found if table[1]]


def as_text(panel: Panel) -> str:
    """All of it in plain text."""
    lines = [*advice(panel), "", head(panel)]
    for title, table in tables(panel):
        lines += ["", title, *aligned(*table)]
    return "\n".join(lines)


def _in_words(judges: Iterable[Any]) -> str:
    names = [str(judge) for judge in judges]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _to(score: Score) -> str:
    if score.gain_low is None or score.gain_high is None:
        return ""
    return f"{score.gain_low:+.3f} to {score.gain_high:+.3f}"


def _between(low: float | None, high: float | None, digits: int = 1) -> str:
    return "" if low is None else f" ({low:.{digits}f} to {high:.{digits}f})"
