"""Worked numbers that others printed, and X1 and X2, which were derived exactly."""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import Arrays, assert_close, to_numpy

from slencodings import (
    Opinion,
    alpha,
    discount,
    encode,
    fuse,
    fuse_average,
    fuse_compromise,
    fuse_constraint,
    fuse_weighted,
    maximize_uncertainty,
)

VECTORS = json.loads((Path(__file__).parent / "data/sl_vectors.json").read_text())


def discount_along_path(crowd: Opinion) -> Opinion:
    """The last opinion, discounted by the trust in each source before it."""
    *trust, said = (crowd.rows(i) for i in range(crowd.uncertainty.shape[0]))
    return functools.reduce(discount, trust, said)


OPERATIONS = {
    "cbf": fuse,
    "abf": fuse_average,
    "wbf": fuse_weighted,
    "bcf": fuse_constraint,
    "ccf": fuse_compromise,
    "ecbf": lambda crowd: maximize_uncertainty(fuse(crowd)),
    "umax": lambda crowd: maximize_uncertainty(crowd.rows(0)),
    "discount": discount_along_path,
}


def crowd_of(vector: dict[str, Any]) -> Opinion:
    b, u, a = ([source[key] for source in vector["inputs"]] for key in "bua")
    return Opinion(np.asarray(b, float), np.asarray(u, float), np.asarray(a, float))


def share_out(hyper: dict[str, float], a: np.ndarray) -> np.ndarray:
    """Belief in sets, "0,2" say, given to their labels by base rate."""
    belief = np.zeros_like(a)
    for name, mass in hyper.items():
        labels = [int(k) for k in name.split(",")]
        belief[labels] += mass * a[labels] / a[labels].sum()
    return belief


def opinion_of(value: dict[str, Any], a: np.ndarray) -> Opinion:
    b = share_out(value["hyper"], a) if "hyper" in value else np.asarray(value["b"])
    return Opinion(b, np.asarray(value["u"]), np.asarray(value.get("a", a)))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_the_printed_digits_come_out(xp: Arrays, vector: dict[str, Any]) -> None:
    crowd = crowd_of(vector)
    printed = vector["expected_source"]
    if isinstance(printed, dict):
        printed = share_out(printed, crowd.base_rate[0])
    b, u, a = to_numpy(OPERATIONS[vector["op"]](xp(crowd)))
    # Sources print belief, then uncertainty, then base rate, and stop somewhere.
    came = np.asarray([*b, u, *a])[: len(printed)]
    np.testing.assert_allclose(came, printed, rtol=0, atol=vector["tol"])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_all_digits_come_out(xp: Arrays, vector: dict[str, Any]) -> None:
    crowd = crowd_of(vector)
    expected = opinion_of(vector["value_float64"], crowd.base_rate[0])
    assert_close(OPERATIONS[vector["op"]](xp(crowd)), expected)


def test_every_vector_is_there_once() -> None:
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS) == 32


def test_encode_discount_and_fuse_give_x2(xp: Arrays) -> None:
    y = xp.array(np.eye(3)[[0, 0, 1]])
    said = encode(y, xp.array(1 - np.asarray([0.9, 0.5, 0.8])))
    fused = fuse(discount(said, xp.array(np.asarray([0.9, 0.6, 0.75]))))
    belief = np.asarray([1248, 399, 0]) / 1913
    assert_close(fused, Opinion(belief, np.asarray(266 / 1913), np.full(3, 1 / 3)))
    # alpha = W (b / u + a), with W = 2
    assert_close(alpha(fused), 2 * np.asarray([1248 / 266, 399 / 266, 0]) + 2 / 3)
    assert_close(alpha(fused), np.asarray([10.05012531, 3.66666667, 0.66666667]), tol=1e-8)
