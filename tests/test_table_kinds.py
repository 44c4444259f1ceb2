"""Which kinds of table may come in, with which types and names, and what comes back."""

import datetime as dt
import json
import uuid
from decimal import Decimal
from typing import Any, cast

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from crowd_files import Roles
from engines import (
    CORE,
    ENGINES,
    Columns,
    Engine,
    assert_long,
    assert_wide,
    core_engines,
    every_engine,
    every_engine_but_dask,
    fuse_items,
    in_order,
    is_missing,
    one_hot,
)
from strategies import assert_close

from slencodings import Opinion, dense, encode, from_table, fuse_table

SMALL: Columns = {
    "item": ["b", "a", "b", "c"],
    "who": ["ann", "bob", "bob", "ann"],
    "said": ["yes", "no", "no", None],
    "doubt": [0.1, 0.2, 0.3, None],
}
WORDS = ["no", "yes"]
DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
NAMED: Roles = {"item": "item", "label": "said"}


def expect(columns: Columns, labels: list[Any] = WORDS, **how: Any) -> dict[Any, Opinion]:
    how = {"uncertainty": columns["doubt"]} | how
    return fuse_items(columns["item"], one_hot(columns["said"], labels), **how)


def test_the_result_says_how_it_was_made() -> None:
    how = {"operator": "weighted", "smoothing": 0.05, "labels": WORDS}
    frame = fuse_table(pd.DataFrame(SMALL), **NAMED, **how)
    assert frame.attrs["slencodings"] == {
        "operator": "weighted",
        "smoothing": 0.05,
        "prior_weight": 2.0,
        "base_rate": [0.5, 0.5],
        "labels": ["no", "yes"],
        "form": "wide",
    }
    table = fuse_table(pa.table(SMALL), **NAMED, **how)
    assert json.loads(table.schema.metadata[b"slencodings"]) == frame.attrs["slencodings"]
    days = SMALL | {"said": [*DAYS, DAYS[1], None]}
    described = fuse_table(pa.table(days), **NAMED).schema.metadata[b"slencodings"]
    assert json.loads(described)["labels"] == ["2026-01-01", "2026-01-02"]


def _counted_polars(columns: Columns, seen: list[int]) -> pl.LazyFrame:
    return pl.LazyFrame(columns).map_batches(lambda frame: (seen.append(len(frame)), frame)[1])


def _counted_dask(columns: Columns, seen: list[int]) -> dd.DataFrame:
    frame = ENGINES["dask"](columns)
    count = lambda part: (seen.append(len(part)), part)[1]  # noqa: E731
    return frame.map_partitions(count, meta=frame._meta)


def _counted_duckdb(columns: Columns, seen: list[int]) -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.create_function(
        "seen", lambda name: (seen.append(1), name)[1], ["VARCHAR"], "VARCHAR", side_effects=True
    )
    source = pa.table(columns)  # noqa: F841 (the query reads it)
    return connection.sql("SELECT seen(item) AS item, * EXCLUDE item FROM source")


@pytest.mark.parametrize(
    ("name", "make"),
    [("polars-lazy", _counted_polars), ("dask", _counted_dask), ("duckdb-own", _counted_duckdb)],
    ids=["polars", "dask", "duckdb"],
)
def test_lazy_tables_are_read_once_to_count_and_then_when_asked(name: str, make: Any) -> None:
    seen: list[int] = []
    table = make(SMALL, seen)
    seen.clear()  # Dask tries functions out
    result = fuse_table(table, **NAMED, uncertainty="doubt", labels=WORDS)
    assert sum(seen) == len(SMALL["item"])
    assert_wide(ENGINES[name], result, expect(SMALL), WORDS)
    assert sum(seen) > len(SMALL["item"])


@every_engine
def test_items_keep_their_name_and_their_type(engine: Engine) -> None:
    columns = {"post id": [3, 1, 3, 2**60], "said": SMALL["said"]}
    result = fuse_table(engine(columns), item="post id", label="said")
    items = engine.read(result)["post id"]
    assert sorted(items) == [1, 3, 2**60]
    assert {type(item) for item in items} == {int}


@pytest.mark.parametrize("form", ["wide", "long", "evidence"])
@every_engine_but_dask
def test_items_without_any_worth_stay_and_are_vacuous(engine: Engine, form: Any) -> None:
    columns: Columns = {
        "item": ["said", "missing", "dropped", "nobody", "worthless", "said"],
        "who": ["ann", "ann", "ann", None, "ann", None],
        "label": ["yes", None, "no", "no", "no", None],
        "skill": [0.5, 1.0, None, 1.0, 0.0, None],
    }
    result = fuse_table(
        engine(columns),
        item="item",
        label="label",
        annotator="who",
        reliability="skill",
        missing="drop",
        form=form,
    )
    rows = in_order(engine.read(result), "item")
    assert rows["item"] == ["dropped", "missing", "nobody", "said", "worthless"]
    if form == "evidence":
        assert [e > 0 for e in rows["evidence"]] == [False, False, False, True, False]
    else:
        assert [u == 1 for u in rows["uncertainty"]] == [True, True, True, False, True]
    if form != "wide":
        assert [is_missing(v) for v in rows["label"]] == [True, True, True, False, True]


