"""`sle encode --weigh`: learned by default, stored, applied to new rows, and refused in words."""

import json
import os
import re
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crowd_files import Roles, Table, as_bytes, skilled_table
from flat import encode_file
from running import Run, Sle

import slencodings
from slencodings.files import write as files
from slencodings.trust import (
    Crowd,
    crowd_from_json,
    crowd_to_json,
    learn_crowd,
)
from slencodings.trust.stored import crowd_to_dict

ROLES: Roles = {name: name for name in ("item", "annotator", "label", "confidence")}


def learn(table: Table, seed: int = 0) -> tuple[Crowd, Any]:
    said = slencodings.from_table(table, **ROLES, confidence_scale=None)
    return learn_crowd(said, rng=seed), said


@cache
def learn_usual(seed: int = 0) -> tuple[Crowd, Any]:
    """What is learned of the crowd that most tests have."""
    return learn(skilled_table(), seed)


@pytest.fixture
def sle(sle: Sle) -> Sle:
    """Run `sle encode` in a folder with crowd.csv in it."""
    Path("crowd.csv").write_bytes(as_bytes(skilled_table()))
    return partial(sle, "encode")


def stored(path: str = "crowd.json", **changes: Any) -> Crowd:
    crowd, _ = learn_usual()
    Path(path).write_text(json.dumps(crowd_to_dict(crowd) | changes))
    return crowd


def refused(sle: Sle, *args: str, code: int = 1) -> str:
    before = sorted(os.listdir())
    run = sle(*args)
    assert (run.code, run.out) == (code, ""), run.err
    assert "Traceback" not in run.err
    assert sorted(os.listdir()) == before
    return run.err.splitlines()[-1]


def assert_is_opinion(table: Table, opinion: Any) -> None:
    for k, label in enumerate("abc"):
        np.testing.assert_allclose(
            table[f"belief_{label}"], opinion.belief[:, k], rtol=1e-12, atol=1e-15
        )
        np.testing.assert_allclose(table[f"base_rate_{label}"], opinion.base_rate[:, k])
    np.testing.assert_allclose(table["uncertainty"], opinion.uncertainty, rtol=1e-12)


MEANS = {
    "votes": "probability that the next person says it, learned weights",
    "truth": "probability that it is true, learned weights",
}


@pytest.mark.parametrize("reading", ["votes", "truth"])
def test_a_crowd_is_learned_as_from_arrays_and_that_is_told_in_short(sle: Sle, reading: str):
    crowd, said = learn_usual()
    how = () if reading == "votes" else ("--reading", reading)
    run = sle("crowd.csv", "-o", "out.parquet", *how)
    votes, held_out = crowd.losses["votes"], crowd.losses["held_out"]
    opinion = getattr(crowd, reading)(said)
    unsure = int(np.sum(opinion.uncertainty > 0.9))
    assert (unsure > 0) == (reading == "truth")
    note = f"note     {unsure} items with next to no evidence: uncertainty above 0.9\n"
    assert run == Run(
        0,
        "",
        "columns  item = item, annotator = annotator, label = label, confidence = confidence\n"
        "learned  what 160 annotations by 4 annotators are worth: log-loss of votes kept back "
        f"meanwhile {votes:.3f} (one count each) -> {held_out:.3f}\n"
        f"read     crowd.csv: 160 rows, 3 labels: a, b, c\n{note if unsure else ''}"
        f"wrote    out.parquet: 40 rows, wide: {MEANS[reading]}\n",
    )
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), opinion)
    assert sle("crowd.csv", "-o", "same.parquet", "--weigh", "learned", *how).code == 0
    same, default = (pq.read_table(f"{name}.parquet") for name in ("same", "out"))
    assert same.equals(default, check_metadata=True)


def test_what_was_learned_is_shown_on_demand(sle: Sle):
    crowd, _ = learn_usual()
    run = sle("crowd.csv", "-o", "out.csv", "-v")
    assert f"detail   crowd:\n{crowd}\n" in run.err
    assert "detail   seed = 0\n" in run.err
    assert "detail   crowd = " not in run.err


