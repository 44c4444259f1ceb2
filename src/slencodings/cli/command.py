"""A verb as a command that typer runs: its own options, and those by which annotations are read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from slencodings.cli import options as o
from slencodings.cli.help import show_all
from slencodings.cli.words import scale_of, words

_HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option("--help-all", callback=show_all, is_eager=True, help="Show all options."),
    ],
)


def as_command(
    verb: Callable[..., Any],
    run: Callable[..., None],
    options: Iterable[inspect.Parameter],
    *,
    learned: bool = False,
    **others: Any,
) -> Callable[..., None]:
    """A command of a verb's name that runs with what was typed.

    typer reads options off a signature. In the place of `reading` stand those by which annotations
    are read; `others` are of another type, and scales may be `learned`, or not.
    """
    shared = inspect.signature(o.reading, eval_str=True).parameters
    retyped = [p.replace(annotation=others.get(name, p.annotation)) for name, p in shared.items()]

    def command(**given: Any) -> None:
        from slencodings.tables.roles import Reading, in_order

        given.pop("help_all")
        typed = {name: given.pop(name) for name in shared}
        typed["confidence_scale"] = scale_of(typed["confidence_scale"], learned=learned)
        labels, ordered = (words(typed.pop(name)) for name in ("labels", "ordered"))
        run(
            reading=Reading(**typed, labels=in_order(labels, ordered), ordered=ordered is not None),
            **given,
        )

    command.__doc__, command.__name__ = verb.__doc__, verb.__name__
    merged = [p for option in options for p in (retyped if option.name == "reading" else [option])]
    by_name = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [*merged, _HELP_ALL]]
    command.__signature__ = inspect.Signature(by_name)  # pyright: ignore[reportFunctionMemberAccess]
    return command


def parameters(verb: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a verb, with types that typer can read."""
    # Nobody types a `Reading`, and its module is too heavy to load for a line of help.
    signature = inspect.signature(verb, eval_str=True, locals={"Reading": Any})
    return list(signature.parameters.values())
