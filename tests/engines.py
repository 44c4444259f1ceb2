"""The table engines in turn, a crowd to put into them, and what must come out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from crowd_files import Roles
from strategies import assert_close

from slencodings import (
    Opinion,
    discount,
    encode,
    from_table,
    fuse,
    fuse_average,
    fuse_constraint,
    fuse_weighted,
    smooth,
)
from slencodings.choices import Form

Columns = dict[str, list[Any]]

# A connection that lives as long as the tests, beside DuckDB's default one.
CONNECTION = duckdb.connect()


class Engine(NamedTuple):
    """Calling it makes a table of columns; `read` makes columns of a table."""

    name: str
    own: Callable[[], type]
    make: Callable[[Columns], Any]
    read: Callable[[Any], Columns]
    lazy: bool = False
    ordered: bool = True

    def __call__(self, columns: Columns) -> Any:
        return self.make(columns)

    @property
    def kind(self) -> type:
        """The type of its tables."""
        return self.own()


def _from_pandas(table: pd.DataFrame) -> Columns:
    return {name: table[name].tolist() for name in table}


def _dask() -> Any:
    """It takes a second to import, which only its own tests need."""
    return import_module("dask.dataframe")


def _from_dask(table: Any) -> Columns:
    """Its plan as it stands: to simplify one takes Dask seconds, and some tests have it do so."""
    plan = table.expr.lower_completely()
    parts = import_module("dask").get(plan.__dask_graph__(), plan.__dask_keys__())
    return _from_pandas(pd.concat(parts))


def _from_duckdb(table: duckdb.DuckDBPyRelation) -> Columns:
    return table.to_arrow_table().to_pydict()


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("dict", lambda: dict, dict, lambda t: {name: x.tolist() for name, x in t.items()}),
        Engine("pandas", lambda: pd.DataFrame, pd.DataFrame, _from_pandas),
        Engine(
            "pandas-arrow",
            lambda: pd.DataFrame,
            lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
            _from_pandas,
        ),
        Engine("pyarrow", lambda: pa.Table, pa.table, lambda t: t.to_pydict()),
        Engine(
            "polars",
            lambda: pl.DataFrame,
            pl.DataFrame,
            lambda t: t.to_dict(as_series=False),
        ),
        Engine(
            "polars-lazy",
            lambda: pl.LazyFrame,
            pl.LazyFrame,
            lambda t: t.collect().to_dict(as_series=False),
            lazy=True,
        ),
        Engine(
            "duckdb",
            lambda: duckdb.DuckDBPyRelation,
            lambda columns: duckdb.from_arrow(pa.table(columns)),
            _from_duckdb,
            lazy=True,
        ),
        Engine(
            "duckdb-own",
            lambda: duckdb.DuckDBPyRelation,
            lambda columns: CONNECTION.from_arrow(pa.table(columns)),
            _from_duckdb,
            lazy=True,
        ),
        Engine(
            "dask",
            lambda: _dask().DataFrame,
            lambda columns: _dask().from_pandas(pd.DataFrame(columns), npartitions=3, sort=False),
            _from_dask,
            lazy=True,
            ordered=False,
        ),
    )
}
# One for each way of computing; the others differ in how a table gets there and back.
CORE = [ENGINES[name] for name in ("pandas", "polars-lazy", "duckdb-own")]
# Dask takes seconds for a query of any size, and makes text of lists.
BUT_DASK = [engine for engine in ENGINES.values() if engine.name != "dask"]

every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda e: e.name)
every_engine_but_dask = pytest.mark.parametrize("engine", BUT_DASK, ids=lambda e: e.name)
core_engines = pytest.mark.parametrize("engine", CORE, ids=lambda e: e.name)


LABELS = ["maybe", "no", "yes"]
SOFT = ["p0", "p1", "p2"]
PRIORS = ["a0", "a1", "a2"]
SKILLS = {"ann": 1.0, "bob": 0.8, "cem": 0.0, "dan": 0.35}


def crowd_table(rows: int = 48, seed: int = 5) -> Columns:
    """Annotations of all kinds: certain, vacuous and worthless ones, some missing.

    Item "lone" has one annotation, and the last item has none but a missing one.
    """
    rng = np.random.default_rng(seed)
    y = rng.dirichlet(np.ones(3), rows)
    y[::5] = np.eye(3)[rng.integers(0, 3, len(y[::5]))]
    a = rng.dirichlet(np.ones(3), rows)
    columns: Columns = {
        "item": [f"i{v}" for v in rng.integers(0, 7, rows)],
        "who": rng.choice(list(SKILLS), rows).tolist(),
        "said": rng.choice(LABELS, rows).tolist(),
        "doubt": rng.choice([0.0, 0.1, 0.25, 0.5, 1.0], rows).tolist(),
        "skill": rng.choice([0.0, 0.4, 0.9, 1.0], rows).tolist(),
        "sure": rng.integers(1, 6, rows).tolist(),
        "p": y.tolist(),
        "a": a.tolist(),
    }
    columns["item"][:3] = ["i0", "i0", "i1"]
    columns["doubt"][:3], columns["skill"][:3] = [0.0] * 3, [1.0] * 3
    columns["item"][7] = "lone"
    columns["item"][-1] = "never said"
    for row in (3, 17, rows - 1):
        columns["said"][row] = columns["p"][row] = None
    columns["doubt"][17] = columns["skill"][rows - 1] = None
    for k, (p, prior) in enumerate(zip(SOFT, PRIORS, strict=True)):
        columns[p] = [None if said is None else said[k] for said in columns["p"]]
        columns[prior] = [x[k] for x in columns["a"]]
    return columns


def without(columns: Columns, *names: str) -> Columns:
    return {name: values for name, values in columns.items() if name not in names}


@cache
def learned(**doubt: str) -> Any:
    """A crowd that knows annotators, stated levels and what people say where a label is true."""
    from slencodings.trust import Ridge, learn_crowd

    said: Roles = {"item": "item", "annotator": "who", "label": "said"}
    said |= doubt or {"confidence": "sure"}
    columns = without(crowd_table(), "p", "a")
    annotations = from_table(columns, **said, confidence_scale=None, missing="drop")
    crowd = learn_crowd(annotations, ridge=Ridge(0.1, 0.1, 0.1, 0.1))
    return replace(crowd, through_truth=0.3)


def learned_softly() -> Any:
    return replace(learned(), labels=np.asarray(SOFT, dtype=object))


def one_hot(said: Sequence[Any], labels: Sequence[Any] = LABELS) -> np.ndarray:
    """Labels as vectors; NaN where there is none."""
    vectors = np.eye(len(labels))
    nothing = np.full(len(labels), np.nan)
    return np.stack([vectors[labels.index(v)] if v in labels else nothing for v in said])


def soft(p: Sequence[Any]) -> np.ndarray:
    return np.stack([np.full(3, np.nan) if x is None else np.asarray(x) for x in p])


FUSE = {
    "cumulative": fuse,
    "average": fuse_average,
    "weighted": fuse_weighted,
    "constraint": fuse_constraint,
}


def fuse_items(
    item: Sequence[Any],
    y: np.ndarray,
    *,
    uncertainty: Any = 0.0,
    reliability: Any = 1.0,
    base_rate: Any = None,
    smoothing: float = 0.01,
    operator: str = "cumulative",
) -> dict[Any, Opinion]:
    """Item after item in arrays, Eqs. 5, 4, 11 and 6 in turn; NaN in `y` is no annotation.

    A missing annotation is vacuous, which cumulative fusion does not mind; others must drop it.
    """
    missing = np.asarray(np.isnan(y).any(-1))
    u = np.where(missing, 1.0, np.asarray(uncertainty, dtype=float))
    r = np.where(missing, 1.0, np.asarray(reliability, dtype=float))
    y = np.where(missing[:, None], 1 / y.shape[1], y)
    said = smooth(discount(encode(y, u, base_rate=base_rate), r), smoothing)
    fused = {}
    for name in dict.fromkeys(item):
        here = np.asarray([i == name for i in item])
        some = here if operator == "cumulative" or missing[here].all() else here & ~missing
        fused[name] = FUSE[operator](said.rows(some))
    return fused


def in_order(columns: Columns, *by: str) -> Columns:
    order = sorted(range(len(columns[by[0]])), key=lambda i: [str(columns[n][i]) for n in by])
    return {name: [values[i] for i in order] for name, values in columns.items()}


def is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value != value


def assert_wide(
    engine: Engine, table: Any, expected: dict[Any, Opinion], labels: Sequence[Any] = LABELS
) -> None:
    """The table is of the engine's own kind and holds the opinions, by item if it is not lazy."""
    assert type(table) is engine.kind
    columns = engine.read(table)
    item = next(iter(columns))
    if not engine.lazy:
        assert columns[item] == sorted(expected)
    columns = in_order(columns, item)
    items = sorted(expected, key=str)
    assert columns[item] == items
    for k, label in enumerate(labels):
        for kind in ("belief", "probability", "base_rate"):
            if f"{kind}_{label}" in columns:
                values = [getattr(expected[i], kind)[k] for i in items]
                assert_close(np.asarray(columns[f"{kind}_{label}"]), np.asarray(values))
    uncertainty = [expected[i].uncertainty for i in items]
    assert_close(np.asarray(columns["uncertainty"]), np.asarray(uncertainty))


