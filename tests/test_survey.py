"""What is wrong with a table is said in words: what was needed, what came, and what to type."""

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from bad_tables import BAD, GOOD, NAN, PLAIN, WORDS
from crowd_files import Roles
from engines import (
    CORE,
    ENGINES,
    FORMS,
    Columns,
    Engine,
    assert_wide,
    core_engines,
    every_engine,
    every_engine_but_dask,
    fuse_items,
    one_hot,
)

from slencodings import dense, from_table, fuse_table


@core_engines
@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_clear_answer(engine: Engine, case: str) -> None:
    changed, given, words = BAD[case]
    table = engine(GOOD | changed)
    with pytest.raises(ValueError, match=words):
        fuse_table(table, **PLAIN | given)


@every_engine
def test_engines_agree_about_what_is_wrong(engine: Engine) -> None:
    for case in (
        "no such column",
        "item is NaN",
        "confidence is NaN",
        "uncertainty out of range",
        "a label not among them",
        "words for numbers",
        "a mapping that lacks some",
    ):
        changed, given, words = BAD[case]
        columns = {name: values for name, values in (GOOD | changed).items() if name != "list"}
        if not engine.ordered:
            words = words.split(", first")[0]
        with pytest.raises(ValueError, match=words):
            fuse_table(engine(columns), **PLAIN | given)


def test_dask_shows_an_example_that_has_no_row_number() -> None:
    columns = {name: values for name, values in GOOD.items() if name != "list"}
    table = ENGINES["dask"](columns | {"doubt": [0.0, 0.5, 1.5, None]})
    words = r"in column 'doubt', for example 1\.5, item 'b', annotator 'ann'\. If it"
    with pytest.raises(ValueError, match=words):
        fuse_table(table, **PLAIN, annotator="who", uncertainty="doubt")


@every_engine
def test_an_empty_table_is_said_to_be_empty(engine: Engine) -> None:
    columns = {name: [] if engine.name == "dict" else GOOD[name] for name in ("item", "said")}
    table = engine(columns)
    if engine.name in ("pandas", "pandas-arrow", "pyarrow", "polars"):
        table = table[:0]
    elif engine.lazy:
        table = table.query("item == ''") if engine.name == "dask" else table.limit(0)
    with pytest.raises(
        ValueError, match=r"the table has no rows; at least one annotation is needed"
    ):
        fuse_table(table, **PLAIN)


@pytest.mark.parametrize(
    "table", [{}, pd.DataFrame(), pl.DataFrame(), pa.table({})], ids=lambda t: type(t).__module__
)
def test_a_table_without_columns_is_said_to_have_none(table: Any) -> None:
    with pytest.raises(
        ValueError, match=r"no column 'item' for `item`; the table has no columns named"
    ):
        fuse_table(table, **PLAIN)


@pytest.mark.parametrize("table", ["crowd.csv", [{"item": 1}], 3, None, pd.Series([1, 2])], ids=str)
def test_what_is_no_table_is_named(table: Any) -> None:
    with pytest.raises(
        TypeError,
        match=rf"a table must be a pandas, .*; {type(table).__name__} came\. .*sle encode",
    ):
        fuse_table(table, **PLAIN)
    with pytest.raises(TypeError, match=r"a table must be a pandas, Polars"):
        from_table(table, **PLAIN)


@pytest.mark.parametrize("name", [name for name in ENGINES if not name.startswith("duckdb")])
def test_names_equal_up_to_case_are_refused(name: str) -> None:
    columns = {"item": ["a"], "Item": ["b"], "said": ["yes"]}
    with pytest.raises(
        ValueError,
        match=r"names must differ by more than case, .*; 'item' and 'Item' came\. Rename",
    ):
        fuse_table(ENGINES[name](columns), **PLAIN)


def test_a_relation_with_a_name_twice_is_refused() -> None:
    relation = duckdb.sql("SELECT 1 AS item, 2 AS item, 'yes' AS said")
    with pytest.raises(
        ValueError, match=r"must differ by more than case, .*; 'item' and 'item' came"
    ):
        fuse_table(relation, **PLAIN)


@pytest.mark.parametrize(
    "make", [dict, lambda c: pd.DataFrame(c, dtype=object)], ids=["dict", "pandas"]
)
def test_values_of_mixed_types_are_refused(make: Any) -> None:
    words = r"column 'item' must hold values of one type; number, str came, such as 1 and '1'\. "
    with pytest.raises(ValueError, match=words):
        fuse_table(make({"item": [1, "1", None], "said": ["yes", "no", "no"]}), **PLAIN)
    with pytest.raises(
        ValueError, match=r"column 'said' must hold values of one type; bool, number came"
    ):
        fuse_table(make({"item": [1, 1.5, 2], "said": [True, 0, None]}), **PLAIN)
    unused = make({"item": ["a", "a"], "said": ["yes", "no"], "note": [1, "one"]})
    assert len(fuse_table(unused, **PLAIN)["item"]) == 1


