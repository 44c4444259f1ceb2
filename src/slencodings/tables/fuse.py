"""A table of annotations to a table of opinions, in whatever engine the table lives.

An annotation is worth `c / (1 - c)` of the prior weight in pseudo-counts of its label, with
`c = reliability x (1 - uncertainty)`, and fusing adds them up: one group-by of sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

import narwhals as nw
import numpy as np

from slencodings.annotations import check_smoothing, shared_base_rate
from slencodings.choices import Duplicates, FileForm, Form, Missing, Operator, Value, check_word
from slencodings.tables import sums
from slencodings.tables.checks import Flaw, refuse_flaws
from slencodings.tables.columns import Number, identifier, number
from slencodings.tables.engines import ITEM, LABEL, Frame, open_table, some
from slencodings.tables.rows import Reading, Rows, read_rows
from slencodings.tables.sums import CERTAIN, WORTH, Plan

if TYPE_CHECKING:
    from slencodings.trust.value import Trust

# How opinions were made, for JSON.
About: TypeAlias = dict[str, Any]

# K sums of K terms each; for more labels engines take longer to plan them than to add them up.
MOST_MEANT = 100


@dataclass(frozen=True)
class Fusing:
    """How rows are weighed, fused and laid out.

    Attributes
    ----------
    operator, smoothing, prior_weight, base_rate, values : as in `fuse_table`
    form : as there; wide if not said, and in files long past 20 labels
    trust, seed : in files, "none", "learned" from them with this seed, or the name of a stored one
    """

    operator: Operator = "cumulative"
    smoothing: float | None = None
    prior_weight: float = 2.0
    base_rate: Any = None
    values: Sequence[str] = ("belief", "uncertainty", "probability")
    form: Form | FileForm | None = None
    trust: str = "none"
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
    prior_weight: float = 2.0,
    smoothing: float | None = None,
    operator: Operator = "cumulative",
    form: Form = "wide",
    values: Sequence[str] = ("belief", "uncertainty", "probability"),
    missing: Missing = "error",
    duplicates: Duplicates = "all",
    trust: Trust | None = None,
) -> Any:
    """Fuse the annotations of each item into one opinion (Eq. 6), inside the table's engine.

    Parameters
    ----------
    table : pandas, Polars (eager or lazy), PyArrow, Dask, DuckDB or Spark (also Connect) table, or
        a dict of columns; the result is of the same kind, and lazy where the table is
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
    duplicates : what an annotator said twice about one item: "all", "error", "first", "last"
    trust : what `learn_trust` gave, in place of reliability, smoothing and base rate; the result
        is that of `trust.opinion`. `confidence` is read as stated if it was learned so, and with
        missing="trust" is the highest level where there is none. Labels that votes for others
        speak about count as named

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
    reading = Reading(
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
        form=form,
    )
    rows = read_rows(table, reading, trust=trust)
    return rows.give_back(*fuse_rows(rows, fusing))


