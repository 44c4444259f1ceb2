"""Does a learned crowd pay? Held-out votes on real crowds, and speed on a large one.

Five folds over items: everything is learned on the other four, and each vote of the fifth is
predicted from the others on its item. The table shows the mean log-loss, lower is better, and its
standard error over items. `--large` measures time and memory on five million annotations instead.
L-BFGS-B calls BLAS on tiny matrices, whose threads wait for each other on a busy machine: set
OPENBLAS_NUM_THREADS=1 there.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from slencodings import Annotations, metrics
from slencodings.datasets.cifar10s import cifar10s
from slencodings.datasets.convabuse import convabuse
from slencodings.datasets.mre import mre
from slencodings.datasets.rte import rte
from slencodings.datasets.uds_factuality import uds_factuality
from slencodings.trust import Crowd, Ridge, learn_crowd

OFF = {"by_annotator": False, "by_confidence": False}
METHODS: dict[str, dict[str, bool] | None] = {
    "one count each": None,
    "one learned worth": OFF,
    "per annotator": OFF | {"by_annotator": True},
    "per level": OFF | {"by_confidence": True},
    "both": {},
}


def crowds() -> dict[str, Callable[[], Annotations]]:
    def top() -> Annotations:
        said = cifar10s().annotations
        return replace(said, y=said.y.argmax(axis=1))

    return {
        "RTE": lambda: rte().annotations,
        "UDS factuality": lambda: uds_factuality().annotations,
        "CIFAR-10S, top label": top,
        "CIFAR-10S, soft labels": lambda: cifar10s().annotations,
        "MRE, cause": lambda: mre().annotations,
        "MRE, treat": lambda: mre(relation="treat").annotations,
        "ConvAbuse": lambda: convabuse().annotations,
    }


def folds(said: Annotations, n: int, seed: int) -> Iterator[tuple[Annotations, Annotations]]:
    fold = np.random.default_rng(seed).permutation(len(said.items)) % n
    for f in range(n):
        for_test = fold[said.item] == f
        yield said.rows(~for_test), said.rows(for_test)


def soft_votes(train: Annotations, test: Annotations) -> np.ndarray:
    a = train.sums().sum(axis=0)
    return metrics.held_out_log_loss(
        test.item,
        test.y,
        1 / 3,  # one pseudo-count next to a prior weight of two
        n_labels=len(a),
        base_rate=a / a.sum(),
        each=True,
    )


def log_loss(crowd: Crowd, test: Annotations) -> np.ndarray:
    """The loss of each vote, predicted by the others on its item; nan if it is alone."""
    loss = -np.sum(test.vectors * np.log(crowd.predict(test)), axis=1)
    return np.where(np.bincount(test.item)[test.item] > 1, loss, np.nan)


def score(said: Annotations, how: dict[str, bool] | None, n: int, seed: int) -> Any:
    """Mean loss, its standard error over items, and the losses summed by item."""
    total, count = np.zeros(len(said.items)), np.zeros(len(said.items))
    for train, test in folds(said, n, seed):
        learned = None if how is None else learn_crowd(train, **how)
        loss = soft_votes(train, test) if learned is None else log_loss(learned, test)
        scored = ~np.isnan(loss)
        total += np.bincount(test.item[scored], loss[scored], len(total))
        count += np.bincount(test.item[scored], minlength=len(total))
    mean = total.sum() / count.sum()
    error = np.sqrt(np.sum((total - mean * count) ** 2)) / count.sum()
    return mean, error, total, count


def table(names: list[str], n: int, seed: int) -> None:
    print(f"| data | {' | '.join(METHODS)} | last less votes | seconds |")
    print("|---" * (len(METHODS) + 3) + "|")
    for name in names:
        start = time.perf_counter()
        said = crowds()[name]()
        cells, sums = [], []
        for method, how in METHODS.items():
            if said.stated is None and method in ("per level", "both"):
                cells.append("-" if method == "per level" else cells[-2])
                continue
            mean, error, total, count = score(said, how, n, seed)
            cells.append(f"{mean:.3f} ± {error:.3f}")
            sums.append(total)
        # The same items for both, so that the difference has a smaller error than either.
        paired = sums[-1] - sums[0]
        gain = paired.sum() / count.sum()
        error = np.sqrt(np.sum((paired - gain * count) ** 2)) / count.sum()
        seconds = time.perf_counter() - start
        print(
            f"| {name} | {' | '.join(cells)} | {gain:+.3f} ± {error:.3f} | {seconds:.0f} |",
            flush=True,
        )


def against_gold() -> None:
    """RTE: how right are those who learned without gold?"""
    crowd = rte()
    said, right = crowd.annotations, np.arange(len(crowd.gold))
    print("\n| RTE against gold | accuracy, a tie counts half | log-loss |\n|---|---|---|")
    for method, how in METHODS.items():
        if method in ("per level", "both"):
            continue
        if how is None:
            votes = said.sums()
            P = (votes + 2 * votes.sum(axis=0) / votes.sum()) / (votes.sum(axis=1)[:, None] + 2)
            readings = {method: (votes, P)}
        else:
            learned = learn_crowd(said, **how)
            truth, votes = (read(said).probability for read in (learned.truth, learned.votes))
            readings = {f"{method}, truth": (truth, truth), f"{method}, votes": (votes, votes)}
        for name, (best, P) in readings.items():
            top = best == best.max(axis=1, keepdims=True)
            accuracy = np.mean(top[right, crowd.gold] / top.sum(axis=1))
            loss = -np.mean(np.log(P[right, crowd.gold]))
            print(f"| {name} | {accuracy:.3f} | {loss:.3f} |")


def large(rows: int, n_annotators: int = 1000, K: int = 5) -> None:
    """A crowd of five annotations per item, whose annotators are right more or less often."""
    rng = np.random.default_rng(0)
    N = rows // 5
    truth = rng.integers(0, K, N)
    item = rng.permutation(np.repeat(np.arange(N), 5))
    annotator = rng.integers(0, n_annotators, rows)
    stated = rng.integers(0, 5, rows)
    skill = rng.beta(4, 2, n_annotators)[annotator] * (0.5 + stated / 8)
    y = np.where(rng.random(rows) < skill, truth[item], rng.integers(0, K, rows))
    names = map(np.arange, (N, n_annotators, K))
    said = Annotations(item, annotator, y, np.zeros(rows), *names, stated=stated.astype(float))
    for how, ridge in (("ridges chosen", None), ("ridges given", Ridge())):
        start, busy = time.perf_counter(), time.process_time()
        crowd = learn_crowd(said, ridge=ridge)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{rows:,} annotations, {how}: {seconds:.0f} s ({busy:.0f} s of CPU), "
            f"peak {peak:.2f} GB, {crowd.losses}"
        )
    start = time.perf_counter()
    crowd.votes(said), crowd.truth(said)
    print(f"both readings: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--data", nargs="*", default=None, help="some of the data sets")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.large:
        large(given.rows)
    else:
        table(given.data or list(crowds()), given.folds, given.seed)
        against_gold()
