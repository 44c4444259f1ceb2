"""Does a network help to say what is true? Crowds cut to few annotations an item.

Every method learns from the same annotations of the same items with the same network and plan, and
says what is true of them (*right targets*) and of items that it has not seen. The network is small,
on features as they are; or, where the name says `trained`, that of Table 2, whose top layer learns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from experiments import data as sets
from experiments import texts
from experiments.networks import resnet32a
from experiments.rivals import Rival, crowd_layer, raykar
from experiments.rows import Job, Row
from slencodings import Annotations, aggregate, datasets
from slencodings.torch import SLEClassifier

METHODS = (
    "CE on votes",
    "SLE on votes",
    "CE on shrunk Dawid-Skene",
    "Raykar et al. 2010",
    "CrowdLayer",
    "CE in rounds",
    "SLE in rounds",
)
CUTS = {
    "digits": (1, 2, 3, 5),
    "confused": (1, 2, 3),
    "rte": (1, 2, 3),
    "mre": (1, 2, 3),
    "convabuse": (1, 2, 3),
    "uds": (1, 2),
    "cifar10s": (1,),
    "cifar10s_resnet": (1, 2),
    "mre_trained": (1, 2, 3),
    "convabuse_trained": (1, 2, 3),
}
# What the same networks make of all annotations of the same items, where those are more than any
# cut leaves: what there is to gain.
ALL = "all"
UNCUT = tuple(name for name in CUTS if name not in ("digits", "confused", "uds"))
TRAINED = "_trained"
_ROUNDS = 4
_EM_STEPS = 10
_HIDDEN = 64


class Plan(NamedTuple):
    """How all networks of a crowd are trained."""

    max_epochs: int
    learning_rate: float
    batch_size: int = 64


# The digits' is that of benchmarks/bench_learning.py, also for the 64 features of images; texts and
# pixels have smaller steps, as they have more features. None was tuned here.
PLANS = dict.fromkeys(["digits", "confused", "cifar10s_resnet"], Plan(20, 0.01))
PLANS |= dict.fromkeys([*sets.TEXTS, "cifar10s"], Plan(20, 3e-3))
PLANS |= {
    name: Plan(table2.max_epochs, table2.learning_rate, table2.batch_size)
    for name in CUTS
    if name.endswith(TRAINED)
    for table2 in [sets.PLANS[name.removesuffix(TRAINED)]]
}


class Problem(NamedTuple):
    """Items to learn from and to be asked about; gold is -1 where it is not known.

    The network is one hidden layer, or what `network` makes, to so many features.
    """

    X: NDArray[np.float32]
    annotations: Annotations
    gold: NDArray[np.intp]
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    network: Callable[[], nn.Module] | None = None
    size: int = _HIDDEN


def jobs(
    wanted: list[str] | None = None,
    methods: list[str] | None = None,
    seeds: int = 3,
    annotations: list[int] | None = None,
) -> list[Job]:
    """One method on one crowd cut to so many annotations an item, or with all, with one seed."""
    return [
        {
            "experiment": "rounds",
            "setting": name,
            "annotations": str(n),
            "method": method,
            "seed": seed,
        }
        for name in wanted or CUTS
        for n in [*CUTS[name], *([ALL] if name in UNCUT else [])]
        if annotations is None or n in annotations
        for seed in range(seeds)
        for method in methods or METHODS
        if n != ALL or method.endswith("on votes")
    ]


def rows(experiment: str, setting: str, annotations: str, method: str, seed: int) -> Iterator[Row]:
    """How right targets and network are, and how well it predicts votes on new items."""
    torch.set_num_threads(1)
    about = {
        "experiment": experiment,
        "setting": setting,
        "annotations": annotations,
        "method": method,
        "seed": seed,
    }
    made = {
        "digits": digits,
        "confused": confused,
        "cifar10s": images,
        "cifar10s_resnet": seen_images,
    }
    problem = made[setting](seed) if setting in made else sentences(setting, seed)
    n = None if annotations == ALL else int(annotations)
    for metric, value in scores(problem, n, method, seed, PLANS[setting]).items():
        yield about | {"metric": metric, "value": value}


def scores(problem: Problem, n: int | None, method: str, seed: int, plan: Plan) -> dict[str, float]:
    """Scores of a method on a crowd that is cut to n annotations an item, or not at all."""
    X, said, gold, train, test, network, size = problem
    crowd = said if n is None else cut(said, n, np.random.default_rng(seed))
    crowd = crowd.of_items(train)
    found = learn(method, X[train], crowd, plan, seed, network, size)
    p = found.predict(X[test])
    votes = said.of_items(test)
    result = {"vote log-loss": -float(np.mean(np.log(p[votes.item, votes.y])))}
    if found.hear is not None:
        heard = found.hear(p)
        result["heard log-loss"] = -float(np.mean(np.log(heard[votes.item, votes.y])))
    known, asked = gold[train] >= 0, gold[test] >= 0
    if known.any():
        right = found.truth[known].argmax(axis=1) == gold[train][known]
        label = gold[test][asked]
        result |= {
            "targets": float(np.mean(right)),
            "network": float(np.mean(p[asked].argmax(axis=1) == label)),
            "log-loss": -float(np.mean(np.log(p[asked][np.arange(len(label)), label]))),
        }
    return result


def learn(
    method: str,
    X: NDArray[np.float32],
    crowd: Annotations,
    plan: Plan,
    seed: int,
    network: Callable[[], nn.Module] | None = None,
    size: int = _HIDDEN,
) -> Rival:
    """Learn from a crowd's annotations of all items, in one of the ways."""
    K = len(crowd.labels)
    objective = "reverse_kl" if method.startswith("SLE") else "cross_entropy"

    def make(**more: Any) -> SLEClassifier:
        return SLEClassifier(
            None if network is None else network(),
            objective=objective,
            hidden=(size,),
            labels=list(range(K)),
            random_state=seed,
            **plan._asdict(),
            **more,
        )

    crowd = Annotations(**{**vars(crowd), "labels": np.arange(K)})
    votes = aggregate.soft_vote(crowd).probability
    match method:
        case "CE on votes":
            return Rival(votes, make().fit(X, crowd).predict_proba)
        case "SLE on votes":
            model = make().fit(X, crowd)
            return Rival(aggregate.sle(crowd).probability, model.predict_proba)
        case "CE on shrunk Dawid-Skene":
            # To the end, EM gives nearly all items one label where annotators share no items.
            found = aggregate.shrunk_dawid_skene(crowd, use_confidence=False, n_iter=_EM_STEPS)
            q = found.probability
            return Rival(q, make().fit(X, q).predict_proba)
        case "Raykar et al. 2010":
            return raykar(make, X, crowd)
        case "CrowdLayer":
            encoder = _encoder(network, X.shape[-1], size, seed)
            return crowd_layer(encoder, size, X, crowd, seed=seed, **plan._asdict())
        case "CE in rounds" | "SLE in rounds":
            model = make(rounds=_ROUNDS).fit(X, crowd)
            told = model.rounds_
            return Rival(told.truth.probability, model.predict_proba, lambda p: p @ told.said)
        case _:
            raise ValueError(f"`method` must be one of {', '.join(METHODS)}; {method!r} came.")


