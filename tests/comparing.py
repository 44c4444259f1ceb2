"""Crowds to compare encodings on, all methods that there are, and the rows of a comparison."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
from crowds import crowd, make

from slencodings import Annotations
from slencodings.evaluation import Comparison
from slencodings.evaluation.methods import methods_for


def confident(rng, **how):
    """A crowd whose stated confidence says something."""
    a = crowd(rng, **how)
    stated = rng.integers(1, 5, len(a.item)).astype(float)
    return replace(a, stated=stated, reliability=rng.uniform(0, 1, len(a.item)))


def all_methods(seed=0, soft=False):
    c = confident(np.random.default_rng(seed), N=25, R=130, soft=soft, unsure=True)
    return c, methods_for(c)


NAMES = list(all_methods()[1])


def skilled(rng, N=150, M=12):
    """Half of the annotators are right, the others guess."""
    truth = rng.integers(0, 2, N)
    item, annotator = np.divmod(np.arange(N * M), M)
    y = np.where((annotator < M // 2), truth[item], rng.integers(0, 2, N * M))
    return make(item, annotator, y, K=2), truth


def rows_of(comparison: Comparison) -> list[dict[str, Any]]:
    """Its rows; which scores they have depends on what was compared."""
    return cast(Any, comparison.rows)


def large_crowd(rng: np.random.Generator, *, rare: int = 0) -> Annotations:
    """2,000 items with three annotations each by ten people, and some by others who are rare."""
    N, M, K = 2000, 10, 3
    item = np.repeat(np.arange(N), 3)
    annotator = np.concatenate([rng.choice(M, 3, replace=False) for _ in range(N)])
    for m in range(rare):
        annotator[3 * m] = M + m
    truth = rng.integers(0, K, N)
    y = np.where(rng.random(len(item)) < 0.7, truth[item], rng.integers(0, K, len(item)))
    names = np.arange(N), np.arange(M + rare), np.arange(K)
    return Annotations(item, annotator, y, np.zeros(len(item)), *names)
