"""The notebooks run from top to bottom, offline, and are kept without what they print."""

import json
from pathlib import Path

import pytest
from documents import run_block

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path: Path, kind: str) -> list[dict]:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["nbformat"] == 4
    return [cell for cell in found["cells"] if cell["cell_type"] == kind]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    done = run_block("\n".join("".join(cell["source"]) for cell in cells(path, "code")))
    assert done.code == 0, done.err
    assert done.out


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_cleared_and_links_lead_somewhere(path):
    for cell in cells(path, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
    text = "".join("".join(cell["source"]) for cell in cells(path, "markdown"))
    assert text.startswith("# ")
    for link in text.split("](")[1:]:
        assert (FOLDER / link.split(")")[0]).exists(), link


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 5