def _encoder(
    network: Callable[[], nn.Module] | None, features: int, size: int, seed: int
) -> nn.Module:
    """What CrowdLayer learns below its layer; the others have the same made for them."""
    if network is not None:
        # All networks begin with the weights of one encoder, which must stay as they are.
        return deepcopy(network())
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(features, size), nn.ReLU())


def cut(annotations: Annotations, n: int, rng: np.random.Generator) -> Annotations:
    """At most n annotations an item, drawn."""
    a = annotations
    order = rng.permutation(len(a.item))
    order = order[np.argsort(a.item[order], kind="stable")]
    item = a.item[order]
    first = np.searchsorted(item, item, side="left")
    return a.rows(np.sort(order[np.arange(len(item)) - first < n]))


def digits(seed: int) -> Problem:
    """The embedded digits: 1,200 to learn from, 597 to be asked about."""
    crowd = datasets.digits_crowd(rng=seed)
    order = np.random.default_rng(seed).permutation(len(crowd.X))
    X = crowd.X.astype(np.float32)
    return Problem(X, crowd.annotations, crowd.gold, order[:1200], order[1200:])


def confused(seed: int) -> Problem:
    """Digits of eight kinds, blurred, read by 59 people who make mistakes that others make, too.

    What a digit is taken for by those who are wrong is by .6 the same for all, by .4 their own. How
    often people are right is Beta(6, 3), and some annotate much more than others. 1,000 digits to
    learn from.
    """
    from sklearn.datasets import load_digits

    rng, M, K = np.random.default_rng(seed), 59, 8
    pixels, gold = load_digits(return_X_y=True)
    pixels, gold = pixels[gold < K], gold[gold < K]
    X = (pixels / 16 + rng.normal(0, 0.35, pixels.shape)).astype(np.float32)
    shared, own = rng.dirichlet(np.full(K, 0.4), K), rng.dirichlet(np.full(K, 0.5), (M, K))
    wrong = (0.6 * shared + 0.4 * own) * (1 - np.eye(K))
    skill = rng.beta(6, 3, M)[:, None, None]
    said = skill * np.eye(K) + (1 - skill) * wrong / wrong.sum(axis=2, keepdims=True)
    often = rng.dirichlet(np.full(M, 0.5))
    most = max(CUTS["confused"])
    who = np.stack([rng.choice(M, most, replace=False, p=often) for _ in gold])
    item, who = np.repeat(np.arange(len(gold)), most), who.ravel()
    label = (said[who, gold[item]].cumsum(axis=1) > rng.random((len(item), 1))).argmax(axis=1)
    names = np.arange(len(gold)), np.arange(M), np.arange(K)
    crowd = Annotations(item, who, label, np.zeros(len(item)), *names)
    order = rng.permutation(len(gold))
    return Problem(X, crowd, gold, order[:1000], order[1000:])


