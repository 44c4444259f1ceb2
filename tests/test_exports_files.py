"""Files of exports: encodings, packings, sizes, and what is wrong with them."""

import csv
import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
from strategies import present

from slencodings.files.exports import load, read_export, recognise
from slencodings.files.exports.load import parts, records
from slencodings.files.exports.record import ExportFile

TASK = {"_input_hash": 7, "_annotator_id": "ann", "answer": "accept", "accept": ["é"]}


def every(path: Path, **how: Any) -> list[tuple[str | None, dict[str, Any]]]:
    return [(r.key, r.value) for p in parts(path) for r in records(p, path.name, **how)]


def wrote(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_unicode_with_and_without_a_mark_is_read(tmp_path: Path, encoding: str, form: str):
    row = {"a": "é", "b": "漢"}
    text = {
        "jsonl": json.dumps(row, ensure_ascii=False) + "\n\n",
        "json": json.dumps([row], ensure_ascii=False),
        "csv": "a,b\r\né,漢\r\n\r\n",
    }
    path = wrote(tmp_path / "x", text[form].encode(encoding))
    assert every(path) == [(None, row)]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1.25, "b": [true, null, "\\u00e9 \\" }"]}, {"a": -12e3}]',
        '{"a": 123, "b": {"c": "]"}}\n{"a": false}',
        '{"x": {"annotations": 1, "annotators": 12}, "y": {"annotations": 3, "annotators": 45}}',
        "[]",
        " [ { } ] ",
        '{"only": 123}',
        "{}",
    ],
)
def test_json_is_read_the_same_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, chunk: int
):
    monkeypatch.setattr(load, "CHUNK", chunk)
    whole = [json.loads(line) for line in text.splitlines()] if "\n" in text else json.loads(text)
    if isinstance(whole, dict):
        by_id = any(isinstance(v, dict) for v in whole.values())
        expected = list(whole.items()) if by_id else [(None, whole)]
    else:
        expected = [(None, value) for value in whole]
    assert every(wrote(tmp_path / "x.json", text)) == expected


def test_a_file_is_read_as_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(load, "CHUNK", 64)
    path = wrote(tmp_path / "x.json", "[" + ",".join(['{"a": 1}'] * 100) + ", broken")
    stream = records(parts(path)[0], "x.json")
    assert [next(stream).value for _ in range(50)] == [{"a": 1}] * 50


CUT = json.dumps([TASK, TASK | {"_input_hash": 8}])


@pytest.mark.parametrize("end", range(len(json.dumps(TASK)) + 2, len(CUT)))
def test_json_that_is_cut_off_names_the_tool_and_the_record(tmp_path: Path, end: int):
    path = wrote(tmp_path / "x.json", CUT[:end])
    with pytest.raises(ValueError, match=r"x.json \(prodigy jsonl\) is cut off in record [12]: .*"):
        read_export(path)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (
            '[{"a": 1} {"a": 2}]',
            r"record 1 is not JSON: , or \] must follow a record; '{\"a\": 2}]",
        ),
        ('[{"a": 1, b: 2}]', r"record 1 is not JSON: Expecting property name.*near .*b: 2"),
        ('[{"a": 1},]', r"record 2 is not JSON: Expecting value"),
        (
            '[{"a": tru}, {"b": 1, "c": "long enough to be far"}]',
            r"record 1 is not JSON: Expecting",
        ),
        ('[{"a": 1}] [', r"must end with \]; more came after it, '\['.*Two files in one"),
        ("[3]", r"record 1: a record must be a JSON object; 3 came"),
        ('{"a": 1}\n[]', r"record 2: a record must be a JSON object; \[\] came"),
        ('{"a" 1}', r"record 1 is not JSON: : must follow a name; '1}'"),
        ('{"a": 1', r"is cut off in record 1"),
        ("[" * 100_000, r"record 1 cannot be read: it is nested too deeply"),
        ('[{"a": ' + "9" * 5000 + "}]", r"record 1 cannot be read: Exceeds the limit"),
        ("", r"x.json is empty"),
        (" \n", r"x.json is empty"),
        (b"\x89PNG\x00\x01", r"must be JSON, JSONL, CSV or Parquet; .*begins with b'\\x89PNG"),
        ("a,b\n\xe9".encode("latin-1"), r"must be UTF-8.*b'\\xe9'.*iconv -f LATIN1.*utf8-x.json"),
        (b"PAR1nothing", r"cannot be read as Parquet: "),
        ("a,b,a\n1,2,3\n", r"column names must differ; 'a' came twice"),
        ("a,b\n1,2\n1\n", r"record 2 must have 2 cells, one for each column; 1 came"),
        ('a,b\n"1,2', r"is not CSV: unexpected end of data"),
        (gzip.compress(b"a,b\n" * 9999, mtime=0)[:-9], r"is packed and damaged: .*Copy it again"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str | bytes, match: str):
    path = wrote(tmp_path / "x.json", text)
    with pytest.raises(ValueError, match=match):
        every(path)
    assert recognise(path) is None


def test_a_record_that_has_no_end_is_refused_before_memory_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(load, "CHUNK", 1 << 10)
    path = wrote(tmp_path / "x.json", '[{"a": "' + "x" * (3 << 20))
    with pytest.raises(ValueError, match=r"record 1 is larger than 1 MB, or its end is missing"):
        every(path, largest=1 << 20)


def test_long_cells_are_read_and_the_limit_of_the_module_stays(tmp_path: Path):
    before = csv.field_size_limit()
    path = wrote(tmp_path / "x.csv", "a,b\n" + "x" * 200_000 + ",2\n")
    assert len(every(path)[0][1]["a"]) == 200_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str):
    path = wrote(tmp_path / "x", f'\na{delimiter}"b c"\n1{delimiter}"2\n3"\n')
    assert every(path) == [(None, {"a": "1", "b c": "2\n3"})]


