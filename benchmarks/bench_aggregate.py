"""How much faster than crowd-kit and CrowdTruth's package are our methods? Ratios inside one run.

`--peers` is a folder with a virtual environment for each of them; README.md here says how to make
it. Every case runs in a process of its own, after a warm-up on a few rows, and the cases take
turns. What a case made is kept and compared with what its peer made. `--write` keeps the tables
in README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

# How the name of a peer's case begins, and where its environment is.
PEERS = {"crowd-kit": "crowdkit", "CrowdTruth package": "crowdtruth"}
GLAD = "crowd-kit GLAD, 1 iteration of at most 25 steps"
PACKAGE = "CrowdTruth package, its whole run"
# They take minutes, so that one turn has to do.
ONCE = {GLAD, PACKAGE}
Limits = dict[str, tuple[str, float | None]]  # case: (compared with, at least times as fast)
LIMITS: Limits = {
    "majority_vote": ("crowd-kit MajorityVote", 5),
    "wawa": ("crowd-kit Wawa", 5),
    "zero_based_skill, 10 iterations": ("crowd-kit ZeroBasedSkill, 10 iterations", None),
    "dawid_skene, 10 iterations": ("crowd-kit DawidSkene, 10 iterations", 5),
    "one_coin, 10 iterations": ("crowd-kit OneCoinDawidSkene, 10 iterations", None),
    "mace, 1 x 10": ("crowd-kit MACE, 1 x 10", 8),
    "glad, 25 steps": (GLAD, 100),
    "glad, to the end": (GLAD, None),
}
SMALL: Limits = {"crowdtruth": (PACKAGE, 500)}
# GLAD's peer would need half an hour, so that ours is alone there.
LARGE: Limits = {
    case: ("", None) if peer in ONCE else (peer, least) for case, (peer, least) in LIMITS.items()
}
# At most so many megabytes on a million items.
MOST = {"dawid_skene, 10 iterations": 1200}
TABLE = ", from the table"
NEVER = -1e9  # a tolerance that no step of crowd-kit's meets
FEW = 100  # rows of the warm-up
Run = dict[str, Any]
Runs = dict[str, list[Run]]
Arrays = dict[str, Any]
# From what is there already to what the method takes, from that to its result, and its arrays.
Case = tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Arrays]]


def make_data(path: Path, items: int) -> str:
    """Five annotations for each item by five of 1,000 annotators, 5 labels; says how many.

    Annotators and labels are numbered as they first appear: crowd-kit's MACE mixes them up
    otherwise, and nobody else minds.
    """
    import numpy as np

    rng = np.random.default_rng(13)  # with which 1,000 items meet 994 annotators
    people = np.empty((items, 5), dtype=int)
    for k, last in enumerate(range(995, 1000)):  # Floyd's way to draw without replacement
        drawn = rng.integers(0, last + 1, items)
        taken = np.any(people[:, :k] == drawn[:, None], axis=1)
        people[:, k] = np.where(taken, last, drawn)
    item, annotator = np.repeat(np.arange(items), 5), people.ravel()
    truth, skill = rng.integers(0, 5, items), rng.beta(6, 3, 1000)
    right = rng.random(5 * items) < skill[annotator]
    label = np.where(right, truth[item], rng.integers(0, 5, 5 * items))

    def in_order(codes: Any) -> Any:
        _, first, place = np.unique(codes, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[place]

    np.savez(path, item=item, annotator=in_order(annotator), label=in_order(label))
    return f"{items:,} items, {len(np.unique(annotator)):,} annotators"


def ours(name: str, rows: Arrays) -> Case:
    import numpy as np

    from slencodings import Annotations, aggregate, from_table

    N, M, K = (int(rows[column].max()) + 1 for column in ("item", "annotator", "label"))
    columns = {column: column for column in rows}
    if name.endswith(TABLE):
        import pandas as pd

        frame = pd.DataFrame({column: rows.pop(column) for column in columns})
        load = partial(from_table, frame, **columns)
    else:
        codes = (rows[column] for column in ("item", "annotator", "label"))
        names = np.arange(N), np.arange(M), np.arange(K)
        load = partial(Annotations, *codes, np.zeros(5 * N), *names)

    def crowd_kits_start(size: int) -> Any:
        """MACE's first guess as crowd-kit draws it, both times from the same seed."""
        drawn = 1 + 1.5 * np.random.RandomState(0).random_sample((M, size))
        return drawn / drawn.sum(axis=1, keepdims=True)

    start = crowd_kits_start(2), crowd_kits_start(K)
    # Ties, priors and starts are crowd-kit's, so that the results must be too.
    run = {
        "majority_vote": lambda crowd: aggregate.majority_vote(crowd, ties="first"),
        "wawa": lambda crowd: aggregate.wawa(crowd, ties="first"),
        "zero_based_skill, 10 iterations": lambda crowd: aggregate.zero_based_skill(
            crowd, n_iter=10, tol=0, ties="first"
        ),
        "dawid_skene, 10 iterations": lambda crowd: aggregate.dawid_skene(
            crowd, n_iter=10, tol=0, prior_strength=0
        ),
        "one_coin, 10 iterations": lambda crowd: aggregate.one_coin(
            crowd, n_iter=10, tol=0, prior_strength=0
        ),
        "mace, 1 x 10": lambda crowd: aggregate.mace(crowd, n_iter=10, tol=0, initial=start),
        "glad, 25 steps": lambda crowd: aggregate.glad(crowd, n_iter=25, tol=0),
        "glad, to the end": lambda crowd: aggregate.glad(crowd),
        "crowdtruth": lambda crowd: aggregate.crowdtruth(crowd),
    }[name.removesuffix(TABLE)]

    def arrays(made: aggregate.Aggregate) -> Arrays:
        d = made.details
        if name.startswith("majority_vote"):
            return {"label": made.probability.argmax(axis=1)}
        if name.startswith("glad"):
            return {"ability": d["ability"], "log_ease": np.log(d["ease"])}
        if name.startswith("crowdtruth"):
            qualities = ("item_quality", "annotator_quality", "label_quality", "label_score")
            return {quality: d[quality] for quality in qualities}
        return {"probability": made.probability}

    return load, run, arrays


