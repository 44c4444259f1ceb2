"""What is in a file, and which column is what."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from slencodings.files.duckdb import _broken_line
from slencodings.files.locate import Source
from slencodings.files.scan import format_of, header, scan, text_of
from slencodings.files.values import typed
from slencodings.tables.roles import USUAL_NAMES, Reading, choose_columns, find_columns


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["item", "annotator", "label"], ("item", "annotator", "label")),
        (["ITEM", "Annotator", "LaBeL"], ("ITEM", "Annotator", "LaBeL")),
        (["taskId", "WorkerID", "Answer"], ("taskId", "WorkerID", "Answer")),
        (["task id", "worker.id", "answer"], ("task id", "worker.id", "answer")),
        (["exampleid", "raterid", "response"], ("exampleid", "raterid", "response")),
        (["document_name", "coder_name", "choice"], ("document_name", "coder_name", "choice")),
        (["notes", "text", "user_id", "class"], ("text", "user_id", "class")),
        (["text", "item", "label", "rating"], ("item", None, "label")),
        (["answer", "label", "item"], ("item", None, "label")),
        (["id", "text", "reviewer", "category"], ("id", "reviewer", "category")),
        (["uid", "email", "labels"], ("uid", "email", "labels")),
        (["filename", "rater", "target"], ("filename", "rater", "target")),
        (["url", "coder", "tag"], ("url", "coder", "tag")),
        (
            ["Email Address", "Item ID", "Your label", "Answer"],
            ("Item ID", "Email Address", "Answer"),
        ),
    ],
)
def test_usual_names_are_found_in_any_spelling_and_the_likeliest_wins(
    names: list[str], found: tuple[str | None, ...]
):
    roles = find_columns(names)
    assert tuple(roles.get(role) for role in ("item", "annotator", "label")) == found


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Confidence", "confidence"),
        ("certainty", "confidence"),
        ("conf", "confidence"),
        ("confidence_score", "confidence"),
        ("sure", "confidence"),
        ("How sure are you?", "confidence"),
        ("doubt", "uncertainty"),
        ("Reliability", "reliability"),
        ("trust", "reliability"),
    ],
)
def test_numbers_are_found_by_name_too(name: str, role: str):
    assert find_columns(["item", "label", name])[role] == name


def test_what_is_given_wins_over_what_is_found():
    names = ["item", "label", "gold", "confidence"]
    chosen = choose_columns(names, Reading(label="gold"))
    assert chosen.columns == {"item": "item", "label": "gold", "confidence": "confidence"}


def test_a_column_that_is_given_is_not_found_for_another_role():
    names = ["text", "annotator", "answer", "response"]
    chosen = choose_columns(names, Reading(item="answer"))
    assert chosen.columns == {"item": "answer", "annotator": "annotator", "label": "response"}
    chosen = choose_columns(["doc", "text", "label", "p"], Reading(label=["doc", "p"]))
    assert chosen.columns == {"item": "text", "label": ["doc", "p"]}


def test_no_column_is_found_for_two_roles():
    words = " ".join(USUAL_NAMES.values()).split()
    assert len(words) == len(set(words))


def test_a_column_given_for_two_roles_is_refused():
    with pytest.raises(ValueError, match=r"one thing; 'x' came as `item` and `label`.*'x', 'y'"):
        choose_columns(["x", "y"], Reading(item="x", label="x"))


@pytest.mark.parametrize("role", ["item", "label"])
def test_a_role_without_a_column_names_those_there_are_and_the_option(role: str):
    names = [name for name in ("item", "label") if name != role] + ["a", "b"]
    with pytest.raises(
        ValueError, match=rf"no column looks like the {role}.*'a', 'b'.*Name it: {role}='COLUMN'"
    ):
        choose_columns(names, Reading())


def test_two_roles_without_a_column_are_asked_for_at_once():
    with pytest.raises(
        ValueError,
        match=r"like the item or the label.*'Antwort'.*Name them: item='COLUMN' and label='COLUMN'",
    ):
        choose_columns(["Beitrag", "Antwort"], Reading())


def test_a_list_of_columns_is_cut_where_it_is_too_long_to_read():
    with pytest.raises(ValueError, match=r"'c0', .*'c19' and 80 more. Name them"):
        choose_columns([f"c{i}" for i in range(100)], Reading())
    with pytest.raises(ValueError, match=r"are 'x{60}\.\.\.'. Name them"):
        choose_columns(["x" * 1000], Reading())


def test_confidence_is_taken_before_uncertainty_and_never_both():
    names = ["item", "label", "uncertainty", "confidence"]
    assert choose_columns(names, Reading()).uncertainty is None
    assert choose_columns(names, Reading(uncertainty="uncertainty")).confidence is None
    assert choose_columns(names, Reading(uncertainty="0.5")).uncertainty == 0.5


@pytest.mark.parametrize(
    ("names", "role", "given", "meant"),
    [
        (["item", "label", "0.9"], "confidence", "0.9", "0.9"),
        (["item", "label"], "confidence", "0.9", 0.9),
        (["item", "yes", "no"], "label", "yes, no", ["yes", "no"]),
        (["item", "yes,no"], "label", "yes,no", "yes,no"),
        (["7", "label"], "item", "7", "7"),
    ],
)
def test_a_given_text_is_a_column_if_there_is_one_and_else_a_number_or_a_list(
    names: list[str], role: str, given: str, meant: Any
):
    assert choose_columns(names, replace(Reading(), **{role: given})).columns[role] == meant


def test_a_missing_column_names_those_there_are_and_the_nearest():
    with pytest.raises(ValueError, match=r"no column 'lable'.*'item', 'label'.*label='label'"):
        choose_columns(["item", "label"], Reading(label="lable"))


def test_a_column_that_nothing_is_like_is_not_guessed():
    with pytest.raises(ValueError, match=r"no column 'foo' for `label`; .*'item', 'label'\.$"):
        choose_columns(["item", "label"], Reading(label="foo"))
    with pytest.raises(ValueError, match=r"no column 'LABLE'.* Did you mean label='label'\?$"):
        choose_columns(["item", "label"], Reading(label="LABLE"))


def test_columns_that_nobody_uses_are_named_in_one_note():
    notes: list[tuple[str, str]] = []
    names = ["item", "label", "category", "gold", "time"]
    choose_columns(names, Reading(), used=["gold"], say=lambda *note: notes.append(note))
    assert notes == [
        ("columns", "item = item, label = label"),
        ("note", "not used: 'category', 'time'"),
    ]


CONTENTS = {
    "csv": b"item,label\na,x\n",
    "parquet": b"PAR1....",
    "jsonl": b' {"item": 1}\n',
    "json": b'[\n{"item": 1}]',
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("format", CONTENTS)
def test_the_format_is_found_by_content_if_the_name_does_not_tell(
    tmp_path: Path, format: str, packed: bool
):
    path = tmp_path / "export.dat"
    path.write_bytes(gzip.compress(CONTENTS[format]) if packed else CONTENTS[format])
    assert format_of(str(path)) == format


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.csv", "csv"),
        ("a.CSV.GZ", "csv"),
        ("a.TSV", "tsv"),
        ("a.b.jsonl.gz", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.json", "json"),
        ("a.pq", "parquet"),
    ],
)
def test_a_name_that_tells_is_believed(tmp_path: Path, name: str, format: str):
    (tmp_path / name).write_bytes(b"whatever")
    assert format_of(str(tmp_path / name)) == format


@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_the_delimiter_is_the_one_that_the_header_has(delimiter: str):
    text = delimiter.join(["item", "label", "a note"]) + "\nx,y;z|q\t\n"
    assert header("a.csv", text, ",;\t|") == (delimiter, ["item", "label", "a note"])


def test_a_header_may_have_quotes_newlines_and_a_column_without_name():
    names = header("a.csv", ',"item\nid","say ""what"""\r\n0,1,2\r\n', ",;")[1]
    assert names == ["column0", "item\nid", 'say "what"']


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,a\n1,2,3\n", "column names must differ; 'a' came 2 times in x.csv"),
        ("a,b,A\n1,2,3\n", "differ by more than case.*'a' and 'A' came. Rename one"),
        ("\na,b\n", "first line of x.csv must name the columns; it is empty"),
    ],
)
def test_a_header_without_clear_names_is_refused(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        header("x.csv", text, ",;")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            b"a,b\nx,caf\xe9\n",
            r"must be UTF-8; line 2 is not \(it has b'\\xe9'\).*encoding='cp1252'",
        ),
        (b"PK\x03\x04\x00\x00", r"binary file of another kind \(it begins with b'PK.*Export it"),
    ],
)
def test_what_is_not_text_says_so(tmp_path: Path, head: bytes, message: str):
    with pytest.raises(ValueError, match=message):
        text_of(tmp_path / "x.csv", head)


