"""The group-by of sums: rows of annotations to fused opinions, as lazy expressions.

A row is worth odds `b / doubt` to its label. An item believes label k by `E_k / (unit + sum E)`
and is uncertain by `unit / (unit + sum E)`, where E_k adds up the worth of its rows:

| operator   | worth of a row   | unit            |
|------------|------------------|-----------------|
| cumulative | odds             | 1               |
| average    | odds             | number of rows  |
| weighted   | odds x b         | sum of b        |
| constraint | log(1 + odds), taken back by exp after adding up | exp(-largest) |

Rows without doubt are worth infinitely much; they are counted apart, and where there are any
they alone are believed. Smoothed rows always doubt, so that count is left out.

What one annotator said n times of an item may be averaged before it is fused with others: then each
row brings 1 / n of all this, and of what is certain as much as the certain rows of that annotator.

With a learned crowd a row is worth what that says, which is never infinite; where votes are read
as truth too, `learned` goes on from there.

Sums of the cumulative operator may be kept and added to: they are rows again, each worth what it
adds up (`summed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw

from slencodings.annotations import in_steps
from slencodings.choices import Operator, Value
from slencodings.tables.columns import MOST_COLUMNS
from slencodings.tables.engines import (
    ANNOTATOR,
    ITEM,
    LABEL,
    RELIABILITY,
    SHARE,
    UNCERTAINTY,
    Frame,
    computed,
    fold,
    look_up,
    prior,
    probability,
    renamed,
    stacked,
    with_totals,
)
from slencodings.tables.roles import twins
from slencodings.tables.rows import Rows, with_sum_of_source
from slencodings.tables.weights import WORTH, add_worth

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd

CERTAIN, UNIT = "sle_certain", "sle_unit"
TOTAL, CERTAIN_TOTAL = "sle_total", "sle_certain_total"
COUNT, BELIEF = "sle_count", "sle_b"
# So few labels are added up side by side, and stacked, in less time than items by label are.
MOST_STACKED = 10


class Plan(NamedTuple):
    """How opinions are made of rows, and which of their values are wanted.

    `labels` are those of the opinions, which a crowd may know more of than the rows have. Of a
    crowd the `truth` is wanted, or votes.
    """

    operator: Operator
    smoothing: float
    prior_weight: float
    base_rate: list[float]
    values: list[Value]
    labels: list[Any]
    certain: bool = False
    crowd: Crowd | None = None
    truth: bool = False

    @property
    def mean(self) -> bool:
        """Whether the unit is a sum over rows."""
        return self.operator in ("average", "weighted")

    @property
    def added(self) -> list[str]:
        """What rows bring besides their labels."""
        return [WORTH] + [CERTAIN] * self.certain + [UNIT] * self.mean

    def through_truth(self, form: str) -> bool:
        """Whether more than the worth of votes is added up, or votes say more than a label."""
        if self.crowd is None or form == "evidence":
            return self.crowd is not None and self.crowd.model is not None
        through_truth = self.crowd.model is not None and self.crowd.through_truth > 0
        return self.truth or through_truth or self.crowd.votes_say_more


def wide(rows: Rows, plan: Plan) -> Frame:
    """A row per item: one group-by, with a sum per label."""
    names = wide_names(rows.item, plan)
    a = _fused_priors(rows, plan) if rows.priors else None
    return wide_values(_wide_beliefs(rows, plan), rows.item, plan, names, a)


def _wide_beliefs(rows: Rows, plan: Plan) -> Frame:
    """Beliefs of each label and UNCERTAINTY by item, and the sums that they are made of."""
    K = range(len(plan.labels))
    frame = _wide_sums(rows, plan)
    E, C = _wide_columns(plan)
    if plan.operator == "constraint":
        frame = _taken_back(frame.with_columns(nw.max_horizontal(*E).alias(TOTAL)), E)
    frame = computed(frame).with_columns(
        fold(add, E).alias(TOTAL), *([fold(add, C).alias(CERTAIN_TOTAL)] if C else [])
    )
    return computed(frame).with_columns(
        _uncertainty(plan).alias(UNCERTAINTY),
        *(_belief(plan, E[k], C[k] if C else None).alias(belief(k)) for k in K),
    )


def _wide_columns(plan: Plan) -> tuple[list[nw.Expr], list[nw.Expr]]:
    """What rows bring to each label, and what is certain of that if it may be."""
    K = range(len(plan.labels))
    return [nw.col(worth(k)) for k in K], [nw.col(certain(k)) for k in K if plan.certain]


def wide_values(
    frame: Frame,
    item: str,
    plan: Plan,
    names: list[tuple[str, int, str]],
    base_rate: list[nw.Expr] | None = None,
) -> Frame:
    """The values that are wanted, from beliefs of each label and UNCERTAINTY by item."""
    a = base_rate or [nw.lit(x) for x in plan.base_rate]
    values = (_value(kind, nw.col(belief(k)), a[k], plan).alias(n) for kind, k, n in names)
    return frame.select(nw.col(ITEM).alias(item), *values)


def belief(k: int) -> str:
    """Our column for the belief in label k."""
    return f"{BELIEF}{k}"


def worth(k: int) -> str:
    """Our column for what rows bring to label k."""
    return f"sle_e{k}"


def certain(k: int) -> str:
    """Our column for what is certain of that."""
    return f"sle_c{k}"


def _wide_sums(rows: Rows, plan: Plan) -> Frame:
    """What rows bring to each label, added up by item."""
    K = range(len(plan.labels))
    at = {label: k for k, label in enumerate(rows.labels)}
    of = [at.get(label) for label in plan.labels]
    sums = {worth(k): _added(plan, _of_label(rows, of[k], WORTH)) for k in K}
    sums |= {certain(k): _of_label(rows, of[k], CERTAIN) for k in K if plan.certain}
    sums |= {UNIT: nw.col(UNIT)} if plan.mean else {}
    sums |= _prior_sums(rows, plan) if rows.priors else {}
    return (rows.hold or sum_by_item)(_worth(rows, plan), sums)


def sum_by_item(frame: Frame, sums: Mapping[str, nw.Expr]) -> Frame:
    """Expressions of rows added up by item."""
    # Columns first and plain sums after, because PyArrow and Dask cannot sum an expression.
    frame = frame.select(ITEM, *(x.alias(name) for name, x in sums.items()))
    return frame.group_by(ITEM).agg(*(nw.col(name).sum() for name in sums))


def long(rows: Rows, plan: Plan) -> Frame:
    """A row per item and label that was named; an item that nobody labelled keeps one row."""
    return long_values(long_beliefs(rows, plan), rows.item, plan)


def long_beliefs(rows: Rows, plan: Plan) -> Frame:
    """BELIEF and UNCERTAINTY by item and label that was named."""
    if rows.frame.implementation.is_duckdb() and len(plan.labels) <= MOST_STACKED:
        return _stacked_beliefs(rows, plan)
    frame = _long_sums(rows, plan)
    if plan.operator == "constraint":
        frame = frame.with_columns(nw.col(WORTH).max().over(ITEM).alias(TOTAL))
        frame = _taken_back(frame, [nw.col(WORTH)])
    totals = {TOTAL: WORTH} | ({CERTAIN_TOTAL: CERTAIN} if plan.certain else {})
    frame = only_named(frame, totals | ({UNIT: UNIT} if plan.mean else {}))
    frame = frame.with_columns(_uncertainty(plan).alias(UNCERTAINTY))
    b = _belief(plan, nw.col(WORTH), nw.col(CERTAIN) if plan.certain else None)
    return frame.with_columns(b.alias(BELIEF))


def _stacked_beliefs(rows: Rows, plan: Plan) -> Frame:
    """The same by one group-by of items, whose few labels are then laid out below each other."""
    frame, labels = _wide_beliefs(rows, plan), plan.labels
    E, C = _wide_columns(plan)
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


def long_values(frame: Frame, item: str, plan: Plan) -> Frame:
    """The values that are wanted, from BELIEF and UNCERTAINTY by item and label."""
    frame, a = base_rates(frame, plan)
    values = (_value(kind, nw.col(BELIEF), a, plan).alias(kind) for kind in plan.values)
    return frame.select(nw.col(ITEM).alias(item), nw.col(LABEL).alias("label"), *values)


def base_rates(frame: Frame, plan: Plan) -> tuple[Frame, nw.Expr]:
    """The base rate of the LABEL of each row."""
    if len(set(plan.base_rate)) == 1:
        return frame, nw.lit(plan.base_rate[0])
    rates = dict(zip(plan.labels, plan.base_rate, strict=True))
    return look_up(frame, LABEL, rates, "sle_a"), nw.col("sle_a")


def pseudo_counts(rows: Rows, plan: Plan) -> Frame:
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


def evidence(rows: Rows, plan: Plan) -> Frame:
    """WORTH, CERTAIN and COUNT by item and label: all that rows say to the cumulative operator.

    COUNT is of annotations; soft ones share theirs among labels. It keeps labels whose annotations
    are worth nothing.
    """
    frame, share = stacked_by_label(rows, _worth(rows, plan))
    certain = nw.col(CERTAIN) if plan.certain else nw.lit(0.0)
    brings = {WORTH: share * nw.col(WORTH), CERTAIN: share * certain}
    brings[COUNT] = share * nw.col(SHARE) if rows.averaged else share
    frame = frame.select(
        ITEM,
        nw.when(share > 0).then(nw.col(LABEL)).alias(LABEL),
        *(x.fill_null(0.0).alias(name) for name, x in brings.items()),
    )
    return frame.group_by(ITEM, LABEL).agg(nw.col(*brings).sum())


def _worth(rows: Rows, plan: Plan) -> Frame:
    """Give every row its WORTH, CERTAIN if it may be, and UNIT if the operator is a mean."""
    if rows.summed:
        return rows.frame
    u, e = nw.col(UNCERTAINTY), plan.smoothing
    r = 1.0 if rows.all_reliable else nw.col(RELIABILITY)
    K = range(len(rows.labels))
    kept = [ITEM, *(map(probability, K) if rows.soft else [LABEL])]
    kept += map(prior, K) if rows.priors else []
    kept += [SHARE] if rows.averaged else []
    kept += [] if rows.hold is None else rows.hold.columns
    if plan.crowd is not None:
        frame = add_worth(rows.frame, plan.crowd)
        worth = in_steps(nw.col(WORTH) * nw.col(SHARE)) if rows.averaged else nw.col(WORTH)
        return frame.select(*kept, worth.alias(WORTH))
    frame = rows.frame.select(
        *kept,
        *([ANNOTATOR] if rows.averaged else []),
        ((1 - e) * r * (1 - u)).alias(UNIT),  # Eqs. 5, 4 and 11: belief,
        (e + (1 - e) * (u if rows.all_reliable else u + (1 - r) * (1 - u))).alias(
            WORTH
        ),  # and doubt
    )
    b, doubt, answered = nw.col(UNIT), nw.col(WORTH), ~nw.col(kept[1]).is_null()
    odds = nw.when(doubt > 0).then(b / doubt).otherwise(0.0) if plan.certain else b / doubt
    brings = {
        WORTH: odds * b if plan.operator == "weighted" else odds,
        CERTAIN: nw.when(doubt == 0).then(1.0).otherwise(0.0),
        UNIT: nw.when(answered).then(b if plan.operator == "weighted" else 1.0).otherwise(0.0),
    }
    frame = frame.with_columns(*(brings[name].alias(name) for name in plan.added))
    if rows.averaged:
        frame = _averaged(frame, plan)
    return frame.select(*kept, *plan.added)


def _averaged(frame: Frame, plan: Plan) -> Frame:
    """What rows bring where the n answers of one annotator are averaged: one n-th of it each.

    Of certain answers the limit is that they alone count, all alike.
    """
    parts = {name: nw.col(name) * nw.col(SHARE) for name in plan.added}
    if plan.certain:
        frame = with_sum_of_source(frame, CERTAIN, CERTAIN_TOTAL)
        some = nw.col(CERTAIN) > 0
        parts[CERTAIN] = nw.when(some).then(1 / nw.col(CERTAIN_TOTAL)).otherwise(0.0)
    return frame.with_columns(*(part.alias(name) for name, part in parts.items()))


def _of_label(rows: Rows, k: int | None, column: str) -> nw.Expr:
    """The part of what a row brings that goes to label k of the rows; none to labels of none."""
    if k is None:
        return 0.0 * nw.col(column)
    if rows.soft:
        return nw.col(probability(k)) * nw.col(column)
    return nw.when(nw.col(LABEL) == rows.labels[k]).then(nw.col(column)).otherwise(0.0)


def stacked_by_label(rows: Rows, frame: Frame) -> tuple[Frame, nw.Expr]:
    """Rows by label, and the share of each that goes to it; LABEL is null where none is said."""
    share = nw.lit(1.0)
    if rows.soft:
        p = [probability(k) for k in range(len(rows.labels))]
        frame = frame.with_columns(nw.col(*p).fill_null(0.0))
        frame, share = stack(frame, p, rows.labels, "sle_p"), nw.col("sle_p")
    return frame, nw.when(~nw.col(LABEL).is_null()).then(share).otherwise(0.0)


def _long_sums(rows: Rows, plan: Plan) -> Frame:
    """What rows bring, added up by item and label; LABEL is null for rows that say nothing."""
    frame, share = stacked_by_label(rows, _worth(rows, plan))
    brings = {name: (share * nw.col(name)).fill_null(0.0) for name in plan.added}
    brings[WORTH] = _added(plan, brings[WORTH])
    frame = frame.select(ITEM, LABEL, *(x.alias(name) for name, x in brings.items()))
    something = nw.col(WORTH) > 0
    something = something | (nw.col(CERTAIN) > 0) if plan.certain else something
    frame = frame.with_columns(nw.when(something).then(nw.col(LABEL)).alias(LABEL))
    return frame.group_by(ITEM, LABEL).agg(*(nw.col(name).sum() for name in plan.added))


def stack(frame: Frame, columns: list[str], labels: list[Any], value: str) -> Frame:
    """A row per row and column, with the column's label in LABEL and what it held in `value`."""
    return renamed(stacked(frame, columns, LABEL, value), LABEL, columns, labels)


