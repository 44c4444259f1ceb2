"""Which packages an install of slencodings brings, by what is installed here.

`.venv/bin/python scripts/needed.py` says how many megabytes that is on disk without bytecode, for
the base and with each extra; `scripts/packages` installs them into empty environments.
"""

import os
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
# Of people who work on it, not of those who use it.
OWN = {"dev", "docs", "experiments"}


def every_extra() -> list[str]:
    """The extras of those who use it, in order."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return sorted(project["optional-dependencies"].keys() - OWN)


def requirements(extras: Iterable[str] = ()) -> list[str]:
    """What the base and these extras ask for."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    own = [Requirement(line).extras for line in asked if line.startswith("slencodings[")]
    rest = [line for line in asked if not line.startswith("slencodings[")]
    return [*rest, *(line for inner in own for line in requirements(inner))]


def needed(asked: Iterable[str], extras: Iterable[str] = ()) -> dict[str, Distribution]:
    """The packages that these ask for, and those that they ask for in turn, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(text, frozenset(extras)) for text in asked]
    while todo:
        text, extras = todo.pop()
        wanted = Requirement(text)
        here = wanted.marker is None or any(
            wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        )
        key = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if here and key not in seen:
            seen.add(key)
            package = found[key[0]] = distribution(wanted.name)
            todo += [(line, key[1]) for line in package.requires or []]
    return found


def megabytes(packages: Iterable[Distribution]) -> float:
    """What the files of packages take on disk; no bytecode, which not every installer writes."""
    every = (p.locate_file(file) for p in packages for file in p.files or [])
    files = {str(file) for file in every if not str(file).endswith(".pyc")}
    return sum(os.lstat(file).st_blocks * 512 for file in files if os.path.lexists(file)) / 2**20


def main() -> None:
    """A line for the base, for each extra with it, and for all."""
    every = every_extra()
    for name, extras in {"base": [], **{x: [x] for x in every}, "all": every}.items():
        packages = needed(requirements(extras)).values()
        print(f"{name:<10} {megabytes(packages):6,.0f} MB  {len(packages):3} packages")


if __name__ == "__main__":
    main()
