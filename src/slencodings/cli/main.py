"""The command line `sle`: each verb is a few library calls."""

from __future__ import annotations

import io
import shlex
import signal
import sys
import traceback
from typing import Any, NoReturn

import typer

from slencodings.cli import options as o
from slencodings.cli.crowd import Found, Read, on_a_crowd
from slencodings.cli.encode import encode
from slencodings.cli.terminal import show
from slencodings.progress import notes

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
def options(version: o.Version = False) -> None:
    """Options before the verb."""


app.command()(encode)


@app.command()
@on_a_crowd
def compare(
    read: Read,
    *,
    gold: o.Gold = None,
    methods: o.Methods = None,
    folds: o.Folds = 5,
    bootstrap: o.Bootstrap = 1000,
    seed: o.Seed = None,
) -> Found:
    """Show which encoding fits this crowd, on votes that were held out.

    Voting, models of annotators and SLE each predict every annotation from the others on its item,
    with all that they learn taken from other items. With --gold, also how right they are.
    """
    from slencodings.evaluation import compare as compared
    from slencodings.evaluation.text import SPARE, columns, head, lessons

    told = read(gold)
    found = compared(
        told.annotations,
        gold=told.truth,
        methods=methods or None,
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
    read: Read, *, sort: o.SortBy = None, groups: o.Groups = 20, seed: o.Seed = None
) -> Found:
    """Show whom to trust: a row for each annotator, with intervals.

    How often they agree with others, what models of annotators and learned trust make of them,
    whether they are as sure as they should be, and what they confuse.
    """
    from slencodings.annotators import describe_annotators

    told = read()
    roster = describe_annotators(
        told.annotations,
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
    budget: o.Budget = None,
    target: o.Target = 0.2,
    conflict: o.Conflict = 0.5,
    goal: o.WhatFor = "label",
    capacity: o.Capacity = None,
    limit: o.Limit = 20,
    seed: o.Seed = None,
) -> Found:
    """Say which items to annotate next, how often and by whom, and where opinions conflict.

    Without a column of reliability, trust is learned from the crowd.
    """
    from slencodings.triage import triage as sorted_out
    from slencodings.trust.apply import weigh

    annotations = read().annotations
    weighed = weigh(
        annotations,
        seed=seed or 0,
        progress=lambda done, total: read.progress("learning", done, total, ""),
    )
    if weighed.trust is not None:
        read.say("learned", f"trust: {weighed.trust.gain()}")
    elif weighed.source == "alike":
        read.say("note", "no item has two annotations to learn trust from; all are trusted alike")
    found = sorted_out(
        weighed.opinion,
        annotations,
        reliability=weighed.reliability,
        uncertainty=weighed.uncertainty,
        target=target,
        conflict=conflict,
        budget=budget,
        goal=goal,
        capacity=capacity,
    )
    about = {"target": target, "conflict": conflict, "budget": budget, "goal": goal}

    def shown() -> None:
        typer.echo(found.summary() + "\n")
        show(*found.table(limit), ("uncertainty after", "by whom"))

    return Found(found.to_rows(), about | {"seed": seed or 0}, shown)


@app.command()
@on_a_crowd
def report(
    read: Read,
    *,
    output: o.PageOut,
    target: o.Target = 0.2,
    conflict: o.Conflict = 0.5,
    seed: o.Seed = None,
) -> Found:
    """Make one page to look at: items, annotators, labels, and what to do next.

    It is one file that opens from disk, needs no network and prints well. Without a column of
    reliability, trust is learned from the crowd.
    """
    from slencodings.report.page import make_page

    command = shlex.join(["sle", *sys.argv[1:]])
    make_page(read, output, command=command, target=target, conflict=conflict, seed=seed or 0)
    return Found([], {}, lambda: None)


@app.command()
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
    trust: o.LearnTrust = "none",
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
    told = read(gold)
    a = told.annotations
    X, there = read_features(features, a.items.tolist(), feature_item=feature_item, text=text)
    if not there.all():
        read.say("note", f"{int((~there).sum()):,} items have no features and are left out")
    given = "learned" if trust == "learned" else None  # then that of each annotation counts
    to_opinions = objective in ("reverse_kl", "forward_kl")
    if a.reliability is not None and not to_opinions:
        read.say("note", f"{objective} learns from plain votes; reliability is not used")
        given = None
    trained = models.train(
        a, X, there, test=test, gold=told.truth, seed=seed or 0,
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
    row = models.score(trained.model, a, X, trained.unseen, gold=told.truth)
    return Found([about | row], about, lambda: _show_row(row))


@app.command()
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
    told = read(gold)
    a = told.annotations
    X, there = read_features(features, a.items.tolist(), feature_item=feature_item, text=text)
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
    seed: o.CrowdSeed = 0,
    save: o.CrowdOut = None,
    report: o.DemoPage = "sle-demo.html",
    verbose: o.Verbose = False,
) -> None:
    """Tell the whole story on real handwritten digits and simulated annotators."""
    from slencodings.cli.demo import make_report, tell
    from slencodings.report.page import check_page

    check_page(report, save or "-")
    tell(seed, save)
    with notes(quiet=False) as (_, progress):
        make_report(seed, report, progress)


def main() -> NoReturn:
    """Run a command; bad input ends in one message and exit code 1, a stop in 130 or 143."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    # Where a terminal knows ASCII only, help and labels are shown as far as they can be.
    out: Any = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="replace")
    # Not `app()`, which turns a stop or a closed pipe into codes of its own.
    group: Any = typer.main.get_command(app)
    context: Any = None
    try:
        with group.make_context("sle", sys.argv[1:]) as context:
            group.invoke(context)
        out.flush()
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
        _fail(error, group if context is None else group.commands[context.invoked_subcommand])
    sys.exit(0)


def _fail(error: Exception, command: Any) -> NoReturn:
    if hasattr(error, "exit_code") and hasattr(error, "show"):
        usage: Any = error  # a usage error, which knows how to say itself
        usage.show()
        sys.exit(usage.exit_code)
    if {"-v", "--verbose"} & set(sys.argv):
        traceback.print_exception(error)
    known = isinstance(error, ValueError | OSError | ImportError | MemoryError)
    text = o.in_options(str(error), command) if known else f"{type(error).__name__}: {error}"
    typer.echo(f"error: {text}", err=True)
    if not known:
        typer.echo("This should not happen; -v shows where it came from.", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