def test_columns_of_a_dict_must_be_equally_long() -> None:
    with pytest.raises(
        ValueError,
        match=r"columns must be equally long; \{'item': 2, 'said': 1\} came\. Write None",
    ):
        fuse_table({"item": [1, 2], "said": ["yes"]}, **PLAIN)
    with pytest.raises(
        ValueError, match=r"column 'said' must hold one value per row; .*yes.* came"
    ):
        fuse_table({"item": [1, 2], "said": np.asarray("yes")}, **PLAIN)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"item": pd.period_range("2026", periods=2, freq="D"), "said": [0, 1]}),
        pa.table({"item": pa.array([1, 2], pa.float16()), "said": [0, 1]}),
        {"item": np.asarray([1j, 2j]), "said": [0, 1]},
    ],
    ids=["period", "half precision", "complex"],
)
def test_types_that_no_engine_knows_are_refused(table: Any) -> None:
    words = (
        r"columns must hold text, numbers, dates or lists of numbers; one does not: .*Convert it"
    )
    with pytest.raises(ValueError, match=words):
        fuse_table(table, **PLAIN)


def test_a_table_that_changes_while_it_is_read_is_refused() -> None:
    # An item without a type of NumPy's, so that it is not read at once.
    relation = duckdb.sql("SELECT 1::HUGEINT AS item, uuid()::VARCHAR AS said FROM range(3)")
    words = r"must give the same rows each time it is read; this one does not.*Keep its rows first"
    with pytest.raises(ValueError, match=words):
        from_table(relation, **PLAIN)


def test_polars_objects_are_no_names() -> None:
    table = pl.DataFrame({"item": pl.Series([1j, 2j], dtype=pl.Object), "said": ["yes", "no"]})
    with pytest.raises(
        ValueError, match=r"column 'item' must hold names: .*; Object came\. Make them text"
    ):
        fuse_table(table, **PLAIN)


def test_as_many_labels_as_columns_can_hold_are_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slencodings.tables.sums.MOST_COLUMNS", 3)
    said = ["a", "b", "c", "d"]
    assert "belief_c" in fuse_table({"item": said[:3], "said": said[:3]}, **PLAIN)
    with pytest.raises(ValueError, match=r"takes at most 3 labels; 4 came"):
        fuse_table({"item": said, "said": said}, **PLAIN)


def test_more_labels_than_columns_can_hold_are_refused() -> None:
    said = list(range(1001))
    with pytest.raises(
        ValueError, match=r"takes at most 1000 labels; 1001 came\. Pass form='long'"
    ):
        fuse_table({"item": said, "said": said}, **PLAIN)
    assert len(fuse_table({"item": said, "said": said}, **PLAIN, form="long")["item"]) == 1001
    p = np.eye(1001)[:2]
    with pytest.raises(
        ValueError, match=r"soft labels in a table may be at most 1000; 1001 came\. Use arrays"
    ):
        fuse_table({"item": [1, 2], "p": p}, item="item", label="p")


@pytest.mark.parametrize("item", ["label", "Belief", "uncertainty", "dogmatic"])
def test_the_item_column_needs_a_name_of_its_own(item: str) -> None:
    columns = {item: ["a", "a"], "said": ["yes", "no"]}
    with pytest.raises(
        ValueError,
        match=rf"item column needs a name of its own in the long form; '{item}' came\. Rename",
    ):
        fuse_table(columns, item=item, label="said", form="long")
    if item == "uncertainty":
        with pytest.raises(
            ValueError, match=r"'uncertainty' and 'uncertainty' came\. Rename the label or the item"
        ):
            fuse_table(columns, item=item, label="said")


def test_dense_needs_a_wide_table_of_opinions() -> None:
    with pytest.raises(
        ValueError,
        match=r"wide table of opinions has the columns 'item', .*; 'item', 'said' came\. Make it",
    ):
        dense({"item": ["a"], "said": ["yes"]})


def test_first_and_last_are_refused_where_rows_have_no_order() -> None:
    table = ENGINES["dask"]({name: GOOD[name] for name in ("item", "who", "said")})
    with pytest.raises(
        ValueError,
        match=r"need rows in an order, which dask does not keep\. Sort and drop them there",
    ):
        fuse_table(table, **PLAIN, annotator="who", duplicates="last")


