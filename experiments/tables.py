"""Tables, made from rows: of crowds, ours beside the paper's; as text, and into their place."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from experiments import operators, real, sources, synthetic

PUBLISHED = tomllib.loads((Path(__file__).parent / "published.toml").read_text(encoding="utf-8"))
DOCS = Path(__file__).parents[1] / "docs"

Table = tuple[list[str], list[list[str]]]


# Table 4: the metric, its head, whether more is better, the place of the paper's number in
# `published.toml`. The paper says that its F1 is micro-averaged.
TABLE4 = (
    ("F1 micro", "F1 micro", True, 0),
    ("F1", "F1 macro", True, None),
    ("JSD", "JSD", False, 1),
    ("NES", "NES", True, 2),
)


def table4(rows: pl.DataFrame) -> Table:
    """Averages over the four sets, ours and the paper's, and the difference; best of ours bold."""
    kept = rows.filter(pl.col("setting").is_in(synthetic.SETS))
    means = means_by(kept, "experiment", "annotations", "method", "metric")
    heads = ["", "annotations", "method"]
    for _, head, _, place in TABLE4:
        heads += [head] if place is None else [head, "paper", "difference"]
    cells = []
    for experiment in synthetic.EXPERIMENTS:
        for kind in ("all", "filtered"):
            paper = PUBLISHED["table4"][experiment][kind]
            for method in synthetic.METHODS:
                printed = paper.get("SLE" if method == "SLE mode" else method)
                row = [f"({experiment})", kind, method]
                for metric, _, up, place in TABLE4:
                    value = means[experiment, kind, method, metric]
                    every = [means[experiment, kind, m, metric] for m in synthetic.METHODS]
                    best = max(every) if up else min(every)
                    row.append(bold(f"{value:.3f}", abs(value - best) < 5e-4))
                    if place is not None:
                        row.append(f"{printed[place]:.3f}" if printed else "")
                        row.append(f"{value - printed[place]:+.3f}" if printed else "")
                cells.append(row)
    return heads, cells


def standard_errors(rows: pl.DataFrame) -> Table:
    """Standard errors of the averages over the four sets: how far chance alone moves Table 4."""
    kept = rows.filter(pl.col("setting").is_in(synthetic.SETS))
    error = (
        kept.group_by("experiment", "annotations", "method", "metric", "setting")
        .agg(v=pl.col("value").var() / pl.len())
        .group_by("experiment", "annotations", "method", "metric")
        .agg(se=pl.col("v").sum().sqrt() / len(synthetic.SETS))
        .group_by("method", "metric")
        .agg(pl.col("se").max())
    )
    found = {(m, k): se for m, k, se in error.iter_rows()}
    methods = [m for m in synthetic.METHODS if (m, "F1") in found]
    cells = [[m, *(f"{found[m, metric]:.3f}" for metric, *_ in TABLE4)] for m in methods]
    return ["largest standard error", *(head for _, head, *_ in TABLE4)], cells


def winners(rows: pl.DataFrame, quality: str) -> Table:
    """Log-loss above the best possible at the ends of each sweep; the lowest is bold."""
    methods = [m for m in operators.METHODS if m != "soft vote"]
    means = means_by(rows.filter(metric="loss"), "experiment", "setting", "method")
    cells = []
    for kind in operators.KINDS:
        for sweep, values in operators.SWEEPS.items():
            for value in (values[0], values[-1]):
                at = f"{sweep}, {quality} crowd, {kind}", f"{value:g}"
                found = [means.get((*at, method)) for method in methods]
                best = min(x for x in found if x is not None)
                cells.append([kind, f"{sweep} {value:g}"])
                cells[-1] += ["" if x is None else bold(f"{x:.3f}", x == best) for x in found]
    return ["truth", "with", *methods], cells


