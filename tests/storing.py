"""Adding to a store of evidence, and what is in it then."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from crowd_files import Table, as_bytes
from flat import encode_file
from hypothesis import strategies as st


def part(table: Table, which: Sequence[int]) -> Table:
    return {name: [values[i] for i in which] for name, values in table.items()}


def add(folder: Path, content: bytes | Table, name: str = "new.csv", **how: Any) -> list[str]:
    """Add a file of this content, which is gone afterwards, to the store; what was said."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else as_bytes(content))
    said: list[str] = []
    how = {"columns": {}, "into": str(folder / "store.parquet")} | how
    try:
        encode_file(str(path), say=lambda what, text: said.append(f"{what} {text}"), **how)
    finally:
        path.unlink()
    return said


def opinions(folder: Path, **how: Any) -> Table:
    """The opinions of all that is in the store."""
    target = folder / "targets.parquet"
    encode_file(str(folder / "store.parquet"), str(target), **({"columns": {}} | how))
    return pq.read_table(target).to_pydict()


def sums(folder: Path) -> Table:
    return pq.read_table(folder / "store.parquet").to_pydict()


def about(folder: Path) -> dict[str, Any]:
    return json.loads(pq.read_metadata(folder / "store.parquet").metadata[b"slencodings"])


def assert_refused(folder: Path, words: str, content: Any, **how: Any) -> None:
    """Nothing is changed, and it is said why."""
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises((ValueError, OSError), match=words):
        add(folder, content, **how)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


BOTH: Table = {"item": ["a", "a"], "label": ["no", "yes"]}
MORE: Table = {"item": ["b", "b"], "label": ["no", "no"]}


@st.composite
def batches(draw: st.DrawFn) -> list[list[int]]:
    """Sixty rows dealt to a few batches, which come in any order."""
    count = draw(st.integers(1, 3))
    deal = draw(st.lists(st.integers(0, count - 1), min_size=60, max_size=60))
    parts = [[i for i, b in enumerate(deal) if b == k] for k in range(count)]
    return draw(st.permutations([p for p in parts if p]))
