"""Which label is right where there are few items and few votes? Crowds with gold, cut small.

The learned crowd beside majority votes and Dawid and Skene's model, on items and votes drawn by a
seed. `--write` keeps the rows in benchmarks/rows and the table in docs/comparison.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.votes.crowds import Crowd, published
from experiments.rounds import cut
from experiments.tables import Table, bold, keep, markdown, place
from slencodings import Annotations, __version__, aggregate
from slencodings.opinion import Floats
from slencodings.trust import learn_crowd

KEPT = Path(__file__).parent / "rows" / "small_crowds.json"
GOLD = (
    *("RTE", "MRE, cause", "MRE, treat", "CIFAR-10S"),
    *("web", "trec", "sentiment", "adult", "fact_eval"),
)
SIZES = ((50, 2), (50, 3), (50, 5), (150, 2), (150, 3), (400, 3))
SEEDS = 5
METHODS: dict[str, Callable[[Annotations], Floats]] = {
    "majority": lambda a: aggregate.soft_vote(a).probability,
    "Dawid-Skene": lambda a: aggregate.dawid_skene(a).probability,
    "learned crowd": lambda a: learn_crowd(a).truth(a).probability,
}


def small(crowd: Crowd, items: int, votes: int, seed: int) -> tuple[Annotations, Floats]:
    """So many items whose truth is known, with at most so many votes on each, and their truth."""
    assert crowd.truth is not None
    rng = np.random.default_rng([items, votes, seed])
    known = np.flatnonzero(~np.isnan(crowd.truth).any(axis=1))
    some = np.sort(rng.permutation(known)[:items])
    return cut(crowd.annotations, votes, rng).of_items(some), crowd.truth[some]


def rows(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """How often each method is right on a crowd that is cut in each way; of a tie, in parts."""
    crowd = published(name, 400)
    for items, votes in SIZES:
        annotations, truth = small(crowd, items, votes, seed)
        for method, learn in METHODS.items():
            p = learn(annotations)
            best = np.isclose(p, p.max(axis=1, keepdims=True), rtol=0, atol=1e-9)
            right = float(np.mean(np.sum(truth * best / best.sum(axis=1, keepdims=True), axis=1)))
            about = {"crowd": name, "items": items, "votes": votes, "seed": seed}
            yield about | {"method": method, "right": round(right, 6), "version": __version__}


def table(kept: list[dict[str, Any]]) -> Table:
    """The share of right labels, mean over crowds and seeds, and how far it is from majority's."""
    cells = []
    for items, votes in SIZES:
        of: dict[str, list[float]] = {method: [] for method in METHODS}
        for row in kept:
            if (row["items"], row["votes"]) == (items, votes):
                of[row["method"]].append(row["right"])
        means = {method: float(np.mean(found)) for method, found in of.items()}
        gain = np.subtract(of["learned crowd"], of["majority"])
        error = np.std(gain, ddof=1) / np.sqrt(len(gain))
        best = [bold(f"{x:.3f}", x == max(means.values())) for x in means.values()]
        cells.append([str(items), str(votes), *best, f"{np.mean(gain):+.3f} ± {error:.3f}"])
    return ["items", "votes on each", *METHODS, "learned crowd - majority"], cells


def main() -> None:
    """Read the command line, and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {KEPT.name} and comparison.md")
    given = parser.parse_args()
    kept = [row for name in GOLD for seed in range(SEEDS) for row in rows(name, seed)]
    print(markdown(table(kept)))
    if given.write:
        keep(kept, KEPT)
        place("comparison.md", {"small crowds": markdown(table(kept))})


if __name__ == "__main__":
    main()