def crowd_kit(name: str, rows: Arrays) -> Case:
    import pandas as pd
    from crowdkit import aggregation as ck

    N, M, K = (range(int(rows[column].max()) + 1) for column in ("item", "annotator", "label"))
    columns = {"task": "item", "worker": "annotator", "label": "label"}
    frame = pd.DataFrame({theirs: rows.pop(ours) for theirs, ours in columns.items()})
    model = {
        "crowd-kit MajorityVote": lambda: ck.MajorityVote(),
        "crowd-kit Wawa": lambda: ck.Wawa(),
        "crowd-kit ZeroBasedSkill, 10 iterations": lambda: ck.ZeroBasedSkill(10),
        "crowd-kit DawidSkene, 10 iterations": lambda: ck.DawidSkene(10, tol=NEVER),
        "crowd-kit OneCoinDawidSkene, 10 iterations": lambda: ck.OneCoinDawidSkene(10, tol=NEVER),
        "crowd-kit MACE, 1 x 10": lambda: ck.MACE(n_restarts=1, n_iter=10),
        GLAD: lambda: ck.GLAD(n_iter=1),
    }[name]()

    def run(table: pd.DataFrame) -> Any:
        # `fit` of these two leaves the probabilities out.
        apart = isinstance(model, ck.Wawa | ck.ZeroBasedSkill)
        (model.fit_predict_proba if apart else model.fit)(table)
        return model

    def arrays(model: Any) -> Arrays:
        if name == "crowd-kit MajorityVote":
            return {"label": model.labels_.reindex(N).to_numpy()}
        if name == GLAD:  # its probabilities are older than its abilities
            betas = model.betas_.reindex(N).to_numpy()
            return {"ability": model.alphas_.reindex(M).to_numpy(), "log_ease": betas}
        return {"probability": model.probas_.reindex(index=N, columns=K).to_numpy()}

    return (lambda: frame), run, arrays


