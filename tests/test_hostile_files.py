"""Files that somebody made to do harm: bombs, depth, lies about themselves. Refused in words."""

import gzip
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hostile import put
from running import Sle
from torture.readers import (
    READERS,
    _what_stores_say,
    npz_with_header,
    open_document,
    refused,
    sheet,
    store_that_says,
    workbook,
)

from slencodings.files import readable
from slencodings.files.duckdb import plain_errors
from slencodings.files.exports import read_export
from slencodings.files.features import read_features
from slencodings.files.locate import locate
from slencodings.trust import crowd_from_json, load_crowd

CROWD = b"item,annotator,label\n" + b"".join(
    b"i%d,ann,yes\ni%d,bob,no\n" % (n, n) for n in range(99)
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that unpack to more than a megabyte are large already."""
    monkeypatch.setattr(readable, "LARGEST_UNPACKED", 1 << 20)


# What unpacks to far more than it is


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("how", [[], ["--encoding", "utf-8"]])
def test_a_gzipped_file_that_unpacks_without_end_is_refused(tmp_path: Path, sle: Sle, how: Any):
    (tmp_path / "crowd.csv.gz").write_bytes(gzip.compress(CROWD + b"i,ann,yes\n" * 300_000))
    run = sle("encode", "crowd.csv.gz", "-o", "targets.csv", *how)
    assert run.code == 1
    assert "crowd.csv.gz unpacks to" in run.err
    assert "at most 300 times its size is read. If it is meant so, unpack it yourself" in run.err


@pytest.mark.usefixtures("small")
def test_a_gzipped_file_that_is_large_but_no_bomb_is_read(tmp_path: Path, sle: Sle):
    rng = np.random.default_rng(0)
    said = rng.integers(0, 2, 32_000).tolist()
    lines = (b"item %d of a crowd of them,ann%d,%d\n" % (i, i % 7, y) for i, y in enumerate(said))
    data = b"item,annotator,label\n" + b"".join(lines)
    assert len(data) > readable.LARGEST_UNPACKED
    (tmp_path / "crowd.csv.gz").write_bytes(gzip.compress(data))
    run = sle("encode", "crowd.csv.gz", "-o", "targets.csv", "--weigh", "stated")
    assert run.code == 0, run.err


@pytest.mark.usefixtures("small")
def test_exports_that_unpack_without_end_are_refused(tmp_path: Path):
    data = json.dumps([{"_input_hash": 1, "answer": "accept", "text": " " * 3_000_000}]).encode()
    (tmp_path / "export.json").write_bytes(gzip.compress(data))
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export.json", data)
    for name in ("export.json", "export.zip"):
        with pytest.raises(ValueError, match=f"{name} unpacks to .* which no table does"):
            read_export(tmp_path / name)


@pytest.mark.usefixtures("small")
def test_arrays_that_unpack_without_end_are_refused(tmp_path: Path):
    np.savez_compressed(tmp_path / "X.npz", item=["a"], X=np.zeros((1, 2_000_000)))
    with pytest.raises(ValueError, match=r"X.npz cannot be read as NPZ: X.npz unpacks to"):
        read_features(str(tmp_path / "X.npz"), ["a"])


def test_arrays_that_say_they_are_larger_than_memory_are_refused(tmp_path: Path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 4), }\n"
    (tmp_path / "X.npz").write_bytes(npz_with_header(header))
    with pytest.raises(ValueError, match=r"cannot be read as NPZ: .*(allocate|expected)"):
        read_features(str(tmp_path / "X.npz"), ["a"])


@pytest.mark.parametrize(
    "arrays",
    [
        {"item": np.asarray("a"), "X": np.zeros((1, 2))},
        {"item": ["a", "b"], "X": np.zeros((1, 2))},
        {"item": ["a"], "X": np.asarray([["text"]])},
        {"item": ["a"]},
    ],
)
def test_arrays_that_are_no_features_are_refused(tmp_path: Path, arrays: Any):
    np.savez(tmp_path / "X.npz", **arrays)
    with pytest.raises(ValueError, match=r"`item` \(n,\) and `X` \(n, ...\), of numbers; .* came"):
        read_features(str(tmp_path / "X.npz"), ["a"])


def test_a_pickle_inside_arrays_is_never_loaded(tmp_path: Path):
    np.savez(tmp_path / "X.npz", item=["a"], X=np.asarray([[print]], dtype=object))
    with pytest.raises(ValueError, match=r"cannot be read as NPZ: Object arrays cannot be loaded"):
        read_features(str(tmp_path / "X.npz"), ["a"])


def packed(book: bytes) -> bytes:
    """The same workbook with its parts packed."""
    found = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(book)) as parts,
        zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in parts.namelist():
            archive.writestr(name, parts.read(name))
    return found.getvalue()


@pytest.mark.usefixtures("small")
def test_workbooks_that_unpack_without_end_are_refused(tmp_path: Path, sle: Sle):
    (tmp_path / "crowd.xlsx").write_bytes(packed(workbook(sheet({"A1": "y" * 3_000_000}))))
    run = sle("encode", "crowd.xlsx", "-o", "targets.csv")
    assert run.code == 1
    assert "crowd.xlsx unpacks to 3,001," in run.err
    assert "which no table does; at most 300 times its size is read" in run.err


@pytest.mark.usefixtures("small")
def test_a_workbook_that_is_large_but_no_bomb_is_read(tmp_path: Path, sle: Sle):
    names = np.random.default_rng(0).integers(0, 10**9, 12_000).tolist()
    cells = {"A1": "item", "B1": "label"} | {f"A{i}": str(x) for i, x in enumerate(names, 2)}
    cells |= {f"B{i}": "no" for i, _ in enumerate(names, 2)}
    book = workbook(sheet(cells, "A1:B12001"))
    assert len(book) > readable.LARGEST_UNPACKED
    (tmp_path / "crowd.xlsx").write_bytes(packed(book))
    how = ("--weigh", "stated", "--labels", "no,yes")
    run = sle("encode", "crowd.xlsx", "-o", "targets.csv", *how)
    assert run.code == 0, run.err


def test_a_workbook_with_two_cells_far_apart_ends_nothing(tmp_path: Path, sle: Sle):
    cells = {"A1": "item", "B1": "label", "A2": "x", "B2": "yes", "XFD1048576": "far"}
    (tmp_path / "crowd.xlsx").write_bytes(workbook(sheet(cells, "A1:XFD1048576")))
    run = sle("encode", "crowd.xlsx", "-o", "targets.csv")
    assert run.code == 1
    assert "cannot be read as a workbook: it takes more memory than it may" in run.err
    assert "is a cell filled far from the others?" in run.err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no processor time")
def test_a_workbook_whose_reader_never_ends_is_refused(
    tmp_path: Path, sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    """A fuzzer made it: of a table that is not closed, the end is looked for without end."""
    sizes = [2_000, 20_000, 50_000, 10_000_000]
    assert list(map(readable.sheets.most_seconds, sizes)) == [6, 15, 30, 130]
    monkeypatch.setattr(readable.sheets, "most_seconds", lambda size: 1)
    (tmp_path / "crowd.ods").write_bytes(open_document(b'<table:table table:name="one">'))
    run = sle("encode", "crowd.ods", "-o", "targets.csv")
    assert run.code == 1
    assert "cannot be read as a workbook: it takes more time than it may" in run.err


def test_a_workbook_whose_reader_ends_is_damaged(
    tmp_path: Path, sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "crowd.xlsx").write_bytes(workbook(sheet({"A1": "item"})))
    monkeypatch.setattr(readable.sheets, "__file__", str(tmp_path / "gone.py"))
    run = sle("encode", "crowd.xlsx", "-o", "targets.csv")
    assert "cannot be read as a workbook: its parts do not fit together" in run.err


def test_a_table_that_ends_its_reader_is_damaged(sle: Sle):
    """A fuzzer made it: DuckDB takes -1 for a length, calls that its own error, and is no more."""
    source = Path(__file__).parent / "data/damaged.parquet"
    for run in (sle("encode", source, "-o", "t.csv"), sle("compare", source)):
        assert run.code == 1
        assert "damaged.parquet cannot be read as PARQUET: " in run.err
        assert "Stack Trace" not in run.err
    assert not Path("t.csv").exists()


@pytest.mark.parametrize("before", ["", "x"])
def test_a_message_that_is_cut_within_a_character_is_told(tmp_path: Path, sle: Sle, before: str):
    """A fuzzer made it: DuckDB cuts the line that it shows by bytes."""
    said = {"item": "1", "annotator": before + "é" * 99, "label": "yes"}
    line = json.dumps(said, ensure_ascii=False).replace("}", ', "label": "no"}')
    (tmp_path / "crowd.jsonl").write_text(line, encoding="utf-8")
    run = sle("encode", "crowd.jsonl", "-o", "targets.csv")
    assert run.code == 1
    assert "crowd.jsonl cannot be read as JSONL: " in run.err
    assert 'duplicate key "label". Repair it' in run.err


def test_a_key_without_a_name_is_no_column(tmp_path: Path, sle: Sle):
    """A fuzzer made it: DuckDB makes no struct of it."""
    lines = [{"item": "1", "annotator": name, "label": "yes", "": 3} for name in ("ann", "bob")]
    (tmp_path / "crowd.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run = sle("encode", "crowd.jsonl", "--labels", "no,yes", "-o", "targets.csv")
    assert run.code == 0
    assert "not used" not in run.err


@pytest.mark.parametrize("name", ["crowd.parquet", "crowd.csv"])
def test_an_error_of_the_engine_is_not_blamed_on_a_file_that_it_can_read(tmp_path: Path, name: str):
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS item) TO '{tmp_path / name}'")
        found = locate(connection, str(tmp_path / name), tmp_path)
    with pytest.raises(duckdb.InternalException, match="ours"), plain_errors(found):
        raise duckdb.InternalException("ours")


# What is nested without end


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("crowd.json", "[" * 200_000, "crowd.json is cut off: a JSON array ends with ]; '[' came."),
        ("crowd.jsonl", '{"a":' * 200_000, "read as JSONL: line 1 is nested too deeply. Repair"),
        (
            "crowd.jsonl",
            '{"item": 1, "label": ' + "9" * 5000 + "}",
            "at least two labels are needed; only inf came, in 1 row. If others are possible",
        ),
        (
            "crowd.json",
            '{"item": 1, "label": ' + "[" * 5000 + "]" * 5000 + "}",
            "at least two labels are needed; only '[[[[",
        ),
        (
            "crowd.jsonl",
            '{"item": 1, "label": "' + "[" * 5000 + '"}',
            "at least two labels are needed; only '[[[[",
        ),
    ],
)
def test_deep_json_is_refused(tmp_path: Path, sle: Sle, name: str, text: str, words: str):
    (tmp_path / name).write_text(text)
    run = sle("encode", name, "-o", "targets.csv")
    assert run.code == 1
    assert words in run.err


def test_a_cell_of_deep_json_is_text():
    deep = "[" * 5000
    with pytest.raises(ValueError, match="'label' is free text"):
        read_export({"item": [1], "label": [deep]}, format="several")
    record = {"id": 1, "annotator": 1, "annotation_id": 1, "lead_time": 1, "topic": deep}
    with pytest.raises(ValueError, match="'topic' is free text"):
        read_export([record])


@pytest.mark.parametrize("name", ["labels=[x]", "confidence_scale=('a', 1)", "missing='", "item=1"])
def test_words_of_data_that_look_like_parameters_stay_words(tmp_path: Path, sle: Sle, name: str):
    (tmp_path / "crowd.csv").write_text(f'"{name}","{name}"\n1,2\n')
    run = sle("encode", "crowd.csv", "-o", "targets.csv")
    assert (run.code, "error: column names must differ" in run.err) == (1, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "JSON of four levels; more came"),
        ("{", "a stored crowd is JSON; this is not"),
        ("1" * 5000, "a stored crowd is JSON; this is not"),
        ('{"stored_crowd": 9}', "of kind 1 is needed; one of kind 9 came. Install the version"),
    ],
)
def test_what_is_no_json_of_ours_is_no_stored_crowd(tmp_path: Path, text: str, words: str):
    with pytest.raises(ValueError, match=words):
        crowd_from_json(text)
    (tmp_path / "crowd.json").write_text(text)
    with pytest.raises(ValueError, match=words):
        load_crowd(str(tmp_path / "crowd.json"))


STORED: Any = json.loads(READERS["crowd.json"].seeds()[0])


@pytest.mark.parametrize(
    ("path", "new", "words"),
    [
        (("worth", 0), -1.0, "worth must hold numbers that are 0 or more"),
        (("worth", 0), float("nan"), "worth must hold numbers that are 0 or more"),
        (("typical_worth",), 1e999, "typical_worth must hold numbers that are 0 or more"),
        (("base_rate", 0), 0.9, "base_rate must sum to 1 in every row"),
        (("through_truth",), 1.5, "through_truth must be 1 at most"),
        (("prior_weight",), 0, "prior_weight must be more than 0"),
        (("prior_weight",), "two", "damaged: could not convert"),
        (("labels", 0), "yes", "annotators and labels must be text or numbers, each once"),
        (("labels", 0), ["no"], "annotators and labels must be text or numbers, each once"),
        (("count", 0), 10**30, "damaged: "),
        (("people",), [], "damaged: "),
        (("losses",), None, "damaged: "),
        (("levels",), [[1.0]], "damaged: levels must have the shape"),
        (("levels",), 1.0, "damaged: levels must have the shape"),
        (("labels",), "ny", "annotators and labels must be text or numbers, each once"),
    ],
)
def test_a_crowd_with_a_number_that_none_has_is_refused(path: Any, new: Any, words: str):
    with pytest.raises(ValueError, match=words):
        crowd_from_json(json.dumps(put(STORED, path, new)))


# What says of itself what is not so


def test_a_column_whose_name_is_no_text_is_refused(tmp_path: Path):
    for name in ("crowd.parquet", "store.parquet"):
        data = READERS["crowd.parquet"].seeds()[1].replace(b"confidence", b"\xe6onfidence"[:10])
        said = refused(READERS[name], data, tmp_path)
        assert said == f"{name} is damaged: the name of a column is no text. Copy it again."


def test_a_column_of_features_whose_name_would_be_cut_is_refused(tmp_path: Path):
    said = refused(READERS["texts.jsonl"], b'{"ite\\u0000m": "x", "text": ""}', tmp_path)
    assert said == "texts.jsonl has a column 'ite\\x00m'; names end at \\x00. Rename it."


@pytest.mark.parametrize(
    ("path", "new", "words"),
    [
        (("item",), 1, r"damaged \(item\)"),
        (("smoothing",), 2, r"damaged \(smoothing\)"),
        (("confidence_scale",), [1, 1], r"damaged \(confidence_scale\)"),
        (("labels",), ["no", "no"], r"damaged \(labels\)"),
        (("labels",), ["no", 1], r"damaged \(labels\)"),
        (("labels",), [], r"damaged \(labels\)"),
        (("labels",), {"a": 1}, r"damaged \(labels\)"),
        (("fixed",), "yes", r"damaged \(fixed\)"),
        (("labels",), ["no", "maybe"], r"damaged \(crowd\)"),
        (("crowd", "worth"), [], r"damaged \(ValueError, a stored crowd is damaged: worth"),
        (("crowd",), [], r"damaged \((Type|Value|Attribute)Error"),
        (("batches", 0, "rows"), None, r"damaged \(batches\)"),
        (("batches", 0), {}, r"damaged \(KeyError"),
        (("store",), "two", "is a store of kind 'two', written by"),
    ],
)
def test_a_store_that_says_what_none_does_is_refused(
    tmp_path: Path, path: Any, new: Any, words: str
):
    about = put(json.loads(_what_stores_say()[1]), path, new)
    said = refused(READERS["about.parquet"], json.dumps(about).encode(), tmp_path)
    assert said is not None
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(said)


@pytest.mark.parametrize("about", [b"", b"[]", b"\xff", b"[" * 100_000])
def test_a_table_that_says_nothing_of_ours_is_no_store(tmp_path: Path, about: bytes):
    said = refused(READERS["about.parquet"], about, tmp_path)
    assert said is None or "column" in said, said
    assert io.BytesIO(store_that_says(about)).read(4) == b"PAR1"