def test_items_without_any_worth_stay_on_dask() -> None:
    engine = ENGINES["dask"]
    columns = {
        "item": list("abcb"),
        "label": ["yes", None, "no", None],
        "skill": [1.0, None, 0.0, 1.0],
    }
    expected = fuse_items(
        columns["item"], one_hot(columns["label"], WORDS), reliability=columns["skill"]
    )
    result = fuse_table(
        engine(columns), item="item", label="label", reliability="skill", form="long"
    )
    assert_long(engine, result, expected, WORDS)


@core_engines
def test_a_hundred_thousand_annotations_of_one_item_are_added_up(engine: Engine) -> None:
    rng = np.random.default_rng(0)
    rows = 100_000
    columns = {
        "item": ["much"] * rows + ["little"],
        "said": rng.choice(WORDS, rows + 1).tolist(),
        "doubt": rng.uniform(0, 1, rows + 1).tolist(),
    }
    result = fuse_table(engine(columns), **NAMED, uncertainty="doubt")
    assert_wide(engine, result, expect(columns), WORDS)


@pytest.mark.parametrize(
    ("said", "labels"),
    [
        (["yes", "no", "no", None], ["no", "yes"]),
        ([1, 0, 0, None], [0, 1]),
        ([1.0, 0.0, 0.0, float("nan")], [0, 1]),
        ([1.0, 0.5, 0.5, None], [0.5, 1.0]),
        (["10", "9", "9", None], ["9", "10"]),
        ([True, False, False, True], [False, True]),
        (["", "naïve \"x\" 'y'", "", None], ["", "naïve \"x\" 'y'"]),
        (["x" * 300, "日本", "日本", None], ["x" * 300, "日本"]),
        ([*DAYS, DAYS[1], None], DAYS),
    ],
    ids=["text", "int", "nan", "half", "digits", "bool", "quoted", "unicode", "date"],
)
@every_engine_but_dask
def test_labels_may_be_of_any_kind(engine: Engine, said: list[Any], labels: list[Any]) -> None:
    columns = SMALL | {"said": said}
    expected, table = expect(columns | {"doubt": [0.0] * 4}, labels), engine(columns)
    assert_wide(engine, fuse_table(table, **NAMED), expected, labels)
    assert_wide(engine, fuse_table(table, **NAMED, labels=labels), expected, labels)
    if not isinstance(labels[0], dt.date):  # pandas and NumPy make times of dates
        assert_long(engine, fuse_table(table, **NAMED, form="long"), expected, labels)
    codes = from_table(table, **NAMED)
    assert codes.y.tolist() == [labels.index(v) for v in said if v in labels]
    assert [str(v) for v in codes.labels.tolist()] == [str(v) for v in labels]


def test_whole_numbers_among_nulls_are_labels_on_dask_too() -> None:
    """They stay floats in the long form, as Dask has no whole numbers among nulls."""
    engine, columns = ENGINES["dask"], {"item": list("babc"), "said": [1, 0, 0, None]}
    expected = fuse_items(columns["item"], one_hot(columns["said"], [0, 1]))
    assert_wide(engine, fuse_table(engine(columns), **NAMED), expected, [0, 1])
    assert_long(engine, fuse_table(engine(columns), **NAMED, form="long"), expected, [0, 1])


