"""`sle train` and `sle evaluate`: networks on the opinions of a crowd."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from slencodings.cli import options as o
from slencodings.cli.crowd import Found, Read, on_a_crowd

if TYPE_CHECKING:
    from slencodings.evaluation.scores import Scores


@on_a_crowd
def train(
    read: Read,
    *,
    features: o.Features,
    model: o.Model,
    feature_item: o.FeatureItem = None,
    text: o.Text = None,
    predictions: o.Predictions = None,
    gold: o.Gold = None,
    weigh: o.WeighTargets = "learned",
    objective: o.WhatLoss = "reverse_kl",
    epochs: o.Epochs = 100,
    test: o.Held = 0.2,
    seed: o.Seed = None,
) -> Found:
    """Train a model on the opinions of a crowd, and score it on items it has not seen."""
    from slencodings.cli import models
    from slencodings.files.features import read_features
    from slencodings.files.write import check_place, check_rows_target, write_rows

    check_place(model, read.source, features)
    if predictions is not None:
        check_rows_target(predictions, read.source)
    crowd = read(gold)
    a = crowd.annotations
    X, there = read_features(features, a.items.tolist(), feature_item=feature_item, text=text)
    if not there.all():
        read.say("note", f"{int((~there).sum()):,} items have no features and are left out")
    to_opinions = objective in ("reverse_kl", "forward_kl")
    # As stated, the reliability of each annotation counts.
    given = "learned" if weigh == "learned" and to_opinions else None
    if a.reliability is not None and not to_opinions:
        read.say("note", f"{objective} learns from plain votes; reliability is not used")
    elif a.reliability is not None and given:
        read.say(
            "note",
            "reliability is not used: what annotators are worth is learned; --weigh stated uses it",
        )
    trained = models.train(
        a, X, there, test=test, gold=crowd.truth, seed=seed or 0,
        objective=objective, max_epochs=epochs, reliability=given,
        verbose=sys.stderr.isatty(),
    )  # fmt: skip
    trained.model.save(model)
    read.say("wrote", f"{model}: {objective}, {len(trained.model.history_)} epochs")
    if predictions is not None:
        names, unseen = a.items[there].tolist(), trained.unseen[there]
        write_rows(models.opinion_rows(trained.model, names, X[there], unseen), predictions, {})
        read.say("wrote", f"{predictions}: {len(names):,} opinions")
    about = {"model": model, "objective": objective, "seed": seed or 0, "test": test}
    if not trained.unseen.any():
        return Found([about], about, lambda: None)
    row = models.score(trained.model, a, X, trained.unseen, gold=crowd.truth)
    return Found([about | row], about, lambda: _show_row(row))


@on_a_crowd
def evaluate(
    read: Read,
    *,
    features: o.Features,
    model: o.Model,
    feature_item: o.FeatureItem = None,
    text: o.Text = None,
    predictions: o.Predictions = None,
    gold: o.Gold = None,
) -> Found:
    """Score a trained model's opinions against a crowd it has not seen, and against gold."""
    from slencodings.cli import models
    from slencodings.files.features import read_features
    from slencodings.files.write import check_rows_target, write_rows

    if predictions is not None:
        check_rows_target(predictions, read.source)
    crowd = read(gold)
    a = crowd.annotations
    X, there = read_features(features, a.items.tolist(), feature_item=feature_item, text=text)
    trained = models.load(model)
    row = models.score(trained, a, X, there, gold=crowd.truth)
    if predictions is not None:
        write_rows(models.opinion_rows(trained, a.items[there].tolist(), X[there]), predictions, {})
    about = {"model": model}
    return Found([about | row], about, lambda: _show_row(row))


def _show_row(row: Scores) -> None:
    """A row of figures as two columns; what is not defined is left out."""
    for name, value in row.items():
        if value is not None:
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
            typer.echo(f"{name:<32} {shown:>10}")