def crowdtruth_package(name: str, rows: Arrays) -> Case:
    import crowdtruth
    import pandas as pd
    from crowdtruth.configuration import DefaultConfig

    N, M, K = (range(int(rows[column].max()) + 1) for column in ("item", "annotator", "label"))
    settings = DefaultConfig()
    settings.inputColumns, settings.outputColumns = ["text"], ["answer"]
    settings.customPlatformColumns = ["judgment", "unit", "worker", "started", "submitted"]
    settings.open_ended_task, settings.annotation_vector = False, [f"k{k}" for k in K]
    frame = pd.DataFrame(
        {
            "judgment": range(len(rows["item"])),
            "unit": [f"u{i:06}" for i in rows["item"]],
            "worker": [f"w{m:06}" for m in rows["annotator"]],
            "started": "2018-11-08 10:00:00",
            "submitted": "2018-11-08 10:01:00",
            "text": "-",
            "answer": [{f"k{k}": 1} for k in rows["label"]],
        }
    )

    def arrays(made: Any) -> Arrays:
        units, workers, labels = made["units"], made["workers"], made["annotations"]
        scores = [units["unit_annotation_score"][f"u{i:06}"] for i in N]
        return {
            "item_quality": units["uqs"].reindex([f"u{i:06}" for i in N]).to_numpy(),
            "annotator_quality": workers["wqs"].reindex([f"w{m:06}" for m in M]).to_numpy(),
            "label_quality": labels["aqs"].reindex([f"k{k}" for k in K]).to_numpy(),
            "label_score": [[score.get(f"k{k}", 0) for k in K] for score in scores],
        }

    def load() -> Any:
        return crowdtruth.load(data_frame=frame, config=settings)

    return load, (lambda loaded: crowdtruth.run(*loaded)), arrays


def measure(name: str, data: Path) -> Run:
    """Seconds of loading and of the method, and the peak of the process, in one run of a case."""
    import warnings

    import numpy as np

    warnings.simplefilter("ignore")
    peer = next((peer for peer in PEERS if name.startswith(peer)), "")
    case = {"": ours, "crowd-kit": crowd_kit, "CrowdTruth package": crowdtruth_package}[peer]
    rows = dict(np.load(data))
    # Imports and what libraries put off until their first use are paid for here, on all sides.
    load, run, _ = case(name, {column: codes[:FEW].copy() for column, codes in rows.items()})
    run(load())
    load, run, arrays = case(name, rows)
    start = time.perf_counter()
    loaded = load()
    between = time.perf_counter()
    made = run(loaded)
    end = time.perf_counter()
    # Not `ru_maxrss`, which begins at the peak of the process that started this one.
    peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
    np.savez(data.with_name(f"{name}.npz"), **arrays(made))
    packages = {"": ["pandas", "numpy", "scipy"], "crowd-kit": ["crowd-kit", "pandas", "numpy"]}
    return {
        "loading": between - start,
        "seconds": end - between,
        "megabytes": int(peak) * 1024 / 1e6,
        "packages": [f"{p} {version(p)}" for p in packages.get(peer, ["crowdtruth", "pandas"])],
    }


def difference(name: str, peer: str, data: Path) -> str:
    """How far what ours made is from what its peer made, in words."""
    import numpy as np

    rows = dict(np.load(data))
    a, b = (dict(np.load(data.with_name(f"{who}.npz"))) for who in (name, peer))
    if "label" in a:
        votes = np.zeros((rows["item"].max() + 1, rows["label"].max() + 1))
        np.add.at(votes, (rows["item"], rows["label"]), 1)
        tied = np.sum(votes == votes.max(axis=1, keepdims=True), axis=1) > 1
        wrong = a["label"] != b["label"]
        return f"{wrong.sum():,} of {len(wrong):,} labels differ; {tied.sum():,} items tie"
    if "ability" in a:
        value, theirs = (log_posterior(rows, x["ability"], x["log_ease"]) for x in (a, b))
        return f"log-posterior per annotation {value:.4f}, theirs {theirs:.4f}"
    return f"{np.max([np.max(np.abs(a[what] - b[what])) for what in a]):.0e}"


