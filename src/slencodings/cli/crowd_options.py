"""The options of verbs that look at a whole crowd, and of the demo."""

from __future__ import annotations

from typing import Annotated

import typer

from slencodings.choices import Alignment

Scored = Annotated[
    str | None,
    typer.Option(
        metavar="WHO",
        help="Whose votes are predicted; the others only help. Annotators with commas, also 'gpt*';"
        " or COLUMN=VALUE.  [default: everybody's]",
    ),
]
Folds = Annotated[int, typer.Option(min=2, help="Parts into which items are dealt.")]
Bootstrap = Annotated[int, typer.Option(min=0, help="Resamples of items, for intervals.")]
MaxAnnotations = Annotated[
    int, typer.Option(min=1, help="Of more, about so many are compared on, by lot.")
]
Costs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAME=PRICE,...",
        help="What an annotation of each costs; a FILE has columns annotator and cost.",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method", metavar="NAME", help="Only this one; may be repeated.  [default: all that fit]"
    ),
]
SortBy = Annotated[
    str,
    typer.Option(metavar="COLUMN", help="Order of the rows: the worst verdict, or most of COLUMN."),
]
AllEstimates = Annotated[
    bool,
    typer.Option("--all", help="Also kappa, Dawid-Skene and MACE, with intervals from refits."),
]
Groups = Annotated[
    int, typer.Option(min=0, help="Parts of the items left out in turn by --all; 0: no refits.")
]
Group = Annotated[
    str,
    typer.Option(
        metavar="COLUMN", help="Which group an annotator is in, the same in all of their rows."
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="When annotations were made: dates, times or numbers; says whose answers got worse.",
    ),
]
Budget = Annotated[
    float, typer.Option(help="Annotations to give away; with --costs what they may cost.")
]
Capacity = Annotated[
    int | None,
    typer.Option(min=0, help="Annotations that each annotator can give.  [default: spread evenly]"),
]
LeastVotes = Annotated[int, typer.Option(help="Annotations that an item needs to be settled.")]
LeastProbability = Annotated[
    float, typer.Option(help="How likely its label must be true for an item to be settled.")
]
LeastConflict = Annotated[
    float, typer.Option(help="Conflict to bear, from 0 (all say the same) to 1.")
]
Limit = Annotated[int, typer.Option(min=1, help="Rows of the table to look at.")]
ItemText = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The text of the items, to read on the page.")
]
ItemFields = Annotated[
    list[str] | None,
    typer.Option(
        "--show",
        metavar="COLUMN",
        help="What else to show of the items, pictures by their addresses; may be repeated.",
    ),
]
PageTime = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="When annotations were made, for trends; found by name if left out."
    ),
]
PageOut = Annotated[
    str, typer.Option("--output", "-o", metavar="PAGE.html", help="Where to write the page.")
]
People = Annotated[
    str | None,
    typer.Option(
        "--people",
        metavar="WHO",
        help="Who is a person: annotators with commas, also 'p*'; or COLUMN=VALUE.",
    ),
]
Models = Annotated[
    str | None,
    typer.Option(
        metavar="WHO", help="Or who is a model: annotators with commas, also 'gpt*'; COLUMN=VALUE."
    ),
]
PanelTargets = Annotated[
    str | None,
    typer.Option(
        metavar="OUT",
        help="Write what people would say of each item, with models as far as they help and by "
        "people alone: .csv, .tsv, .json, .jsonl or .xlsx.",
    ),
]
Sources = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN,...",
        help="More columns of how sure models were, in [0, 1], to hold against what people say.",
    ),
]
HowNear = Annotated[
    Alignment,
    typer.Option(help="In the alternative annotator test: the same label, or near as numbers."),
]
Epsilon = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="In the same test, what people must be better by for their price: 0.2 for experts, "
        "0.15 for skilled, 0.1 for a crowd.",
    ),
]
CrowdSeed = Annotated[int, typer.Option(min=0, help="Seed of the simulated crowd.")]
CrowdOut = Annotated[
    str | None,
    typer.Option(metavar="FILE.csv", help="Write the crowd, to try `sle encode` on it."),
]
DemoPage = Annotated[str, typer.Option(metavar="PAGE.html", help="Where to write its report.")]
