"""The images of CIFAR-10 that CIFAR-10S needs: all 10,000 to test on, the first 5,000 to train."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.datasets.download import File, Origin, read
from slencodings.datasets.local import find
from slencodings.opinion import Codes

_TEST, _TRAIN, _SHAPE = 10_000, 5_000, (32, 32, 3)
_ARRAYS = ("test_images", "test_labels", "train_images", "train_labels")


def _arrays(archive: bytes) -> bytes:
    """The arrays in the binary version of CIFAR-10, which needs no pickle to be read.

    An image is its label, then 1,024 bytes each of red, green and blue.
    """
    found: list[NDArray[np.uint8]] = []
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for name, count in (("test_batch", _TEST), ("data_batch_1", _TRAIN)):
            member = members.extractfile(f"cifar-10-batches-bin/{name}.bin") or io.BytesIO()
            rows = np.frombuffer(member.read(), np.uint8).reshape(-1, 3073)[:count]
            found += [rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), rows[:, 0]]
    out = io.BytesIO()
    np.savez(out, **dict(zip(_ARRAYS, found, strict=True)))
    return out.getvalue()


def _content(data: bytes) -> bytes:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return b"".join(arrays[name].astype(np.uint8).tobytes() for name in _ARRAYS)


_IMAGES = File(
    "cifar10_test10000_train5000.npz",
    46_095_000,
    "6efd86a9f6b59d3b3675efb0493c985ddfbfdec8d20f7905863fa7df523c2b05",
    (
        Origin(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "cifar-10-binary.tar.gz",
            170_052_171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    _arrays,
    _content,
)


class CIFAR10Images(NamedTuple):
    """Images and their classes, in the order of CIFAR-10.

    Attributes
    ----------
    test_images : uint8 array (10000, 32, 32, 3); CIFAR-10S points into these
    test_labels : int array (10000,)
    train_images : uint8 array (5000, 32, 32, 3), the first of the 50,000; the first 3,000 of them
        serve as validation images in the paper's experiment
    train_labels : int array (5000,)
    """

    test_images: NDArray[np.uint8]
    test_labels: Codes
    train_images: NDArray[np.uint8]
    train_labels: Codes


def cifar10_images(folder: str | Path | None = None, *, download: bool = False) -> CIFAR10Images:
    """CIFAR-10 (Krizhevsky 2009): the test images, and the first 5,000 training images.

    Parameters
    ----------
    folder : holds cifar10_test10000_train5000.npz, or the original cifar-10-binary.tar.gz; left
        out, it is SLENCODINGS_DATA/cifar10_images, the cache, or
        ../shared/datasets/cifar10_images beside the checkout
    download : fetch the original (170 MB) and keep these images of it (46 MB)

    Examples
    --------
    >>> cifar10_images("no/such/folder")
    Traceback (most recent call last):
    FileNotFoundError: data set 'cifar10_images' needs the file cifar10_test10000_train5000.np...
    """
    home = find("cifar10_images", folder, [_IMAGES], download=download)
    content = np.frombuffer(read(home, _IMAGES), np.uint8)
    sizes = [_TEST * 3072, _TEST, _TRAIN * 3072, _TRAIN]
    test, test_labels, train, train_labels = np.split(content, np.cumsum(sizes)[:-1])
    return CIFAR10Images(
        test.reshape(_TEST, *_SHAPE).copy(),
        test_labels.astype(np.intp),
        train.reshape(_TRAIN, *_SHAPE).copy(),
        train_labels.astype(np.intp),
    )
