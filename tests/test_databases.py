"""Tables in PostgreSQL and SQLite: fused and encoded there, with the numbers of the arrays."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crowd_files import Roles, assert_same_table, skilled_table
from engines import (
    LABELS,
    PRIORS,
    SKILLS,
    SOFT,
    Columns,
    crowd_table,
    in_order,
    learned,
    learned_softly,
    without,
)
from flat import encode_file, encode_in_database
from postgres import server
from running import Sle

from slencodings import from_table, fuse_table
from slencodings.files.write import literal
from slencodings.tables import fuse_evidence
from slencodings.trust import Ridge, crowd_to_json, learn_crowd, sample_items

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
        self.connection.raw_sql(f"DROP TABLE IF EXISTS {name}")
        return self.connection.create_table(name, ibis.memtable(pa.table(columns)))


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


def learned_by_doubt() -> Any:
    return learned(uncertainty="doubt")


LEARNED = NAMED | {"annotator": "who", "confidence": "sure", "crowd": learned}
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


def test_a_sample_to_learn_from_is_the_same_in_postgres(postgres: str) -> None:
    """SQLite divides in floating point, so that its sample is another."""
    connection = ibis.connect(postgres)
    columns = {name: crowd_table()[name] for name in ("item", "who", "said")}
    said: Roles = {"item": "item", "annotator": "who"}
    how = {"share": 0.5, "per_annotator": 1}
    expected = from_table(sample_items(pl.DataFrame(columns), **said, **how), **said, label="said")
    table = connection.create_table("sampled", ibis.memtable(pa.table(columns)))
    found = from_table(sample_items(table, **said, **how), **said, label="said")
    assert 0 < len(expected.items) < len(set(columns["item"]))
    for name in ("items", "annotators", "labels"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    connection.disconnect()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"confidence": "sure"}, r"must lie in \[0, 1\]; .* of 48 rows do not .* example [2-5]"),
        ({"labels": ["no", "yes"]}, "16 of 48 rows do not, for example 'maybe', item 'i"),
        ({"annotator": "who", "duplicates": "error"}, "20 rows repeat an earlier pair, such as"),
        ({"annotator": "who", "duplicates": "first"}, "need rows in an order, which ibis"),
    ],
)
def test_bad_values_are_counted_and_shown(
    database: Database, how: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        fuse_table(database.crowd, **(NAMED | how))


def test_evidence_is_fused_where_it_lies(database: Database) -> None:
    columns = {"item": ["a", "a", "b"], "label": ["x", "y", "y"], "evidence": [3.0, 1.0, 2.0]}
    columns["dogmatic"] = [0.0, 0.0, 1.0]
    assert_same_table(rows_of(fuse_evidence(database.put("sums", columns))), fuse_evidence(columns))


def test_numbers_too_small_to_write_are_nothing(postgres: str) -> None:
    """PostgreSQL stops at exp(-1000), which is 0 for everybody else."""
    connection = ibis.connect(postgres)
    rows = 4000
    columns = {
        "item": ["a"] * rows,
        "who": [f"w{i % 4}" for i in range(rows)],
        "said": ["no"] * (rows - 1) + ["yes"],
    }
    crowd = replace(learned(), share=np.ones(0), levels=np.zeros(0))
    crowd = replace(crowd, model=crowd.model._replace(correlation=0.0))
    how = NAMED | {"annotator": "who", "crowd": crowd, "reading": "truth"}
    table = connection.create_table("many", ibis.memtable(pa.table(columns)))
    found = rows_of(fuse_table(table, **how))
    assert_same_table(found, fuse_table(pl.DataFrame(columns), **how).to_dict(as_series=False))
    connection.disconnect()


# Encoding


@cache
def skilled_crowd() -> str:
    """What is learned of the people of `skilled_table`, as it is stored."""
    people = from_table(skilled_table(), **COLUMNS)
    return crowd_to_json(learn_crowd(people, ridge=Ridge(0.1, 0.1, 0.1, 0.1)))


def encoded(database: Database, target: Path, **how: Any) -> Columns:
    encode_in_database(database.address, "people", str(target), **how)
    return pq.read_table(target).to_pydict()


def test_a_table_is_encoded_as_a_file_of_its_rows_is(database: Database, tmp_path: Path) -> None:
    table = skilled_table()
    database.put("people", table)
    source = tmp_path / "people.parquet"
    pq.write_table(pa.table(table), source)
    (tmp_path / "crowd.json").write_text(skilled_crowd())
    stored = {"weigh": str(tmp_path / "crowd.json"), "columns": {"confidence": 1}}
    for how in (
        {"weigh": "stated", "confidence_scale": (1, 3)},
        stored | {"reading": "votes"},
        stored | {"reading": "truth", "form": "long"},
    ):
        encode_file(str(source), str(tmp_path / "file.parquet"), **how)
        expected = pq.read_table(tmp_path / "file.parquet").to_pydict()
        assert_same_table(encoded(database, tmp_path / "table.parquet", **how), expected)
        about = encode_in_database(database.address, "people", into_table="opinions", **how)
        assert about["written"] == len(expected["item"])
        assert_same_table(rows_of(database.connection.table("opinions")), expected)
    kept = database.connection.table("slencodings_about").to_pyarrow().to_pylist()
    assert [row["name"] for row in kept] == ["opinions"]
    assert json.loads(kept[0]["about"])["reading"] == "truth"
    query = "SELECT * FROM people WHERE item <> 'i00';"
    encode_in_database(database.address, query, str(tmp_path / "q.csv"), **stored)
    assert len((tmp_path / "q.csv").read_text().splitlines()) == 40


COLUMNS: Roles = {"item": "item", "annotator": "annotator", "label": "label"}


def test_a_query_leaves_nothing_in_the_way_of_who_drops_its_table(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = ibis.connect(postgres)
    connection.create_table("asked", ibis.memtable(pa.table(skilled_table())))
    backend = type(connection)
    with monkeypatch.context() as patch:
        open_ones: list[Any] = []  # as if the server had not heard that we are gone
        patch.setattr(backend, "disconnect", lambda self: open_ones.append(self))
        how: dict[str, Any] = {"weigh": "stated", "columns": {"confidence": 1}}
        encode_in_database(postgres, "SELECT * FROM asked", str(tmp_path / "q.csv"), **how)
    assert len(open_ones) == 1
    connection.raw_sql("SET lock_timeout = '5s'")
    connection.raw_sql("DROP TABLE asked")
    for one in (*open_ones, connection):
        one.disconnect()


def test_a_table_is_replaced_in_one_transaction_or_not_at_all(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.put("people", skilled_table())
    how: dict[str, Any] = {"weigh": "stated", "columns": {"confidence": 1}}
    encode_in_database(database.address, "people", into_table="kept", **how)
    before = rows_of(database.connection.table("kept"))

    def fail(text: str) -> str:
        if text.startswith("{"):  # The new table is there, and how it was made is yet to be said.
            raise RuntimeError("killed")
        return literal(text)

    with monkeypatch.context() as patch:
        patch.setattr("slencodings.files.database.literal", fail)
        with pytest.raises(RuntimeError, match="killed"):
            encode_in_database(database.address, "people", into_table="kept", **how, smoothing=0.5)
    assert rows_of(database.connection.table("kept")) == before
    with pytest.raises(ValueError, match="only a table of opinions is replaced; 'people' is there"):
        encode_in_database(database.address, "people", into_table="people", **how)


def test_what_a_database_cannot_do_is_said(database: Database, tmp_path: Path) -> None:
    database.put("people", skilled_table())
    target = str(tmp_path / "out.csv")
    for table, out, how, words in (
        ("peopel", target, {}, "no table 'peopel' in the database; it has .* mean 'people'"),
        ("people", None, {}, "a file or a table of the same database; neither came"),
        ("people", target, {"into_table": "x"}, "same database; both came"),
        ("people", target, {"confidence_scale": "calibrated"}, "`calibrated` came. Name the ends"),
        ("SELECT nothing FROM people", target, {}, r"refused: .*nothing.* Nothing was written"),
    ):
        with pytest.raises((ValueError, OSError), match=words):
            encode_in_database(database.address, table, out, **how)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("types", "odd", "words"),
    [
        ("TEXT, TEXT, REAL", ("x", "no", "high"), "'sure' must hold .*, real; 1 of 3 rows hold "
         "text, for example 'high'. Mend them, or say .* CAST\\(\"sure\" AS TEXT\\)"),
        ("TEXT, TEXT, REAL", ("x", b"no", 1.0), "'said' must hold .*, text; 1 of 3 rows hold blob"),
        ("TEXT, TEXT, INTEGER", ("x", "no", 0.5), "integer; 1 of 3 rows hold real, for example "
         "'0.5'. .* CAST\\(\"sure\" AS REAL\\)"),
        ("TEXT, BOOLEAN, REAL", ("x", "no", 1.0), "'said' must hold .*, integer; 3 of 3 rows"),
        (", , ", (7, "no", 1.0), "'item' must hold .*, text; 1 of 3 rows hold integer"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("weigh", ["stated", "learned"])
def test_values_that_sqlite_keeps_against_their_type_are_not_lost(
    types: str, odd: tuple[Any, ...], words: str, weigh: str, tmp_path: Path
) -> None:
    columns = zip(("item", "said", "sure"), types.split(", "), strict=True)
    with closing(sqlite3.connect(tmp_path / "labels.db")) as connection:
        connection.execute(f"CREATE TABLE labels ({', '.join(map(' '.join, columns))})")
        rows = [("a", "yes", 1), ("a", "no", 1), odd]
        connection.executemany("INSERT INTO labels VALUES (?, ?, ?)", rows)
        connection.commit()
    address = f"sqlite:///{tmp_path}/labels.db"
    how: dict[str, Any] = {"item": "item", "label": "said", "confidence": "sure", "weigh": weigh}
    with pytest.raises(ValueError, match=words):
        encode_in_database(address, "labels", str(tmp_path / "targets.csv"), **how)
    with pytest.raises(ValueError, match=words):
        from_table(ibis.sqlite.connect(tmp_path / "labels.db").table("labels"),
                   item="item", label="said", confidence="sure")  # fmt: skip
    as_it_is = "SELECT CAST(item AS TEXT) item, CAST(said AS TEXT) said, 1 sure FROM labels"
    encode_in_database(address, as_it_is, str(tmp_path / "targets.csv"), **how)
    assert str(odd[0]) in (tmp_path / "targets.csv").read_text()


def test_a_file_that_is_no_database_is_said(sle: Sle, tmp_path: Path) -> None:
    (tmp_path / "labels.db").write_text("item,label\na,yes\n" * 99)
    run = sle("encode", "sqlite:///labels.db", "--table", "labels", "-o", "targets.csv")
    assert run.code == 1
    assert "labels.db cannot be read as a database of SQLite: file is not a database" in run.err
    assert "type its name alone: sle encode FILE -o OUT" in run.err


def test_what_a_database_gives_and_nobody_can_hold_is_said(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "labels.db")) as connection:
        connection.execute("CREATE TABLE labels (item STRANGE, said TEXT)")
        connection.executemany("INSERT INTO labels VALUES (?, ?)", [(1, "yes"), (1, "no")])
        connection.commit()
    address = f"sqlite:///{tmp_path}/labels.db"
    with pytest.raises(OSError, match=r"the database sqlite refused: .* Nothing was written"):
        encode_in_database(address, "labels", "x.csv", item="item", label="said", weigh="stated")


def test_a_database_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no database 'x.db'. sqlite:///labels.db is"):
        encode_in_database("sqlite:///x.db", "people", "out.csv")
    address = f"postgresql://me:secret@/db?host={tmp_path}"
    with pytest.raises(
        ConnectionError, match=r"postgresql://me@/db\?host=.* cannot be reached"
    ) as e:
        encode_in_database(address, "people", "out.csv")
    assert "secret" not in str(e.value)
    monkeypatch.setitem(sys.modules, "ibis", None)
    with pytest.raises(ImportError, match=r"pip install 'slencodings\[postgres\]'"):
        encode_in_database("postgresql://here/db", "people", "out.csv")


def test_what_ibis_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        raise ImportError("Failed.\n\nYou can\n install it") from ImportError(f"no {name} driver")

    backends = ModuleType("ibis")
    vars(backends)["__getattr__"] = load
    monkeypatch.setitem(sys.modules, "ibis", backends)
    with pytest.raises(ImportError, match=r"no postgres driver\. Install what can: pip install"):
        encode_in_database("postgresql://here/db", "people", "out.csv")


def test_sle_encode_reads_a_database(sle: Sle, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/crowd.db"
    connection = ibis.sqlite.connect(tmp_path / "crowd.db")
    connection.create_table("people", ibis.memtable(pa.table(skilled_table())))
    connection.disconnect()
    run = sle("encode", address, "--table", "people", "-o", "-")
    assert run.code == 0, run.err
    assert run.out.startswith("item,belief_a,")
    assert "read     people: 160 rows, 3 labels: a, b, c" in run.err
    how = ("--weigh", "stated", "--confidence-scale", "1-3")
    run = sle("encode", address, "--table", "people", "--into-table", "opinions", *how)
    assert "wrote    opinions: 40 rows, wide: probability by votes as stated, cumulative" in run.err
    for words, message in (
        ((address, "-o", "x.csv"), "`--table annotations`; no table came"),
        ((address, "y.csv", "--table", "t", "-o", "x.csv"), "2 inputs came"),
        (("y.csv", "--table", "t", "-o", "x.csv"), "it is for a database"),
        ((address, "--table", "t", "--into", "s.parquet"), "it is not for `a database`"),
    ):
        run = sle("encode", *words)
        assert (run.code, message in " ".join(run.err.replace("│", "").split())) == (2, True)
