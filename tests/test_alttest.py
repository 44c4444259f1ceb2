"""The five sets of people and models: what their files hold, and what the authors published."""

import json
from pathlib import Path

import numpy as np
import pytest
from real_crowds import unpin

from slencodings.choices import Alignment
from slencodings.datasets import alttest
from slencodings.datasets.alttest import AltTest
from slencodings.panel import alternative_annotator_test

# Items, answers, people, models, labels.
COUNTS = {
    "10k_prompts": (1698, 14032, 13, 6, 5),
    "cebab_stars": (711, 6459, 10, 6, 5),
    "lesion": (500, 4980, 6, 4, 7),
    "mtbench": (120, 966, 3, 6, 3),
    "wax": (246, 2856, 8, 6, 17),
}
# Winning rate and advantage probability as the authors' notebook prints them, with its epsilon.
PUBLISHED: dict[tuple[str, Alignment, float], dict[str, tuple[float, float]]] = {
    ("wax", "accuracy", 0.1): {
        "gemini_flash": (0.38, 0.69),
        "gemini_pro": (0.50, 0.74),
        "gpt-4o": (0.50, 0.73),
        "llama-31": (0.00, 0.57),
    },
    ("mtbench", "accuracy", 0.2): {"gpt-4o": (0.00, 0.77), "mistral-v03": (0.00, 0.68)},
    ("10k_prompts", "neg_rmse", 0.15): {
        "gemini_flash": (0.31, 0.67),
        "gemini_pro": (0.08, 0.63),
        "gpt-4o": (0.69, 0.76),
        "gpt-4o-mini": (0.92, 0.80),
    },
    ("cebab_stars", "neg_rmse", 0.1): {"gpt-4o": (0.90, 0.90), "mistral-v03": (0.50, 0.83)},
    ("lesion", "neg_rmse", 0.15): {"gemini_flash": (0.17, 0.71), "gemini_pro": (1.00, 0.81)},
}


def loaded(name: str) -> AltTest:
    try:
        return alttest(name)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", COUNTS)
def test_the_files_hold_what_their_source_says(name: str):
    crowd, people = loaded(name)
    models = len(people) - int(people.sum())
    found = len(crowd.items), len(crowd.item), int(people.sum()), models, len(crowd.labels)
    assert found == COUNTS[name]


@pytest.mark.parametrize(("asked", "expected"), PUBLISHED.items())
def test_the_alternative_annotator_test_gives_what_the_authors_published(
    asked: tuple[str, Alignment, float], expected: dict[str, tuple[float, float]]
):
    name, alignment, epsilon = asked
    crowd = loaded(name)
    for judge, published in expected.items():
        found = alternative_annotator_test(
            *(crowd[0], judge, crowd[1]), alignment=alignment, epsilon=epsilon
        )
        assert np.round(found[:2], 2).tolist() == pytest.approx(published, abs=0.0051), judge


def test_people_and_models_come_from_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    unpin(monkeypatch)
    (tmp_path / "wax").mkdir()
    people = {"9": {"i": "Time", "j": "Action"}, "10": {"i": "Time"}}
    models = {"gpt": {"i": "Action", "k": "None"}}
    for who, said in (("human", people), ("llm", models)):
        (tmp_path / "wax" / f"{who}_annotations.json").write_text(json.dumps(said))
    crowd, is_person = alttest("wax", tmp_path)
    assert crowd.annotators.tolist() == ["10", "9", "gpt"]
    assert is_person.tolist() == [True, True, False]
    assert crowd.labels.tolist() == ["Action", "None", "Time"]
    assert crowd.items.tolist() == ["i", "j", "k"]


def test_a_set_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"`name` must be one of 10k_prompts.*; 'mnist' came"):
        alttest("mnist")
