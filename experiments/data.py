"""The five data sets as a network sees them: inputs, who said what, and what is learned from what.

| data set | learned from and tested on |
|---|---|
| cifar10s | the published 7,000 and 3,000 images. The 1,000 that were annotated are all among the 7,000, so the others are learned from, and the 3,000 tested on, by their CIFAR label |
| cifar10s_soft | the same 7,000 less 300 of those annotated, which are tested on by their soft labels |
| mre, rte | five folds of items, always the same |
| convabuse | published train and test; valid is left alone |
| uds | published train and test; dev is left alone |
"""  # noqa: E501

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from experiments import texts
from experiments.networks import relu_layers, resnet32a
from slencodings import Annotations, datasets

Codes = NDArray[np.intp]
Split = tuple[Codes, Codes]

# What the network of images is called in results; that of texts has the name of its encoder.
IMAGE_NETWORK = "ResNet-32A"
TEXTS = ("mre", "convabuse", "rte", "uds")
DATASETS = ("cifar10s", "mre", "convabuse", "rte", "uds")
CACHE = Path(os.environ.get("SLENCODINGS_CACHE", Path.home() / ".cache" / "slencodings"))
# Items to learn from and to test on in a quick run.
QUICK = 96, 48
_FOLDS = 5


class Plan(NamedTuple):
    """How a network is trained: the same for every method.

    Attributes
    ----------
    layers : of the transformer, from the top, that are trained; 0 for none, None for all
    normalize : whether the KL is divided by the target's concentration, for methods that have it
    augment : whether images are shifted and mirrored in training
    """

    layers: int | None
    max_epochs: int
    batch_size: int
    learning_rate: float
    normalize: bool = True
    augment: bool = True

    def in_words(self, *, kl: bool) -> str:
        """The plan as rows are known by it; how the KL is scaled only where there is one."""
        layers = "all" if self.layers is None else str(self.layers)
        words = f"layers {layers}, epochs {self.max_epochs}, batch {self.batch_size}"
        words += f", rate {self.learning_rate:g}" + (", images as they are" * (not self.augment))
        return words + (f", KL {'normalized' if self.normalize else 'as printed'}" if kl else "")


def read_plan(words: str) -> Plan:
    """The plan that `in_words` gave."""
    found = re.fullmatch(
        r"layers (all|\d+), epochs (\d+), batch (\d+), rate ([^,]+)(, images as they are)?"
        r"(, KL (normalized|as printed))?",
        words,
    )
    if found is None:
        raise ValueError(
            "a plan is 'layers N, epochs N, batch N, rate X', whether images are as they are, and "
            f"how the KL is scaled; {words!r} came."
        )
    layers = None if found[1] == "all" else int(found[1])
    sizes = int(found[2]), int(found[3]), float(found[4])
    return Plan(layers, *sizes, normalize=found[7] != "as printed", augment=found[5] is None)


# Chosen by the mean F1 of MV and CE (Gold was looked at on RTE), on the published validation part,
# or a fifth of the training items of the first fold. Images: as many epochs as there is time for.
PLANS = {
    "cifar10s": Plan(None, 8, 64, 3e-3),
    "cifar10s_soft": Plan(None, 6, 64, 3e-3),
    "mre": Plan(1, 10, 32, 3e-4),
    "convabuse": Plan(1, 5, 32, 3e-4),
    "rte": Plan(1, 10, 32, 3e-4),
    "uds": Plan(0, 5, 128, 1e-3),
}


class Data(NamedTuple):
    """A data set of N items.

    Attributes
    ----------
    X : array (N, ...), what the network takes; before that texts as a list, or images of bytes
    annotations : what the crowd said; of some items nothing, where `gold` has a label
    gold : int array (N,), positions among the labels; None where there is none
    splits : positions of items to learn from and to test on, one pair or several
    tested : Annotations that predictions are compared with
    network : gives a new module from X to features
    encoder : what the network is called in results
    """

    X: Any
    annotations: Annotations
    gold: Codes | None
    splits: list[Split]
    tested: Annotations
    network: Callable[[], nn.Module]
    encoder: str


def load(
    dataset: str, *, quick: bool = False, layers: int | None = None, augment: bool = True
) -> Data:
    """A data set by name; a quick one has few items and folds. The others are as in `Plan`."""
    if dataset not in PLANS:
        raise ValueError(f"`dataset` must be one of {', '.join(PLANS)}; {dataset!r} came.")
    data = _images(dataset) if dataset.startswith("cifar10s") else raw_texts(dataset)
    splits = [_few(*split) for split in data.splits[:2]] if quick else data.splits
    data = some(data, splits)
    if dataset.startswith("cifar10s"):
        network = partial(resnet32a, augment=augment)
        return data._replace(X=scaled(data.X), network=network)
    return encoded(data, dataset, texts.load_encoder(), layers, CACHE)


