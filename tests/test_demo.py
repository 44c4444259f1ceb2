"""The demo tells a true story, the same for the same seed, on any terminal."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import Sle

import slencodings
from slencodings.cli import demo
from slencodings.cli.demo import tell
from slencodings.datasets import digits_crowd


def story(seed: int = 0, save: str | None = None) -> str:
    told: list[str] = []
    tell(seed, save, say=told.append)
    return "\n".join(told)


@pytest.fixture(scope="module")
def stories() -> list[str]:
    return [story(seed) for seed in range(2)]


def contest(text: str) -> dict[str, tuple[float, float]]:
    """Accuracy and loss by name, as the demo prints them of the crowd itself."""
    text = text.split("A small network learns")[0]
    rows = re.findall(r"^  (\w.*?)  +(\d\.\d{3}) +(inf|\d\.\d{3}) +\S+$", text, re.MULTILINE)
    return {name: (float(accuracy), float(loss)) for name, accuracy, loss in rows}


def test_the_story_depends_on_the_seed_and_on_nothing_else(stories: list[str]):
    assert story(1) == stories[1]
    assert stories[0] != stories[1]
    assert "(seed 1)" in stories[1]


@pytest.mark.parametrize("seed", range(2))
def test_what_the_closing_lines_claim_is_what_was_computed(stories: list[str], seed: int):
    text = stories[seed]
    rows = contest(text)
    assert len(rows) == 4
    right = re.search(r"Right most often: (.*), (.*)% of the images", text)
    close = re.search(r"Lowest log-loss: (.*), (.*)\.\n", text)
    assert right is not None
    assert close is not None
    best = max(accuracy for accuracy, _ in rows.values())
    least = min(loss for _, loss in rows.values())
    assert set(right[1].split(" and ")) == {n for n, (a, _) in rows.items() if a == best}
    assert set(close[1].split(" and ")) == {n for n, (_, x) in rows.items() if x == least}
    assert float(right[2]) / 100 == pytest.approx(best, abs=1e-3)
    assert float(close[2]) == least
    impossible = re.search(r"no chance at all: (.*)\.", text)
    infinite = {name for name, (_, loss) in rows.items() if loss == float("inf")}
    assert set(impossible[1].split(" and ") if impossible else []) == infinite


def test_a_network_learns_from_every_target(stories: list[str]):
    for text in stories:
        trained = text.split("A small network learns")[1]
        assert "from 1,200 images and reads 597 others" in trained
        rows = re.findall(r"^  (\w.*?)  +(\d\.\d{3}) +(\d\.\d{3}) +(\S+)$", trained, re.MULTILINE)
        assert [name for name, *_ in rows] == [
            "majority vote", "soft vote", "SLE, confidence as earned", "what was written (gold)"
        ]  # fmt: skip
        # Chance is .1; a network trained on what was written reads nearly all.
        assert all(float(accuracy) > 0.85 for _, accuracy, *_ in rows)
        assert [doubt == "none" for *_, doubt in rows] == [True, True, False, True]


def test_without_pytorch_the_story_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "slencodings.torch", None)
    assert "(pip install 'slencodings[torch]') a network learns from this crowd" in story(0)


def test_the_table_is_what_the_library_says_of_the_crowd(stories: list[str]):
    crowd = digits_crowd(rng=0)
    vote = slencodings.aggregate.majority_vote(crowd.annotations).probability
    fused = slencodings.aggregate.sle(crowd.annotations, reliability=crowd.reliability)
    rows = contest(stories[0])
    for name, p in (
        ("majority vote", vote),
        ("SLE, confidence as stated", fused.probability),
    ):
        accuracy = np.mean(np.argmax(p, axis=-1) == crowd.gold)
        assert rows[name][0] == pytest.approx(accuracy, abs=5e-4)


@pytest.mark.parametrize(
    ("readings", "lines"),
    [
        ([("a", 0.5, 2.0), ("b", 0.5, 1.0)], ["often: a and b, 50.0%", "log-loss: b, 1.000"]),
        ([("a", 0.5, np.inf), ("b", 0.4, 1.0)], ["often: a, 50.0%", "no chance at all: a."]),
    ],
)
def test_the_closing_lines_follow_any_numbers(readings: list[Any], lines: list[str]):
    level = np.asarray([0.0, 1.0])
    earned = slencodings.confidence.Calibration(level, level, np.asarray([1, 1]), 1 - level)
    rows = [demo.Reading(name, accuracy, loss, None) for name, accuracy, loss in readings]
    told = "\n".join(demo._lessons(rows, earned))
    assert all(line in told for line in lines)
    assert "Those who called themselves 1 sure agreed with 100% of the others" in told


def test_the_crowd_can_be_saved_and_encoded_right_away(sle: Sle, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "slencodings.torch", None)  # no network is needed for it
    Path("my crowd.csv").write_text("old")
    text = story(0, "my crowd.csv")
    assert os.listdir() == ["my crowd.csv"]
    assert "The crowd is in my crowd.csv. Now type:" in text
    first, second = (line.strip() for line in text.splitlines()[-2:])
    assert first == "sle encode 'my crowd.csv' -o targets.parquet"
    assert second == "sle compare 'my crowd.csv'"
    with Path("my crowd.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    crowd = digits_crowd(rng=0)
    assert list(rows[0]) == ["item", "annotator", "label", "confidence", "reliability"]
    assert len(rows) == len(crowd.annotations.item)
    np.testing.assert_allclose(
        [float(row["confidence"]) for row in rows], 1 - crowd.annotations.uncertainty, atol=1e-12
    )
    run = sle("encode", "my crowd.csv", "-o", "out.csv")
    assert run.code == 0
    assert "8,985 rows, 10 labels" in run.err


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


@pytest.mark.parametrize(
    ("encoding", "shade"),
    [("utf-8", "█"), ("ascii", "#")],
)
def test_the_picture_is_drawn_with_what_the_terminal_has(encoding: str, shade: str):
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = os.environ | plain | {"PYTHONIOENCODING": encoding}
    without_network = "import sys; sys.modules['slencodings.torch'] = None"
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{without_network}; from slencodings.cli.demo import tell; tell(1)",
        ],
        env=environment,
        capture_output=True,
        check=True,
    )
    text = run.stdout.decode(encoding)
    assert run.stderr == b""
    assert re.search(rf"uncertainty +0\.\d\d {shade}+\n", text)
    assert "\x1b" not in text