@every_engine
def test_nothing_is_said_of_duplicates_where_there_are_none(engine: Engine) -> None:
    columns = {name: GOOD[name] for name in ("item", "who", "said")}
    how: Roles = {"annotator": "who", "duplicates": "error"}
    result = fuse_table(engine(columns), **PLAIN, **how)
    assert_wide(engine, result, fuse_items(columns["item"], one_hot(columns["said"], WORDS)), WORDS)
    columns["item"] = ["a"] * 4
    with pytest.raises(
        ValueError, match=r"1 row repeats an earlier pair, such as item 'a' by annot"
    ):
        fuse_table(engine(columns), **PLAIN, **how)


REPEATED: Columns = {
    "item": ["a", "a", "a", "b", "a", "b", "b"],
    "who": ["ann", "ann", "bob", "ann", "ann", None, None],
    "said": ["yes", "no", "no", "yes", None, "no", "no"],
    "p": [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [1.0, 0.0], None, [0.5, 0.5], [0.4, 0.6]],
}


@pytest.mark.parametrize(("duplicates", "gone"), [("all", []), ("first", [1]), ("last", [0])])
@every_engine_but_dask
def test_repeated_annotations_are_kept_or_not(
    engine: Engine, duplicates: Any, gone: list[int]
) -> None:
    """A missing label repeats nothing, and rows without annotator are nobody's."""
    how: Roles = {"annotator": "who", "duplicates": duplicates, "missing": "trust"}
    y = one_hot(REPEATED["said"], WORDS)
    y[gone] = np.nan
    table = engine(REPEATED)
    result = fuse_table(table, **PLAIN, **how)
    assert_wide(engine, result, fuse_items(REPEATED["item"], y), WORDS)
    y = np.stack([[np.nan] * 2 if p is None else p for p in REPEATED["p"]])
    y[gone] = np.nan
    expected = fuse_items(REPEATED["item"], y)
    for form, assert_form in FORMS.items():
        result = fuse_table(table, item="item", label="p", labels=WORDS, form=form, **how)
        assert_form(engine, result, expected, WORDS)


@every_engine_but_dask
def test_soft_annotations_of_nobody_are_dropped_whole(engine: Engine) -> None:
    y = np.stack([[np.nan] * 2 if p is None else p for p in REPEATED["p"]])
    y[[who is None for who in REPEATED["who"]]] = np.nan
    how: Roles = {"annotator": "who", "missing": "drop", "labels": WORDS}
    result = fuse_table(engine(REPEATED), item="item", label="p", **how)
    assert_wide(engine, result, fuse_items(REPEATED["item"], y), WORDS)


@pytest.mark.parametrize("nothing", [None, NAN], ids=["null", "NaN"])
@pytest.mark.parametrize("missing", ["drop", "trust"])
@every_engine_but_dask
def test_null_and_nan_follow_one_policy(engine: Engine, nothing: Any, missing: Any) -> None:
    doubt, skill = [0.5, nothing, 0.2, 0.1], [0.5, 0.6, nothing, nothing]
    columns = {"item": list("abab"), "said": ["yes", "no", "no", "yes"], "u": doubt, "r": skill}
    gone = [False, True, True, True] if missing == "drop" else [False] * 4
    y = np.where(np.asarray(gone)[:, None], np.nan, one_hot(columns["said"], WORDS))
    sure: Roles = {"uncertainty": [0.5, 0.0, 0.2, 0.1], "reliability": [0.5, 0.6, 1.0, 1.0]}
    result = fuse_table(engine(columns), **PLAIN, uncertainty="u", reliability="r", missing=missing)
    assert_wide(engine, result, fuse_items(columns["item"], y, **sure), WORDS)


@core_engines
def test_an_item_that_nobody_was_asked_about_needs_no_annotator(engine: Engine) -> None:
    """As after joining annotations to a list of items."""
    columns = {"item": ["a", "a", "b"], "who": ["ann", "bob", None], "said": ["yes", "no", None]}
    result = fuse_table(engine(columns), **PLAIN, annotator="who", reliability={"ann": 1, "bob": 0})
    y = one_hot(columns["said"], WORDS)
    assert_wide(engine, result, fuse_items(columns["item"], y, reliability=[1, 0, 1]), WORDS)


@pytest.mark.parametrize("operator", ["cumulative", "average", "weighted"])
@pytest.mark.parametrize("engine", CORE, ids=lambda e: e.name)
def test_probabilities_written_with_few_digits_sum_to_one(engine: Engine, operator: Any) -> None:
    p = [[0.333333, 0.333333, 0.333333], [0.666667, 0.333334, 0.0]]
    columns = {"item": ["a", "a"], "p": p}
    y = np.asarray(p) / np.sum(p, axis=-1, keepdims=True)
    expected = fuse_items(columns["item"], y, operator=operator)
    for form, assert_form in FORMS.items():
        result = fuse_table(engine(columns), item="item", label="p", form=form, operator=operator)
        assert_form(engine, result, expected, [0, 1, 2])
