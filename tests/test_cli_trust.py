"""`sle encode --trust`: learned, stored, applied to new rows, and refused in words."""

import json
import os
import re
from functools import partial
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
from slencodings.trust import Trust, learn_trust

ROLES: Roles = {name: name for name in ("item", "annotator", "label", "confidence")}


def learn(table: Table, seed: int = 0) -> tuple[Trust, Any]:
    said = slencodings.from_table(table, **ROLES, confidence_scale=None)
    return learn_trust(said, rng=seed), said


@pytest.fixture
def sle(sle: Sle) -> Sle:
    """Run `sle encode` in a folder with crowd.csv in it."""
    Path("crowd.csv").write_bytes(as_bytes(skilled_table()))
    return partial(sle, "encode")


def stored(path: str = "trust.json", **changes: Any) -> Trust:
    trust, _ = learn(skilled_table())
    Path(path).write_text(json.dumps(trust.to_dict() | changes))
    return trust


def refused(sle: Sle, *args: str, code: int = 1) -> str:
    before = sorted(os.listdir())
    run = sle(*args)
    assert (run.code, run.out) == (code, ""), run.err
    assert "Traceback" not in run.err
    assert sorted(os.listdir()) == before
    return run.err.splitlines()[-1]


def assert_is_opinion(table: Table, opinion: Any) -> None:
    for k, label in enumerate("abc"):
        np.testing.assert_allclose(table[f"belief_{label}"], opinion.belief[:, k], rtol=1e-12)
        np.testing.assert_allclose(table[f"base_rate_{label}"], opinion.base_rate[:, k])
    np.testing.assert_allclose(table["uncertainty"], opinion.uncertainty, rtol=1e-12)


def test_learned_trust_is_that_of_the_arrays_and_is_told_in_short(sle: Sle):
    trust, said = learn(skilled_table())
    run = sle("crowd.csv", "-o", "out.parquet", "--trust", "learned")
    votes, held_out = trust.losses["votes"], trust.losses["held_out"]
    assert run == Run(
        0,
        "",
        "columns  item = item, annotator = annotator, label = label, confidence = confidence\n"
        f"learned  trust from 160 annotations: held-out vote log-loss {votes:.3f} (votes) -> "
        f"{held_out:.3f}\n"
        "read     crowd.csv: 160 rows, 3 labels: a, b, c\n"
        "wrote    out.parquet: 40 rows, wide, cumulative, trust learned\n",
    )
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), trust.opinion(said))


def test_the_three_tables_are_shown_on_demand(sle: Sle):
    trust, _ = learn(skilled_table())
    run = sle("crowd.csv", "-o", "out.csv", "--trust", "learned", "-v")
    assert f"detail   trust:\n{trust}\n" in run.err
    assert "detail   seed = 0\n" in run.err
    assert "detail   trust = " not in run.err


def test_what_was_learned_is_in_the_metadata_with_its_seed(sle: Sle):
    how = ("--trust", "learned", "--seed", "7")
    assert sle("crowd.csv", "-o", "out.parquet", *how).code == 0
    assert sle("crowd.csv", "-o", "out.csv", *how).code == 0
    metadata = pq.read_table("out.parquet").schema.metadata[b"slencodings"]
    about = json.loads(metadata)
    assert about == json.loads(Path("out.csv.meta.json").read_text())
    assert (about["trust_from"], about["seed"], about["smoothing"]) == ("learned", 7, 0)
    assert about["confidence_scale"] == "as stated"
    trust, _ = learn(skilled_table(), seed=7)
    assert Trust.from_json(json.dumps(about["trust"])).to_json() == trust.to_json()


def test_what_was_kept_gives_the_same_on_the_same_rows(sle: Sle):
    run = sle("crowd.csv", "-o", "a.csv", "--trust", "learned", "--save-trust", "trust.json")
    assert run.err.endswith("wrote    trust.json: the trust that was learned\n")
    assert (
        Trust.from_json(Path("trust.json").read_text()).to_json()
        == learn(skilled_table())[0].to_json()
    )
    run = sle("crowd.csv", "-o", "b.csv", "--trust", "trust.json")
    assert run.err.endswith("wrote    b.csv: 40 rows, wide, cumulative, trust trust.json\n")
    assert "note" not in run.err
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert sorted(os.listdir()) == sorted(
        ["a.csv", "a.csv.meta.json", "b.csv", "b.csv.meta.json", "crowd.csv", "trust.json"]
    )


