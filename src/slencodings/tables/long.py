"""Sums by item and label, laid out below each other: the long forms of opinions and of evidence.

Labels that nobody named have no rows, so there may be as many labels as there are items.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import narwhals as nw

from slencodings.tables.engines import (
    ITEM,
    LABEL,
    SHARE,
    UNCERTAINTY,
    Frame,
    look_up,
    probability,
    renamed,
    stacked,
    with_totals,
)
from slencodings.tables.rows import Rows
from slencodings.tables.sums import (
    BELIEF,
    CERTAIN,
    CERTAIN_TOTAL,
    COUNT,
    TOTAL,
    UNIT,
    FusePlan,
    added_up,
    belief,
    belief_of,
    taken_back,
    uncertainty_of,
    value_of,
    wide_beliefs,
    wide_columns,
    with_worth,
)
from slencodings.tables.weights import WORTH

# So few labels are added up side by side, and stacked, in less time than items by label are.
MOST_STACKED = 10


def long(rows: Rows, plan: FusePlan) -> Frame:
    """A row per item and label that was named; an item that nobody labelled keeps one row."""
    return long_values(long_beliefs(rows, plan), rows.item, plan)


def long_beliefs(rows: Rows, plan: FusePlan) -> Frame:
    """BELIEF and UNCERTAINTY by item and label that was named."""
    if rows.frame.implementation.is_duckdb() and len(plan.labels) <= MOST_STACKED:
        return _stacked_beliefs(rows, plan)
    frame = _long_sums(rows, plan)
    if plan.operator == "constraint":
        frame = frame.with_columns(nw.col(WORTH).max().over(ITEM).alias(TOTAL))
        frame = taken_back(frame, [nw.col(WORTH)])
    totals = {TOTAL: WORTH} | ({CERTAIN_TOTAL: CERTAIN} if plan.certain else {})
    frame = only_named(frame, totals | ({UNIT: UNIT} if plan.mean else {}))
    frame = frame.with_columns(uncertainty_of(plan).alias(UNCERTAINTY))
    b = belief_of(plan, nw.col(WORTH), nw.col(CERTAIN) if plan.certain else None)
    return frame.with_columns(b.alias(BELIEF))


def _stacked_beliefs(rows: Rows, plan: FusePlan) -> Frame:
    """The same by one group-by of items, whose few labels are then laid out below each other."""
    frame, labels = wide_beliefs(rows, plan), plan.labels
    E, C = wide_columns(plan)
    named = [(e > 0) | (c > 0) for e, c in zip(E, C, strict=True)] if C else [e > 0 for e in E]
    some = nw.col(TOTAL) > 0
    none = ~(some | (nw.col(CERTAIN_TOTAL) > 0) if C else some)
    frame = frame.select(
        ITEM,
        UNCERTAINTY,
        none.alias("sle_none"),
        # DuckDB leaves out what is null.
        *(
            nw.when(named[k] | none if k == 0 else named[k])
            .then(nw.col(belief(k)))
            .alias(belief(k))
            for k in range(len(labels))
        ),
    )
    frame = stack(frame, [belief(k) for k in range(len(labels))], labels, BELIEF)
    return frame.with_columns(nw.when(~nw.col("sle_none")).then(nw.col(LABEL)).alias(LABEL))


def _long_sums(rows: Rows, plan: FusePlan) -> Frame:
    """What rows bring, added up by item and label; LABEL is null for rows that say nothing."""
    frame, share = stacked_by_label(rows, with_worth(rows, plan))
    brings = {name: (share * nw.col(name)).fill_null(0.0) for name in plan.added}
    brings[WORTH] = added_up(plan, brings[WORTH])
    frame = frame.select(ITEM, LABEL, *(x.alias(name) for name, x in brings.items()))
    something = nw.col(WORTH) > 0
    something = something | (nw.col(CERTAIN) > 0) if plan.certain else something
    frame = frame.with_columns(nw.when(something).then(nw.col(LABEL)).alias(LABEL))
    return frame.group_by(ITEM, LABEL).agg(*(nw.col(name).sum() for name in plan.added))


def long_values(frame: Frame, item: str, plan: FusePlan) -> Frame:
    """The values that are wanted, from BELIEF and UNCERTAINTY by item and label."""
    frame, a = base_rates(frame, plan)
    values = (value_of(kind, nw.col(BELIEF), a, plan).alias(kind) for kind in plan.values)
    return frame.select(nw.col(ITEM).alias(item), nw.col(LABEL).alias("label"), *values)


def base_rates(frame: Frame, plan: FusePlan) -> tuple[Frame, nw.Expr]:
    """The base rate of the LABEL of each row."""
    if len(set(plan.base_rate)) == 1:
        return frame, nw.lit(plan.base_rate[0])
    rates = dict(zip(plan.labels, plan.base_rate, strict=True))
    return look_up(frame, LABEL, rates, "sle_a"), nw.col("sle_a")


def pseudo_counts(rows: Rows, plan: FusePlan) -> Frame:
    """The additive long form: pseudo-counts by item and label, and the count of certain rows.

    Two such tables of different annotations are merged by adding them up.
    """
    frame = only_named(_long_sums(rows, plan))
    return frame.select(
        nw.col(ITEM).alias(rows.item),
        nw.col(LABEL).alias("label"),
        (plan.prior_weight * nw.col(WORTH)).alias("evidence"),
        (nw.col(CERTAIN) if plan.certain else nw.lit(0.0)).alias("dogmatic"),
    )


def evidence(rows: Rows, plan: FusePlan) -> Frame:
    """WORTH, CERTAIN and COUNT by item and label: all that rows say to the cumulative operator.

    COUNT is of annotations; soft ones share theirs among labels. It keeps labels whose annotations
    are worth nothing.
    """
    frame, share = stacked_by_label(rows, with_worth(rows, plan))
    certain = nw.col(CERTAIN) if plan.certain else nw.lit(0.0)
    brings = {WORTH: share * nw.col(WORTH), CERTAIN: share * certain}
    brings[COUNT] = share * nw.col(SHARE) if rows.averaged else share
    frame = frame.select(
        ITEM,
        nw.when(share > 0).then(nw.col(LABEL)).alias(LABEL),
        *(x.fill_null(0.0).alias(name) for name, x in brings.items()),
    )
    return frame.group_by(ITEM, LABEL).agg(nw.col(*brings).sum())


def stacked_by_label(rows: Rows, frame: Frame) -> tuple[Frame, nw.Expr]:
    """Rows by label, and the share of each that goes to it; LABEL is null where none is said."""
    share = nw.lit(1.0)
    if rows.soft:
        p = [probability(k) for k in range(len(rows.labels))]
        frame = frame.with_columns(nw.col(*p).fill_null(0.0))
        frame, share = stack(frame, p, rows.labels, "sle_p"), nw.col("sle_p")
    return frame, nw.when(~nw.col(LABEL).is_null()).then(share).otherwise(0.0)


def stack(frame: Frame, columns: list[str], labels: list[Any], value: str) -> Frame:
    """A row per row and column, with the column's label in LABEL and what it held in `value`."""
    return renamed(stacked(frame, columns, LABEL, value), LABEL, columns, labels)


def only_named(frame: Frame, totals: Mapping[str, str] = MappingProxyType({})) -> Frame:
    """Drop the row without label of every item that has one with; add `totals` by item before."""
    named = nw.when(nw.col(LABEL).is_null()).then(0).otherwise(1).alias("sle_named")
    frame = with_totals(frame.with_columns(named), ITEM, {**totals, "sle_any": "sle_named"})
    return frame.filter((nw.col("sle_named") == 1) | (nw.col("sle_any") == 0))