def log_posterior(rows: Arrays, ability: Any, log_ease: Any) -> float:
    """What both GLADs climb, per annotation: log p(labels | a, b) with N(1, 1) for a and b."""
    import numpy as np

    N, K = len(log_ease), int(rows["label"].max()) + 1
    x = ability[rows["annotator"]] * np.exp(log_ease[rows["item"]])
    right, wrong = -np.logaddexp(0, -x), -np.logaddexp(0, x) - np.log(K - 1)
    joint = np.full((N, K), -np.log(K))
    for k in range(K):
        joint[:, k] += np.bincount(rows["item"], np.where(rows["label"] == k, right, wrong), N)
    prior = np.sum((ability - 1) ** 2) / 2 + np.sum((log_ease - 1) ** 2) / 2
    return float(np.sum(np.logaddexp.reduce(joint, axis=1)) - prior) / len(x)


def call(python: str, *arguments: str) -> str:
    """The last line of what this file says, run in a process of its own."""
    command = [python, __file__, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def take_turns(names: list[str], data: Path, repeats: int, peers: Path) -> Runs:
    """The runs of each case; none of a peer that ran out of memory."""
    runs: Runs = {name: [] for name in names}
    for turn in range(repeats):
        for name in names:
            if turn and (name in ONCE or not runs[name]):
                continue
            print(f"\r{turn + 1}/{repeats} {name:60}", end="", file=sys.stderr, flush=True)
            peer = next((folder for begin, folder in PEERS.items() if name.startswith(begin)), "")
            python = str(peers / peer / "bin" / "python") if peer else sys.executable
            try:
                runs[name].append(json.loads(call(python, "--case", name, "--data", str(data))))
            except subprocess.CalledProcessError as error:
                if not (peer and (error.returncode == -9 or "MemoryError" in error.stderr)):
                    raise SystemExit(f"\n{name} failed:\n{error.stderr}") from None
                runs[name].clear()
    print("\r" + " " * 70 + "\r", end="", file=sys.stderr)
    return runs


def ratio(theirs: list[float], ours: list[float]) -> str:
    """One ratio per turn, so that both sides met the same machine."""
    if not theirs:
        return ""
    theirs = theirs * len(ours) if len(theirs) == 1 else theirs
    times = [a / b for a, b in zip(theirs, ours, strict=True)]
    middle, low, high = (f"{x:,.1f}" for x in (statistics.median(times), min(times), max(times)))
    return middle if len(times) == 1 else f"{middle} ({low}-{high})"


def tables(
    limits: Limits, items: int, repeats: int, data: Path, peers: Path
) -> tuple[list[str], Runs]:
    """Measure all cases on so many items: their speed, then their results and memory."""
    size = call(sys.executable, "--case", "make_data", "--data", str(data), "--items", str(items))
    pairs = [(peer, case, case + TABLE) for case, (peer, _) in limits.items()]
    names = dict.fromkeys(name for names in pairs for name in names if name)
    runs = take_turns(list(names), data, repeats, peers)
    for every in runs.values():
        for run in every:
            run["both"] = run["loading"] + run["seconds"]

    def median(name: str, what: str) -> str:
        if name and not runs[name]:
            return "out of memory"
        digits = 0 if what == "megabytes" else 3
        found = [run[what] for run in runs.get(name, [])]
        return f"{statistics.median(found):,.{digits}f}" if found else ""

    reading = [run["loading"] for _, _, table in pairs for run in runs[table]]
    speed = [
        f"| {size} | seconds | from the table | compared with | seconds | times as fast "
        "| at least | from the table |",
        "|---|---|---|---|---|---|---|---|",
        f"| from_table alone | | {statistics.median(reading):.3f} | | | | | |",
    ]
    made = [
        f"| {size} | largest difference | megabytes | at most | from the table | theirs |",
        "|---|---|---|---|---|---|",
    ]
    for peer, case, table in pairs:
        them = runs.get(peer, [])
        plain = ratio([run["seconds"] for run in them], [r["seconds"] for r in runs[case]])
        whole = ratio([run["both"] for run in them], [run["both"] for run in runs[table]])
        speed.append(
            f"| {case} | {median(case, 'seconds')} | {median(table, 'both')} | {peer} | "
            f"{median(peer, 'seconds')} | {plain} | {limits[case][1] or ''} | {whole} |"
        )
        apart = ""
        if them:
            apart = call(sys.executable, "--case", case, "--with", peer, "--data", str(data))
        most = MOST.get(case, "") if items == 1_000_000 else ""
        alone, both, theirs = (median(name, "megabytes") for name in (case, table, peer))
        made.append(f"| {case} | {apart} | {alone} | {most} | {both} | {theirs} |")
    return [*speed, "", *made, ""], runs


def growth(few: Runs, many: Runs, annotations: int) -> list[str]:
    """How many bytes each further annotation takes."""

    def bytes_more(name: str) -> str:
        peaks = [[run["megabytes"] for run in runs.get(name, [])] for runs in (few, many)]
        if not all(peaks):
            return ""
        low, high = map(statistics.median, peaks)
        return f"{(high - low) * 1e6 / annotations:,.0f}"

    return [
        "| bytes per further annotation | ours | from the table | theirs |",
        "|---|---|---|---|",
        *(
            f"| {case} | {bytes_more(case)} | {bytes_more(case + TABLE)} | {bytes_more(peer)} |"
            for case, (peer, _) in LARGE.items()
            if few.get(case) and many.get(case)
        ),
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, help="folder with crowdkit/ and crowdtruth/")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--small", type=int, default=1_000, help="items for crowdtruth; 0: none")
    parser.add_argument("--large", type=int, default=0, help="also this many items, once")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="cases that begin so")
    parser.add_argument("--write", action="store_true", help="keep the tables in the README here")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--with", dest="peer", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case == "make_data":
        print(make_data(asked.data, asked.items))
    elif asked.peer:
        print(difference(asked.case, asked.peer, asked.data))
    elif asked.case:
        print(json.dumps(measure(asked.case, asked.data)))
    else:
        compare(asked)


