"""CIFAR-10S: 1,000 images with soft labels by single annotators (Collins et al. 2022)."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from slencodings.annotations import Annotations
from slencodings.datasets.download import File, check, github, pinned, read, there
from slencodings.datasets.local import coded, csv_rows, find
from slencodings.opinion import Codes, Floats

_NAMES = (
    *("Airplane", "Automobile", "Bird", "Cat", "Deer"),
    *("Dog", "Frog", "Horse", "Ship", "Truck"),
)
_PLACE = {name: k for k, name in enumerate(_NAMES)}
_LABELS = [name.lower() for name in _NAMES]
_REDISTRIBUTED = 0.1
# The columns of the table of answers: whole numbers, then text and probabilities.
_IDS = ("img_id", "annotator", "trial_index")
_GIVEN = ("task", "top1", "top1_prob", "top2", "top2_prob", "impossible")


def _answers_in_log(data: bytes) -> bytes:
    """The answers in the raw log of the study, without its free texts, one row each."""
    log = [row for row in csv_rows(data) if row["trial_type"] == "survey-html-form"]
    who = {name: m for m, name in enumerate(dict.fromkeys(row["subject"] for row in log))}
    return _as_csv([_answer(row, who[row["subject"]]) for row in log])


def _answer(row: dict[str, str], annotator: int) -> dict[str, str]:
    response: dict[str, str] = json.loads(row["response"])
    second = response["classSelect2"].removeprefix("secondProb")
    # As the authors do: 8p was meant to be 80, and 0 for the likeliest class to be 100.
    likeliest = float(response["prob"].replace("8p", "80")) or 100.0
    unlikely = [name for name in _NAMES if f"improbClassSelect{name}" in response]
    return {
        "img_id": str(int(float(row["img_id"]))),
        "annotator": str(annotator),
        "trial_index": row["trial_index"],
        "task": row["task"],
        "top1": response["classSelect"].removeprefix("mostProb"),
        "top1_prob": str(likeliest),
        "top2": second,
        "top2_prob": response.get("prob2", "") if second != "No" else "",
        "impossible": "|".join(unlikely),
    }


def _as_csv(rows: list[dict[str, str]]) -> bytes:
    """The answers by image, annotator and time, every number written the same way."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_IDS, *_GIVEN])
    writer.writerows([*ids, *given] for ids, given in sorted(map(_cells, rows)))
    return out.getvalue().encode("utf-8")


def _cells(row: dict[str, str]) -> tuple[list[int], list[str]]:
    number = {name: str(float(row[name])) for name in ("top1_prob", "top2_prob") if row[name]}
    return [int(row[name]) for name in _IDS], [(row | number)[name] for name in _GIVEN]


def _same_table(data: bytes) -> bytes:
    return _as_csv(csv_rows(data))


def _classes(data: bytes) -> bytes:
    """The class of each image in the raw log of the study."""
    shown = {int(float(row["img_id"])): row["label"] for row in csv_rows(data) if row["img_id"]}
    return _gold(shown)


def _gold(names: dict[int, str]) -> bytes:
    lines = [f"{i},{name}\n" for i, name in sorted(names.items())]
    return "".join(["img_id,label\n", *lines]).encode("utf-8")


_ORIGIN = ("cambridge-mlg/cifar-10s", "86b114f0257ad88e36add572db3dd69dbca0fdf7")
_RAW = github(*_ORIGIN, "cifar10s_data/raw_human_data.csv", 3_700_000)
_ANSWERS = File(
    "derived_annotator_index.csv",
    572_409,
    "2486d02152aff941f567e353aaca5b67c067a9fb426a71ff1f16d35961b26234",
    (_RAW,),
    _answers_in_log,
    _same_table,
)
_GOLD = File(
    "derived_gold.csv",
    10_810,
    "fc1019d810d967554c61f166ee07da937c3dbb1d5967ec839a3856f33b095bc2",
    (_RAW,),
    _classes,
)
_TRAIN = pinned(
    _ORIGIN,
    "other_data/train_indices.npy",
    56_128,
    "af80134e896dda7f42c7acc9386243d53b4bf54c996b219452fa6ac600c8883a",
)
_TEST = pinned(
    _ORIGIN,
    "other_data/test_indices.npy",
    24_128,
    "2cda098d4cc19137cde538b37f26759e8c0fbc20c470aa89a9574f4edba2bcbb",
)


