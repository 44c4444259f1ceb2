"""How fast is it, and against whom? `python -m benchmarks encode growth`; all questions if none."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks import aggregate, encode, growth, peers, start, tables, train
from benchmarks.turns import FOLDER, PEERS, Group, keep
from experiments import figures
from experiments.tables import place

QUESTIONS = {"encode": encode, "growth": growth, "aggregate": aggregate, "train": train}
QUESTIONS |= {"start": start}


def main(words: list[str] | None = None) -> None:
    """Read the command line, measure what is missing, and show what all rows say."""
    given = parser().parse_args(words)
    if unknown := [name for name in given.questions if name not in QUESTIONS]:
        raise SystemExit(f"questions are {', '.join(QUESTIONS)}; {', '.join(unknown)} came.")
    path = given.rows or FOLDER / ("full.parquet" if given.full else "quick.parquet")
    started = time.perf_counter()
    absent = [n for n in PEERS.values() if not (given.peers / n / "bin" / "python").exists()]
    if absent:
        print(f"without {', '.join(absent)}: `make bench-peers` installs them", file=sys.stderr)
    rows = keep(path, plan(given), peers=given.peers, again=given.again)
    parts = tables.parts(rows, path.name)
    asked = given.questions or list(QUESTIONS)
    print("\n\n".join(text for name, text in parts.items() if _question(name) in (*asked, "about")))
    if given.write:
        place("benchmarks.md", parts)
        figures.save(tables.figure(rows), "benchmarks")
        figures.save(tables.growth_figure(rows), "growth")
    spent = time.perf_counter() - started
    print(f"{len(rows):,} rows in {path} ({spent:.0f} s)", file=sys.stderr)


def plan(given: argparse.Namespace) -> list[Group]:
    """What the questions ask, with as many turns and rows as were said."""
    groups = [g for name in given.questions or QUESTIONS for g in QUESTIONS[name].plan(given.full)]
    if given.cases:
        groups = [g for g in groups if any(given.cases in run.case for run in g.runs)]
    if given.at:
        groups = [g for g in groups if any(run.rows == given.at for run in g.runs)]
    if given.repeats:
        groups = [g._replace(turns=given.repeats) for g in groups]
    if given.size:
        groups = [g._replace(runs=_smaller(g, given.size)) for g in groups]
    return groups


def _smaller(group: Group, most: int) -> tuple:
    """Runs that are no larger; where all are, one of that size for each case."""
    small = [run for run in group.runs if run.rows is None or run.rows <= most]
    if not group.data or small:
        return tuple(small)
    return tuple(dict.fromkeys(run._replace(rows=most) for run in group.runs))


def _question(part: str) -> str:
    return part.split(",")[0]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("questions", nargs="*", help=", ".join(QUESTIONS), metavar="question")
    parser.add_argument("--full", action="store_true", help="larger tables, more turns")
    parser.add_argument("--again", action="store_true", help="forget their rows, measure anew")
    parser.add_argument("--write", action="store_true", help="tables and figure into docs/")
    parser.add_argument("--repeats", type=_count, help="turns of every case")
    parser.add_argument("--cases", help="only groups with a case whose name has this in it")
    parser.add_argument("--at", type=_count, help="only groups of so many rows")
    parser.add_argument("--size", type=_count, help="at most so many rows, to see that it works")
    parser.add_argument("--rows", type=Path, help="where rows are kept")
    parser.add_argument("--peers", type=Path, default=peers.FOLDER, help="their environments")
    return parser


def _count(word: str) -> int:
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1; {word!r} came")
    return int(word)


if __name__ == "__main__":
    main()
