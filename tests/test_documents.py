"""Whether the documents tell the truth: their code runs, and what they name is there."""

import re

import pytest
from documents import DOCUMENTS, PYTHON, ROOT, run_block

BLOCKS = [
    pytest.param(*block, id=f"{document.name}-{i}")
    for document in DOCUMENTS
    for i, block in enumerate(PYTHON.findall(document.read_text()))
]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "output"), BLOCKS)
def test_code_in_the_documents_prints_what_they_say(code, output):
    run = run_block(code)
    assert run.code == 0, run.err
    assert run.out == output


@pytest.mark.parametrize("name", ["first", "three-questions"])
def test_a_figure_is_what_its_script_draws(tmp_path, name):
    compare = pytest.importorskip("matplotlib.testing.compare")
    script, now = ROOT / "docs" / "figures" / f"{name}.py", tmp_path / "now.png"
    typed = f"import runpy, sys\nsys.argv = ['', {str(now)!r}]\n"
    run = run_block(f"{typed}runpy.run_path({str(script)!r}, run_name='__main__')")
    assert run.code == 0, run.err
    assert compare.compare_images(script.with_suffix(".png"), now, tol=4) is None
    assert script.with_suffix(".png").stat().st_size < 100_000


def test_a_block_leaves_nothing_to_the_next():
    first = "import sys, decimal, slencodings as s\nsys.path.append('x'); s.fuse = None; x = 1"
    assert run_block(f"{first}\nopen('left', 'w').close()\nprint(1)") == (0, "1\n", "")
    then = "import os, sys, slencodings as s\nprint('x' in sys.path, s.fuse is None, os.listdir())"
    assert run_block(f"{then}\nprint('x' in globals())") == (0, "False False []\nFalse\n", "")
    code, out, err = run_block("print(2)\n1 / 0")
    assert (code, out) == (1, "2\n")
    assert "ZeroDivisionError" in err


def test_documents_name_only_tests_and_files_that_are_there():
    source = "".join(p.read_text() for p in (ROOT / "tests").glob("test_*.py"))
    for document in DOCUMENTS:
        for name in re.findall(r"`(test_\w+)`", document.read_text()):
            assert f"def {name}(" in source, f"{document.name} names {name}"
        for name in re.findall(r"`(test_\w+\.py)`", document.read_text()):
            assert (ROOT / "tests" / name).exists(), f"{document.name} names {name}"
        for link in re.findall(r"\]\((?!http)([^)#]+)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name} links to {link}"
