"""What verbs that look at a whole crowd share: how it is read, how rows are written and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from slencodings.choices import CsvStyle
from slencodings.cli.command import as_command, parameters, words
from slencodings.progress import Progress, Say, printable

if TYPE_CHECKING:
    from slencodings.files.crowd import ReadCrowd
    from slencodings.files.write import AnyRow
    from slencodings.kinds.pairs import Pairs
    from slencodings.tables.roles import Reading


class Found(NamedTuple):
    """What a verb found: rows for a file, how they were made, and how to show them to people."""

    rows: Sequence[AnyRow]
    about: AnyRow
    show: Callable[[], None]


class Read(NamedTuple):
    """What reads the crowd, as `read_crowd` does, what to tell people, and notes that they got."""

    source: list[str]
    crowd: Callable[..., ReadCrowd]
    comparisons: Callable[[list[str]], Pairs]
    say: Say
    progress: Progress
    noted: list[str]

    def pairs(self, columns: str, refused: Mapping[str, object]) -> Pairs:
        """What a file of comparisons tells; `refused` are options that make no sense of pairs."""
        for option, value in refused.items():
            if value:
                raise typer.BadParameter(
                    "it is not for `--pairwise`. Leave one of them out.", param_hint=option
                )
        return self.comparisons(words(columns) or [])


def _options(
    source: list[str],
    output: str | None = None,
    csv_style: CsvStyle = "plain",
    *,
    reading: Reading,
) -> None:
    """The options of all verbs, for `on_a_crowd`."""


def _reader(
    source: list[str],
    reading: Reading,
    say: Say,
    progress: Progress,
    in_words: Callable[[str], str],
) -> Read:
    from slencodings.files.crowd import read_crowd
    from slencodings.files.pairs import read_pairs

    noted: list[str] = []

    def note(what: str, text: str) -> None:
        noted.extend([in_words(text)] if what == "note" else [])
        say(what, text)

    crowd = partial(read_crowd, source, reading, say=note, progress=progress)
    pairs = partial(read_pairs, source, reading=reading, say=note)
    return Read(source, crowd, pairs, say, progress, noted)


def on_a_crowd(verb: Callable[..., Found]) -> Callable[..., None]:
    """A command from a verb: with the options by which a crowd is read, and its rows written.

    A verb that has an `output` of its own writes that itself.
    """
    _, *own = parameters(verb)
    writes_itself = any(p.name == "output" for p in own)
    written = {"output", "csv_style"} if writes_itself else set[str]()
    shared = [p for p in parameters(_options) if p.name not in written]

    def run(
        source: list[str],
        reading: Reading,
        say: Say,
        progress: Progress,
        in_words: Callable[[str], str],
        output: str | None,
        csv_style: CsvStyle = "plain",
        **given: Any,
    ) -> Callable[[], None] | None:
        from slencodings.annotations import counted
        from slencodings.files.rows import check_rows_target, write_rows

        read = _reader(source, reading, say, progress, in_words)
        if writes_itself:
            return verb(read, output=output, **given).show
        if output is not None:
            check_rows_target(output, source, csv_style)
        found = verb(read, **given)
        if output is None:
            return found.show
        write_rows(found.rows, output, found.about, csv_style)
        if output != "-":
            say("wrote", f"{output}: {counted(len(found.rows), 'row')}")
        return None

    return as_command(verb, run, [*shared, *own])


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
        side = "left" if words and not interval else "right"
        # Ids tend to differ at their ends, so what is too long goes on below and is not cut.
        table.add_column(Text(heads[k]), justify=side, overflow="fold")
    for row in cells:
        # As text: what comes from data is no markup.
        table.add_row(*(Text(row[k]) for k in kept))
    console.print(table)
    if len(kept) < len(heads):
        hidden = ", ".join(head for k, head in enumerate(heads) if k not in kept)
        echo(f"(not shown for want of room: {hidden}; -o FILE has all)")
