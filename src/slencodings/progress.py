"""What people see on a terminal: notes, bars and tables."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

import typer

# What makes a terminal do something: all control characters but the end of a line and the tab.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

Say = Callable[[str, str], None]
Progress = Callable[[str, float, float | None, str], None]


def printable(text: str) -> str:
    """Text from data as a terminal can be given it: what would steer that is spelled out.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@contextmanager
def notes(
    quiet: bool, verbose: bool = True, in_words: Callable[[str], str] = str
) -> Generator[tuple[Say, Progress]]:
    """What to tell people while files are worked on: notes, and a bar if they are watching.

    Details, such as all that was learned, may be many lines, and are told if `verbose`. Notes name
    parameters; `in_words` says them as people know them.
    """

    if quiet:
        yield lambda what, text: None, lambda what, done, total, unit: None
        return

    def say(what: str, text: str) -> None:
        if verbose or what != "detail":
            show(printable(f"{what:<8} {in_words(text) if what == 'note' else text}"))

    if not sys.stderr.isatty():
        show = partial(typer.echo, err=True)
        yield say, lambda what, done, total, unit: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    shown = ("{task.description:<8}", BarColumn(), "{task.fields[rate]}", TimeRemainingColumn())
    columns = [TextColumn(c) if isinstance(c, str) else c for c in shown]
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:

        def progress(what: str, done: float, total: float | None, unit: str) -> None:
            if not bar.tasks or bar.tasks[-1].description != what:
                for task in bar.tasks:
                    bar.remove_task(task.id)
                bar.add_task(what, total=total, rate="")
            task = bar.tasks[-1]
            # What has no unit, such as how far learning is, has no rate but has time left.
            rate = f"{done / task.elapsed:,.0f} {unit}/s" if unit and done and task.elapsed else ""
            bar.update(task.id, completed=done, total=total, rate=rate)

        show = partial(console.out, highlight=False)
        yield say, progress


@contextmanager
def bar(what: str = "learning") -> Generator[Callable[[int, int], None]]:
    """A bar on a terminal or in a notebook, for the `progress` of a method that takes long.

    The time left is what all iterations would take; a method that converges ends before. Where
    nobody is watching, nothing is shown.

    Examples
    --------
    >>> from slencodings import aggregate, from_table
    >>> table = {"item": [0, 0, 0, 1, 1, 1], "who": [0, 1, 2] * 2, "label": [0, 0, 1, 1, 1, 0]}
    >>> crowd = from_table(table, item="item", annotator="who", label="label")
    >>> with bar("Dawid-Skene") as progress:
    ...     found = aggregate.dawid_skene(crowd, progress=progress)
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    watched = console.is_terminal or console.is_jupyter
    share, most = TextColumn("{task.percentage:>3.0f} %"), TextColumn("at most")
    columns = TextColumn("{task.description}"), BarColumn(), share, most, TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not watched) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
