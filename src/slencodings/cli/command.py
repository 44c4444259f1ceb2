"""A verb as a command that typer runs: its own options, and those by which annotations are read.

And what is typed after them as values: words, prices, the ends of a scale.
"""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import typer

from slencodings.choices import Duplicates, Format, Incomplete, Value
from slencodings.cli.messages import in_options
from slencodings.progress import notes

if TYPE_CHECKING:
    from slencodings.tables.roles import Reading

VALUES = get_args(Value)
# What typer knows of the verb that runs, which nobody types.
_CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


def show_all(ctx: typer.Context, wanted: bool) -> None:
    """Show the help with all options, and end."""
    if wanted:
        ctx.meta["help_all"] = True
        typer.echo(ctx.get_help(), color=ctx.color)
        raise typer.Exit


def reading(
    format: Format | None = None,
    question: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    item: str | None = None,
    annotator: str | None = None,
    label: str | None = None,
    confidence: str | None = None,
    uncertainty: str | None = None,
    reliability: str | None = None,
    confidence_scale: str | None = None,
    labels: str | None = None,
    ordered: str | None = None,
    multi: str | None = None,
    merge_case: bool = False,
    missing: Incomplete = "error",
    duplicates: Duplicates = "all",
) -> None:
    """The options by which annotations are read, each a field of `Reading`."""


def _last(*, quiet: bool = False, verbose: bool = False, help_all: bool = False) -> None:
    """The last options of every verb."""


def as_command(
    verb: Callable[..., Any],
    run: Callable[..., Callable[[], None] | None],
    options: Iterable[inspect.Parameter],
    *,
    learned: bool = False,
    missing: Any = Incomplete,
) -> Callable[..., None]:
    """A command of a verb's name that runs with what was typed, and with `say` and `progress`.

    `in_words` says notes with options in the place of parameters, as `say` does.

    typer reads options off a signature. In the place of `reading` stand those by which annotations
    are read, with the words of `missing`; scales may be `learned`, or not. What `run` gives is
    shown at the end, when no bar is in its way.
    """
    shared = {p.name: p for p in parameters(reading)}
    shared["missing"] = shared["missing"].replace(annotation=missing)
    last = parameters(_last)

    def command(
        *, context: typer.Context, quiet: bool, verbose: bool, help_all: bool, **given: Any
    ) -> None:
        typed = {name: value for name, value in given.items() if name in shared}
        own = {name: value for name, value in given.items() if name not in shared}
        how = _as_reading(**typed, learned=learned)
        in_words = partial(in_options, command=context.command)
        with notes(quiet, verbose, in_words) as (say, progress):
            show = run(reading=how, say=say, progress=progress, in_words=in_words, **own)
        if show is not None:
            show()

    command.__doc__, command.__name__ = verb.__doc__, verb.__name__
    merged = [p for o in options for p in (shared.values() if o.name == "reading" else [o])]
    by_name = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [_CONTEXT, *merged, *last]]
    command.__signature__ = inspect.Signature(by_name)  # pyright: ignore[reportFunctionMemberAccess]
    return command


def _as_reading(
    *,
    confidence_scale: str | None,
    labels: str | None,
    ordered: str | None,
    learned: bool,
    **typed: Any,
) -> Reading:
    """What was typed after the options of `reading`."""
    from slencodings.tables.roles import Reading, in_order

    scale, names, in_words = _ends(confidence_scale, learned=learned), words(labels), words(ordered)
    if in_words is not None:
        names = in_order(names, in_words)
    return Reading(**typed, confidence_scale=scale, labels=names, ordered=in_words is not None)


def parameters(verb: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a verb, with types that typer can read."""
    # Nobody types a `Reading`, and its module is too heavy to load for a line of help.
    signature = inspect.signature(verb, eval_str=True, locals={"Reading": Any})
    return list(signature.parameters.values())


def words(text: str | None) -> list[str] | None:
    """Words between commas; one that has a comma itself stands in double quotes."""
    return next(csv.reader([text], skipinitialspace=True)) if text else None


def positive(value: float | None) -> float | None:
    """The number, if it can be a prior weight."""
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"a positive number is needed; {value:g} came. 2 is usual.")
    return value


def known_values(text: str) -> str:
    """The words, if they are all values of opinions."""
    wrong = [word for word in words(text) or [""] if word not in VALUES]
    if wrong:
        raise typer.BadParameter(f"some of {', '.join(VALUES)} are needed; {wrong[0]!r} came.")
    return text


def prices(text: str) -> dict[str, float]:
    """What annotations cost, by name: from a file, or as NAME=PRICE,... was typed."""
    if Path(text).is_file():
        from slencodings.files.crowd_columns import read_costs

        return read_costs(text)
    found: dict[str, float] = {}
    for word in words(text) or [""]:
        name, equals, price = word.rpartition("=")
        if not equals or not re.fullmatch(r" *\d*\.?\d+(e-?\d+)? *", price):
            no_file = "" if equals else ", and there is no such file"
            raise typer.BadParameter(
                "a file is needed, or NAME=PRICE with commas such as gpt-4o=3,llama=0.5; "
                f"{word!r} came{no_file}.",
                param_hint="--costs",
            )
        found[name.strip()] = float(price)
    return found


def _ends(text: str | None, *, learned: bool) -> Any:
    """The ends of a confidence scale, or `calibrated` where that can be learned."""
    if text is None or (text == "calibrated" and learned):
        return text
    number = r"(-?\d+(?:\.\d+)?)"
    ends = re.fullmatch(rf"{number}(?:-|:|,|\.\.){number}", text)
    if not ends or float(ends[1]) == float(ends[2]):
        raise typer.BadParameter(
            f"two different ends such as 1-5 or 0-100, or `calibrated`, are needed; {text!r} came.",
            param_hint="--confidence-scale",
        )
    return float(ends[1]), float(ends[2])
