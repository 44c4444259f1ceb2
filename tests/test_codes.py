"""Sound tables of few rows are read without an engine, and to the same arrays."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slencodings import Annotations, from_table
from slencodings.tables import codes
from slencodings.tables.codes import read_codes
from slencodings.tables.roles import Reading

NAMED: dict[str, Any] = {"item": "post", "annotator": "who", "label": "said"}
TEXT = st.sampled_from(["a", "b", "B", "10", "9", "é", "", "a b"])
NUMBERS = st.sampled_from([0, 1, 2, 10, -3, 2**40])
BOOLEANS = st.booleans()


def assert_same(found: Annotations, expected: Annotations) -> None:
    for field in fields(Annotations):
        x, y = getattr(found, field.name), getattr(expected, field.name)
        assert (x is None) == (y is None), field.name
        if isinstance(x, bool):
            assert x == y, field.name
        elif x is not None:
            assert x.dtype == y.dtype, field.name
            np.testing.assert_array_equal(x, y, err_msg=field.name)


def given_as_reading(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `from_table` as those of `Reading`."""
    if "ordered" not in arguments:
        return arguments
    return arguments | {"labels": arguments["ordered"], "ordered": True}


@given(st.data())
def test_tables_are_read_as_engines_read_them(data: st.DataObject) -> None:
    rows = data.draw(st.integers(2, 12))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return data.draw(st.lists(values, min_size=rows, max_size=rows))

    names = [data.draw(st.sampled_from([TEXT, NUMBERS])) for _ in range(2)]
    labels = data.draw(st.sampled_from([TEXT | st.none(), NUMBERS, BOOLEANS]))
    columns = {
        "post": column(names[0]),
        "who": column(names[1]),
        "said": column(labels),
        "sure": column(st.integers(1, 5)),
        "skill": column(st.floats(0, 1)),
    }
    scale = data.draw(st.sampled_from([(1, 5), None]))
    reading = {**NAMED, "confidence": "sure", "confidence_scale": scale, "reliability": "skill"}
    named = data.draw(st.sampled_from([None, "labels", "ordered"]))
    if named is not None and labels is not BOOLEANS:
        # Not in their order, and with one that nobody used.
        unused = 77 if labels is NUMBERS else "nobody's"
        possible = {label: None for label in columns["said"] if label is not None}
        reading[named] = data.draw(st.permutations([*possible, unused]))
    asked = Reading(**given_as_reading(reading))
    frame, table = pd.DataFrame(columns), pa.table(columns)
    if data.draw(st.booleans()):
        frame = frame.astype({c: object for c in frame if frame[c].dtype == "str"})
    found = [read_codes(t, asked) for t in (frame, columns, duckdb.from_arrow(table))]
    assert len({plain is None for plain in found}) == 1
    if found[0] is None:
        with pytest.raises(ValueError, match=r"two labels|no annotation has a label"):
            from_table(table, **reading)
    else:
        expected = from_table(table, **reading)
        for plain in found:
            assert plain is not None
            assert_same(plain, expected)


def test_whole_numbers_far_apart_and_anonymous_crowds_are_coded_too() -> None:
    columns = {"post": [2**60, -5, 2**60], "said": np.asarray([3, 1, 3], dtype=np.uint8)}
    reading = {"item": "post", "label": "said", "uncertainty": 0.25}
    for table in (pd.DataFrame(columns), columns, duckdb.from_arrow(pa.table(columns))):
        plain = read_codes(table, Reading(**reading))
        if plain is None:
            assert isinstance(table, duckdb.DuckDBPyRelation)  # UTINYINT is left to it.
        else:
            assert_same(plain, from_table(pa.table(columns), **reading))


