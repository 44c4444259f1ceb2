"""Every closed set of words, once: what may be typed, passed and stored."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

# How opinions are fused.
Operator: TypeAlias = Literal["cumulative", "average", "weighted", "constraint"]
# What a learned crowd is asked: what the next person would say, or which label is true.
CrowdReading: TypeAlias = Literal["votes", "truth"]
# What a table or file of opinions gives of each item.
Value: TypeAlias = Literal["belief", "uncertainty", "probability", "base_rate", "evidence", "alpha"]
# A row per item; per item and label that was named; the same as additive pseudo-counts.
Form: TypeAlias = Literal["wide", "long", "evidence"]
# In files also a row per item with lists in the order of the labels, and a row per item and label
# that is possible, with its weight.
FileForm: TypeAlias = Literal["wide", "long", "lists", "weights"]

# Annotations without confidence, reliability or annotator; and where all must be comparable.
Missing: TypeAlias = Literal["error", "drop", "trust"]
Incomplete: TypeAlias = Literal["error", "drop"]
# What one annotator said several times of one item: all of it counts, or one of it, or its average.
Duplicates: TypeAlias = Literal["all", "average", "error", "first", "last"]

# How CSV is written: for programs; for Excel, where commas part cells; where semicolons do.
CsvStyle: TypeAlias = Literal["plain", "excel", "excel-semicolon"]
# What does the work of `sle encode`.
Engine: TypeAlias = Literal["duckdb", "spark"]
# Formats of tables, tools whose exports are read, and layouts that bear no mark of their own.
TableFormat: TypeAlias = Literal["csv", "tsv", "parquet", "jsonl", "json"]
Tool: TypeAlias = Literal[
    "label-studio",
    "argilla",
    "prodigy",
    "potato",
    "lewidi",
    "mturk",
    "toloka",
    "lists",
    "doccano",
    "google-forms",
    "inspect-ai",
    "langfuse",
    "phoenix",
    "judges",
]
Layout: TypeAlias = Literal["wide", "counts", "several"]
Format: TypeAlias = Literal[TableFormat, Tool, Layout]

# What a network minimises.
TrainingObjective: TypeAlias = Literal[
    "reverse_kl", "forward_kl", "cross_entropy", "soft_kl", "mtlsl", "votes"
]
# Which way a divergence is taken, and what is made of the losses of items.
Direction: TypeAlias = Literal["reverse", "forward"]
Reduction: TypeAlias = Literal["mean", "sum", "none"]
# What becomes of the learning rate.
Schedule: TypeAlias = Literal["constant", "cosine"]
# What annotations are worth in the targets of a network: learned from the crowd, or as stated.
WeighedBy: TypeAlias = Literal["learned", "stated"]
# What becomes of labels with equally many votes, and without drawing lots.
Ties: TypeAlias = Literal["first", "random", "soft"]
FixedTies: TypeAlias = Literal["soft", "first"]
# How near two answers are: the same or not, or as numbers.
Alignment: TypeAlias = Literal["accuracy", "neg_rmse"]
# What labels are: names, an order, numbers.
LabelScale: TypeAlias = Literal["nominal", "ordinal", "interval"]
# How far apart two labels are: all alike, or by the square of the steps between them.
KappaWeights: TypeAlias = Literal["none", "quadratic"]
# How far apart two sets of labels are.
SetDistance: TypeAlias = Literal["masi", "jaccard", "exact"]
# How common labels are: learned along with the truth, or all alike.
ClassPrior: TypeAlias = Literal["learned", "uniform"]
# How MACE learns: by variational Bayes or by expectation maximisation.
Inference: TypeAlias = Literal["vb", "em"]
# Where the weights of annotations are from: by reliability that came, learned, or all one count.
WeightsFrom: TypeAlias = Literal["given", "learned", "alike"]
# Published crowds whose truth is known.
TruthInference: TypeAlias = Literal["web", "trec", "sentiment", "adult", "fact_eval"]


def check_word(name: str, value: Any, choice: Any) -> None:
    """Refuse a word that is not among the choice, and list those that are."""
    if value not in get_args(choice):
        raise ValueError(f"`{name}` must be one of {', '.join(get_args(choice))}; {value!r} came.")
