"""From a table of annotations in a database to opinions, in a file or in another table there.

The database does the work: the same expression as everywhere, through Ibis. A table is written in
one transaction, so others see the old one or the new one. In PostgreSQL all that is read is of one
moment, too: what was checked is what is fused.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from slencodings.choices import CsvStyle
from slencodings.files.job import choose_weighing, fuse_in_place, refuse_calibrated
from slencodings.files.write import (
    check_target,
    disk_errors,
    literal,
    quote,
    tell_written,
    workspace,
    writing,
)
from slencodings.progress import Say
from slencodings.tables.fuse import Fusing, Metadata
from slencodings.tables.roles import Reading, choose_columns, nearest

QUERY = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)
# Where a database keeps how its tables of opinions were made; only those are ever replaced.
ABOUT = "slencodings_about"
# Who raises where a database does not give what was asked of it.
_THEIRS = ("psycopg", "sqlite3", "ibis", "pyarrow", "pandas")


def encode_table(
    address: str,
    table: str,
    target: str | None = None,
    reading: Reading | None = None,
    fusing: Fusing | None = None,
    *,
    into_table: str | None = None,
    csv_style: CsvStyle = "plain",
    say: Say = lambda what, text: None,
) -> Metadata:
    """Fuse annotations where they are, in a database, and return how that was done.

    Parameters
    ----------
    address : postgresql://user@host/database, or sqlite:///file.db
    table : of annotations: a table or view, with its schema if it is in another than the usual
        one; or a query that gives them, SELECT ...
    target : a file for the opinions, as `encode_file` writes it
    into_table : or a table for them in the same database; one that is there is replaced if it is
        of opinions
    """
    reading, fusing = reading or Reading(), fusing or Fusing()
    if (target is None) == (into_table is None):
        raise ValueError(
            "an output is needed, a file or a table of the same database; "
            f"{'neither' if target is None else 'both'} came. Pass a target, or "
            "into_table='opinions'."
        )
    writer = "" if target is None else check_target(target, [], style=csv_style)
    refuse_calibrated(reading, "in memory, not by a database")
    weighing = choose_weighing(reading, fusing, say)
    with connected(address) as database, _plain_errors(database), _one_moment(database):
        source = _open(database, table)
        reading = choose_columns(source.columns, reading, learned=weighing.how != "stated", say=say)
        name = "the query" if QUERY.match(table) else table
        about = {"source": _public(address), "table": table}
        rows, frame, describe = fuse_in_place(
            source, reading, fusing, weighing, name=name, source=about, say=say
        )
        about = describe()
        opinions = rows.give_back(frame, about)
        if into_table is not None:
            about["written"] = _write_table(database, opinions, into_table, about)
        else:
            about["written"] = _write_file(opinions, str(target), writer, about)
    tell_written(into_table or str(target), about, say)
    return about


@contextmanager
def connected(address: str) -> Generator[Any]:
    """A database, as Ibis knows it."""
    sqlite = address.lower().startswith("sqlite")
    try:
        ibis: Any = import_module("ibis")
        backend: Any = ibis.sqlite if sqlite else ibis.postgres
    except (ImportError, AttributeError) as error:
        extra = "sqlite" if sqlite else "postgres"
        raise ImportError(
            # Ibis says how to install Ibis; its cause is what is missing.
            f"nothing here can reach such a database: {_first_line(error.__cause__ or error)}. "
            f"Install what can: pip install 'slencodings[{extra}]'"
        ) from error
    if sqlite:
        path = address.split("://", 1)[1].removeprefix("/")  # a fourth slash begins a path at /
        if not Path(path).is_file():
            raise FileNotFoundError(
                f"there is no database {path!r}. sqlite:///labels.db is a file here, "
                "sqlite:////data/labels.db one at /data."
            )
        try:
            database = backend.connect(path)
        except Exception as error:
            raise OSError(
                f"{path} cannot be read as a database of SQLite: {_first_line(error)}. If it is "
                "another kind of file, type its name alone: sle encode FILE -o OUT."
            ) from error
    else:
        try:
            database = ibis.connect(address)
        except Exception as error:
            raise ConnectionError(
                f"{_public(address)} cannot be reached: {_first_line(error)}. Check the address, "
                "postgresql://user@host:5432/database, and that the password is in it or where "
                "PostgreSQL looks for it (PGPASSWORD, ~/.pgpass)."
            ) from error
    try:
        yield database
    finally:
        database.disconnect()


def _public(address: str) -> str:
    """An address without its password."""
    parts = urlsplit(address)
    if parts.password is None:
        return address
    return parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1)).geturl()


def _first_line(error: BaseException) -> str:
    text = str(error.args[0] if len(error.args) > 1 else error)  # PyArrow adds where that was.
    return (text.strip().splitlines() or [type(error).__name__])[0].rstrip(".")


@contextmanager
def _plain_errors(database: Any) -> Generator[None]:
    """What a database refuses, in words for people."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(_THEIRS):
            raise
        raise OSError(
            f"the database {database.name} refused: {_first_line(error)}. Nothing was written."
        ) from error


