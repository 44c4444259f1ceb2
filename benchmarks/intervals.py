"""Do intervals hold how often annotators are right? Crowds that are made, and crowds with gold.

An interval of 95 % should hold 95 % of the annotators: of those of made crowds how often they are
right, of published ones how often those with 30 known answers or more were. `--write` keeps the
rows in benchmarks/rows and the table in docs/trust.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.small_crowds import GOLD
from benchmarks.votes.crowds import published
from experiments.tables import Table, keep, markdown, place
from slencodings import Annotations, __version__
from slencodings.aggregate.em import above_chance
from slencodings.opinion import Floats
from slencodings.trust import learn_crowd

KEPT = Path(__file__).parent / "rows" / "intervals.json"
# Labels and votes on each item.
MADE = [(K, n) for K in (2, 3, 10, 20) for n in (2, 3, 5, 10)]
SEEDS, FEWEST = 4, 30


def made(K: int, per_item: int, seed: int) -> tuple[Annotations, Floats]:
    """Twenty people who err on their own, on 300 items; and how often each is right."""
    rng = np.random.default_rng([K, per_item, seed])
    N, M = 300, 20
    truth, accuracy = rng.integers(0, K, N), rng.uniform(0.5, 0.95, M)
    item = np.repeat(np.arange(N), per_item)
    who = np.argsort(rng.random((N, M)), axis=1)[:, :per_item].ravel()
    other = (truth[item] + rng.integers(1, K, len(item))) % K
    y = np.where(rng.random(len(item)) < accuracy[who], truth[item], other)
    names = np.arange(N), np.arange(M), np.arange(K)
    return Annotations(item, who, y, np.zeros(len(item)), *names), accuracy


def with_gold(name: str) -> tuple[Annotations, Floats]:
    """A published crowd, and how often each annotator was right; nan if too few are known."""
    crowd = published(name, 10**9)
    a, truth = crowd.annotations, crowd.truth
    assert truth is not None
    known = ~np.isnan(truth).any(axis=1)[a.item]
    item, who = a.item[known], a.annotator[known]
    right = np.einsum("qk,qk->q", truth[item], np.eye(len(a.labels))[a.y[known]])
    n = np.bincount(who, minlength=len(a.annotators))
    enough, total = n >= FEWEST, np.bincount(who, right, len(n))
    return a, np.divide(total, n, out=np.full(len(n), np.nan), where=enough)


def row(about: dict[str, Any], annotations: Annotations, accuracy: Floats) -> dict[str, Any]:
    """How many annotators are in their intervals, above and below them."""
    crowd = learn_crowd(annotations)
    known = ~np.isnan(accuracy)
    skill = above_chance(np.nan_to_num(accuracy), crowd.people.chance)[known]
    low, high = (end[known] for end in crowd.above_chance_interval())
    counts = {"above": int((skill > high).sum()), "below": int((skill < low).sum())}
    width = round(float(np.mean(high - low)), 6)
    return about | {"annotators": len(skill)} | counts | {"width": width, "version": __version__}


def rows() -> Iterator[dict[str, Any]]:
    """All made crowds, then all with gold that have annotators enough."""
    for K, n in MADE:
        for seed in range(SEEDS):
            yield row({"labels": K, "votes": n, "seed": seed}, *made(K, n, seed))
    for name in GOLD:
        annotations, accuracy = with_gold(name)
        if not np.isnan(accuracy).all():
            yield row({"crowd": name}, annotations, accuracy)


def table(kept: list[dict[str, Any]]) -> Table:
    """A row for each number of labels of made crowds, and for each crowd with gold."""
    cells = list[list[str]]()
    names = [f"made, {K} labels" for K in dict.fromkeys(K for K, _ in MADE)]
    for name in [*names, *(r["crowd"] for r in kept if "crowd" in r)]:
        some = [r for r in kept if name in (r.get("crowd"), f"made, {r.get('labels')} labels")]
        n = sum(r["annotators"] for r in some)
        above, below = (sum(r[side] for r in some) / n for side in ("above", "below"))
        width = sum(r["annotators"] * r["width"] for r in some) / n
        cells.append(
            [name, f"{n}", *(f"{x:.2f}" for x in (1 - above - below, above, below, width))]
        )
    return ["crowd", "annotators", "in the interval", "above", "below", "its width"], cells


def main() -> None:
    """Read the command line, and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {KEPT.name} and trust.md")
    given = parser.parse_args()
    kept = list(rows())
    print(markdown(table(kept)))
    if given.write:
        keep(kept, KEPT)
        place("trust.md", {"intervals": markdown(table(kept))})


if __name__ == "__main__":
    main()