def only_named(frame: Frame, totals: Mapping[str, str] = MappingProxyType({})) -> Frame:
    """Drop the row without label of every item that has one with; add `totals` by item before."""
    named = nw.when(nw.col(LABEL).is_null()).then(0).otherwise(1).alias("sle_named")
    frame = with_totals(frame.with_columns(named), ITEM, {**totals, "sle_any": "sle_named"})
    return frame.filter((nw.col("sle_named") == 1) | (nw.col("sle_any") == 0))


def _added(plan: Plan, worth: nw.Expr) -> nw.Expr:
    """What is added up of a label's worth: Dempster's rule multiplies, so it adds logarithms."""
    return (1 + worth).log() if plan.operator == "constraint" else worth


def _taken_back(frame: Frame, E: list[nw.Expr]) -> Frame:
    """Logarithms back to products, all divided by the largest, whose logarithm TOTAL is."""
    unit = (0 - nw.col(TOTAL)).exp()
    return frame.with_columns(*((e - nw.col(TOTAL)).exp() - unit for e in E), unit.alias(UNIT))


def _scale(plan: Plan) -> tuple[nw.Expr, nw.Expr]:
    unit = nw.lit(1.0) if plan.operator == "cumulative" else nw.col(UNIT)
    return unit, unit + nw.col(TOTAL)


