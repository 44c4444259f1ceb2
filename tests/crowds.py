"""Crowds as annotations, what methods must make of them, and what crowd-kit made of some."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slencodings.annotations import Annotations
from slencodings.tables.arrays import from_table

ROOT = Path(__file__).parents[1]
CROWDKIT = json.loads((ROOT / "tests" / "data" / "crowdkit.json").read_text())
oracles = pytest.mark.parametrize("oracle", CROWDKIT, ids=["three labels", "two labels"])


def make(item, annotator, y, *, N=None, M=None, K=None, uncertainty=None, stated=None):
    """Annotations from codes; sizes are the largest code unless told."""
    item, annotator, y = np.asarray(item, int), np.asarray(annotator, int), np.asarray(y)
    N = int(item.max()) + 1 if N is None else N
    M = int(annotator.max()) + 1 if M is None else M
    K = K or (y.shape[1] if y.ndim == 2 else int(y.max()) + 1)
    u = np.zeros(len(item)) if uncertainty is None else np.asarray(uncertainty, float)
    return Annotations(item, annotator, y, u, np.arange(N), np.arange(M), np.arange(K), stated)


def read(item, who, label, **options):
    """Annotations by way of a table, with names of any type."""
    table = {"item": list(item), "who": list(who), "label": list(label)}
    return from_table(table, item="item", annotator="who", label="label", **options)


def of(oracle):
    N, M, K = oracle["shape"]
    return make(*np.transpose(oracle["rows"]), N=N, M=M, K=K)


def crowd(rng, *, N=12, M=5, K=3, R=60, soft=False, unsure=False):
    """Annotators of mixed skill; some items may have no annotation, some pairs two."""
    truth, skill = rng.integers(0, K, N), rng.uniform(0.2, 1, M)
    item, annotator = rng.integers(0, N, R), rng.integers(0, M, R)
    y = np.where(rng.random(R) < skill[annotator], truth[item], rng.integers(0, K, R))
    if soft:
        y = 0.6 * np.eye(K)[y] + 0.4 * rng.dirichlet(np.ones(K), R)
    u = rng.choice([0, 1, rng.random()], R) if unsure else None
    return make(item, annotator, y, N=N, M=M, K=K, uncertainty=u)


def by_chance(rng, *, N=6, M=5, K=3, R=25, soft=False, uncertainty=None):
    """Nobody knows anything; some items have one annotation or none, some pairs two."""
    y = rng.dirichlet(np.ones(K), R) if soft else rng.integers(0, K, R)
    item, annotator = rng.integers(0, N, R), rng.integers(0, M, R)
    return make(item, annotator, y, N=N, M=M, K=K, uncertainty=uncertainty)


def named_crowd(
    n: int = 24, per: int = 3, people: int = 6, labels: int = 3, seed: int = 0, **how: Any
) -> Annotations:
    """Items annotated by some of the people; one can be told from how the crowd was made."""
    rng = np.random.default_rng(seed)
    rows = n * per
    item = np.repeat(np.arange(n), per)
    who = np.concatenate([rng.choice(people, per, replace=False) for _ in range(n)])
    truth = rng.integers(0, labels, n)
    y = np.where(rng.random(rows) < 0.7, truth[item], rng.integers(0, labels, rows))
    said = Annotations(
        item,
        who,
        y,
        rng.choice([0.0, 0.25, 0.5], rows),
        np.asarray([f"item {i}" for i in range(n)], dtype=object),
        np.asarray([f"person {m}" for m in range(people)], dtype=object),
        np.asarray([f"label {k}" for k in range(labels)], dtype=object),
    )
    return replace(said, **how)


def once(a):
    """Only the first word of each annotator on each item."""
    pairs = np.unique(a.item * len(a.annotators) + a.annotator, return_index=True)[1]
    return a.rows(np.sort(pairs))


def shuffled(a, rng):
    return a.rows(rng.permutation(len(a.item)))


def renamed(a, items, annotators, labels):
    """The same crowd with its items, annotators and labels in another order: new[p[i]] = old[i]."""
    y = a.y
    if a.soft:
        y = np.empty_like(y)
        y[:, labels] = a.y
    else:
        y = labels[y]
    return replace(a, item=items[a.item], annotator=annotators[a.annotator], y=y)


def assert_same_for_any_names(method, a, rng, tolerance=1e-8):
    """Row order, and the order of items, annotators and labels, change nothing but the order."""
    N, M, K = len(a.items), len(a.annotators), len(a.labels)
    items, annotators, labels = (rng.permutation(n) for n in (N, M, K))
    plain = method(a)
    moved = method(shuffled(renamed(a, items, annotators, labels), rng))
    expected = plain.probability[np.argsort(items)][:, np.argsort(labels)]
    np.testing.assert_allclose(moved.probability, expected, rtol=0, atol=tolerance)
    expected = plain.reliability[np.argsort(annotators)]
    np.testing.assert_allclose(moved.reliability, expected, rtol=0, atol=tolerance)


def assert_same_aggregate(got, expected, tolerance=0.0):
    """Two aggregates are equal to `tolerance`, all that was learned on the way too."""
    close = {"rtol": 0, "atol": tolerance}
    np.testing.assert_allclose(got.probability, expected.probability, **close)
    np.testing.assert_allclose(got.reliability, expected.reliability, **close)
    assert got.details.keys() == expected.details.keys()
    for name, value in expected.details.items():
        np.testing.assert_allclose(got.details[name], value, **close, err_msg=name)


def assert_is_aggregate(got, a):
    N, M, K = len(a.items), len(a.annotators), len(a.labels)
    assert got.probability.shape == (N, K)
    np.testing.assert_allclose(got.probability.sum(-1), 1, atol=1e-12)
    assert (got.probability >= 0).all()
    assert got.reliability.shape == (M,)
    assert ((got.reliability >= 0) & (got.reliability <= 1)).all()
    assert isinstance(got.details["converged"], bool)


# One annotator, one label, two who never agree, nobody at all, no item at all.
ODD = {
    "one annotator": make([0, 1, 2], [0, 0, 0], [0, 1, 1]),
    "one annotation": make([0], [0], [1], K=3),
    "one label used": make([0, 0, 1], [0, 1, 0], [1, 1, 1], K=3),
    "one label there is": make([0, 0, 1], [0, 1, 0], [0, 0, 0]),
    "total disagreement": make([0, 0, 1, 1, 2, 2], [0, 1] * 3, [0, 1, 1, 2, 2, 0]),
    "nobody": make([], [], np.zeros(0, int), N=3, M=2, K=2),
    "nobody is sure": make([0, 0], [0, 1], [0, 1], uncertainty=[1, 1]),
    "one soft annotation": make([0], [0], [[0.2, 0.3, 0.5]]),
    "no items": make([], [], np.zeros(0, int), N=0, M=0, K=2),
}
odd_crowds = pytest.mark.parametrize("a", ODD.values(), ids=ODD)


def one_item(R=10**5, M=50, K=3, rng=None):
    """So many annotations of one item that products of probabilities vanish."""
    rng = rng or np.random.default_rng(0)
    y = np.where(rng.random(R) < 0.6, 1, rng.integers(0, K, R))
    return make(np.zeros(R, int), np.arange(R) % M, y, K=K)


def rte():
    """The 800 x 10 annotations of RTE and their gold labels, or a skip."""
    path = ROOT.parent / "shared" / "datasets" / "rte" / "all_collected_data"
    path /= "rte.standardized.tsv"
    if not path.exists():
        pytest.skip(f"RTE is not there: {path}")
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    items, item = np.unique([r["orig_id"] for r in rows], return_inverse=True)
    _, who = np.unique([r["!amt_worker_ids"] for r in rows], return_inverse=True)
    gold = np.zeros(len(items), int)
    gold[item] = [int(r["gold"]) for r in rows]
    return make(item, who, [int(r["response"]) for r in rows]), gold


def accuracy(probability, gold):
    """A tie counts by its share."""
    leads = probability >= probability.max(-1, keepdims=True) - 1e-12
    return float(np.mean(leads[np.arange(len(gold)), gold] / leads.sum(-1)))
