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
    assert sle("encode", "crowd.csv", "-o", "targets.csv").code == 0
    assert sle("encode", "nothing.csv", "-o", "targets.csv").code == 1
    assert sle("encode", "--no-such-option").code == 2
