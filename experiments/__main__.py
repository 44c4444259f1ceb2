"""Run an experiment, or show what it found: `python -m experiments synthetic`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from experiments import (
    data,
    figures,
    gradients,
    network_tables,
    operators,
    rates,
    real,
    rounds,
    sources,
    synthetic,
    tables,
    texts,
    uses,
)
from experiments.rows import FOLDER, keep, read

Run = Callable[[argparse.Namespace], pl.DataFrame]
# `--layers all`, where a number says how many from the top.
_ALL = -1


def main(words: list[str] | None = None) -> None:
    """Read the command line, and do what it says."""
    given = _parser().parse_args(words)
    started = time.perf_counter()
    rows = given.run(given)
    spent = time.perf_counter() - started
    print(f"{len(rows):,} rows in {given.rows} ({spent:.0f} s)", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    made = _verb(verbs, "synthetic", run_synthetic, "Figure 1 and Table 4, on made-up crowds")
    beyond = _verb(verbs, "operators", run_operators, "which operator when, on made-up crowds")
    trained = _verb(verbs, "real", run_real, "Table 2: networks trained on five real crowds")
    _verb(verbs, "sources", run_sources, "confidence, reliability and disagreement at once")
    _verb(verbs, "rates", run_rates, "how far the learning rate matters")
    _verb(verbs, "gradients", run_gradients, "what pulls a network at its start, on CIFAR-10S")
    used = _verb(verbs, "uses", run_uses, "what opinions are for, on digits and texts")
    used.add_argument("--seeds", type=_count, default=uses.SEEDS, help=f"usually {uses.SEEDS}")
    settings = (*uses.USUAL, *uses.CROWDS, *uses.OTHERS)
    used.add_argument("--settings", nargs="+", choices=settings, help=", ".join(settings))
    helped = _verb(verbs, "rounds", run_rounds, "networks that help to say what is true")
    helped.add_argument("--dataset", nargs="+", choices=rounds.CUTS, metavar="NAME")
    helped.add_argument("--methods", nargs="+", choices=rounds.METHODS, metavar="NAME")
    helped.add_argument("--seeds", type=_count, default=3, help="usually 3")
    helped.add_argument("--annotations", nargs="+", type=_count, help="an item", metavar="N")
    for verb, seeds in ((made, 10), (beyond, 5), (trained, 3)):
        verb.add_argument("--seeds", type=_count, default=seeds, help=f"usually {seeds}")
        verb.add_argument("--quick", action="store_true", help="less of it, to see that it works")
    names = ", ".join(data.PLANS)
    trained.add_argument("--dataset", nargs="+", choices=data.PLANS, help=names, metavar="NAME")
    methods = ", ".join(real.METHODS)
    trained.add_argument("--methods", nargs="+", choices=real.METHODS, help=methods, metavar="NAME")
    trained.add_argument("--encoder", help="of texts: a model of Hugging Face, or its folder")
    trained.add_argument("--layers", type=_layers, help="of the encoder that are trained, or `all`")
    trained.add_argument("--epochs", type=_count, help="as many as the plan of the data set has")
    trained.add_argument("--batch", type=_count, help="items a step; as many as the plan has")
    trained.add_argument("--rate", type=_rate, help="learning rate; that of the plan")
    trained.add_argument("--no-augment", action="store_true", help="images as they are")
    trained.add_argument("--as-printed", action="store_true", help="the KL as the paper prints it")
    return parser


def _verb(verbs: Any, name: str, run: Run, words: str) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=words, description=words)
    verb.set_defaults(run=run)
    verb.add_argument("--write", action="store_true", help="figures and tables into docs/")
    verb.add_argument("--kept", action="store_true", help="measure nothing, show what is kept")
    verb.add_argument("--workers", type=_count, help="processes; as many as processors")
    where = FOLDER / f"{name}.parquet"
    verb.add_argument("--rows", type=Path, default=where, help="where rows are kept")
    return verb


def _layers(word: str) -> int:
    return _ALL if word == "all" else 0 if word == "0" else _count(word)


def _rate(word: str) -> float:
    try:
        rate = float(word)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0; {word!r} came")
    return rate


def _count(word: str) -> int:
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1; {word!r} came")
    return int(word)


def run_synthetic(given: argparse.Namespace) -> pl.DataFrame:
    """Figure 1 and Table 4."""
    todo = synthetic.jobs(given.seeds, quick=given.quick)
    rows = keep(given.rows, synthetic.rows, todo, workers=given.workers, measure=not given.kept)
    print(tables.terminal(tables.table4(rows)))
    if given.write:
        figures.save(figures.figure1(rows), "figure1")
        parts = {"table 4": tables.table4(rows), "errors": tables.standard_errors(rows)}
        tables.place("reproduction.md", {k: tables.markdown(v) for k, v in parts.items()})
    return rows


def run_operators(given: argparse.Namespace) -> pl.DataFrame:
    """Which operator when."""
    todo = operators.jobs(given.seeds, quick=given.quick)
    rows = keep(given.rows, operators.rows, todo, workers=given.workers, measure=not given.kept)
    if given.quick:
        return rows
    for quality in operators.CROWDS:
        print(f"a {quality} crowd\n{tables.terminal(tables.winners(rows, quality))}\n")
    print(tables.terminal(tables.coverage(rows)))
    if given.write:
        parts = {"coverage": tables.coverage(rows)}
        for quality in operators.CROWDS:
            figures.save(figures.operators_figure(rows, quality), f"operators-{quality}")
            parts[f"{quality} crowd"] = tables.winners(rows, quality)
        tables.place("operators.md", {k: tables.markdown(v) for k, v in parts.items()})
    return rows


def run_real(given: argparse.Namespace) -> pl.DataFrame:
    """Table 2, and the methods beyond it."""
    plans = {name: _plan(given, data.PLANS[name]) for name in given.dataset or data.DATASETS}
    of_texts = [name for name in plans if name in data.TEXTS]
    if given.encoder and not of_texts:
        raise SystemExit(
            f"--encoder is of texts, and {', '.join(plans)} are images. Leave it out, or name a "
            f"data set of texts: --dataset {' '.join(data.TEXTS)}"
        )
    encoder = _encoder(given.encoder) if of_texts else ""
    encoders = {n: encoder if n in data.TEXTS else data.IMAGE_NETWORK for n in plans}
    seeds = 1 if given.quick else given.seeds
    todo = real.jobs(plans, encoders, given.methods, seeds, given.quick)
    # A look at whether it works is not to be found among results.
    path = given.rows.with_stem(given.rows.stem + "-quick") if given.quick else given.rows
    given.rows = path
    rows = keep(path, real.rows, todo, workers=given.workers, measure=not given.kept)
    for name in rows["setting"].unique(maintain_order=True):
        print(f"{name}\n{tables.terminal(network_tables.table2(rows, name))}\n")
    if given.write and not given.quick:
        # All that is kept: nobody waits for days of training to see a table of minutes.
        tables.place("reproduction.md", network_tables.all_of_table2(read(path)))
    return rows


def _plan(given: argparse.Namespace, plan: data.Plan) -> data.Plan:
    """The plan of a data set, with what was said otherwise."""
    typed = {
        "layers": given.layers,
        "max_epochs": given.epochs,
        "batch_size": given.batch,
        "learning_rate": given.rate,
        "normalize": False if given.as_printed else None,
        "augment": False if given.no_augment else None,
    }
    plan = plan._replace(**{name: value for name, value in typed.items() if value is not None})
    return plan._replace(layers=None) if given.layers == _ALL else plan


def _encoder(name: str | None) -> str:
    """The name of the encoder of texts in results; it must be there."""
    try:
        found = texts.load_encoder(name).name
    except (OSError, ValueError) as error:
        raise SystemExit(f"--encoder must name a model or its folder; {name!r} is none.") from error
    if name:
        os.environ["SLENCODINGS_ENCODER"] = name  # for the other processes, too
    return found


def run_sources(given: argparse.Namespace) -> pl.DataFrame:
    """Votes that were not shown, and networks, on UDS factuality."""
    rows = keep(
        given.rows, sources.rows, sources.jobs(), workers=given.workers, measure=not given.kept
    )
    parts = {"votes": tables.held_out(rows), "networks": tables.networks(rows)}
    print("\n\n".join(tables.terminal(part) for part in parts.values()))
    if given.write:
        figures.save(figures.sources_figure(rows), "sources")
        place = {k: tables.markdown(v) for k, v in parts.items()}
        tables.place("reproduction.md", place)
    return rows


def run_rates(given: argparse.Namespace) -> pl.DataFrame:
    """Accuracy by loss and learning rate."""
    rows = keep(given.rows, rates.rows, rates.jobs(), workers=given.workers, measure=not given.kept)
    print(tables.terminal(network_tables.rates_table(rows)))
    if given.write:
        tables.place("training.md", {"rates": tables.markdown(network_tables.rates_table(rows))})
    return rows


def run_gradients(given: argparse.Namespace) -> pl.DataFrame:
    """First gradients by loss."""
    todo = gradients.jobs()
    rows = keep(given.rows, gradients.rows, todo, workers=given.workers, measure=not given.kept)
    print(tables.terminal(gradients.table(rows)))
    if given.write:
        tables.place("training.md", {"gradients": tables.markdown(gradients.table(rows))})
    return rows


def run_rounds(given: argparse.Namespace) -> pl.DataFrame:
    """Networks that help to say what is true of items with few annotations."""
    todo = rounds.jobs(given.dataset, given.methods, given.seeds, given.annotations)
    if not todo:
        raise SystemExit(f"--annotations must be some of {rounds.CUTS}; {given.annotations} came.")
    rows = keep(given.rows, rounds.rows, todo, workers=given.workers, measure=not given.kept)
    for name in rows["setting"].unique(maintain_order=True):
        print(f"rounds {name}\n{tables.terminal(network_tables.rounds_table(rows, name))}\n")
    if given.write:
        # All that is kept, also of crowds that were not asked for this time.
        kept = read(given.rows)
        parts = {name: network_tables.rounds_table(kept, name) for name in kept["setting"].unique()}
        place = {f"rounds {name}": tables.markdown(part) for name, part in parts.items()}
        tables.place("training.md", place)
    return rows


def run_uses(given: argparse.Namespace) -> pl.DataFrame:
    """What opinions are for, and how doubt changes with items and annotations."""
    todo = uses.jobs(given.seeds, given.settings)
    keep(given.rows, uses.rows, todo, workers=given.workers, measure=not given.kept)
    # All that is kept, also of settings that were not asked for this time.
    rows = read(given.rows)
    parts = network_tables.all_of_uses(rows)
    print("\n\n".join(tables.terminal(part) for part in parts.values()))
    if given.write:
        tables.place("training.md", {k: tables.markdown(v) for k, v in parts.items()})
    return rows


if __name__ == "__main__":
    main()
