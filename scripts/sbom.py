"""The packages of this environment as CycloneDX 1.5 JSON, sorted by name; the same every time.

They must be locked: all but the package itself stand in constraints.txt, at that version.
"""

import json
import re
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[1] / "constraints.txt"


def component(package: Distribution) -> dict[str, Any]:
    """A package, its version and what it says of its licence."""
    name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
    about = {
        "type": "library",
        "name": name,
        "version": package.version,
        "purl": f"pkg:pypi/{name}@{package.version}",
    }
    licence = package.metadata.get("License-Expression")
    return about | ({"licenses": [{"expression": licence}]} if licence else {})


def sbom() -> dict[str, Any]:
    """All of them."""
    found = sorted(
        (component(package) for package in distributions()), key=lambda c: str(c["name"])
    )
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": found}


def unlocked(found: list[tuple[str, str]], lock: str) -> list[str]:
    """Those of packages and versions that a lock does not have."""
    lines = set(lock.splitlines())
    each = [f"{name}=={version}" for name, version in found if name != "slencodings"]
    return [line for line in each if line not in lines]


if __name__ == "__main__":
    bom = sbom()
    every = [(str(c["name"]), str(c["version"])) for c in bom["components"]]
    if missing := unlocked(every, LOCK.read_text(encoding="utf-8")):
        raise SystemExit(f"constraints.txt must lock what the base brings; it lacks {missing}.")
    print(json.dumps(bom, indent=1))
