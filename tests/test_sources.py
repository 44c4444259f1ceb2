"""Many files, folders, patterns and addresses are one table, in bounded memory if asked."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import encode_as_stated, read_crowd
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from slencodings.files import locate as sources
from slencodings.files.features import read_features
from slencodings.files.locate import locate
from slencodings.files.write import disk_errors

ROWS = [
    {"item": f"{i:03}", "who": who, "label": "yes" if (i + n) % 3 else "no", "confidence": c}
    for i in range(20)
    for n, (who, c) in enumerate([("ann", 0.9), ("bob", 0.5), ("cy", 0.7)])
]
COLUMNS = {"annotator": "who"}
FORMATS = ["csv", "tsv", "parquet", "jsonl", "json", "csv.gz", "jsonl.gz"]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows in the format that the name says, written without our readers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    suffix = path.name.removesuffix(".gz").rsplit(".", 1)[1]
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    if suffix in ("csv", "tsv"):
        lines = [list(rows[0]), *(row.values() for row in rows)]
        text = "".join(("\t" if suffix == "tsv" else ",").join(map(str, x)) + "\n" for x in lines)
    elif suffix == "jsonl":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        text = json.dumps(rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def encode(source: Any, **how: Any) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    """The opinions of some files, and how they were made."""
    told: list[tuple[str, str]] = []
    columns = COLUMNS | how.pop("columns", {})
    about = encode_as_stated(
        source, "out.parquet", columns=columns, say=lambda *x: told.append(x), **how
    )
    with duckdb.connect() as connection:
        rows = connection.read_parquet("out.parquet").fetchall()
    Path("out.parquet").unlink()
    return rows, about | {"told": told}


@pytest.mark.parametrize("format", FORMATS)
def test_a_crowd_in_many_files_is_the_crowd_in_one(here: Path, format: str):
    whole, _ = encode(str(write(here / f"whole.{format}", ROWS)))
    assert len(whole) == 20
    names = [f"in/part-{n}.{format}" for n in range(6)]
    for n, name in enumerate(names):
        write(here / name, ROWS[n * 10 : n * 10 + 10])
    # However it is named, the same files are found; one format shows that.
    ways = (names, [names[0], f"in/part-[1-5].{format}"], f"in/*.{format}", ["in"], "in")
    for source in ways if format == "csv" else ways[-1:]:
        rows, about = encode(source)
        assert rows == whole
        assert about["files"] == 6
        assert about["rows"] == 60
        assert re.search(r"6 files, 60 rows, 2 labels: no, yes", dict(about["told"])["read"])
        if source == "in":
            assert about["source"] == "in"


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl"])
def test_files_may_differ_in_what_nobody_reads_and_in_the_order_of_columns(here: Path, format: str):
    whole, _ = encode(str(write(here / f"whole.{format}", ROWS)))
    for n, more in enumerate([{}, {"note": "x"}, {"note": 3, "else": "y"}]):
        rows = [more | row for row in ROWS[n * 20 : n * 20 + 20]]
        write(
            here / f"in/{n}.{format}", rows if n % 2 else [dict(reversed(r.items())) for r in rows]
        )
    assert encode("in")[0] == whole


def test_files_packed_and_not_and_with_several_delimiters_are_one_crowd(here: Path):
    whole, _ = encode(str(write(here / "whole.csv", ROWS)))
    write(here / "in/a.csv", ROWS[:20])
    write(here / "in/b.csv.gz", ROWS[20:40])
    write(here / "in/c.csv", ROWS[40:])
    semicolons = (here / "in/c.csv").read_text().replace(",", ";")
    (here / "in/c.csv").write_text(semicolons)
    assert encode("in")[0] == whole


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl"])
def test_names_of_folders_hold_columns(here: Path, format: str):
    whole, _ = encode(str(write(here / f"whole.{format}", ROWS)), columns={"reliability": 0.5})
    for who in ("ann", "bob", "cy"):
        rows = [{k: v for k, v in row.items() if k != "who"} for row in ROWS if row["who"] == who]
        write(here / f"day=1/in/reliability=0.5/who={who}/part.{format}", rows)
    for source in ("day=1/in", f"day=1/in/*/*/*.{format}", f"day=1/in/**/*.{format}"):
        rows, about = encode(source)
        assert rows == whole
        assert about["columns"]["reliability"] == "reliability"
        assert about["columns"]["annotator"] == "who"


def test_zeros_before_a_number_stay_in_names_of_folders_too(here: Path):
    rows = [{"label": "yes"}, {"label": "no"}]
    for item in ("007", "7"):
        write(here / f"in/item={item}/a.parquet", rows)
    encode_as_stated("in", "out.csv", columns={})
    assert [line.split(",")[0] for line in (here / "out.csv").read_text().split()] == [
        "item",
        "007",
        "7",
    ]


def test_a_file_below_a_folder_with_a_sign_of_equality_is_just_a_file(here: Path):
    name = str(write(here / "who=dan/crowd.parquet", ROWS))
    assert encode(name)[1]["columns"]["annotator"] == "who"
    assert read_crowd(name, columns=COLUMNS).annotations.annotators.tolist() == ["ann", "bob", "cy"]


def test_what_came_first_is_what_came_in_the_first_file(here: Path):
    for n, said in enumerate(["no", "yes", "yes"]):
        write(here / f"in/{n}.csv", [{"item": "a", "who": "ann", "label": said}])
    # Read in another way than those around it, and still in its place.
    write(here / "in/1.csv", [{"more": 1, "item": "a", "who": "ann", "label": "yes"}])
    (first,), _ = encode("in", duplicates="first", values=["probability"])
    (last,), _ = encode("in", duplicates="last", values=["probability"])
    (turned,), _ = encode(["in/2.csv", "in/0.csv"], duplicates="first", values=["probability"])
    assert first[1] > 0.9 > last[1]
    assert turned == last


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl"])
def test_a_column_that_some_files_lack_is_an_error_that_names_them(here: Path, format: str):
    write(here / f"in/0.{format}", ROWS[:10])
    write(here / f"in/1.{format}", ROWS[10:20])
    lacking = [{k: v for k, v in row.items() if k != "confidence"} for row in ROWS[20:]]
    write(here / f"in/2.{format}", lacking)
    with pytest.raises(
        ValueError,
        match=r"column 'confidence' must be alike in all 3 files; it is \w+ in 2, such as "
        rf"in/0\.{format}; missing in 1, such as in/2\.{format}\. Leave out or repair the files",
    ):
        encode("in")
    assert sorted(os.listdir()) == ["in"]


def test_a_column_of_several_types_is_an_error_that_names_them(here: Path):
    write(here / "in/0.parquet", ROWS)
    write(here / "in/1.parquet", [row | {"item": int(row["item"])} for row in ROWS])
    with pytest.raises(
        ValueError,
        match=r"column 'item' must be alike in all 2 files; it is VARCHAR in 1, such as "
        r"in/0.parquet; BIGINT in 1, such as in/1.parquet",
    ):
        encode("in/*.parquet")


def test_folders_that_name_other_columns_are_an_error(here: Path):
    write(here / "in/who=ann/a.csv", [{"item": 1, "label": "yes"}, {"item": 2, "label": "no"}])
    write(here / "in/a.csv", [{"item": 1, "label": "yes"}])
    with pytest.raises(ValueError, match=r"column 'who' must be alike in all 2 files"):
        encode("in")


def test_files_of_several_formats_are_an_error(here: Path):
    write(here / "in/a.csv", ROWS)
    write(here / "in/b.parquet", ROWS)
    with pytest.raises(
        ValueError,
        match=r"of one format; in/a.csv is CSV and in/b.parquet is PARQUET. Name those of one kind",
    ):
        encode("in")


def test_damage_in_one_of_many_files_is_told(here: Path):
    write(here / "in/a.jsonl", ROWS)
    (here / "in/b.jsonl").write_text('{"item": 1, "label": "yes"}\n{"item": 2,\n')
    with pytest.raises(ValueError, match=r"in cannot be read as JSONL: line 2 is not JSON"):
        encode("in")
    (here / "in/b.jsonl").write_text("[1]\n[2]\n")
    with pytest.raises(ValueError, match=r"b.jsonl must hold JSON objects, one each annotation"):
        encode("in")


def test_marks_of_other_programs_and_empty_files_are_left_out(here: Path):
    whole, _ = encode(str(write(here / "whole.csv", ROWS)))
    write(here / "in/a.csv", ROWS)
    for name in ("_SUCCESS", ".hidden.csv", "b.csv", "c.csv", "_tmp.csv", "readme.md"):
        (here / "in" / name).write_text("x" if name[0] in "_.r" else "")
    rows, about = encode("in")
    assert rows == whole
    assert dict(about["told"][:3])["note"] == "2 empty files left out"
    assert "files" not in about


def test_a_file_that_is_named_again_is_read_once_and_that_is_said(here: Path):
    whole, _ = encode(str(write(here / "a.csv", ROWS)))
    write(here / "in/b.csv", [row | {"item": f"b{row['item']}"} for row in ROWS])
    for names in (["a.csv", "a.csv"], ["a.csv", "./a.csv", str(here / "a.csv")]):
        rows, about = encode(names)
        assert rows == whole
        assert about["told"][0] == ("note", "named more than once, read once: 'a.csv'")
    rows, about = encode(["in", "a.csv", "in/*.csv"])
    assert len(rows) == 2 * len(whole)
    assert about["told"][0] == ("note", "named more than once, read once: 'in/b.csv'")
    told: list[tuple[str, str]] = []
    crowd = read_crowd(["a.csv"] * 3, columns=COLUMNS, say=lambda *x: told.append(x))
    assert len(crowd.annotations.item) == len(ROWS)
    assert told[0] == ("note", "named more than once, read once: 'a.csv'")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("*.csv", r"there is no file that matches in '\*.csv'. Name one, or a pattern"),
        ("empty", r"there is no file that ends in .csv, .*also .gz\) in 'empty'. Name one"),
        ("hollow", r"there is no data in 'hollow'; at least a header and one row are needed"),
        (["crowd.tsv", "crowd.cvs"], r"there is no file 'crowd.cvs'. Did you mean 'crowd.tsv'\?"),
        ("link.csv", r"'link.csv' is a link to 'gone.csv', which is not there\.$"),
        (["crowd.tsv", "s3://a/b.csv"], r"all be on this machine, or none; 's3://a/b.csv' is not"),
    ],
)
def test_sources_that_are_not_there_say_so(here: Path, source: Any, message: str):
    (here / "empty").mkdir()
    (here / "hollow").mkdir()
    (here / "hollow/a.csv").touch()
    (here / "link.csv").symlink_to("gone.csv")
    write(here / "crowd.tsv", ROWS)
    with pytest.raises((OSError, ValueError), match=message):
        encode(source)


def test_a_pattern_that_stands_for_the_output_is_refused(here: Path):
    write(here / "in/a.parquet", ROWS)
    before = (here / "in/a.parquet").read_bytes()
    with pytest.raises(ValueError, match=r"must not replace its own input 'in/a.parquet'"):
        encode_as_stated("in/*.parquet", "in/a.parquet", columns=COLUMNS)
    with pytest.raises(ValueError, match=r"must not replace its own input 'in/a.parquet'"):
        encode_as_stated("in", into="in/a.parquet", columns=COLUMNS)
    assert (here / "in/a.parquet").read_bytes() == before


def test_a_store_among_files_of_annotations_is_refused(here: Path):
    write(here / "in/a.parquet", ROWS)
    encode_as_stated("in/a.parquet", into="in/b.parquet", columns=COLUMNS)
    with pytest.raises(ValueError, match=r"b.parquet is a store of evidence.*sle encode b.parquet"):
        encode("in")


def test_many_files_are_one_batch_of_a_store(here: Path):
    whole, _ = encode(str(write(here / "whole.parquet", ROWS)))
    for n in range(3):
        write(here / f"in/{n}.parquet", ROWS[n * 20 : n * 20 + 20])
    encode_as_stated("in", into="store.parquet", columns=COLUMNS)
    with pytest.raises(
        ValueError, match=r"the rows of whole.parquet \(60\) are in store.parquet already"
    ):
        encode_as_stated("whole.parquet", into="store.parquet", columns=COLUMNS)
    encode_as_stated("store.parquet", "out.parquet", columns={})
    with duckdb.connect() as connection:
        found = connection.read_parquet("out.parquet").fetchall()
    assert [row[0] for row in found] == [row[0] for row in whole]
    for row, other in zip(found, whole, strict=True):
        assert row[1:] == pytest.approx(other[1:], abs=1e-12)


def test_verbs_that_need_all_of_a_crowd_read_many_files_too(here: Path):
    one = read_crowd(
        str(write(here / "one.csv", [r | {"gold": "no"} for r in ROWS])), columns=COLUMNS
    )
    for n in range(2):
        write(here / f"in/{n}.csv", [r | {"gold": "no"} for r in ROWS[n * 30 : n * 30 + 30]])
    many = read_crowd("in", columns=COLUMNS, gold="gold")
    assert many.annotations.items.tolist() == one.annotations.items.tolist()
    assert many.annotations.item.tolist() == one.annotations.item.tolist()
    assert many.truth is not None
    assert many.truth.tolist() == [[1.0, 0.0]] * 20
    for n in range(2):
        write(
            here / f"X/{n}.csv", [{"item": f"{i:03}", "x": i} for i in range(n * 10, n * 10 + 10)]
        )
    _, X, there = read_features("X", many.annotations.items.tolist())
    assert there.all()
    assert X[:, 0].tolist() == list(range(20))


class Bucket(MemoryFileSystem):
    """A file system as s3fs is one, in memory."""

    protocol = "s3"
    store: dict[str, Any] = {}  # noqa: RUF012 (as in the class above it)
    pseudo_dirs = [""]  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("s3://").strip("/")

    def glob(self, path: str, maxdepth: int | None = None, **how: Any) -> Any:
        names: list[Any] = list(super().glob(path, maxdepth, **how))
        return [name.lstrip("/") for name in names]


@pytest.fixture
def bucket(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files at s3://crowd/, read through fsspec because DuckDB has no extension for them here."""
    monkeypatch.setitem(_registry, "s3", Bucket)
    monkeypatch.setattr(sources, "_has_extension", lambda *_: False)
    for format in ("parquet", "csv", "jsonl"):
        for n in range(3):
            path = write(here / f"{n}.{format}", ROWS[n * 20 : n * 20 + 20])
            Bucket().pipe_file(f"s3://crowd/{n}.{format}", path.read_bytes())
            path.unlink()


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_an_address_is_passed_through_to_the_engine(here: Path, format: str):
    whole, _ = encode(str(write(here / f"whole.{format}", ROWS)))
    rows, about = encode(f"s3://crowd/*.{format}")
    assert rows == whole
    assert about["files"] == 3
    assert encode([f"s3://crowd/{n}.{format}" for n in range(3)])[0] == whole


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("s3://crowd/none.csv", r"there is no file 's3://crowd/none.csv'"),
        ("s3://crowd/*", r"all files must be of one format; s3://crowd/0.csv is CSV and"),
        ("s4://crowd/a.csv", r"nothing here can reach s4://: .*Install what can: fsspec's package"),
        ("r2://crowd/a.csv", r"reach r2://: .*fsspec's package for it; or, once, .*INSTALL httpfs"),
    ],
)
def test_addresses_that_cannot_be_read_say_so(source: str, message: str):
    with pytest.raises((OSError, ImportError, ValueError), match=message):
        encode(source)


