"""What is public changes only when somebody means it."""

import inspect
import json
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from public_face import PATH, as_text, fields, methods, shape

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


@pytest.mark.slow  # imports PyTorch
def test_what_is_public_is_what_the_snapshot_says():
    kept, found = json.loads(PATH.read_text(encoding="utf-8")), json.loads(as_text())
    how = "if it is meant: PYTHONPATH=src:tests python tests/public_face.py, and the changelog"
    for part in kept:
        assert found[part] == kept[part], how
    assert found.keys() == kept.keys()


def test_the_snapshot_can_differ():
    def f(a, *, b=1, c=print, **rest): ...

    def g(a, *, b=2, c=print, **rest): ...

    assert shape(f) == "a, *, b=1, *, c=print, **rest"
    assert shape(f) != shape(g)


def test_the_snapshot_has_methods_and_the_defaults_of_fields():
    @dataclass
    class Kept:
        a: int
        b: int = 1

        def more(self, by=2): ...

        @classmethod
        def made(cls, *, of=3): ...

        @property
        def half(self): ...

        def _hidden(self): ...

    Kept.__module__ = "slencodings.somewhere"
    found = {name: shape(value) for name, value in methods(Kept)}
    assert found == {"half": "property", "made": "cls, *, of=3", "more": "self, by=2"}
    assert shape(Kept) == ["a", "b=1"]
    assert [*fields(NamedTuple("Pair", [("a", int)]))] == ["a"]
    assert methods(dict) == []


def test_all_that_the_reference_shows_is_in_the_snapshot():
    names = json.loads(PATH.read_text(encoding="utf-8"))["names"]
    pages = "".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    shown = re.findall(r"^::: slencodings\.(\S+)", pages, re.MULTILINE)
    assert len(shown) > 40
    for name in {*shown} - names.keys():
        module = import_module(f"slencodings.{name}")
        defined = [
            key
            for key, value in vars(module).items()
            if not key.startswith("_")
            and (inspect.isfunction(value) or inspect.isclass(value))
            and value.__module__ == module.__name__
        ]
        assert {f"{name}.{key}" for key in defined} <= names.keys()
        assert any(other.startswith(f"{name}.") for other in names), name


def test_all_that_documents_import_is_in_the_snapshot():
    names = json.loads(PATH.read_text(encoding="utf-8"))["names"]
    root = REFERENCE.parents[1]
    pages = [root / "README.md", *root.glob("docs/*.md"), *root.glob("docs/notebooks/*.ipynb")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    found = re.findall(r"from slencodings\.?([\w.]*) import ([\w, ]+)", text)
    assert len(found) > 50
    for module, imported in found:
        for name in imported.split(", "):
            path = f"{module}.{name.strip()}".strip(".")
            public = {path.removesuffix(f".{name}"), path} & names.keys()
            assert public or any(n.startswith(f"{path}.") for n in names), path


def test_bad_input_ends_with_2_or_1_and_success_with_0(sle, tmp_path):
    (tmp_path / "crowd.csv").write_text("item,annotator,label\np,a,yes\np,b,no\n")
    codes = json.loads(PATH.read_text(encoding="utf-8"))["exit codes"]
    assert sle("encode", "crowd.csv", "-o", "targets.csv").code == codes["done"]
    assert sle("encode", "nothing.csv", "-o", "targets.csv").code == codes["bad data"]
    assert sle("encode", "--no-such-option").code == codes["wrong usage"]


@pytest.mark.parametrize("verb", [*json.loads(PATH.read_text(encoding="utf-8"))["command"]])
def test_every_verb_ends_with_0_for_help_1_for_a_missing_file_and_2_for_wrong_usage(sle, verb):
    assert sle(verb, "--help").code == 0
    assert sle(verb, "--no-such-option").code == 2
    needed = {
        "encode": ["-o", "out.csv"],
        "forget": ["--annotator", "ann"],
        "groups": ["--group", "team"],
        "report": ["-o", "out.html"],
        "panel": ["--models", "x"],
        "train": ["--features", "X.csv", "--model", "m.safetensors"],
        "evaluate": ["--features", "X.csv", "--model", "m.safetensors"],
    }
    if verb != "demo":  # which reads no file
        run = sle(verb, "nothing.csv", *needed.get(verb, []))
        assert (run.code, "nothing.csv" in run.err) == (1, True), run.err
