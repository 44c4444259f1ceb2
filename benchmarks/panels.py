"""Do models help to predict people? `python -m benchmarks.panels` writes the table of panels.md.

`python -m benchmarks.panels --shell` asks `sle panel` about the same sets, and says whether what it
writes is what Python has.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from slencodings import from_table
from slencodings.datasets import alttest
from slencodings.panel import Panel, describe_panel
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


def write_set(name: str, path: Path, items: int | None = None) -> list[str]:
    """A set as a table with a column that says who is a person, and its models."""
    crowd = alttest(name)
    a = crowd.annotations
    with path.open("w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow(["item", "annotator", "label", "kind"])
        for i, m, k in zip(a.item, a.annotator, a.y, strict=True):
            if items is None or i < items:
                kind = "person" if crowd.people[m] else "model"
                rows.writerow([a.items[i], a.annotators[m], a.labels[k], kind])
    return [str(x) for x in a.annotators[~crowd.people]]


def read_set(path: Path) -> dict[str, list[str]]:
    """The columns of such a table."""
    with path.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: [row[name] for row in rows] for name in rows[0]}


def same(found: Panel, written: dict) -> bool:
    """Whether what `sle panel -o rows.json` wrote is what Python has, to nine digits."""
    rows = [dict(row) for row in found.to_rows()]
    told = written["rows"]
    return len(rows) == len(told) and all(
        _equal(row.get(key), other.get(key))
        for row, other in zip(rows, told, strict=True)
        for key in {*row, *other}
    )


def _equal(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return bool(np.isclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))
    return one == other or str(one) == str(other)


def shell(names: list[str]) -> None:
    """Ask the command line about each set, and hold what it writes against Python."""
    for name in names or SETS:
        with TemporaryDirectory() as folder:
            path, out = Path(folder) / f"{name}.csv", Path(folder) / "rows.json"
            models = write_set(name, path)
            asked = ["panel", str(path), "--people", "kind=person", "-q", "-o", str(out)]
            subprocess.run([sys.executable, "-m", "slencodings.cli", *asked], check=True)
            columns = read_set(path)
            del columns["kind"]
            crowd = from_table(columns, item="item", annotator="annotator", label="label")
            found = describe_panel(crowd, models=models)
            verdict = "the same" if same(found, json.loads(out.read_text())) else "NOT the same"
            print(f"{name}: {verdict}; log-loss {found.alone.votes:.3f} by people alone, models "
                  f"have a share of {found.share:.2f}", flush=True)  # fmt: skip


def main(names: list[str], seed: int = 0) -> None:
    """Print the table, a row at a time."""
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    for name in names or SETS:
        print(f"| {' | '.join(row(name, seed))} |", flush=True)


if __name__ == "__main__":
    if "--shell" in sys.argv:
        shell([name for name in sys.argv[1:] if name != "--shell"])
    else:
        main(sys.argv[1:])
