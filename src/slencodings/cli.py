"""The command line `sle`: each verb is a few library calls."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any, NoReturn

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Turn what annotators said, how sure they were and how far you trust them into "
    "Dirichlet training targets.",
)


Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show where an error came from.")]


class Operator(StrEnum):
    """The fusion operators that are a group-by of sums."""

    cumulative = "cumulative"
    average = "average"
    weighted = "weighted"
    constraint = "constraint"


class Missing(StrEnum):
    """What to do with an annotation that lacks a number."""

    error = "error"
    drop = "drop"
    trust = "trust"


class Duplicates(StrEnum):
    """What to do with a pair of item and annotator that comes again."""

    all = "all"
    error = "error"
    first = "first"
    last = "last"


class Format(StrEnum):
    """File formats that can be read."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    jsonl = "jsonl"
    json = "json"


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Options before the verb."""
    if version:
        from slencodings import __version__

        typer.echo(f"slencodings {__version__}")
        raise typer.Exit


@app.command()
def encode(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="CSV, TSV, Parquet or JSONL, also gzipped; - is standard input."
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Where to write: .parquet, .csv, .tsv or .jsonl by name; - is CSV on standard output.",
        ),
    ],
    item: Annotated[str | None, typer.Option(help="Column of the items.")] = None,
    annotator: Annotated[str | None, typer.Option(help="Column of the annotators.")] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Column of the labels; or K columns of probabilities, with commas."),
    ] = None,
    confidence: Annotated[
        str | None, typer.Option(help="Column of stated confidence, or one number for all.")
    ] = None,
    uncertainty: Annotated[
        str | None, typer.Option(help="Column of uncertainty, or one number for all.")
    ] = None,
    reliability: Annotated[
        str | None, typer.Option(help="Column of reliability, or one number for all.")
    ] = None,
    confidence_scale: Annotated[
        str,
        typer.Option(
            metavar="LOW-HIGH",
            help="Ends of the confidence scale, such as 1-5; or `calibrated`, learned from the crowd.",
        ),
    ] = "0-1",
    labels: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="All possible labels, in their order.")
    ] = None,
    smoothing: Annotated[
        float,
        typer.Option(
            help="Doubt added to each annotation; at 0 one certain annotation silences all others."
        ),
    ] = 0.01,
    prior_weight: Annotated[
        float,
        typer.Option(help="Pseudo-counts of a vacuous opinion; matters for evidence and alpha."),
    ] = 2.0,
    operator: Annotated[
        Operator, typer.Option(help="How opinions are fused.")
    ] = Operator.cumulative,
    wide: Annotated[
        bool | None,
        typer.Option(
            "--wide/--long",
            help="A row per item, or per item and label [wide up to 20 labels].",
        ),
    ] = None,
    values: Annotated[
        str,
        typer.Option(
            metavar="V,…",
            help="Any of belief, uncertainty, probability, base_rate, evidence, alpha.",
        ),
    ] = "belief,uncertainty,probability",
    missing: Annotated[
        Missing, typer.Option(help="Annotations without confidence or reliability.")
    ] = Missing.error,
    duplicates: Annotated[
        Duplicates, typer.Option(help="What one annotator said twice of one item.")
    ] = Duplicates.all,
    format: Annotated[
        Format | None, typer.Option(help="Format of IN, if its name does not tell.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
    verbose: Verbose = False,
) -> None:
    """Fuse a file of annotations into a file of opinions, one per item."""
    from slencodings.files import encode_file

    with _progress(quiet) as (say, progress):
        encode_file(
            source,
            target,
            columns={
                "item": item,
                "annotator": annotator,
                "label": label.split(",") if label and "," in label else label,
                "confidence": _number_or_name(confidence),
                "uncertainty": _number_or_name(uncertainty),
                "reliability": _number_or_name(reliability),
            },
            confidence_scale=_scale(confidence_scale),
            labels=labels.split(",") if labels else None,
            smoothing=smoothing,
            prior_weight=prior_weight,
            operator=operator.value,
            wide=wide,
            values=values.split(","),
            missing=missing.value,
            duplicates=duplicates.value,
            format=format.value if format else None,
            say=say,
            progress=progress,
        )


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the simulated crowd.")] = 0,
    verbose: Verbose = False,
) -> None:
    """Tell the whole story on an embedded crowd: real handwritten digits, simulated annotators."""
    from slencodings.demo import tell

    tell(seed)


def _number_or_name(text: str | None) -> float | str | None:
    """A number for all annotations, or the name of a column."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _scale(text: str) -> Any:
    """The ends of a confidence scale, or `calibrated`."""
    if text == "calibrated":
        return text
    ends = re.fullmatch(r"(-?[\d.]+)(?:-|:|,|\.\.)(-?[\d.]+)", text)
    if not ends:
        raise typer.BadParameter(
            f"two ends such as 1-5 or 0-100, or `calibrated`, are needed; {text!r} came.",
            param_hint="--confidence-scale",
        )
    return float(ends[1]), float(ends[2])