def test_columns_of_probabilities_may_be_part_of_an_index() -> None:
    table = pd.DataFrame({"item": ["a", "b"], "p": [0.5, 1.0], "q": [0.5, 0.0]})
    result = fuse_table(table, item="item", label=cast(Any, table.columns[1:]), smoothing=0)
    assert result["belief_p"].tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "float32", "Int64", "Float64", "boolean"]
)
def test_pandas_types_of_all_widths_are_labels(dtype: str) -> None:
    series = pd.Series([1, 0, 0, 1], dtype=dtype)
    table = pd.DataFrame({"item": [1, 1, 2, 2], "said": series})
    labels = [False, True] if dtype == "boolean" else [0, 1]
    for given in (None, labels):
        result = fuse_table(table, **NAMED, labels=given)
        assert result[f"belief_{labels[1]}"].gt(0).tolist() == [True, True]


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(["yes", "no", "no", None], ["no", "yes", "never used"]),
        pl.Series(["yes", "no", "no", None], dtype=pl.Categorical),
        pl.Series(["yes", "no", "no", None], dtype=pl.Enum(["yes", "no", "never used"])),
        pa.array(["yes", "no", "no", None]).dictionary_encode(),
    ],
    ids=["pandas", "polars", "polars enum", "pyarrow"],
)
def test_categories_are_the_labels_that_were_used(column: Any) -> None:
    columns = SMALL | {"said": column, "who": column}
    kind = {"Categorical": "pandas", "Series": "polars"}.get(type(column).__name__, "pyarrow")
    engine = ENGINES[kind]
    for labels in (None, ["no", "yes"]):
        result = fuse_table(engine(columns), **NAMED, uncertainty="doubt", labels=labels)
        assert_wide(engine, result, expect(SMALL), WORDS)
    trust = {"annotator": "who", "reliability": {"yes": 0.5, "no": 1.0}, "missing": "trust"}
    result = fuse_table(engine(columns), **NAMED, uncertainty="doubt", **trust)
    expected = expect(SMALL, reliability=[0.5, 1.0, 1.0, 1.0])
    assert_wide(engine, result, expected, WORDS)


@pytest.mark.parametrize(
    "items",
    [
        [uuid.UUID(int=n) for n in (2, 1, 2, 3)],
        [dt.datetime(2026, 1, n, tzinfo=dt.UTC) for n in (2, 1, 2, 3)],
        [dt.date(2026, 1, n) for n in (2, 1, 2, 3)],
        [False, True, False, False],
        [b"b", b"a", b"b", b"c"],
    ],
    ids=["uuid", "time with zone", "date", "bool", "bytes"],
)
# DuckDB calls a method that pandas is about to change.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
@every_engine_but_dask
def test_items_may_be_of_any_kind(engine: Engine, items: list[Any]) -> None:
    if isinstance(items[0], uuid.UUID) and engine.name.startswith("polars"):
        pytest.skip("Polars holds UUIDs as objects, which it cannot group")
    columns = SMALL | {"item": items}
    result = engine.read(fuse_table(engine(columns), **NAMED, uncertainty="doubt"))
    expected = list(expect(columns).values())
    found, wanted = result["uncertainty"], [opinion.uncertainty for opinion in expected]
    assert_close(np.sort(found), np.sort(wanted))
    assert len(from_table(engine(columns), **NAMED).items) == len(set(items))


@pytest.mark.parametrize(
    "skill",
    [
        [True, False, True, None],
        [1, 0, 1, None],
        [Decimal("1.00"), Decimal("0.00"), Decimal("1"), None],
    ],
    ids=["bool", "int", "decimal"],
)
@every_engine_but_dask
def test_numbers_may_be_of_any_kind(engine: Engine, skill: list[Any]) -> None:
    result = fuse_table(engine(SMALL | {"skill": skill}), **NAMED, reliability="skill")
    expected = expect(SMALL, uncertainty=0.0, reliability=[1.0, 0.0, 1.0, 1.0])
    assert_wide(engine, result, expected, WORDS)


@every_engine_but_dask
def test_columns_that_are_null_in_all_rows_are_missing(engine: Engine) -> None:
    nothing = [None] * 4
    columns = SMALL | {"skill": nothing, "silent": nothing}
    result = fuse_table(engine(columns), **NAMED, reliability="skill", missing="trust")
    assert_wide(engine, result, expect(SMALL, uncertainty=0.0), WORDS)
    for labels in (WORDS, [0, 1], [False, True]):
        result = fuse_table(engine(columns), item="item", label="silent", labels=labels)
        assert engine.read(result)["uncertainty"] == [1.0] * 3


HOSTILE = [
    'we "quote"',
    "it's",
    "a.b",
    "two words",
    "ñandú 日本",
    "sle_item",
    "sle_row",
    "sle_label",
    "sle_known",
    "sle_reliability",
    "t",
    "known",
    "n",
    "label",
    "select",
]


@pytest.mark.parametrize("first", range(len(HOSTILE)), ids=HOSTILE)
@pytest.mark.parametrize("engine", CORE[1:], ids=lambda e: e.name)
def test_columns_may_have_any_name(engine: Engine, first: int) -> None:
    trust = {"ann": 0.5, "bob": 0.9}
    expected = expect(SMALL, reliability=[trust[who] for who in SMALL["who"]])
    names = {role: (HOSTILE * 2)[first + n] for n, role in enumerate(SMALL)}
    columns = {names[role]: values for role, values in SMALL.items()} | {"unused": [[]] * 4}
    given: Roles = {
        "item": names["item"],
        "annotator": names["who"],
        "label": names["said"],
        "uncertainty": names["doubt"],
    }
    result = fuse_table(engine(columns), **given, reliability=trust, duplicates="last")
    assert_wide(engine, result, expected, WORDS)
    assert next(iter(engine.read(result))) == names["item"]
    codes = from_table(engine(columns), **given)
    assert codes.y.tolist() == [1, 0, 0]
    assert codes.uncertainty.tolist() == [0.1, 0.2, 0.3]


