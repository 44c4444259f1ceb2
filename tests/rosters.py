"""Crowds of known skill, and what is told of each annotator in them."""

import numpy as np

from slencodings.annotations import Annotations
from slencodings.annotators import describe_annotators
from slencodings.trust import count_each

QUICK = ["agreement", "kappa"]


def compared(c, **options):
    """What peers tell of each other, of which nothing hangs on a crowd that is learned."""
    return describe_annotators(c, crowd=count_each(c), **options)


def skilled(rng, accuracy, *, N=60, per_item=4):
    """Annotators who tell two equally common labels apart, each as often as their accuracy says."""
    M = len(accuracy)
    truth = rng.integers(0, 2, N)
    who = np.argsort(rng.random((N, M)), axis=1)[:, :per_item].ravel()
    item = np.repeat(np.arange(N), per_item)
    right = rng.random(len(item)) < accuracy[who]
    y = np.where(right, truth[item], 1 - truth[item])
    names = np.arange(N), np.arange(M), np.arange(2)
    return Annotations(item, who, y, np.zeros(len(item)), *names)


def by_name(roster):
    return {row["annotator"]: row for row in roster.to_rows()}


def column(roster, name):
    """Values by annotator, in the order of names, NaN for None."""
    rows = by_name(roster)
    return np.asarray([np.nan if rows[m][name] is None else rows[m][name] for m in sorted(rows)])
