"""The options of `sle encode` and `sle forget`."""

from __future__ import annotations

from typing import Annotated

import typer

from slencodings.choices import CrowdReading, Engine, FileForm, Missing, Operator
from slencodings.cli.command import VALUES, known_values, positive

Out = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Where to write: .parquet, .csv, .tsv, .jsonl or .xlsx by name; - is CSV on standard "
        "output.",
    ),
]
Into = Annotated[
    str | None,
    typer.Option(
        metavar="STORE.parquet",
        help="Add the annotations to the evidence kept there, or begin it; what was added before "
        "is not read again. Smoothing, scale, labels and crowd stay as begun.",
    ),
]
FromTable = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAME|SELECT",
        help="The table or view of a database that has the annotations, or a query for them.",
    ),
]
IntoTable = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Write opinions to this table of the same database."),
]
Keep = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN,...", help="Write these too, as they are in the first row of each item."
    ),
]
Sort = Annotated[
    bool | None,
    typer.Option(
        "--sort/--no-sort",
        help="Write items in order, or as they come; if not said, in order up to a million "
        "annotations.",
    ),
]
PartitionBy = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN,...",
        help="Write OUT as a folder of parts by the values of these, kept as --keep does: "
        "OUT/day=1/part-0.parquet.",
    ),
]
OnEngine = Annotated[
    Engine, typer.Option("--engine", help="What does the work; spark writes OUT as a folder.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="2GB",
        help="About as much memory as may be used; what does not fit goes to disk, into TMPDIR."
        "  [default: most of what there is]",
    ),
]
Master = Annotated[str | None, typer.Option(metavar="URL", help="Of a Spark cluster, or local[*].")]
Patience = Annotated[
    float | None,
    typer.Option(min=0, help="Seconds to wait for workers of Spark.  [default: 120]"),
]
Again = Annotated[bool, typer.Option("--again", help="Add even what was added before.")]
ByAnnotator = Annotated[
    bool,
    typer.Option(
        "--by-annotator",
        help="Begin the store with sums of each annotator, who can then be forgotten: sle forget.",
    ),
]
StoreFile = Annotated[
    str, typer.Argument(metavar="STORE.parquet", help="Evidence kept with --by-annotator.")
]
Forgotten = Annotated[
    list[str],
    typer.Option("--annotator", metavar="NAME", help="Who is forgotten; may be repeated."),
]
Scale = Annotated[
    str | None,
    typer.Option(
        metavar="LOW-HIGH",
        help="Ends of the confidence scale, such as 1-5; or `calibrated`: learned from the crowd."
        "  [default: 0-1]",
    ),
]
ScoresOut = Annotated[
    str | None,
    typer.Option(
        "--scores", metavar="FILE", help="With --pairwise: write the score of each option, too."
    ),
]
IfMissing = Annotated[
    Missing, typer.Option(help="Annotations without confidence, reliability or annotator.")
]
Weigh = Annotated[
    str | None,
    typer.Option(
        metavar="learned|stated|FILE",
        help="What annotations are worth: `learned` from the crowd itself, `stated` by their "
        "confidence and reliability as they are, or a FILE that --save-crowd wrote.  [default: "
        "learned; stated in a new store]",
    ),
]
SaveCrowd = Annotated[
    str | None,
    typer.Option(metavar="FILE.json", help="Keep what was learned, for --weigh FILE on new rows."),
]
Asked = Annotated[
    CrowdReading,
    typer.Option(
        "--reading",
        help="What probabilities mean, where they are learned: that the next person says it "
        "(votes), or that it is true (truth).",
    ),
]
Smoothing = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Doubt added to each annotation weighed as stated; at 0 one certain annotation "
        "silences all others.  [default: 0.01]",
    ),
]
PriorWeight = Annotated[
    float | None,
    typer.Option(
        callback=positive,
        help="Pseudo-counts of a vacuous opinion; matters for evidence and alpha.  [default: "
        "learned, or 2]",
    ),
]
HowFused = Annotated[Operator, typer.Option(help="How opinions are fused.")]
InForm = Annotated[
    FileForm | None,
    typer.Option(
        help="A row per item (wide), per item and label (long), per item with lists in the order "
        "of the labels, or per item and possible label with its weight.  [default: wide to 20 "
        "labels, then long]"
    ),
]
Values = Annotated[
    str,
    typer.Option(metavar="V,...", callback=known_values, help=f"Any of {', '.join(VALUES)}."),
]
MoreFeatures = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What items look like: networks help.",
    ),
]
FeatureText = Annotated[
    str | None,
    typer.Option(
        "--text", metavar="COLUMN", help="With --features, a column of text to learn from."
    ),
]