@contextmanager
def _progress(quiet: bool) -> Iterator[tuple[Callable[[str, str], None], Any]]:
    """What to tell people while files are worked on: notes, and a bar if they are watching."""

    def say(what: str, text: str) -> None:
        if not quiet:
            typer.echo(f"{what:<8} {text}", err=True)

    if quiet or not sys.stderr.isatty():
        yield say, lambda what, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    shown = TextColumn("{task.description:<8}"), BarColumn(), TimeRemainingColumn()
    with Progress(*shown, console=console, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def progress(what: str, share: float) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=1.0)
            bar.update(tasks[what], completed=share, visible=share < 1)

        yield (lambda what, text: console.print(f"{what:<8} {text}", highlight=False)), progress


def main() -> NoReturn:
    """Run a command; bad input ends in one message and exit code 1, a stop in 130 or 143."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        app(standalone_mode=False)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("stopped; nothing was written.", err=True)
        sys.exit(130)
    except Exception as error:
        _fail(error)
    sys.exit(0)


def _terminated(*_: object) -> NoReturn:
    sys.exit(143)


def _fail(error: Exception) -> NoReturn:
    if hasattr(error, "exit_code") and hasattr(error, "show"):
        usage: Any = error  # a usage error, which knows how to say itself
        usage.show()
        sys.exit(usage.exit_code)
    if {"-v", "--verbose"} & set(sys.argv):
        raise error
    known = isinstance(error, ValueError | OSError | ImportError)
    text = in_options(str(error)) if known else f"{type(error).__name__}: {error}"
    typer.echo(f"error: {text}", err=True)
    if not known:
        typer.echo("This should not happen; -v shows where it came from.", err=True)
    sys.exit(1)


def in_options(message: str) -> str:
    """A library message with its keyword arguments spelled as options.

    >>> in_options("Pass missing='drop', or confidence_scale=(1, 5).")
    'Pass --missing drop, or --confidence-scale 1-5.'
    """
    message = re.sub(r"form='(long|wide)'", r"--\1", message)
    message = re.sub(r"confidence_scale=\((\S+), (\S+)\)", r"--confidence-scale \1-\2", message)
    names = "missing|duplicates|annotator|item|label|operator|confidence|reliability|smoothing"
    message = re.sub(rf"\b({names})='([^']*)'", r"--\1 \2", message)
    message = re.sub(rf"\b({names})=([\d.]*\d)", r"--\1 \2", message)
    message = message.replace("--annotator the column", "--annotator COLUMN")
    listed = re.compile(r"\blabels=\[([^\]]*)\]")
    return listed.sub(lambda m: "--labels " + re.sub(r"[' ]", "", m[1]), message)


if __name__ == "__main__":
    main()
