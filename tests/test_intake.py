"""Whatever people have: their words for columns, their spreadsheets, their odd bytes."""

import csv
import gzip
import io
import re
import sys
from datetime import datetime, time
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from crowd_files import write
from running import Sle


def test_what_steers_a_terminal_never_reaches_it(here: Path, sle: Sle):
    write("a.csv", "item,label,n\x1b[2Jote", "a,y\x1b]0;owned\x07es,1", "b,no,2", "b,no\x9b1m,3")
    run = sle("encode", "a.csv", "-o", "out.csv")
    assert run.code == 0
    assert r"3 labels: no, no\x9b1m, y\x1b]0;owned\x07es" in run.err
    assert r"not used: 'n\x1b[2Jote'" in run.err
    for arguments in (
        ["compare", "a.csv", "--gold", "a\x1bb"],
        ["encode", "a\x1bb", "-o", "x.csv"],
    ):
        run = sle(*arguments)
        assert run.code == 1
        assert "a\\x1bb" in run.err
        assert "\x1b" not in run.err + run.out


def test_tables_and_verdicts_show_names_without_what_steers_a_terminal(here: Path, sle: Sle):
    rows = [f"i{n},{who},{'yes' if n % 3 else 'no'}" for n in range(9) for who in ("a\x1b[1m", "b")]
    write("a.csv", "item,annotator,label", *rows)
    few = ("--method", "soft votes", "--method", "SLE, kappa")
    for verb, *how in (("triage",), ("compare", *few), ("reliability",)):
        run = sle(verb, "a.csv", *how)
        assert run.code == 0, run.err
        assert "\x1b" not in run.err + run.out
    assert r"a\x1b[1m" in run.out


def test_labels_with_commas_are_told_apart_and_can_be_typed_as_they_are_shown(here: Path, sle: Sle):
    write("a.csv", "item,label", '1,"yes, but"', "1,yes", "2,no")
    assert "3 labels: no, yes, 'yes, but'" in sle("encode", "a.csv", "-o", "out.csv").err
    write("one.csv", "item,label", '1,"yes, but"')
    run = sle("encode", "one.csv", "-o", "out.csv")
    assert run.code == 1
    assert """name them all (--labels '"yes, but",...').""" in run.err


def test_rows_without_a_label_are_counted_and_words_for_none_are_noted(here: Path, sle: Sle):
    rows = [f"{n // 3},a{n % 3},{['cat', 'dog', '', 'NaN'][n % 4]}" for n in range(24)]
    write("a.csv", "item,annotator,label", *rows)
    for verb in (["encode", "-o", "out.csv"], ["reliability"], ["triage"]):
        run = sle(verb[0], "a.csv", *verb[1:])
        assert run.code == 0, run.err
        assert "6 rows without a label; their items are kept" in run.err
        assert "'NaN' is taken for a label; if it means none, leave such cells empty" in run.err
    write(
        "a.csv",
        "item,annotator,label",
        *(row.replace("NaN", "none") for row in rows if row[-1] != ","),
    )
    run = sle("triage", "a.csv")
    assert "without a label" not in run.err
    assert "is taken for a label" not in run.err


def test_one_of_a_kind_is_not_several(here: Path, sle: Sle):
    write("a.csv", "item,annotator,label", "1,ann,yes")
    run = sle("encode", "a.csv", "-o", "out.csv", "--labels", "yes,no")
    assert "a.csv: 1 row, 2 labels: yes, no" in run.err
    write("b.csv", "item,annotator,label", "1,ann,yes", "2,ann,no")
    assert "b.csv: 2 annotations of 2 items by 1 annotator, 2 labels" in sle("triage", "b.csv").err


