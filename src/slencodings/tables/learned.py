"""The answers of a learned crowd where they need its model of truth, as lazy expressions.

One look-up gives every row its worth and its log-likelihood if each of the labels is true, and one
group-by adds both up, for E and L of each label and for how many annotations there are:

t ~ prior exp(L / (1 + c max(n - 1, 0))),   V = t H,   S = sum E,   u = 1 / (1 + S)
votes: b = ((1 - m) E C + m S V) / (1 + S)
truth: P = 3/4 t + 1/4 (b + u a),   and as uncertain as P allows: u = min P / prior

`Crowd.votes_of` and `Crowd.truth_of` are the same in arrays.
"""

from __future__ import annotations

import math
from operator import add
from typing import TYPE_CHECKING

import narwhals as nw

from slencodings.tables.engines import (
    ANNOTATOR,
    ITEM,
    LABEL,
    SHARE,
    UNCERTAINTY,
    Frame,
    computed,
    fold,
    probability,
)
from slencodings.tables.long import (
    base_rates,
    long_beliefs,
    long_values,
    only_named,
    stack,
    stacked_by_label,
)
from slencodings.tables.rows import Rows
from slencodings.tables.sums import (
    BELIEF,
    CERTAIN,
    COUNT,
    TOTAL,
    FusePlan,
    belief,
    sum_by_item,
    wide_names,
    wide_values,
    worth,
)
from slencodings.tables.weights import (
    LIKELIHOOD,
    PLACE,
    TRUE,
    WORTH,
    add_likelihoods,
    add_worth,
    by_truth,
    likelihood,
)

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd
    from slencodings.trust.truth import TruthModel


def wide(rows: Rows, plan: FusePlan) -> Frame:
    """A row per item: one group-by, with two sums per label."""
    names = wide_names(rows.item, plan)
    return wide_values(_beliefs(rows, plan), rows.item, plan, names)


def long(rows: Rows, plan: FusePlan) -> Frame:
    """A row per item and label; an item that nobody labelled keeps one row.

    What is true may be any label, so that all count as named.
    """
    crowd = _crowd(plan)
    if crowd.model is None:
        return long_values(_sure_of_named(long_beliefs(rows, plan), plan), rows.item, plan)
    K = range(len(plan.labels))
    frame = _beliefs(rows, plan).select(ITEM, COUNT, UNCERTAINTY, *map(belief, K))
    frame = stack(frame, [belief(k) for k in K], plan.labels, BELIEF)
    some = nw.col(COUNT) > 0
    frame = frame.filter(some | (nw.col(LABEL) == plan.labels[0]))
    frame = frame.with_columns(nw.when(some).then(nw.col(LABEL)).alias(LABEL))
    return long_values(frame, rows.item, plan)


def pseudo_counts(rows: Rows, plan: FusePlan) -> Frame:
    """The additive long form: what votes add up to, and what they tell about the truth.

    Two such tables of different annotations are merged by adding them up.
    """
    return evidence(rows, plan).select(
        nw.col(ITEM).alias(rows.item),
        nw.col(LABEL).alias("label"),
        (plan.prior_weight * nw.col(WORTH)).alias("evidence"),
        nw.col(CERTAIN).alias("dogmatic"),
        nw.col(COUNT).alias("annotations"),
        nw.col(LIKELIHOOD).alias("log_likelihood"),
    )


def evidence(rows: Rows, plan: FusePlan) -> Frame:
    """WORTH, COUNT and LIKELIHOOD by item and label, as `long.evidence` has the first two.

    LIKELIHOOD is that of all annotations of the item if the label is true, so every label of an
    item that has an annotation has a row.
    """
    frame, share = _spoken(rows)
    frame = by_truth(frame.with_columns(share.alias(COUNT)), _crowd(plan))
    count = nw.col(COUNT) * nw.when(nw.col(LABEL) == nw.col(TRUE)).then(1.0).otherwise(0.0)
    brings = {
        WORTH: count * nw.col(WORTH),
        CERTAIN: nw.lit(0.0),
        COUNT: count,
        LIKELIHOOD: nw.col(COUNT) * nw.col(LIKELIHOOD),
    }
    frame = frame.select(
        ITEM,
        nw.col(TRUE).alias(LABEL),
        *(x.fill_null(0.0).alias(name) for name, x in brings.items()),
    )
    frame = frame.group_by(ITEM, LABEL).agg(nw.col(*brings).sum())
    return only_named(frame)


def _crowd(plan: FusePlan) -> Crowd:
    assert plan.crowd is not None, "there is a crowd wherever its answers are wanted"
    return plan.crowd


def _spoken(rows: Rows) -> tuple[Frame, nw.Expr]:
    """What is to be known of rows, by label, and the share of each that goes to it."""
    p = [probability(k) for k in range(len(rows.labels))] if rows.soft else [LABEL]
    there = rows.frame.collect_schema().names()
    wanted = (ITEM, ANNOTATOR, *p, UNCERTAINTY, SHARE)
    frame, share = stacked_by_label(rows, rows.frame.select(*(n for n in wanted if n in there)))
    return frame, share * nw.col(SHARE) if rows.averaged else share