def test_new_annotators_are_counted_and_typical(sle: Sle):
    trust = stored()
    new = {
        "item": ["x", "x"],
        "annotator": ["ann", "eve"],
        "label": ["a", "c"],
        "confidence": [3, 1],
    }
    pq.write_table(pa.table(new), "new.parquet")
    run = sle("new.parquet", "-o", "out.parquet", "--trust", "trust.json")
    assert (
        "note     1 of 2 annotators are new to trust.json, such as 'eve'; they get its typical "
        "worth\n" in run.err
    )
    said = slencodings.from_table(new, **ROLES, confidence_scale=None)
    opinion = trust.opinion(said)
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), opinion)


def test_uncertainty_is_learned_from_where_it_is_stated(sle: Sle):
    table = skilled_table()
    table["uncertainty"] = [(3 - c) / 4 for c in table.pop("confidence")]
    Path("crowd.csv").write_bytes(as_bytes(table))
    said = slencodings.from_table(
        table, item="item", annotator="annotator", label="label", uncertainty="uncertainty"
    )
    how = ("--trust", "learned", "--save-trust", "trust.json")
    assert sle("crowd.csv", "-o", "out.parquet", *how).code == 0
    opinion = learn_trust(said).opinion(said)
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), opinion)
    # Confidence on a scale is uncertainty, too.
    Path("scores.csv").write_bytes(as_bytes(skilled_table()))
    scores = ("--confidence-scale", "-1-3", "--trust", "trust.json")
    assert sle("scores.csv", "-o", "scores.parquet", *scores).code == 0
    assert_is_opinion(pq.read_table("scores.parquet").to_pydict(), opinion)


def test_a_column_of_reliability_is_left_alone_and_that_is_said(sle: Sle):
    trust, said = learn(skilled_table())
    Path("crowd.csv").write_bytes(as_bytes(skilled_table() | {"reliability": [0.5] * 160}))
    run = sle("crowd.csv", "-o", "out.parquet", "--trust", "learned")
    assert (
        "note     column 'reliability' is not used: what annotators are worth is learned" in run.err
    )
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), trust.opinion(said))


RECOMMENDED = "note     all annotators are trusted alike; --trust learned tells them apart\n"


def test_learned_trust_is_recommended_where_it_could_help(sle: Sle):
    rows = ("crowd.csv", "--confidence-scale", "1-3", "-o", "out.csv")
    assert RECOMMENDED in sle(*rows).err
    assert RECOMMENDED in sle(*rows, "--trust", "none").err
    assert RECOMMENDED not in sle(*rows, "--reliability", "0.8").err
    Path("lone.csv").write_text("item,annotator,label\na,u,yes\nb,v,no\n")
    assert RECOMMENDED not in sle("lone.csv", "-o", "out.csv").err
    Path("nobody.csv").write_text("item,label\na,yes\na,no\n")
    assert RECOMMENDED not in sle("nobody.csv", "-o", "out.csv").err


def test_missing_values_teach_nothing_and_are_dropped_or_trusted(sle: Sle):
    table = skilled_table() | {
        "confidence": [None if q == 5 else c for q, c in enumerate(skilled_table()["confidence"])]
    }
    pq.write_table(pa.table(table), "crowd.parquet")
    assert "--confidence must be there" in refused(
        sle, "crowd.parquet", "-o", "out.csv", "--trust", "learned"
    )
    kept = {name: values[:5] + values[6:] for name, values in table.items()}
    trust, said = learn(kept)
    how = ("--trust", "learned", "--missing")
    assert sle("crowd.parquet", "-o", "out.parquet", *how, "drop").code == 0
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), trust.opinion(said))
    assert sle("crowd.parquet", "-o", "out.parquet", *how, "trust").code == 0
    table["confidence"][5] = 3
    said = slencodings.from_table(table, **ROLES, confidence_scale=None)
    opinion = trust.opinion(said)
    assert_is_opinion(pq.read_table("out.parquet").to_pydict(), opinion)


def test_labels_keep_their_order_and_may_be_some_that_nobody_gave(sle: Sle):
    run = sle("crowd.csv", "-o", "out.parquet", "--trust", "learned", "--labels", "c,b,a,d")
    assert run.code == 0
    table = pq.read_table("out.parquet").to_pydict()
    assert list(table)[1:5] == ["belief_c", "belief_b", "belief_a", "belief_d"]


