"""The table engines in turn: how a table of each is made of Python lists, and read back."""

from collections.abc import Callable
from typing import Any, NamedTuple

import dask.dataframe as dd
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

Columns = dict[str, list[Any]]

# A connection that lives as long as the tests, beside DuckDB's default one.
CONNECTION = duckdb.connect()


class Engine(NamedTuple):
    """Calling it makes a table of columns; `read` makes columns of a table."""

    name: str
    kind: type
    make: Callable[[Columns], Any]
    read: Callable[[Any], Columns]
    ordered: bool = True
    lazy: bool = False

    def __call__(self, columns: Columns) -> Any:
        return self.make(columns)


def _from_pandas(table: pd.DataFrame) -> Columns:
    return {name: table[name].tolist() for name in table}


def _arrow_typed(columns: Columns) -> pd.DataFrame:
    return pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)


def _partitioned(columns: Columns) -> dd.DataFrame:
    return dd.from_pandas(pd.DataFrame(columns), npartitions=3, sort=False)


def _relation(connection: Any) -> Callable[[Columns], duckdb.DuckDBPyRelation]:
    return lambda columns: connection.from_arrow(pa.table(columns))


def _from_relation(table: duckdb.DuckDBPyRelation) -> Columns:
    return table.to_arrow_table().to_pydict()


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("dict", dict, dict, lambda t: {k: v.tolist() for k, v in t.items()}),
        Engine("pandas", pd.DataFrame, pd.DataFrame, _from_pandas),
        Engine("pandas-arrow", pd.DataFrame, _arrow_typed, _from_pandas),
        Engine("pyarrow", pa.Table, pa.table, lambda t: t.to_pydict()),
        Engine("polars", pl.DataFrame, pl.DataFrame, lambda t: t.to_dict(as_series=False)),
        Engine(
            "polars-lazy",
            pl.LazyFrame,
            pl.LazyFrame,
            lambda t: t.collect().to_dict(as_series=False),
            lazy=True,
        ),
        Engine("duckdb", duckdb.DuckDBPyRelation, _relation(duckdb), _from_relation, lazy=True),
        Engine(
            "duckdb-own",
            duckdb.DuckDBPyRelation,
            _relation(CONNECTION),
            _from_relation,
            lazy=True,
        ),
        Engine(
            "dask",
            dd.DataFrame,
            _partitioned,
            lambda t: _from_pandas(t.compute()),
            ordered=False,
            lazy=True,
        ),
    )
}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    return ENGINES[request.param]