@pytest.mark.usefixtures("bucket")
def test_an_address_without_a_format_in_its_name_needs_one(here: Path):
    Bucket().pipe_file("s3://crowd/more/part-0", write(here / "a.csv", ROWS).read_bytes())
    with pytest.raises(ValueError, match=r"must say their format, .*'s3://crowd/more/part-0' does"):
        encode("s3://crowd/more/part-0")
    assert len(encode("s3://crowd/more/part-0", format="csv")[0]) == 20


@pytest.mark.usefixtures("bucket")
def test_an_address_that_refuses_says_why(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError("Access denied")

    monkeypatch.setattr(Bucket, "glob", refuse)
    with pytest.raises(
        OSError, match=r"'s3://crowd/\*.csv' cannot be reached: .*Access denied. Check the address"
    ):
        encode("s3://crowd/*.csv")


def test_duckdb_reads_addresses_itself_where_it_has_its_extension():
    with duckdb.connect() as connection:
        assert not sources._has_extension(connection, "ftp")
        found = connection.execute(
            "SELECT installed FROM duckdb_extensions() WHERE extension_name = 'httpfs'"
        ).fetchall()
        assert sources._has_extension(connection, "s3") == found[0][0]


def test_a_name_that_looks_like_a_pattern_means_the_file_of_that_name(here: Path):
    write(here / "crowd1.csv", ROWS[:3])
    for name in ("crowd[1].csv", "crowd*.csv", "crowd?.csv", "it's.csv"):
        write(here / name, ROWS)
        with duckdb.connect() as connection:
            assert locate(connection, name, here).files == [name]
        assert len(encode(name)[0]) == 20


@pytest.mark.parametrize("amount", ["2", "lots", "-1GB", "2 G", "GB", ""])
def test_memory_must_be_an_amount(here: Path, amount: str):
    write(here / "a.csv", ROWS)
    with pytest.raises(
        ValueError, match=r"`memory` must be an amount such as 2GB or 500MB; .*came"
    ):
        encode("a.csv", memory=amount)


def test_too_little_memory_is_said_plainly(here: Path):
    write(here / "a.csv", ROWS)
    with pytest.raises(
        MemoryError,
        match=r"a.csv needs more memory than it may have: .*Allow it more, memory='4GB'",
    ):
        encode("a.csv", memory="300KB")
    assert sorted(os.listdir()) == ["a.csv"]


def large(path: Path) -> Path:
    """Two annotations of each of half a million items with long names, in no order."""
    rows = "SELECT repeat(md5((range * 7919 % 500009)::VARCHAR), 6) AS item, range % 3 AS label"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows} FROM range(1000000)) TO '{path}' (FORMAT parquet)")
    return path


