"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from slencodings.progress import printable


def echo(text: str) -> None:
    """Print text, of which some may come from data."""
    typer.echo(printable(text))


def show(heads: Sequence[str], cells: Sequence[Sequence[str]], spare: Sequence[str] = ()) -> None:
    """Print a table, on a terminal as wide as that is: first the spare columns give way.

    The first column and those of words go left, numbers right.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    heads, cells = [printable(h) for h in heads], [[printable(c) for c in row] for row in cells]
    console = Console()
    # A pipe has no width to keep to.
    room = console.width if console.is_terminal else 10_000
    kept = list(range(len(heads)))
    widths = [max(len(row[k]) for row in [heads, *cells]) + 3 for k in kept]
    for name in spare:
        if sum(widths[k] for k in kept) > room and name in heads:
            kept.remove(heads.index(name))
    if not console.is_terminal:
        console = Console(width=sum(widths) + 1)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for k in kept:
        words = k == 0 or any(row[k].strip(" -.,%*0123456789") not in ("", "inf") for row in cells)
        interval = all(" to " in row[k] or not row[k] for row in cells)
        table.add_column(Text(heads[k]), justify="left" if words and not interval else "right")
    for row in cells:
        # As text: what comes from data is no markup.
        table.add_row(*(Text(row[k]) for k in kept))
    console.print(table)
    if len(kept) < len(heads):
        hidden = ", ".join(head for k, head in enumerate(heads) if k not in kept)
        echo(f"(not shown for want of room: {hidden}; -o FILE has all)")
