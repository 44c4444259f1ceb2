"""The options of `sle train` and `sle evaluate`."""

from __future__ import annotations

from typing import Annotated

import typer

from slencodings.choices import Objective, Weighed

Features = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="What the model sees: .npz with `item` and `X`; or CSV, TSV, Parquet or JSONL with a "
        "column for the item and numbers in all others.",
    ),
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
Held = Annotated[float, typer.Option(min=0, max=0.99, help="Share of items held out to score.")]
WeighTargets = Annotated[
    Weighed,
    typer.Option(help="What annotations are worth in the targets: learned, or as stated."),
]
