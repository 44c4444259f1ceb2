"""How much faster than crowd-kit, CrowdTruth's package and cleanlab are our methods?

Everything has run on a few rows before the clock starts, and what ours made is compared with what
its peer made. Peers run in environments of their own, without our package.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.growth import VERBS
from benchmarks.turns import (
    PEERS,
    Comparison,
    Group,
    Row,
    Run,
    answer,
    peak_megabytes,
    row,
    stem,
    timed,
)

GLAD = "crowd-kit GLAD, 1 iteration of at most 25 steps"
PACKAGE = "CrowdTruth package, its whole run"
CROWDLAB = "cleanlab get_label_quality_multiannotator"
TABLE = ", from the table"
NEVER = -1e9  # a tolerance that no step of crowd-kit's meets
FEW = 100  # rows of the warm-up
Arrays = dict[str, Any]
# From what is there already to what the method takes, from that to its result, and its arrays.
Case = tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Arrays]]


COMPARED = (
    Comparison("majority_vote", "crowd-kit MajorityVote", fast=5, at=500_000),
    Comparison("wawa", "crowd-kit Wawa", fast=8, at=500_000),
    Comparison("zero_based_skill, 10 iterations", "crowd-kit ZeroBasedSkill, 10 iterations"),
    Comparison(
        "dawid_skene, 10 iterations", "crowd-kit DawidSkene, 10 iterations", fast=10, at=500_000
    ),
    Comparison("one_coin, 10 iterations", "crowd-kit OneCoinDawidSkene, 10 iterations"),
    Comparison("mace, 1 x 10", "crowd-kit MACE, 1 x 10", fast=20, at=500_000),
    Comparison("glad, 25 steps", GLAD, fast=150, at=500_000),
    Comparison("glad, to the end", GLAD),
    Comparison("crowdtruth", PACKAGE, fast=500, at=5_000),
    # Not the same computation: what one would take here to know labels and annotators.
    Comparison("dawid_skene, to the end", CROWDLAB),
)


def plan(full: bool) -> list[Group]:
    """The slow peers get smaller crowds."""
    sizes = {
        "crowd-kit": ((500_000, 5, 5, 1000), 3) if full else ((50_000, 5, 5, 1000), 2),
        GLAD: ((500_000, 5, 5, 1000), 1) if full else ((10_000, 5, 5, 1000), 2),
        PACKAGE: ((5_000, 5, 5, 1000), 1) if full else ((250, 5, 5, 100), 2),
        CROWDLAB: ((25_000, 5, 5, 1000), 2) if full else ((2_500, 5, 5, 100), 2),
    }
    cases: dict[str, dict[str, None]] = {}
    for case, peer, *_ in COMPARED:
        cases.setdefault(peer, {}).update({peer: None, case: None, case + TABLE: None})
    groups = []
    for peer, names in cases.items():
        size, turns = sizes.get(peer, sizes["crowd-kit"])
        runs = tuple(Run(name, *size) for name in names)
        groups.append(Group("aggregate", "aggregate", runs, turns, "npz"))
    return groups


def ours(name: str, rows: Arrays) -> Case:
    from slencodings import Annotations, from_table

    N, M, K = (int(rows[column].max()) + 1 for column in ("item", "annotator", "label"))
    R = len(rows["item"])
    columns = {column: column for column in rows}
    if name.endswith(TABLE):
        import pandas as pd

        frame = pd.DataFrame({column: rows.pop(column) for column in columns})
        load = partial(from_table, frame, **columns)
    else:
        codes = (rows[column] for column in ("item", "annotator", "label"))
        names = np.arange(N), np.arange(M), np.arange(K)
        load = partial(Annotations, *codes, np.zeros(R), *names)
    return load, _methods(M, K)[name.removesuffix(TABLE)], partial(_results, name)


def _methods(M: int, K: int) -> dict[str, Callable[[Any], Any]]:
    """Ties, priors and starts are crowd-kit's, so that the results must be too."""
    from slencodings import aggregate, annotators, compare, report, triage, trust

    def crowd_kits_start(size: int) -> Any:
        """MACE's first guess as crowd-kit draws it, both times from the same seed."""
        drawn = 1 + 1.5 * np.random.RandomState(0).random_sample((M, size))
        return drawn / drawn.sum(axis=1, keepdims=True)

    start = crowd_kits_start(2), crowd_kits_start(K)
    ten, first = {"n_iter": 10, "tol": 0}, {"ties": "first"}
    return {
        "majority_vote": partial(aggregate.majority_vote, **first),
        "wawa": partial(aggregate.wawa, **first),
        "zero_based_skill, 10 iterations": partial(aggregate.zero_based_skill, **ten, **first),
        "dawid_skene, 10 iterations": partial(aggregate.dawid_skene, **ten, prior_strength=0),
        "one_coin, 10 iterations": partial(aggregate.one_coin, **ten, prior_strength=0),
        "mace, 1 x 10": partial(aggregate.mace, **ten, initial=start),
        "glad, 25 steps": partial(aggregate.glad, n_iter=25, tol=0),
        "glad, to the end": aggregate.glad,
        "crowdtruth": aggregate.crowdtruth,
        "crowdtruth, 10 iterations": partial(aggregate.crowdtruth, tol=1e-300, max_iter=10),
        "dawid_skene, to the end": aggregate.dawid_skene,
        "learn_crowd": trust.learn_crowd,
        "describe_annotators": annotators.describe_annotators,
        "triage": lambda crowd: triage.triage(crowd, weighed=trust.weigh(crowd), budget=100),
        "summarise": report.summarise,
        "compare": compare,
    }