def encoded(
    data: Data, dataset: str, encoder: texts.Encoder, layers: int | None, cache: Path | None
) -> Data:
    """Texts as inputs of the network that the paper has for the data set.

    One linear layer after the transformer's first token, three more with ReLU for RTE. Of UDS the
    state of the predicate and the mean of the sentence are taken as they are, and learned from by
    one hidden layer.
    """
    if dataset == "uds":
        at = [_character(*place) for place in data.X]
        X = texts.features(encoder, [place[0] for place in data.X], at=at, cache=cache)
    else:
        X = texts.inputs(encoder, data.X, layers=layers, cache=cache)
    size = int(encoder.model.config.hidden_size)

    def network() -> nn.Module:
        if dataset == "uds":
            return nn.Sequential(nn.LayerNorm(2 * size), nn.Linear(2 * size, 256), nn.ReLU())
        top = texts.network(encoder, layers=layers, first=True)
        return nn.Sequential(top, relu_layers(size, 3)) if dataset == "rte" else top

    return data._replace(X=X, network=network, encoder=encoder.name)


def part(annotations: Annotations, items: Codes) -> Annotations:
    """The annotations of some items alone, in their order.

    Nothing else is left of the others, neither items nor those who annotated nothing else.
    """
    place = np.full(len(annotations.items), -1)
    place[items] = np.arange(len(items))
    kept = annotations.rows(place[annotations.item] >= 0)
    people, annotator = np.unique(kept.annotator, return_inverse=True)
    return replace(
        kept,
        item=place[kept.item],
        annotator=annotator,
        items=annotations.items[items],
        annotators=annotations.annotators[people],
    )


def some(data: Data, splits: list[Split]) -> Data:
    """The data set with the items of these splits alone."""
    items = np.unique(np.concatenate([np.concatenate(split) for split in splits]))
    return data._replace(
        X=[data.X[i] for i in items] if isinstance(data.X, list) else data.X[items],
        annotations=part(data.annotations, items),
        gold=None if data.gold is None else data.gold[items],
        splits=[
            (np.searchsorted(items, train), np.searchsorted(items, test)) for train, test in splits
        ],
        tested=part(data.tested, items),
    )


def _few(train: Codes, test: Codes) -> Split:
    """Drawn, since published splits may be sorted by label."""
    rng = np.random.default_rng(0)
    return rng.permutation(train)[: QUICK[0]], rng.permutation(test)[: QUICK[1]]


def folds(n: int, count: int = _FOLDS) -> list[Split]:
    """Each of n items is tested on once; the same folds every time."""
    parts = np.array_split(np.random.default_rng(0).permutation(n), count)
    return [(np.concatenate([p for p in parts if p is not test]), test) for test in parts]


def raw_texts(dataset: str) -> Data:
    """A crowd on texts, which are not encoded yet."""
    match dataset:
        case "mre":
            mre = datasets.mre()
            return _of(mre.X, mre.annotations, mre.gold, folds(len(mre.X)))
        case "rte":
            rte = datasets.rte()
            return _of(rte.X, rte.annotations, rte.gold, folds(len(rte.X)))
        case "convabuse":
            abuse = datasets.convabuse()
            # What went before, and the turn that is judged.
            X = [(" ".join(turns[:3]), turns[3]) for turns in abuse.X]
            return _of(X, abuse.annotations, None, [_published(abuse.split)])
        case _:
            uds = datasets.uds_factuality()
            names = uds.annotations.items.tolist()
            token = [int(name.rsplit("-", 1)[1]) for name in names]
            X = [(*pair, at) for pair, at in zip(uds.X, token, strict=True)]
            return _of(X, uds.annotations, None, [_published(uds.split)])


def _of(X: Any, said: Annotations, gold: Any, splits: list[Split]) -> Data:
    return Data(X, said, gold, splits, said, nn.Identity, "")


def _published(split: NDArray[Any]) -> Split:
    return np.flatnonzero(split == "train"), np.flatnonzero(split == "test")


def _character(sentence: str, word: str, token: int) -> int:
    """Where the word begins that is the token, counted from 1; 0 if it is not there.

    A word may occur more than once: the place with the nearest number of words before it counts.
    """
    starts = [m.start() for m in re.finditer(re.escape(word), sentence)] if word else []
    before = {i: len(re.findall(r"\w+|[^\w\s]", sentence[:i])) for i in starts}
    return min(before, key=lambda i: abs(before[i] + 1 - token), default=0)


def _images(dataset: str) -> Data:
    crowd = datasets.cifar10s()
    pictures = datasets.cifar10_images()
    images, labels = pictures.test_images, pictures.test_labels.astype(np.intp)
    N, said = len(images), crowd.annotations
    train, test = crowd.train, crowd.test
    everything = replace(said, item=crowd.X[said.item], items=np.arange(N))
    tested = Annotations(
        item=np.arange(N),
        annotator=np.zeros(N, dtype=np.intp),
        y=labels,
        uncertainty=np.zeros(N),
        items=np.arange(N),
        annotators=np.asarray(["CIFAR-10"], dtype=object),
        labels=said.labels,
    )
    if dataset == "cifar10s_soft":
        test = np.random.default_rng(0).permutation(crowd.X)[:300]
        train, tested = np.setdiff1d(train, test), everything
    return Data(images, everything, labels, [(train, test)], tested, nn.Identity, IMAGE_NETWORK)


def scaled(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Images (N, 3, 32, 32), each channel centred and scaled as the 50,000 train images are."""
    mean, deviation = np.asarray(
        [(0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)], dtype=np.float32
    )
    x = (images.astype(np.float32) / 255 - mean) / deviation
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))
