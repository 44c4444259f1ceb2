"""Which method predicts votes, and the truth, on which crowd?"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl

from benchmarks.votes import page
from benchmarks.votes.crowds import PUBLISHED, from_csv, from_folder, published
from benchmarks.votes.methods import chosen, from_file, ours
from benchmarks.votes.peers import peers
from benchmarks.votes.rows import PATH, all_rows, keep
from experiments import figures
from experiments.tables import place


def main(words: list[str] | None = None) -> None:
    """Read the command line, measure what is missing, and show what all rows say."""
    given = _parser().parse_args(words)
    try:
        known = ours() | peers()
        added = {name: m for word in given.add for name, m in from_file(word).items()}
        methods = chosen(known | added, [*given.method, *added] if given.method else [])
        crowds = {name: partial(published, name, given.items) for name in PUBLISHED}
        if given.folder:
            files = from_folder(given.folder)
            crowds = {name: partial(from_csv, path, given.items) for name, path in files.items()}
        if unknown := [name for name in given.crowd if name not in crowds]:
            raise ValueError(f"crowds are {', '.join(crowds)}; {', '.join(unknown)} came.")
    except ValueError as error:
        raise SystemExit(str(error)) from None
    crowds = {name: crowds[name] for name in given.crowd or crowds}
    path = given.rows or (given.folder / "votes.parquet" if given.folder else PATH)
    rows = keep(path, crowds, methods, seconds=given.seconds, again=given.again)
    parts = page.parts(rows, _named(path))
    print("\n\n".join(f"{page.TITLES.get(name, name)}\n\n{text}" for name, text in parts.items()))
    if given.write:
        _write(path, all_rows(path, rows))


def _write(path: Path, rows: pl.DataFrame) -> None:
    """Tables and figure of all rows: ours into docs/, those of anybody's crowds beside the rows."""
    parts = page.parts(rows, _named(path))
    if path == PATH:
        place("votebench.md", parts)
        figures.save(page.figure(rows), "votebench")
    else:
        (path.parent / "votebench.md").write_text(page.document(parts), encoding="utf-8")
        page.figure(rows).savefig(path.parent / "votebench.png", dpi=150)
    plt.close("all")


def _named(path: Path) -> str:
    return f"benchmarks/rows/{path.name}" if path == PATH else path.name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.votes", description=__doc__)
    parser.add_argument(
        "folder", nargs="?", type=Path, help="of CSV files; published crowds if none"
    )
    parser.add_argument("--crowd", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--method", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--add", action="append", default=[], help="a method, FILE.py:FUNCTION")
    parser.add_argument("--items", type=int, default=400, help="at most so many of each crowd")
    parser.add_argument(
        "--seconds", type=int, default=60, help="of a processor at most, for a method on a crowd"
    )
    parser.add_argument("--again", action="store_true", help="measure anew what has rows")
    parser.add_argument("--rows", type=Path, help="where rows are kept")
    parser.add_argument(
        "--write",
        action="store_true",
        help="a page and a figure of all rows: into docs/, or beside a folder's rows",
    )
    return parser


if __name__ == "__main__":
    main()
