"""Evidence, as stores hold it, is a table that any engine fuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowd_files import ROLES, Table, assert_same_table, doubtful_table
from engines import Engine, core_engines
from storing import add, part, sums

import slencodings
from slencodings.tables import fuse_evidence


def by_name(table: Any) -> dict[tuple[Any, ...], list[float]]:
    """The numbers of each item, or item and label; whatever a missing label looks like."""
    ids = [name for name in ("item", "label") if name in table]
    keys = [[None if v != v else v for v in table[name]] for name in ids]
    numbers = zip(*(table[name] for name in table if name not in ids), strict=True)
    return dict(zip(zip(*keys, strict=True), map(list, numbers), strict=True))


@core_engines
@pytest.mark.parametrize("form", ["wide", "long", "evidence"])
def test_evidence_of_parts_is_fused_as_the_whole_is(engine: Engine, form: Any):
    table = doubtful_table()
    how: dict[str, Any] = {"smoothing": 0.0, "prior_weight": 3.0}
    halves = [
        slencodings.fuse_table(part(table, which), **ROLES, **how, form="evidence")
        for which in (range(25), range(25, 60))
    ]
    both = {name: [v for half in halves for v in half[name].tolist()] for name in halves[0]}
    fused = fuse_evidence(engine(both), prior_weight=3.0, form=form)
    assert isinstance(fused, engine.kind)
    result = by_name(engine.read(fused))
    expected = by_name(slencodings.fuse_table(table, **ROLES, **how, form=form))
    assert result.keys() == expected.keys()
    for key, numbers in expected.items():
        np.testing.assert_allclose(result[key], numbers, rtol=1e-12, atol=1e-12)


def test_a_store_is_a_table_of_evidence(tmp_path: Path):
    table, rates = doubtful_table(), {"2": 0.5, "10": 0.25, "no": 0.25}
    for which in (range(25), range(25, 60)):
        add(tmp_path, part(table, which))
    result = fuse_evidence(sums(tmp_path), labels=["2", "10", "no"], base_rate=rates)
    expected = slencodings.fuse_table(table, **ROLES, labels=["2", "10", "no"], base_rate=rates)
    assert_same_table(result, expected)


def test_numbers_as_labels_stay_numbers():
    for labels in ([0, 1, None], [0.0, 0.5, None], [True, False, None]):
        table = {"item": ["a", "a", "b"], "label": labels}
        evidence = slencodings.fuse_table(table, item="item", label="label", form="evidence")
        expected = slencodings.fuse_table(table, item="item", label="label")
        assert_same_table(fuse_evidence(evidence), expected)


@pytest.mark.parametrize("wrong", [-1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("column", ["evidence", "dogmatic"])
def test_evidence_must_be_an_amount(column: str, wrong: float):
    table: Table = {"item": ["a", "b"], "label": ["x", "y"], "evidence": [1.0, 1.0]}
    table |= {"dogmatic": [0.0, 0.0]}
    table[column] = [1.0, wrong]
    words = f"`{column}` must be finite and not negative; 1 of 2 rows are not, first .* in row 2"
    with pytest.raises(ValueError, match=words):
        fuse_evidence(table)


def test_evidence_needs_a_prior_weight():
    table: Table = {"item": ["a", "b"], "label": ["x", "y"], "evidence": [1.0, 1.0]}
    with pytest.raises(ValueError, match="`prior_weight` must be a positive number; 'W' came"):
        fuse_evidence(table | {"dogmatic": [0.0, 0.0]}, prior_weight="W")  # pyright: ignore[reportArgumentType]
