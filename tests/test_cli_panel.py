"""`sle panel`: the library's answer, what is written, and what is said of wrong input."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from running import Sle

from slencodings.datasets import simulated_panel
from slencodings.files.crowd import read_crowd

QUICK = ("--folds", "2", "--bootstrap", "50", "-q")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    crowd = simulated_panel(40, people=3, judges={"good": 0.95, "dice": 0.3}, rng=0).annotations
    path = tmp_path_factory.mktemp("panel") / "panel.csv"
    with path.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["item", "annotator", "label", "kind"])
        for i, m, k in zip(crowd.item, crowd.annotator, crowd.y, strict=True):
            who = str(crowd.annotators[m])
            kind = "person" if who.startswith("p") else "model"
            rows.writerow([f"i{i}", who, "abc"[k], kind])
    return path


def test_rows_say_first_what_to_do_and_targets_are_opinions_with_and_without_models(
    sle: Sle, file: Path
):
    asked = ["panel", str(file), "--people", "kind=person", *QUICK]
    run = sle(*asked, "--costs", "good=2,dice=1", "-o", "rows.json", "--targets", "targets.csv")
    assert run.code == 0, run.err
    written = json.loads(Path("rows.json").read_text())
    assert written["about"]["advice"][0].startswith("Use the models beside people")
    parts = {row["part"] for row in written["rows"]}
    assert parts == {"panel", "judge", "family", "people", "path"}
    with Path("targets.csv").open() as lines:
        items = list(csv.DictReader(lines))
    assert len(items) == 40
    for row in items:
        for prefix in ("", "people_"):
            chances = [float(row[f"{prefix}probability_{k}"]) for k in "abc"]
            assert sum(chances) == pytest.approx(1)
            assert 0 < float(row[f"{prefix}uncertainty"]) < 1


def test_models_may_be_named_instead_of_people_and_sentences_come_before_tables(
    sle: Sle, file: Path
):
    run = sle("panel", str(file), "--models", "good,d*", *QUICK[:-1])
    assert run.code == 0, run.err
    assert "scored" not in run.err, "models predict, and are not scored"
    assert run.out.startswith("Use the models beside people: log-loss ")
    titles = ["What each model adds", "How many votes they have", "Beside how many people"]
    places = [run.out.index(title) for title in titles]
    assert places == sorted(places)
    assert "by 3 people and 2 models, 3 labels" in run.out


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ([], 1, "needs either --people or --models.*neither came.*--models 'gpt"),
        (["--people", "p*", "--models", "good"], 1, "both came"),
        (["--models", "claude*"], 1, r"--models must name annotators.*'claude\*' is none"),
        (["--models", "kind=robot"], 1, "--models needs a value of the column 'kind'"),
        (["--people", "kind=robot"], 1, "--people needs a value of the column 'kind'"),
        (["--people", "*"], 1, "by `?(--)?people`? there is no model"),
        (
            ["--models", "good,dice", "--costs", "good.csv"],
            2,
            "or NAME=PRICE with commas .*; 'good.csv' came, and there is no such file",
        ),
        (["--models", "good,dice", "--costs", "good=x"], 2, "; 'good=x' came."),
        (["--models", "good,dice", "--costs", "good=2"], 1, "--costs must have a price above 0"),
        (["--models", "good,dice", "--targets", "out.pdf"], 1, "out.pdf"),
        (["--models", "good,dice", "--folds", "30"], 1, "30 and 40 such items came"),
    ],
)
def test_what_cannot_be_done_is_said_in_options(
    sle: Sle, file: Path, typed: list[str], code: int, words: str
):
    run = sle("panel", str(file), *typed, "-q")
    assert run.code == code
    assert re.search(words, " ".join(run.err.split())), run.err


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People and two judges as JSONL; one states 0.9 always, tokens tell it better."""
    crowd = simulated_panel(40, people=3, judges={"good": 0.9, "vain": 0.4}, rng=1)
    a = crowd.annotations
    path = tmp_path_factory.mktemp("panel") / "judges.jsonl"
    with path.open("w") as out:
        for i, m, k in zip(a.item.tolist(), a.annotator.tolist(), a.y.tolist(), strict=True):
            row = {"judge": str(a.annotators[m]), "item": f"i{i}", "answer": "abc"[k]}
            if not crowd.people[m]:
                right = k == crowd.truth[i]
                row |= {"confidence": 0.9, "logprob": -0.1 if right else -0.9}
            out.write(json.dumps(row) + "\n")
        failed = {"judge": "vain", "item": "nobody", "answer": None, "error": "no JSON"}
        out.write(json.dumps(failed) + "\n")
    return path


def test_confidence_is_held_against_people_by_judge_and_by_source(
    sle: Sle, judged: Path, tmp_path: Path
):
    """People state none, which is no error here; the item that failed stays, with no opinion."""
    out, targets = tmp_path / "rows.json", tmp_path / "targets.csv"
    run = sle(
        "panel", str(judged), "--models", "good,vain", *QUICK, "-o", str(out),
        "--targets", str(targets),
    )  # fmt: skip
    assert run.code == 0, run.err
    rows = [row for row in json.loads(out.read_text())["rows"] if row["part"] == "confidence"]
    found = {(row["judge"], row["source"]): row for row in rows}
    assert set(found) == {
        (j, s) for j in ("good", "vain") for s in ("confidence", "token confidence")
    }
    assert found["vain", "confidence"]["stated"] == pytest.approx(0.9)
    assert found["vain", "confidence"]["overconfidence_low"] > 0
    assert found["vain", "confidence"]["sorts"] is None  # always the same
    assert found["vain", "token confidence"]["sorts"] > 0.6
    with targets.open() as lines:
        last = {row["item"]: row for row in csv.DictReader(lines)}["nobody"]
    assert float(last["uncertainty"]) == float(last["people_uncertainty"]) == 1


def test_more_columns_of_confidence_are_named(sle: Sle, file: Path, tmp_path: Path):
    text = file.read_text().splitlines()
    more = [f"{line},{'' if 'person' in line else 0.75},x" for line in text[1:]]
    path = tmp_path / "more.csv"
    path.write_text("\n".join([f"{text[0]},logprob,word", *more]) + "\n")
    crowd = read_crowd(str(path), sources=["logprob"])
    (told,) = (crowd.sources or {}).values()
    model = np.isin(crowd.annotations.annotators[crowd.annotations.annotator], ["good", "dice"])
    assert np.all(np.isnan(told) == ~model)
    assert np.all(told[model] == 0.75)
    asked = ("panel", str(path), "--people", "kind=person", *QUICK)
    for column, words in {
        "word": "--sources of confidence must be numbers in .*column 'word' has 200 rows with "
        "something else, such as 'x'",
        "logprop": "no column 'logprop' for --sources; .* Did you mean --sources logprob",
    }.items():
        run = sle(*asked, "--sources", column)
        assert run.code == 1
        assert re.search(words, " ".join(run.err.split())), run.err
