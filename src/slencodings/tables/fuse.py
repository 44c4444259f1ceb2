"""A table of annotations to a table of opinions, in whatever engine the table lives.

An annotation is worth `c / (1 - c)` of the prior weight in pseudo-counts of its label, with
`c = reliability x (1 - uncertainty)`, and fusing adds them up: one group-by of sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import narwhals as nw
import numpy as np

from slencodings.annotations import check_smoothing, shared_base_rate
from slencodings.tables import sums as evidence
from slencodings.tables.checks import Flaw, refuse_flaws
from slencodings.tables.columns import (
    ITEM,
    LABEL,
    Frame,
    Number,
    identifier,
    number,
    open_table,
    some,
)
from slencodings.tables.rows import Duplicates, Missing, Rows, one_of, survey
from slencodings.tables.sums import CERTAIN, VALUES, WORTH, How, Operator

if TYPE_CHECKING:
    from slencodings.trust.value import Trust

Form: TypeAlias = Literal["wide", "long", "evidence"]

# K sums of K terms each; for more labels engines take longer to plan them than to add them up.
MOST_MEANT = 100


def fuse_table(
    table: Any,
    *,
    item: str,
    label: str | Sequence[str],
    annotator: str | None = None,
    uncertainty: Any = None,
    confidence: Any = None,
    confidence_scale: Any = (0, 1),
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
    by_row = isinstance(base_rate, str) or (
        isinstance(base_rate, Sequence) and all(isinstance(a, str) for a in base_rate)
    )
    numbers = {
        "uncertainty": uncertainty,
        "confidence": confidence,
        "confidence_scale": confidence_scale,
        "reliability": reliability,
    }
    rows = survey(
        table,
        item=item,
        label=label,
        annotator=annotator,
        **(numbers if trust is None else as_learned(trust, **numbers)),
        base_rate=base_rate if by_row else None,
        labels=labels,
        missing=missing,
        duplicates=duplicates,
        trust=trust,
    )
    frame, about = opinions(
        rows,
        base_rate=None if by_row else base_rate,
        prior_weight=prior_weight,
        smoothing=smoothing,
        operator=operator,
        form=form,
        values=values,
        name=item,
    )
    return rows.give_back(frame, about)


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
    rows = survey(table, item=item, label="label", labels=labels)
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
    frame, about = opinions(
        rows._replace(frame=frame),
        base_rate=base_rate,
        prior_weight=prior_weight,
        smoothing=0.0,
        form=form,
        values=values,
        name=item,
        summed=True,
    )
    del about["smoothing"]  # It was done, or not, when the evidence was made.
    return give_back(frame, about)


def _no_amount(name: str, column: str) -> Flaw:
    x = nw.col(column)
    return Flaw(
        x.is_null() | (x < 0) | (x == math.inf),
        lambda n, of, at: (
            f"`{name}` must be finite and not negative; {n} of {of} rows are not{at}. "
            "Make it with fuse_table(..., form='evidence')."
        ),
        column,
    )


def as_learned(
    trust: Trust,
    *,
    uncertainty: Any = None,
    confidence: Any = None,
    confidence_scale: Any = (0, 1),
    reliability: Any = None,
) -> dict[str, Any]:
    """What `survey` is to read of doubt so that `trust` understands it; an error if nothing is."""
    if not hasattr(trust, "typical_worth"):
        raise TypeError(
            "`trust` must be what sle.trust.learn_trust(annotations) gives; "
            f"{type(trust).__name__} came. Learn it first."
        )
    if reliability is not None:
        raise ValueError(
            "`trust` knows how reliable annotators are; `reliability` came too. Pass one of them."
        )
    if trust.from_uncertainty:
        scale = confidence_scale
    elif tuple(confidence_scale if isinstance(confidence_scale, Sequence) else ()) != (0, 1):
        raise ValueError(
            "`trust` reads confidence as it was stated, and needs no scale; `confidence_scale` "
            "came. Leave it out."
        )
    else:
        scale = _as_stated
    levels = some([f"{level:g}" for level in trust.levels], str)
    if levels and uncertainty is not None and not trust.from_uncertainty:
        raise ValueError(
            f"this trust was learned with stated confidence, at levels {levels}; `uncertainty` "
            "came. Pass what was stated: confidence='the column'."
        )
    if levels and uncertainty is None and confidence is None:
        raise ValueError(
            f"this trust was learned with confidence, at levels {levels}; none came. Pass "
            f"confidence='the column', or one for all: confidence={trust.levels[-1]:g}."
        )
    return {"uncertainty": uncertainty, "confidence": confidence, "confidence_scale": scale}


def _as_stated(confidence: Any) -> Any:
    return confidence


def opinions(
    rows: Rows,
    *,
    base_rate: Any = None,
    prior_weight: float = 2.0,
    smoothing: float | None = None,
    operator: Operator = "cumulative",
    form: Form = "wide",
    values: Sequence[str] = ("belief", "uncertainty", "probability"),
    name: str = "item",
    summed: bool = False,
) -> tuple[Frame, dict[str, Any]]:
    """The fused opinions of surveyed rows, still lazy, and a description of how they were made.

    Rows may be sums already, as `sums` gives them.
    """
    one_of("operator", operator, ("cumulative", "average", "weighted", "constraint"))
    one_of("form", form, ("wide", "long", "evidence"))
    values = [values] if isinstance(values, str) else list(dict.fromkeys(values))
    for value in values:
        one_of("values", value, VALUES)
    if rows.trust is not None:
        base_rate = _check_trusted(rows.trust, operator, smoothing, base_rate, rows.priors)
    smoothing = _smoothing(rows, smoothing)
    _check_prior_weight(prior_weight)
    if operator != "cumulative" and (rows.priors or form == "evidence"):
        raise ValueError(
            "`base_rate` by row and form='evidence' are for the cumulative operator, whose "
            f"evidence adds up; operator={operator!r} came."
        )
    if rows.priors and form != "wide":
        raise ValueError(
            f"`base_rate` by row gives the wide form only; form={form!r} came. "
            "Pass one base rate per label instead."
        )
    if operator == "constraint" and smoothing == 0:
        raise ValueError(
            "the constraint operator has no answer where certain annotations conflict; "
            "smoothing=0 came. Pass a smoothing such as 0.01."
        )
    if form != "wide" and name.casefold() in ("label", "dogmatic", *VALUES):
        raise ValueError(
            f"the item column needs a name of its own in the long form; {name!r} came. "
            "Rename it, for example to 'item'."
        )
    if (base_rate is not None or rows.priors) and "base_rate" not in values:
        values = [*values, "base_rate"]
    labels = rows.labels if rows.trust is None else rows.trust.labels.tolist()
    a = shared_base_rate(base_rate, labels)
    how = How(operator, smoothing, prior_weight, a.tolist(), list(values), name, labels)
    how = how._replace(summed=summed)
    if rows.trust is not None:
        how = how._replace(trust=rows.trust, meaning=_meaning(rows.trust, rows.labels))
    make = {"wide": evidence.wide, "long": evidence.long, "evidence": evidence.pseudo_counts}
    return make[form](rows, how), {
        "operator": operator,
        "smoothing": smoothing,
        "prior_weight": prior_weight,
        "base_rate": "by row" if rows.priors else a.tolist(),
        "labels": labels,
        "form": form,
        **({} if rows.trust is None else {"trust": _described(rows.trust)}),
    }


def _check_prior_weight(prior_weight: Any) -> None:
    if not (isinstance(prior_weight, Real) and 0 < float(prior_weight) < float("inf")):
        raise ValueError(
            f"`prior_weight` must be a positive number; {prior_weight!r} came. 2 is usual."
        )


def sums(rows: Rows, *, smoothing: float | None = None) -> tuple[Frame, float]:
    """What rows say to the cumulative operator, added up, and the smoothing that was taken.

    Sums of different annotations are merged by adding them up; `opinions` fuses them.
    """
    if rows.trust is not None:
        _check_trusted(rows.trust, "cumulative", smoothing, None, rows.priors)
    smoothing = _smoothing(rows, smoothing)
    how = How("cumulative", smoothing, 1.0, [], [], "item", rows.labels, trust=rows.trust)
    return evidence.sums(rows, how), smoothing


def _smoothing(rows: Rows, smoothing: float | None) -> float:
    usual = 0.01 if rows.trust is None else 0.0
    return check_smoothing(usual if smoothing is None else smoothing)


def _check_trusted(
    trust: Trust, operator: str, smoothing: Any, base_rate: Any, priors: bool
) -> Any:
    """The base rate of trust, and an error if something else came that it knows better."""
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
    if base_rate is not None or priors:
        raise ValueError(
            "`trust` knows how often each label is given; `base_rate` came too. "
            "Leave one of them out."
        )
    return trust.base_rate


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
