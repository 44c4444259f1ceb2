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
    prior,
    probability,
)
from slencodings.tables.roles import twins
from slencodings.tables.rows import Rows, with_sum_of_source
from slencodings.tables.weights import WORTH, add_worth

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd

CERTAIN, UNIT = "sle_certain", "sle_unit"
TOTAL, CERTAIN_TOTAL = "sle_total", "sle_certain_total"
COUNT, BELIEF = "sle_count", "sle_b"


class FusePlan(NamedTuple):
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


def wide(rows: Rows, plan: FusePlan) -> Frame:
    """A row per item: one group-by, with a sum per label."""
    names = wide_names(rows.item, plan)
    a = _fused_priors(rows, plan) if rows.priors else None
    return wide_values(wide_beliefs(rows, plan), rows.item, plan, names, a)


def wide_beliefs(rows: Rows, plan: FusePlan) -> Frame:
    """Beliefs of each label and UNCERTAINTY by item, and the sums that they are made of."""
    K = range(len(plan.labels))
    frame = _wide_sums(rows, plan)
    E, C = wide_columns(plan)
    if plan.operator == "constraint":
        frame = taken_back(frame.with_columns(nw.max_horizontal(*E).alias(TOTAL)), E)
    frame = computed(frame).with_columns(
        fold(add, E).alias(TOTAL), *([fold(add, C).alias(CERTAIN_TOTAL)] if C else [])
    )
    return computed(frame).with_columns(
        uncertainty_of(plan).alias(UNCERTAINTY),
        *(belief_of(plan, E[k], C[k] if C else None).alias(belief(k)) for k in K),
    )


def wide_columns(plan: FusePlan) -> tuple[list[nw.Expr], list[nw.Expr]]:
    """What rows bring to each label, and what is certain of that if it may be."""
    K = range(len(plan.labels))
    return [nw.col(worth(k)) for k in K], [nw.col(certain(k)) for k in K if plan.certain]


def wide_values(
    frame: Frame,
    item: str,
    plan: FusePlan,
    names: list[tuple[str, int, str]],
    base_rate: list[nw.Expr] | None = None,
) -> Frame:
    """The values that are wanted, from beliefs of each label and UNCERTAINTY by item."""
    a = base_rate or [nw.lit(x) for x in plan.base_rate]
    values = (value_of(kind, nw.col(belief(k)), a[k], plan).alias(n) for kind, k, n in names)
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


def _wide_sums(rows: Rows, plan: FusePlan) -> Frame:
    """What rows bring to each label, added up by item."""
    K = range(len(plan.labels))
    at = {label: k for k, label in enumerate(rows.labels)}
    of = [at.get(label) for label in plan.labels]
    sums = {worth(k): added_up(plan, _of_label(rows, of[k], WORTH)) for k in K}
    sums |= {certain(k): _of_label(rows, of[k], CERTAIN) for k in K if plan.certain}
    sums |= {UNIT: nw.col(UNIT)} if plan.mean else {}
    sums |= _prior_sums(rows, plan) if rows.priors else {}
    return (rows.hold or sum_by_item)(with_worth(rows, plan), sums)


def sum_by_item(frame: Frame, sums: Mapping[str, nw.Expr]) -> Frame:
    """Expressions of rows added up by item."""
    # Columns first and plain sums after, because PyArrow and Dask cannot sum an expression.
    frame = frame.select(ITEM, *(x.alias(name) for name, x in sums.items()))
    return frame.group_by(ITEM).agg(*(nw.col(name).sum() for name in sums))


def with_worth(rows: Rows, plan: FusePlan) -> Frame:
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


def _averaged(frame: Frame, plan: FusePlan) -> Frame:
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


def added_up(plan: FusePlan, worth: nw.Expr) -> nw.Expr:
    """What is added up of a label's worth: Dempster's rule multiplies, so it adds logarithms."""
    return (1 + worth).log() if plan.operator == "constraint" else worth


def taken_back(frame: Frame, E: list[nw.Expr]) -> Frame:
    """Logarithms back to products, all divided by the largest, whose logarithm TOTAL is."""
    unit = (0 - nw.col(TOTAL)).exp()
    return frame.with_columns(*((e - nw.col(TOTAL)).exp() - unit for e in E), unit.alias(UNIT))


def _scale(plan: FusePlan) -> tuple[nw.Expr, nw.Expr]:
    unit = nw.lit(1.0) if plan.operator == "cumulative" else nw.col(UNIT)
    return unit, unit + nw.col(TOTAL)


def uncertainty_of(plan: FusePlan) -> nw.Expr:
    """unit / (unit + sum E): 0 where a row is certain, 1 where no row brings anything."""
    unit, scale = _scale(plan)
    u = nw.when(scale > 0).then(unit / scale).otherwise(1.0) if plan.mean else unit / scale
    return nw.when(nw.col(CERTAIN_TOTAL) > 0).then(0.0).otherwise(u) if plan.certain else u


def belief_of(plan: FusePlan, E: nw.Expr, C: nw.Expr | None) -> nw.Expr:
    """E / (unit + sum E), or the share C / sum C of what is certain, where anything is."""
    _, scale = _scale(plan)
    b = nw.when(scale > 0).then(E / scale).otherwise(0.0) if plan.mean else E / scale
    if C is None:
        return b
    total = nw.col(CERTAIN_TOTAL)
    return nw.when(total > 0).then(C / total).otherwise(b)


def value_of(kind: str, b: nw.Expr, a: nw.Expr, plan: FusePlan) -> nw.Expr:
    """A value of an opinion by its name, from belief b, UNCERTAINTY and base rate a."""
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


def wide_names(item: str, plan: FusePlan) -> list[tuple[str, int, str]]:
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


def _prior_sums(rows: Rows, plan: FusePlan) -> dict[str, nw.Expr]:
    """Base rates by row, added up by worth, by certainty, and plainly."""
    answered = ~nw.col(rows.answer).is_null()
    weights = {"w": nw.when(answered).then(nw.col(WORTH)).otherwise(0.0), "n": nw.lit(1.0)}
    if plan.certain:
        weights["c"] = nw.when(answered).then(nw.col(CERTAIN)).otherwise(0.0)
    K = range(len(rows.labels))
    return {f"sle_a_{w}{k}": x * nw.col(prior(k)) for w, x in weights.items() for k in K}


def _fused_priors(rows: Rows, plan: FusePlan) -> list[nw.Expr]:
    """Base rates weighed as the beliefs are; plainly averaged where nothing is believed."""
    K = range(len(rows.labels))

    def mean(weight: str, k: int) -> nw.Expr:
        return nw.col(f"sle_a_{weight}{k}") / fold(add, (nw.col(f"sle_a_{weight}{j}") for j in K))

    fused = [nw.when(nw.col(TOTAL) > 0).then(mean("w", k)).otherwise(mean("n", k)) for k in K]
    if not plan.certain:
        return fused
    certain = nw.col(CERTAIN_TOTAL) > 0
    return [nw.when(certain).then(mean("c", k)).otherwise(fused[k]) for k in K]