def fuse_evidence(
    table: Any,
    *,
    item: str = "item",
    labels: Sequence[Any] | None = None,
    base_rate: Any = None,
    prior_weight: float = 2.0,
    form: Form = "wide",
    values: Sequence[str] = ("belief", "uncertainty", "probability"),
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

    Examples
    --------
    >>> days = {"item": ["a", "a"], "label": ["yes", "no"], "evidence": [3.0, 1.0],
    ...         "dogmatic": [0.0, 0.0]}
    >>> fuse_evidence(days)["probability_no"].round(3)
    array([0.333])
    """
    rows = read_rows(table, Reading(item=item, label="label", labels=labels))
    _check_prior_weight(prior_weight)
    amounts = {"evidence": WORTH, "dogmatic": CERTAIN}
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
    refuse_flaws(frame, [_no_amount(name, column) for name, column in amounts.items()], LABEL)
    frame = frame.with_columns(nw.col(WORTH) / prior_weight)
    fusing = Fusing(
        smoothing=0.0, prior_weight=prior_weight, base_rate=base_rate, values=values, form=form
    )
    frame, about = fuse_rows(rows._replace(frame=frame, summed=True), fusing)
    del about["smoothing"]  # It was done, or not, when the evidence was made.
    return give_back(frame, about)


def _no_amount(name: str, column: str) -> Flaw:
    x = nw.col(column)
    return Flaw(
        x.is_null() | (x < 0) | (x == math.inf),
        f"`{name}` must be finite and not negative",
        "are not",
        "Make it with fuse_table(..., form='evidence').",
        column,
    )


def fuse_rows(rows: Rows, fusing: Fusing) -> tuple[Frame, About]:
    """The fused opinions of rows, still lazy, and a description of how they were made."""
    form = fusing.form or "wide"
    check_word("form", form, Form)
    plan = _plan(rows, fusing)
    if plan.operator != "cumulative" and (rows.priors or form == "evidence"):
        raise ValueError(
            "`base_rate` by row and form='evidence' are for the cumulative operator, whose "
            f"evidence adds up; operator={plan.operator!r} came."
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
    make = {"wide": sums.wide, "long": sums.long, "evidence": sums.pseudo_counts}
    return make[form](rows, plan), {
        "operator": plan.operator,
        "smoothing": plan.smoothing,
        "prior_weight": plan.prior_weight,
        "base_rate": "by row" if rows.priors else plan.base_rate,
        "labels": plan.labels,
        "form": form,
        **({} if rows.trust is None else {"trust": _described(rows.trust)}),
    }


def add_rows(rows: Rows, fusing: Fusing) -> tuple[Frame, float]:
    """What rows say to the cumulative operator, added up, and the smoothing that was taken.

    Sums of different annotations are merged by adding them up; `fuse_rows` fuses them.
    """
    plan = _plan(rows, fusing)
    return sums.evidence(rows, plan), plan.smoothing


def _plan(rows: Rows, fusing: Fusing) -> Plan:
    """What is to be done, or an error if that makes no sense."""
    operator, base_rate, smoothing = fusing.operator, fusing.base_rate, fusing.smoothing
    check_word("operator", operator, Operator)
    values: Any = [fusing.values] if isinstance(fusing.values, str) else fusing.values
    for value in values:
        check_word("values", value, Value)
    labels, meaning = rows.labels, None
    if rows.trust is not None:
        _check_trusted(fusing, rows.priors)
        labels, meaning = rows.trust.labels.tolist(), _meaning(rows.trust, rows.labels)
        base_rate, smoothing = rows.trust.base_rate, 0.0
    if base_rate is not None or rows.priors:
        values = [*values, "base_rate"]
    _check_prior_weight(fusing.prior_weight)
    smoothing = check_smoothing(0.01 if smoothing is None else smoothing)
    if operator == "constraint" and smoothing == 0:
        raise ValueError(
            "the constraint operator has no answer where certain annotations conflict; "
            "smoothing=0 came. Pass a smoothing such as 0.01."
        )
    return Plan(
        operator,
        smoothing,
        fusing.prior_weight,
        shared_base_rate(base_rate, labels).tolist(),
        list(dict.fromkeys(values)),
        labels,
        meaning,
        certain=smoothing == 0 and rows.trust is None,
    )


def _check_prior_weight(prior_weight: Any) -> None:
    if not (isinstance(prior_weight, Real) and 0 < float(prior_weight) < float("inf")):
        raise ValueError(
            f"`prior_weight` must be a positive number; {prior_weight!r} came. 2 is usual."
        )


def _check_trusted(fusing: Fusing, priors: bool) -> None:
    """Refuse what trust knows better."""
    operator, smoothing = fusing.operator, fusing.smoothing
    if operator != "cumulative":
        raise ValueError(
            "`trust` is learned for the cumulative operator, whose evidence adds up; "
            f"operator={operator!r} came. Leave one of them out."
        )
    if smoothing is not None and smoothing != 0:
        raise ValueError(
            "`trust` knows how far annotations are to be doubted; "
            f"smoothing={smoothing!r} came too. Leave one of them out."
        )
    if fusing.base_rate is not None or priors:
        raise ValueError(
            "`trust` knows how often each label is given; `base_rate` came too. "
            "Leave one of them out."
        )


def _meaning(trust: Trust, labels: list[Any]) -> list[list[float]] | None:
    """What a vote for each of these labels says about those of trust; None if just itself."""
    place = {label: k for k, label in enumerate(trust.labels.tolist())}
    if new := [label for label in labels if label not in place]:
        raise ValueError(
            f"the labels must be among those that trust was learned for, {some(list(place))}; "
            f"{len(new)} are not, first {new[0]!r}. Name the probabilities: labels=[...]; or learn "
            "trust from annotations that have them."
        )
    C = trust.meaning[[place[label] for label in labels]]
    if np.array_equal(C, np.eye(len(place))):
        return None
    if len(place) > MOST_MEANT:
        raise ValueError(
            f"what votes say about other labels may be known for at most {MOST_MEANT} labels in a "
            f"table; {len(place)} came. Learn trust with meaning=False, or use arrays: "
            "trust.opinion(from_table(...))."
        )
    return C.tolist()


def _described(trust: Trust) -> dict[str, Any]:
    """What was learned, in short."""
    return {
        "annotators": len(trust.annotators),
        "typical_worth": trust.typical_worth,
        "levels": trust.levels.tolist(),
        "meaning": not np.array_equal(trust.meaning, np.eye(len(trust.labels))),
        "ridge": trust.ridge._asdict(),
        "losses": trust.losses,
        "converged": trust.converged,
    }
