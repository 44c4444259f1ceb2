"""CIFAR-10S: 1,000 images with soft labels by single annotators (Collins et al. 2022)."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.datasets.local import coded, find

_VOTES, _WHO = "cifar10s_data/cifar10s_t2clamp_redist10.json", "derived_annotator_index.csv"
_IMAGES = "cifar10_test10000_train5000.npz"
_LABELS = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)


class CIFAR10S(NamedTuple):
    """Which images were shown, the soft label of each annotator, and the classes of CIFAR-10.

    Attributes
    ----------
    X : int array (1000,), places in the CIFAR-10 test set
    annotations : Annotations, 6,723 soft labels (R, 10) by 248 annotators, some of whom saw an
        image again
    gold : int array (1000,), the class of the image; None where the images are not there
    stated : float array (R,), the probability of the annotator's top label
    """

    X: NDArray[np.intp]
    annotations: Annotations
    gold: NDArray[np.intp] | None
    stated: NDArray[np.float64]


def cifar10s(folder: str | Path | None = None) -> CIFAR10S:
    """Soft labels elicited from each annotator, clamped and redistributed as their authors do.

    Parameters
    ----------
    folder : holds cifar10s_data/cifar10s_t2clamp_redist10.json and derived_annotator_index.csv,
        and beside it cifar10_images for `gold`; left out, it is SLENCODINGS_DATA/cifar10s, or
        ../shared/datasets/cifar10s beside the checkout

    Examples
    --------
    >>> cifar10s("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'cifar10s' needs the file cifar10s_data/cifar10s_t2clamp_redis...
    """
    home = find("cifar10s", folder, _VOTES)
    soft = json.loads((home / _VOTES).read_text(encoding="utf-8"))
    with (home / _WHO).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    y = np.asarray([soft[row["img_id"]][int(row["json_index"])] for row in rows], dtype=float)
    item = [int(row["img_id"]) for row in rows]
    X = np.unique(np.asarray(item, dtype=np.intp))
    crowd = coded(item, [int(row["annotator"]) for row in rows], y, _LABELS, items=X.tolist())
    images, gold = home.parent / "cifar10_images" / _IMAGES, None
    if images.exists():
        with np.load(images, allow_pickle=False) as arrays:
            gold = arrays["test_labels"][X].astype(np.intp)
    return CIFAR10S(X, crowd, gold, np.max(y, axis=1))
