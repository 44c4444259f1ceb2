"""Crowds as tables of columns, and as files in every format, written without DuckDB."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from strategies import assert_close

Table = dict[str, list[Any]]
# Which column plays which role, and how rows are read; tests change and join them at will.
Roles = dict[str, Any]
ROLES: Roles = {name: name for name in ("item", "annotator", "label", "confidence", "reliability")}


def awkward_table(rows: int = 200, seed: int = 0) -> Table:
    """Items that need care: leading zeros, commas, quotes, newlines, other scripts."""
    rng = np.random.default_rng(seed)
    items = ["007", "7", "a, b", 'say "hi"', "two\nlines", "naïve ☃", "NA", " spaced ", "x;y|z\t"]
    return {
        "item": rng.choice(items, rows).tolist(),
        "annotator": rng.choice(["ann", "bob", "cy"], rows).tolist(),
        "label": rng.choice(["no", "yes", "NA", "peut-être"], rows).tolist(),
        "confidence": (rng.integers(0, 101, rows) / 100).tolist(),
        "reliability": (rng.integers(0, 101, rows) / 100).tolist(),
    }


def doubtful_table(rows: int = 60, seed: int = 0) -> Table:
    """Certain, doubtful and worthless annotations, some without a label."""
    rng = np.random.default_rng(seed)
    return {
        "item": rng.choice(["007", "7", "a, b", "naïve ☃"], rows).tolist(),
        "annotator": rng.choice(["ann", "bob", "cy"], rows).tolist(),
        "label": rng.choice(np.array(["2", "10", "no", None]), rows).tolist(),
        "confidence": rng.choice([0.0, 0.25, 0.9, 1.0], rows).tolist(),
        "reliability": rng.choice([0.0, 0.5, 1.0], rows).tolist(),
    }


def skilled_table(items: int = 40, seed: int = 0) -> Table:
    """Four annotators of falling skill, confidence from 1 to 3, no reliability."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(items):
        truth = rng.integers(3)
        for who, skill in (("ann", 0.95), ("bob", 0.8), ("cy", 0.5), ("dan", 0.1)):
            sure = int(rng.integers(1, 4))
            right = rng.random() < skill * (0.4 + 0.2 * sure)
            rows.append((f"i{item:02}", who, "abc"[truth if right else rng.integers(3)], sure))
    return dict(zip(ROLES, map(list, zip(*rows, strict=True)), strict=False))


def as_bytes(table: Table, format: str = "csv", **how: Any) -> bytes:
    """A table in a format."""
    records = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    if format in ("csv", "tsv"):
        text = io.StringIO(newline="")
        how = {"delimiter": "\t" if format == "tsv" else ",", "lineterminator": "\n"} | how
        writer = csv.DictWriter(text, list(table), **how)
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue().encode()
    if format == "parquet":
        sink = io.BytesIO()
        pq.write_table(pa.table(table), sink)
        return sink.getvalue()
    if format == "json":
        return json.dumps(records, ensure_ascii=False).encode()
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def write(name: str, *lines: str) -> str:
    """A file of these lines, and its name."""
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def assert_same_table(found: Any, expected: Any) -> None:
    """The same columns in the same order: words equal, numbers to 1e-12, None as NaN."""
    assert list(found) == list(expected)
    for name, values in expected.items():
        if any(isinstance(value, float) for value in values):
            assert_close(np.asarray(found[name], dtype=float), np.asarray(values, dtype=float))
        else:
            assert list(found[name]) == list(values), name
