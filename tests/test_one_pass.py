"""Large text files are fused in one pass, which gives and tells what the usual way does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from slencodings.files import encode, one_pass
from slencodings.files.encode import encode_file
from slencodings.tables.fuse import Fusing
from slencodings.tables.roles import Reading

HEADER = "item,annotator,label,confidence,reliability\n"
Lines = list[list[Any]]


def crowd(n: int = 600, labels: str = "abc") -> Lines:
    """Rows of random annotations."""
    rng = np.random.default_rng(5)
    return [
        [
            f"i{rng.integers(90)}",
            f"w{rng.integers(12)}",
            rng.choice(list(labels)),
            rng.integers(1, 5) / 5,
            rng.integers(1, 9) / 10,
        ]
        for _ in range(n)
    ]


def as_text(lines: Lines, delimiter: str = ",", header: str = HEADER) -> str:
    rows = "".join(delimiter.join(map(str, line)) + "\n" for line in lines)
    return header.replace(",", delimiter) + rows


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each file was fused in one pass; files of any size may be."""
    found: list[bool] = []
    fuse: Callable[..., Any] = one_pass.fuse_in_one_pass

    def watched(*given: Any) -> Any:
        fused = fuse(*given)
        found.append(fused is not None)
        return fused

    monkeypatch.setattr(one_pass, "fuse_in_one_pass", watched)
    monkeypatch.setattr(one_pass, "LEAST_ROWS", 1)
    return found


def outcome(source: Any, target: Path, reading: Reading, fusing: Fusing) -> Any:
    """All that comes of files: opinions, what is told, and how they were made; or the error."""
    said: list[str] = []
    try:
        about = encode_file(
            [str(file) for file in source],
            str(target),
            reading,
            fusing,
            say=lambda what, text: said.append(f"{what} {text}"),
        )
    except ValueError as error:
        assert not target.exists()
        return str(error), said
    written = pl.read_parquet(target) if target.suffix == ".parquet" else pl.read_csv(target)
    return written.sort(pl.all()), said, json.dumps(about, default=str)


def assert_same(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, reading: Reading, fusing: Fusing
) -> Any:
    """In one pass, where that can be, and in the usual way, everything is the same."""
    target = files[0].parent / "out.parquet"
    once = outcome(files, target, reading, fusing)
    target.unlink(missing_ok=True)
    with monkeypatch.context() as usual:
        usual.setattr(one_pass, "fuse_in_one_pass", lambda *_: None)
        twice = outcome(files, target, reading, fusing)
    assert once[1:] == twice[1:]
    if isinstance(twice[0], str):
        assert once[0] == twice[0]
        return twice[0]
    assert once[0].columns == twice[0].columns
    for name in once[0].columns:
        x, y = (frame[name] for frame in (once[0], twice[0]))
        if x.dtype == pl.String:
            assert (x == y).all()
        else:
            np.testing.assert_allclose(x.to_list(), y.to_list(), rtol=1e-12, atol=1e-12)
    return twice


PLAIN = {
    "as it comes": ({}, {}),
    "without annotators or confidence": ({"header": "item,name,label,x,y\n"}, {}),
    "some without a label": ({"labels": ["", *"ab"]}, {}),
    "numbers as labels": ({"labels": ["2", "10", "1"]}, {}),
    "labels with quotes": ({"labels": ["it's", "so", "no"]}, {}),
    "labels of a scale": ({"labels": ["low", "medium", "high"]}, {}),
    "labels that are named": ({}, {"labels": ["c", "b", "a", "never"]}),
    "labels in an order": ({}, {"labels": ["c", "b", "a"], "ordered": True}),
    "ends of a scale": ({}, {"confidence_scale": (0.2, 1)}),
    "missing is trusted": ({"confidence": ["", 0.5]}, {"missing": "trust"}),
    "tabs": ({"delimiter": "\t"}, {"format": "tsv"}),
}


@pytest.mark.parametrize("case", PLAIN)
def test_one_pass_gives_what_the_usual_way_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool], case: str
):
    how, reading = PLAIN[case]
    lines = crowd()
    rng = np.random.default_rng(1)
    for line in lines:
        line[2] = rng.choice(how["labels"]) if "labels" in how else line[2]
        line[3] = rng.choice(how["confidence"]) if "confidence" in how else line[3]
    text = as_text(lines, how.get("delimiter", ","), how.get("header", HEADER))
    (tmp_path / "crowd.csv").write_text(text)
    fusing = Fusing(weigh="stated")
    _, said, about = assert_same([tmp_path / "crowd.csv"], monkeypatch, Reading(**reading), fusing)
    assert passes == [True]
    assert json.loads(about)["rows"] == 600
    if case == "ends of a scale":
        n = sum(line[3] == 0.2 for line in lines)
        end = "'confidence' 0.2, the low end of 0.2-1"
        assert f"note {n} annotations at {end}, which counts for nothing" in said
    if case == "labels of a scale":
        assert any("looks like a scale from low to high" in text for text in said)