def test_what_was_learned_is_in_the_metadata_with_its_seed(sle: Sle):
    how = ("--seed", "7", "--reading", "truth")
    assert sle("crowd.csv", "-o", "out.parquet", *how).code == 0
    assert sle("crowd.csv", "-o", "out.csv", *how).code == 0
    metadata = pq.read_table("out.parquet").schema.metadata[b"slencodings"]
    about = json.loads(metadata)
    assert about == json.loads(Path("out.csv.meta.json").read_text())
    assert (about["weigh"], about["reading"], about["seed"]) == ("learned", "truth", 7)
    assert about["confidence_scale"] == "as stated"
    crowd, _ = learn_usual(7)
    assert crowd_to_json(crowd_from_json(json.dumps(about["crowd"]))) == crowd_to_json(crowd)


def test_of_a_large_crowd_only_a_little_is_in_the_metadata(
    sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("slencodings.files.forms._MOST_WRITTEN", 35)
    assert sle("crowd.csv", "-o", "out.csv").code == 0
    about = json.loads(Path("out.csv.meta.json").read_text())
    assert about["crowd"]["annotators"] == 4
    assert "model" not in about["crowd"]


def test_what_was_kept_gives_the_same_on_the_same_rows(sle: Sle):
    run = sle("crowd.csv", "-o", "a.csv", "--save-crowd", "crowd.json")
    assert run.err.endswith("wrote    crowd.json: the crowd that was learned\n")
    assert Path("crowd.json").read_text().strip() == crowd_to_json(learn_usual()[0])
    run = sle("crowd.csv", "-o", "b.csv", "--weigh", "crowd.json")
    assert run.err.endswith(
        "wrote    b.csv: 40 rows, wide: probability that the next person says it, weights of "
        "crowd.json\n"
    )
    assert "note" not in run.err
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert sorted(os.listdir()) == sorted(
        ["a.csv", "a.csv.meta.json", "b.csv", "b.csv.meta.json", "crowd.csv", "crowd.json"]
    )


def test_the_same_rows_give_the_same_bytes_in_any_order_files_and_format(sle: Sle):
    table = skilled_table(60)
    order = np.random.default_rng(1).permutation(len(table["item"]))
    shuffled = {name: [values[i] for i in order] for name, values in table.items()}
    Path("rows.csv").write_bytes(as_bytes(table))
    Path("shuffled.csv").write_bytes(as_bytes(shuffled))
    Path("rows.parquet").write_bytes(as_bytes(shuffled, "parquet"))
    parts = [{n: v[s] for n, v in shuffled.items()} for s in (slice(90), slice(90, None))]
    for n, part in enumerate(parts):
        Path(f"part{n}.csv").write_bytes(as_bytes(part))
    sources = [["rows.csv"], ["shuffled.csv"], ["rows.parquet"], ["part0.csv", "part1.csv"]]
    made = []
    for source in sources:
        run = sle(*source, "-o", "votes.csv", "--save-crowd", "crowd.json")
        assert run.code == 0, run.err
        how = ("--reading", "truth", "--weigh", "crowd.json")
        assert sle(*source, "-o", "truth.csv", *how).code == 0
        made.append([Path(p).read_bytes() for p in ("votes.csv", "truth.csv", "crowd.json")])
    assert made == [made[0]] * 4
    assert sle("rows.csv", "-o", "learned.csv", "--reading", "truth").code == 0
    assert Path("learned.csv").read_bytes() == made[0][1]


def test_a_large_table_is_learned_from_a_sample_and_that_is_said(
    sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("slencodings.trust.learn_from_table.MOST_TO_LEARN_FROM", 159)
    monkeypatch.setattr("slencodings.trust.learn_from_table.SAMPLED", 80)
    table = skilled_table()
    table["label"][0] = "rare"
    Path("crowd.csv").write_bytes(as_bytes(table))
    run = sle("crowd.csv", "-o", "out.parquet", "--save-crowd", "crowd.json")
    assert "note     160 annotations are many: a sample of whole items is learned from\n" in run.err
    crowd = crowd_from_json(Path("crowd.json").read_text())
    assert 40 <= crowd.count.sum() < 160
    assert crowd.labels.tolist() == ["a", "b", "c", "rare"]
    fused = pq.read_table("out.parquet").to_pydict()
    said = slencodings.from_table(table, **ROLES, confidence_scale=None)
    np.testing.assert_allclose(fused["uncertainty"], crowd.votes(said).uncertainty, rtol=1e-12)
    del table["annotator"]
    Path("crowd.csv").write_bytes(as_bytes(table))
    run = sle("crowd.csv", "-o", "out.parquet", "--save-crowd", "crowd.json")
    assert "a sample of whole items" in run.err
    assert 40 <= crowd_from_json(Path("crowd.json").read_text()).count.sum() < 160


def test_a_large_table_in_which_no_item_is_shared_is_counted(
    sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("slencodings.trust.learn_from_table.MOST_TO_LEARN_FROM", 159)
    monkeypatch.setattr("slencodings.trust.learn_from_table.SAMPLED", 80)
    table = skilled_table() | {"item": [f"i{q:03}" for q in range(160)]}
    Path("crowd.csv").write_bytes(as_bytes(table))
    run = sle("crowd.csv", "-o", "out.parquet")
    assert "note     no annotations share an item with others" in run.err
    assert pq.read_table("out.parquet")["uncertainty"].to_pylist() == [1 / 1.5] * 160


def test_where_nothing_can_be_learned_each_annotation_is_one_count(sle: Sle):
    Path("lone.csv").write_text("item,annotator,label\na,u,yes\nb,v,no\n")
    run = sle("lone.csv", "-o", "out.parquet")
    told = "share an item with others, too few to learn from: each is one count\n"
    assert f"note     no annotations {told}" in run.err
    assert run.err.endswith(
        "2 rows, wide: probability that the next person says it, one count each\n"
    )
    Path("few.csv").write_text("item,annotator,label\na,u,yes\na,v,no\n")
    run = sle("few.csv", "-o", "few.parquet")
    assert f"note     only 2 annotations {told}" in run.err
    table = pq.read_table("few.parquet").to_pydict()
    assert (table["uncertainty"], table["belief_no"]) == ([0.5], [0.25])


def test_new_annotators_are_counted_and_typical(sle: Sle):
    crowd = stored()
    new = {
        "item": ["x", "x"],
        "annotator": ["ann", "eve"],
        "label": ["a", "c"],
        "confidence": [3, 1],
    }
    pq.write_table(pa.table(new), "new.parquet")
    run = sle("new.parquet", "-o", "out.parquet", "--weigh", "crowd.json")
    assert (
        "note     1 of 2 annotators are new to crowd.json, such as 'eve'; they get its typical "
        "worth\n" in run.err
    )
    said = slencodings.from_table(new, **ROLES, confidence_scale=None)
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), crowd.votes(said))


def test_uncertainty_is_learned_from_where_it_is_stated(sle: Sle):
    table = skilled_table()
    table["uncertainty"] = [(3 - c) / 4 for c in table.pop("confidence")]
    Path("crowd.csv").write_bytes(as_bytes(table))
    said = slencodings.from_table(
        table, item="item", annotator="annotator", label="label", uncertainty="uncertainty"
    )
    assert sle("crowd.csv", "-o", "out.parquet", "--save-crowd", "crowd.json").code == 0
    opinion = learn_crowd(said).votes(said)
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), opinion)
    # Confidence on a scale is uncertainty, too.
    Path("scores.csv").write_bytes(as_bytes(skilled_table()))
    scores = ("--confidence-scale", "-1-3", "--weigh", "crowd.json")
    assert sle("scores.csv", "-o", "scores.parquet", *scores).code == 0
    assert_is_opinion(pq.read_table("scores.parquet").to_pydict(), opinion)


