"""What does a network learn from each encoding? Data that people annotated (Table 2, and more)."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.data import Data, Plan, load, part, read_plan
from experiments.rows import Job, Row
from slencodings import Annotations, Opinion, aggregate, confidence, encode, evaluate, smooth
from slencodings.torch import SLEClassifier
from slencodings.trust import learn_crowd

Floats = NDArray[np.float64]

# Those that need gold labels, those of the paper that need none, and ours.
GOLD = ("Gold", "SLE (gold)", "MTLSL")
CROWD = ("MV", "CE", "KL", "CrowdTruth", "SLE (crowd)")
MORE = ("Dawid-Skene", "Votes", "SLE (estimated)", "SLE (learned trust)", "CE (learned trust)")
# One source of uncertainty at a time, where there are all; and none, but votes that are learned to
# be worth as much as they are, to tell apart what smoother targets do.
SOURCES = ("CE (one worth)", "SLE (labels alone)", "SLE (calibrated)", "SLE (reliability)")
METHODS = GOLD + CROWD + MORE + SOURCES
WITHOUT_GOLD = ("convabuse", "uds")

_SMOOTHING = 0.01
# The objectives that teach how sure to be; from others only probabilities are read.
_OPINIONS = ("reverse_kl", "votes")
_QUICK_EPOCHS = 2
_loaded = lru_cache(maxsize=1)(load)


def methods(dataset: str) -> tuple[str, ...]:
    """The methods that can be tried on a data set."""
    gold = () if dataset in WITHOUT_GOLD else GOLD
    return gold + CROWD + MORE + (SOURCES if dataset == "uds" else ())


def jobs(
    plans: Mapping[str, Plan],
    encoders: Mapping[str, str],
    wanted: Sequence[str] | None,
    seeds: int,
    quick: bool = False,
) -> list[Job]:
    """One method on one data set with one seed each, by the data set's plan and encoder."""
    return [
        {
            "experiment": "real, quick" if quick else "real",
            "setting": dataset,
            "method": method,
            "seed": seed,
            "encoder": encoders[dataset],
            "plan": _shorter(plan, quick).in_words(kl=objective_of(method) == "reverse_kl"),
        }
        for dataset, plan in plans.items()
        for seed in range(seeds)
        for method in methods(dataset)
        if wanted is None or method in wanted
    ]


def _shorter(plan: Plan, quick: bool) -> Plan:
    return plan._replace(max_epochs=_QUICK_EPOCHS) if quick else plan


def rows(
    experiment: str, setting: str, method: str, seed: int, encoder: str, plan: str
) -> Iterator[Row]:
    """Train with one method and score what it predicts on items it has not seen.

    One row per metric of `slencodings.evaluate` that is defined; with `_mode` at its end, of the
    belief alone (`Opinion.mode`), for methods that predict opinions. Several folds are predicted
    one by one and scored together.
    """
    if method not in methods(setting):
        raise ValueError(
            f"`method` must be one of {', '.join(methods(setting))} for {setting}; {method!r} came."
        )
    # Two processes with a thread each do more than one with two.
    torch.set_num_threads(1)
    trained = read_plan(plan)
    quick = experiment == "real, quick"
    data = _loaded(setting, quick=quick, layers=trained.layers, augment=trained.augment)
    if data.encoder != encoder:
        raise ValueError(
            f"rows of the encoder {encoder!r} are asked for, and {data.encoder!r} is what reads "
            f"{setting} here. Name it: --encoder {data.encoder}"
        )
    about = {
        "experiment": experiment,
        "setting": setting,
        "annotations": "all",
        "method": method,
        "seed": seed,
        "encoder": encoder,
        "plan": plan,
        "machine": f"{os.cpu_count()} processors, {platform.machine()}, {platform.system()}",
        "made_with": f"Python {platform.python_version()}, torch {torch.__version__}",
    }
    for metric, value in scores(data, method, seed, trained).items():
        yield about | {"metric": metric, "value": value}


def scores(data: Data, method: str, seed: int, plan: Plan) -> dict[str, float]:
    """All folds trained, and their test items scored together."""
    said = [learn(data, method, train, test, seed, plan) for train, test in data.splits]
    tested = np.concatenate([test for _, test in data.splits])
    order = np.argsort(tested)
    b, u, a = (np.concatenate(parts)[order] for parts in zip(*said, strict=True))
    predicted, items = Opinion(b, u, a), tested[order]
    crowd = part(data.tested, items)
    gold = None if data.gold is None else data.gold[items]
    opinions = objective_of(method) in _OPINIONS
    found = evaluate(predicted if opinions else predicted.probability, crowd, gold)
    if opinions:
        alone = evaluate(predicted.mode, crowd, gold)
        counts = ("items", "items_crowd", "items_gold", "votes")
        found |= {f"{key}_mode": value for key, value in alone.items() if key not in counts}
    return {key: float(value) for key, value in found.items() if value is not None}