def test_without_annotators_one_worth_is_learned(sle: Sle):
    table = skilled_table()
    del table["annotator"]
    Path("crowd.csv").write_bytes(as_bytes(table))
    run = sle("crowd.csv", "-o", "out.csv", "--trust", "learned")
    assert "note     no annotator column was found, so one worth is learned for all\n" in run.err


def test_of_very_many_labels_the_meaning_is_not_learned(sle: Sle, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("slencodings.trust.learn.MOST_MEANT", 2)
    how = ("--trust", "learned", "--save-trust", "trust.json")
    run = sle("crowd.csv", "-o", "out.csv", *how)
    assert "note     of more than 2 labels, what votes say about others is not learned" in run.err
    meaning = Trust.from_json(Path("trust.json").read_text()).meaning
    assert np.array_equal(meaning, np.eye(3))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"converged": False}, "learning did not come to an end; what it had found by then"),
        (
            {"losses": {"votes": 0.5, "held_out": 0.5, "learned": 0.4}},
            "it predicts votes no better than counting them does; --trust none is simpler",
        ),
        (
            {"losses": {"votes": 0.5, "learned": 0.4}},
            "too few to hold some out; vote log-loss 0.500 (votes) -> 0.400 on these themselves",
        ),
    ],
    ids=str,
)
def test_learning_that_went_badly_is_told(
    sle: Sle, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], told: str
):
    trust = Trust.from_json(json.dumps(learn(skilled_table())[0].to_dict() | change))
    monkeypatch.setattr("slencodings.trust.learn.learn_trust", lambda *_, **__: trust)
    run = sle("crowd.csv", "-o", "out.csv", "--trust", "learned")
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

    monkeypatch.setattr("slencodings.trust.learn.learn_trust", learn_for_ever)
    (tmp_path / "crowd.csv").write_bytes(as_bytes(skilled_table()))
    (tmp_path / "trust.json").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        encode_file(
            str(tmp_path / "crowd.csv"),
            str(tmp_path / "out.csv"),
            columns={},
            trust="learned",
            save_trust=str(tmp_path / "trust.json"),
            progress=stop,
        )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["crowd.csv", "trust.json"]
    assert (tmp_path / "trust.json").read_text() == "old"


def test_an_error_while_writing_keeps_the_old_trust(sle: Sle, monkeypatch: pytest.MonkeyPatch):
    Path("trust.json").write_text("old")
    real = files.literal
    broken = lambda text: real(text.replace(".out.csv.", "none/out.csv."))  # noqa: E731
    monkeypatch.setattr(files, "literal", broken)
    how = ("--trust", "learned", "--save-trust", "trust.json")
    refused(sle, "crowd.csv", "-o", "out.csv", *how)
    assert Path("trust.json").read_text() == "old"


