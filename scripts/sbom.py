"""The packages of this environment as CycloneDX 1.5 JSON, sorted by name; the same every time."""

import json
import re
from importlib.metadata import Distribution, distributions


def component(package: Distribution) -> dict[str, object]:
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


def sbom() -> dict[str, object]:
    """All of them."""
    found = sorted(
        (component(package) for package in distributions()), key=lambda c: str(c["name"])
    )
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": found}


if __name__ == "__main__":
    print(json.dumps(sbom(), indent=1))
