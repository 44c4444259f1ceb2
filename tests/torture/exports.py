"""Exports of every tool with wrong values anywhere: they are read or refused, and never a crash."""

from functools import cache
from typing import Any

import numpy as np
from hostile import HOSTILE, places, put
from test_exports import HERE, SAID, assert_read_or_refused

from slencodings.files.exports.load import parts, records
from torture import again


@cache
def whole(name: str) -> list[Any]:
    """The records of an export."""
    return [{"id": r.key} | r.value for p in parts(HERE / name) for r in records(p, name)]


def wrong_values_are_read_or_refused(rng: np.random.Generator) -> None:
    name = list(SAID)[rng.integers(len(SAID))]
    bad: Any = whole(name)
    for _ in range(rng.integers(1, 4)):
        if not isinstance(bad, list) or not (where := places(bad)):
            break
        bad = put(bad, where[rng.integers(len(where))], HOSTILE[rng.integers(len(HOSTILE))])
    assert_read_or_refused(bad, SAID[name][2])


def turn(seed: int, until: float) -> None:
    """One export after the other."""
    again("exports", wrong_values_are_read_or_refused, seed, until)
