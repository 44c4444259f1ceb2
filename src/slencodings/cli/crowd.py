"""What the verbs share that look at a whole crowd: its options, and what becomes of their rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from slencodings.cli.options import (
    Column,
    Ends,
    IfDuplicate,
    IfIncomplete,
    In,
    InFormat,
    LabelColumn,
    Labels,
    Number,
    Question,
    Quiet,
    RowsOut,
    Verbose,
    scale_of,
    words,
)
from slencodings.progress import Progress, Say, notes

if TYPE_CHECKING:
    from slencodings.files.crowd import Told


class Found(NamedTuple):
    """What a verb found: rows for a file, how they were made, and how to show them to people."""

    rows: list[dict[str, Any]]
    about: dict[str, Any]
    show: Callable[[], None]


class Read(NamedTuple):
    """Reads the crowd when called, with a gold column if there is one; and what to tell people."""

    source: list[str]
    crowd: Callable[[str | None], Told]
    say: Say
    progress: Progress

    def __call__(self, gold: str | None = None) -> Told:
        """What the file tells."""
        return self.crowd(gold)


def _options(
    source: In,
    output: RowsOut = None,
    format: InFormat = None,
    question: Question = None,
    item: Column = None,
    annotator: Column = None,
    label: LabelColumn = None,
    confidence: Number = None,
    uncertainty: Number = None,
    reliability: Number = None,
    confidence_scale: Ends = None,
    labels: Labels = None,
    missing: IfIncomplete = "error",
    duplicates: IfDuplicate = "all",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """The options by which a crowd is read, for `on_a_crowd`."""


def on_a_crowd(verb: Callable[..., Found]) -> Callable[..., None]:
    """A command from a verb: with the options by which a crowd is read, and its rows written.

    typer reads the options of a command off its signature, which is put together here from those
    above and the verb's own. A verb that has an `output` of its own writes that itself.
    """
    _, *own = inspect.signature(verb, eval_str=True).parameters.values()
    names = {p.name for p in own}
    options = inspect.signature(_options, eval_str=True).parameters.values()
    shared = [p for p in options if p.name not in names]
    ends = [p for p in shared if p.name in ("quiet", "verbose")]
    merged = [*(p for p in shared if p not in ends), *own, *ends]

    def command(**given: Any) -> None:
        from slencodings.files.crowd import read_crowd
        from slencodings.files.write import check_rows_target, write_rows

        source, output = given["source"], None if "output" in names else given["output"]
        if output is not None:
            check_rows_target(output, source)
        with notes(given["quiet"]) as (say, progress):

            def crowd(gold: str | None) -> Told:
                from slencodings.tables.rows import Reading

                names = (field.name for field in fields(Reading))
                how = {name: given[name] for name in names if name in given}
                how["labels"] = words(given["labels"])
                how["confidence_scale"] = scale_of(given["confidence_scale"], learned=False)
                return read_crowd(source, Reading(**how), gold=gold, say=say, progress=progress)

            found = verb(Read(source, crowd, say, progress), **{p.name: given[p.name] for p in own})
            if output is not None:
                write_rows(found.rows, output, found.about)
                if output != "-":
                    say("wrote", f"{output}: {len(found.rows):,} rows")
        if output is None:
            found.show()

    command.__doc__ = verb.__doc__
    command.__name__ = verb.__name__
    keyword = inspect.Parameter.KEYWORD_ONLY
    by_name = [p.replace(kind=keyword) for p in merged]
    command.__signature__ = inspect.Signature(by_name)  # pyright: ignore[reportFunctionMemberAccess]
    return command