SOUND: dict[str, Any] = {
    "post": ["p", "p", "q"],
    "who": ["ann", "bob", "ann"],
    "said": ["yes", "no", "no"],
    "doubt": [0.0, 0.5, 1.0],
}


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        ({"post": ["p", None, "q"]}, {}),
        ({"who": ["ann", None, "ann"]}, {}),
        ({"who": [1.0, 2.0, 1.0]}, {}),
        ({"who": [1, "1", "ann"]}, {}),
        ({"said": ["no", "no", "no"]}, {}),
        ({"said": [], "post": [], "who": [], "doubt": []}, {}),
        ({"doubt": [0.0, 2.0, 1.0]}, {"uncertainty": "doubt"}),
        ({"doubt": [0.0, None, 1.0]}, {"uncertainty": "doubt"}),
        ({"doubt": ["0", "0", "1"]}, {"uncertainty": "doubt"}),
        ({"Who": [1, 2, 3]}, {}),
        ({7: [1, 2, 3]}, {}),
        ({}, {"item": "nowhere"}),
        ({}, {"labels": ["no", "maybe"]}),
        ({}, {"labels": ["no"]}),
        ({}, {"labels": ["no", "yes", "no"]}),
        ({}, {"labels": ["no", "yes", 1]}),
        ({}, {"labels": ["no", "yes", "\0"]}),
        ({"said": [0, 1, 1]}, {"labels": [0, True]}),
        ({"said": [True, False, False]}, {"labels": [False, True]}),
        ({"said": [1.0, 0.0, 0.0]}, {"labels": [0.0, 1.0]}),
        ({}, {"label": ["doubt", "doubt"]}),
        ({}, {"missing": "maybe"}),
        ({}, {"duplicates": "first"}),
        ({}, {"reliability": {"ann": 1.0, "bob": 0.5}}),
        ({}, {"uncertainty": "doubt", "confidence": "doubt"}),
        ({}, {"confidence": "doubt", "confidence_scale": lambda c: 1 - c}),
    ],
)
def test_what_has_to_be_looked_at_is_left_to_an_engine(changed: Any, asked: Any) -> None:
    frame = pd.DataFrame(SOUND)
    assert read_codes(frame, Reading(**NAMED, uncertainty="doubt")) is not None
    assert read_codes(pd.DataFrame(SOUND | changed), Reading(**(NAMED | asked))) is None
    assert read_codes(pa.table(SOUND), Reading(**NAMED)) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"post": ["p", None, "q"]},
        {"post": ["p", "p", "q\0"]},
        {"post": ["p", "p", "\ud800"]},
        {"post": [1.5, 2.5, 2.5]},
        {"who": ["ann", None, "ann"]},
        {"who": [1, None, 1]},
        {"said": ["no", "no", "no"]},
        {"said": [True, None, False]},
        {"said": ["no", "no", "no", "yes"]},
        {"doubt": [0.0, 2.0, 1.0]},
        {"doubt": [0.0, None, 1.0]},
        {"doubt": [0.0, float("inf"), 1.0]},
        {"doubt": ["0", "0", "1"]},
        {"said": [], "post": [], "who": [], "doubt": []},
    ],
)
def test_columns_that_have_to_be_looked_at_are_left_to_an_engine(changed: Any) -> None:
    reading = Reading(**NAMED, confidence="doubt", confidence_scale=(0, 1))
    assert read_codes(SOUND, reading) is not None
    assert read_codes(SOUND | changed, reading) is None
    assert read_codes(SOUND | {"Who": [1, 2, 3]}, reading) is None
    with suppress(pa.ArrowInvalid, UnicodeEncodeError):
        assert read_codes(duckdb.from_arrow(pa.table(SOUND | changed)), reading) is None


def test_types_of_an_engine_alone_and_more_than_a_few_rows_are_left_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "(VALUES ('p', 'ann', 'yes'), ('p', 'bob', 'no')) AS t(post, who, said)"
    rows: Any = duckdb.sql(f"FROM {said}")
    reading = Reading(**NAMED)
    assert read_codes(rows, reading) is not None
    assert read_codes(rows.project("post, said, who::ENUM('ann', 'bob') AS who"), reading) is None
    assert read_codes(rows.project("post, said, 1::HUGEINT AS who"), reading) is None
    monkeypatch.setattr(codes, "_FEW", 1)
    assert read_codes(rows, reading) is None
    assert read_codes({"post": ["p"] * 2, "said": [1, 2], "who": [1, 2]}, reading) is None
