"""`sle panel`: the library's answer, what is written, and what is said of wrong input."""

import csv
import json
import re
from pathlib import Path

import pytest
from running import Sle

from slencodings.datasets import simulated_panel

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
    run = sle("panel", str(file), "--models", "good,d*", *QUICK)
    assert run.code == 0, run.err
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
        (["--models", "good,dice", "--costs", "good"], 2, "NAME=PRICE with commas is needed"),
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
