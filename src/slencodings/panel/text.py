"""A panel in sentences: what to do first, then the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slencodings.annotations import counted
from slencodings.panel.alternative import AlternativeAnnotatorTest
from slencodings.panel.families import EVERYONE
from slencodings.panel.held_out import Score
from slencodings.panel.rows import Judge, Panel

Table = tuple[list[str], list[list[str]]]


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
    gain = f"{both.gain:.3f} lower{_interval(both)}"
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
            f"Keep {_names_in_words(keep)}: {who} adds something that the others do not tell."
        )
    elif len(panel.judges) > 1:
        lines.append("No model adds anything for sure that the others do not tell already.")
    if spare:
        lines.append(f"Nothing is lost without {_names_in_words(spare)}.")
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


def judges_table(panel: Panel) -> Table:
    """The models: what each adds, alone and given the others, and whether it may replace people."""
    heads = ["model", "family", "answers", "adds to people", "interval", "adds to the panel"]
    heads += ["its interval", "winning rate", "advantage", "cost"]
    rows = sorted(panel.judges, key=lambda j: -j.alone.gain)
    cells = [
        [
            str(j.judge),
            j.family,
            f"{j.answers:,}",
            _signed(j.alone.gain),
            _to(j.alone),
            _signed(j.given_others.gain),
            _to(j.given_others),
            "" if j.test is None else f"{j.test.winning_rate:.2f}" + "*" * j.test.passed,
            "" if j.test is None else f"{j.test.advantage_probability:.2f}",
            "" if j.cost is None else f"{j.cost:g}",
        ]
        for j in rows
    ]
    return _without_empty(heads, cells)


def people_table(panel: Panel) -> Table:
    """How far models help beside so many people."""
    heads = ["other people", "votes", "people alone", "with models", "gain", "interval"]
    cells = [
        [
            str(row.people),
            f"{row.predicted:,}",
            f"{row.alone:.3f}",
            f"{row.score.votes:.3f}",
            _signed(row.score.gain),
            _to(row.score),
        ]
        for row in panel.people
    ]
    return heads, cells


def stated_table(panel: Panel) -> Table:
    """Whether models are as right as they say they are sure."""
    heads = [
        "model",
        "confidence",
        "answers",
        "stated",
        "earned",
        "too sure by",
        "interval",
        "sorts",
    ]
    cells = [
        [
            str(s.judge),
            s.source,
            f"{s.answers:,}",
            f"{s.stated:.2f}",
            f"{s.earned:.2f}",
            f"{s.overconfidence:+.2f}",
            ""
            if s.overconfidence_low is None
            else f"{s.overconfidence_low:+.2f} to {s.overconfidence_high:+.2f}",
            "" if s.sorts is None else f"{s.sorts:.2f}",
        ]
        for s in panel.stated
    ]
    return heads, cells


def families_table(panel: Panel) -> Table:
    """How many votes each family has."""
    heads = ["family", "models", "agree", "expected", "effective votes", "interval"]
    cells = [
        [
            f.family,
            str(len(f.judges)),
            f"{f.agreement:.0%}",
            f"{f.expected:.0%}",
            f"{f.votes:.1f}",
            "" if f.votes_low is None else f"{f.votes_low:.1f} to {f.votes_high:.1f}",
        ]
        for f in panel.families
    ]
    return heads, cells


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
        ("What each model adds: log-loss gained, with 95 % intervals", judges_table(panel)),
        ("How many votes they have", families_table(panel)),
        ("Beside how many people", people_table(panel)),
        ("Is stated confidence earned?", stated_table(panel)),
    ]
    return [(title, table) for title, table in found if table[1]]


def as_text(panel: Panel) -> str:
    """All of it in plain text."""
    lines = [*advice(panel), "", head(panel)]
    for title, (heads, cells) in tables(panel):
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        lines += ["", title]
        lines += [
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            ).rstrip()
            for row in [heads, *cells]
        ]
    return "\n".join(lines)


def _without_empty(heads: list[str], cells: list[list[str]]) -> Table:
    kept = [k for k in range(len(heads)) if any(row[k] for row in cells)]
    return [heads[k] for k in kept], [[row[k] for k in kept] for row in cells]


def _names_in_words(judges: list[Judge]) -> str:
    return _in_words([j.judge for j in judges])


def _in_words(judges: list[Any]) -> str:
    names = [str(judge) for judge in judges]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _signed(x: float) -> str:
    return f"{x:+.3f}"


def _to(score: Score) -> str:
    if score.gain_low is None or score.gain_high is None:
        return ""
    return f"{score.gain_low:+.3f} to {score.gain_high:+.3f}"


def _interval(score: Score) -> str:
    return _between(score.gain_low, score.gain_high, 3)


def _between(low: float | None, high: float | None, digits: int = 1) -> str:
    return "" if low is None else f" ({low:.{digits}f} to {high:.{digits}f})"
