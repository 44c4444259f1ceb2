"""The command line on answers of every kind: in an order, several at once, and pairs."""

import json
from pathlib import Path

import pytest
from running import Sle

TABLE = [
    *("prompt,left,right,winner,judge", "p,x,y,x,ann", "p,y,x,right,bob", "p,x,z,tie,ann"),
    *("q,z,y,left,bob", "q,x,y,A,cyd", "q,y,z,b,cyd"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, *lines: str) -> str:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def test_pairs_become_preferences_and_scores(sle: Sle):
    name = write("pairs.csv", *TABLE)
    run = sle(
        "encode", name, "--pairwise", "left,right,winner", "-o", "p.jsonl", "--scores", "s.csv"
    )
    assert run.code == 0, run.err
    assert "item = prompt" in run.err
    assert "annotator = judge" in run.err
    rows = [json.loads(line) for line in Path("p.jsonl").read_text().splitlines()]
    assert len(rows) == 4  # both placings of x and y under p are one
    first = next(row for row in rows if {row["chosen"], row["rejected"]} == {"x", "y"})
    assert first["chosen"] == "x"
    assert 0.5 < first["probability"] < 1
    assert first["margin"] > 0
    assert first["judgments"] == 2
    assert abs(first["belief"] + first["disbelief"] + first["uncertainty"] - 1) < 1e-9
    lines = Path("s.csv").read_text().splitlines()
    assert lines[0] == "option,score,low,high,judgments"
    assert lines[1].startswith("x,")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pairwise", "left,right"], "must name three columns"),
        (["--pairwise", "left,right,won"], "there is no column 'won'"),
        (["--pairwise", "left,right,winner", "--into", "s.parquet"], "not for `--pairwise`"),
        (["--scores", "s.csv"], "it is for `--pairwise"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(sle: Sle, options: list[str], words: str):
    run = sle("encode", write("pairs.csv", *TABLE), "-o", "out.csv", *options)
    assert run.code != 0
    assert words in run.err.replace("\n", " ")


def test_several_labels_are_asked_one_by_one(sle: Sle):
    lines = ["item,annotator,label", "1,ann,a / b", "1,bob,a", "2,ann,b", "2,bob,b / c"]
    run = sle("encode", write("m.csv", *lines), "--multi", "/", "-o", "out.csv")
    assert run.code == 0, run.err
    items = [line.split(",")[0] for line in Path("out.csv").read_text().splitlines()[1:]]
    assert items == ["1 / a", "1 / b", "1 / c", "2 / a", "2 / b", "2 / c"]


def test_several_labels_of_a_tool_need_no_separator(sle: Sle):
    run = sle(
        "encode", write("m.csv", *TABLE), "--multi", ";", "--format", "prodigy", "-o", "o.csv"
    )
    assert run.code == 1
    assert "Leave one of them out" in run.err


def test_an_order_reaches_the_crowd(sle: Sle):
    lines = ["item,annotator,stars", *(f"{i},{who},{1 + (i + len(who)) % 3}" for i in range(9)
             for who in ("ann", "bo"))]  # fmt: skip
    run = sle("compare", write("o.csv", *lines), "--label", "stars", "--ordered", "1,2,3",
              "--method", "averaged numbers", "-o", "rows.json")  # fmt: skip
    assert run.code == 0, run.err
    assert json.loads(Path("rows.json").read_text())["rows"][0]["steps"] is not None
    run = sle("compare", "o.csv", "--label", "stars", "--ordered", "1,2,3", "--labels", "1,2,3")
    assert run.code != 0
    assert "Leave those out" in run.err
