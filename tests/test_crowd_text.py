"""What was learned about a crowd, told to people."""

from dataclasses import replace

import numpy as np
import pytest
from crowd_files import skilled_table

from slencodings import from_table
from slencodings.trust import Crowd, count_each, learn_crowd


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    said = from_table(
        skilled_table(),
        item="item",
        annotator="annotator",
        label="label",
        confidence="confidence",
        confidence_scale=None,
    )
    return learn_crowd(said)


def test_annotators_stand_in_the_order_of_how_often_they_are_right(crowd: Crowd) -> None:
    lines = str(crowd).splitlines()
    assert lines[0] == "Annotators (4), by how often they are right above chance"
    assert [line.split()[:2] for line in lines[2:6]] == [
        [crowd.annotators[m], "40"] for m in np.argsort(-crowd.above_chance)
    ]


def test_levels_confusions_and_losses_are_told(crowd: Crowd) -> None:
    assert crowd.model is not None
    text = str(replace(crowd, through_truth=0.25, meaning=None))
    for level, share in zip(crowd.levels, crowd.share, strict=True):
        assert (
            f"{level:>24.4g} {crowd.level_count[crowd.levels == level][0]:>12} {share:>8.3f}"
            in text
        )
    for label, row in zip(crowd.labels, crowd.model.crowd, strict=True):
        assert " ".join([f"{label:>9}", *(f"{p:>9.3f}" for p in row)]) in text
    assert "that they say the same, and no more" in text
    assert "The next vote is read off the truth by 25%, else off votes" in text
    assert text.endswith(crowd.gain())


def test_what_a_vote_says_about_other_labels_is_told(crowd: Crowd) -> None:
    meaning = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    assert "        a     0.900     0.050     0.050" in str(replace(crowd, meaning=meaning))


def test_what_was_not_learned_is_said(crowd: Crowd) -> None:
    text = str(replace(crowd, model=None, levels=np.zeros(0), share=np.zeros(0)))
    assert "the same at any confidence: not learned" in text
    assert "(row)\n  not learned" in text


def test_of_many_annotators_and_labels_some_are_shown() -> None:
    rng = np.random.default_rng(0)
    table = {
        "item": np.repeat(np.arange(60), 5),
        "who": [f"a very long name of somebody {n}" for n in rng.integers(0, 14, 300)],
        "label": rng.integers(0, 12, 300),
    }
    crowd = learn_crowd(from_table(table, item="item", annotator="who", label="label"))
    lines = str(crowd).splitlines()
    assert sum("a very long name of som…" in line for line in lines) == 10
    assert sum(" is called " in line for line in lines) == 10
    assert f"{'...':>24}" in lines


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        (
            {"votes": 0.5, "learned": 0.3, "held_out": 0.4},
            "kept back meanwhile 0.500 (one count each) -> 0.400",
        ),
        (
            {"votes": 0.5, "learned": 0.3},
            "too few to hold some out; log-loss of votes 0.500 (one count each)",
        ),
    ],
)
def test_what_was_gained_is_told(crowd: Crowd, losses: dict[str, float], words: str) -> None:
    assert words in replace(crowd, losses=losses).gain()


def test_who_learned_nothing_says_so() -> None:
    said = from_table({"item": [0, 1], "label": ["a", "b"]}, item="item", label="label")
    assert count_each(said).gain() == "nothing was learned: each annotation is one count"