def test_a_scale_says_what_may_come_and_levels_are_learned_as_stated(sle: Sle):
    crowd, said = learn_usual()
    assert sle("crowd.csv", "-o", "out.parquet", "--confidence-scale", "1-5").code == 0
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), crowd.votes(said))
    error = refused(sle, "crowd.csv", "-o", "new.csv", "--confidence-scale", "1-2")
    assert "--confidence must lie in [1, 2]" in error


def test_a_column_of_reliability_is_left_alone_and_that_is_said(sle: Sle):
    crowd, said = learn_usual()
    Path("crowd.csv").write_bytes(as_bytes(skilled_table() | {"reliability": [0.5] * 160}))
    run = sle("crowd.csv", "-o", "out.parquet")
    assert run.code == 0, run.err
    assert (
        "note     column 'reliability' is not used: what annotators are worth is learned; "
        "--reliability reliability uses it\n" in run.err
    )
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), crowd.votes(said))


STATED = [
    ("--reliability", "0.5"),
    ("--uncertainty", "0.25", "--item", "item"),
    ("--smoothing", "0.1"),
    ("--operator", "average"),
    ("--confidence-scale", "calibrated"),
]


@pytest.mark.parametrize("how", STATED, ids=" ".join)
def test_options_of_the_stated_encoding_mean_it(sle: Sle, how: tuple[str, ...]):
    table = skilled_table() | {"confidence": [c / 3 for c in skilled_table()["confidence"]]}
    Path("crowd.csv").write_bytes(as_bytes(table))
    run = sle("crowd.csv", "-o", "out.csv", *how)
    assert run.code == 0, run.err
    told = f"note     {how[0]} is of annotations weighed as stated, so nothing is learned\n"
    assert told in run.err
    explicit = sle("crowd.csv", "-o", "explicit.csv", *how, "--weigh", "stated")
    assert told not in explicit.err
    assert Path("out.csv").read_bytes() == Path("explicit.csv").read_bytes()
    assert json.loads(Path("out.csv.meta.json").read_text())["weigh"] == "stated"


