"""The law of imports: the rooms of the house, storey by storey, and whom each may ask.

`python tests/house.py` writes this table into CONTRIBUTING.md; `test_package.py` keeps both true.
"""

from pathlib import Path
from typing import NamedTuple

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
BEGIN, END = "<!-- house -->\n", "<!-- end of house -->\n"


class Room(NamedTuple):
    """A module or folder of the package, what it is, and the rooms that it imports."""

    storey: str
    name: str
    what: str
    imports: str


HOUSE = [
    Room(*line)
    for line in [
        ("arrays", "choices.py", "every closed set of words", ""),
        ("arrays", "opinion.py", "`Opinion` and what is done to one", ""),
        ("arrays", "fusion.py", "many opinions to one", "opinion"),
        ("arrays", "divergence.py", "how far apart two Dirichlets are", ""),
        ("arrays", "annotations.py", "`Annotations`: who said what of which item", "opinion"),
        ("arrays", "metrics.py", "scores", "annotations opinion"),
        (
            "arrays",
            "kinds/",
            "labels in an order, pairs, several labels at once",
            "annotations choices metrics opinion",
        ),
        ("arrays", "confidence.py", "stated confidence to uncertainty", "annotations opinion"),
        ("arrays", "progress.py", "notes and bars for long work", ""),
        (
            "crowds",
            "tables/",
            "tables of annotations in any engine, to opinions and to arrays",
            "annotations choices confidence kinds opinion",
        ),
        (
            "crowds",
            "aggregate/",
            "a crowd to one answer per item, one file a method",
            "annotations choices kinds opinion",
        ),
        (
            "crowds",
            "trust/",
            "what annotations are worth, learned from the crowd",
            "aggregate annotations choices opinion tables",
        ),
        (
            "crowds",
            "annotators/",
            "each annotator of a crowd, with intervals",
            "aggregate annotations kinds opinion trust",
        ),
        (
            "crowds",
            "triage/",
            "which items to annotate next, by whom, and what that mends",
            "aggregate annotations annotators kinds opinion trust",
        ),
        (
            "crowds",
            "evaluation/",
            "predictions scored, methods compared on held-out votes",
            "aggregate annotations confidence divergence kinds metrics opinion trust",
        ),
        (
            "crowds",
            "panel/",
            "people and models: are the models worth having, and which",
            "aggregate annotations choices evaluation opinion trust",
        ),
        ("crowds", "plot/", "opinions and crowds as figures", "fusion metrics opinion"),
        (
            "people",
            "files/",
            "files, folders, addresses and exports, in and out, all or nothing",
            "aggregate annotations choices confidence kinds opinion progress tables trust",
        ),
        (
            "people",
            "torch/",
            "networks that predict opinions, saved and shown at work",
            "aggregate annotations choices divergence files fusion metrics opinion progress tables "
            "trust",
        ),
        (
            "people",
            "datasets/",
            "published crowds, one loader a file",
            "annotations choices files opinion progress",
        ),
        (
            "people",
            "report/",
            "a crowd as one page to look at",
            "aggregate annotations annotators choices evaluation files kinds metrics opinion panel "
            "triage trust",
        ),
        (
            "people",
            "cli/",
            "the command `sle`, one file a kind of verb",
            "aggregate annotations annotators choices datasets evaluation files opinion "
            "panel progress report tables torch triage trust",
        ),
    ]
]
STOREYS = ("arrays", "crowds", "people")
MAY_IMPORT = {room.name.rstrip("/").removesuffix(".py"): {*room.imports.split()} for room in HOUSE}


def as_markdown() -> str:
    """The table for CONTRIBUTING.md."""
    lines = ["| storey | room | is | imports |", "|---|---|---|---|"]
    lines += [
        f"| {storey} | `{name}` | {what} | {', '.join(imports.split())} |"
        for storey, name, what, imports in HOUSE
    ]
    return "\n".join(lines) + "\n"


def between_marks(text: str) -> str:
    """What stands between the marks of a document."""
    return text.split(BEGIN)[1].split(END)[0]


if __name__ == "__main__":
    text = CONTRIBUTING.read_text()
    # By the marks, as what is between them may be nothing.
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    CONTRIBUTING.write_text(before + BEGIN + as_markdown() + END + after)
