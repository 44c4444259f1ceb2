"""Do models help to predict people? `python -m benchmarks.panels` writes the table of panels.md."""

from __future__ import annotations

import sys

import numpy as np

from slencodings.datasets import alttest
from slencodings.panel.held_out import HeldOut, compare_losses, hold_out, mix
from slencodings.trust import learn_crowd

SETS = ("cebab_stars", "lesion", "wax", "10k_prompts", "mtbench")
HEADS = ("set", "people alone", "every vote scored", "people's votes scored", "averaged", "gain")


def _everybody_scored(held: HeldOut) -> float:
    """The mean loss of people's votes if models are predicted as well."""
    a = held.annotations
    fold, p = held.fold[a.item], np.zeros((len(a.item), len(a.labels)))
    for f in range(held.n_folds):
        crowd = learn_crowd(a.rows(fold != f), rng=held.seed)
        p[fold == f] = crowd.predict(a.rows(fold == f))
    return float(np.mean(held.losses(p[held.votes])))


def row(name: str, seed: int = 0, bootstrap: int = 1000) -> tuple[str, ...]:
    """One set: log-loss of people's held-out votes, and what is gained by the averaged panel."""
    crowd = alttest(name)
    held = hold_out(crowd.annotations, crowd.people, seed=seed)
    votes = held.annotations.rows(held.votes)
    alone, together = (
        held.chances(held.learn(judges, lambda: None), judges) for judges in ((), held.judges)
    )
    mixed = mix(votes, held.fold[votes.item], alone, together)
    own, other = held.losses(mixed.chances), held.losses(alone)
    score = compare_losses(votes.item, own, other, bootstrap=bootstrap, seed=seed)
    losses = (np.mean(other), _everybody_scored(held), np.mean(held.losses(together)), score.votes)
    gain = f"{score.gain:.3f} ({score.gain_low:.3f} to {score.gain_high:.3f})"
    return (name, *(f"{loss:.3f}" for loss in losses), gain)


def main(names: list[str], seed: int = 0) -> None:
    """Print the table, a row at a time."""
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    for name in names or SETS:
        print(f"| {' | '.join(row(name, seed))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
