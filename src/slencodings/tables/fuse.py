"""A table of annotations to a table of opinions, in whatever engine the table lives.

An annotation is worth `c / (1 - c)` of the prior weight in pseudo-counts of its label, with
`c = reliability x (1 - uncertainty)`, and fusing adds them up: one group-by of sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, cast, get_args

import narwhals as nw

from slencodings.annotations import check_smoothing, shared_base_rate, some
from slencodings.choices import (
    CrowdReading,
    Duplicates,
    FileForm,
    Form,
    Missing,
    Operator,
    Value,
    check_word,
)
from slencodings.opinion import USUAL_WEIGHT
from slencodings.tables import learned, long, sums
from slencodings.tables.checks import Problem, refuse_problems
from slencodings.tables.columns import Number, identifier, number
from slencodings.tables.engines import ITEM, LABEL, Frame, Metadata, open_table
from slencodings.tables.rows import Reading, Rows, read_rows
from slencodings.tables.sums import CERTAIN, COUNT, FusePlan
from slencodings.tables.weights import LIKELIHOOD, WORTH

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd


@dataclass(frozen=True)
class Fusing:
    """How rows are weighed, fused and laid out.

    Attributes
    ----------
    operator, smoothing, prior_weight, base_rate, values : as in `fuse_table`
    reading : as there
    form : as there; wide if not said, and in files long past 20 labels
    weigh : of files, how annotations are weighed: "learned" from them, "stated" (by what came with
        them, Eqs. 4 and 5), or the name of a stored crowd. Learned if not said, but stated with
        what only that has (reliability, smoothing, other operators) and in a new store
    seed : of what is learned
    """

    operator: Operator = "cumulative"
    smoothing: float | None = None
    prior_weight: float | None = None
    base_rate: Any = None
    values: Sequence[str] = ("belief", "uncertainty", "probability")
    reading: CrowdReading = "votes"
    form: Form | FileForm | None = None
    weigh: str | None = None
    seed: int = 0


def fuse_table(
    table: Any,
    *,
    item: str,
    label: str | Sequence[str],
    annotator: str | None = None,
    uncertainty: Any = None,
    confidence: Any = None,
    confidence_scale: Any = None,
    reliability: Any = None,
    base_rate: Any = None,
    labels: Sequence[Any] | None = None,
    prior_weight: float | None = None,
    smoothing: float | None = None,
    operator: Operator = "cumulative",
    form: Form = "wide",
    values: Sequence[str] = ("belief", "uncertainty", "probability"),
    missing: Missing = "error",
    duplicates: Duplicates = "all",
    crowd: Crowd | None = None,
    reading: CrowdReading = "votes",
) -> Any:
    """Fuse the annotations of each item into one opinion (Eq. 6), inside the table's engine.

    Parameters
    ----------
    table : pandas, Polars (eager or lazy), PyArrow, Dask, DuckDB or Spark (also Connect) table, an
        Ibis table in PostgreSQL, SQLite or DuckDB, or a dict of columns; the result is of the same
        kind, and lazy where the table is
    item, annotator : column names
    label : a column of labels; or K columns of probabilities, or one column of lists of them
    uncertainty, confidence, reliability : each a column, a number, or a mapping from annotator;
        `confidence_scale` names the ends of the confidence, or is a map such as `calibrate` gives
    base_rate : a mapping from label or K numbers; or K columns or a column of lists; else uniform
    smoothing : the share of each annotation that counts as doubt (Eq. 11), 0.01 if not said. One
        certain annotation is infinite evidence and silences all others; 0 asks for exactly that
    form : "wide", a row per item; "long", a row per item and label that was named (items that
        nobody labelled keep one row without label); "evidence", long additive pseudo-counts
    values : which of belief, uncertainty, probability, base_rate, evidence, alpha to give
    missing : annotations without confidence, reliability or annotator: "error", "drop", "trust"
    duplicates : what an annotator said several times about one item: "all" counts, it is an
        "error", the "first" or the "last" counts, or its "average": one source is one annotation
    prior_weight : W, the pseudo-counts of a vacuous opinion, for evidence and alpha: 2 if not said,
        or what a crowd has learned
    crowd : what `learn_crowd` gave, in place of reliability, smoothing and base rate. `confidence`
        is read as stated if it was learned so, its scale only says what may come, and with
        missing="trust" it is the highest level where there is none. Labels that votes for others
        speak about count as named
    reading : what the crowd is asked: what the next person would say, `crowd.votes`, or which
        label is right, `crowd.truth`. Evidence serves both: `fuse_evidence`

    Examples
    --------
    >>> crowd = {"post": ["a", "a", "b"], "said": ["yes", "no", "no"], "doubt": [0.0, 0.5, 0.2]}
    >>> opinions = fuse_table(crowd, item="post", label="said", uncertainty="doubt")
    >>> opinions["probability_no"].round(2)
    array([0.01, 0.9 ])
    """
    by_row = isinstance(base_rate, Sequence) and all(
        isinstance(a, str) for a in cast("Sequence[Any]", base_rate)
    )
    roles = Reading(
        item=item,
        label=label,
        annotator=annotator,
        uncertainty=uncertainty,
        confidence=confidence,
        confidence_scale=confidence_scale,
        reliability=reliability,
        base_rate=cast("Any", base_rate) if by_row else None,
        labels=labels,
        missing=missing,
        duplicates=duplicates,
    )
    fusing = Fusing(
        operator=operator,
        smoothing=smoothing,
        prior_weight=prior_weight,
        base_rate=None if by_row else base_rate,
        values=values,
        reading=reading,
        form=form,
    )
    rows = read_rows(table, roles, crowd=crowd)
    return rows.give_back(*fuse_rows(rows, fusing))


def fuse_evidence(
    table: Any,
    *,
    item: str = "item",
    labels: Sequence[Any] | None = None,
    base_rate: Any = None,
    prior_weight: float | None = None,
    form: Form = "wide",
    values: Sequence[str] = ("belief", "uncertainty", "probability"),
    crowd: Crowd | None = None,
    reading: CrowdReading = "votes",
) -> Any:
    """Fuse additive evidence into one opinion per item, inside the table's engine.

    b = E / (W + sum E),   u = W / (W + sum E),   E = sum of the evidence of each label;
    where some of it is dogmatic, that alone is believed, and u = 0

    Parameters
    ----------
    table : what `fuse_table(..., form="evidence")` gave for some annotations; or several of these
        for different annotations, one below the other; or the Parquet file that
        `sle encode --into` keeps, once it is read
    prior_weight : that which the evidence was made with
    item, labels, base_rate, form, values : as in `fuse_table`
    crowd : that which the evidence was made with, if it was; with `reading` as in `fuse_table`

    Examples
    --------
    >>> days = {"item": ["a", "a"], "label": ["yes", "no"], "evidence": [3.0, 1.0],
    ...         "dogmatic": [0.0, 0.0]}
    >>> fuse_evidence(days)["probability_no"].round(3)
    array([0.333])
    """
    rows = read_rows(table, Reading(item=item, label="label", labels=labels))
    W = _prior_weight(prior_weight, crowd)
    amounts = {"evidence": WORTH, "dogmatic": CERTAIN}
    if crowd is not None and crowd.model is not None:
        amounts |= {"annotations": COUNT, "log_likelihood": LIKELIHOOD}
    wanted = [("item", item), ("label", "label"), *((name, name) for name in amounts)]
    frame, give_back = open_table(table, wanted)
    schema = frame.collect_schema()
    label = identifier(schema, "label")
    if isinstance(rows.labels[0], int) and not frame.implementation.is_dask():
        # Whole numbers among nulls may have come as floats.
        label = label if schema["label"] == nw.Boolean else label.cast(nw.Int64)
    frame = frame.select(
        identifier(schema, item).alias(ITEM),
        label.alias(LABEL),
        *(number(schema, Number(n, c, n, 0.0, math.inf, "")) for n, c in amounts.items()),
    )
    added = [(name, column) for name, column in amounts.items() if column != LIKELIHOOD]
    refuse_problems(frame, [_no_amount(name, column) for name, column in added], LABEL)
    frame = frame.with_columns(nw.col(WORTH) / W)
    fusing = Fusing(
        smoothing=0.0 if crowd is None else None,
        prior_weight=prior_weight,
        base_rate=base_rate,
        values=values,
        form=form,
        reading=reading,
    )
    frame, about = fuse_rows(rows._replace(frame=frame, summed=True, crowd=crowd), fusing)
    del about["smoothing"]  # It was done, or not, when the evidence was made.
    return give_back(frame, about)


def _no_amount(name: str, column: str) -> Problem:
    x = nw.col(column)
    return Problem(
        x.is_null() | (x < 0) | (x == math.inf),
        f"`{name}` must be finite and not negative",
        "are not",
        "Make it with fuse_table(..., form='evidence').",
        column,
    )


def fuse_rows(rows: Rows, fusing: Fusing) -> tuple[Frame, Metadata]:
    """The fused opinions of rows, still lazy, and a description of how they were made."""
    form = fusing.form or "wide"
    _check_form(rows, fusing.operator, form)
    plan = _plan(rows, fusing)
    if plan.through_truth(form):
        make = {"wide": learned.wide, "long": learned.long, "evidence": learned.pseudo_counts}
    else:
        make = {"wide": sums.wide, "long": long.long, "evidence": long.pseudo_counts}
    return make[form](rows, plan), {
        "operator": plan.operator,
        "smoothing": plan.smoothing,
        "prior_weight": plan.prior_weight,
        "base_rate": "by row" if rows.priors else plan.base_rate,
        "labels": plan.labels,
        "form": form,
        **(
            {} if rows.crowd is None else {"reading": fusing.reading, "crowd": describe(rows.crowd)}
        ),
    }


def _check_form(rows: Rows, operator: Operator, form: str) -> None:
    """Refuse forms and operators that rows of such a kind cannot have."""
    check_word("form", form, Form)
    check_word("operator", operator, Operator)
    if operator != "cumulative" and (rows.priors or form == "evidence"):
        raise ValueError(
            "`base_rate` by row and form='evidence' are for the cumulative operator, whose "
            f"evidence adds up; operator={operator!r} came."
        )
    if rows.averaged and rows.priors:
        raise ValueError(
            "`base_rate` by row cannot be averaged with duplicates='average'; "
            "both came. Pass one base rate per label instead."
        )
    if rows.averaged and operator in ("weighted", "constraint"):
        raise ValueError(
            "duplicates='average' is for operators that add up what annotators bring, cumulative "
            f"and average; operator={operator!r} came. Pass duplicates='first', or another "
            "operator."
        )
    if rows.priors and form != "wide":
        raise ValueError(
            f"`base_rate` by row gives the wide form only; form={form!r} came. "
            "Pass one base rate per label instead."
        )
    if form != "wide" and rows.item.casefold() in ("label", "dogmatic", *get_args(Value)):
        raise ValueError(
            f"the item column needs a name of its own in the long form; {rows.item!r} came. "
            "Rename it, for example to 'item'."
        )


def add_rows(rows: Rows, fusing: Fusing) -> tuple[Frame, float]:
    """What rows say to the cumulative operator, added up, and the smoothing that was taken.

    Sums of different annotations are merged by adding them up; `fuse_rows` fuses them.
    """
    plan = _plan(rows, fusing)
    room = learned if plan.through_truth("evidence") else long
    return room.evidence(rows, plan), plan.smoothing


def _plan(rows: Rows, fusing: Fusing) -> FusePlan:
    """What is to be done, or an error if that makes no sense."""
    operator, base_rate, smoothing = fusing.operator, fusing.base_rate, fusing.smoothing
    check_word("reading", fusing.reading, CrowdReading)
    values: Any = [fusing.values] if isinstance(fusing.values, str) else fusing.values
    for value in values:
        check_word("values", value, Value)
    labels, crowd, truth = rows.labels, rows.crowd, fusing.reading == "truth"
    if crowd is not None:
        _check_learned(fusing, rows)
        labels, smoothing = crowd.labels.tolist(), 0.0
        base_rate = crowd.prior if truth else crowd.base_rate
    elif truth:
        raise ValueError(
            "what is true is a question to a learned crowd, and none came; reading='truth' came. "
            "Pass crowd=sle.trust.learn_crowd(annotations), or leave it out."
        )
    if base_rate is not None or rows.priors:
        values = [*values, "base_rate"]
    weight = _prior_weight(fusing.prior_weight, crowd)
    smoothing = check_smoothing(0.01 if smoothing is None else smoothing)
    if operator == "constraint" and smoothing == 0:
        raise ValueError(
            "the constraint operator has no answer where certain annotations conflict; "
            "smoothing=0 came. Pass a smoothing such as 0.01."
        )
    return FusePlan(
        operator,
        smoothing,
        weight,
        shared_base_rate(base_rate, labels).tolist(),
        list(dict.fromkeys(values)),
        labels,
        certain=smoothing == 0 and crowd is None,
        crowd=crowd,
        truth=truth,
    )


def _prior_weight(given: Any, crowd: Crowd | None) -> float:
    if given is None:
        return USUAL_WEIGHT if crowd is None else crowd.prior_weight
    if not (isinstance(given, Real) and 0 < float(given) < float("inf")):
        raise ValueError(f"`prior_weight` must be a positive number; {given!r} came. 2 is usual.")
    return float(given)


def _check_learned(fusing: Fusing, rows: Rows) -> None:
    """Refuse what a crowd knows better, and labels that it does not know."""
    operator, smoothing = fusing.operator, fusing.smoothing
    if operator != "cumulative":
        raise ValueError(
            "`crowd` is learned for the cumulative operator, whose evidence adds up; "
            f"operator={operator!r} came. Leave one of them out."
        )
    if smoothing is not None and smoothing != 0:
        raise ValueError(
            "`crowd` knows how far annotations are to be doubted; "
            f"smoothing={smoothing!r} came too. Leave one of them out."
        )
    if fusing.base_rate is not None or rows.priors:
        raise ValueError(
            "`crowd` knows how often each label is given; `base_rate` came too. "
            "Leave one of them out."
        )
    assert rows.crowd is not None
    known = rows.crowd.labels.tolist()
    if new := [label for label in rows.labels if label not in known]:
        raise ValueError(
            f"the labels must be among those that the crowd was learned for, {some(known)}; "
            f"{len(new)} are not, first {new[0]!r}. Name the probabilities: labels=[...]; or learn "
            "from annotations that have them."
        )


def describe(crowd: Crowd) -> Metadata:
    """What was learned, in short."""
    return {
        "annotators": len(crowd.annotators),
        "typical_worth": crowd.typical_worth,
        "levels": crowd.levels.tolist(),
        "share": crowd.share.tolist(),
        "through_truth": crowd.through_truth,
        "truth": crowd.model is not None,
        "ridge": crowd.ridge._asdict(),
        "losses": crowd.losses,
        "converged": crowd.converged,
    }