def test_ends_of_a_scale_that_were_not_looked_at_are_counted_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool]
):
    monkeypatch.setattr(one_pass, "HEAD", 2000)
    monkeypatch.setattr(one_pass, "PLACES", 1)
    (tmp_path / "crowd.csv").write_text(as_text(_with(590, 3, 0)))
    _, said, _ = assert_same(
        [tmp_path / "crowd.csv"], monkeypatch, Reading(), Fusing(weigh="stated")
    )
    assert passes == [True]
    end = "'confidence' 0, the low end of 0-1"
    assert f"note 1 annotation at {end}, which counts for nothing" in said


@pytest.mark.parametrize(
    "fusing",
    [
        {"form": "lists"},
        {"form": "weights"},
        {"smoothing": 0.0, "values": ("belief", "evidence")},
        {"operator": "average"},
        {"operator": "weighted"},
        {"operator": "constraint"},
    ],
    ids=str,
)
def test_one_pass_has_every_operator_and_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool], fusing: dict[str, Any]
):
    lines = crowd()
    for line in lines[::50]:
        line[3:] = [1, 1]
    (tmp_path / "crowd.csv").write_text(as_text(lines))
    assert_same([tmp_path / "crowd.csv"], monkeypatch, Reading(), Fusing(weigh="stated", **fusing))
    assert passes == [True]


def test_several_files_are_one_crowd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool]
):
    files = [tmp_path / f"{day}.csv" for day in range(3)]
    for day, file in enumerate(files):
        file.write_text(as_text(crowd()[day::3]))
    _, said, _ = assert_same(files, monkeypatch, Reading(), Fusing(weigh="stated"))
    assert passes == [True]
    assert any("3 files, 600 rows" in text for text in said)


@pytest.mark.parametrize("most", [100, 10_000])
def test_repeats_are_counted_on_the_same_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool], most: int
):
    for name in ("tables.rows", "files.one_pass"):
        monkeypatch.setattr(f"slencodings.{name}.MOST_ROWS_TO_COUNT_DUPLICATES", most)
        monkeypatch.setattr(f"slencodings.{name}.ENOUGH_ROWS_TO_COUNT", 90)
    (tmp_path / "crowd.csv").write_text(as_text(crowd()))
    *_, about = assert_same(
        [tmp_path / "crowd.csv"], monkeypatch, Reading(), Fusing(weigh="stated")
    )
    assert passes == [True]
    true = 600 - len({(item, who) for item, who, *_ in crowd()})
    if most > 600:
        assert json.loads(about)["repeated"] == true
    else:
        assert 0 < json.loads(about)["repeated_about"] != true


def _with(place: int, column: int, value: Any) -> Lines:
    lines = crowd()
    lines[place][column] = value
    return lines


