"""The options of the command line: what may be typed, and what is said of it."""

from __future__ import annotations

import ast
import csv
import re
import shlex
from typing import Annotated, Any, cast

import typer

from slencodings.choices import (
    Duplicates,
    Engine,
    FileForm,
    Format,
    Goal,
    Incomplete,
    Missing,
    Objective,
    Operator,
    TableFormat,
    Tool,
    Trusted,
    Value,
)
from slencodings.choices import words as words_of

# What is read without a reader of exports, on one machine and on a cluster.
TABLES = words_of(TableFormat)


def _show_version(wanted: bool) -> None:
    if wanted:
        from slencodings import __version__

        typer.echo(f"slencodings {__version__}")
        raise typer.Exit


def _positive(value: float) -> float:
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"a positive number is needed; {value:g} came. 2 is usual.")
    return value


def scale_of(text: str | None, *, learned: bool = True) -> Any:
    """The ends of a confidence scale, or `calibrated` where that can be learned."""
    if text is None or (text == "calibrated" and learned):
        return text
    number = r"(-?\d+(?:\.\d+)?)"
    ends = re.fullmatch(rf"{number}(?:-|:|,|\.\.){number}", text)
    if not ends or float(ends[1]) == float(ends[2]):
        raise typer.BadParameter(
            f"two different ends such as 1-5 or 0-100, or `calibrated`, are needed; {text!r} came.",
            param_hint="--confidence-scale",
        )
    return float(ends[1]), float(ends[2])


def check_trust(
    trust: str, scale: Any, known_better: dict[str, Any], learning: dict[str, Any]
) -> None:
    """Refuse what trust makes meaningless, and options of learning where nothing is learned."""
    for option, value in learning.items():
        if value is not None and trust != "learned":
            raise typer.BadParameter(
                f"it is for `--trust learned`; `--trust {trust}` came.", param_hint=option
            )
    if trust == "none":
        return
    for option, value in known_better.items():
        if value is not None:
            raise typer.BadParameter(
                f"trust knows this better; `{option} {value}` came with `--trust {trust}`. "
                "Leave one of them out.",
                param_hint=option,
            )
    if scale is not None and (scale == "calibrated" or trust == "learned"):
        raise typer.BadParameter(
            f"trust learns what confidence is worth, on any scale; it came with `--trust {trust}`. "
            "Leave one of them out.",
            param_hint="--confidence-scale",
        )


def check_output(target: str | None, into: str | None, again: bool) -> None:
    """Refuse to read a file for nothing."""
    if target is None and into is None:
        raise typer.BadParameter(
            "a file for opinions is needed, or --into STORE.parquet to keep evidence; "
            "neither came.",
            param_hint="--output",
        )
    if again and into is None:
        raise typer.BadParameter("it is for `--into STORE.parquet`.", param_hint="--again")


def check_engine(engine: Engine, spark: dict[str, Any], alone: dict[str, Any]) -> None:
    """Refuse a cluster without Spark, and with Spark what one machine alone can do."""
    for option, value in spark.items() if engine != "spark" else ():
        if value is not None:
            raise typer.BadParameter("it is for `--engine spark`.", param_hint=option)
    for option, value in alone.items() if engine == "spark" else ():
        if value:
            raise typer.BadParameter(
                f"it is not for `--engine spark`; `{option} {value}` came. Leave one of them out.",
                param_hint=option,
            )


def words(text: str | None) -> list[str] | None:
    """Words between commas; one that has a comma itself stands in double quotes."""
    return next(csv.reader([text], skipinitialspace=True)) if text else None


def _known_values(text: str) -> str:
    known = words_of(Value)
    wrong = [word for word in words(text) or [""] if word not in known]
    if wrong:
        raise typer.BadParameter(f"some of {', '.join(known)} are needed; {wrong[0]!r} came.")
    return text


