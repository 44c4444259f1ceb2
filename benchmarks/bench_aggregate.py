"""How much faster than crowd-kit are the methods that learn from the crowd? Ratios inside one run.

`--peer` is a Python that has crowd-kit (the first line of scripts/oracles/crowdkit.py says which).
Every case runs in a process of its own, and the cases take turns. crowd-kit starts from a pandas
data frame and ours from `Annotations`; "from_table" is what lies between.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# case: (compared with, at least times as fast)
LIMITS: dict[str, tuple[str, float | None]] = {
    "from_table": ("crowd-kit MajorityVote", None),
    "majority_vote": ("crowd-kit MajorityVote", 5),
    "wawa": ("crowd-kit Wawa", 5),
    "zero_based_skill": ("crowd-kit Wawa", None),
    "dawid_skene, 10 iterations": ("crowd-kit DawidSkene, 10 iterations", 5),
    "one_coin, 10 iterations": ("crowd-kit DawidSkene, 10 iterations", None),
    "mace, 1 x 10": ("crowd-kit MACE, 1 x 10", 8),
    "glad, 25 steps": ("crowd-kit GLAD, 1 iteration of at most 25 steps", 100),
    "glad, to the end": ("crowd-kit GLAD, 1 iteration of at most 25 steps", None),
}


def make_data(path: Path, items: int) -> None:
    """Five annotations for each item by 1,000 annotators, 5 labels."""
    import numpy as np

    rng = np.random.default_rng(0)
    item, annotator = np.repeat(np.arange(items), 5), rng.integers(0, 1000, 5 * items)
    truth, skill = rng.integers(0, 5, items), rng.beta(6, 3, 1000)
    right = rng.random(5 * items) < skill[annotator]
    label = np.where(right, truth[item], rng.integers(0, 5, 5 * items))
    np.savez(path, item=item, annotator=annotator, label=label)


def ours(name: str, data: Any) -> Callable[[], Any]:
    import numpy as np

    from slencodings.aggregate.dawid_skene import dawid_skene
    from slencodings.aggregate.glad import glad
    from slencodings.aggregate.mace import mace
    from slencodings.aggregate.one_coin import one_coin
    from slencodings.aggregate.votes import majority_vote
    from slencodings.aggregate.wawa import wawa, zero_based_skill
    from slencodings.annotations import Annotations, from_table

    rows = {name: data[name] for name in ("item", "annotator", "label")}
    if name == "from_table":
        import polars as pl

        frame = pl.DataFrame(rows)
        return lambda: from_table(frame, item="item", annotator="annotator", label="label")
    N = int(rows["item"].max()) + 1
    u = np.zeros(len(rows["item"]))
    crowd = Annotations(*rows.values(), u, np.arange(N), np.arange(1000), np.arange(5))
    return {
        "majority_vote": lambda: majority_vote(crowd),
        "wawa": lambda: wawa(crowd),
        "zero_based_skill": lambda: zero_based_skill(crowd),
        "dawid_skene, 10 iterations": lambda: dawid_skene(crowd, n_iter=10, tol=0),
        "one_coin, 10 iterations": lambda: one_coin(crowd, n_iter=10, tol=0),
        "mace, 1 x 10": lambda: mace(crowd, n_restarts=1, n_iter=10, tol=0),
        "glad, 25 steps": lambda: glad(crowd, n_iter=25, tol=0),
        "glad, to the end": lambda: glad(crowd),
    }[name]


def theirs(name: str, data: Any) -> Callable[[], Any]:
    import pandas as pd
    from crowdkit import aggregation as ck

    columns = {"task": "item", "worker": "annotator", "label": "label"}
    frame = pd.DataFrame({theirs: data[ours] for theirs, ours in columns.items()})
    never = -1e9
    return {
        "crowd-kit MajorityVote": lambda: ck.MajorityVote().fit(frame),
        "crowd-kit Wawa": lambda: ck.Wawa().fit_predict_proba(frame),
        "crowd-kit DawidSkene, 10 iterations": lambda: ck.DawidSkene(10, tol=never).fit(frame),
        "crowd-kit MACE, 1 x 10": lambda: ck.MACE(n_restarts=1, n_iter=10).fit(frame),
        "crowd-kit GLAD, 1 iteration of at most 25 steps": lambda: ck.GLAD(n_iter=1).fit(frame),
    }[name]


def measure(name: str, path: Path) -> dict[str, float]:
    """Seconds, of all and of this process, and peak megabytes of one run of one case."""
    import warnings

    import numpy as np

    warnings.simplefilter("ignore")
    run = (theirs if name.startswith("crowd-kit") else ours)(name, np.load(path))
    if not name.startswith("crowd-kit"):
        import scipy.sparse
        import scipy.special  # noqa: F401  (crowd-kit has loaded it by now)
    start, spent = time.perf_counter(), time.process_time()
    run()
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - spent,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def take_turns(names: list[str], data: Path, repeats: int, peer: str) -> dict[str, list[Any]]:
    runs: dict[str, list[Any]] = {name: [] for name in names}
    for turn in range(repeats):
        for name in names:
            print(f"\r{turn + 1}/{repeats} {name:45}", end="", file=sys.stderr, flush=True)
            python = peer if name.startswith("crowd-kit") else sys.executable
            out = subprocess.run(
                [python, __file__, "--case", name, "--data", str(data)],
                check=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ).stdout
            runs[name].append(json.loads(out.splitlines()[-1]))
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return runs


def table(runs: dict[str, list[Any]]) -> list[str]:
    lines = [
        "| case | seconds | megabytes | compared with | seconds | times as fast (spread) "
        "| at least |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (peer, least) in LIMITS.items():
        if name not in runs:
            continue
        a, b = ([run["seconds"] for run in runs[x]] for x in (name, peer))
        times = [theirs / ours for ours, theirs in zip(a, b, strict=True)]
        memory = statistics.median(run["megabytes"] for run in runs[name])
        lines.append(
            f"| {name} | {statistics.median(a):.3f} | {memory:.0f} | {peer} | "
            f"{statistics.median(b):.2f} | {statistics.median(times):.1f} "
            f"({min(times):.1f}-{max(times):.1f}) | {least or ''} |"
        )
    return lines


def large(items: int, data: Path) -> list[str]:
    names = ["dawid_skene, 10 iterations", "mace, 1 x 10"]
    runs = take_turns(names, data, 1, "")
    return [
        f"| {items:,} items | seconds | peak memory |",
        "|---|---|---|",
        *(
            f"| {name} | {run['seconds']:.1f} | {run['megabytes'] / 1000:.2f} GB |"
            for name, (run,) in runs.items()
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python that has crowd-kit")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="cases that begin so, and what they are compared with")
    parser.add_argument("--large", type=int, default=0, help="also this many items, ours, once")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        print(json.dumps(measure(asked.case, asked.data)))
        return
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "crowd.npz"
        if asked.peer:
            make_data(data, asked.items)
            chosen = {c: p for c, (p, _) in LIMITS.items() if c.startswith(asked.only or "")}
            names = list(dict.fromkeys(n for case, peer in chosen.items() for n in (peer, case)))
            lines += table(take_turns(names, data, asked.repeats, asked.peer))
        if asked.large:
            make_data(data, asked.large)
            lines += ["", *large(asked.large, data)]
    about = (
        f"{asked.items:,} items with 5 annotations each by 1,000 annotators, 5 labels; "
        f"{asked.repeats} turns, medians; {os.cpu_count()} cores, Python "
        f"{platform.python_version()}."
    )
    print("\n".join([about, "", *lines]))


if __name__ == "__main__":
    main()