def test_missing_values_teach_nothing_and_are_dropped_or_trusted(sle: Sle):
    table = skilled_table() | {
        "confidence": [None if q == 5 else c for q, c in enumerate(skilled_table()["confidence"])]
    }
    pq.write_table(pa.table(table), "crowd.parquet")
    assert "--confidence must be there" in refused(sle, "crowd.parquet", "-o", "out.csv")
    kept = {name: values[:5] + values[6:] for name, values in table.items()}
    crowd, said = learn(kept)
    how = ("--missing",)
    assert sle("crowd.parquet", "-o", "out.parquet", *how, "drop").code == 0
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), crowd.votes(said))
    run = sle("crowd.parquet", "-o", "out.parquet", *how, "trust")
    assert run.code == 0
    told = (
        "1 row without confidence or annotator not learned from, and taken as certain and reliable"
    )
    assert f"note     {told} (--missing trust)\n" in run.err
    table["confidence"][5] = 3
    said = slencodings.from_table(table, **ROLES, confidence_scale=None)
    opinion = crowd.votes(said)
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), opinion)


def test_labels_keep_their_order_and_may_be_some_that_nobody_gave(sle: Sle):
    run = sle("crowd.csv", "-o", "out.parquet", "--labels", "c,b,a,d")
    assert run.code == 0
    table = pq.read_table("out.parquet").to_pydict()
    assert list(table)[1:5] == ["belief_c", "belief_b", "belief_a", "belief_d"]


def test_without_annotators_one_worth_is_learned(sle: Sle):
    table = skilled_table()
    del table["annotator"]
    Path("crowd.csv").write_bytes(as_bytes(table))
    run = sle("crowd.csv", "-o", "out.csv")
    alone = "no annotator column was found, so one worth is learned for all"
    assert f"note     {alone}; --annotator COLUMN names it\n" in run.err


def test_of_very_many_labels_votes_are_the_answer(sle: Sle, monkeypatch: pytest.MonkeyPatch):
    for module in ("learn_crowd", "learn_from_table"):
        # `trust.learn_crowd` is the function.
        monkeypatch.setattr(import_module(f"slencodings.trust.{module}"), "MOST_LABELS", 2)
    run = sle("crowd.csv", "-o", "out.csv", "--save-crowd", "crowd.json")
    assert "note     of more than 2 labels, what is said where a label is true is not l" in run.err
    assert crowd_from_json(Path("crowd.json").read_text()).model is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"converged": False}, "learning did not come to an end; what it had found by then"),
        (
            {"losses": {"votes": 0.5, "held_out": 0.5, "learned": 0.4}},
            "no better than counting them does; --weigh stated goes by stated confidence and",
        ),
    ],
    ids=str,
)
def test_learning_that_went_badly_is_told(
    sle: Sle, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], told: str
):
    known = crowd_to_dict(learn_usual()[0])
    crowd = crowd_from_json(json.dumps(known | change))
    monkeypatch.setattr("slencodings.trust.learn_from_table.learn_crowd", lambda *_, **__: crowd)
    run = sle("crowd.csv", "-o", "out.csv")
    assert run.code == 0
    assert told in run.err


def test_a_stop_while_learning_is_heard_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def learn_for_ever(*_: Any, **__: Any) -> None:
        while True:
            np.ones(3).sum()

    def stop(what: str, *_: Any) -> None:
        if what == "learning":
            raise KeyboardInterrupt

    monkeypatch.setattr("slencodings.trust.learn_from_table.learn_crowd", learn_for_ever)
    (tmp_path / "crowd.csv").write_bytes(as_bytes(skilled_table()))
    (tmp_path / "crowd.json").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        encode_file(
            str(tmp_path / "crowd.csv"),
            str(tmp_path / "out.csv"),
            columns={},
            weigh="learned",
            save_crowd=str(tmp_path / "crowd.json"),
            progress=stop,
        )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["crowd.csv", "crowd.json"]
    assert (tmp_path / "crowd.json").read_text() == "old"


