"""From a file to a file: every format gives the numbers of `fuse_table`, and nothing is lost."""

import csv
import gzip
import io
import json
import os
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from crowd_files import ROLES, Table, as_bytes, assert_same_table, awkward_table
from flat import encode_as_stated

import slencodings
from slencodings.files import write as files
from slencodings.files.rows import write_rows
from slencodings.files.write import disk_errors, replacing


def read_back(path: Path) -> Table:
    """The columns of an output, read without DuckDB; text that is a number becomes one."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    if ".jsonl" in path.name:
        records = [json.loads(line) for line in content.decode().splitlines()]
    else:
        delimiter = "\t" if ".tsv" in path.name else ","
        text = io.StringIO(content.decode(), newline="")
        records = list(csv.DictReader(text, delimiter=delimiter))
    ids = (next(iter(records[0])), "label")
    return {
        name: [record[name] if name in ids else float(record[name]) for record in records]
        for name in records[0]
    }


def encode(folder: Path, content: bytes, name: str, target: str = "out.parquet", **how: Any) -> Any:
    """Encode a file of this content and name; the result and what was said about it."""
    (folder / name).write_bytes(content)
    said: list[str] = []
    about = encode_as_stated(
        str(folder / name),
        str(folder / target),
        say=lambda what, text: said.append(f"{what} {text}"),
        **({"columns": {}} | how),
    )
    return read_back(folder / target), about, said


TEXT_FORMATS = ["csv", "tsv", "jsonl", "json"]


@pytest.mark.parametrize("format", [*TEXT_FORMATS, "parquet"])
def test_every_input_gives_the_numbers_of_fuse_table(tmp_path: Path, format: str):
    table = awkward_table()
    result, _, _ = encode(tmp_path, as_bytes(table, format), f"crowd.{format}")
    assert_same_table(result, slencodings.fuse_table(table, **ROLES))


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_gzipped_inputs_are_the_same(tmp_path: Path, format: str):
    table = awkward_table()
    packed = gzip.compress(as_bytes(table, format))
    result, _, _ = encode(tmp_path, packed, f"crowd.{format}.gz")
    assert_same_table(result, slencodings.fuse_table(table, **ROLES))


@pytest.mark.parametrize("format", [*TEXT_FORMATS, "parquet"])
def test_a_name_that_does_not_tell_is_no_hindrance(tmp_path: Path, format: str):
    table = awkward_table()
    result, _, _ = encode(tmp_path, as_bytes(table, format), "export")
    assert_same_table(result, slencodings.fuse_table(table, **ROLES))


def test_a_named_format_wins_over_the_name_of_the_file(tmp_path: Path):
    table = awkward_table()
    result, _, _ = encode(tmp_path, as_bytes(table, "jsonl"), "crowd.csv", format="jsonl")
    assert_same_table(result, slencodings.fuse_table(table, **ROLES))


SUFFIXES = [".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".CSV", ".csv.gz", ".tsv.gz"]


@pytest.mark.parametrize("target", [f"out{suffix}" for suffix in [*SUFFIXES, ".jsonl.gz"]])
def test_every_output_holds_the_numbers_of_fuse_table(tmp_path: Path, target: str):
    table = awkward_table()
    (tmp_path / "crowd.csv").write_bytes(as_bytes(table, "csv"))
    encode_as_stated(str(tmp_path / "crowd.csv"), str(tmp_path / target), columns={})
    shown = tmp_path / target.lower().replace("ndjson", "jsonl")
    (tmp_path / target).rename(shown)
    assert_same_table(read_back(shown), slencodings.fuse_table(table, **ROLES))


def test_the_long_form_is_that_of_fuse_table(tmp_path: Path):
    table = awkward_table()
    result, _, _ = encode(tmp_path, as_bytes(table, "csv"), "crowd.csv", "out.csv", form="long")
    assert_same_table(result, slencodings.fuse_table(table, **ROLES, form="long"))


@pytest.mark.parametrize(
    "how",
    [
        {"delimiter": ";"},
        {"delimiter": "|"},
        {"lineterminator": "\r\n"},
        {"quoting": csv.QUOTE_ALL},
    ],
)
def test_csv_comes_in_many_dialects(tmp_path: Path, how: Any):
    table = awkward_table()
    result, _, _ = encode(tmp_path, as_bytes(table, "csv", **how), "crowd.csv")
    assert_same_table(result, slencodings.fuse_table(table, **ROLES))


def test_a_byte_order_mark_and_a_nameless_index_do_not_hide_the_columns(tmp_path: Path):
    table = awkward_table()
    indexed = {"": list(range(200))} | table
    content = b"\xef\xbb\xbf" + as_bytes(indexed, "csv")
    result, _, _ = encode(tmp_path, content, "crowd.csv")
    assert_same_table(result, slencodings.fuse_table(table, **ROLES))


def test_numbers_as_ids_stay_numbers_where_the_file_has_types(tmp_path: Path):
    table = {"item": [3, 1, 2, 1], "label": [0, 1, 1, 0]}
    for format in ("parquet", "jsonl"):
        result, _, _ = encode(tmp_path, as_bytes(table, format), f"crowd.{format}")
        assert result["item"] == [1, 2, 3]
        assert "belief_0" in result


def test_labels_on_the_command_line_take_the_type_of_their_column(tmp_path: Path):
    table = {"item": [1, 2], "label": [0, 1]}
    for format in ("parquet", "csv"):
        content = as_bytes(table, format)
        _, about, _ = encode(tmp_path, content, f"crowd.{format}", labels=["2", "1", "0"])
        assert about["labels"] == ([2, 1, 0] if format == "parquet" else ["2", "1", "0"])
    with pytest.raises(ValueError, match="must be of the type of column 'label', Int64; a,b came"):
        encode(tmp_path, as_bytes(table, "parquet"), "crowd.parquet", labels=["a", "b"])


def test_probabilities_may_come_in_columns_or_in_lists(tmp_path: Path):
    columns = {"item": ["a", "a", "b"], "yes": [0.5, 0.25, 1.0], "no": [0.5, 0.75, 0.0]}
    expected = slencodings.fuse_table(columns, item="item", label=["yes", "no"])
    for format in ("csv", "jsonl"):
        spec = {"label": "yes,no"}
        result, _, _ = encode(tmp_path, as_bytes(columns, format), f"a.{format}", columns=spec)
        assert_same_table(result, expected)
    lists = {"item": columns["item"], "label": [[0.5, 0.5], [0.25, 0.75], [1, 0]]}
    content = as_bytes(lists, "jsonl")
    result, _, _ = encode(tmp_path, content, "lists.jsonl", labels=["yes", "no"])
    assert_same_table(result, expected)


def test_na_is_a_label_and_no_number(tmp_path: Path):
    content = b"item,label,confidence\na,NA,0.5\na,no,NA\nb,no,1\nb,,0.5\n"
    result, about, said = encode(tmp_path, content, "a.csv", missing="drop")
    assert about["labels"] == ["NA", "no"]
    assert result["belief_NA"][0] > 0
    assert result["belief_no"][0] == 0
    assert "note 1 row without a label; their items are kept" in said


def test_what_was_done_is_said(tmp_path: Path):
    content = b"Task ID,WorkerId,answer\n1,a,yes\n1,a,no\n2,b,no\n"
    _, _, said = encode(tmp_path, content, "in.csv", "out.csv")
    assert said[0] == "columns item = Task ID, annotator = WorkerId, label = answer"
    assert said[1] == "read in.csv: 3 rows, 2 labels: no, yes"
    assert "1 row repeats an earlier (item, annotator) pair; all are kept" in said[2]
    assert "`duplicates` average|first|last|error" in said[2]
    assert said[3].endswith(
        "out.csv: 2 rows, wide: probability by votes as stated, cumulative, smoothing 0.01"
    )


def test_repeats_of_many_rows_are_counted_on_some_of_the_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rng = np.random.default_rng(0)
    item, who = rng.integers(0, 2000, 9000), rng.integers(0, 9, 9000)
    lines = "".join(f"{i},{w},{w % 2}\n" for i, w in zip(item, who, strict=True))
    content = b"item,annotator,label\n" + lines.encode()
    true = 9000 - len({*zip(item.tolist(), who.tolist(), strict=True)})
    _, about, said = encode(tmp_path, content, "crowd.csv")
    assert about["repeated"] == true
    assert any(
        f"note {true:,} rows repeat an earlier (item, annotator) pair; all" in s for s in said
    )
    monkeypatch.setattr("slencodings.tables.rows.MOST_ROWS_TO_COUNT_DUPLICATES", 2500)
    monkeypatch.setattr("slencodings.tables.rows.ENOUGH_ROWS_TO_COUNT", 2500)
    _, about, said = encode(tmp_path, content, "crowd.csv")
    # A quarter of 2,000 items with about one repeat each: three standard deviations.
    assert abs(about["repeated_about"] - true) < 3 * 4 * (500 * 2) ** 0.5
    note = f"note about {about['repeated_about']:,} rows repeat an earlier (item, annotator) pair, "
    assert any(s.startswith(f"{note}counted on some of the items") for s in said)
    assert "repeated" not in about


def test_twenty_labels_are_wide_and_more_are_long(tmp_path: Path):
    for count, form in ((20, "wide"), (21, "long")):
        table = {"item": ["a"] * count, "label": list(map(str, range(count)))}
        _, about, _ = encode(tmp_path, as_bytes(table, "csv"), "crowd.csv")
        assert about["form"] == form


METADATA = {
    "operator": "average",
    "smoothing": 0.05,
    "prior_weight": 3.0,
    "form": "wide",
    "version": slencodings.__version__,
    "source": "crowd.csv",
    "columns": ROLES,
    "confidence_scale": [0, 1],
    "missing": "error",
    "duplicates": "all",
    "rows": 200,
    "unlabelled": 0,
}


@pytest.mark.parametrize("target", ["out.parquet", "out.csv", "out.jsonl", "out.csv.gz"])
def test_how_it_was_made_goes_with_the_result(tmp_path: Path, target: str):
    content = as_bytes(awkward_table(), "csv")
    how = {"operator": "average", "smoothing": 0.05, "prior_weight": 3.0}
    _, returned, _ = encode(tmp_path, content, "crowd.csv", target, **how)
    if target == "out.parquet":
        metadata = pq.read_metadata(tmp_path / target).metadata
        about = json.loads(metadata[b"slencodings"])
        assert sorted(p.name for p in tmp_path.iterdir()) == ["crowd.csv", target]
    else:
        about = json.loads((tmp_path / f"{target}.meta.json").read_text())
    assert about.items() >= METADATA.items()
    assert about["labels"] == ["NA", "no", "peut-être", "yes"]
    assert about["repeated"] > 0
    assert returned.items() >= about.items()


def test_a_learned_scale_is_kept_with_the_result(tmp_path: Path):
    content = as_bytes(awkward_table(), "csv")
    _, about, said = encode(tmp_path, content, "crowd.csv", confidence_scale="calibrated")
    levels = about["confidence_scale"]
    assert {"level", "uncertainty", "agreement", "count"} == set(levels[0])
    assert sum(row["count"] for row in levels) == 200
    assert any(line.startswith("learned what stated confidence is worth") for line in said)


def test_a_learned_scale_fuses_as_fuse_table_does_with_it(tmp_path: Path):
    table = awkward_table()
    said = slencodings.from_table(
        table, item="item", label="label", confidence="confidence", confidence_scale=(0, 1)
    )
    scale = slencodings.confidence.calibrate(said)
    content = as_bytes(table, "csv")
    result, _, _ = encode(tmp_path, content, "crowd.csv", confidence_scale="calibrated")
    assert_same_table(result, slencodings.fuse_table(table, **ROLES, confidence_scale=scale))


def test_confidence_that_is_missing_teaches_nothing(tmp_path: Path):
    table = awkward_table()
    confidence = ["" if q % 5 == 0 else c for q, c in enumerate(table["confidence"])]
    holes = table | {"confidence": confidence}
    for missing in ("drop", "trust"):
        how = {"confidence_scale": "calibrated", "missing": missing}
        _, about, _ = encode(tmp_path, as_bytes(holes, "csv"), "crowd.csv", **how)
        assert sum(row["count"] for row in about["confidence_scale"]) == 160


@pytest.mark.parametrize("scale", ["calibrated", (1, 5)])
def test_a_scale_needs_confidence(tmp_path: Path, scale: Any):
    with pytest.raises(ValueError, match=r"needs a column of confidence.*confidence='COLUMN'"):
        encode(tmp_path, b"item,label\na,x\nb,y\n", "a.csv", confidence_scale=scale)


def test_json_is_not_given_infinite_numbers(tmp_path: Path):
    how: dict[str, Any] = {"smoothing": 0, "values": ["alpha"]}
    with pytest.raises(ValueError, match=r"JSON cannot hold.*smoothing=0 came. Write .parquet"):
        encode(tmp_path, b"item,label\na,x\nb,y\n", "a.csv", "out.jsonl", **how)
    result, _, _ = encode(tmp_path, b"item,label\na,x\nb,y\n", "a.csv", "out.csv", **how)
    assert result["alpha_x"] == [float("inf"), 1.0]


# Output that is replaced in one step, or not at all


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_new_file_appears_at_once_and_whole(tmp_path: Path):
    with replacing(tmp_path / "a.csv") as new:
        new.write_text("half")
        assert new.parent == tmp_path
        assert new.suffix == ".csv"
        assert not (tmp_path / "a.csv").exists()
    assert names(tmp_path) == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "half"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[Exception]):
    (tmp_path / "a.csv").write_text("old")

    def fail() -> None:
        with replacing(tmp_path / "a.csv") as new:
            new.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "old"


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual(tmp_path: Path):
    old = tmp_path / "old"
    old.touch()
    old.chmod(0o640)
    umask = os.umask(0o027)
    try:
        for name in ("old", "new"):
            with replacing(tmp_path / name):
                pass
    finally:
        os.umask(umask)
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    with replacing(tmp_path / "link.csv") as new:
        new.write_text("new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_an_error_in_the_middle_leaves_neither_data_nor_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    content = as_bytes(awkward_table(), "csv")
    encode(tmp_path, content, "crowd.csv", "out.csv")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    real = files.literal
    # The note is there already when DuckDB is told to write to a folder that is not.
    monkeypatch.setattr(
        files, "literal", lambda text: real(text.replace(".out.csv.", "none/out.csv."))
    )
    with pytest.raises(ValueError, match=r"cannot be read|could not be written"):
        encode(tmp_path, content, "crowd.csv", "out.csv", smoothing=0.5)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_rows_come_in_the_order_of_items_and_labels(tmp_path: Path):
    content = as_bytes(awkward_table(), "csv")
    result, _, _ = encode(tmp_path, content, "crowd.csv", "out.csv", form="long")
    pairs: Sequence[tuple[str, str]] = list(zip(result["item"], result["label"], strict=True))
    assert pairs == sorted(pairs)


def test_the_scratch_folder_is_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scratch = tmp_path / "scratch's"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    encode(tmp_path, as_bytes(awkward_table(), "csv"), "crowd.csv")
    with pytest.raises(ValueError, match="no column"):
        encode(tmp_path, b"a,b\n1,2\n", "bad.csv")
    assert names(scratch) == []


def test_a_page_or_rows_for_which_there_is_no_room_say_what_to_do(tmp_path: Path):
    target = tmp_path / "rows.csv"
    target.write_text("before")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most[1]))
    try:
        with pytest.raises(OSError, match=r"rows.csv could not be written: File too large. What"):
            write_rows([{"item": n} for n in range(1000)], str(target), {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(PermissionError), disk_errors():  # What is none of the disk's stays itself.
        raise PermissionError(13, "Permission denied")