def _open(database: Any, table: str) -> Any:
    """The table, view or query that was named."""
    if QUERY.match(table):
        # Of a view, which is gone in the end, a database says the columns and types.
        query = table.strip().rstrip(";")
        database.con.execute(f"CREATE TEMPORARY VIEW sle_query AS {query}")
        return database.table("sle_query", database=None if database.name == "postgres" else "temp")
    schema, _, name = table.rpartition(".")
    there: list[str] = database.list_tables(database=schema or None)
    if name not in there:
        near = nearest(name, there)
        meant = f" Did you mean {near!r}?" if near else ""
        raise ValueError(
            f"there is no table {table!r} in the database; it has "
            f"{', '.join(sorted(there)[:20]) or 'none'}.{meant}"
        )
    return database.table(name, database=schema or None)


def _write_file(opinions: Any, target: str, writer: str, about: Metadata) -> int:
    """The opinions as a file, sorted and described as all files of opinions are."""
    with disk_errors(), workspace() as (connection, folder):
        path = folder / "output.csv" if target == "-" else Path(target)
        relation = connection.from_arrow(opinions.to_pyarrow_batches())
        with writing(connection, relation, path, writer, about) as written:
            pass
        if target == "-":
            sys.stdout.write(path.read_text(encoding="utf-8"))
        return written


def _write_table(database: Any, opinions: Any, name: str, about: Metadata) -> int:
    """The opinions as a table that replaces one of opinions, in one transaction."""
    schema, _, plain = name.rpartition(".")
    place = f"{quote(schema)}.{quote(plain)}" if schema else quote(plain)
    # What is known of annotators goes to the database with a query; this one asks for no rows.
    opinions.limit(0).to_pyarrow()
    query = database.compile(opinions)
    there = plain in database.list_tables(database=schema or None)

    def run(statement: str) -> Any:
        cursor = database.con.cursor()
        cursor.execute(statement)
        return cursor

    with _transaction(database):
        run(f"CREATE TABLE IF NOT EXISTS {ABOUT} (name TEXT PRIMARY KEY, about TEXT)")
        ours = run(f"SELECT name FROM {ABOUT} WHERE name = {literal(name)}").fetchall()
        if there and not ours:
            raise ValueError(
                f"only a table of opinions is replaced; {name!r} is there and is none. Name "
                "another: into_table='opinions'."
            )
        run(f"DROP TABLE IF EXISTS {place}")
        run(f"CREATE TABLE {place} AS {query}")
        ((written,),) = run(f"SELECT count(*) FROM {place}").fetchall()
        how = literal(json.dumps(about | {"written": written}, default=str))
        run(f"DELETE FROM {ABOUT} WHERE name = {literal(name)}")
        run(f"INSERT INTO {ABOUT} VALUES ({literal(name)}, {how})")
    return int(written)


@contextmanager
def _one_moment(database: Any) -> Generator[None]:
    """Read everything as it is now, whoever writes meanwhile; SQLite can do so for a query only."""
    if database.name != "postgres":
        yield
        return
    with database.con.transaction():
        database.con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield
        # The server may hear later that we are gone, and until then nobody could drop its table.
        database.con.execute("DROP VIEW IF EXISTS pg_temp.sle_query")


@contextmanager
def _transaction(database: Any) -> Generator[None]:
    """What is done to the database comes true at the end, or not at all."""
    if database.name == "postgres":
        with database.con.transaction():
            yield
        return
    database.con.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.con.rollback()
        raise
    database.con.commit()