def _uncertainty(plan: Plan) -> nw.Expr:
    unit, scale = _scale(plan)
    u = nw.when(scale > 0).then(unit / scale).otherwise(1.0) if plan.mean else unit / scale
    return nw.when(nw.col(CERTAIN_TOTAL) > 0).then(0.0).otherwise(u) if plan.certain else u


def _belief(plan: Plan, E: nw.Expr, C: nw.Expr | None) -> nw.Expr:
    _, scale = _scale(plan)
    b = nw.when(scale > 0).then(E / scale).otherwise(0.0) if plan.mean else E / scale
    if C is None:
        return b
    total = nw.col(CERTAIN_TOTAL)
    return nw.when(total > 0).then(C / total).otherwise(b)


def _value(kind: str, b: nw.Expr, a: nw.Expr, plan: Plan) -> nw.Expr:
    u, W = nw.col(UNCERTAINTY), plan.prior_weight
    evidence = W * b / u
    if plan.certain:
        infinite = nw.when(b > 0).then(float("inf")).otherwise(0.0)
        evidence = nw.when(u > 0).then(evidence).otherwise(infinite)
    return {
        "belief": b,
        "uncertainty": u,
        "probability": b + u * a,
        "base_rate": a,
        "evidence": evidence,
        "alpha": evidence + W * a,
    }[kind]


