"""What is public changes only when somebody means it."""

import json

import pytest
from public_face import PATH, as_text, shape


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
