"""Random tables, fused by every engine as arrays fuse them, to 1e-12."""

import numpy as np
from engines import (
    BUT_DASK,
    ENGINES,
    LABELS,
    SOFT,
    Columns,
    assert_long,
    assert_wide,
    crowd_table,
    fuse_items,
    one_hot,
    soft,
    without,
)

from slencodings import fuse_table
from torture import again, tell

OPERATORS = ("cumulative", "average", "weighted", "constraint")
# Dask takes seconds for a table of any size.
ONE_IN_DASK = 50


def drawn(rng: np.random.Generator) -> Columns:
    """Any rows of a crowd, some of them again and again."""
    columns = crowd_table(60, int(rng.integers(2**32)))
    rows = rng.integers(0, 60, rng.integers(20, 80))
    # A column of nothing has no type that engines agree on.
    rows[:2] = 0, 1
    return {name: [values[i] for i in rows] for name, values in columns.items()}


def every_engine_fuses_as_arrays_do(rng: np.random.Generator) -> None:
    columns, operator = drawn(rng), OPERATORS[rng.integers(4)]
    smoothing = float(rng.choice([0.01, rng.random(), 0.0]))
    if operator == "constraint":  # certain annotations in total conflict have no answer
        smoothing = max(smoothing, 0.01)
    is_soft, is_long = rng.random(2) < 0.3
    y = soft(columns["p"]) if is_soft else one_hot(columns["said"])
    named = {
        name: column
        for name, column in {"uncertainty": "doubt", "reliability": "skill"}.items()
        if rng.random() < 0.8
    }
    how = {"operator": operator, "smoothing": smoothing}
    numbers = {name: columns[column] for name, column in named.items()}
    expected = fuse_items(columns["item"], y, **numbers, **how)
    label = {"label": SOFT} if is_soft else {"label": "said", "labels": LABELS}
    labels = SOFT if is_soft else LABELS
    dask = [ENGINES["dask"]] if rng.integers(ONE_IN_DASK) == 0 else []
    for engine in [*BUT_DASK, *dask]:
        table = engine(without(columns, "p", "a"))
        form = "long" if is_long else "wide"
        found = fuse_table(table, item="item", **label, **named, **how, form=form)
        (assert_long if is_long else assert_wide)(engine, found, expected, labels)
        tell(f"tables in {engine.name}")


def turn(seed: int, until: float) -> None:
    """One table after the other."""
    again("tables", every_engine_fuses_as_arrays_do, seed, until)