def test_a_character_cut_in_half_at_the_end_of_the_first_bytes_is_no_error(tmp_path: Path):
    head = "a,b\nx,é\ny,é".encode()[:-1]
    assert text_of(tmp_path / "x.csv", head) == "a,b\nx,é\n"


def rows_of(path: Path, text: str | bytes, numbers: tuple[str, ...] = ()) -> tuple[list[Any], Any]:
    """The types and the rows of a JSONL file."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with duckdb.connect() as connection:
        table = scan(connection, Source(path.name, [str(path)]))
        relation = table.pick(table.names, numbers)
        return [str(t) for t in relation.types], relation.fetchall()


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (["007", "2024-01-01", None], "VARCHAR"),
        (["2024-01-01T00:00:00Z", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "VARCHAR"),
        ([1, -2, 2**60 + 1, None], "BIGINT"),
        ([1, 2.5], "DOUBLE"),
        ([True, False], "BOOLEAN"),
        ([[0.25, 0.75], [1, 0]], "DOUBLE[]"),
        ([None, None], "VARCHAR"),
    ],
)
def test_json_values_keep_their_type_and_text_stays_as_it_is_written(
    tmp_path: Path, values: list[Any], type: str
):
    text = "".join(json.dumps({"item": value}) + "\n" for value in values)
    types, rows = rows_of(tmp_path / "a.jsonl", text)
    assert types == [type]
    assert [value for (value,) in rows] == values


def test_a_json_key_that_comes_late_is_a_column_too(tmp_path: Path):
    text = '{"item": 1}\n' * 30_000 + '{"item": 1, "label": "x"}\n'
    _, rows = rows_of(tmp_path / "a.jsonl", text)
    assert rows[-1] == (1, "x")


def test_json_numbers_are_not_rounded_when_the_first_of_them_are_whole(tmp_path: Path):
    text = '{"item": 1}\n' * 30_000 + '{"item": 1.5}\n'
    _, rows = rows_of(tmp_path / "a.jsonl", text)
    assert rows[-1] == (1.5,)


@pytest.mark.parametrize("late", [0, 30_000])
def test_ids_that_are_numbers_here_and_text_there_are_refused(tmp_path: Path, late: int):
    text = '{"item": 1}\n' * (1 + late) + '{"item": "1"}\n{"item": null}\n'
    message = (
        rf"column 'item' must hold values of one type; {1 + late:,} rows? with numbers, first 1 in "
        rf'row 1 of the data; 1 row with text, first "1" in row {2 + late} of the data came. Write'
    )
    with pytest.raises(ValueError, match=message):
        rows_of(tmp_path / "a.jsonl", text)


def test_numbers_may_come_as_text_among_numbers(tmp_path: Path):
    text = '{"confidence": 0.5}\n{"confidence": "0.25"}\n{"confidence": "NA"}\n'
    types, rows = rows_of(tmp_path / "a.jsonl", text, numbers=("confidence",))
    assert (types, rows) == (["VARCHAR"], [("0.5",), ("0.25",), ("NA",)])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", b'[{"item": 1},\n{"item": 2},\n', "cut off: a JSON array ends with ]; ',' came"),
        ("a.json", b"[]", "must hold JSON objects, one each annotation; none came"),
        ("a.jsonl", b"1\n2\n", "must hold JSON objects"),
        ("a.jsonl", b'{"a": 1, "A": 2}\n', "differ by more than case.*'A' and 'a' came"),
    ],
)
def test_json_that_would_be_misread_is_refused(
    tmp_path: Path, name: str, text: bytes, message: str
):
    with pytest.raises(ValueError, match=message):
        rows_of(tmp_path / name, text)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a": 1', "line 3 is not JSON, Expecting ',' delimiter at column 8: '{\"a\": 1'"),
        (b'{"a": "x', 'line 3 is not JSON, Unterminated string at column 7: \'{"a": "x\''),
        (b'{"a": "\xe9"}', "line 3 is not UTF-8"),
        (b'{"a": 1}', ""),
    ],
)
def test_the_broken_line_of_a_jsonl_file_is_found(
    tmp_path: Path, line: bytes, message: str, packed: bool
):
    path, text = tmp_path / "a", b'{"a": 1}\n\n' + line + b'\n{"a": 1}\n'
    path.write_bytes(gzip.compress(text) if packed else text)
    assert _broken_line(path).rstrip(".") == message


def test_words_where_numbers_may_be_missing_are_no_numbers():
    with duckdb.connect() as connection:
        words = "('0.5'), (' 1 '), ('1e-3'), ('NA'), ('n/a'), ('NaN'), ('null'), ('None'), (NULL)"
        table = connection.sql(f"FROM (VALUES {words}) AS t(x)")
        assert typed(table, ["x"]).fetchall()[:3] == [(0.5,), (1.0,), (0.001,)]
        rest = [value for (value,) in typed(table, ["x"]).fetchall()[3:]]
    assert all(value is None or value != value for value in rest)


def test_other_words_in_a_column_of_numbers_are_counted_and_shown():
    with duckdb.connect() as connection:
        table = connection.sql("FROM (VALUES ('0.5'), ('high'), ('low'), ('NA')) AS t(sure)")
        with pytest.raises(
            ValueError,
            match=r"column 'sure' must hold numbers; 2 rows do not, first 'high' in row 2 of the",
        ):
            typed(table, ["sure"])