def _results(name: str, made: Any) -> Arrays:
    """What is compared with what a peer makes."""
    from slencodings import aggregate

    if not isinstance(made, aggregate.Aggregate):
        return {}
    d = made.details
    if name.startswith(("majority_vote", "dawid_skene, to the end")):
        return {"label": made.probability.argmax(axis=1)}
    if name.startswith("glad"):
        return {"ability": d["ability"], "log_ease": np.log(d["ease"])}
    if name.startswith("crowdtruth"):
        qualities = ("item_quality", "annotator_quality", "label_quality", "label_score")
        return {quality: d[quality] for quality in qualities}
    return {"probability": made.probability}


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


def cleanlab_package(name: str, rows: Arrays) -> Case:
    import pandas as pd
    from cleanlab.multiannotator import get_label_quality_multiannotator

    N, K = (int(rows[column].max()) + 1 for column in ("item", "label"))
    # It wants a model's predictions; votes stand in for one, and one vote more for each label.
    guess = np.ones((N, K))
    np.add.at(guess, (rows["item"], rows["label"]), 1)
    guess /= guess.sum(axis=1, keepdims=True)
    frame = pd.DataFrame(rows)

    def load() -> Any:
        return frame.pivot(index="item", columns="annotator", values="label")

    def run(wide: Any) -> Any:
        return get_label_quality_multiannotator(wide.to_numpy(), guess, verbose=False)

    def arrays(made: Any) -> Arrays:
        return {"label": made["label_quality"]["consensus_label"].to_numpy()}

    return load, run, arrays


def measure(runs: list[Run], turns: list[int], folder: Path) -> list[Row]:
    """Seconds of loading and of the method, and the peak of the process, in one run of a case."""
    warnings.simplefilter("ignore")
    (run,), (turn,) = runs, turns
    peer = next((peer for peer in PEERS if run.case.startswith(peer)), "")
    make = {
        "": ours,
        "crowd-kit": crowd_kit,
        "CrowdTruth package": crowdtruth_package,
        "cleanlab": cleanlab_package,
    }[peer]
    data = folder / f"{stem(run)}.npz"
    # Imports and what libraries put off until their first use are paid for here, on all sides.
    load, method, _ = make(run.case, {name: x[:FEW].copy() for name, x in np.load(data).items()})
    method(load())
    load, method, arrays = make(run.case, dict(np.load(data)))
    loading, loaded = timed(load)
    # One thread does what verbs do, and for so long that other work beside it would be measured.
    clock = time.process_time if run.case in VERBS else time.perf_counter
    seconds, made = timed(lambda: method(loaded), clock)
    megabytes = peak_megabytes()
    if peer:
        np.savez(result(run, folder), **arrays(made))
    note = "" if peer else difference(run, arrays(made), folder)
    return [row(run, turn, seconds, loading=loading, megabytes=megabytes, note=note or None)]


def result(run: Run, folder: Path) -> Path:
    return folder / f"{run.case}-{stem(run)}-result.npz"


def difference(run: Run, made: Arrays, folder: Path) -> str:
    """How far what ours made is from what its peer made in the same turn, in words."""
    peers = [peer for case, peer, *_ in COMPARED if case == run.case]
    path = result(run._replace(case=peers[0]), folder) if peers else folder / "none"
    if not path.exists():
        return ""
    theirs, rows = dict(np.load(path)), dict(np.load(folder / f"{stem(run)}.npz"))
    if "label" in made:
        votes = np.zeros((rows["item"].max() + 1, rows["label"].max() + 1))
        np.add.at(votes, (rows["item"], rows["label"]), 1)
        tied = np.sum(votes == votes.max(axis=1, keepdims=True), axis=1) > 1
        wrong = made["label"] != theirs["label"]
        return f"{wrong.sum():,} of {len(wrong):,} labels differ; {tied.sum():,} items tie"
    if "ability" in made:
        value, other = (log_posterior(rows, x["ability"], x["log_ease"]) for x in (made, theirs))
        return f"log-posterior per annotation {value:.4f}, theirs {other:.4f}"
    return f"{np.max([np.max(np.abs(made[what] - theirs[what])) for what in made]):.0e}"


def log_posterior(rows: Arrays, ability: Any, log_ease: Any) -> float:
    """What both GLADs climb, per annotation: log p(labels | a, b) with N(1, 1) for a and b."""
    N, K = len(log_ease), int(rows["label"].max()) + 1
    x = ability[rows["annotator"]] * np.exp(log_ease[rows["item"]])
    right, wrong = -np.logaddexp(0, -x), -np.logaddexp(0, x) - np.log(K - 1)
    joint = np.full((N, K), -np.log(K))
    for k in range(K):
        joint[:, k] += np.bincount(rows["item"], np.where(rows["label"] == k, right, wrong), N)
    prior = np.sum((ability - 1) ** 2) / 2 + np.sum((log_ease - 1) ** 2) / 2
    return float(np.sum(np.logaddexp.reduce(joint, axis=1)) - prior) / len(x)


if __name__ == "__main__":
    answer(measure)
