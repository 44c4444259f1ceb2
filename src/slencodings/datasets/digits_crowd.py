"""Real handwritten digits, read by a made-up crowd: the demo's data, with nothing to download.

The 1,797 images of 8 x 8 pixels come with scikit-learn. Some are hard to read, and what they may
be taken for is seen from the images that look most like them; what annotators say about them is
Algorithm 1. So the images and their labels are real, and trust in the annotators is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import Annotations
from slencodings.datasets.synthetic import annotate, beta, positive
from slencodings.opinion import Codes, Floats

# How far what is felt scatters around an annotator's own confidence: Beta(10 c, 10 (1 - c)).
_STEADINESS = 10
# How far what is stated, in tenths, scatters around what is felt.
_STATED_NOISE = 0.1
# The look-alikes of an image are weighed over a third of the distance to the fifth nearest.
_NEIGHBOURS, _SHARE = 5, 1 / 3


class DigitsCrowd(NamedTuple):
    """Images, what a crowd read in them, and everything that is known about both.

    Attributes
    ----------
    X : array (1797, 64), pixels in [0, 1]
    annotations : Annotations, one label and one stated uncertainty each
    gold : int array (1797,), the digit that was written
    truth : array (1797, 10), what the image may be taken for
    reliability : array (M,), how often an annotator looks at the image at all
    confidence : array (M,), how sure an annotator is on average
    """

    X: Floats
    annotations: Annotations
    gold: Codes
    truth: Floats
    reliability: Floats
    confidence: Floats


def digits_crowd(
    *,
    n_annotators: int = 50,
    per_item: int = 5,
    confidence: tuple[float, float] = (4, 2),
    reliability: tuple[float, float] = (4, 2),
    rng: np.random.Generator | int = 0,
) -> DigitsCrowd:
    """Load scikit-learn's handwritten digits as if a crowd had labelled them (Algorithm 1).

    r_m ~ Beta(reliability),   c_m ~ Beta(confidence),   c_im ~ Beta(10 c_m, 10 (1 - c_m))
    label ~ recalibrate(permute(truth_i, r_m), c_im),    stated = c_im + noise, in tenths

    The default crowd has a few experts (8% above .9), many ordinary people, and a few careless
    ones (9% below .4); confidence and reliability have nothing to do with each other. A majority
    is right about 87% of the images. Fusing with true reliability and stated confidence is right
    about 84%, because the odds c / (1 - c) of one expert outweigh four ordinary people who agree,
    though its mode is closer to `truth` than soft votes are; with per_item=3 it is 74% and 75%.

    Parameters
    ----------
    n_annotators : M
    per_item : how many different annotators see each image
    confidence, reliability : the two parameters of a Beta distribution; (10, 0) is always 1
    rng : a generator, or the seed of one

    Examples
    --------
    >>> crowd = digits_crowd()
    >>> crowd.X.shape, crowd.annotations.y.shape, crowd.gold.shape
    ((1797, 64), (8985,), (1797,))
    >>> crowd.annotations.items[:2], crowd.annotations.annotators[:2]
    (array(['digit-0000', 'digit-0001'], dtype='<U10'), array(['ann-00', 'ann-01'], dtype='<U6'))
    """
    rng, M = np.random.default_rng(rng), positive("n_annotators", n_annotators)
    pixels, gold, truth = _digits(_loader())
    N = len(truth)
    # Two decimals, as a table would hold them.
    c = beta(*confidence, M, rng).round(2)
    r = beta(*reliability, M, rng).round(2)
    felt = beta(_STEADINESS * c, _STEADINESS * (1 - c), (N, M), rng)
    crowd = annotate(truth, confidence=felt, reliability=r, rng=rng, per_item=per_item, hard=True)
    noise = rng.normal(0, _STATED_NOISE, len(crowd.annotations.item))
    stated = (1 - crowd.annotations.uncertainty + noise).clip(0, 1).round(1)
    width = max(2, len(str(M - 1)))
    annotations = replace(
        crowd.annotations,
        uncertainty=1 - stated,
        items=np.asarray([f"digit-{i:04d}" for i in range(N)]),
        annotators=np.asarray([f"ann-{m:0{width}d}" for m in range(M)]),
    )
    return DigitsCrowd(pixels / 16, annotations, gold.copy(), truth.copy(), r, c)


def crowd_table(annotations: Annotations, reliability: Any = None) -> dict[str, NDArray[Any]]:
    """The crowd as the columns of a table, one row per annotation.

    Parameters
    ----------
    annotations : Annotations with one label each
    reliability : array (M,), or anything that `Annotations.per_annotation` takes

    Returns
    -------
    item, annotator, label, confidence, reliability : arrays (R,)

    Examples
    --------
    >>> crowd = digits_crowd()
    >>> table = crowd_table(crowd.annotations, crowd.reliability)
    >>> list(table), len(table["label"])
    (['item', 'annotator', 'label', 'confidence', 'reliability'], 8985)
    """
    if annotations.soft:
        raise ValueError(
            f"a table holds one label per annotation; probabilities over "
            f"{annotations.y.shape[1]} labels came. Draw labels: annotate(..., hard=True)."
        )
    return {
        "item": annotations.items[annotations.item],
        "annotator": annotations.annotators[annotations.annotator],
        "label": annotations.labels[annotations.y],
        # 1 - (1 - 0.3) is 0.30000000000000004, and somebody has to read the file.
        "confidence": (1 - annotations.uncertainty).round(12),
        "reliability": annotations.per_annotation(reliability),
    }


def _loader() -> Callable[..., Any]:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            "the digits come with scikit-learn, which is not installed. "
            "Type: pip install 'slencodings[demo]'"
        ) from error
    return load_digits


@cache
def _digits(load: Callable[..., Any]) -> tuple[Floats, Codes, Floats]:
    """Pixels (1797, 64), whole numbers from 0 to 16; the digits written; what they look like."""
    loaded = load(return_X_y=True)
    pixels, gold = np.asarray(loaded[0], dtype=float), np.asarray(loaded[1], dtype=np.intp)
    return pixels, gold, _look_alikes(pixels, gold)


def _look_alikes(pixels: Floats, gold: Codes) -> Floats:
    """How much each digit is found among the other images that look like this one, (N, K).

    p_ik ~ sum over j != i with gold_j = k of exp(-d_ij ** 2 / (2 h_i ** 2))
    """
    square = (pixels**2).sum(axis=1)
    # Whole numbers throughout, so exact on every machine.
    d2 = square[:, None] + square - 2 * pixels @ pixels.T
    np.fill_diagonal(d2, np.inf)
    h = _SHARE * np.sqrt(np.partition(d2, _NEIGHBOURS - 1)[:, [_NEIGHBOURS - 1]])
    p = np.exp(d2 / (-2 * h**2)) @ np.eye(10)[gold]
    return p / p.sum(axis=1, keepdims=True)