def test_an_error_while_writing_keeps_the_old_crowd(sle: Sle, monkeypatch: pytest.MonkeyPatch):
    Path("crowd.json").write_text("old")
    real = files.literal
    broken = lambda text: real(text.replace(".out.csv.", "none/out.csv."))  # noqa: E731
    monkeypatch.setattr(files, "literal", broken)
    how = ("--save-crowd", "crowd.json")
    refused(sle, "crowd.csv", "-o", "out.csv", *how)
    assert Path("crowd.json").read_text() == "old"


# What does not go together


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["learned", "--reliability", "0.5"],
            "--reliability: what annotations are worth is learned",
        ),
        (["learned", "--smoothing", "0.01"], "--smoothing: .* with `--weigh learned`. Leave one"),
        (["crowd.json", "--smoothing", "0"], "--smoothing: .* with `--weigh crowd.json`"),
        (["learned", "--operator", "average"], "--operator: .* or type --weigh stated"),
        (["learned", "--uncertainty", "0.5"], "--uncertainty: what annotations are worth"),
        (["crowd.json", "--confidence-scale", "calibrated"], "--confidence-scale: what annot"),
        (
            ["crowd.json", "--seed", "1"],
            "--seed: it is for `--weigh learned`; `--weigh crowd.json`",
        ),
        (["crowd.json", "--save-crowd", "b.json"], "--save-crowd: it is for `--weigh learned`"),
        (["stated", "--save-crowd", "b.json"], "is for `--weigh learned`; `--weigh stated` came"),
    ],
    ids=" ".join,
)
def test_options_that_contradict_are_wrong_usage(sle: Sle, args: list[str], message: str):
    said = refused(sle, "crowd.csv", "-o", "out.csv", "--weigh", *args, code=2)
    assert re.search(message, said), said


def test_keeping_what_was_not_learned_is_wrong_usage(sle: Sle):
    how = ("--smoothing", "0.1", "--save-crowd", "b.json")
    said = refused(sle, "crowd.csv", "-o", "out.csv", *how, code=2)
    assert "--save-crowd: it is for `--weigh learned`; `--smoothing` came" in said


def test_what_is_true_is_not_asked_of_what_was_stated(sle: Sle):
    how = ("--weigh", "stated", "--reading", "truth", "--confidence-scale", "1-3")
    said = refused(sle, "crowd.csv", "-o", "out.csv", *how)
    assert "a learned crowd, and annotations are weighed as stated; --reading truth came" in said


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("crowd.jsn", None, r"there is no file 'crowd.jsn'. Did you mean 'crowd.json'\?"),
        ("leanred", None, r"no file 'leanred'. Did you mean 'learned'\?"),
        ("elsewhere/crowd", None, r"'learned', 'stated' or a file.* no file 'elsewhere/crowd'.$"),
        ("folder", None, r"--weigh must be 'learned', .*; there is no file 'folder'"),
        (
            "crowd.csv",
            None,
            r"crowd.csv holds no stored crowd: a stored crowd is JSON; this is not.*--save-crowd",
        ),
        ("binary", b"\xff\xfe\x00", r"binary holds no stored crowd: it is not text Make one: sle"),
        ("other.json", b'{"a": 1}', r"has the fields annotators, .*; a came. Make one: sle enc"),
        ("list.json", b"[]", r"has the fields .*; list came. Make one"),
    ],
)
def test_what_is_no_stored_crowd_is_refused_before_any_work(
    sle: Sle, name: str, content: bytes | None, message: str
):
    stored()
    Path("folder").mkdir()
    if content is not None:
        Path(name).write_bytes(content)
    run = sle("crowd.csv", "-o", "out.csv", "--weigh", name)
    assert run.code == 1
    assert run.err.count("\n") == 1
    assert re.search(message, run.err.rstrip()), run.err


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("none/crowd.json", r"needs a folder that is there; 'none' is not"),
        ("folder", r"must be a file; 'folder' is a folder. Name another"),
        ("crowd.csv", r"must not replace its own input 'crowd.csv'"),
        ("out.csv", r"must not replace the other output 'out.csv'. Name another"),
        ("out.csv.meta.json", r"must not replace the other output 'out.csv.meta.json'"),
    ],
)
def test_a_place_that_cannot_keep_a_crowd_is_refused_before_any_work(
    sle: Sle, place: str, message: str
):
    Path("folder").mkdir()
    how = ("--save-crowd", place)
    assert re.search(message, refused(sle, "crowd.csv", "-o", "out.csv", *how))


