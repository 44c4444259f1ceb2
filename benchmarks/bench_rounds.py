"""What do rounds cost? CPU seconds by how many items there are and how many rounds are allowed.

Digits with one annotation each, a network of 64 hidden units and 20 epochs without stopping early.
`--write` keeps the rows in benchmarks/rows and the table in docs/training.md.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.tables import Table, markdown, place
from slencodings import __version__
from slencodings.datasets import digits_crowd
from slencodings.torch import SLEClassifier
from slencodings.torch.rounds import learn_in_rounds

KEPT = Path(__file__).parent / "rows" / "rounds.json"
ITEMS, ROUNDS = (440, 880, 1760), (1, 2, 3)
HOW = {"hidden": (64,), "max_epochs": 20, "learning_rate": 0.01, "validation": 0.0}


def row(items: int, rounds: int) -> dict[str, Any]:
    """The seconds of one run, and how many networks it trained."""
    crowd = digits_crowd(rng=0, per_item=1)
    taught, trained = np.arange(items), [0]
    started = time.process_time()
    learn_in_rounds(
        SLEClassifier(random_state=0, **HOW),
        crowd.X[taught],
        crowd.annotations.of_items(taught),
        rounds=rounds,
        progress=lambda done, _: trained.append(done),
    )
    seconds = time.process_time() - started
    about = {"items": items, "rounds": rounds, "networks": trained[-1], "version": __version__}
    return about | {"cpu_seconds": round(seconds, 2)}


def table(kept: list[dict[str, Any]]) -> Table:
    """Seconds and networks by items and rounds."""
    found = {(r["items"], r["rounds"]): f"{r['cpu_seconds']:.1f} ({r['networks']})" for r in kept}
    cells = [[f"{n:,}", *(found[n, rounds] for rounds in ROUNDS)] for n in ITEMS]
    return ["items", *(f"{n} round{'s' * (n > 1)}" for n in ROUNDS)], cells


def main() -> None:
    """Read the command line, and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {KEPT.name} and training.md")
    given = parser.parse_args()
    torch.set_num_threads(1)
    row(100, 1)  # what is loaded once is not counted
    kept = [row(items, rounds) for items in ITEMS for rounds in ROUNDS]
    print(markdown(table(kept)))
    if given.write:
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        place("training.md", {"cost of rounds": markdown(table(kept))})


if __name__ == "__main__":
    main()
