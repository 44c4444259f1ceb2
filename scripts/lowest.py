"""The lowest versions that pyproject.toml admits: `lowest.py EXTRA ...`, a requirement a line.

`lowest.py --tests EXTRA ...` lists the tests that use them.
"""

import re
import sys
import tomllib
from pathlib import Path

TESTS = {
    "base": "opinion fusion aggregate learned_crowd cli",
    "demo": "demo",
    "excel": "intake",
    "jax": "backends",
    "plot": "plot",
    "postgres": "databases",
    "report": "report",
    "s3": "bucket",
    "spark": "spark",
    "sqlite": "databases",
    "tables": "tables",
    "torch": "torch_head torch_losses classifier classifier_files",
    "trainers": "trainers",
}
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(extras: list[str]) -> list[str]:
    """`name>=1.2` as `name==1.2`, of the base and these extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    own = [line for line in asked if not line.startswith("slencodings[")]
    return [re.sub(r">=([\w.]+).*", r"==\1", line) for line in own]


def tests(extras: list[str]) -> list[str]:
    """The files of tests that use the base and these extras, each once."""
    names = " ".join(TESTS.get(extra, "") for extra in ["base", *extras]).split()
    return [f"tests/test_{name}.py" for name in dict.fromkeys(names)]


if __name__ == "__main__":
    asked = sys.argv[1:]
    print("\n".join(tests(asked[1:]) if asked[:1] == ["--tests"] else lowest(asked)))
