"""What are opinions for? Networks on digits, texts and images: votes, errors, strange inputs.

Every network is the same and is trained by the same plan; only target and loss differ. A network
that predicts opinions says how unsure it is by u; five networks say it by how far they differ; one
network of cross-entropy has nothing but its probabilities to say it by.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

from experiments import texts
from experiments.data import CACHE, raw_texts, scaled
from experiments.guesses import Floats, Guess, information, scores, scores_of_strange, together
from experiments.rounds import PLANS, Plan, cut, images, sentence_features, sentences
from experiments.rows import Job, Row
from slencodings import Annotations, Opinion, aggregate, datasets, smooth
from slencodings.torch import SLEClassifier
from slencodings.trust import Crowd, count_each, learn_crowd

METHODS = (
    "CE",
    "CE on learned votes",
    "five CE",
    "Votes",
    "SLE as stated",
    "SLE on learned votes",
    "SLE on learned truth",
)
# Those that say how unsure they are.
DOUBTING = METHODS[2:]
# How many items are learned from, and annotations on each; the other is as in the crowd.
ITEMS, ANNOTATIONS = (150, 300, 600, 1200), (1, 2, 3, 5, 10, 20)
USUAL_ITEMS, USUAL_ANNOTATIONS = 1200, 5
# Each seed leaves two digits out, so that five leave out each of ten once; and of crowds of people.
SEEDS, SEEDS_OF_PEOPLE = 5, 3
_HIDDEN, _MEMBERS, _SMOOTHING = 64, 5, 0.01
_WORD = re.compile(r"\w+")


class Case(NamedTuple):
    """What is learned from, and what is asked about.

    Attributes
    ----------
    X, taught : the items to learn from, and what was said of them
    new : the items that are asked about
    asked : what was said of the first of them, as many as have a gold label
    gold : of these; -1 where nothing is most probable; None where nothing but strangeness counts
    strange : which of `new` are unlike those learned from, if any are
    plan : of every network
    """

    X: NDArray[np.float32]
    taught: Annotations
    new: NDArray[np.float32]
    asked: Annotations
    gold: NDArray[np.intp] | None
    strange: NDArray[np.bool_] | None
    plan: Plan


USUAL = ("all digits", "two left out")
OTHERS = (
    *(f"{n} items" for n in ITEMS if n != USUAL_ITEMS),
    *(f"{n} annotations" for n in ANNOTATIONS if n != USUAL_ANNOTATIONS),
)
# Crowds of people, and the one whose items are strange to a network that has learned from them.
CROWDS = {"mre": "rte", "rte": "mre", "convabuse": "rte", "uds": "mre", "cifar10s": "digits"}


def jobs(seeds: int = SEEDS, settings: Sequence[str] | None = None) -> list[Job]:
    """All methods as usual, without two digits, and on texts; doubting ones with fewer and more."""
    return [
        {"experiment": "uses", "setting": name, "method": method, "seed": seed}
        for names, methods in (((*USUAL, *CROWDS), METHODS), (OTHERS, DOUBTING))
        for seed in range(seeds)
        for name in names
        if name not in CROWDS or seed < SEEDS_OF_PEOPLE
        for method in methods
        if settings is None or name in settings
    ]


def rows(experiment: str, setting: str, method: str, seed: int) -> Iterator[Row]:
    """Learn from some items and score what is said of others."""
    torch.set_num_threads(1)
    case = people(setting, seed) if setting in CROWDS else digits(setting, seed)
    guess = learn(method, case.X, case.taught, case.new, seed, case.plan)
    result: dict[str, float] = {}
    if case.gold is not None:
        result |= scores(guess.first(len(case.gold)), case.asked, case.gold)
    if case.strange is not None:
        result |= scores_of_strange(guess, case.strange)
    if method == "SLE as stated" and case.gold is not None and setting not in CROWDS:
        # Doubt is learned from what people state of items: is it foreseen of new ones?
        stated = aggregate.sle(case.asked, smoothing=_SMOOTHING).uncertainty
        result["doubt foreseen"] = float(spearmanr(guess.doubt, stated).statistic)
    for metric, value in result.items():
        yield {
            "experiment": experiment,
            "setting": setting,
            "annotations": "all",
            "method": method,
            "seed": seed,
            "metric": metric,
            "value": value,
        }


def digits(setting: str, seed: int) -> Case:
    """Some digits to learn from, and 597 others; or without two kinds, which are then strange."""
    crowd = datasets.digits_crowd(rng=seed, per_item=max(ANNOTATIONS))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(crowd.X))
    train, test = order[:USUAL_ITEMS], order[USUAL_ITEMS:]
    n, unit = setting.split(" ", 1) if setting[0].isdigit() else ("", "")
    if unit == "items":
        train = train[: int(n)]
    strange = np.isin(crowd.gold, (2 * seed, 2 * seed + 1))
    left_out = setting == "two left out"
    if left_out:
        train = train[~strange[train]]
    per_item = int(n) if unit == "annotations" else USUAL_ANNOTATIONS
    # The same votes are asked about, however many are learned from.
    asked = cut(crowd.annotations, USUAL_ANNOTATIONS, rng).of_items(test)
    taught = cut(crowd.annotations, per_item, rng).of_items(train)
    X = crowd.X.astype(np.float32)
    gold, other = (None, strange[test]) if left_out else (crowd.gold[test], None)
    return Case(X[train], taught, X[test], asked, gold, other, PLANS["digits"])


def people(name: str, seed: int) -> Case:
    """A crowd on texts, seen by an encoder that is not trained, or on images; and others' items.

    Where no expert was asked, what most said is right, if it is one label.
    """
    problem = images(seed) if name == "cifar10s" else sentences(name, seed)
    X, said, gold, train, test, *_ = problem
    asked = said.of_items(test)
    votes = asked.sums()
    if not np.any(gold >= 0):
        most = votes == votes.max(axis=1, keepdims=True)
        label = np.where(most.sum(axis=1) == 1, votes.argmax(axis=1), -1)
    else:
        label = gold[test]
    other = np.random.default_rng(seed).permutation(_strange_to(name))[: len(test)]
    strange = np.arange(len(test) + len(other)) >= len(test)
    new = np.concatenate([X[test], other])
    return Case(X[train], said.of_items(train), new, asked, label, strange, PLANS[name])


def _strange_to(name: str) -> NDArray[np.float32]:
    """Items of another crowd, as a network that has learned from a crowd takes them."""
    if name == "cifar10s":
        return _drawn()
    return _predicates(CROWDS[name]) if name == "uds" else sentence_features(CROWDS[name]).X


@lru_cache(maxsize=1)
def _predicates(name: str) -> NDArray[np.float32]:
    """Sentences of a crowd, each read at its first word that mostly is a predicate in UDS."""
    known = usual_predicates(datasets.uds_factuality().X)
    places = [(text, first_of(known, text)) for text in raw_texts(name).X]
    found = [(text, at) for text, at in places if at is not None]
    return texts.features(
        texts.load_encoder(), [text for text, _ in found], at=[at for _, at in found], cache=CACHE
    )


def usual_predicates(pairs: Sequence[tuple[str, str]]) -> set[str]:
    """Words that are a predicate more often than not where they occur, of (sentence, predicate)."""
    predicates = Counter(word.lower() for _, word in pairs)
    sentences = {sentence for sentence, _ in pairs}
    words = Counter(word[0].lower() for text in sentences for word in _WORD.finditer(text))
    return {word for word, n in predicates.items() if 2 * n > words[word]}


def first_of(known: Set[str], text: str) -> int | None:
    """The place of the first word of a text that is among those known; None if none is."""
    words = _WORD.finditer(text)
    return next((word.start() for word in words if word[0].lower() in known), None)


def _drawn() -> NDArray[np.float32]:
    """Handwritten digits of 8 x 8 pixels as images of 32 x 32 in three colours."""
    pixels = datasets.digits_crowd(rng=0).X.reshape(-1, 8, 8)
    grey = np.kron(pixels / pixels.max(), np.ones((4, 4))) * 255
    return scaled(np.repeat(grey[..., None], 3, axis=-1).astype(np.uint8)).reshape(len(grey), -1)


def learn(
    method: str,
    X: NDArray[np.float32],
    crowd: Annotations,
    new: NDArray[np.float32],
    seed: int,
    plan: Plan,
) -> Guess:
    """Learn from a crowd in one of the ways, and say what new items are."""
    W = 2.0

    def network(objective: str, y: Any, seed: int = seed) -> Opinion:
        model = SLEClassifier(
            objective=objective,
            hidden=(_HIDDEN,),
            labels=list(range(len(crowd.labels))),
            prior_weight=W,
            random_state=seed,
            **plan._asdict(),
        )
        return model.fit(X, y).predict_opinion(new)

    def certain(p: Floats, doubt: Floats | None = None) -> Guess:
        return Guess(p, doubt, np.zeros(len(p)))

    match method:
        case "CE" | "CE on learned votes":
            votes = aggregate.soft_vote(crowd) if method == "CE" else _learned(crowd).votes(crowd)
            return certain(network("cross_entropy", votes.probability).probability)
        case "five CE":
            shares = aggregate.soft_vote(crowd).probability
            each = [
                network("cross_entropy", shares, _MEMBERS * seed + k).probability
                for k in range(_MEMBERS)
            ]
            return together(np.stack(each))
        case "Votes":
            said = network("votes", crowd.sums())
        case "SLE as stated":
            said = network("reverse_kl", aggregate.sle(crowd, smoothing=_SMOOTHING))
        case "SLE on learned votes" | "SLE on learned truth":
            learned = _learned(crowd)
            W = learned.prior_weight
            truth = method.endswith("truth")
            target = learned.truth(crowd) if truth else learned.votes(crowd)
            said = network("reverse_kl", smooth(target, _SMOOTHING))
        case _:
            raise ValueError(f"`method` must be one of {', '.join(METHODS)}; {method!r} came.")
    P, u = said.probability, said.uncertainty
    return Guess(P, u, u / W, information(P, u / W))


def _learned(crowd: Annotations) -> Crowd:
    """What is learned of a crowd; where no two annotations share an item, nothing can be."""
    shared = bool(np.any(np.bincount(crowd.item) > 1))
    return learn_crowd(crowd) if shared else count_each(crowd)