# What is looked at are 2,000 bytes, so that the last rows come as a surprise.
UNUSUAL: dict[str, tuple[Lines, dict[str, Any], str | None]] = {
    "a label that was not looked at": (_with(590, 2, "d"), {}, None),
    "a label of nobody's": (_with(590, 2, "d"), {"labels": ["a", "b", "c"]}, "'d' in row 591"),
    "no item": (_with(590, 0, ""), {}, "must name its item; 1 of 600 rows"),
    "no annotator": (_with(590, 1, ""), {}, "must name its annotator; 1 of 600 rows"),
    "no confidence": (_with(590, 3, ""), {}, "`confidence` must be there for every annotation"),
    "too much": (_with(590, 3, 7), {}, r"`confidence` must lie in [0, 1]; 1 of 600 rows"),
    "too reliable": (_with(590, 4, 1.5), {}, "`reliability` must lie in [0, 1]"),
    "no number": (_with(590, 3, "sure"), {}, "must hold numbers; 1 row does not, first 'sure'"),
    "NaN": (_with(590, 3, "nan"), {}, "`confidence` must be there"),
    "NA that is trusted": (_with(590, 3, "NA"), {"missing": "trust"}, None),
    "a cell too many": (_with(590, 4, "1,1"), {}, "cannot be read as CSV"),
    "spellings": (_with(3, 2, " a"), {}, None),
    "combinations": ([["i1", "w1", "b;c", 1, 1], *_with(3, 2, "a;b")], {}, None),
    "spans": (_with(3, 2, '"[{""start"": 1, ""end"": 2}]"'), {}, "holds spans"),
    "one label": ([[*line[:2], "a", *line[3:]] for line in crowd()], {}, "at least two labels"),
    "no label": ([[*line[:2], "", *line[3:]] for line in crowd()], {}, "no annotation has a label"),
    "many labels": (crowd(labels="abcdefghijklmnopqrstuvwxyz"), {}, None),
    "a label worth nothing": ([["i", "w", "d", 0, 0], *crowd()], {}, None),
    "a cell without end": (_with(3, 0, '"' + "x" * 150_000), {}, "cannot be read as CSV"),
    "duplicates": (crowd(), {"duplicates": "first"}, None),
    "dropped": (_with(590, 3, ""), {"missing": "drop"}, None),
    "kept": (crowd(), {"keep": ["annotator"]}, None),
    "an order that is found": (crowd(labels="123"), {"labels": ["found"], "ordered": True}, None),
    "an item of two columns": (crowd(), {"item": "item,annotator", "annotator": None}, None),
    "one confidence for a scale": (crowd(), {"confidence": 3.0, "confidence_scale": (1, 5)}, None),
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_what_is_unusual_is_read_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool], case: str
):
    lines, reading, message = UNUSUAL[case]
    monkeypatch.setattr(one_pass, "HEAD", 200_000 if case == "a cell without end" else 2000)
    monkeypatch.setattr(one_pass, "PLACES", 1)
    (tmp_path / "crowd.csv").write_text(as_text(lines))
    found = assert_same(
        [tmp_path / "crowd.csv"], monkeypatch, Reading(**reading), Fusing(weigh="stated")
    )
    assert passes == [False]
    assert message is None if isinstance(found, tuple) else message in found
    assert not list(tmp_path.glob(".*"))


def test_files_that_look_larger_than_they_are_are_read_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool]
):
    for name in ("tables.rows", "files.one_pass"):
        monkeypatch.setattr(f"slencodings.{name}.MOST_ROWS_TO_COUNT_DUPLICATES", 1000)
        monkeypatch.setattr(f"slencodings.{name}.ENOUGH_ROWS_TO_COUNT", 90)
    monkeypatch.setattr(one_pass, "HEAD", 2000)
    monkeypatch.setattr(one_pass, "PLACES", 1)
    long = [[*line[:4], f"{line[4]}{'0' * 300}"] for line in crowd()]
    (tmp_path / "crowd.csv").write_text(as_text(crowd(100) + long))
    *_, about = assert_same(
        [tmp_path / "crowd.csv"], monkeypatch, Reading(), Fusing(weigh="stated")
    )
    assert passes == [False]
    assert json.loads(about)["rows"] == 700


@pytest.mark.parametrize("ending", [".gz", ".parquet", ".jsonl"])
def test_other_formats_are_not_for_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool], ending: str
):
    import gzip

    table = pl.DataFrame(crowd(), schema=HEADER.strip().split(","), orient="row")
    file = tmp_path / f"crowd{'.csv' * (ending == '.gz')}{ending}"
    if ending == ".gz":
        file.write_bytes(gzip.compress(table.write_csv().encode()))
    else:
        (table.write_parquet if ending == ".parquet" else table.write_ndjson)(file)
    assert_same([file], monkeypatch, Reading(), Fusing(weigh="stated"))
    assert passes == [False]


def test_lines_in_another_encoding_are_left_to_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool]
):
    # Of larger files than this only the beginning has been looked at before.
    monkeypatch.setattr("slencodings.files.readable.LARGEST_LOOKED_AT", 1000)
    rows = as_text(crowd(9000)).encode()
    (tmp_path / "crowd.csv").write_bytes(rows + "i1,w1,ä,1,1\n".encode("cp1252") * 9 + rows[-2000:])
    found = assert_same([tmp_path / "crowd.csv"], monkeypatch, Reading(), Fusing(weigh="stated"))
    assert passes == [False]
    assert "cannot be read as CSV" in found


def test_one_pass_goes_through_a_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: list[bool]
):
    """The usual way is not begun."""
    (tmp_path / "crowd.csv").write_text(as_text(crowd()))

    def never(*_: Any) -> None:
        raise AssertionError("it was read the usual way")

    monkeypatch.setattr(encode, "read_job", never)
    outcome([tmp_path / "crowd.csv"], tmp_path / "out.csv", Reading(), Fusing(weigh="stated"))
    assert passes == [True]