def compare(asked: argparse.Namespace) -> None:
    lines: list[str] = []
    measured: list[Runs] = []
    with tempfile.TemporaryDirectory() as folder:
        for limits, items, repeats in (
            (LIMITS, asked.items, asked.repeats),
            (SMALL, asked.small, asked.repeats),
            (LARGE, asked.large, 1),
        ):
            chosen = {
                case: (peer if asked.peers else "", least)
                for case, (peer, least) in limits.items()
                if case.startswith(asked.only)
            }
            measured.append({})
            if chosen and items:
                data = Path(folder) / "crowd.npz"
                made, measured[-1] = tables(chosen, items, repeats, data, asked.peers)
                print("\n".join(made), file=sys.stderr, flush=True)  # in case a later one fails
                lines += made
    few, _, many = measured
    if few and many:
        lines += growth(few, many, 5 * (asked.large - asked.items))
    every = [run for runs in measured for of_case in runs.values() for run in of_case]
    packages = dict.fromkeys(", ".join(run["packages"]) for run in every)
    about = (
        "5 annotations of each item by 5 of 1,000 annotators, 5 labels; "
        f"turns: {asked.repeats}, medians and spread; {os.cpu_count()} cores, Python "
        f"{platform.python_version()}; {'; '.join(packages)}."
    )
    text = "\n".join([about, "", *lines])
    print(text)
    if asked.write:
        page = Path(__file__).with_name("README.md")
        head, _, rest = page.read_text().partition("<!-- aggregate -->\n")
        _, _, tail = rest.partition("<!-- end of aggregate -->\n")
        page.write_text(f"{head}<!-- aggregate -->\n{text}<!-- end of aggregate -->\n{tail}")


if __name__ == "__main__":
    main()
