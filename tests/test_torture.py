"""The laws that `make torture` looks at for an hour, for a moment; and that it would tell."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from torture import again, exports, laws, tables


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a turn tells what it did."""
    monkeypatch.setenv("SLENCODINGS_TOLD", str(tmp_path / "told"))
    return tmp_path / "told"


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
def test_every_small_law_holds(law):
    for seed in range(30):
        law(np.random.default_rng(seed))


@pytest.mark.usefixtures("told")
def test_a_table_and_some_exports_hold():
    tables.every_engine_fuses_as_arrays_do(np.random.default_rng(0))
    for seed in range(30):
        exports.wrong_values_are_read_or_refused(np.random.default_rng(seed))


def test_examples_are_counted_and_what_fails_is_told_with_its_numbers(told: Path):
    looked = []

    def odd(rng: np.random.Generator) -> None:
        looked.append(number := rng.integers(10))
        assert number, "nothing at all"

    again("examples", odd, 7, time.monotonic() + 60)
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    failures = [line["failure"] for line in lines if "failure" in line]
    assert sum(line.get("examples", 0) for line in lines) == len(looked)
    assert len(failures) == looked.count(0) == 5
    assert f"odd(np.random.default_rng([7, {looked.index(0)}]))" in failures[0]
    assert "nothing at all" in failures[0]