def assert_long(
    engine: Engine, table: Any, expected: dict[Any, Opinion], labels: Sequence[Any] = LABELS
) -> Columns:
    """Every label that is believed has its row; an item without any has one without label.

    Returns the columns, which are computed once.
    """
    assert type(table) is engine.kind
    columns = engine.read(table)
    if not engine.lazy:
        assert columns["item"] == sorted(columns["item"])
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    found = {(row["item"], None if is_missing(row["label"]) else row["label"]): row for row in rows}
    assert len(found) == len(rows)
    believed = {
        (item, label)
        for item, opinion in expected.items()
        for label, b in zip(labels, opinion.belief, strict=True)
        if b > 1e-15  # What is true leaves one label nothing, up to rounding.
    }
    vacuous = {(item, None) for item in expected if item not in {i for i, _ in believed}}
    assert believed <= set(found)
    assert {(item, label) for item, label in found if label is None} == vacuous
    for (item, label), row in found.items():
        b, u, _ = expected[item]
        k = labels.index(label) if label is not None else None
        assert_close(np.asarray(row["uncertainty"]), np.asarray(u))
        assert_close(np.asarray(row["belief"]), np.asarray(0.0 if k is None else b[k]))
        if k is not None and "probability" in row:
            assert_close(np.asarray(row["probability"]), np.asarray(expected[item].probability[k]))
    return columns


FORMS: dict[Form, Callable[..., object]] = {"wide": assert_wide, "long": assert_long}