class CIFAR10S(NamedTuple):
    """Which images were shown, the soft label of each annotator, and the classes of CIFAR-10.

    Attributes
    ----------
    X : int array (1000,), places in the CIFAR-10 test set, whose images `cifar10_images` loads
    annotations : Annotations, 6,723 soft labels (R, 10) by 248 annotators, some of whom saw an
        image again; the probability of the top label is the confidence they stated
    gold : int array (1000,), the class of the image; None where neither the raw log nor the
        images are there
    train : int array (7000,), the published places to train on; `X` is among them
    test : int array (3000,), the published places to test on
    """

    X: Codes
    annotations: Annotations
    gold: Codes | None
    train: Codes
    test: Codes


def cifar10s(folder: str | Path | None = None, *, download: bool = False) -> CIFAR10S:
    """Soft labels elicited from each annotator, clamped and redistributed as their authors do.

    They are computed from each answer. The published cifar10s_t2clamp_redist10.json has the same
    labels, but in an order that does not say whose they are.

    Parameters
    ----------
    folder : holds other_data and derived_annotator_index.csv, or else the original
        cifar10s_data/raw_human_data.csv; and beside it cifar10_images, if `gold` is to come from
        there; left out, it is SLENCODINGS_DATA/cifar10s, the cache, or
        ../shared/datasets/cifar10s beside the checkout
    download : fetch what is missing from github.com into the folder or the cache, without the
        free texts of the raw log

    Examples
    --------
    >>> cifar10s("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'cifar10s' needs the file derived_annotator_index.csv; looked ...
    """
    files = [_ANSWERS, _TRAIN, _TEST]
    home = find("cifar10s", folder, files, extra=[_GOLD], download=download)
    rows = csv_rows(read(home, _ANSWERS))
    y = _soft(rows)
    item = [int(row["img_id"]) for row in rows]
    X = np.unique(np.asarray(item, dtype=np.intp))
    who = [int(row["annotator"]) for row in rows]
    crowd = coded(item, who, y, _LABELS, items=X.tolist(), stated=np.max(y, axis=1))
    train, test = (
        np.load(io.BytesIO(read(home, file)), allow_pickle=False).astype(np.intp)
        for file in (_TRAIN, _TEST)
    )
    return CIFAR10S(X, crowd, _find_gold(home, X), train, test)


def _find_gold(home: Path, X: Codes) -> Codes | None:
    images = home.parent / "cifar10_images" / "cifar10_test10000_train5000.npz"
    if there(home, _GOLD):
        content = read(home, _GOLD)
    elif images.exists():
        with np.load(images, allow_pickle=False) as arrays:
            labels: list[int] = arrays["test_labels"][X].tolist()
        shown = {i: _NAMES[k] for i, k in zip(X.tolist(), labels, strict=True)}
        content = check(_GOLD, _gold(shown), images)
    else:
        return None
    return np.asarray([_PLACE[row["label"]] for row in csv_rows(content)], dtype=np.intp)


def _soft(rows: list[dict[str, str]]) -> Floats:
    """The label "T2 Clamp" of Collins et al. (2022), section 4.2, with a tenth redistributed.

    The two likeliest classes have what the annotator gave them, the second if it is the first
    again. What is left goes to the other classes that are not impossible; where nothing is left
    and there are such classes, a tenth does. Shapes: R answers to (R, 10).
    """
    R, r = len(rows), np.arange(len(rows))
    y = np.zeros((R, len(_NAMES)))
    y[r, [_PLACE[row["top1"]] for row in rows]] = [float(row["top1_prob"]) / 100 for row in rows]
    for i, row in enumerate(rows):
        if row["top2_prob"]:
            y[i, _PLACE[row["top2"]]] = float(row["top2_prob"]) / 100
    possible = np.asarray([[n not in row["impossible"].split("|") for n in _NAMES] for row in rows])
    given = y.sum(axis=1, keepdims=True)
    # Not a count of the classes below: a likeliest class may be called impossible as well.
    unnamed = possible.sum(axis=1, keepdims=True) - (y > 0).sum(axis=1, keepdims=True)
    left = given < 1
    share = np.where(left, 1 - given, _REDISTRIBUTED) * (unnamed != 0)
    spread = share / np.where(unnamed == 0, 1, unnamed) * (possible & (y == 0))
    y = np.where(left, y, y / np.where(left, 1, given) * (1 - share)) + spread
    return y / y.sum(axis=1, keepdims=True)
