"""Tables in PostgreSQL and SQLite: fused and encoded there, with the numbers of the arrays."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from crowd_files import Roles, assert_same_table
from engines import LABELS, PRIORS, SKILLS, SOFT, Columns, crowd_table, in_order, without
from postgres import server

from slencodings import from_table, fuse_table
from slencodings.trust import Ridge, learn_crowd

ibis = pytest.importorskip("ibis", reason="pip install 'slencodings[postgres,sqlite]'")

# Ibis sets an option of pandas that will go.
pytestmark = pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")

NAMED: Roles = {"item": "item", "label": "said"}
NUMBERS: Roles = {"uncertainty": "doubt", "reliability": "skill"}


class Database(NamedTuple):
    """An address, the connection of a test to it, and a crowd in a table of it."""

    address: str
    connection: Any
    crowd: Any

    def put(self, name: str, columns: Columns) -> Any:
        table = ibis.memtable(pa.table(columns))
        return self.connection.create_table(name, table, overwrite=True)


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with server() as address:
        yield address


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Database]:
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("sqlite") / "crowd.db"
        address, connection = f"sqlite:///{path}", ibis.sqlite.connect(path)
    else:
        address = request.getfixturevalue("postgres")
        connection = ibis.connect(address)
    # Columns of lists are for PostgreSQL alone, and Ibis cannot put them there.
    columns = pa.table(without(crowd_table(), "p", "a"))
    crowd = connection.create_table("crowd", ibis.memtable(columns))
    yield Database(address, connection, crowd)
    connection.disconnect()


def rows_of(table: Any) -> Columns:
    columns = table.to_pyarrow().to_pydict()
    return in_order(columns, *[n for n in list(columns)[:2] if n in (next(iter(columns)), "label")])


def learned(**how: Any) -> Any:
    """A crowd that knows annotators, stated levels and what people say where a label is true."""
    said: Roles = {"item": "item", "annotator": "who", "label": "said"} | how
    columns = without(crowd_table(), "p", "a")
    annotations = from_table(columns, **said, confidence_scale=None, missing="drop")
    crowd = learn_crowd(annotations, ridge=Ridge(0.1, 0.1, 0.1, 0.1))
    return replace(crowd, through_truth=0.3)


def learned_softly() -> Any:
    return replace(learned(confidence="sure"), labels=np.asarray(SOFT, dtype=object))


def learned_by_doubt() -> Any:
    return learned(uncertainty="doubt")


def learned_as_stated() -> Any:
    return learned(confidence="sure")


LEARNED = NAMED | {"annotator": "who", "confidence": "sure", "crowd": learned_as_stated}
CASES: dict[str, dict[str, Any]] = {
    "smooth": NAMED | NUMBERS,
    "certain": NAMED | NUMBERS | {"smoothing": 0.0},
    "certain, long": NAMED | NUMBERS | {"smoothing": 0.0, "form": "long"},
    "soft": NUMBERS | {"item": "item", "label": SOFT},
    "soft, long": NUMBERS | {"item": "item", "label": SOFT, "form": "long"},
    "average": NAMED | NUMBERS | {"operator": "average", "smoothing": 0.0},
    "weighted, long": NAMED | NUMBERS | {"operator": "weighted", "form": "long"},
    "constraint": NAMED | NUMBERS | {"operator": "constraint"},
    "constraint, long": NAMED | NUMBERS | {"operator": "constraint", "form": "long"},
    "evidence": NAMED | NUMBERS | {"form": "evidence", "prior_weight": 3.0},
    "base rates by row": NAMED | {"labels": LABELS, "base_rate": PRIORS},
    "base rates, long": NAMED | NUMBERS | {"base_rate": [0.2, 0.5, 0.3], "form": "long"},
    "all values": NAMED
    | NUMBERS
    | {"values": ["alpha", "evidence", "base_rate", "uncertainty"], "smoothing": 0.0},
    "mappings": NAMED | {"annotator": "who", "confidence": SKILLS, "reliability": SKILLS},
    "a scale": NAMED | {"confidence": "sure", "confidence_scale": (5, 1), "reliability": 0.7},
    "missing, dropped": NAMED
    | {"annotator": "who", "reliability": {"ann": 0.9, "bob": 0.2}, "missing": "drop"},
    "missing, trusted": NAMED
    | {"annotator": "who", "reliability": {"ann": 0.9}, "missing": "trust"},
    "crowd": LEARNED,
    "crowd, long": LEARNED | {"form": "long"},
    "crowd, truth": LEARNED | {"reading": "truth"},
    "crowd, truth, long": LEARNED | {"reading": "truth", "form": "long"},
    "crowd, truth, soft": LEARNED | {"label": SOFT, "reading": "truth", "crowd": learned_softly},
    "crowd, evidence": LEARNED | {"form": "evidence"},
    "crowd, by doubt": NAMED
    | {"annotator": "who", "uncertainty": "doubt", "missing": "drop", "crowd": learned_by_doubt},
}


@pytest.mark.parametrize("case", CASES)
def test_databases_fuse_as_other_engines_do(database: Database, case: str) -> None:
    how = {k: v() if k == "crowd" else v for k, v in CASES[case].items()}
    table = fuse_table(database.crowd, **how)
    assert type(table) is type(database.crowd)
    assert table.get_backend() is database.connection  # nothing was fetched
    expected = fuse_table(pl.DataFrame(without(crowd_table(), "p", "a")), **how)
    by = [name for name in expected.columns[:2] if name in ("item", "label")]
    assert_same_table(rows_of(table), in_order(expected.to_dict(as_series=False), *by))