# Prints the peak of its own memory in MB; not that of whoever started it.
PEAK = """
import sys
from slencodings.files.encode import encode_file
from slencodings.tables.fuse import Fusing
encode_file(sys.argv[1], sys.argv[2], None, Fusing(weigh="stated"), memory=sys.argv[3] or None)
print(int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) // 1024)
"""


def peak(
    source: Path, target: Path, memory: str, *under: str
) -> "subprocess.CompletedProcess[str]":
    (target.parent / "scratch").mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(target.parent / "scratch")}
    command = [*under, sys.executable, "-c", PEAK, source, target, memory]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large(tmp_path_factory.mktemp("large") / "large.parquet")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_bounded_memory_gives_the_same_opinions_from_disk(tmp_path: Path, big: Path):
    free = peak(big, tmp_path / "free.parquet", "")
    bound = peak(big, tmp_path / "bound.parquet", "200MB")
    assert bound.returncode == free.returncode == 0, bound.stderr
    # The rest is Python and its packages.
    assert int(bound.stdout) < 200 + 170
    assert int(free.stdout) > 400
    with duckdb.connect() as connection:
        what = "SELECT count(*), bit_xor(hash(opinion)), min(item) FROM '{}' AS opinion"
        found = [
            connection.execute(what.format(tmp_path / f"{name}.parquet")).fetchall()
            for name in ("free", "bound")
        ]
    assert found[0] == found[1]
    assert found[0][0][0] == 500_009
    assert os.listdir(tmp_path / "scratch") == []


@pytest.mark.parametrize("what", ["write", "truncate"])
def test_whatever_a_full_disk_refuses_is_told_as_what_could_not_be_written(what: str):
    said = f'IO Error: Could not {what} file "/tmp/scratch/a.tmp": No space left on device'
    words = r"a\.tmp could not be written: No space left on device\. What was there"
    with pytest.raises(OSError, match=words), disk_errors():
        raise duckdb.IOException(said)


@pytest.mark.slow
def test_a_disk_that_is_full_while_spilling_leaves_nothing_half_written(tmp_path: Path, big: Path):
    (tmp_path / "out.parquet").write_text("old")
    limit = ("bash", "-c", "trap '' XFSZ; ulimit -f 20000; exec \"$@\"", "bash")
    run = peak(big, tmp_path / "out.parquet", "200MB", *limit)
    assert run.returncode == 1
    assert re.search(r"OSError: \S*scratch\S* could not be written: File too large", run.stderr)
    assert "set TMPDIR for scratch files" in run.stderr
    assert (tmp_path / "out.parquet").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["out.parquet", "scratch"]