def learn(
    data: Data, method: str, train: NDArray[np.intp], test: NDArray[np.intp], seed: int, plan: Plan
) -> Opinion:
    """Learn from the items of `train` alone, and predict those of `test`."""
    crowd = part(data.annotations, train)
    gold = None if data.gold is None else data.gold[train]
    y = target(method, crowd, gold=gold, rng=np.random.default_rng(seed))
    known, y = filled(y, crowd, gold)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        encoder = data.network()
    model = SLEClassifier(
        encoder,
        objective=objective_of(method),
        labels=list(range(len(crowd.labels))),
        smoothing=_SMOOTHING,
        normalize=plan.normalize,
        max_epochs=plan.max_epochs,
        batch_size=plan.batch_size,
        learning_rate=plan.learning_rate,
        random_state=seed,
    )
    told = None if gold is None or method != "MTLSL" else gold[known]
    return model.fit(data.X[train[known]], y, gold=told).predict_opinion(data.X[test])


def objective_of(method: str) -> str:
    """The loss that a method is trained with."""
    match method:
        case "KL":
            return "soft_kl"
        case "MTLSL":
            return "mtlsl"
        case "Votes":
            return "votes"
        case _:
            return "reverse_kl" if method.startswith("SLE") else "cross_entropy"


def target(
    method: str,
    crowd: Annotations,
    *,
    gold: NDArray[np.intp] | None,
    rng: np.random.Generator,
) -> Floats | Opinion:
    """What a method learns from for each item of a crowd: probabilities, votes or opinions."""
    match method:
        case "Gold" | "SLE (gold)":
            assert gold is not None
            y = np.eye(len(crowd.labels))[gold]
            return y if method == "Gold" else smooth(encode(y), _SMOOTHING)
        case "MV":
            return aggregate.majority_vote(crowd, ties="random", rng=rng).probability
        case "CE" | "KL" | "MTLSL":
            return aggregate.soft_vote(crowd).probability
        case "CrowdTruth":
            return aggregate.crowdtruth(crowd).probability
        case "Dawid-Skene":
            return aggregate.dawid_skene(crowd).probability
        case "Votes":
            return crowd.sums()
        case "SLE (learned trust)":
            return learn_crowd(crowd).votes(crowd)
        case "CE (one worth)":
            parts = {"by_annotator": False, "by_confidence": False}
            return learn_crowd(crowd, **parts).votes(crowd).probability
        case "CE (learned trust)":
            return learn_crowd(crowd).votes(crowd).probability
        case _:
            return encoding(method, crowd)


def encoding(method: str, crowd: Annotations) -> Opinion:
    """The paper's encoding, with what is known of confidence and reliability."""
    alone = replace(crowd, uncertainty=np.zeros(len(crowd.item)))
    trust: Any = None
    if method in ("SLE (labels alone)", "SLE (reliability)"):
        crowd = alone
    if method in ("SLE (calibrated)", "SLE (estimated)") and crowd.stated is not None:
        crowd = replace(crowd, uncertainty=confidence.calibrate(alone)(crowd.stated))
    if method in ("SLE (reliability)", "SLE (estimated)"):
        trust = aggregate.reliability_opinion(alone, chance=True)
    return aggregate.sle(crowd, reliability=trust, smoothing=_SMOOTHING)


def filled(
    y: Floats | Opinion, crowd: Annotations, gold: NDArray[np.intp] | None
) -> tuple[NDArray[np.intp], Any]:
    """Targets with the gold label where nobody was asked, and the items that then have one."""
    silent = np.bincount(crowd.item, minlength=len(crowd.items)) == 0
    label = np.eye(len(crowd.labels))[
        np.zeros(len(silent), dtype=np.intp) if gold is None else gold
    ]
    if isinstance(y, Opinion):
        b, u, a = y
        said = smooth(encode(label), _SMOOTHING)
        y = Opinion(
            np.where(silent[:, None], said.belief, b), np.where(silent, said.uncertainty, u), a
        )
        known = np.flatnonzero((y.uncertainty < 1) & (~silent | (gold is not None)))
        return known, y.rows(known)
    known = np.flatnonzero(~silent | (gold is not None))
    return known, np.where(silent[:, None], label, y)[known]