def images(seed: int) -> Problem:
    """The 1,000 annotated images of CIFAR-10S, pixel by pixel, and what each held most probable."""
    crowd, pictures = datasets.cifar10s(), datasets.cifar10_images()
    said = replace(crowd.annotations, y=crowd.annotations.y.argmax(axis=1))
    X = sets.scaled(pictures.test_images[crowd.X]).reshape(len(crowd.X), -1)
    gold = pictures.test_labels[crowd.X].astype(np.intp)
    order = np.random.default_rng(seed).permutation(len(X))
    return Problem(X, said, gold, order[:800], order[800:])


def seen_images(seed: int) -> Problem:
    """The same images by what a network sees that has learned from others."""
    return images(seed)._replace(X=image_features())


@lru_cache(maxsize=1)
def image_features() -> NDArray[np.float32]:
    """64 features of each annotated image, by ResNet-32A as it is trained for Table 2.

    It has learned the CIFAR-10 labels of the 9,000 images of that file that nobody annotated.
    """
    path = sets.CACHE / "cifar10s-resnet32a.npy"
    if path.is_file():
        return np.load(path, allow_pickle=False)
    pictures, annotated = datasets.cifar10_images(), datasets.cifar10s().X
    x, plan = sets.scaled(pictures.test_images), sets.PLANS["cifar10s"]
    rest = np.setdiff1d(np.arange(len(x)), annotated)
    model = SLEClassifier(
        resnet32a(),
        objective="cross_entropy",
        max_epochs=plan.max_epochs,
        batch_size=plan.batch_size,
        learning_rate=plan.learning_rate,
        validation=0,
        random_state=0,
    )
    network = model.fit(x[rest], pictures.test_labels[rest]).network_
    with torch.no_grad():
        found = network.eval().encoder(torch.from_numpy(x[annotated])).flatten(1).numpy()
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{os.getpid()}-{path.name}")
    np.save(new, found)
    new.replace(path)
    return found


def sentences(name: str, seed: int) -> Problem:
    """A crowd on texts, seen by a transformer that is trained or not; four fifths are taught."""
    problem = sentence_features(name)
    order = np.random.default_rng(seed).permutation(len(problem.X))
    part = 4 * len(order) // 5
    return problem._replace(train=order[:part], test=order[part:])


@lru_cache(maxsize=2)
def sentence_features(name: str) -> Problem:
    """A crowd on texts as vectors, or as states below the layer that learns, and its network."""
    dataset, encoder = name.removesuffix(TRAINED), texts.load_encoder()
    trained = dataset != name
    layers = sets.PLANS[dataset].layers if trained else 0
    found = sets.encoded(sets.raw_texts(dataset), dataset, encoder, layers, sets.CACHE)
    gold = np.full(len(found.X), -1) if found.gold is None else found.gold
    every = np.arange(len(found.X))
    problem = Problem(found.X.astype(np.float32), found.annotations, gold, every, every)
    if not trained:
        return problem
    return problem._replace(network=found.network, size=int(encoder.model.config.hidden_size))
