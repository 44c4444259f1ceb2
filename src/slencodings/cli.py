"""The command line `sle`: each verb is a few library calls."""

from __future__ import annotations

import io
import signal
import sys
import traceback
from typing import Annotated, Any, NoReturn, cast

import typer

from slencodings.options import (
    TOOLS,
    Again,
    Bootstrap,
    Budget,
    Capacity,
    Column,
    Conflict,
    Duplicates,
    Engine,
    Epochs,
    FeatureItem,
    Features,
    Folds,
    Goal,
    Gold,
    Groups,
    Held,
    HowFused,
    IfDuplicate,
    IfMissing,
    In,
    InFormat,
    Into,
    LabelColumn,
    Labels,
    LearnTrust,
    Limit,
    Master,
    Memory,
    Methods,
    Missing,
    Model,
    Number,
    Objective,
    OnEngine,
    Operator,
    Out,
    Predictions,
    PriorWeight,
    Question,
    Quiet,
    SaveTrust,
    Scale,
    Seed,
    Smoothing,
    SortBy,
    Target,
    Text,
    Trust,
    Trusted,
    Values,
    Verbose,
    Version,
    WhatFor,
    WhatLoss,
    Wide,
    check_engine,
    check_output,
    check_trust,
    in_options,
    scale_of,
    words,
)
from slencodings.screen import notes, show
from slencodings.verbs import Found, Read, on_a_crowd

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Turn what annotators said, how sure they were and how far you trust them into "
    "Dirichlet training targets.",
    epilog="Exit codes: 0 done, 1 bad data, 2 wrong usage, 130 or 143 stopped by a signal. "
    "Nothing is half written.",
)


@app.callback()
def options(version: Version = False) -> None:
    """Options before the verb."""


