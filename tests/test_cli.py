"""The command line: what people type, what they are told, and what a script can trust."""

import gzip
import io
import json
import os
import re
import signal
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from crowd_files import ROLES, as_bytes
from running import Run, Sle

import slencodings
from slencodings.choices import Missing
from slencodings.cli import main as cli
from slencodings.cli.messages import in_options
from slencodings.cli.on_a_crowd import show
from slencodings.files import encode as files

TABLE: dict[str, list[Any]] = {
    "item": ["007", "007", "8", "8"],
    "annotator": ["ann", "bob", "ann", "bob"],
    "label": ["yes", "no", "no", "no"],
    "confidence": [0.9, 0.5, 0.75, 0.25],
    "reliability": [1.0, 0.5, 1.0, 0.5],
}


CSV = as_bytes(TABLE).decode()


@pytest.fixture
def sle(sle: Sle) -> Sle:
    """Run the command in a folder with crowd.csv in it."""
    Path("crowd.csv").write_text(CSV)
    return sle


def encode(sle: Sle, *args: str, **how: Any) -> list[dict[str, str]]:
    """The rows that `sle encode` gives as CSV on standard output, weighed as stated."""
    run = sle("encode", *(args or ("crowd.csv",)), "-o", "-", "--weigh", "stated", **how)
    assert run.code == 0, run.err
    head, *rows = [line.split(",") for line in run.out.splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


@cache
def fused(how: str) -> dict[str, list[Any]]:
    """The table fused by another engine than that of the command."""
    return slencodings.fuse_table(pl.DataFrame(TABLE), **json.loads(how)).to_dict(as_series=False)


def assert_rows(rows: list[dict[str, str]], **how: Any) -> None:
    """The rows are those of `fuse_table` on the same table with the same arguments."""
    expected = fused(json.dumps(ROLES | how))
    assert list(rows[0]) == list(expected)
    for name, values in expected.items():
        for row, value in zip(rows, values, strict=True):
            if name in ("item", "label"):
                assert row[name] == value
            else:
                assert abs(float(row[name]) - value) <= 1e-12


def refused(sle: Sle, *args: str, **how: Any) -> str:
    """The one line that says why bad data was refused, nothing being written."""
    before = sorted(os.listdir())
    run = sle("encode", *args, "--weigh", "stated", **how)
    assert run.code == 1, run.err
    assert run.out == ""
    assert sorted(os.listdir()) == before
    told = [
        line for line in run.err.splitlines() if line.split()[0] not in ("columns", "read", "note")
    ]
    assert len(told) == 1, run.err
    assert "Traceback" not in run.err
    return told[0]


def test_the_main_job_is_one_line(sle: Sle):
    run = sle("encode", "crowd.csv", "-o", "targets.parquet", "--weigh", "stated")
    assert run == Run(
        0,
        "",
        "columns  item = item, annotator = annotator, label = label, confidence = confidence, "
        "reliability = reliability\n"
        "read     crowd.csv: 4 rows, 2 labels: no, yes\n"
        "wrote    targets.parquet: 2 rows, wide: probability by votes as stated, cumulative, "
        "smoothing 0.01\n",
    )
    result = pq.read_table("targets.parquet").to_pydict()
    assert result["item"] == ["007", "8"]
    # 007: a certainty of .99 x 1 x .9 for yes against .99 x .5 x .5 for no, by their odds.
    yes, no = 0.891 / 0.109, 0.2475 / 0.7525
    assert result["belief_yes"][0] == pytest.approx(yes / (1 + yes + no), rel=1e-12)
    assert result["belief_no"][0] == pytest.approx(no / (1 + yes + no), rel=1e-12)
    assert result["uncertainty"][0] == pytest.approx(1 / (1 + yes + no), rel=1e-12)
    # 8: both say no, .99 x .75 and .99 x .5 x .25.
    both = 0.7425 / 0.2575 + 0.12375 / 0.87625
    assert result["probability_no"][1] == pytest.approx((both + 0.5) / (1 + both), rel=1e-12)
    assert "slencodings" in pq.read_table("targets.parquet").schema.metadata.__repr__()


def test_standard_output_holds_the_result_and_nothing_else(sle: Sle):
    assert_rows(encode(sle))
    assert os.listdir() == ["crowd.csv"]


def pipes() -> dict[str, bytes]:
    records = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    lines = "".join(json.dumps(record) + "\n" for record in records).encode()
    sink = io.BytesIO()
    pq.write_table(pa.table(TABLE), sink)
    return {
        "csv": CSV.encode(),
        "tsv": CSV.replace(",", "\t").encode(),
        "jsonl": lines,
        "json": json.dumps(records).encode(),
        "parquet": sink.getvalue(),
        "csv.gz": gzip.compress(CSV.encode()),
        "jsonl.gz": gzip.compress(lines),
    }


@pytest.mark.parametrize("format", pipes())
def test_any_format_comes_through_a_pipe(sle: Sle, format: str):
    assert_rows(encode(sle, "-", stdin=pipes()[format]))


def test_a_named_pipe_is_read_as_well(sle: Sle):
    os.mkfifo("pipe")
    writer = subprocess.Popen(["cp", "crowd.csv", "pipe"])
    assert_rows(encode(sle, "pipe"))
    assert writer.wait() == 0


# Options


@pytest.mark.parametrize("operator", ["cumulative", "average", "weighted", "constraint"])
def test_every_operator_is_that_of_fuse_table(sle: Sle, operator: str):
    assert_rows(encode(sle, "crowd.csv", "--operator", operator), operator=operator)


def test_smoothing_is_that_of_fuse_table(sle: Sle):
    assert_rows(encode(sle, "crowd.csv", "--smoothing", "0.2"), smoothing=0.2)
    assert_rows(encode(sle, "crowd.csv", "--smoothing", "0"), smoothing=0.0)


def test_prior_weight_is_seen_in_evidence_and_alpha(sle: Sle):
    values = ["evidence", "alpha", "base_rate"]
    rows = encode(sle, "crowd.csv", "--prior-weight", "5", "--values", ",".join(values))
    assert_rows(rows, prior_weight=5, values=values)


def test_values_that_come_twice_are_given_once(sle: Sle):
    rows = encode(sle, "crowd.csv", "--values", "uncertainty, uncertainty")
    assert_rows(rows, values=["uncertainty"])


@pytest.mark.parametrize("form", ["wide", "long"])
def test_both_forms_can_be_asked_for(sle: Sle, form: str):
    assert_rows(encode(sle, "crowd.csv", "--form", form), form=form)


@pytest.mark.parametrize(
    ("scale", "low", "high"),
    [
        ("1-5", 1, 5),
        ("1..5", 1, 5),
        ("1:5", 1, 5),
        ("0-100", 0, 100),
        ("-2-2", -2, 2),
        ("7-1", 7, 1),
    ],
)
def test_the_ends_of_a_scale_are_named(sle: Sle, scale: str, low: float, high: float):
    scores = [low + (high - low) * c for c in TABLE["confidence"]]
    Path("crowd.csv").write_bytes(as_bytes(TABLE | {"confidence": scores}))
    assert_rows(encode(sle, "crowd.csv", "--confidence-scale", scale))


def test_a_calibrated_scale_is_learned_and_shown(sle: Sle):
    run = sle("encode", "crowd.csv", "-o", "out.csv", "--confidence-scale", "calibrated")
    assert run.code == 0
    assert re.search(r"learned  what stated confidence is worth:\n +stated +annotations", run.err)


def test_labels_are_named_in_their_order_and_may_hold_commas(sle: Sle):
    rows = encode(sle, "crowd.csv", "--labels", "yes,no,maybe")
    assert_rows(rows, labels=["yes", "no", "maybe"])
    run = sle("encode", "crowd.csv", "-o", "out.jsonl", "--labels", 'yes, no, "well, no"')
    assert run.code == 0
    assert "belief_well, no" in json.loads(Path("out.jsonl").read_text().splitlines()[0])


@pytest.mark.parametrize(("missing", "code"), [("error", 1), ("drop", 0), ("trust", 0)])
def test_missing_numbers_are_refused_dropped_or_trusted(sle: Sle, missing: Missing, code: int):
    Path("crowd.csv").write_text(CSV.replace("0.25", "NA"))
    run = sle("encode", "crowd.csv", "-o", "-", "--weigh", "stated", "--missing", missing)
    assert run.code == code
    if code == 0:
        table = TABLE | {"confidence": [0.9, 0.5, 0.75, None]}
        expected = slencodings.fuse_table(pa.table(table), **ROLES, missing=missing).to_pydict()
        shown = [float(line.split(",")[1]) for line in run.out.splitlines()[1:]]
        assert shown == pytest.approx(expected["belief_no"], abs=1e-12)


@pytest.mark.parametrize(("duplicates", "label"), [("first", "yes"), ("last", "no")])
def test_repeats_keep_the_first_or_the_last(sle: Sle, duplicates: str, label: str):
    Path("crowd.csv").write_text("item,annotator,label\na,u,yes\na,u,no\nb,v,no\n")
    rows = encode(sle, "crowd.csv", "--duplicates", duplicates)
    assert float(rows[0][f"belief_{label}"]) == 0.99


def test_columns_and_numbers_are_given_by_name(sle: Sle):
    Path("odd.csv").write_text(CSV.replace("item,", "key,", 1).replace("label,", "said,", 1))
    args = ["--item", "key", "--label", "said", "--confidence", "0.5", "--reliability", "0.8"]
    run = sle("encode", "odd.csv", *args, "-o", "-")
    assert run.code == 0
    assert "item = key, annotator = annotator, label = said, confidence = 0.5" in run.err
    expected = slencodings.fuse_table(
        TABLE, item="item", label="label", confidence=0.5, reliability=0.8
    )
    assert float(run.out.splitlines()[1].split(",")[1]) == pytest.approx(expected["belief_no"][0])


def test_quiet_says_nothing(sle: Sle):
    assert sle("encode", "crowd.csv", "-q", "-o", "out.csv") == Run(0, "", "")


def test_verbose_says_how_it_was_done(sle: Sle):
    run = sle("encode", "crowd.csv", "-v", "-o", "out.csv", "--weigh", "stated")
    assert run.code == 0
    assert "detail   smoothing = 0.01" in run.err
    assert "detail   smoothing" not in sle("encode", "crowd.csv", "-o", "out.csv").err


def test_the_version_is_that_of_the_package(sle: Sle):
    assert sle("--version") == Run(0, f"slencodings {slencodings.__version__}\n", "")


NAMES = tuple(enumerate(["annotator-one", "annotator-two", "annotator-three"]))


def test_a_narrow_terminal_shows_all_of_an_item_that_is_an_address(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "60")
    items = [f"https://bucket.example.org/a-project/of-a-year/images/{n:05}.jpg" for n in (1, 2)]
    show(["item", "why"], [[item, "said by somebody " * 4] for item in items])
    lines = capsys.readouterr().out.splitlines()[1:]
    assert max(map(len, lines)) <= 60
    assert "".join(line.split("  ")[0].strip() for line in lines) == "".join(items)


def test_what_to_label_next_is_shown_with_by_whom_on_a_narrow_terminal(
    sle: Sle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = [f"a-long-name-{i},{who},{(i * k) % 3}" for i in range(9) for k, who in NAMES]
    (tmp_path / "crowd.csv").write_text("\n".join(["item,who,label", *rows]))
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "70")
    run = sle("triage", "crowd.csv", "--annotator", "who")
    assert "by whom" in run.out.partition("(not shown")[0]
    assert "(not shown for want of room: why" in run.out


def test_help_tells_every_option(sle: Sle):
    run = sle("encode", "--help-all")
    assert run.code == 0
    options = "output format item annotator label confidence uncertainty reliability labels missing"
    options += " confidence-scale duplicates smoothing prior-weight operator form values quiet"
    options += " weigh reading save-crowd seed into again engine master memory question"
    assert all(f"--{option}" in run.out for option in options.split())
    assert "Exit codes: 0 done, 1 bad data, 2 wrong usage" in sle("--help").out


def test_help_fits_a_screen_in_groups_with_two_examples(sle: Sle, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    verbs = [
        "encode",
        "compare",
        "reliability",
        "triage",
        "panel",
        "report",
        "train",
        "evaluate",
        "demo",
    ]
    for verb in verbs:
        run = sle(verb, "-h")
        assert run == sle(verb, "--help")
        assert len(run.out.splitlines()) <= 45
        assert sum(line.startswith(f"  sle {verb}") for line in run.out.splitlines()) == 2
        if verb != "demo":
            assert "Columns:" in run.out
            whole = sle(verb, "--help-all").out
            assert len(whole.splitlines()) > len(run.out.splitlines())
            assert "--duplicates" in whole
            assert "--duplicates" not in run.out
    summary = sle("-h").out
    assert all(f"  {verb} " in summary for verb in verbs)
    assert "..." not in summary.partition("Commands:")[2]


def test_a_shell_can_complete_the_verbs(sle: Sle, monkeypatch):
    monkeypatch.setenv("_SLE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "sle tri")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert sle().out.split() == ["triage"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "Missing argument 'IN'"),
        (["crowd.csv"], "--output.*a file for opinions is needed, or --into.*neither came"),
        (["crowd.csv", "-o", "-", "--again"], "--again.*it is for `--into STORE.parquet`"),
        (["crowd.csv", "-o", "-", "--master", "local"], "--master.*it is for `--engine spark`"),
        (
            ["crowd.csv", "-o", "o.csv", "--engine", "spark", "--save-crowd", "c.json"],
            "--save-crowd.*it is not for `--engine spark`; `--save-crowd c.json` came",
        ),
        (
            ["crowd.csv", "--into", "s.parquet", "--engine", "spark"],
            "--into.*it is not for `--engine spark`",
        ),
        (
            ["crowd.csv", "-o", "-", "--operator", "sum"],
            r"--operator'?: 'sum' is not one of .*'\.?$",
        ),
        # Older typers name what came in words of their own.
        (
            ["crowd.csv", "-o", "-", "--smoothing", "2"],
            "--smoothing.*(a number of at most 1 is needed; '2' came|: 2.* not in the range)",
        ),
        (
            ["crowd.csv", "-o", "-", "--seed", "-1"],
            "--seed.*(a number of at least 0 is needed; '-1' came|: -1 is not in the range)",
        ),
        (["crowd.csv", "-o", "-", "--smoothing", "much"], "(a number is needed; |: )'much' "),
        (["crowd.csv", "-o", "-", "--seed", "0.5"], "(a whole number is needed; |: )'0.5' "),
        (["crowd.csv", "-o", "-", "--prior-weight", "0"], "positive number is needed; 0 came"),
        (["crowd.csv", "-o", "-", "--confidence-scale", "5"], "different ends.*1-5.*'5' came"),
        (["crowd.csv", "-o", "-", "--confidence-scale", "5-5"], "different ends.*'5-5' came"),
        (["crowd.csv", "-o", "-", "--values", "mood"], "some of belief, .* 'mood' came"),
        (["crowd.csv", "-o", "-", "--values", ""], "some of belief, .* '' came"),
        (["crowd.csv", "-o", "-", "--colour"], r"No such option:? '?--colour"),
    ],
)
def test_wrong_usage_is_code_2_and_leads_to_the_help(sle: Sle, args: list[str], message: str):
    run = sle("encode", *args)
    assert (run.code, run.out) == (2, "")
    assert "Try 'sle encode --help'" in run.err
    assert re.search(message, run.err)


def test_a_verb_that_there_is_not_is_code_2_and_the_nearest_is_offered(sle: Sle):
    run = sle("encod", "crowd.csv")
    assert (run.code, run.out) == (2, "")
    assert "Try 'sle --help'" in run.err
    assert re.search(r"No such command 'encod'\.", run.err)
    assert "Traceback" not in run.err


# Bad input


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


BAD_CSV = {
    "empty": (b"", r"bad.csv is empty; at least a header and one row are needed"),
    "header only": (b"item,label\n", r"no rows; at least one annotation is needed"),
    "other columns": (
        b"who,what\na,b\n",
        r"no column looks like the item.*'who', 'what'.*--item COLUMN",
    ),
    "names up to case": (
        b"item,label,Item\na,b,c\n",
        r"more than case.*'item' and 'Item' came. Rename one",
    ),
    "one label": (b"item,label\na,x\na,x\n", r"labels are needed; only 'x' came.*--labels x,..."),
    "long row": (
        b"item,label\na,x\nb,y,z\n",
        r"as CSV: .*Line: 3.*b,y,z.*Columns: 2.*--format if that is another: csv",
    ),
    "short row": (b"item,label\na,x\nb\nc,y\n", r"as CSV: .*Line: 3.*2 Found: 1.*Repair it"),
    "open quote": (b'item,label\na,x\nb,"y\n', r"as CSV: .*unterminated quote"),
    "two ends of line": (b"item,label\r\na,x\nb,y\r\n", r"quotes or its ends of lines do not"),
    "binary": (b"\x7fELF\x00\x01\x02", r"binary file of another kind.*Export it"),
    "words": (
        b"item,label,confidence\na,x,high\nb,y,low\n",
        r"'confidence' must hold numbers; 2 rows do not, first 'high' in row 1.*Map its words",
    ),
    "percent": (
        b"item,label,confidence\na,x,80%\nb,y,7.5 %\n",
        r"must hold numbers; 2 rows do not, first '80%' in row 1 of the data. Write 80% as 0.8, or",
    ),
    "out of range": (
        b"item,label,confidence\na,x,4\nb,y,1\n",
        r"--confidence must lie in \[0, 1\]; 1 of 2 rows do not.*first 4.0 in row 1 of the data"
        r".*--confidence-scale 1-5",
    ),
    "missing numbers": (
        b"item,annotator,label,reliability\na,u,x,1\nb,v,y,\n",
        r"--reliability must be there.*1 of 2 rows have none, first in row 2 of the data, item "
        r"'b', annotator 'v'. Pass --missing drop .*--missing trust",
    ),
    "missing item": (b"item,label\n,x\nb,y\n", r"must name its item; 1 of 2 rows have none"),
    "missing labels": (
        b"item,label\na,\nb,\n",
        r"no annotation has a label: column 'label' is empty",
    ),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv_says_what_was_needed_what_came_and_what_to_type(sle: Sle, case: str):
    content, message = BAD_CSV[case]
    Path("bad.csv").write_bytes(content)
    said = refused(sle, "bad.csv", "-o", "out.csv")
    assert said.startswith("error: ")
    assert re.search(message, said), said


LONG = b"item,label\n" + b"".join(b"%d,x\n" % i for i in range(10_000))
DAMAGED = {
    "broken line.jsonl": (
        b'{"item": 1\n{"item": 2}\n',
        r"as JSONL: line 1 is not JSON, Expecting ','.*--format",
    ),
    "cut.jsonl": (b'{"item": 1, "label": "a"}\n{"it', r"as JSONL: line 2 is not JSON.*copy it"),
    "key twice.jsonl": (b'{"item": 1, "item": 2, "label": 3}\n', r"line 1.*duplicate key"),
    "mixed.jsonl": (
        b'{"item": 1, "label": "x"}\n{"item": "1", "label": "y"}\n',
        r"'item' must hold values of one type; 1 row with numbers, first 1 in row 1 of the data"
        r'; 1 row with text, first "1" in row 2',
    ),
    "cut.json": (b'[{"item": 1, "label": 2},', r"cut.json is cut off: a JSON array ends with \]"),
    "words.jsonl": (
        b'{"item": 1, "label": ["x", "y"]}\n',
        r"lists of several came, such as .*--multi ';'",
    ),
    "short.csv.gz": (packed(CSV.encode())[:30], r"gzipped and damaged.*again"),
    "long.csv.gz": (packed(LONG)[:-99], r"as CSV: Unexpected end of GZIP stream.*copy it again"),
    "long.jsonl.gz": (
        packed(b'{"item": 1, "label": 2}\n' * 10_000)[:-30],
        r"as JSONL: Unexpected end of GZIP stream.*copy it again",
    ),
    "cut.parquet": (pipes()["parquet"][:-20], r"as PARQUET: No magic bytes.*copy it again"),
    "tiny.parquet": (b"PAR1", r"as PARQUET: .*too small"),
    "csv.parquet": (CSV.encode(), r"as PARQUET: No magic bytes.*name its --format"),
    "packed.parquet": (packed(pipes()["parquet"]), r"gzipped Parquet.*gunzip packed.parquet"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_say_so(sle: Sle, name: str):
    content, message = DAMAGED[name]
    Path(name).write_bytes(content)
    said = refused(sle, name, "-o", "out.csv")
    assert re.search(message, said), said


def test_parquet_that_is_damaged_inside_is_refused_when_it_is_read(sle: Sle):
    content = bytearray(pipes()["parquet"])
    content[4:200] = b"\xa5" * 196
    Path("a.parquet").write_bytes(content)
    assert "a.parquet cannot be read as PARQUET" in refused(sle, "a.parquet", "-o", "out.csv")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["crowd.cvs"], r"there is no file 'crowd.cvs'. Did you mean 'crowd.csv'\?"),
        (["sub/crowd.csv"], r"there is no file 'sub/crowd.csv'.$"),
        (["crowd.csv", "--item", "itm"], r"no column 'itm' for --item; .*mean --item item\?"),
        (["crowd.csv", "--label", "yes,no"], r"no column 'yes' for --label"),
        (["crowd.csv", "--item", "label", "--label", "label"], r"came as --item and --label"),
        (["crowd.csv", "--labels", "yes,maybe"], r"one of --labels yes,maybe; 3 of 4 rows do not"),
        (["crowd.csv", "--confidence", "2"], r"--confidence .*2.0 came.*--confidence-scale 1-5"),
        (["crowd.csv", "--uncertainty", "0", "--confidence-scale", "1-5"], r"--confidence COLUMN"),
        (
            ["crowd.csv", "--operator", "constraint", "--smoothing", "0"],
            r"conflict; --smoothing 0 came. Pass a smoothing such as 0.01",
        ),
        (["-"], r"stdin is empty; at least a header and one row are needed"),
    ],
)
def test_what_does_not_fit_the_file_says_so(sle: Sle, args: list[str], message: str):
    said = refused(sle, *args, "-o", "out.csv")
    assert re.search(message, said), said


def test_repeats_can_be_refused(sle: Sle):
    Path("twice.csv").write_text(CSV + CSV.split("\n", 1)[1])
    said = refused(sle, "twice.csv", "-o", "out.csv", "--duplicates", "error")
    assert re.search(r"label an item once; 4 rows repeat an earlier pair, such as item", said)
    assert "--duplicates first" in said


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("none/out.csv", r"needs a folder that is there; 'none' is not. .*mkdir -p none"),
        ("folder", r"output must be a file; 'folder' is a folder. .*folder/targets.parquet"),
        ("out.docx", r"chooses its format: .parquet, .csv, .*; 'out.docx' came"),
        ("out", r"chooses its format: .*'out' came"),
        ("out.parquet.gz", r"also with .gz, except Parquet and .xlsx\); 'out.parquet.gz' came"),
        ("crowd.csv", r"must not replace its own input 'crowd.csv'. Name another"),
        ("link.csv", r"must not replace its own input 'crowd.csv'. Name another"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_any_work(sle: Sle, target: str, message: str):
    Path("folder").mkdir()
    Path("link.csv").symlink_to("crowd.csv")
    said = refused(sle, "crowd.csv", "-o", target)
    assert re.search(message, said), said
    assert Path("crowd.csv").read_text() == CSV


def test_a_folder_that_cannot_be_written_to_is_found_before_any_work(
    sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    # Root may write anywhere, so the folder refuses in person.
    def refuse(**_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    said = refused(sle, "crowd.csv", "-o", "out.csv")
    assert said == (
        "error: the output 'out.csv' cannot be written: Permission denied. Choose another place."
    )


def test_what_a_message_says_to_type_for_a_wide_table_reads_it(sle: Sle):
    Path("wide.csv").write_text("what,ann,bob,note\nu1,yes,no,free\nu2,no,no,words\n")
    wide = ("wide.csv", "--format", "wide", "-o", "out.csv")
    assert refused(sle, *wide).endswith("'ann', 'bob', 'note'. Name it: --item COLUMN.")
    wide += ("--item", "what")
    assert refused(sle, *wide).endswith("which columns are annotators: --annotator ann,bob.")
    said = refused(sle, *wide, "--annotator", "ann,cy")
    assert said.endswith("'ann', 'bob', 'note'. Name them: --annotator A,B,...")
    assert sle("encode", *wide, "--annotator", "ann,bob").code == 0


def test_a_file_that_may_not_be_read_is_named_in_a_sentence(
    sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: Any) -> bool:
        raise PermissionError(13, "Permission denied", "crowd.csv")

    monkeypatch.setattr("slencodings.files.locate.is_store", refuse)
    assert refused(sle, "crowd.csv", "-o", "out.csv") == (
        "error: 'crowd.csv' cannot be opened: Permission denied. `ls -l` shows who may read it."
    )


def test_what_should_not_happen_is_one_line_and_its_place_is_shown_on_demand(
    sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("one by nothing")

    monkeypatch.setattr(files, "encode_file", fail)
    run = sle("encode", "crowd.csv", "-o", "out.csv")
    message = (
        "error: ZeroDivisionError: one by nothing\n"
        "This should not happen; -v shows where it came from.\n"
    )
    assert run == Run(1, "", message)
    run = sle("encode", "crowd.csv", "-o", "out.csv", "-v")
    assert run.code == 1
    assert run.err.startswith("Traceback")
    assert "in fail" in run.err
    assert run.err.endswith(message)


def test_where_a_known_error_came_from_is_shown_on_demand_too(sle: Sle):
    run = sle("encode", "nope.csv", "-o", "out.csv", "-v")
    assert run.code == 1
    assert run.err.startswith("Traceback")
    assert run.err.splitlines()[-1].startswith("error: there is no file 'nope.csv'")


@cache
def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(cli.app)
    return group.commands


@pytest.mark.parametrize(
    ("library", "typed"),
    [
        ("Pass missing='drop', missing='trust'.", "Pass --missing drop, --missing trust."),
        ("smoothing=0 came", "--smoothing 0 came"),
        ("confidence_scale=(1, 5).", "--confidence-scale 1-5."),
        ("pass form='long'.", "pass --form long."),
        ("Say format='prodigy', or", "Say --format prodigy, or"),
        ("mean item='Task ID'?", "mean --item 'Task ID'?"),
        ("Pass annotator='COLUMN'.", "Pass --annotator COLUMN."),
        ("labels=['a', ...].", "--labels a,..."),
        ("Say annotators=['ann', 'b c'].", "Say --annotator 'ann,b c'."),
        ("labels=['a', 'b c']; 2", "--labels 'a,b c'; 2"),
        ("labels=[...].", "--labels A,B,..."),
        ("labels=[0, 1]", "--labels 0,1"),
        ("ordered=['a]', 'b']. If", "--ordered 'a],b'. If"),
        ("Such as pairwise='left,right,winner'.", "Such as --pairwise left,right,winner."),
        ('item="who\'s"', """--item 'who'"'"'s'"""),
        ("Pass weigh='stated'.", "Pass --weigh stated."),
        ("reading='truth' came", "--reading truth came"),
        ("confidence='COLUMN'", "--confidence COLUMN"),
        ("`confidence_scale` came", "--confidence-scale came"),
        ("again=True", "--again"),
        ("sort=False came", "--no-sort came"),
        ("again=False came", "again=False came"),
        ("`weight` must be finite", "`weight` must be finite"),
    ],
)
def test_messages_of_the_library_are_spelled_as_options(library: str, typed: str):
    assert in_options(library, commands()["encode"]) == typed


@pytest.mark.parametrize("role", ["confidence", "annotator"])
@pytest.mark.parametrize("verb", ["encode", "compare", "reliability", "triage", "report"])
def test_only_what_a_verb_takes_is_offered_for_what_is_missing(sle: Sle, verb: str, role: str):
    rows = [("a", "ann", "x", ""), ("b", "bob", "y", "1"), ("c", "", "y", "1")]
    rows = [row for row in rows if row[1 if role == "confidence" else 3]]
    lines = ["item,annotator,label,confidence", *map(",".join, rows)]
    Path("crowd.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = f"out.{'html' if verb == 'report' else 'csv'}"
    run = sle(verb, "crowd.csv", "-o", out)
    assert run.code == 1
    assert "Pass --missing drop to leave them out" in run.err
    offered = "--missing trust" in run.err
    assert offered == (verb == "encode")
    assert offered == (sle(verb, "crowd.csv", "-o", out, "--missing", "trust").code != 2)
    if role == "confidence":  # as where people were not asked for it, and models beside them were
        assert ", --confidence 1 to keep them and use no such column." in run.err
        kept = sle(verb, "crowd.csv", "-o", out, "--confidence", "1")
        assert re.search(r"^read .* (2 rows|2 annotations of)", kept.err, re.M)


@pytest.mark.parametrize("words", [("--version",), ("encode", "nowhere.csv", "-o", "o.parquet")])
def test_a_stop_after_all_is_done_ends_the_process_without_a_word(sle: Sle, words: tuple[str, ...]):
    """Torture stopped `train` while torch was tidying up, which then told of our exit."""
    sle(*words)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
