"""The demo tells a true story, the same for the same seed, on any terminal."""

import csv
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import Sle

import slencodings
from slencodings.cli import demo
from slencodings.cli.demo import tell
from slencodings.datasets import DigitsCrowd, digits_crowd
from slencodings.trust import learn_crowd


def first_digits(rng: int) -> DigitsCrowd:
    """The first 600 images of the crowd, and what was read in them."""
    crowd = digits_crowd(rng=rng)
    some = np.arange(600)
    said = crowd.annotations.of_items(some)
    return crowd._replace(X=crowd.X[some], annotations=said, gold=crowd.gold[some])


def shorten(replace_in: Callable[[Any, str, Any], object]) -> None:
    """Tell of fewer images: the story is as long, and as true of them."""
    replace_in(demo, "digits_crowd", first_digits)
    replace_in(demo, "_MANY", 200)


def story(seed: int = 0, save: str | None = None) -> str:
    told: list[str] = []
    tell(seed, save, say=told.append)
    return "\n".join(told)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder but for a file that the first story replaces."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "my crowd.csv").write_text("old")
    return folder


class Begun(Exception):
    """Enough was told."""


def beginning(seed: int) -> str:
    """A story up to its first question: its crowd, one image, and what was learned of it."""
    told: list[str] = []

    def say(text: str) -> None:
        if text.startswith("\n1. "):
            raise Begun
        told.append(text)

    with pytest.MonkeyPatch.context() as patch, suppress(Begun):
        shorten(patch.setattr)
        patch.setattr(demo, "_compared", lambda *_: [])
        # What differs is the crowd, not chance in how it is learned.
        patch.setattr(demo, "learn_crowd", lambda a, rng: learn_crowd(a, rng=0))
        tell(seed, say=say)
    return "\n".join(told)


@pytest.fixture(scope="module")
def first(saved: Path) -> str:
    with chdir(saved), pytest.MonkeyPatch.context() as patch:
        shorten(patch.setattr)
        return story(0, "my crowd.csv")


def scores(text: str, question: str) -> dict[str, list[float]]:
    """What the table under a question says of each method."""
    part = text.split(question)[1].split("\n\n")[1]
    found = re.findall(r"^  (\w.*?)  +(-?\d.*|inf.*)$", part, re.MULTILINE)
    return {name: [float(x) for x in cells.split()] for name, cells in found}


def test_the_story_depends_on_the_seed_and_on_nothing_else_but_what_the_terminal_has(
    first: str,
):
    """Told again in another process, to a terminal that has no shades."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    code += "import test_demo as here; here.shorten(setattr); here.tell(0)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | plain | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert run.stderr == b""
    rich, poor = str.maketrans(" ░▒▓█", " .:*#"), run.stdout.decode("ascii")
    as_told = first.split("\nThe crowd is in ")[0]  # It was saved, which the other was not.
    assert poor.startswith(as_told.translate(rich) + "\nThe same on a table of your own")
    for shade, text in (("█", first), ("#", poor)):
        assert re.search(rf"uncertainty +0\.\d\d {shade}+\n", text)
        assert "\x1b" not in text
    same, other = beginning(0), beginning(1)
    assert first.startswith(same)
    assert "(seed 1)" in other
    assert other.replace("(seed 1)", "(seed 0)") != same


def test_the_tables_are_what_compare_says_of_the_crowd(first: str):
    crowd = digits_crowd(rng=0)
    a = crowd.annotations.rows(crowd.annotations.item < 200)
    a = replace(a, items=a.items[:200])
    found = slencodings.compare(
        a, gold=crowd.gold[:200], methods=["soft votes", "learned crowd"], folds=3, bootstrap=0
    )
    votes, truth = (scores(first, q) for q in ("What would people say?", "What is true?"))
    assert len(votes) == len(truth) == 4
    for row in found.rows:
        assert votes[row["method"]][0] == pytest.approx(row["votes"], abs=6e-4)
        assert truth[row["method"]][0] == pytest.approx(row.get("accuracy", 0), abs=6e-4)


def test_people_are_those_of_the_roster(first: str):
    a = first_digits(0).annotations
    worst = slencodings.describe_annotators(a).to_rows()[0]
    table = first.split("3. Whom to trust?")[1]
    line = next(x for x in table.splitlines() if x.strip().startswith(worst["annotator"]))
    assert f"{worst['above_chance']:.2f}" in line
    assert worst["verdict"] in line
    assert re.search(r"Rank correlation with true reliability: 0\.[5-9]\d\.", table)


@pytest.mark.parametrize(
    ("learned", "counted", "words"),
    [
        ((1.0, True), (2.0, False), "yes, for sure (learned crowd 1.000, soft votes 2.000)."),
        ((2.0, False), (1.0, True), "no, for sure (learned crowd 2.000, soft votes 1.000)"),
        ((1.0, False), (2.0, False), "not told apart (learned crowd 1.000, soft votes 2.000)"),
    ],
)
def test_whether_it_pays_follows_any_numbers(learned, counted, words: str):
    named = {"learned crowd": learned, "soft votes": counted}
    rows: list[Any] = [
        {"method": name, "votes": votes, "best": best} for name, (votes, best) in named.items()
    ]
    assert demo._verdict(rows).startswith(words)


def test_the_crowd_can_be_saved_and_encoded_right_away(
    first: str, saved: Path, sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(saved)
    text = first
    assert os.listdir() == ["my crowd.csv"]
    assert "The crowd is in my crowd.csv. Now type:" in text
    first, second = (line.strip() for line in text.splitlines()[-2:])
    assert first == "sle encode 'my crowd.csv' -o targets.parquet"
    assert second == "sle reliability 'my crowd.csv'"
    with Path("my crowd.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    crowd = first_digits(0)
    assert list(rows[0]) == ["item", "annotator", "label", "confidence", "reliability"]
    assert len(rows) == len(crowd.annotations.item)
    np.testing.assert_allclose(
        [float(row["confidence"]) for row in rows], 1 - crowd.annotations.uncertainty, atol=1e-12
    )
    run = sle("encode", "my crowd.csv", "-o", "out.csv")
    assert run.code == 0
    assert "3,000 rows, 10 labels" in run.err


@pytest.mark.parametrize(
    ("save", "error", "message"),
    [
        ("crowd.parquet", ValueError, "saved as CSV; 'crowd.parquet' came. Name it crowd.csv"),
        ("none/crowd.csv", FileNotFoundError, "needs a folder that is there"),
    ],
)
def test_a_name_that_cannot_be_saved_to_is_refused_before_the_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: str, error: type[Exception], message: str
):
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    with pytest.raises(error, match=message):
        tell(0, save, say=told.append)
    assert told == []


def test_without_scikit_learn_it_says_what_to_install(sle: Sle, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    code, out, err = sle("demo")
    assert (code, out) == (1, "")
    assert re.search(r"error: .*scikit-learn.*pip install 'slencodings\[demo\]'", err)
