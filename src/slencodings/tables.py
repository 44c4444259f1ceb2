"""A table of annotations to a table of opinions, in whatever engine the table lives.

An annotation is worth `c / (1 - c)` of the prior weight in pseudo-counts of its label, with
`c = reliability x (1 - uncertainty)`, and fusing adds them up: one group-by of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from slencodings import evidence
from slencodings.annotations import check_smoothing, shared_base_rate
from slencodings.columns import Frame, open_table, to_arrays
from slencodings.evidence import VALUES, How, Operator
from slencodings.opinion import Opinion
from slencodings.survey import Duplicates, Missing, Rows, one_of, survey

Form: TypeAlias = Literal["wide", "long", "evidence"]


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
    smoothing: float = 0.01,
    operator: Operator = "cumulative",
    form: Form = "wide",
    values: Sequence[str] = ("belief", "uncertainty", "probability"),
    missing: Missing = "error",
    duplicates: Duplicates = "all",
) -> Any:
    """Fuse the annotations of each item into one opinion (Eq. 6), inside the table's engine.

    Parameters
    ----------
    table : pandas, Polars (eager or lazy), PyArrow, Dask or DuckDB table, or a dict of columns;
        the result is of the same kind, and lazy where the table is
    item, annotator : column names
    label : a column of labels; or K columns of probabilities, or one column of lists of them
    uncertainty, confidence, reliability : each a column, a number, or a mapping from annotator;
        `confidence_scale` names the ends of the confidence, or is a map such as `calibrate` gives
    base_rate : a mapping from label or K numbers; or K columns or a column of lists; else uniform
    smoothing : the share of each annotation that counts as doubt (Eq. 11). One certain
        annotation is infinite evidence and silences all others; 0 asks for exactly that
    form : "wide", a row per item; "long", a row per item and label that was named (items that
        nobody labelled keep one row without label); "evidence", long additive pseudo-counts
    values : which of belief, uncertainty, probability, base_rate, evidence, alpha to give
    missing : annotations without confidence, reliability or annotator: "error", "drop", "trust"
    duplicates : what an annotator said twice about one item: "all", "error", "first", "last"

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
    rows = survey(
        table,
        item=item,
        label=label,
        annotator=annotator,
        uncertainty=uncertainty,
        confidence=confidence,
        confidence_scale=confidence_scale,
        reliability=reliability,
        base_rate=base_rate if by_row else None,
        labels=labels,
        missing=missing,
        duplicates=duplicates,
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


def opinions(
    rows: Rows,
    *,
    base_rate: Any = None,
    prior_weight: float = 2.0,
    smoothing: float = 0.01,
    operator: Operator = "cumulative",
    form: Form = "wide",
    values: Sequence[str] = ("belief", "uncertainty", "probability"),
    name: str = "item",
) -> tuple[Frame, dict[str, Any]]:
    """The fused opinions of surveyed rows, still lazy, and a description of how they were made."""
    one_of("operator", operator, ("cumulative", "average", "weighted", "constraint"))
    one_of("form", form, ("wide", "long", "evidence"))
    values = [values] if isinstance(values, str) else list(dict.fromkeys(values))
    for value in values:
        one_of("values", value, VALUES)
    smoothing = check_smoothing(smoothing)
    if not (isinstance(prior_weight, Real) and 0 < float(prior_weight) < float("inf")):
        raise ValueError(
            f"`prior_weight` must be a positive number; {prior_weight!r} came. 2 is usual."
        )
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
    a = shared_base_rate(base_rate, rows.labels)
    how = How(operator, smoothing, prior_weight, a.tolist(), list(values), name)
    make = {"wide": evidence.wide, "long": evidence.long, "evidence": evidence.pseudo_counts}
    return make[form](rows, how), {
        "operator": operator,
        "smoothing": smoothing,
        "prior_weight": prior_weight,
        "base_rate": "by row" if rows.priors else a.tolist(),
        "labels": rows.labels,
        "form": form,
    }


def dense(table: Any, *, item: str = "item", base_rate: Any = None) -> tuple[Any, Any, Opinion]:
    """Opinions of a wide table as arrays to train on: the items, the labels and the `Opinion`.

    Needs the columns `belief_*` and `uncertainty`; takes `base_rate_*` where they are.

    Examples
    --------
    >>> crowd = {"item": ["a", "a", "b"], "label": ["yes", "no", "no"]}
    >>> items, labels, target = dense(fuse_table(crowd, item="item", label="label"))
    >>> target.belief.round(3)
    array([[0.497, 0.497],
           [0.99 , 0.   ]])
    """
    frame, _ = open_table(table)
    names = frame.collect_schema().names()
    labels = [n.removeprefix("belief_") for n in names if n.startswith("belief_")]
    if not labels or "uncertainty" not in names or item not in names:
        raise ValueError(
            f"a wide table of opinions has the columns {item!r}, 'uncertainty' and 'belief_*'; "
            f"{', '.join(map(repr, names))} came. Make it with fuse_table(..., form='wide')."
        )
    arrays = to_arrays(frame)
    given = all(f"base_rate_{k}" in names for k in labels)
    b = np.stack([arrays[f"belief_{k}"] for k in labels], axis=-1)
    a = (
        np.stack([arrays[f"base_rate_{k}"] for k in labels], axis=-1)
        if given
        else np.broadcast_to(shared_base_rate(base_rate, labels), b.shape)
    )
    return arrays[item], np.asarray(labels, dtype=object), Opinion(b, arrays["uncertainty"], a)
