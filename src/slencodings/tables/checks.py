"""What may be wrong with the rows of a crowd, and how to say it.

One pass counts all problems; rows are searched only to show the first that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import add
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw

from slencodings.annotations import counted, some
from slencodings.choices import Missing
from slencodings.tables import engines
from slencodings.tables.columns import Answers, Number
from slencodings.tables.engines import ANNOTATOR, ITEM, LABEL, ROW, Frame
from slencodings.tables.roles import Reading

# Probabilities written with six digits still count as summing to one.
_ROUNDING = 1e-5
_both, _either = nw.Expr.__and__, nw.Expr.__or__


class Problem(NamedTuple):
    """What may be wrong with a row, and how to say what is needed, what came and what to do.

    `lacks` is what it lacks, if rows without that may be left out by `missing`.
    """

    condition: nw.Expr
    needed: str
    rows_have: str
    what_to_do: str
    shown: str | None = None
    lacks: str = ""

    def say(self, count: int, rows: int, where: str) -> str:
        """The message about so many rows."""
        return (
            f"{self.needed}; {count} of {counted(rows, 'row')} {self.rows_have}{where}. "
            f"{self.what_to_do}"
        ).rstrip()


def problems_of(
    reading: Reading, answers: Answers, numbers: list[Number], *, learned: bool
) -> list[Problem]:
    """All that may be wrong with a row."""
    label, labels, first, missing = reading.label, answers.labels, answers.names[0], reading.missing
    K = len(labels or ())
    return [
        *id_problems(str(reading.item), reading.annotator, first, missing),
        *(soft_problems(label, K) if answers.soft else []),
        *([] if answers.soft else label_problems(reading, labels, learned=learned)),
        *([] if reading.base_rate is None else prior_problems(reading.base_rate, K)),
        *(problem for value in numbers for problem in number_problems(value, first, missing)),
    ]


def id_problems(item: str, annotator: str | None, first: str, missing: Missing) -> list[Problem]:
    """An annotation without item, or, unless that is allowed, without annotator."""
    nameless = Problem(
        nw.col(ITEM).is_null(),
        "every annotation must name its item",
        f"have none in column {item!r}",
        "Drop them: an annotation of nothing cannot be used.",
    )
    if annotator is None or missing != "error":
        return [nameless]
    anonymous = Problem(
        nw.col(ANNOTATOR).is_null() & ~nw.col(first).is_null(),
        "every annotation must name its annotator",
        f"have none in column {annotator!r}",
        "Pass missing='drop' to leave them out, missing='trust' to keep them.",
        lacks="annotator",
    )
    return [nameless, anonymous]


def label_problems(
    reading: Reading, labels: Sequence[Any] | None, *, learned: bool
) -> list[Problem]:
    """A label that is not among those given, or those that a crowd was learned for."""
    if labels is None:
        return []
    if learned:
        needed = f"labels that the crowd was learned for, {some(labels)}"
        what_to_do = "Learn from annotations that have them, or leave these rows out."
    else:
        named = reading.named
        needed = f"one of {named}={list(labels)!r}"
        what_to_do = f"Add what is missing to `{named}`, or leave it out to take all there are."
    needed = f"column {reading.label!r} must hold {needed}"
    unknown = ~nw.col(LABEL).is_in(list(labels)) & ~nw.col(LABEL).is_null()
    return [Problem(unknown, needed, "do not", what_to_do, LABEL)]


def soft_problems(label: Any, K: int) -> list[Problem]:
    """Probabilities that are partly missing, negative, or do not sum to one."""
    p = [nw.col(engines.probability(k)) for k in range(K)]
    known = engines.fold(_both, (~x.is_null() for x in p))
    return [
        Problem(
            ~known & engines.fold(_either, (~x.is_null() for x in p)),
            f"the {K} probabilities of {label!r} must all be there, or none",
            "lack some",
            "Fill them with 0 if that is what is meant.",
        ),
        Problem(
            known & engines.fold(_either, (x < 0 for x in p)),
            "probabilities must not be negative",
            f"have one in {label!r}",
            "Scores such as logits need a softmax first.",
        ),
        Problem(
            known & ((engines.fold(add, p) - 1).abs() > _ROUNDING),
            f"the probabilities of {label!r} must sum to 1",
            "do not",
            "Divide each row by its sum first.",
        ),
    ]


def prior_problems(base_rate: Any, K: int) -> list[Problem]:
    """Base rates that are missing, negative, or do not sum to one."""
    a = [nw.col(engines.prior(k)) for k in range(K)]
    unknown = engines.fold(_either, (x.is_null() for x in a))
    wrong = ((engines.fold(add, a) - 1).abs() > _ROUNDING) | engines.fold(
        _either, (x < 0 for x in a)
    )
    return [
        Problem(
            unknown,
            "`base_rate` must be there for every row",
            f"lack some in {base_rate!r}",
            f"Fill them with 1/{K} where nothing is known.",
        ),
        Problem(
            ~unknown & wrong,
            "`base_rate` must not be negative and must sum to 1",
            f"do not in {base_rate!r}",
            "Divide each row by its sum first.",
        ),
    ]


def number_problems(value: Number, first: str, missing: Missing) -> list[Problem]:
    """A number out of its range, or missing unless that is allowed."""
    by_annotator = isinstance(value.spec, Mapping)
    if not (by_annotator or isinstance(value.spec, str)):
        return []
    x, answered = nw.col(value.column), ~nw.col(first).is_null()
    out = Problem(
        answered & ((x < value.low) | (x > value.high)),
        f"`{value.name}` must lie in [{value.low:g}, {value.high:g}]",
        f"do not in column {value.spec!r}",
        value.hint,
        value.column,
    )
    without = "reliability" if value.name == "reliability" else "confidence"
    absent = Problem(
        answered & x.is_null(),
        f"`{value.name}` must "
        + ("know every annotator" if by_annotator else "be there for every annotation"),
        "are by one that it does not" if by_annotator else "have none",
        "Pass missing='drop' to leave them out, missing='trust' to count them as certain and "
        f"reliable, {without}=1 to keep them and use no such column.",
        lacks=value.name,
    )
    return [out] * (not by_annotator) + [absent] * (missing == "error")


# What looks for problems in rows that name their answers in a column, be it later: the rows to go
# on with, and how many there are, if that is known by then.
Check: TypeAlias = Callable[[Frame, list[Problem], str], tuple[Frame, dict[str, int]]]


def check_now(frame: Frame, problems: list[Problem], first: str) -> tuple[Frame, dict[str, int]]:
    """Look for problems before anything else is done."""
    return frame, refuse_problems(frame, problems, first)


def any_of(problems: Sequence[Problem]) -> nw.Expr:
    """Whether a row has one of them."""
    return engines.fold(_either, (problem.condition for problem in problems))


def refuse_problems(frame: Frame, problems: list[Problem], first: str) -> dict[str, int]:
    """Count all problems in one pass and raise the first that occurs, with a row that shows it."""
    # Databases go through rows one by one, so they first add up as little as possible.
    asked = [any_of(problems)] if engines.is_database(frame) else [x.condition for x in problems]
    rows, unlabelled, *found = _counts(frame, first, asked)
    if not rows or any(found):
        raise ValueError(_what_is_wrong(frame, problems, rows, found))
    return {"rows": rows, "unlabelled": unlabelled}


def refuse_problems_by_label(
    frame: Frame, problems: list[Problem]
) -> tuple[dict[str, int], list[Any]]:
    """The same, and what the rows have as labels, in one pass for databases that look at all."""
    counts = {"rows": nw.len(), "problems": any_of(problems).cast(nw.Int64).sum()}
    found = engines.small(frame.group_by(LABEL).agg(*(x.alias(name) for name, x in counts.items())))
    by_label = dict(zip(found[LABEL], found["rows"], strict=True))
    rows = sum(by_label.values())
    wrong = sum(found["problems"])
    if not rows or wrong:
        raise ValueError(_what_is_wrong(frame, problems, rows, [wrong]))
    return {"rows": rows, "unlabelled": by_label.get(None, 0)}, list(by_label)


def _what_is_wrong(frame: Frame, problems: list[Problem], rows: int, found: list[int]) -> str:
    """The first problem that was found, so many of each or in all, in words."""
    if rows == 0:
        return "the table has no rows; at least one annotation is needed."
    if len(found) < len(problems):
        found = _counts(frame, ITEM, [problem.condition for problem in problems])[2:]
    (count, problem), *more = [(n, x) for n, x in zip(found, problems, strict=True) if n]
    also = [
        f"; also {counted(n, 'row')} without {x.lacks}"
        for n, x in more
        if problem.lacks and x.lacks
    ]
    return problem.say(count, rows, _where(frame, problem) + "".join(also))


def _counts(frame: Frame, first: str, conditions: Sequence[nw.Expr]) -> list[int]:
    """How many rows there are, how many say nothing, and how many meet each condition."""
    counts = frame.select(
        nw.len().alias("rows"),
        (nw.len() - nw.col(first).count()).alias("unlabelled"),
        # Spark adds up numbers only.
        *(x.cast(nw.Int64).sum().alias(f"problem{i}") for i, x in enumerate(conditions)),
    )
    return [int(n or 0) for (n,) in engines.small(counts).values()]


def _where(frame: Frame, problem: Problem) -> str:
    """The first row with the problem, in words; its number where the engine keeps an order."""
    names = frame.collect_schema().names()
    if ROW not in names:
        frame = engines.numbered(frame) or frame
        names = frame.collect_schema().names()
    found = frame.filter(problem.condition)
    row = engines.small((found.sort(ROW) if ROW in names else found).head(1))
    value = [repr(row[problem.shown][0])] if problem.shown else []
    at = [f"in row {row[ROW][0] + 1} of the data"] if ROW in row else []
    ids = {"item": row[ITEM][0], "annotator": row.get(ANNOTATOR, [None])[0]}
    named = [f"{role} {v!r}" for role, v in ids.items() if v is not None and v == v]
    shown = ", ".join([*([" ".join(value + at)] if value + at else []), *named])
    return f", {'first' if at else 'for example'} {shown}" if shown else ""