UNKNOWN = (
    r"labels that the crowd was learned for, 'a', 'b', 'c'; 1 of 2 rows do not, first 'z' in row 2"
)
ONE_FOR_ALL = r"1, 2, 3; none came. Pass --confidence COLUMN, or one for all: --confidence 3"


@pytest.mark.parametrize(
    ("weigh", "columns", "rows", "message"),
    [
        (
            "learned",
            "label,confidence",
            "x,a,1 " * 30 + "x,b,inf",
            r"confidence must be finite.*inf at row 30",
        ),
        ("crowd.json", "annotator,label,confidence", "x,ann,a,1 x,bob,z,2", UNKNOWN),
        ("crowd.json", "annotator,label", "x,ann,a x,bob,b", ONE_FOR_ALL),
        ("crowd.json", "label,doubt", "x,a,0.5", r"what was stated: --confidence COLUMN"),
        (
            "crowd.json --confidence-scale 2-5",
            "label,confidence",
            "x,a,1",
            r"--confidence must lie in \[2, 5\]",
        ),
        (
            "crowd.json --labels a,b",
            "label,confidence",
            "x,a,1",
            r"'c'; 'a', 'b' came. Leave --labels out",
        ),
    ],
)
def test_rows_that_a_crowd_cannot_read_are_refused(
    sle: Sle, weigh: str, columns: str, rows: str, message: str
):
    stored()
    Path("new.csv").write_text("\n".join([f"item,{columns}", *rows.split()]))
    said = refused(sle, "new.csv", "-o", "out.csv", "--weigh", *weigh.split())
    assert re.search(message, said), said


def test_names_of_another_type_are_refused(sle: Sle):
    stored(annotators=[0.5, 1.5, 2.5, 3.5])
    said = refused(sle, "crowd.csv", "-o", "out.csv", "--weigh", "crowd.json")
    assert "`crowd` must know annotators as column 'annotator' does, by String; 0.5 came" in said


@pytest.mark.parametrize("confidence", ["1.5", "-2"])
def test_one_confidence_for_all_lies_within_a_scale(sle: Sle, confidence: str):
    Path("crowd.csv").write_bytes(
        as_bytes({k: v for k, v in skilled_table().items() if k[0] != "c"})
    )
    asked = ["crowd.csv", "-o", "out.csv", "--confidence"]
    assert sle(*asked, "0.5", "--save-crowd", "crowd.json").code == 0
    for weigh in ("learned", "stated", "crowd.json"):
        said = refused(sle, *asked, confidence, "--weigh", weigh)
        assert "--confidence must be a column, a number in [0, 1]" in said
        assert f"; {float(confidence)} came. Name the ends" in said
        low = sle(*asked, confidence, "--confidence-scale", "-2-5", "--weigh", weigh)
        assert low.code == 0, low.err


def test_numbers_are_the_same_names_in_csv_and_in_json(sle: Sle):
    table = skilled_table()
    table["label"] = ["123"["abc".index(label)] for label in table["label"]]
    table["annotator"] = ["1234"[("ann", "bob", "cy", "dan").index(x)] for x in table["annotator"]]
    Path("text.csv").write_bytes(as_bytes(table))
    numbers = table | {name: [int(x) for x in table[name]] for name in ("annotator", "label")}
    Path("numbers.jsonl").write_bytes(as_bytes(numbers, "jsonl"))
    for learned, other in (("text.csv", "numbers.jsonl"), ("numbers.jsonl", "text.csv")):
        assert sle(learned, "-o", "a.csv", "--save-crowd", "crowd.json").code == 0
        run = sle(other, "-o", "b.csv", "--weigh", "crowd.json")
        assert run.code == 0, run.err
        assert "are new to" not in run.err
        assert Path("b.csv").read_text() == Path("a.csv").read_text()


def test_reliability_given_to_the_library_is_refused_too(tmp_path: Path):
    (tmp_path / "crowd.csv").write_bytes(as_bytes(skilled_table(4) | {"reliability": [0.5] * 16}))
    with pytest.raises(ValueError, match=r"`reliability` came with weigh='learned'. Leave"):
        encode_file(
            str(tmp_path / "crowd.csv"),
            str(tmp_path / "out.csv"),
            columns={"reliability": "reliability"},
            weigh="learned",
        )
