"""How long until it begins? Imports and commands, each once before it counts."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.turns import Comparison, Group, Row, Run, answer, command, row

TINY = "item,annotator,label\na,ann,yes\na,bob,no\nb,ann,no\n"
IMPORTS = {
    "python -c pass": "pass",
    "import numpy": "import numpy",
    "import slencodings": "import slencodings",
    "import slencodings.tables": "import slencodings.tables",
    "import slencodings.aggregate": "import slencodings.aggregate",
    "import typer": "import typer",
    "crowd-kit: import crowdkit.aggregation": "import crowdkit.aggregation",
    "CrowdTruth package: import crowdtruth": "import crowdtruth",
    "cleanlab: import cleanlab.multiannotator": "import cleanlab.multiannotator",
}
COMMANDS = {"sle --help": ["--help"], "sle encode, 3 rows": ["encode", "tiny.csv", "--quiet"]}
COMPARED = (
    Comparison("import slencodings", "import numpy"),
    Comparison("import slencodings.tables", "import numpy"),
    Comparison("import slencodings.aggregate", "import numpy"),
    Comparison("sle --help", "import typer", 2.5),
    Comparison("sle encode, 3 rows", "import typer"),
    Comparison("import slencodings.aggregate", "crowd-kit: import crowdkit.aggregation"),
    Comparison("import slencodings.aggregate", "CrowdTruth package: import crowdtruth"),
    Comparison("import slencodings.aggregate", "cleanlab: import cleanlab.multiannotator"),
)


def plan(full: bool) -> list[Group]:
    runs = tuple(Run(case) for case in (*IMPORTS, *COMMANDS))
    return [Group("start", "start", runs, 5 if full else 3)]


def measure(runs: list[Run], turns: list[int], folder: Path) -> list[Row]:
    (run,), (turn,) = runs, turns
    words = [sys.executable, "-c", IMPORTS.get(run.case, "")]
    with tempfile.TemporaryDirectory() as place:
        if run.case in COMMANDS:
            tiny = Path(place) / "tiny.csv"
            tiny.write_text(TINY)
            words = [str(Path(sys.executable).with_name("sle")), *COMMANDS[run.case]]
            words = [str(tiny) if word == tiny.name else word for word in words]
            words += ["-o", f"{place}/out.csv"] if "encode" in words else []
        command(*words)  # The first time files are read from the disk.
        seconds, megabytes = command(*words)
    return [row(run, turn, seconds, megabytes=megabytes)]


if __name__ == "__main__":
    answer(measure)
