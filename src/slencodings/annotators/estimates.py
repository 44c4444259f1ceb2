"""What well-known measures and methods say of annotators, with intervals from refits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from slencodings.aggregate import dawid_skene, mace, pairwise_kappa, share_of_agreement
from slencodings.aggregate.agreement import Judgments
from slencodings.annotations import Annotations
from slencodings.annotators.intervals import (
    Interval,
    agreement_sample_size,
    effective_sample_size,
    groups_of_items,
    interval,
)
from slencodings.annotators.verdicts import FEWEST_ITEMS, shared_items
from slencodings.opinion import Floats

Progress = Callable[[int, int], None]

ESTIMATES = ("agreement", "kappa", "dawid_skene", "mace")
# With the 50 steps that MACE usually takes it often has not come to an end.
_MACE_STEPS = 500
# Two digits of a share that is below this are zeros.
_ZERO = 0.005


class Fit(NamedTuple):
    """What the estimators say of each annotator, (M,) each, and where to start MACE again."""

    values: dict[str, Floats]
    start: tuple[Floats, Floats] | None
    notes: list[str]


def fit(
    annotations: Annotations,
    estimates: Iterable[str],
    rng: np.random.Generator | int,
    like: Fit | None = None,
) -> Fit:
    """The estimates; `like` another fit, so with MACE from where that ended.

    Nothing tells the errors of who shares no item, or is never sure at all, from those of others;
    Dawid-Skene and MACE give their priors then, which say nothing about the annotator.
    """
    comparable = shared_items(annotations.rows(annotations.uncertainty < 1)) > 0
    values: dict[str, Floats] = {}
    notes: list[str] = []
    start = None if like is None else like.start
    for name in estimates:
        converged = True
        match name:
            case "agreement":
                values[name] = share_of_agreement(annotations)
            case "kappa":
                try:
                    values[name] = pairwise_kappa(annotations)
                except ValueError as error:  # it would take too many pairs
                    values[name] = np.full(len(comparable), np.nan)
                    notes.append(f"There is no kappa: {error}")
            case "dawid_skene":
                found = dawid_skene(annotations)
                values[name] = np.where(comparable, np.asarray(found.reliability), np.nan)
                converged = found.details["converged"]
            case _:
                draw = np.random.default_rng(rng)
                found = mace(annotations, n_iter=_MACE_STEPS, rng=draw, initial=start)
                know = np.asarray(found.reliability)
                start = np.stack([found.details["spamming"], know], 1), found.details["strategy"]
                values[name] = np.where(comparable, know, np.nan)
                converged = found.details["converged"]
        if not converged:
            notes.append(f"`{name}` did not converge: take it for a rough guide.")
    if np.any(comparable) and "mace" in values and np.all(values["mace"][comparable] < _ZERO):
        notes.append(
            "`mace` takes everybody for guessing, .00 for all: its fit is degenerate and tells "
            "nothing of anybody."
        )
    return Fit(values, start, notes)


def intervals(
    annotations: Annotations,
    judged: Judgments,
    found: Fit,
    groups: int,
    rng: np.random.Generator | int,
    progress: Progress,
) -> dict[str, Interval]:
    """Low and high of each estimate, (M,) each, NaN for none."""
    M = len(annotations.annotators)
    size = agreement_sample_size(judged, M, len(annotations.labels))
    none = np.full(M, np.nan)
    ends = dict.fromkeys(found.values, (none, none))
    if "agreement" in found.values:
        ends["agreement"] = interval(found.values["agreement"], size)
    names = [name for name in found.values if name != "agreement"]
    items = np.unique(judged.item)
    G = min(groups, len(items))
    if G < 2 or not names:
        progress(1, 1)
        return ends
    progress(1, 1 + G)
    group = groups_of_items(items, len(annotations.items), G, rng)
    refits: dict[str, list[Floats]] = {name: [] for name in names}
    for g in range(G):
        keep = group[annotations.item] != g
        again = fit(annotations.rows(keep), names, rng, found)
        for name in names:
            refits[name].append(again.values[name])
        progress(2 + g, 1 + G)
    n = np.bincount(judged.annotator, minlength=M)
    seen = np.unique(judged.annotator * G + group[judged.item]) // G
    spread = np.bincount(seen, minlength=M)
    enough = (n >= FEWEST_ITEMS) & (spread > 1)
    for name in names:
        # Kappa is a share of agreement, stretched: it too knows more than n tosses.
        low, most = (-1, size) if name == "kappa" else (0, n)
        x, again = ((v - low) / (1 - low) for v in (found.values[name], np.stack(refits[name])))
        most = np.where(enough, most, np.nan)
        both = interval(x, effective_sample_size(x, again, most, spread))
        ends[name] = both[0] * (1 - low) + low, both[1] * (1 - low) + low
    return ends