# What a message may put behind a parameter: a word, a list, two ends, a number, or just `...`.
_GIVEN = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|\([^)]*\)|True|-?\d+(?:\.\d+)?|\.\.\."""


def in_options(message: str, command: Any) -> str:
    """A library message with the parameters that a command has spelled as its options.

    `missing` becomes --missing, missing='drop' --missing drop, labels=['a', 'b'] --labels a,b,
    confidence_scale=(1, 5) --confidence-scale 1-5, again=True --again, and labels=[...] shows what
    the help says of it, --labels A,B,...
    """
    options = {p.name: p for p in command.params if p.param_type_name == "option"}
    names = "|".join(options)

    def spelled(found: re.Match[str]) -> str:
        option = options[found[1]]
        name = max(option.opts, key=len)
        return f"{name} {_typed(ast.literal_eval(found[2]), option)}".rstrip() if found[2] else name

    message = re.sub(rf"`({names})`()", spelled, message)
    return re.sub(rf"\b({names})=({_GIVEN})", spelled, message)


def _typed(value: Any, option: Any) -> str:
    """A value of Python as it is typed after an option."""
    if value is True:
        return ""
    if value in (..., [...]):
        return option.metavar
    if isinstance(value, tuple):
        return "-".join(f"{end:g}" for end in cast("tuple[float, ...]", value))
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    return shlex.quote(",".join("..." if word is ... else str(word) for word in listed))


# The options in the order of the help: files, columns, what they mean, opinions, how to run.
In = Annotated[
    list[str],
    typer.Argument(
        metavar="IN",
        help="CSV, TSV, Parquet or JSONL, also gzipped, or what an annotation tool exported; "
        "several of a kind, a folder of them (day=1/ and the like become columns), a "
        "'pattern/*.parquet', an address such as s3://...; "
        "- is standard input.",
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Where to write: .parquet, .csv, .tsv or .jsonl by name; - is CSV on standard output.",
    ),
]
Into = Annotated[
    str | None,
    typer.Option(
        metavar="STORE.parquet",
        help="Add the annotations to the evidence kept there, or begin it; what was added before "
        "is not read again. Smoothing, confidence scale, labels and trust stay as it was begun.",
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
RowsOut = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Write all rows and columns: .csv, .tsv, .json or .jsonl by name; - is CSV on "
        "standard output.  [default: a table to look at]",
    ),
]
InFormat = Annotated[
    Format | None,
    typer.Option(
        metavar="NAME",
        help=f"Format of IN, if its name and content do not tell: {', '.join(TABLES)}; or the tool "
        f"that exported it: {', '.join(words_of(Tool))}; or how it is laid out: wide (a column for "
        "each annotator), counts (a column for each label).",
    ),
]
Question = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which question of an annotation tool's export."),
]

Column = Annotated[str | None, typer.Option(metavar="COLUMN", help="Found by name if left out.")]
LabelColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Or K columns of probabilities, with commas."),
]
Number = Annotated[str | None, typer.Option(metavar="COLUMN", help="Or one number for all.")]

Scale = Annotated[
    str | None,
    typer.Option(
        metavar="LOW-HIGH",
        help="Ends of the confidence scale, such as 1-5; or `calibrated`: learned from the crowd."
        "  [default: 0-1]",
    ),
]
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
IfMissing = Annotated[
    Missing, typer.Option(help="Annotations without confidence, reliability or annotator.")
]
IfIncomplete = Annotated[
    Incomplete, typer.Option(help="Annotations without confidence, reliability or annotator.")
]
IfDuplicate = Annotated[Duplicates, typer.Option(help="What one annotator said twice of one item.")]

Trust = Annotated[
    str,
    typer.Option(
        metavar="none|learned|FILE",
        help="Whom to trust and what confidence and votes are worth: `learned` from the crowd, "
        "recommended where annotators are known; or a FILE that --save-trust wrote.",
    ),
]
SaveTrust = Annotated[
    str | None,
    typer.Option(metavar="FILE.json", help="Keep what was learned, for --trust FILE on new rows."),
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed of what is held out in learning.  [default: 0]")
]
Smoothing = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Doubt added to each annotation; at 0 one certain annotation silences all others."
        "  [default: 0.01]",
    ),
]
PriorWeight = Annotated[
    float,
    typer.Option(
        callback=_positive,
        help="Pseudo-counts of a vacuous opinion; matters for evidence and alpha.",
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
    typer.Option(
        metavar="V,...", callback=_known_values, help=f"Any of {', '.join(words_of(Value))}."
    ),
]

Gold = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="True labels: a column; K columns of probabilities with commas; or a FILE with item "
        "and label.",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method", metavar="NAME", help="Only this one; may be repeated.  [default: all that fit]"
    ),
]
Folds = Annotated[int, typer.Option(min=2, help="Parts into which items are dealt.")]
Bootstrap = Annotated[int, typer.Option(min=0, help="Resamples of items, for intervals.")]
SortBy = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Order of the rows.  [default: learned reliability]"),
]
Groups = Annotated[
    int, typer.Option(min=0, help="Parts of the items left out in turn, for intervals; 0: none.")
]
Budget = Annotated[
    int | None,
    typer.Option(min=0, help="Annotations to give away.  [default: what the target needs]"),
]
Target = Annotated[float, typer.Option(help="Uncertainty to reach, above 0.")]
Conflict = Annotated[float, typer.Option(help="Dissonance to bear, from 0 to 1.")]
WhatFor = Annotated[Goal, typer.Option(help="What annotations should improve.")]
Capacity = Annotated[
    int | None,
    typer.Option(min=0, help="Annotations that each annotator can give.  [default: spread]"),
]
Limit = Annotated[int, typer.Option(min=1, help="Rows of the table to look at.")]

Features = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="What the model sees: .npz with `item` and `X`; or CSV, TSV, Parquet or JSONL with a "
        "column for the item and numbers in all others.",
    ),
]
FeatureItem = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Item column of the features.")
]
Text = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="A column of text to learn from, not numbers.")
]
Model = Annotated[str, typer.Option(metavar="FILE", help="The trained model, .safetensors.")]
Predictions = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write the model's opinion of each item, as .csv or .json."),
]
WhatLoss = Annotated[Objective, typer.Option(help="What to minimise.")]
Epochs = Annotated[int, typer.Option(min=1, help="Passes over the items.")]
Held = Annotated[float, typer.Option(min=0, max=0.99, help="Share of items held out to score.")]
LearnTrust = Annotated[
    Trusted, typer.Option(help="Whom to trust in the targets: all alike, or learned.")
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say all details; show where an error came from.")
]
Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
]

PageOut = Annotated[
    str, typer.Option("--output", "-o", metavar="PAGE.html", help="Where to write the page.")
]
CrowdSeed = Annotated[int, typer.Option(min=0, help="Seed of the simulated crowd.")]
CrowdOut = Annotated[
    str | None,
    typer.Option(metavar="FILE.csv", help="Write the crowd, to try `sle encode` on it."),
]
DemoPage = Annotated[str, typer.Option(metavar="PAGE.html", help="Where to write its report.")]
