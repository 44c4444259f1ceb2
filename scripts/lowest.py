"""The lowest versions that pyproject.toml admits: `lowest.py EXTRA ...`, a requirement a line."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(extras: list[str]) -> list[str]:
    """`name>=1.2` as `name==1.2`, of the base and these extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    own = [line for line in asked if not line.startswith("slencodings[")]
    return [re.sub(r">=([\w.]+).*", r"==\1", line) for line in own]


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1:])))
