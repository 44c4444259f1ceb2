"""An environment for each peer: `python -m benchmarks.peers`. What is there already stays."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.turns import PEERS, ROOT

# Beside our own environment: out of sight of git, and gone after `make clean`.
FOLDER = ROOT / ".venv" / "peers"
CLEANLAB = "cleanlab==2.9.0 pandas==2.3.3 scikit-learn==1.5.2 scipy==1.17.1 numpy==2.4.6"


def needs(name: str) -> list[str]:
    """What a peer needs: as in the first line of its oracle, so that both are the same."""
    if name == "cleanlab":
        return CLEANLAB.split()
    oracle = ROOT / "scripts" / "oracles" / f"{name}.py"
    found = re.match(r"# needs: (.*)\n", oracle.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{oracle.name} must begin with '# needs: PACKAGE==VERSION ...'.")
    return found[1].split()


def make(folder: Path) -> None:
    """The environments that are not there, or not whole."""
    for name in PEERS.values():
        place = folder / name
        done = place / "done"
        wanted = " ".join(needs(name))
        if done.exists() and done.read_text() == wanted:
            continue
        print(f"{name}: {wanted}", file=sys.stderr)
        venv.create(place, with_pip=True, clear=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", *needs(name)], check=True)
        done.write_text(wanted)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
