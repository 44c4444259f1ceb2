"""In which order opinions are written: that of items where they are few or asked to be."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from running import Sle

from slencodings.files import encode
from slencodings.files.encode import encode_file
from slencodings.files.write import WRITERS, workspace, writing
from slencodings.tables.fuse import Fusing

STATED = Fusing(weigh="stated")
# Whole numbers that are near each other DuckDB adds up in their order.
ITEMS, FAR = 1000, 1_000_003


def items_of(file: Path | str) -> list[int]:
    found = duckdb.sql(f"SELECT item FROM '{file}'")
    assert found is not None
    return [item for (item,) in found.fetchall()]


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sort") / "crowd.parquet"
    duckdb.sql(
        f"COPY (SELECT (i * 7919) % {ITEMS} * {FAR} AS item, ['x', 'y'][1 + i % 2] AS label "
        f"FROM range({ITEMS}) t(i)) TO '{path}'"
    )
    return path


def test_few_rows_are_written_in_order_and_many_only_if_asked(
    shuffled: Path, monkeypatch: pytest.MonkeyPatch
):
    target = shuffled.with_name("out.parquet")
    found: dict[tuple[int, bool | None], list[int]] = {}
    for most, sort in [(ITEMS, None), (ITEMS - 1, None), (ITEMS - 1, True), (ITEMS, False)]:
        monkeypatch.setattr(encode, "MOST_ROWS_TO_SORT", most)
        about = encode_file(str(shuffled), str(target), fusing=STATED, sort=sort)
        assert about["written"] == ITEMS
        found[most, sort] = items_of(target)
    in_order = list(range(0, ITEMS * FAR, FAR))
    assert found[ITEMS, None] == found[ITEMS - 1, True] == in_order
    for key in [(ITEMS - 1, None), (ITEMS, False)]:
        assert found[key] != in_order
        assert sorted(found[key]) == in_order


@pytest.mark.parametrize("in_order", [True, False])
def test_rows_are_numbered_in_the_order_of_files_after_others_were_written_as_they_come(
    in_order: bool, tmp_path: Path
):
    target, items = tmp_path / "out.parquet", [3, 1, 2]
    with workspace() as (connection, _):
        relation = connection.sql(f"SELECT unnest({items}) AS item")
        place = (connection, relation, target, WRITERS[".parquet"], {})
        with writing(*place, in_order=in_order) as count:
            assert count == len(items)
        kept = connection.sql("SELECT current_setting('preserve_insertion_order')").fetchall()
    assert kept == [(True,)]
    assert items_of(target) == (sorted(items) if in_order else items)


def test_sort_is_an_option_of_the_command_and_of_opinions_in_files(sle: Sle, tmp_path: Path):
    crowd = tmp_path / "crowd.csv"
    crowd.write_text("item,annotator,label\nb,ann,x\na,ann,y\nb,bob,x\n", encoding="utf-8")
    for option in ("--sort", "--no-sort"):
        run = sle(
            "encode", str(crowd), "-o", str(tmp_path / "out.csv"), "--weigh", "stated", option
        )
        assert run.code == 0, run.err
        lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
        assert sorted(line[0] for line in lines[1:]) == ["a", "b"]
        assert option == "--no-sort" or lines[1][0] == "a"
    run = sle("encode", str(crowd), "-o", "p.csv", "--pairwise", "item,annotator,label", "--sort")
    assert run.code == 2
    assert "it is not for `--pairwise`" in " ".join(run.err.split())


@pytest.mark.parametrize(
    "where", [{"into": "store.parquet"}, {"partition_by": ["item"]}, {"source": "store.parquet"}]
)
def test_what_is_always_in_order_is_not_asked_to_be_without(
    where: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("crowd.csv").write_text("item,annotator,label\na,ann,x\nb,bob,y\n", encoding="utf-8")
    encode_file("crowd.csv", into="store.parquet", fusing=STATED)
    how: dict[str, Any] = {"source": "crowd.csv", "target": "out", "fusing": STATED, "again": True}
    how |= where if "partition_by" in where else {"target": "out.csv"} | where
    with pytest.raises(ValueError, match=r"in the order of items; sort=False came\. Leave it out"):
        encode_file(**how, sort=False)
    assert not Path(how["target"]).exists()
    assert encode_file(**how, sort=True)["written"] == 2