CROWD = "item,annotator,label,note\n1,ann,café,x\n1,bob,thé,\n2,ann,thé,é\n"
LABELS = "3 rows, 2 labels: café, thé"


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "in/day=1/a.csv"])
@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "utf-8-sig"]
)
def test_text_in_any_usual_encoding_is_read_and_the_encoding_told(
    here: Path, sle: Sle, encoding: str, name: str
):
    content = CROWD.encode(encoding)
    Path("in/day=1").mkdir(parents=True)
    Path(name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    run = sle("encode", name.split("/")[0], "-o", "out.csv")
    assert run.code == 0, run.err
    assert LABELS in run.err
    told = f"a.csv{'.gz' * name.endswith('gz')} is read as {encoding}, for it is not UTF-8"
    assert (told in run.err) == (encoding != "utf-8-sig")
    assert ("'day'" in run.err) == ("day" in name)
    asked = sle("encode", name, "-o", "out.csv", "--encoding", encoding)
    assert LABELS in asked.err
    assert "is read as" not in asked.err


def test_a_byte_of_another_encoding_is_met_wherever_it_stands(
    here: Path, sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("slencodings.files.readable.CHUNK", 1000)
    # More than DuckDB looks at first, too.
    rows = [f"{n},ann,yes" for n in range(40_000)]
    text = "\n".join(["item,annotator,label", *rows, "x,ann,né", "y,ann,\x81"])
    Path("a.csv").write_bytes(text.encode("latin-1"))
    run = sle("encode", "a.csv", "-o", "out.csv")
    assert run.code == 0, run.err
    assert r"3 labels: né, yes, \x81" in run.err


def test_a_file_too_large_to_look_through_says_how_to_name_its_encoding(
    here: Path, sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("slencodings.files.readable.LARGEST_LOOKED_AT", 1000)
    monkeypatch.setattr("slencodings.files.readable.CHUNK", 1000)
    Path("a.csv").write_bytes(b"item,label\n" + b"a,x\n" * 40_000 + b"b,\xe9\n")
    run = sle("encode", "a.csv", "-o", "out.csv")
    assert run.code == 1
    assert re.search(r"Line: 40002.*utf-8.*which encoding it has: --encoding cp1252", run.err)
    assert sle("encode", "a.csv", "-o", "out.csv", "--encoding", "cp1252").code == 0


def test_json_with_a_byte_order_mark_and_text_with_nul_bytes_are_read(here: Path, sle: Sle):
    Path("a.jsonl").write_bytes(b'\xef\xbb\xbf{"item": 1, "label": "a"}\n{"item": 1, "label": "b"}')
    assert "2 rows, 2 labels: a, b" in sle("encode", "a.jsonl", "-o", "out.csv").err
    Path("a.csv").write_bytes(b"item,label\n1,a\0\n1,b\n2,\0b\n")
    run = sle("encode", "a.csv", "-o", "out.csv")
    assert "3 rows, 2 labels: a, b" in run.err
    assert "2 NUL bytes in a.csv left out" in run.err
    Path("b.csv").write_bytes(b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20\0\0")
    assert "is a binary file of another kind" in sle("encode", "b.csv", "-o", "out.csv").err


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("klingon", r"--encoding must be one that Python knows.*'klingon' came"),
        ("utf-16", r"a.csv cannot be read as utf-16: .*Name another: --encoding cp1252"),
    ],
)
def test_an_encoding_that_makes_no_sense_is_told(here: Path, sle: Sle, encoding: str, message: str):
    Path("a.csv").write_bytes(CROWD.encode())
    run = sle("encode", "a.csv", "-o", "out.csv", "--encoding", encoding)
    assert run.code == 1
    assert re.search(message, run.err), run.err


def book(name: str, **sheets: list[list[Any]]) -> None:
    """A workbook, as Excel would save it."""
    made = openpyxl.Workbook()
    made.remove(made.worksheets[0])
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(name)


ROWS: list[list[Any]] = [
    ["Item", "Annotator", "Label", "Sure", None],
    [1, "ann", True, 0.5, None],
    [2, "ann", False, 1.0, None],
    [None, None, None, None, None],
    [2, "bob", True, 1, None],
]


@pytest.mark.parametrize("verb", ["encode", "triage"])
def test_a_workbook_is_read_as_people_see_it(here: Path, sle: Sle, verb: str):
    book("crowd.xlsx", Empty=[], Answers=ROWS, Other=[["a", "b"], [1, 2]])
    run = sle(verb, "crowd.xlsx", "-o", "out.csv")
    assert run.code == 0, run.err
    assert "item = Item, annotator = Annotator, label = Label, confidence = Sure" in run.err
    assert "sheet 'Answers' of 'Answers', 'Other' is read; --sheet names another" in run.err
    assert re.search("3 (rows, 2 labels: false, true|annotations of 2 items by 2)", run.err)
    assert "\n2," in Path("out.csv").read_text()


def test_a_sheet_is_read_by_its_name(here: Path, sle: Sle):
    book("crowd.xlsx", First=[["a", "b"], [1, 2]], Answers=ROWS)
    run = sle("encode", "crowd.xlsx", "-o", "out.csv", "--sheet", "Answers", "--weigh", "stated")
    assert run.code == 0, run.err
    assert "note" not in run.err
    run = sle("encode", "crowd.xlsx", "-o", "out.csv", "--sheet", "answer")
    assert run.code == 1
    assert "no sheet 'answer'; it has 'First', 'Answers'. Did you mean --sheet Answers?" in run.err


def test_a_workbook_of_the_old_format_is_read(here: Path, sle: Sle):
    # `tests/data/crowd.xls` was written by xlwt 1.3.0.
    Path("crowd.xls").write_bytes((Path(__file__).parent / "data" / "crowd.xls").read_bytes())
    run = sle("encode", "crowd.xls", "-o", "out.csv")
    assert run.code == 0, run.err
    assert "crowd.xls: 6 rows, 2 labels: no, yes" in run.err
    items = [line.split(",")[0].strip('"') for line in Path("out.csv").read_text().splitlines()]
    assert items == ["item", "007", "7", "a", "naïve"]


def test_days_and_times_of_a_workbook_are_written_as_iso(here: Path, sle: Sle):
    when = [datetime(2026, 11, 16), datetime(2026, 11, 16, 9, 30), time(9, 30)]
    book("crowd.xlsx", A=[["item", "label"], *([x, "yes"] for x in when), [3, "no"]])
    assert sle("encode", "crowd.xlsx", "-o", "out.csv").code == 0
    items = [line.split(",")[0] for line in Path("out.csv").read_text().splitlines()[1:]]
    assert items == ["09:30:00", "2026-11-16", "2026-11-16T09:30:00", "3"]


def test_a_workbook_with_nothing_or_no_workbook_at_all_is_told(
    here: Path, sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    book("empty.xlsx", A=[["item", "label"]])
    book("twice.xlsx", A=[["item", "label", "label"], [1, "yes", "no"]])
    Path("broken.xlsx").write_bytes(b"PK\x03\x04 and no more")
    for name, message in {
        "empty.xlsx": "no sheet with a header and one row",
        "twice.xlsx": "'label' came 2 times in twice.xlsx. Rename all but one",
        "broken.xlsx": "cannot be read as a workbook",
    }.items():
        run = sle("encode", name, "-o", "out.csv")
        assert run.code == 1
        assert message in run.err
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    assert "pip install 'slencodings[excel]'" in sle("encode", "empty.xlsx", "-o", "out.csv").err


SPREADSHEET = ["item,annotator,label", "=1+1,ann,@sum", '"-2",ann,no', "+ c,ann,no", "\tt,bob,@sum"]


def test_csv_for_excel_is_marked_and_has_no_formula(here: Path, sle: Sle):
    write("a.csv", *SPREADSHEET)
    words = ("encode", "a.csv", "--weigh", "stated", "-o")
    assert sle(*words, "plain.csv").code == 0
    assert sle(*words, "excel.csv", "--csv-style", "excel").code == 0
    run = sle(*words, "semicolon.csv", "--csv-style", "excel-semicolon")
    assert run.code == 0, run.err
    plain, excel, semicolon = (
        Path(f"{name}.csv").read_bytes() for name in ("plain", "excel", "semicolon")
    )
    assert not plain.startswith(b"\xef\xbb\xbf")
    assert b"\n=1+1," in plain
    assert excel.startswith(b"\xef\xbb\xbfitem,")
    cells = list(csv.reader(io.StringIO(excel.decode("utf-8-sig"))))
    assert [row[0] for row in cells[1:]] == ["'\tt", "'+ c", "-2", "'=1+1"]
    assert b"\n'=1+1;0,99;0,0;0,01;0,995;0,005\r\n" in semicolon
    assert [row[1:] for row in cells] == [
        line.split(",")[1:] for line in plain.decode().splitlines()
    ]


def test_a_workbook_that_we_write_is_read_again_and_says_how_it_was_made(here: Path, sle: Sle):
    write("a.csv", *SPREADSHEET, "bad\x01,ann,no")
    run = sle(
        "encode", "a.csv", "-o", "out.xlsx", "--values", "probability,evidence", "--smoothing", "0"
    )
    assert run.code == 0, run.err
    table, about = openpyxl.load_workbook("out.xlsx").worksheets
    rows = [[(cell.value, cell.data_type) for cell in row] for row in table.iter_rows()]
    assert ("=1+1", "s") in [row[0] for row in rows]
    assert ("inf", "s") in rows[1]
    assert ("version", "s") in [(row[0].value, row[0].data_type) for row in about.iter_rows()]
    assert not Path("out.xlsx.meta.json").exists()
    again = sle("encode", "out.xlsx", "-o", "x.csv", "--label", "probability_@sum,probability_no")
    assert "5 rows, 2 labels: probability_@sum, probability_no" in again.err


def test_rows_of_verbs_are_written_for_spreadsheets_too(here: Path, sle: Sle):
    rows = [f"i{n},{who},{'yes' if n % 3 else 'no'}" for n in range(9) for who in ("=a", "b")]
    write("a.csv", "item,annotator,label", *rows)
    assert sle("reliability", "a.csv", "-o", "out.xlsx").code == 0
    table = openpyxl.load_workbook("out.xlsx").worksheets[0]
    assert sorted(str(row[0].value) for row in table.iter_rows()) == ["=a", "annotator", "b"]
    assert sle("reliability", "a.csv", "-o", "out.csv", "--csv-style", "excel").code == 0
    assert "\n'=a," in Path("out.csv").read_text(encoding="utf-8-sig")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["encode", "-o", "a.tsv", "--csv-style", "excel"],
            "is for a file that ends in .csv; .tsv",
        ),
        (["encode", "-o", "-", "--csv-style", "excel"], "ends in .csv; standard output came"),
        (["triage", "-o", "a.json", "--csv-style", "excel"], "ends in .csv; .json came"),
        (["encode", "-o", "a.xlsx.gz"], "except Parquet and .xlsx"),
    ],
)
def test_a_style_that_a_file_cannot_have_is_refused(
    here: Path, sle: Sle, arguments: list[str], message: str
):
    write("in.csv", "item,label", "a,yes", "a,no")
    run = sle(arguments[0], "in.csv", *arguments[1:])
    assert run.code == 1
    assert message in run.err


