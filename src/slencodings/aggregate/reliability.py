"""Whom to trust, as an opinion rather than a number, and what to do without the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slencodings.aggregate.agreement import judgments, peer_agreement
from slencodings.annotations import Annotations, counted
from slencodings.opinion import Codes, Floats, Opinion


def reliability_opinion(
    annotations: Annotations,
    *,
    chance: bool = False,
    base_rate: float | None = None,
    prior_weight: float = 2.0,
) -> Opinion:
    """How far to trust each annotator, (M,) opinions (trustworthy, not), from agreement with peers.

    b = (r, s) / (r + s + W),   u = W / (r + s + W),   r = sum of agreement, s = sum of the rest

    A judgment counts one however many peers it has: its expected agreement with one of them, as in
    `share_of_agreement`, is for the annotator, the rest against. So u says how often they were
    seen beside others; who never was is vacuous, and judged by the base rate.

    Parameters
    ----------
    chance : count r = n kappa, kappa = (r/n - p_e) / (1 - p_e) but at least 0, p_e = sum_k f_k^2
        from how often labels were given; 1 where only one was
    base_rate : a, what to expect of an annotator; the mean over all judgments when absent (a half
        if none has a peer)
    prior_weight : W, the judgments that the base rate is worth

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1, 1, 1, 2, 2], "who": ["ann", "bob", "cyd", "ann", "bob"],
    ...          "label": ["yes", "yes", "no", "no", "no"]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> reliability_opinion(crowd, base_rate=0.8).uncertainty
    array([0.5       , 0.5       , 0.66666667])
    """
    if base_rate is not None and not 0 <= base_rate <= 1:
        raise ValueError(
            f"`base_rate` must lie in [0, 1]: the share of trust in a stranger; {base_rate} came."
        )
    if not 0 < prior_weight < np.inf:
        raise ValueError(
            f"`prior_weight` must be above 0 and finite; {prior_weight} came. "
            "2 is usual: the base rate is worth two judgments."
        )
    M, K = len(annotations.annotators), len(annotations.labels)
    judged = judgments(annotations).shared()
    agreed = np.clip(peer_agreement(judged, K), 0, 1)
    n = np.bincount(judged.annotator, minlength=M).astype(float)
    r = np.bincount(judged.annotator, agreed, M)
    overall = float(np.mean(agreed)) if len(agreed) else 0.5
    if chance and len(agreed):
        f = np.bincount(judged.label, judged.value, K) / len(agreed)
        p_e = float(np.sum(f**2))
        r = n * _beyond(r / np.maximum(n, 1), p_e)
        overall = float(_beyond(np.asarray(overall), p_e))
    a = overall if base_rate is None else base_rate
    total = n + prior_weight
    b = np.stack([r, n - r], axis=-1) / total[:, None]
    return Opinion(b, prior_weight / total, np.tile([a, 1 - a], (M, 1)))


def _beyond(p: Floats, chance: float) -> Floats:
    """Agreement beyond chance, in [0, 1]; chance agreement of 1 means that nobody disagreed."""
    if chance > 1 - 1e-12:
        return np.ones_like(p)
    return np.clip((p - chance) / (1 - chance), 0, 1)


class Mapped(NamedTuple):
    """Scores made fit to be used as reliability, and whose were not.

    Attributes
    ----------
    reliability : array (M,), in [0, 1]
    negative : int array, the annotators whose score was below 0 and is 0 now
    unknown : int array, the annotators without a score, who got the mean of the others
    """

    reliability: Floats
    negative: Codes
    unknown: Codes


def as_reliability(score: ArrayLike) -> Mapped:
    """Scores such as kappa as reliability: negative ones become 0, missing ones the mean.

    r = max(score, 0);   NaN is the mean of the other r, and 1 (full trust) if there are none

    Examples
    --------
    >>> as_reliability([0.5, -0.25, float("nan")])
    Mapped(reliability=array([0.5 , 0.  , 0.25]), negative=array([1]), unknown=array([2]))
    """
    x = np.asarray(score, dtype=float)
    if x.ndim != 1 or np.any(x > 1 + 1e-9):
        raise ValueError(
            "`score` must be one number at most 1 per annotator, NaN if unknown; "
            f"shape {x.shape} with a maximum of {np.nanmax(x, initial=-np.inf):g} came. "
            "Divide scores by the highest possible one."
        )
    unknown = np.isnan(x)
    r = np.clip(x, 0, 1)
    r[unknown] = np.mean(r[~unknown]) if np.any(~unknown) else 1.0
    return Mapped(r, np.flatnonzero(x < 0), np.flatnonzero(unknown))


class Filtered(NamedTuple):
    """What filtering dropped.

    Attributes
    ----------
    threshold : what was too low lay below it
    annotators : names of annotators of whom nothing is left
    annotations : how many annotations were dropped, of how many
    items : names of items that have no annotation left; they stay in `Annotations.items`
    unknown : names of annotators without reliability (NaN), whose annotations were kept
    """

    threshold: float
    annotators: list[Any]
    annotations: tuple[int, int]
    items: list[Any]
    unknown: list[Any]

    def __str__(self) -> str:
        dropped, total = self.annotations
        return (
            f"below {self.threshold:.4g}: dropped {dropped:,} of {counted(total, 'annotation')} "
            f"and {counted(len(self.annotators), 'annotator')}; "
            f"{counted(len(self.items), 'item')} left without any"
            + (
                f"; kept {counted(len(self.unknown), 'annotator')} of unknown reliability"
                * bool(self.unknown)
            )
        )


def filter_by_reliability(
    annotations: Annotations,
    reliability: Opinion | Mapping[Any, float] | ArrayLike,
    *,
    threshold: float | None = None,
    quantile: float | None = None,
) -> tuple[Annotations, Filtered]:
    """Leave out annotations of unreliable annotators, and tell what was dropped.

    Items, annotators and labels stay, so that codes and arrays (M,) still fit. NaN is unknown, not
    low: it is kept. Our experiments keep the more reliable half, `quantile=0.5`; the paper names
    no threshold.

    Parameters
    ----------
    reliability : array (M,) or (R,), mapping from annotator to number, or binomial Opinion; any
        scale will do, also kappa below 0
    threshold : drop what lies below it
    quantile : drop what lies below this quantile, of the annotators who annotated something or
        of the annotations; those at it stay

    Examples
    --------
    >>> from slencodings import from_table
    >>> table = {"item": [1, 1, 2], "who": ["ann", "bob", "bob"], "label": ["yes", "no", "no"]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> print(filter_by_reliability(crowd, {"ann": 0.9, "bob": 0.4}, threshold=0.5)[1])
    below 0.5: dropped 2 of 3 annotations and 1 annotator; 1 item left without any
    """
    if (threshold is None) == (quantile is None):
        raise ValueError(
            "filtering needs either `threshold` or `quantile`; "
            f"threshold={threshold} and quantile={quantile} came. To keep the better half: "
            "quantile=0.5."
        )
    r = _scores(annotations, reliability)
    item, who = annotations.item, annotations.annotator
    M, R = len(annotations.annotators), len(item)
    per_row = r[who] if len(r) == M else r
    if quantile is not None:
        if not 0 <= quantile <= 1:
            raise ValueError(f"`quantile` must lie in [0, 1]; {quantile} came.")
        known = r[np.unique(who)] if len(r) == M else r
        known = known[~np.isnan(known)]
        threshold = float(np.quantile(known, quantile)) if len(known) else -np.inf
    limit = float(threshold if threshold is not None else -np.inf)
    low = per_row < limit
    left = annotations.rows(~low)
    return left, Filtered(
        threshold=limit,
        annotators=annotations.annotators[np.setdiff1d(who, left.annotator)].tolist(),
        annotations=(int(np.sum(low)), R),
        items=annotations.items[np.setdiff1d(item, left.item)].tolist(),
        unknown=annotations.annotators[np.unique(who[np.isnan(per_row)])].tolist(),
    )


def _scores(
    annotations: Annotations, reliability: Opinion | Mapping[Any, float] | ArrayLike
) -> Floats:
    """Reliability on any scale, (M,) or (R,)."""
    if isinstance(reliability, Opinion):
        reliability = reliability.probability[..., 0]
    if isinstance(reliability, Mapping):
        reliability = [reliability.get(name, np.nan) for name in annotations.annotators.tolist()]
    r = np.asarray(reliability, dtype=float)
    M, R = len(annotations.annotators), len(annotations.item)
    if r.shape not in {(M,), (R,)}:
        raise ValueError(
            f"`reliability` must be one number per annotator ({M},) or per annotation ({R},); "
            f"shape {r.shape} came. Get some from share_of_agreement(annotations)."
        )
    return r