# What does not go together


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["learned", "--reliability", "0.5"], "trust knows this better; `--reliability 0.5` came"),
        (["learned", "--reliability", "reliability"], "`--reliability reliability` came with"),
        (["learned", "--smoothing", "0.01"], "`--smoothing 0.01` came with `--trust learned`"),
        (["trust.json", "--smoothing", "0"], "`--smoothing 0.0` came with `--trust trust.json`"),
        (["learned", "--operator", "average"], "`--operator average` came with"),
        (["learned", "--confidence-scale", "1-3"], "--confidence-scale: trust learns what conf"),
        (["trust.json", "--confidence-scale", "calibrated"], "on any scale; it came with `--trust"),
        (
            ["trust.json", "--seed", "1"],
            "--seed: it is for `--trust learned`; `--trust trust.json`",
        ),
        (["trust.json", "--save-trust", "b.json"], "--save-trust: it is for `--trust learned`"),
        (["none", "--save-trust", "b.json"], "it is for `--trust learned`; `--trust none` came"),
    ],
    ids=" ".join,
)
def test_options_that_contradict_are_wrong_usage(sle: Sle, args: list[str], message: str):
    said = refused(sle, "crowd.csv", "-o", "out.csv", "--trust", *args, code=2)
    assert message in said


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("trust.jsn", None, r"there is no file 'trust.jsn'. Did you mean 'trust.json'\?"),
        ("leanred", None, r"no file 'leanred'. Did you mean 'learned'\?"),
        ("elsewhere/trust", None, r"'none', 'learned' or a file.* no file 'elsewhere/trust'.$"),
        ("folder", None, r"there is no file 'folder'"),
        ("crowd.csv", None, r"crowd.csv is not a stored trust: Expecting value.*--save-trust"),
        ("binary", b"\xff\xfe\x00", r"binary is not a stored trust: it is no text. Make one: sle"),
        ("other.json", b'{"a": 1}', r"has the fields annotators, .*; a came. Make one: sle enc"),
        ("list.json", b"[]", r"has the fields .*; list came. Make one"),
    ],
)
def test_what_is_no_stored_trust_is_refused_before_any_work(
    sle: Sle, name: str, content: bytes | None, message: str
):
    stored()
    Path("folder").mkdir()
    if content is not None:
        Path(name).write_bytes(content)
    run = sle("crowd.csv", "-o", "out.csv", "--trust", name)
    assert run.code == 1
    assert run.err.count("\n") == 1
    assert re.search(message, run.err.rstrip()), run.err


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("none/trust.json", r"needs a folder that is there; 'none' is not"),
        ("folder", r"must be a file; 'folder' is a folder. Name another"),
        ("crowd.csv", r"must not replace its own input 'crowd.csv'"),
        ("out.csv", r"must not replace the other output 'out.csv'. Name another"),
        ("out.csv.meta.json", r"must not replace the other output 'out.csv.meta.json'"),
    ],
)
def test_a_place_that_cannot_keep_trust_is_refused_before_any_work(
    sle: Sle, place: str, message: str
):
    Path("folder").mkdir()
    how = ("--trust", "learned", "--save-trust", place)
    assert re.search(message, refused(sle, "crowd.csv", "-o", "out.csv", *how))


ALONE = r"some item needs two; 2 annot.*alone on its item. Pass --trust none to fuse without learn"
UNKNOWN = (
    r"labels that trust was learned for, 'a', 'b', 'c'; 1 of 2 rows do not, first 'z' in row 2"
)
ONE_FOR_ALL = r"1, 2, 3; none came. Pass --confidence COLUMN, or one for all: --confidence 3"


@pytest.mark.parametrize(
    ("trust", "columns", "rows", "message"),
    [
        ("learned", "annotator,label", "x,ann,a y,ann,b", ALONE),
        (
            "learned",
            "label,confidence",
            "x,a,1 x,b,inf",
            r"confidence must be finite.*inf at row 1",
        ),
        ("trust.json", "annotator,label,confidence", "x,ann,a,1 x,bob,z,2", UNKNOWN),
        ("trust.json", "annotator,label", "x,ann,a x,bob,b", ONE_FOR_ALL),
        ("trust.json", "label,doubt", "x,a,0.5", r"what was stated: --confidence COLUMN"),
        (
            "trust.json --confidence-scale 1-5",
            "label,confidence",
            "x,a,1",
            r"needs no scale; --confidence-scale came. Leave it out",
        ),
        (
            "trust.json --labels a,b",
            "label,confidence",
            "x,a,1",
            r"'c'; 'a', 'b' came. Leave labels",
        ),
    ],
)
def test_rows_that_trust_cannot_read_are_refused(
    sle: Sle, trust: str, columns: str, rows: str, message: str
):
    stored()
    Path("new.csv").write_text("\n".join([f"item,{columns}", *rows.split()]))
    said = refused(sle, "new.csv", "-o", "out.csv", "--trust", *trust.split())
    assert re.search(message, said), said


def test_names_of_another_type_are_refused(sle: Sle):
    stored(annotators=[1, 2, 3, 4])
    said = refused(sle, "crowd.csv", "-o", "out.csv", "--trust", "trust.json")
    assert "--trust must know annotators as column 'annotator' does, by String; 1 came" in said


def test_reliability_given_to_the_library_is_refused_too(tmp_path: Path):
    (tmp_path / "crowd.csv").write_bytes(as_bytes(skilled_table(4) | {"reliability": [0.5] * 16}))
    with pytest.raises(ValueError, match="`reliability` came too"):
        encode_file(
            str(tmp_path / "crowd.csv"),
            str(tmp_path / "out.csv"),
            columns={"reliability": "reliability"},
            trust="learned",
        )
