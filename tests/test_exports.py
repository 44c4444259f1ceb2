"""Exports of annotation tools become long tables, whatever the tool."""

import gzip
import json
import random
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from crowd_files import Roles
from exporting import votes
from hostile import HOSTILE, places, put
from real_crowds import SHARED

import slencodings as sle
from slencodings.files.exports import (
    FORMATS,
    READERS,
    read_export,
    recognise,
    to_label_studio,
)
from slencodings.files.exports.load import parts, records

HERE = Path(__file__).parent / "exports"


# Written by hand from the fixtures: the tool, its dialect, what to ask for, and what was said.
SAID = {
    "label-studio.json": (
        "label-studio",
        "label-studio json",
        {},
        [
            (101, "ann@example.org", "positive"),
            (101, "bob@example.org", "positive"),
            (102, "ann@example.org", "negative"),
        ],
    ),
    "label-studio-min.json": (
        "label-studio",
        "label-studio json-min",
        {"question": "stars"},
        [(101, 1, 4), (101, 2, 2)],
    ),
    "label-studio.csv": (
        "label-studio",
        "label-studio csv",
        {"question": "topic=weather"},
        [
            ("101", "ann@example.org", "yes"),
            ("101", "bob@example.org", "no"),
            ("102", "ann@example.org", "yes"),
        ],
    ),
    "argilla-v2.json": (
        "argilla",
        "argilla v2",
        {"question": "label"},
        [("a1", "u-ann", "ham"), ("a1", "u-bob", "spam"), ("a2", "u-ann", "spam")],
    ),
    "argilla-v1.json": (
        "argilla",
        "argilla v1",
        {"question": "topics=other"},
        [("r1", "u-ann", "no"), ("r1", "u-bob", "yes"), ("r2", "u-ann", "yes")],
    ),
    "prodigy.jsonl": (
        "prodigy",
        "prodigy jsonl",
        {},
        [(-11, "pets-ann", "CAT"), (-11, "pets-bob", "DOG"), (12, "pets-ann", "DOG")],
    ),
    "prodigy-binary.jsonl": (
        "prodigy",
        "prodigy jsonl",
        {},
        [(1, "ann", "yes"), (1, "bob", "no"), (2, "ann", "no")],
    ),
    "doccano.zip": (
        "doccano",
        "doccano jsonl",
        {},
        [(1, "ann", "pos"), (1, "bob", "neg"), (2, "ann", "neg")],
    ),
    "doccano.csv": (
        "doccano",
        "doccano csv",
        {},
        [
            ("1 / neg", None, "no"),
            ("1 / pos", None, "yes"),
            ("2 / neg", None, "yes"),
            ("2 / pos", None, "yes"),
        ],
    ),
    "potato": (
        "potato",
        "potato annotated_instances",
        {"question": "sentiment"},
        [("i1", "ann", "positive"), ("i1", "bob", "negative"), ("i2", "ann", "negative")],
    ),
    "potato-user-state.json": (
        "potato",
        "potato user_state",
        {},
        [("i1", "ann", "positive"), ("i2", "ann", "negative")],
    ),
    "potato.csv": (
        "potato",
        "potato csv",
        {},
        [("i1", "ann", "positive"), ("i1", "bob", "negative"), ("i2", "ann", "negative")],
    ),
    "google-forms.csv": (
        "google-forms",
        "google-forms, a grid",
        {},
        [
            ("post 1", "ann@example.org", "yes"),
            ("post 1", "bob@example.org", "no"),
            ("post 2", "ann@example.org", "no"),
        ],
    ),
    "lewidi-2023.json": (
        "lewidi",
        "lewidi 2023",
        {},
        [("1", "Ann1", 0), ("1", "Ann2", 1), ("1", "Ann3", 0), ("2", "Ann1", 1), ("2", "Ann2", 1)],
    ),
    "lewidi-2025.json": (
        "lewidi",
        "lewidi 2025",
        {"question": "natural language inference=contradiction"},
        [("7", "Ann1", "no"), ("7", "Ann2", "yes")],
    ),
    "mturk.csv": (
        "mturk",
        "mturk batch csv",
        {},
        [("3A", "A1ANN", "cat"), ("3A", "A2BOB", "dog"), ("3B", "A2BOB", "dog")],
    ),
    "mturk-forms.csv": (
        "mturk",
        "mturk batch csv",
        {},
        [("3A", "A1ANN", "glad"), ("3A", "A2BOB", "sad")],
    ),
    "toloka.tsv": (
        "toloka",
        "toloka assignments",
        {},
        [("t1", "w1", "cat"), ("t1", "w2", "dog"), ("t2", "w2", "dog")],
    ),
    "crowd-kit.csv": (
        None,
        "toloka crowd-kit",
        {"format": "toloka"},
        [("t1", "w1", "cat"), ("t1", "w2", "dog"), ("t2", "w2", "dog")],
    ),
    "wide.csv": (
        None,
        "wide table",
        {"format": "wide"},
        [
            ("a", "ann", "yes"),
            ("a", "bob", "no"),
            ("b", "ann", "no"),
            ("b", "bob", "no"),
            ("b", "cy", "yes"),
        ],
    ),
    "judges.jsonl": (
        "judges",
        "judges jsonl",
        {},
        [("q1", "gpt", "good"), ("q1", "llama", "bad"), ("q2", "gpt", "bad")],
    ),
    "inspect.json": (
        "inspect-ai",
        "inspect json",
        {},
        [(1, "gpt-4o", "C"), (2, "gpt-4o", "I"), (3, "gpt-4o", None)],
    ),
    "langfuse.json": (
        "langfuse",
        "langfuse scores",
        {},
        [("t1", "ann", "kind"), ("t1", "gpt-4o", "rude"), ("t2", "eval:tone", "rude")],
    ),
    "phoenix.jsonl": (
        "phoenix",
        "phoenix annotations",
        {},
        [("s1", "gpt-4o", "rude"), ("s1", "u1", "kind"), ("s2", "llm:tone", "kind")],
    ),
    "counts.csv": (
        None,
        "count table",
        {"format": "counts"},
        [("a", None, "no"), *[("a", None, "yes")] * 2, *[("b", None, "no")] * 3],
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_a_fixture_of_each_tool_is_recognised_and_says_what_it_says(name: str):
    tool, dialect, ask, said = SAID[name]
    assert recognise(HERE / name) == tool
    export = read_export(HERE / name, **ask)
    assert export.tool == dialect
    assert votes(export) == sorted(said, key=str)
    if tool is not None:
        assert read_export(HERE / name, format=tool, **ask) == export


def test_every_fixture_is_tested_and_every_tool_has_one():
    assert {path.name for path in HERE.iterdir()} == set(SAID)
    assert {tool for tool, *_ in SAID.values()} | {"lists"} == {*READERS, None}
    assert {*READERS, "wide", "counts", "several"} == set(FORMATS)


@pytest.mark.parametrize("name", SAID)
def test_an_export_can_be_fused_as_it_is(name: str):
    export = read_export(HERE / name, **SAID[name][2])
    roles: Roles = {role: role for role in ("item", "annotator", "label") if role in export.columns}
    crowd = sle.from_table(export.columns, **roles)
    n = Counter((item, label) for item, _, label in votes(export))
    for i, item in enumerate(crowd.items.tolist()):
        for k, label in enumerate(crowd.labels.tolist()):
            assert crowd.sums()[i, k] == n[item, label]


@pytest.mark.parametrize("name", SAID)
def test_the_name_of_a_file_tells_nothing(name: str, tmp_path: Path):
    if (HERE / name).is_dir():
        pytest.skip("a folder")
    other = tmp_path / "x.bin"
    other.write_bytes((HERE / name).read_bytes())
    assert recognise(other) == SAID[name][0]
    if name != "doccano.zip":
        other.write_bytes(gzip.compress((HERE / name).read_bytes()))
        assert recognise(other) == SAID[name][0]
        assert votes(read_export(other, **SAID[name][2])) == sorted(SAID[name][3], key=str)


@pytest.mark.parametrize(
    "text",
    [
        "item,annotator,label\n1,ann,yes\n",
        "task,worker,label\n1,ann,yes\n",
        "id,text,label\n1,hello,yes\n",
        "HITId,WorkerId,label\n1,ann,yes\n",
        "instance_id,user_id,label,score.mean\n1,ann,yes,0.5\n",
        "item,ann,bob\n1,yes,no\n",
        "item,yes,no\n1,2,0\n",
        '{"item": 1, "annotator": "ann", "label": "yes"}\n',
        '{"id": 1, "text": "hello", "label": [0.2, 0.8]}\n',
        '[{"item": 1, "label": "yes"}]',
        "[]",
        "{}",
        "",
        '[{"data": {}, "annot',
        "\x00\x01",
    ],
)
def test_what_is_no_export_or_broken_is_not_recognised(text: str, tmp_path: Path):
    (tmp_path / "crowd.json").write_text(text)
    assert recognise(tmp_path / "crowd.json") is None


@pytest.mark.parametrize(
    "text",
    [
        "post,worker,answer,sure\n1,ann,yes,0.5\n",
        "id,annotator,label\n1,ann,yes\n",
        '{"item": 1, "annotator": "ann", "label": "yes", "about": [{"length": 3}]}\n',
    ],
)
def test_no_tool_is_asked_about_a_record_without_its_marks(text, tmp_path, monkeypatch):
    def asked(record: Any) -> str:
        raise AssertionError(f"a tool was asked about {record}")

    readers = {tool: reader._replace(dialect=asked) for tool, reader in READERS.items()}
    monkeypatch.setattr("slencodings.files.exports.load.READERS", readers)
    (tmp_path / "crowd").write_text(text)
    assert recognise(tmp_path / "crowd") is None
    with pytest.raises(AssertionError, match="a tool was asked"):
        recognise(HERE / "prodigy.jsonl")


def test_nothing_is_recognised_where_nothing_is(tmp_path: Path):
    assert recognise(tmp_path / "missing") is None
    assert recognise(tmp_path) is None


def test_rows_are_what_the_columns_hold():
    export = read_export(HERE / "label-studio.json")
    first = next(export.rows())
    expected = {"item": 101, "annotator": "ann@example.org", "label": "positive", "confidence": 5}
    assert first == {**expected, "time": "2026-03-01T10:00:00.000000Z"}
    assert len(list(export.rows())) == len(export.columns["item"])


def test_what_is_left_out_is_told():
    notes = read_export(HERE / "label-studio.json").notes
    assert notes == (
        "1 prediction left out",
        "1 task without annotations left out",
        "1 skipped annotation left out",
        "confidence is the answer to 'confidence'",
    )
    assert "1 response with status draft left out" in read_export(HERE / "argilla-v1.json").notes
    assert "1 rejected assignment left out" in read_export(HERE / "mturk.csv").notes
    assert "1 answer 'ignore' left out" in read_export(HERE / "prodigy.jsonl").notes


def test_the_real_file_of_lewidi_says_what_is_in_it():
    path = SHARED / "convabuse" / "lewidi2023" / "ConvAbuse_dev.json"
    if not path.exists():
        pytest.skip("the shared data sets are not here")
    assert recognise(path) == "lewidi"
    export = read_export(path)
    expected = Counter(
        (key, who, int(label))
        for key, record in json.loads(path.read_text()).items()
        for who, label in zip(
            record["annotators"].split(","), record["annotations"].split(","), strict=True
        )
    )
    assert Counter(votes(export)) == expected


def test_fused_labels_go_back_to_label_studio():
    export = read_export(HERE / "label-studio.json")
    crowd = sle.from_table(export.columns, item="item", annotator="annotator", label="label")
    fused = sle.aggregate.sle(crowd, reliability=0.8)
    said: Any = to_label_studio(
        fused, crowd.items.tolist(), crowd.labels.tolist(), from_name="sentiment", to_name="text"
    )
    assert json.loads(json.dumps(said)) == said
    assert [(p["task"], p["result"][0]["value"]["choices"]) for p in said] == [
        (101, ["positive"]),
        (102, ["negative"]),
    ]
    assert np.allclose([p["score"] for p in said], fused.probability.max(-1), atol=1e-6)
    assert {p["model_version"] for p in said} == {"slencodings"}
    # What goes back can be read again, as the annotations of one more annotator.
    tasks = [
        {
            "id": p["task"],
            "data": {},
            "annotations": [{"completed_by": "fused", "result": p["result"]}],
        }
        for p in said
    ]
    assert votes(read_export(tasks)) == [(101, "fused", "positive"), (102, "fused", "negative")]


def test_numbers_go_back_as_ratings_and_nothing_as_nothing():
    opinion = sle.Opinion(
        np.asarray([[0.0, 0.5], [0.0, 0.0]]), np.asarray([0.5, 1.0]), np.full((2, 2), 0.5)
    )
    (said,) = to_label_studio(opinion, [3, 4], [1, 5], from_name="stars", to_name="text")
    assert (said["task"], said["score"]) == (3, 0.75)
    (result,) = cast(Any, said["result"])
    assert (result["type"], result["value"]) == ("rating", {"rating": 5})
    with pytest.raises(ValueError, match=r"one per item over the labels, \(1, 2\); \(2, 2\) came"):
        to_label_studio(opinion, [3], [1, 5], from_name="stars", to_name="text")


def assert_read_or_refused(records: Any, ask: dict[str, Any]) -> None:
    try:
        export = read_export(records, **ask)
    except ValueError as error:
        said = str(error)
    else:
        said = "the records are read"
        assert len({len(column) for column in export.columns.values()}) == 1
    assert said.startswith(("the records", "an export must hold one project"))


@pytest.mark.parametrize("name", SAID)
def test_a_wrong_value_anywhere_is_read_or_refused_and_never_a_crash(name: str):
    whole = [{"id": r.key} | r.value for p in parts(HERE / name) for r in records(p, name)]
    rng = random.Random(name)
    ask = SAID[name][2]
    for path in rng.choices(places(whole), k=150):
        assert_read_or_refused(put(whole, path, rng.choice(HOSTILE)), ask)


def test_a_zip_of_one_file_each_tells_the_annotators(tmp_path: Path):
    record = {"id": 1, "text": "hello", "label": ["yes"], "Comments": []}
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("all.jsonl", json.dumps(record))
    assert "annotator" not in read_export(tmp_path / "all.zip").columns
    (tmp_path / "out").mkdir()
    for name in ("ann", "bob"):
        (tmp_path / "out" / f"{name}.jsonl").write_text(json.dumps(record))
    (tmp_path / "out" / "cy.jsonl").write_text("")
    assert votes(read_export(tmp_path / "out")) == [(1, "ann", "yes"), (1, "bob", "yes")]


def test_the_document_names_every_format():
    text = (Path(__file__).parents[1] / "docs" / "exports.md").read_text()
    assert [name for name in FORMATS if f"`{name}`" not in text] == []