def test_more_rows_than_a_sheet_has_are_refused_and_nothing_is_written(
    here: Path, sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    write("in.csv", "item,label", *(f"{n},{'yes' if n % 2 else 'no'}" for n in range(10)))
    monkeypatch.setattr("slencodings.files.excel.MOST_ROWS", 11)
    assert sle("encode", "in.csv", "-o", "out.xlsx").code == 0
    monkeypatch.setattr("slencodings.files.excel.MOST_ROWS", 10)
    Path("out.xlsx").unlink()
    run = sle("encode", "in.csv", "-o", "out.xlsx")
    assert run.code == 1
    assert "a sheet has 10 rows at most; there are more. Name the output .csv" in run.err
    assert [path.name for path in here.iterdir()] == ["in.csv"]
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert (
        "to be written: pip install 'slencodings[excel]'"
        in sle("encode", "in.csv", "-o", "out.xlsx").err
    )


def test_decimal_commas_are_read_where_no_number_has_a_point(here: Path, sle: Sle):
    write("a.csv", "item;label;sure", "1;yes;0,8", "1;no;1", "2;no;,5", "2;no;NA")
    run = sle("encode", "a.csv", "-o", "out.csv", "--missing", "drop")
    assert run.code == 0, run.err
    assert "column 'sure' has decimal commas: 0,8 is 0.8" in run.err
    write("b.csv", "item,label,sure", "1,yes,0.8", "1,no,1", "2,no,.5", "2,no,NA")
    assert sle("encode", "b.csv", "-o", "other.csv", "--missing", "drop").code == 0
    assert Path("out.csv").read_text() == Path("other.csv").read_text()
    write("c.csv", "item;label;sure", "1;yes;0,8", "1;no;0.5")
    run = sle("encode", "c.csv", "-o", "out.csv")
    assert "column 'sure' must hold numbers; 1 row does not, first '0,8' in row 1" in run.err


def test_a_header_may_have_other_delimiters_in_quotes(here: Path, sle: Sle):
    write("a.csv", '"item";"label";"which, if any, of a, b, c"', "1;yes;x", "1;no;x")
    assert "2 rows, 2 labels: no, yes" in sle("encode", "a.csv", "-o", "out.csv").err