def _sums(rows: Rows, plan: FusePlan) -> Frame:
    """What rows bring to each label and tell about its truth, and COUNT, added up by item."""
    crowd, labels = _crowd(plan), plan.labels
    K = range(len(labels))

    def of_label(column: str, k: int) -> nw.Expr:
        return nw.when(nw.col(LABEL) == labels[k]).then(nw.col(column)).otherwise(0.0)

    if rows.summed:
        sums = {worth(k): of_label(WORTH, k) for k in K}
        if crowd.model is not None:
            sums |= {likelihood(k): of_label(LIKELIHOOD, k) for k in K} | {COUNT: nw.col(COUNT)}
        return sum_by_item(rows.frame, sums)
    frame, share = _spoken(rows)
    frame, count = frame.with_columns(share.alias(COUNT)), {COUNT: nw.col(COUNT)}
    if crowd.model is None:
        sums = {worth(k): nw.col(COUNT) * of_label(WORTH, k) for k in K}
        return sum_by_item(add_worth(frame, crowd), sums | count)
    frame = add_likelihoods(frame, crowd)
    likelihoods = [likelihood(k) for k in K[1:]]
    if rows.soft or rows.averaged:  # Else each is one, or says nothing and is worth nothing.
        shared = ((nw.col(COUNT) * nw.col(name)).alias(name) for name in (WORTH, *likelihoods))
        frame = frame.with_columns(*shared)
    sums = {worth(k): nw.when(nw.col(PLACE) == k).then(nw.col(WORTH)).otherwise(0.0) for k in K}
    frame = sum_by_item(frame, sums | count | {name: nw.col(name) for name in likelihoods})
    return frame.with_columns(nw.lit(0.0).alias(likelihood(0)))


def _beliefs(rows: Rows, plan: FusePlan) -> Frame:
    """Beliefs of each label and UNCERTAINTY by item; with a model of truth also COUNT."""
    crowd, K = _crowd(plan), range(len(plan.labels))
    E = [nw.col(worth(k)) for k in K]
    S, m = nw.col(TOTAL), crowd.through_truth
    frame = computed(_sums(rows, plan).with_columns(fold(add, E).alias(TOTAL)))
    b = E
    if crowd.meaning is not None:
        C = crowd.meaning.tolist()
        b = [fold(add, (E[j] * C[j][k] for j in K)) for k in K]
    if crowd.model is not None:
        frame = _with_posterior(frame, crowd.model)
    if crowd.model is not None and m > 0:
        H = crowd.model.habits.tolist()
        V = [fold(add, (nw.col(_truth(z)) * H[z][k] for z in K)) for k in K]
        b = [(1 - m) * b[k] + m * S * V[k] for k in K]
    frame = frame.with_columns(
        (1 / (1 + S)).alias(UNCERTAINTY), *((b[k] / (1 + S)).alias(belief(k)) for k in K)
    )
    return _true(computed(frame), crowd) if plan.truth else computed(frame)


def _truth(k: int) -> str:
    return f"sle_t{k}"


def _with_posterior(frame: Frame, model: TruthModel) -> Frame:
    """Add how likely each label is true, by summed log-likelihoods of COUNT annotations."""
    log_prior = [math.log(p) if p > 0 else -math.inf for p in model.prior.tolist()]
    n = nw.col(COUNT)
    several = nw.when(n > 1).then(n - 1).otherwise(0.0)
    design_effect = 1 + model.correlation * several
    K = range(len(log_prior))
    frame = frame.with_columns(
        *((log_prior[k] + nw.col(likelihood(k)) / design_effect).alias(_truth(k)) for k in K)
    )
    t = [nw.col(_truth(k)) for k in K]
    frame = computed(frame).with_columns(nw.max_horizontal(*t).alias("sle_top"))
    frame = computed(frame).with_columns(*((x - nw.col("sle_top")).exp() for x in t))
    frame = computed(frame).with_columns(fold(add, t).alias("sle_top"))
    return computed(computed(frame).with_columns(*(x / nw.col("sle_top") for x in t)))


def _true(frame: Frame, crowd: Crowd) -> Frame:
    """Beliefs in what is true, from those in what people would say and the posterior."""
    c, a, prior = crowd.votes_in_truth, crowd.base_rate.tolist(), crowd.prior.tolist()
    u, K = nw.col(UNCERTAINTY), range(len(prior))

    def pooled(k: int) -> nw.Expr:
        votes = nw.col(belief(k)) + u * a[k]
        if crowd.model is None:
            return votes
        P = (1 - c) * nw.col(_truth(k)) + c * votes
        return nw.when(nw.col(COUNT) > 0).then(P).otherwise(nw.lit(prior[k]))

    frame = computed(frame.with_columns(*(pooled(k).alias(_truth(k)) for k in K)))
    ratios = (nw.col(_truth(k)) / prior[k] for k in K if prior[k] > 0)
    least = nw.min_horizontal(nw.lit(1.0), *ratios)
    frame = computed(frame.with_columns(least.alias(UNCERTAINTY)))
    left = [nw.col(_truth(k)) - u * prior[k] for k in K]
    return frame.with_columns(
        *(nw.when(x > 0).then(x).otherwise(0.0).alias(belief(k)) for k, x in enumerate(left))
    )


def _sure_of_named(frame: Frame, plan: FusePlan) -> Frame:
    """Beliefs in what is true where votes are all that is known of it, by item and label.

    They leave out no label where all are named: then what they have in common is uncertainty.
    """
    frame, a = base_rates(frame, plan)
    labels = sum(rate > 0 for rate in plan.base_rate)
    frame = frame.with_columns((nw.col(BELIEF) / a).alias("sle_ratio"), nw.lit(1).alias("sle_one"))
    frame = frame.with_columns(
        nw.col("sle_ratio").min().over(ITEM).alias("sle_least"),
        nw.col("sle_one").sum().over(ITEM).alias("sle_named"),
    )
    least = nw.when(nw.col("sle_named") == labels).then(nw.col("sle_least")).otherwise(0.0)
    left = nw.col(BELIEF) - least * a
    frame = frame.with_columns(
        (nw.col(UNCERTAINTY) + least).alias(UNCERTAINTY),
        nw.when(left > 0).then(left).otherwise(0.0).alias(BELIEF),
    )
    return frame.select(ITEM, LABEL, BELIEF, UNCERTAINTY)
