"""Rows of benchmarks that nobody measured, and where the document of the kept ones is."""

from benchmarks import turns
from benchmarks.turns import Run
from experiments import tables as shared

DOCUMENT = shared.DOCS / "benchmarks.md"
SMALL = Run("fast", 10, 5, 10, 3)


def row(case="fast", turn=0, seconds: float | None = 1.0, **more):
    about = {"question": "encode", "versions": "v", "python": "3", "machine": "m", "cores": 2}
    about |= {"date": "2026-01-01 00:00", "loading": None, "megabytes": 1.0, "note": None}
    return (
        dict.fromkeys(turns.COLUMNS)
        | about
        | turns.row(SMALL, turn, seconds)
        | {
            "case": case,
            **more,
        }
    )
