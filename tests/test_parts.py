"""Opinions in a folder of parts, all of it or nothing; and what we write about files is no data."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from running import Sle

from slencodings.files import write
from slencodings.files.encode import encode_file


@pytest.fixture(autouse=True)
def here(here: Path) -> Path:
    lines = ["item,annotator,label,day,place"]
    for n in range(12):
        day = ["1", "2/3", "", "ünï d"][n % 4]
        lines += [f"i{n},{who},{'xy'[(n + k) % 2]},{day},b{n % 2}" for k, who in enumerate("abc")]
    Path("crowd.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return here


def rows_of(query: str) -> list[tuple[Any, ...]]:
    relation = duckdb.sql(query)
    assert relation is not None
    return relation.fetchall()


def opinions(source: str) -> list[tuple[object, ...]]:
    return rows_of(
        f"SELECT item, belief_x, belief_y, uncertainty, probability_x, probability_y FROM {source} "
        "ORDER BY item"
    )


def encode(sle: Sle, *args: str) -> str:
    run = sle("encode", "crowd.csv", "--weigh", "stated", *args)
    assert run.code == 0, run.err
    return run.err


def test_parts_together_are_the_file_and_each_holds_its_own(sle: Sle, here: Path):
    encode(sle, "-o", "one.parquet", "--keep", "day,place")
    said = encode(sle, "-o", "parts", "--partition-by", "day,place")
    assert "wrote    parts: 12 rows" in said
    found = "read_parquet('parts/*/*/*.parquet', hive_partitioning = true)"
    assert opinions(found) == opinions("'one.parquet'")
    # An empty cell of CSV is nothing, and so is its part.
    columns = "SELECT item, day::VARCHAR, place FROM {} ORDER BY item"
    assert rows_of(columns.format(found)) == rows_of(columns.format("'one.parquet'"))
    files = sorted(p.relative_to("parts") for p in Path("parts").rglob("*.parquet"))
    assert len({p.parent for p in files}) == len(files) == 4
    assert {p.name for p in files} == {"part-0.parquet"}
    for file in files:
        items = [row[0] for row in rows_of(f"SELECT item FROM 'parts/{file}'")]
        assert items == sorted(items)
    about = json.loads(Path("parts/_slencodings.json").read_text())
    assert about["partition_by"] == ["day", "place"]
    assert [p.name for p in here.iterdir() if "slencodings" in p.name] == []


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl"])
def test_the_name_of_the_folder_chooses_the_format(sle: Sle, ending: str):
    Path(f"parts{ending}").mkdir()  # An empty folder may be there.
    encode(sle, "-o", f"parts{ending}", "--partition-by", "place")
    files = [p for p in Path(f"parts{ending}").rglob("*") if p.is_file()]
    assert sorted(p.suffix for p in files) == sorted([ending, ending, ".json"])
    encode(sle, "-o", "one.parquet")
    reader = "read_json" if ending == ".jsonl" else "read_csv"
    found = f"{reader}('parts{ending}/*/*{ending}', hive_partitioning = true)"
    for one, other in zip(opinions(found), opinions("'one.parquet'"), strict=True):
        assert one[0] == other[0]
        assert one[1:] == pytest.approx(other[1:], abs=1e-12)


def test_what_fails_leaves_no_folder_and_no_scratch(
    sle: Sle, here: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    before = sorted(here.iterdir())
    monkeypatch.setattr(write.json, "dumps", fail)
    run = sle("encode", "crowd.csv", "-o", "parts", "--partition-by", "day", "--weigh", "stated")
    assert run.code == 1
    assert "parts could not be written: No space left on device. What was there before" in run.err
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-o", "x.xlsx"], r"parts go into a folder, whose name may choose .*; 'x.xlsx' came"),
        (["-o", "-"], r"parts go into a folder, .* or Parquet without an ending; '-' came"),
        (["-o", "full"], r"the output must not be there yet; 'full' is\. Remove it"),
        (["-o", "crowd.csv"], r"the output must not be there yet; 'crowd.csv' is"),
        (["-o", "no/parts"], r"the output needs a folder that is there; 'no' is not"),
        (["-o", "p", "--into", "s.parquet"], r"a store has no columns .*--into s.parquet came"),
        (["-o", "p", "--csv-style", "excel"], r"--csv-style excel is for one file; --partition-by"),
        (["-o", "p", "--partition-by", "dya"], r"no column 'dya' for --keep.* Did you mean"),
    ],
)
def test_what_cannot_be_a_folder_of_parts_is_refused(sle: Sle, args: list[str], words: str):
    Path("full").mkdir()
    Path("full/file").write_text("")
    run = sle("encode", "crowd.csv", "--weigh", "stated", "--partition-by", "day", *args)
    assert run.code == 1
    assert re.search(words, run.err)
    assert not Path("p").exists()


def test_parts_need_a_folder_and_are_not_for_spark_or_pairs(sle: Sle):
    with pytest.raises(ValueError, match=r"parts need a folder .*Name it: target='folder'"):
        encode_file("crowd.csv", into="s.parquet", partition_by=["day"])
    for other in (["--engine", "spark"], ["--pairwise", "a,b,c"]):
        run = sle("encode", "crowd.csv", "-o", "p.parquet", "--partition-by", "day", *other)
        assert run.code == 2
        assert "--partition-by" in run.err


def test_no_folder_is_made_for_an_address(sle: Sle, here: Path):
    name = "s3://bucket/parts"
    run = sle("encode", "crowd.csv", "--weigh", "stated", "-o", name, "--partition-by", "day")
    assert run.code == 1
    assert f"the output must be on this machine; '{name}' is not" in run.err
    assert "mkdir" not in run.err
    assert [p.name for p in here.iterdir()] == ["crowd.csv"]


def test_what_was_written_about_files_is_no_data_in_a_folder(sle: Sle):
    Path("folder").mkdir()
    shutil.copy("crowd.csv", "folder/crowd.csv")
    for name in ("crowd.csv.meta.json", "_slencodings.json"):
        Path("folder", name).write_text('{"weigh": "stated"}')
    encode(sle, "-o", "one.csv")
    whole = Path("one.csv").read_text()
    for source in ("folder", "folder/*"):
        run = sle("encode", source, "--weigh", "stated", "-o", "two.csv")
        assert run.code == 0, run.err
        assert Path("two.csv").read_text() == whole
    # Whoever names it alone means it.
    run = sle("encode", "folder/crowd.csv.meta.json", "-o", "two.csv")
    assert "no column looks like the item" in run.err
