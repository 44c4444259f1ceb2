"""Do models help to predict people? `python -m benchmarks.panels` writes the table of panels.md.

`python -m benchmarks.panels --shell` asks `sle panel` about the same sets, whole, and keeps what it
says in `rows/panels.json`; `--kept` shows that.
"""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from slencodings.datasets import alttest
from slencodings.panel import Panel
from slencodings.panel.held_out import HeldOutPeople, compare_losses, hold_out, mix
from slencodings.trust import learn_crowd

SETS = ("cebab_stars", "lesion", "wax", "10k_prompts", "mtbench")
ROWS = Path(__file__).parent / "rows" / "panels.json"
HEADS = ("set", "people alone", "every vote scored", "people's votes scored", "averaged", "gain")


def _everybody_scored(held: HeldOutPeople) -> float:
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


class Asked(NamedTuple):
    """What `sle panel` said of a whole set: log-loss of people's held-out votes, and CPU seconds.

    `trial` is with models in the trial that the method comes from, on other folds.
    """

    set: str
    annotations: int
    models: int
    alone: float
    together: float
    gain_low: float
    gain_high: float
    share: float
    trial: float
    seconds: float


# There, people alone have 1.111, .789, 1.820, 1.306 and .810.
TRIAL = {
    "cebab_stars": 1.023,
    "lesion": 0.777,
    "wax": 1.755,
    "10k_prompts": 1.244,
    "mtbench": 0.806,
}


def asked(name: str, written: dict, seconds: float) -> Asked:
    """A row of what `sle panel -o rows.json` wrote."""
    about = written["about"]
    alone, together = (row for row in written["rows"] if row["part"] == "panel")
    return Asked(
        name,
        about["annotations"],
        about["models"],
        alone["votes"],
        together["votes"],
        together["gain_low"],
        together["gain_high"],
        about["share"],
        TRIAL[name],
        seconds,
    )


def shell(names: list[str]) -> None:
    """Ask the command line about each set, and keep what it says."""
    for name in names or SETS:
        with TemporaryDirectory() as folder:
            path, out = Path(folder) / f"{name}.csv", Path(folder) / "rows.json"
            write_set(name, path)
            command = ["panel", str(path), "--people", "kind=person", "-q", "-o", str(out)]
            start = _seconds()
            subprocess.run([sys.executable, "-m", "slencodings.cli", *command], check=True)
            found = asked(name, json.loads(out.read_text()), round(_seconds() - start, 1))
        keep({found.set: found})
        print(asked_table([found]), flush=True)


def _seconds() -> float:
    """Of processors, by what was started and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kept() -> dict[str, Asked]:
    """What was kept, by set."""
    rows = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else []
    return {row["set"]: Asked(**row) for row in rows}


def keep(new: dict[str, Asked]) -> None:
    """Put rows beside those of other sets."""
    rows = [row._asdict() for row in (kept() | new).values()]
    ROWS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def asked_table(rows: Iterable[Asked]) -> str:
    """Rows as a table for the documents."""
    heads = ("set", "annotations", "people alone", "with models", "gain", "share of models",
             "in the trial", "CPU s")  # fmt: skip
    cells = [
        (
            row.set,
            f"{row.annotations:,}",
            f"{row.alone:.3f}",
            f"{row.together:.3f}",
            f"{row.alone - row.together:.3f} ({row.gain_low:.3f} to {row.gain_high:.3f})",
            f"{row.share:.2f}",
            f"{row.trial:.3f}",
            f"{row.seconds:.0f}",
        )
        for row in rows
    ]
    first, *rest = (f"| {' | '.join(line)} |" for line in (heads, *cells))
    return "\n".join([first, f"|{'---|' * len(heads)}", *rest])


def main(names: list[str], seed: int = 0) -> None:
    """Print the table, a row at a time."""
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    for name in names or SETS:
        print(f"| {' | '.join(row(name, seed))} |", flush=True)


if __name__ == "__main__":
    if "--kept" in sys.argv:
        print(asked_table(kept().values()))
    elif "--shell" in sys.argv:
        shell([name for name in sys.argv[1:] if name != "--shell"])
    else:
        main(sys.argv[1:])
