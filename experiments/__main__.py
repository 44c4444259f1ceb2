"""Run an experiment, or show what it found: `python -m experiments synthetic`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import polars as pl

from experiments import figures, operators, synthetic, tables
from experiments.rows import FOLDER, keep


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
    for name, run, seeds, words in (
        ("synthetic", run_synthetic, 10, "Figure 1 and Table 4 of the paper, on made-up crowds"),
        ("operators", run_operators, 5, "which operator when, on made-up crowds"),
    ):
        verb = verbs.add_parser(name, help=words, description=words)
        verb.set_defaults(run=run)
        verb.add_argument("--seeds", type=_count, default=seeds, help=f"usually {seeds}")
        verb.add_argument("--quick", action="store_true", help="less of it")
        verb.add_argument("--write", action="store_true", help="figures and tables into docs/")
        verb.add_argument("--workers", type=_count, help="processes; as many as processors")
        where = FOLDER / f"{name}.parquet"
        verb.add_argument("--rows", type=Path, default=where, help="where rows are kept")
    return parser


def _count(word: str) -> int:
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1; {word!r} came")
    return int(word)


def run_synthetic(given: argparse.Namespace) -> pl.DataFrame:
    """Figure 1 and Table 4."""
    todo = synthetic.jobs(given.seeds, quick=given.quick)
    rows = keep(given.rows, synthetic.rows, todo, workers=given.workers)
    print(tables.terminal(tables.table4(rows)))
    if given.write:
        figures.save(figures.figure1(rows), "figure1")
        parts = {"table 4": tables.table4(rows), "errors": tables.standard_errors(rows)}
        tables.place("reproduction.md", {k: tables.markdown(v) for k, v in parts.items()})
    return rows


def run_operators(given: argparse.Namespace) -> pl.DataFrame:
    """Which operator when."""
    todo = operators.jobs(given.seeds, quick=given.quick)
    rows = keep(given.rows, operators.rows, todo, workers=given.workers)
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


if __name__ == "__main__":
    main()
