"""What annotation tools export goes through the command line as any other file does."""

import csv
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from flat import encode_as_stated, read_crowd

from slencodings import exports
from slencodings.choices import Format, TableFormat
from slencodings.files.exports import read_export
from slencodings.tables import fuse_table

FIXTURES = Path(__file__).parent / "exports"
# The file, what is to be said of it, and the ends of confidence where the tool asked for that.
EXPORTS: list[tuple[str, dict[str, Any], Any]] = [
    ("label-studio.json", {}, (1, 5)),
    ("argilla-v2.json", {"question": "label"}, None),
    ("prodigy.jsonl", {}, None),
    ("doccano.zip", {}, None),
    ("potato", {"question": "sentiment"}, None),
    ("mturk.csv", {}, None),
    ("lewidi-2023.json", {}, None),
    ("lewidi-2025.json", {}, None),
    ("toloka.tsv", {}, None),
    ("wide.csv", {"format": "wide"}, None),
    ("counts.csv", {"format": "counts"}, None),
    ("crowd-kit.csv", {"format": "toloka"}, None),
]


@pytest.mark.parametrize(("name", "how", "scale"), EXPORTS, ids=[name for name, *_ in EXPORTS])
def test_an_export_is_encoded_as_its_table_is(
    tmp_path: Path, name: str, how: dict[str, Any], scale: Any
):
    columns = read_export(FIXTURES / name, **how).columns
    roles = {role: role for role in ("annotator", "confidence") if role in columns}
    scaled = {} if scale is None else {"confidence_scale": scale}
    wanted = fuse_table(columns, item="item", label="label", **roles, **scaled)
    told: list[tuple[str, str]] = []
    encode_as_stated(
        str(FIXTURES / name),
        str(tmp_path / "out.csv"),
        columns={},
        say=lambda *words: told.append(words),
        **how,
        **scaled,
    )
    with (tmp_path / "out.csv").open() as file:
        found = {row["item"]: row for row in csv.DictReader(file)}
    assert found.keys() == set(map(str, wanted["item"]))
    for i, item in enumerate(map(str, wanted["item"])):
        for column in set(wanted) - {"item"}:
            assert np.isclose(float(found[item][column]), wanted[column][i], atol=1e-12)
    assert told[0][0] == "export"
    crowd = read_crowd(str(FIXTURES / name), columns={}, **how, **scaled).annotations
    assert len(crowd.item) == len(columns["item"])


def test_options_name_the_formats_that_there_are():
    assert set(get_args(Format)) - set(get_args(TableFormat)) == set(exports.FORMATS)


def test_a_question_of_a_plain_table_is_refused(tmp_path: Path):
    (tmp_path / "crowd.csv").write_text("item,label\na,yes\nb,no\n")
    with pytest.raises(ValueError, match=r"for what annotation tools export; crowd.csv is none"):
        encode_as_stated(
            str(tmp_path / "crowd.csv"), str(tmp_path / "out.csv"), columns={}, question="mood"
        )


def test_several_exports_at_once_are_refused(tmp_path: Path):
    files = [str(FIXTURES / "prodigy.jsonl"), str(FIXTURES / "prodigy-binary.jsonl")]
    with pytest.raises(ValueError, match=r"an export is read alone.*and 1 more came. Encode them"):
        encode_as_stated(files, str(tmp_path / "out.csv"), columns={}, format="prodigy")
