"""What may be wrong with the rows of a crowd, and how to say it.

One pass counts all flaws; rows are searched only to show the first that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import add, and_, or_
from typing import Any, Literal, NamedTuple, TypeAlias

import narwhals as nw

from slencodings.tables import columns as col
from slencodings.tables.columns import ANNOTATOR, ITEM, LABEL, ROW, Frame

Missing: TypeAlias = Literal["error", "drop", "trust"]

# Probabilities written with six digits still count as summing to one.
_ROUNDING = 1e-5


class Flaw(NamedTuple):
    """What may be wrong with a row, and how to say it of `count` rows."""

    condition: nw.Expr
    say: Callable[[int, int, str], str]
    shown: str | None = None


def id_flaws(item: str, annotator: str | None, first: str, missing: Missing) -> list[Flaw]:
    """An annotation without item, or, unless that is allowed, without annotator."""
    flaws = [
        Flaw(
            nw.col(ITEM).is_null(),
            lambda n, of, at: (
                f"every annotation must name its item; {n} of {of} rows have none in "
                f"column {item!r}{at}. Drop them: an annotation of nothing cannot be used."
            ),
        )
    ]
    if annotator is not None and missing == "error":
        flaws.append(
            Flaw(
                nw.col(ANNOTATOR).is_null() & ~nw.col(first).is_null(),
                lambda n, of, at: (
                    f"every annotation must name its annotator; {n} of {of} rows "
                    f"have none in column {annotator!r}{at}. Pass missing='drop' to leave them "
                    "out, missing='trust' to keep them."
                ),
            )
        )
    return flaws


def label_flaws(label: Any, labels: Sequence[Any] | None) -> list[Flaw]:
    """A label that is not among those given."""
    if labels is None:
        return []
    return [
        Flaw(
            ~nw.col(LABEL).is_in(list(labels)) & ~nw.col(LABEL).is_null(),
            lambda n, of, at: (
                f"column {label!r} must hold one of labels={list(labels)!r}; {n} of "
                f"{of} rows do not{at}. Add what is missing to labels, or leave labels out to take "
                "all there are."
            ),
            LABEL,
        )
    ]


def soft_flaws(label: Any, K: int) -> list[Flaw]:
    """Probabilities that are partly missing, negative, or do not sum to one."""
    p = [nw.col(col.probability(k)) for k in range(K)]
    known = col.fold(and_, (~x.is_null() for x in p))
    return [
        Flaw(
            ~known & col.fold(or_, (~x.is_null() for x in p)),
            lambda n, of, at: (
                f"the {K} probabilities of {label!r} must all be there, or none; {n} "
                f"of {of} rows lack some{at}. Fill them with 0 if that is what is meant."
            ),
        ),
        Flaw(
            known & col.fold(or_, (x < 0 for x in p)),
            lambda n, of, at: (
                f"probabilities must not be negative; {n} of {of} rows have one in "
                f"{label!r}{at}. Scores such as logits need a softmax first."
            ),
        ),
        Flaw(
            known & ((col.fold(add, p) - 1).abs() > _ROUNDING),
            lambda n, of, at: (
                f"the probabilities of {label!r} must sum to 1; {n} of {of} rows do "
                f"not{at}. Divide each row by its sum first."
            ),
        ),
    ]


def prior_flaws(base_rate: Any, K: int) -> list[Flaw]:
    """Base rates that are missing, negative, or do not sum to one."""
    a = [nw.col(col.prior(k)) for k in range(K)]
    unknown = col.fold(or_, (x.is_null() for x in a))
    wrong = ((col.fold(add, a) - 1).abs() > _ROUNDING) | col.fold(or_, (x < 0 for x in a))
    return [
        Flaw(
            unknown,
            lambda n, of, at: (
                f"`base_rate` must be there for every row; {n} of {of} rows lack some in "
                f"{base_rate!r}{at}. Fill them with 1/{K} where nothing is known."
            ),
        ),
        Flaw(
            ~unknown & wrong,
            lambda n, of, at: (
                f"`base_rate` must not be negative and must sum to 1; {n} of {of} rows do not in "
                f"{base_rate!r}{at}. Divide each row by its sum first."
            ),
        ),
    ]


def number_flaws(value: col.Number, first: str, missing: Missing) -> list[Flaw]:
    """A number out of its range, or missing unless that is allowed."""
    if not isinstance(value.spec, str | Mapping):
        return []
    x, said = nw.col(value.column), ~nw.col(first).is_null()
    flaws: list[Flaw] = []
    if isinstance(value.spec, str):
        flaws.append(
            Flaw(
                said & ((x < value.low) | (x > value.high)),
                lambda n, of, at: (
                    f"`{value.name}` must lie in [{value.low:g}, {value.high:g}]; "
                    f"{n} of {of} rows do not in column {value.spec!r}{at}.{value.hint}"
                ),
                value.column,
            )
        )
    if missing == "error":
        lacks = "must be there for every annotation; {n} of {of} rows have none"
        if isinstance(value.spec, Mapping):
            lacks = "must know every annotator; those of {n} of {of} rows are not in it"
        flaws.append(
            Flaw(
                said & x.is_null(),
                lambda n, of, at: (
                    f"`{value.name}` {lacks.format(n=n, of=of)}"
                    + f"{at}. Pass missing='drop' to leave them out, missing='trust' to count "
                    "them as certain and reliable."
                ),
            )
        )
    return flaws


def refuse_flaws(frame: Frame, flaws: list[Flaw], first: str) -> dict[str, int]:
    """Count all flaws in one pass and raise the first that occurs, with a row that shows it."""
    (counts,) = zip(
        *col.small(
            frame.select(
                nw.len().alias("rows"),
                # Spark adds up numbers only.
                nw.col(first).is_null().cast(nw.Int64).sum().alias("unlabelled"),
                *(
                    flaw.condition.cast(nw.Int64).sum().alias(f"flaw{i}")
                    for i, flaw in enumerate(flaws)
                ),
            )
        ).values(),
        strict=True,
    )
    rows, unlabelled, *found = (int(n or 0) for n in counts)
    if rows == 0:
        raise ValueError("the table has no rows; at least one annotation is needed.")
    for count, flaw in zip(found, flaws, strict=True):
        if count:
            raise ValueError(flaw.say(count, rows, _where(frame, flaw)))
    return {"rows": rows, "unlabelled": unlabelled}


def _where(frame: Frame, flaw: Flaw) -> str:
    """The first row with the flaw, in words; its number where the engine keeps an order."""
    names = frame.collect_schema().names()
    if ROW not in names:
        frame = col.numbered(frame) or frame
        names = frame.collect_schema().names()
    found = frame.filter(flaw.condition)
    row = col.small((found.sort(ROW) if ROW in names else found).head(1))
    value = [repr(row[flaw.shown][0])] if flaw.shown else []
    at = [f"at row {row[ROW][0]} (from 0)"] if ROW in row else []
    ids = {"item": row[ITEM][0], "annotator": row.get(ANNOTATOR, [None])[0]}
    named = [f"{role} {v!r}" for role, v in ids.items() if v is not None and v == v]
    told = ", ".join([*([" ".join(value + at)] if value + at else []), *named])
    return f", {'first' if at else 'for example'} {told}" if told else ""