@app.command()
def encode(
    source: In,
    target: Out = None,
    into: Into = None,
    again: Again = False,
    engine: OnEngine = Engine.duckdb,
    master: Master = None,
    memory: Memory = None,
    format: InFormat = None,
    question: Question = None,
    item: Column = None,
    annotator: Column = None,
    label: LabelColumn = None,
    confidence: Number = None,
    uncertainty: Number = None,
    reliability: Number = None,
    confidence_scale: Scale = None,
    labels: Labels = None,
    missing: IfMissing = Missing.error,
    duplicates: IfDuplicate = Duplicates.all,
    trust: Trust = "none",
    save_trust: SaveTrust = None,
    seed: Seed = None,
    smoothing: Smoothing = None,
    prior_weight: PriorWeight = 2.0,
    operator: HowFused = Operator.cumulative,
    wide: Wide = None,
    values: Values = "belief,uncertainty,probability",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Fuse files of annotations into a file of opinions, one per item.

    Columns are found by their usual names (item or task, annotator or worker, label or answer,
    confidence, reliability) and what was found is said. With --into, the annotations are added to
    evidence that is kept, and opinions are of all that is in it; it may itself be IN.
    """
    check_output(target, into, again)
    scale = scale_of(confidence_scale)
    check_trust(
        trust,
        scale,
        {"--reliability": reliability, "--smoothing": smoothing}
        | {"--operator": None if operator == Operator.cumulative else operator},
        {"--save-trust": save_trust, "--seed": seed},
    )
    tool = format if format in TOOLS else None
    alone = {"--into": into, "--memory": memory, "--question": question, "--format": tool}
    alone |= {"--save-trust": save_trust, "--seed": seed}
    check_engine(engine, master, alone | {"--trust": trust if trust == "learned" else None})
    with notes(quiet) as (tell, progress):
        # All that was learned is a detail of many lines.
        say = tell if verbose else lambda what, text: None if what == "detail" else tell(what, text)
        how: dict[str, Any] = {
            "columns": {
                "item": item,
                "annotator": annotator,
                "label": label,
                "confidence": confidence,
                "uncertainty": uncertainty,
                "reliability": reliability,
            },
            "confidence_scale": scale,
            "labels": words(labels),
            "trust": trust,
            "smoothing": smoothing,
            "prior_weight": prior_weight,
            "operator": operator.value,
            "wide": wide,
            "values": list(dict.fromkeys(words(values) or [])),
            "missing": missing.value,
            "duplicates": duplicates.value,
            "format": format.value if format else None,
            "say": say,
        }
        if engine == Engine.spark and target is not None:
            from slencodings import spark

            about = spark.encode(source, target, master=master, **how)
        else:
            from slencodings.files import encode_file

            one = {"save_trust": save_trust, "seed": seed or 0, "progress": progress}
            new = {"into": into, "again": again, "memory": memory, "question": question}
            about = encode_file(source, target, **new, **how, **one)
        for name, value in about.items() if verbose else ():
            if name != "trust":
                say("detail", f"{name} = {value}")


@app.command()
@on_a_crowd
def compare(
    read: Read,
    *,
    gold: Gold = None,
    method: Methods = None,
    folds: Folds = 5,
    bootstrap: Bootstrap = 1000,
    seed: Seed = None,
) -> Found:
    """Show which encoding fits this crowd, on votes that were held out.

    Voting, models of annotators and SLE each predict every annotation from the others on its item,
    with all that they learn taken from other items. With --gold, also how right they are.
    """
    from slencodings.comparison import compare as compared
    from slencodings.comparison.text import SPARE, columns, head, lessons

    told = read(gold)
    found = compared(
        told.annotations,
        told.stated,
        reliability=told.reliability,
        gold=told.truth,
        methods=method or None,
        folds=folds,
        bootstrap=bootstrap,
        seed=seed or 0,
        progress=lambda done, total, name: read.progress("comparing", done, total, "fits"),
    )
    for note in found.notes:
        read.say("note", note)

    def shown() -> None:
        typer.echo(head(found.about) + "\n")
        show(*columns(found.rows), SPARE)
        typer.echo("\n" + "\n".join(lessons(found.rows)))

    return Found(found.rows, found.about | {"notes": found.notes}, shown)


@app.command()
@on_a_crowd
def reliability(
    read: Read, *, sort: SortBy = None, groups: Groups = 20, seed: Seed = None
) -> Found:
    """Show whom to trust: a row for each annotator, with intervals.

    How often they agree with others, what models of annotators and learned trust make of them,
    whether they are as sure as they should be, and what they confuse.
    """
    from slencodings.annotators import describe_annotators

    told = read()
    roster = describe_annotators(
        told.annotations,
        told.stated,
        reliability=told.reliability,
        sort=sort,
        groups=groups,
        rng=seed or 0,
        progress=lambda done, total: read.progress("estimating", done, total, "fits"),
    )
    about = {"notes": roster.notes, "seed": seed or 0}
    return Found(roster.to_rows(), about, lambda: typer.echo(str(roster)))


@app.command()
@on_a_crowd
def triage(
    read: Read,
    *,
    budget: Budget = None,
    target: Target = 0.2,
    conflict: Conflict = 0.5,
    goal: WhatFor = Goal.label,
    capacity: Capacity = None,
    limit: Limit = 20,
    seed: Seed = None,
) -> Found:
    """Say which items to annotate next, how often and by whom, and where opinions conflict.

    Without a column of reliability, trust is learned from the crowd.
    """
    from slencodings.crowds import weigh
    from slencodings.triage import triage as sorted_out

    told = read()
    read.progress("learning", 0, None, "")
    opinion, trusted, doubt = weigh(told, seed=seed or 0, say=read.say)
    found = sorted_out(
        opinion,
        told.annotations,
        reliability=trusted,
        uncertainty=doubt,
        target=target,
        conflict=conflict,
        budget=budget,
        goal=cast("Any", goal.value),
        capacity=capacity,
    )
    about = {"target": target, "conflict": conflict, "budget": budget, "goal": goal.value}

    def shown() -> None:
        typer.echo(found.summary() + "\n")
        show(*found.table(limit), ("uncertainty after", "by whom"))

    return Found(found.to_rows(), about | {"seed": seed or 0}, shown)


@app.command()
@on_a_crowd
def train(
    read: Read,
    *,
    features: Features,
    model: Model,
    feature_item: FeatureItem = None,
    text: Text = None,
    predictions: Predictions = None,
    gold: Gold = None,
    trust: LearnTrust = Trusted.none,
    objective: WhatLoss = Objective.reverse_kl,
    epochs: Epochs = 100,
    test: Held = 0.2,
    seed: Seed = None,
) -> Found:
    """Train a model on the opinions of a crowd, and score it on items it has not seen."""
    from slencodings import models
    from slencodings.features import read_features
    from slencodings.writers import check_place, check_rows_target, write_rows

    check_place(model, read.source, features)
    if predictions is not None:
        check_rows_target(predictions, read.source)
    told = read(gold)
    a = told.annotations
    X, there = read_features(features, a.items.tolist(), item=feature_item, text=text)
    if not there.all():
        read.say("note", f"{int((~there).sum()):,} items have no features and are left out")
    given = "learned" if trust == Trusted.learned else told.reliability
    to_opinions = objective in (Objective.reverse_kl, Objective.forward_kl)
    if told.reliability is not None and not to_opinions:
        read.say("note", f"{objective.value} learns from plain votes; reliability is not used")
        given = None
    trained = models.train(
        a, X, there, test=test, gold=told.truth, seed=seed or 0,
        objective=objective.value, max_epochs=epochs, reliability=given,
        verbose=sys.stderr.isatty(),
    )  # fmt: skip
    trained.model.save(model)
    read.say("wrote", f"{model}: {objective.value}, {len(trained.model.history_)} epochs")
    if predictions is not None:
        names, unseen = a.items[there].tolist(), trained.unseen[there]
        write_rows(models.opinion_rows(trained.model, names, X[there], unseen), predictions, {})
        read.say("wrote", f"{predictions}: {len(names):,} opinions")
    about = {"model": model, "objective": objective.value, "seed": seed or 0, "test": test}
    if not trained.unseen.any():
        return Found([about], about, lambda: None)
    row = models.score(trained.model, a, X, trained.unseen, gold=told.truth)
    return Found([about | row], about, lambda: _show_row(row))


@app.command()
@on_a_crowd
def evaluate(
    read: Read,
    *,
    features: Features,
    model: Model,
    feature_item: FeatureItem = None,
    text: Text = None,
    predictions: Predictions = None,
    gold: Gold = None,
) -> Found:
    """Score a trained model's opinions against a crowd it has not seen, and against gold."""
    from slencodings import models
    from slencodings.features import read_features
    from slencodings.writers import check_rows_target, write_rows

    if predictions is not None:
        check_rows_target(predictions, read.source)
    told = read(gold)
    a = told.annotations
    X, there = read_features(features, a.items.tolist(), item=feature_item, text=text)
    trained = models.load(model)
    row = models.score(trained, a, X, there, gold=told.truth)
    if predictions is not None:
        write_rows(models.opinion_rows(trained, a.items[there].tolist(), X[there]), predictions, {})
    about = {"model": model}
    return Found([about | row], about, lambda: _show_row(row))


def _show_row(row: dict[str, Any]) -> None:
    """A row of figures as two columns; what is not defined is left out."""
    for name, value in row.items():
        if value is not None:
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
            typer.echo(f"{name:<32} {shown:>10}")


@app.command()
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated crowd.")] = 0,
    save: Annotated[
        str | None,
        typer.Option(metavar="FILE.csv", help="Write the crowd, to try `sle encode` on it."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Tell the whole story on real handwritten digits and simulated annotators."""
    from slencodings.demo import tell

    tell(seed, save)


def main() -> NoReturn:
    """Run a command; bad input ends in one message and exit code 1, a stop in 130 or 143."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where a terminal knows ASCII only, help and labels are shown as far as they can be.
        sys.stdout.reconfigure(errors="replace")
    try:
        # Not `app()`, which turns a stop or a closed pipe into codes of its own.
        command = typer.main.get_command(app)
        with command.make_context("sle", sys.argv[1:]) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except KeyboardInterrupt:
        typer.echo("stopped; no file was changed.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever reads our output has enough of it. What is left is not tried again at exit.
        sys.stdout = io.StringIO()
        sys.exit(141)
    except Exception as error:
        _fail(error)
    sys.exit(0)


def _fail(error: Exception) -> NoReturn:
    if hasattr(error, "exit_code") and hasattr(error, "show"):
        usage: Any = error  # a usage error, which knows how to say itself
        usage.show()
        sys.exit(usage.exit_code)
    if {"-v", "--verbose"} & set(sys.argv):
        traceback.print_exception(error)
    known = isinstance(error, ValueError | OSError | ImportError | MemoryError)
    text = in_options(str(error)) if known else f"{type(error).__name__}: {error}"
    typer.echo(f"error: {text}", err=True)
    if not known:
        typer.echo("This should not happen; -v shows where it came from.", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
