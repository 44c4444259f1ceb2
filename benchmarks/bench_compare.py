"""Which encoding fits which crowd? `compare` on five real data sets, as docs/comparison.md shows.

The data sets are read from local folders (SLENCODINGS_DATA, or ../shared/datasets). `--write`
puts the tables into the document; all numbers go to a JSONL file with `--rows`.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from slencodings import Annotations, __version__, compare
from slencodings.datasets.cifar10s import cifar10s
from slencodings.datasets.convabuse import convabuse
from slencodings.datasets.mre import mre
from slencodings.datasets.rte import rte
from slencodings.datasets.uds_factuality import uds_factuality
from slencodings.evaluation import Comparison
from slencodings.evaluation.text import columns, head, lessons

DOCUMENT = Path(__file__).parents[1] / "docs" / "comparison.md"
Crowd = tuple[Annotations, Any]


def top() -> Crowd:
    """The likeliest label of each soft one, and its probability as stated confidence."""
    crowd = cifar10s()
    said = crowd.annotations
    assert said.stated is not None
    return replace(said, y=said.y.argmax(axis=1), uncertainty=1 - said.stated), crowd.gold


def plain(load: Callable[[], Any]) -> Callable[[], Crowd]:
    def crowd() -> Crowd:
        found = load()
        return found.annotations, found.gold

    return crowd


CROWDS: dict[str, Callable[[], Crowd]] = {
    "RTE": plain(rte),
    "UDS factuality": plain(uds_factuality),
    "CIFAR-10S, top label": top,
    "CIFAR-10S, soft labels": plain(cifar10s),
    "MRE, cause": plain(mre),
    "MRE, treat": plain(lambda: mre(relation="treat")),
    "ConvAbuse": plain(convabuse),
}


def shown(name: str, found: Comparison) -> list[str]:
    """One data set as Markdown; seconds are of a shared machine and are left out."""
    heads, cells = columns(found.rows)
    keep = [k for k, text in enumerate(heads) if text != "seconds"]
    rows = [[line[k] for k in keep] for line in [heads, *cells]]
    return [
        f"### {name}\n",
        head(found.about) + "\n",
        "| " + " | ".join(rows[0]) + " |",
        "|---" * len(keep) + "|",
        *("| " + " | ".join(row) + " |" for row in rows[1:]),
        "",
        " ".join(lessons(found.rows)) + "\n",
        *(f"- {note}" for note in found.notes),
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(CROWDS), help="some of the data sets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help=f"into {DOCUMENT.name}")
    parser.add_argument("--rows", type=Path, help="a JSONL file to write all numbers to")
    given = parser.parse_args()
    lines: list[str] = []
    kept: list[dict[str, Any]] = []
    for name in given.data:
        annotations, gold = CROWDS[name]()

        def progress(done: int, total: int, method: str, name: str = name) -> None:
            print(f"\r{name}: {done}/{total} {method:40}", end="", file=sys.stderr, flush=True)

        found = compare(annotations, gold=gold, seed=given.seed, progress=progress)
        print("\r" + " " * 80 + "\r", end="", file=sys.stderr)
        lines += shown(name, found)
        kept += [{"data": name, **row, **found.about._asdict()} for row in found.rows]
        print("\n".join(shown(name, found)), flush=True)
    if given.rows:
        text = "".join(json.dumps(row) + "\n" for row in kept)
        given.rows.write_text(text.replace("Infinity", '"inf"'), encoding="utf-8")
    if given.write:
        made = (
            f"slencodings {__version__}, Python {platform.python_version()}, NumPy "
            f"{np.__version__}, seed {given.seed}.\n"
        )
        text = "\n".join(["<!-- tables -->", made, *lines, "<!-- end -->"])
        old = DOCUMENT.read_text(encoding="utf-8")
        new = re.sub(r"<!-- tables -->.*<!-- end -->", lambda _: text, old, flags=re.DOTALL)
        DOCUMENT.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
