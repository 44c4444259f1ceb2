"""Methods of other packages, where they are installed, each with its own defaults.

docs/votebench.md says how to install them.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.votes.methods import Method
from slencodings.annotations import Annotations
from slencodings.opinion import Codes, Floats

# Not GoldMajorityVote, which is given the truth.
CROWD_KIT = (
    *("MajorityVote", "Wawa", "ZeroBasedSkill", "OneCoinDawidSkene", "DawidSkene"),
    *("GLAD", "MACE", "MMSR", "KOS"),
)
PEERANNOT = (
    *("MajorityVoting", "NaiveSoft", "TwoThird", "Wawa", "IWMV", "DawidSkene", "WDS"),
    *("DawidSkeneClust", "GLAD", "PlantNet"),
)


def peers() -> dict[str, Method]:
    """All of them that are installed, by package and class."""
    found: dict[str, Method] = {}
    for package, names, run in (
        ("crowd-kit", CROWD_KIT, _crowd_kit),
        ("peerannot", PEERANNOT, _peerannot),
        ("cleanlab", ("CROWDLAB",), _crowdlab),
    ):
        try:
            tag = f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
        for name in names:
            suits = _two_labels if name == "KOS" else _any
            found[f"{package} {name}"] = Method(_quiet(run, name), tag, suits)
    return found


def _any(a: Annotations) -> bool:
    return len(a.annotators) > 1


def _two_labels(a: Annotations) -> bool:
    return _any(a) and len(a.labels) == 2


def _quiet(run: Callable[[str, Annotations], Floats], name: str) -> Callable[[Annotations], Floats]:
    @contextmanager
    def silence() -> Iterator[None]:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            with redirect_stdout(io.StringIO()):
                yield

    def quietly(a: Annotations) -> Floats:
        with silence():
            np.random.seed(0)  # noqa: NPY002 - peerannot breaks ties by it
            return run(name, a)

    return quietly


def _crowd_kit(name: str, a: Annotations) -> Floats:
    import crowdkit.aggregation
    import pandas as pd

    # Numbered as they first appear: MACE mixes labels and workers up otherwise.
    label, labels = _as_they_come(a.y)
    worker, _ = _as_they_come(a.annotator)
    table = pd.DataFrame({"task": a.item, "worker": worker, "label": label})
    model: Any = getattr(crowdkit.aggregation, name)()
    if name in ("Wawa", "ZeroBasedSkill"):
        # What their own prediction is, without its question to a newer scikit-learn.
        skills = model.fit(table).skills_
        said = crowdkit.aggregation.MajorityVote().fit_predict_proba(table, skills)
    elif hasattr(model, "fit_predict_proba"):
        said = model.fit_predict_proba(table)
    else:
        said = None
    if said is not None:
        p = np.zeros((len(a.items), len(a.labels)))
        p[np.ix_(said.index.to_numpy(), labels[said.columns.to_numpy()])] = said.fillna(0)
        return _normalised(p)
    said = model.fit_predict(table)
    answers = np.full(len(a.items), -1)
    answers[said.index.to_numpy()] = labels[said.to_numpy()]
    return _one_hot(answers, len(a.labels))


def _as_they_come(codes: Codes) -> tuple[Codes, Codes]:
    """The codes renumbered by first appearance, and the old code of each new one."""
    old, first, place = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[place], old[order]


def _peerannot(name: str, a: Annotations) -> Floats:
    from peerannot import models

    people, who = np.unique(a.annotator, return_inverse=True)
    answers: dict[int, dict[int, int]] = {i: {} for i in range(len(a.items))}
    for i, m, k in zip(a.item.tolist(), who.tolist(), a.y.tolist(), strict=True):
        answers[i][m] = k
    K = len(a.labels)
    with TemporaryDirectory() as folder:  # GLAD writes what it learned
        how = {"n_classes": K, "n_workers": len(people), "dataset": Path(folder)}
        if name == "DawidSkene":
            del how["dataset"]
        model: Any = getattr(models, name)(answers, **how)
        if hasattr(model, "run"):
            model.run()
        said = np.asarray(model.get_probas())
    return _normalised(said) if said.ndim == 2 else _one_hot(said.astype(int), K)


def _crowdlab(name: str, a: Annotations) -> Floats:
    """CROWDLAB without a classifier: its predictions are how common the labels are."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    N, K = len(a.items), len(a.labels)
    table = np.full((N, len(a.annotators)), np.nan)
    table[a.item, a.annotator] = a.y
    table = table[:, ~np.isnan(table).all(axis=0)]
    share = a.sums().sum(axis=0) + 1
    found = get_label_quality_multiannotator(
        table,
        np.tile(share / share.sum(), (N, 1)),
        return_detailed_quality=False,
        return_annotator_stats=False,
        verbose=False,
    )["label_quality"]
    label = found["consensus_label"].to_numpy()
    quality = np.clip(found["consensus_quality_score"].to_numpy(), 0, 1)
    p = np.repeat((1 - quality)[:, None] / max(K - 1, 1), K, axis=1)
    p[np.arange(N), label] = quality
    return _normalised(p)


def _normalised(p: Floats) -> Floats:
    """With sum 1; even where nothing was said."""
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1), 1 / p.shape[1])


def _one_hot(label: Codes, K: int) -> Floats:
    """Certain of a label; even where it is -1."""
    return np.where((label >= 0)[:, None], np.eye(K)[label], 1 / K)
