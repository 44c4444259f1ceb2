"""Help that fits a screen: options in groups, and those that few need by --help-all."""

from __future__ import annotations

import inspect
from typing import Any

from typer.core import TyperCommand

from slencodings.cli.command import reading

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