def wide_names(item: str, plan: Plan) -> list[tuple[str, int, str]]:
    """The columns of the wide form: (value, place of the label, name)."""
    labels = plan.labels
    if len(labels) > MOST_COLUMNS:
        raise ValueError(
            f"the wide form has columns for each label, and takes at most {MOST_COLUMNS} labels; "
            f"{len(labels)} came. Pass form='long'; or is another column the label?"
        )
    names: list[tuple[str, int, str]] = []
    for kind in plan.values:
        if kind == "uncertainty":
            names.append((kind, 0, kind))
        else:
            names += [(kind, k, f"{kind}_{label}") for k, label in enumerate(labels)]
    if pair := twins([item, *(name for _, _, name in names)]):
        raise ValueError(
            "columns of the wide form must differ by more than case, which some engines ignore; "
            f"{pair[0]!r} and {pair[1]!r} came. Rename the label or the item column, or pass "
            "form='long'."
        )
    return names


def _prior_sums(rows: Rows, plan: Plan) -> dict[str, nw.Expr]:
    """Base rates by row, added up by worth, by certainty, and plainly."""
    answered = ~nw.col(rows.answer).is_null()
    weights = {"w": nw.when(answered).then(nw.col(WORTH)).otherwise(0.0), "n": nw.lit(1.0)}
    if plan.certain:
        weights["c"] = nw.when(answered).then(nw.col(CERTAIN)).otherwise(0.0)
    K = range(len(rows.labels))
    return {f"sle_a_{w}{k}": x * nw.col(prior(k)) for w, x in weights.items() for k in K}


def _fused_priors(rows: Rows, plan: Plan) -> list[nw.Expr]:
    """Base rates weighed as the beliefs are; plainly averaged where nothing is believed."""
    K = range(len(rows.labels))

    def mean(weight: str, k: int) -> nw.Expr:
        return nw.col(f"sle_a_{weight}{k}") / fold(add, (nw.col(f"sle_a_{weight}{j}") for j in K))

    fused = [nw.when(nw.col(TOTAL) > 0).then(mean("w", k)).otherwise(mean("n", k)) for k in K]
    if not plan.certain:
        return fused
    certain = nw.col(CERTAIN_TOTAL) > 0
    return [nw.when(certain).then(mean("c", k)).otherwise(fused[k]) for k in K]