def test_parquet_is_read_with_what_is_nested(tmp_path: Path):
    path = tmp_path / "x [1].parquet"
    said = "[{'user_id': 'u', 'value': 'yes', 'status': 'submitted'}]"
    present(duckdb.sql(f"SELECT 'i' AS id, {said} AS q")).write_parquet(str(path))
    assert recognise(path) == "argilla"
    export = read_export(path)
    assert export.columns == {"item": ["i"], "annotator": ["u"], "label": ["yes"]}


def test_times_with_a_zone_need_no_other_package(tmp_path: Path):
    path, time = tmp_path / "x.parquet", "TIMESTAMPTZ '2024-01-01 00:00:00+00'"
    times = f"{time} AS \"o'clock\", {{'at': [{time}], 'n': 1}} AS q"
    present(duckdb.sql(f"SELECT 'i' AS id, {times}")).write_parquet(str(path))
    ((_, found),) = every(path)
    assert [*found] == ["id", "o'clock", "q"]
    assert isinstance(found["o'clock"], str)
    assert found["q"] == {"at": [found["o'clock"]], "n": 1}


def test_a_file_that_ends_its_reader_is_no_matter_to_the_next(tmp_path: Path):
    with pytest.raises(ValueError, match=r"damaged.parquet cannot be read as Parquet: .*Copy it"):
        every(Path(__file__).parent / "data/damaged.parquet")
    test_parquet_is_read_with_what_is_nested(tmp_path)


def test_folders_and_zip_files_are_read_by_their_parts(tmp_path: Path):
    with pytest.raises(ValueError, match=r"must hold files of JSON, JSONL or CSV; none is in it"):
        parts(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*missing'"):
        read_export(tmp_path / "missing")
    wrote(tmp_path / "a.jsonl", json.dumps(TASK))
    wrote(tmp_path / "b.jsonl", json.dumps({"other": 1}))
    wrote(tmp_path / "readme.txt", "no records")
    with pytest.raises(
        ValueError, match=r"/b.jsonl \(prodigy jsonl\), record 1 is of another kind"
    ):
        read_export(tmp_path)


def test_a_locked_zip_file_is_refused(tmp_path: Path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.jsonl", json.dumps(TASK))
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 8] |= 1  # the flag that says so
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a.jsonl in x.zip is locked with a password"):
        read_export(path)


def test_a_damaged_zip_file_is_refused(tmp_path: Path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.jsonl", json.dumps(TASK))
    path.write_bytes(path.read_bytes().replace(b"accept", b"reject", 1))
    with pytest.raises(ValueError, match=r"is packed and damaged: Bad CRC-32"):
        read_export(path)


@pytest.mark.parametrize(
    ("part", "place", "change", "message"),
    [
        ("directory", 0, b"PX", r"^x.zip is packed and damaged: Bad magic number"),
        (
            "directory",
            6,
            b"\xff\x00",
            r"^x.zip is packed in a way that is not known here: zip file v",
        ),
        (
            "directory",
            10,
            b"\x09\x00",
            r"a.jsonl in x.zip is packed in a way .* Unpack it",
        ),
        ("directory", 46, b"\xff", r"^x.zip is packed and damaged: 'utf-8' codec can't decode"),
        ("end", 16, b"\xff\xff", r"a.jsonl in x.zip is packed and damaged: "),
        ("member", 26, b"\xff\xff", r"a.jsonl in x.zip is packed and damaged: 'utf-8' codec"),
    ],
)
def test_a_zip_file_that_lies_is_refused(
    tmp_path: Path, part: str, place: int, change: bytes, message: str
):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ä/a.jsonl", json.dumps(TASK))
    content = bytearray(path.read_bytes())
    begins = {"member": b"PK\x03\x04", "directory": b"PK\x01\x02", "end": b"PK\x05\x06"}
    at = content.index(begins[part]) + place
    content[at : at + len(change)] = change
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_export(path)


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_other_packers_cannot_unpack_is_damaged(tmp_path: Path, how: int):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", how) as archive:
        archive.writestr("a.jsonl", json.dumps(TASK))
    content = bytearray(path.read_bytes())
    at = content.index(b"a.jsonl") + len(b"a.jsonl")
    content[at : at + 20] = b"x" * 20
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a.jsonl is packed and damaged: .* Copy it again"):
        read_export(path)


def test_names_in_a_zip_file_may_be_spelled_in_any_way(tmp_path: Path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("./a//b.jsonl", json.dumps(TASK))
    assert read_export(path).columns["item"]


def test_potato_s_other_files_are_not_read_twice(tmp_path: Path):
    line = {"id": "i", "displayed_text": "t", "label_annotations": {"s": {"yes": "true"}}}
    (tmp_path / "ann").mkdir()
    wrote(tmp_path / "ann" / "annotated_instances.jsonl", json.dumps(line))
    wrote(tmp_path / "ann" / "user_state.json", '{"user_id": "ann"}')
    found = [part.name for part in parts(tmp_path)]
    assert found == ["annotated_instances.jsonl"]
    assert read_export(tmp_path).columns["annotator"] == ["ann"]


def test_a_part_knows_its_folder(tmp_path: Path):
    (tmp_path / "ann").mkdir()
    path = wrote(tmp_path / "ann" / "x.json", "[]")
    assert parts(path)[0].folder == ""
    (part,) = parts(tmp_path)
    assert isinstance(part, ExportFile)
    assert (part.name, part.folder) == ("x.json", "ann")
