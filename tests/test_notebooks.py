"""The notebooks run from top to bottom, offline, and are kept without what they print."""

import json
from pathlib import Path

import pytest
from documents import run_block

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


# What runs first: nothing reaches another machine, or this one by an address.
OFFLINE = """
import sys

def refuse(event, given):
    if event in ("socket.getaddrinfo", "socket.connect", "socket.sendto"):
        raise OSError(f"offline: {event} {given[-1]!r}")

sys.addaudithook(refuse)
"""


def cells(path: Path, kind: str) -> list[dict]:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["nbformat"] == 4
    return [cell for cell in found["cells"] if cell["cell_type"] == kind]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    code = "\n".join("".join(cell["source"]) for cell in cells(path, "code"))
    assert "subprocess" not in code, "of another process nobody would know what it asks for"
    done = run_block(OFFLINE + code)
    assert done.code == 0, done.err
    assert done.out


@pytest.mark.slow
@pytest.mark.parametrize("where", ["http://127.0.0.1:9/", "http://example.org/"])
def test_what_asks_a_network_while_a_notebook_runs_fails(where):
    done = run_block(f"{OFFLINE}from urllib.request import urlopen\nurlopen({where!r})")
    assert done.code != 0
    assert "offline: socket." in done.err


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