def coverage(rows: pl.DataFrame) -> Table:
    """Share of true probabilities within 90 % intervals, in the usual crowd."""
    methods = [m for m in operators.METHODS if m != "soft vote"]
    usual = rows.filter(pl.col("experiment").str.starts_with("together"), setting="0")
    means = means_by(usual, "experiment", "method", "metric")
    cells = []
    for quality in operators.CROWDS:
        for kind in operators.KINDS[1:]:
            for metric in ("coverage", "interval score"):
                name = f"together, {quality} crowd, {kind}"
                found = [means[name, method, metric] for method in methods]
                cells.append([quality, kind, metric, *(f"{x:.2f}" for x in found)])
    return ["crowd", "truth", "", *methods], cells


def held_out(rows: pl.DataFrame) -> Table:
    """Log-loss of votes that were not shown, and what each source of uncertainty changes."""
    heads, columns = ["what is used"], [list(sources.METHODS)]
    for split in ("dev", "test"):
        found = _changes(rows.filter(experiment="votes", setting=split))
        heads += [f"{split}: log-loss ↓", "change", "95 % interval"]
        columns += _with_interval(found, sources.METHODS, "log-loss")
    return heads, [list(row) for row in zip(*columns, strict=True)]


def networks(rows: pl.DataFrame) -> Table:
    """What a network learns from each target, against one that learns from shares of votes."""
    found = _changes(rows.filter(experiment="network"))
    methods = real.methods("uds")
    heads, columns = ["target"], [list(methods)]
    for metric, arrow in (("log-loss", "↓"), ("JSD", "↓"), ("NES", "↑")):
        heads += [f"{metric} {arrow}", "change", "95 % interval"]
        columns += _with_interval(found, methods, metric)
    return heads, [list(row) for row in zip(*columns, strict=True)]


def _changes(rows: pl.DataFrame) -> dict[tuple[str, str], float]:
    return {row[:2]: row[2] for row in rows.select("method", "metric", "value").rows()}


def _with_interval(
    found: dict[tuple[str, str], float], methods: Sequence[str], metric: str
) -> list[list[str]]:
    """Three columns: the mean, how far it is from the plain one, and the limits of that."""
    return [
        [f"{found[m, metric]:.4f}" for m in methods],
        [f"{found[m, f'{metric}, change']:+.4f}" for m in methods],
        [
            f"{found[m, f'{metric}, low']:+.4f} to {found[m, f'{metric}, high']:+.4f}"
            for m in methods
        ],
    ]


def means_by(rows: pl.DataFrame, *names: str) -> dict[tuple[str, ...], float]:
    """Mean value of each group, by its names."""
    found = rows.group_by(names).agg(pl.col("value").mean())
    return {row[:-1]: row[-1] for row in found.iter_rows()}


def bold(text: str, yes: bool) -> str:
    """Text that is bold where it is the best."""
    return f"**{text}**" if yes else text


def markdown(table: Table) -> str:
    """A table for a document."""
    heads, cells = table
    numbers = [all(_number(row[k]) for row in cells) for k in range(len(heads))]
    rule = ["---:" if number else "---" for number in numbers]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, rule, *cells])


def terminal(table: Table) -> str:
    """A table for people at a terminal: columns in line, no signs for bold type."""
    heads, cells = table
    rows = [[cell.replace("**", "") for cell in row] for row in [heads, *cells]]
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    right = [all(_number(row[k]) for row in cells) for k in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w)
            for cell, w, r in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    )


def _number(cell: str) -> bool:
    return re.fullmatch(r"[-+*.,\d\s±°()a-z]*", cell) is not None and not re.match(
        r"\(?[a-z]", cell
    )


def place(document: str, parts: dict[str, str]) -> None:
    """Put each part between its marks, `<!-- name -->` and `<!-- end of name -->`."""
    path = DOCS / document
    text = path.read_text(encoding="utf-8")
    for name, part in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(\n<!-- end of {name} -->)"
        text, n = re.subn(pattern, lambda m, p=part: m[1] + p + m[2], text, flags=re.DOTALL)
        if n != 1:
            raise ValueError(f"{document} needs the marks of {name!r} once; they are there {n} x.")
    path.write_text(text, encoding="utf-8")


def keep(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows as JSON, a line each."""
    lines = ",\n".join(map(json.dumps, rows))
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