def test_tables_of_the_user_are_not_mistaken_for_ours() -> None:
    names = ("columns", "known", "t", "table", "pandas_df")
    for connection in (duckdb, duckdb.connect()):
        for name in names:
            connection.execute(f'CREATE TEMP TABLE "{name}" AS SELECT 0.25 AS wrong')
        try:
            source = pa.table(SMALL)
            tables = [connection.from_arrow(source), SMALL, pd.DataFrame(SMALL), source]
            for table in tables:
                codes = from_table(
                    table, **NAMED, annotator="who", uncertainty={"ann": 0.5, "bob": 0}
                )
                assert codes.uncertainty.tolist() == [0.5, 0.0, 0.0]
            assert connection.sql("FROM t").fetchall() == [(Decimal("0.25"),)]
        finally:
            for name in names:
                connection.execute(f'DROP TABLE "{name}"')


def test_arrays_of_any_make_are_columns() -> None:
    said = np.asarray(["yes", "no", "no"])
    expected = fuse_table({"item": [1, 2, 2], "said": said}, **NAMED, uncertainty=0.5)
    for items in (
        np.asarray([2, 2, 1])[::-1],
        np.asarray([1, 2, 2], dtype=">i4"),
        np.asarray([1, 9, 2, 9, 2])[::2],
        np.ma.masked_array([1, 2, 2]),
        pd.Series([1, 2, 2], dtype="Int64"),
        pl.Series([1, 2, 2]),
        (1, 2, 2),
        np.asarray(["2026-01-01", "2026-01-02", "2026-01-02"], dtype="datetime64[D]"),
        np.asarray(["1", "2", "2"], dtype=np.dtypes.StringDType()),
    ):
        for words in (said, said.astype(np.dtypes.StringDType()), said.tolist()):
            result = fuse_table({"item": items, "said": words}, **NAMED, uncertainty=0.5)
            assert_close(result["belief_no"], expected["belief_no"])


@core_engines
def test_a_mapping_may_know_thousands_of_annotators(engine: Engine) -> None:
    count = 5000
    columns = {
        "item": [q % 7 for q in range(200)],
        "who": [f"w{(q * 37) % count}" for q in range(200)],
        "said": [WORDS[q % 2] for q in range(200)],
    }
    skill = {f"w{m}": m / count for m in range(count)}
    trusted = [skill[who] for who in columns["who"]]
    expected = fuse_items(columns["item"], one_hot(columns["said"], WORDS), reliability=trusted)
    table = engine(columns)
    result = fuse_table(table, **NAMED, annotator="who", reliability=skill)
    assert_wide(engine, result, expected, WORDS)
    codes = from_table(table, **NAMED, annotator="who", uncertainty=skill)
    assert_close(codes.uncertainty, np.asarray(trusted))
    del skill["w74"]
    with pytest.raises(
        ValueError,
        match=r"1 of 200 rows are by one that it does not, first in row 3 of the data, item 2",
    ):
        fuse_table(table, **NAMED, annotator="who", reliability=skill)


@every_engine
def test_dense_gives_back_the_opinions_of_a_table(engine: Engine) -> None:
    a = np.asarray([0.3, 0.7])
    opinion = encode(np.asarray([[0.5, 0.5], [0.0, 1.0], [0.2, 0.8]]), [0.1, 1.0, 0.0], base_rate=a)
    b, u, _ = opinion
    columns = {
        "item": ["x", "y", "z"],
        "uncertainty": u.tolist(),
        "belief_no": b[:, 0].tolist(),
        "belief_yes": b[:, 1].tolist(),
    }
    items, labels, found = dense(engine(columns), base_rate=a)
    assert items.tolist() == ["x", "y", "z"]
    assert labels.tolist() == ["no", "yes"]
    assert_close(found, opinion)
    given = columns | {"base_rate_no": [0.3] * 3, "base_rate_yes": [0.7] * 3}
    assert_close(dense(engine(given))[2], opinion)


def test_dense_and_fuse_table_are_inverse_where_each_item_has_one_annotation() -> None:
    columns = {"item": [1, 2, 3], "said": ["yes", "no", "yes"], "doubt": [0.1, 0.5, 1.0]}
    table = fuse_table(pl.DataFrame(columns), **NAMED, uncertainty="doubt", smoothing=0)
    items, labels, opinion = dense(table)
    assert items.tolist() == [1, 2, 3]
    y = one_hot(columns["said"], labels.tolist())
    assert_close(opinion, encode(y, np.asarray(columns["doubt"])))
