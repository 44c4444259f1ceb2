"""The command line `sle`: each verb is a few library calls."""

from __future__ import annotations

import ast
import csv
import io
import re
import shlex
import signal
import sys
import traceback
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
    epilog="Exit codes: 0 done, 1 bad data, 2 wrong usage, 130 or 143 stopped by a signal. "
    "Nothing is half written.",
)

Operator = StrEnum("Operator", ["cumulative", "average", "weighted", "constraint"])
Missing = StrEnum("Missing", ["error", "drop", "trust"])
Duplicates = StrEnum("Duplicates", ["all", "error", "first", "last"])
Format = StrEnum("Format", ["csv", "tsv", "parquet", "jsonl", "json"])
# As in `slencodings.evidence`, which takes too long to import for a help page.
VALUES = ("belief", "uncertainty", "probability", "base_rate", "evidence", "alpha")


def _show_version(wanted: bool) -> None:
    if wanted:
        from slencodings import __version__

        typer.echo(f"slencodings {__version__}")
        raise typer.Exit


def _positive(value: float) -> float:
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"a positive number is needed; {value:g} came. 2 is usual.")
    return value


def _scale(text: str | None) -> Any:
    """The ends of a confidence scale, or `calibrated`."""
    if text is None or text == "calibrated":
        return text
    number = r"(-?\d+(?:\.\d+)?)"
    ends = re.fullmatch(rf"{number}(?:-|:|,|\.\.){number}", text)
    if not ends or float(ends[1]) == float(ends[2]):
        raise typer.BadParameter(
            f"two different ends such as 1-5 or 0-100, or `calibrated`, are needed; {text!r} came.",
            param_hint="--confidence-scale",
        )
    return float(ends[1]), float(ends[2])


def _list(text: str | None) -> list[str] | None:
    """Words between commas; one that has a comma itself stands in double quotes."""
    return next(csv.reader([text], skipinitialspace=True)) if text else None


def _known_values(text: str) -> str:
    wrong = [word for word in _list(text) or [""] if word not in VALUES]
    if wrong:
        raise typer.BadParameter(f"some of {', '.join(VALUES)} are needed; {wrong[0]!r} came.")
    return text


# The options in the order of the help: files, columns, what they mean, opinions, how to run.
In = Annotated[
    str,
    typer.Argument(
        metavar="IN", help="CSV, TSV, Parquet or JSONL, also gzipped; - is standard input."
    ),
]
Out = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Where to write: .parquet, .csv, .tsv or .jsonl by name; - is CSV on standard output.",
    ),
]
InFormat = Annotated[
    Format | None, typer.Option(help="Format of IN, if its name and content do not tell.")
]

Column = Annotated[str | None, typer.Option(metavar="COLUMN", help="Found by name if left out.")]
LabelColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Or K columns of probabilities, with commas."),
]
Number = Annotated[str | None, typer.Option(metavar="COLUMN", help="Or one number for all.")]

Scale = Annotated[
    str | None,
    typer.Option(
        metavar="LOW-HIGH",
        help="Ends of the confidence scale, such as 1-5; or `calibrated`: learned from the crowd."
        "  [default: 0-1]",
    ),
]
Labels = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="All possible labels, in their order.")
]
IfMissing = Annotated[
    Missing, typer.Option(help="Annotations without confidence, reliability or annotator.")
]
IfDuplicate = Annotated[Duplicates, typer.Option(help="What one annotator said twice of one item.")]

Smoothing = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Doubt added to each annotation; at 0 one certain annotation silences all others.",
    ),
]
PriorWeight = Annotated[
    float,
    typer.Option(
        callback=_positive,
        help="Pseudo-counts of a vacuous opinion; matters for evidence and alpha.",
    ),
]
HowFused = Annotated[Operator, typer.Option(help="How opinions are fused.")]
Wide = Annotated[
    bool | None,
    typer.Option(
        "--wide/--long", help="A row per item, or per item and label.  [default: wide to 20 labels]"
    ),
]
Values = Annotated[
    str,
    typer.Option(metavar="V,...", callback=_known_values, help=f"Any of {', '.join(VALUES)}."),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say all details; show where an error came from.")
]
Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
]


@app.callback()
def options(version: Version = False) -> None:
    """Options before the verb."""


@app.command()
def encode(
    source: In,
    target: Out,
    format: InFormat = None,
    item: Column = None,
    annotator: Column = None,
    label: LabelColumn = None,
    confidence: Number = None,
    uncertainty: Number = None,
    reliability: Number = None,
    confidence_scale: Scale = None,
    labels: Labels = None,
    missing: IfMissing = Missing.error,
    duplicates: IfDuplicate = Duplicates.all,
    smoothing: Smoothing = 0.01,
    prior_weight: PriorWeight = 2.0,
    operator: HowFused = Operator.cumulative,
    wide: Wide = None,
    values: Values = "belief,uncertainty,probability",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Fuse a file of annotations into a file of opinions, one per item.

    Columns are found by their usual names (item or task, annotator or worker, label or answer,
    confidence, reliability) and what was found is said.
    """
    scale = _scale(confidence_scale)
    from slencodings.files import encode_file

    with _progress(quiet) as (say, progress):
        about = encode_file(
            source,
            target,
            columns={
                "item": item,
                "annotator": annotator,
                "label": label,
                "confidence": confidence,
                "uncertainty": uncertainty,
                "reliability": reliability,
            },
            confidence_scale=scale,
            labels=_list(labels),
            smoothing=smoothing,
            prior_weight=prior_weight,
            operator=operator.value,
            wide=wide,
            values=list(dict.fromkeys(_list(values) or [])),
            missing=missing.value,
            duplicates=duplicates.value,
            format=format.value if format else None,
            say=say,
            progress=progress,
        )
        for name, value in about.items() if verbose else ():
            say("detail", f"{name} = {value}")


@app.command()
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated crowd.")] = 0,
    save: Annotated[
        str | None,
        typer.Option(metavar="FILE.csv", help="Write the crowd, to try `sle encode` on it."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Tell the whole story on real handwritten digits and simulated annotators."""
    from slencodings.demo import tell

    tell(seed, save)


@contextmanager
def _progress(quiet: bool) -> Iterator[tuple[Callable[[str, str], None], Any]]:
    """What to tell people while files are worked on: notes, and a bar if they are watching."""

    def say(what: str, text: str) -> None:
        if not quiet:
            typer.echo(f"{what:<8} {text}", err=True)

    if quiet or not sys.stderr.isatty():
        yield say, lambda *_: None
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
            rate = f"{done / task.elapsed:,.0f} {unit}/s" if done and task.elapsed else ""
            bar.update(task.id, completed=done, total=total, rate=rate)

        yield (lambda what, text: console.out(f"{what:<8} {text}", highlight=False)), progress


def main() -> NoReturn:
    """Run a command; bad input ends in one message and exit code 1, a stop in 130 or 143."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where a terminal knows ASCII only, help and labels are shown as far as they can be.
        sys.stdout.reconfigure(errors="replace")
    try:
        # Not `app()`, which turns a stop or a closed pipe into codes of its own.
        command = typer.main.get_command(app)
        with command.make_context("sle", sys.argv[1:]) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except KeyboardInterrupt:
        typer.echo("stopped; no file was changed.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever reads our output has enough of it. What is left is not tried again at exit.
        sys.stdout = io.StringIO()
        sys.exit(141)
    except Exception as error:
        _fail(error)
    sys.exit(0)


def _fail(error: Exception) -> NoReturn:
    if hasattr(error, "exit_code") and hasattr(error, "show"):
        usage: Any = error  # a usage error, which knows how to say itself
        usage.show()
        sys.exit(usage.exit_code)
    if {"-v", "--verbose"} & set(sys.argv):
        traceback.print_exception(error)
    known = isinstance(error, ValueError | OSError | ImportError | MemoryError)
    text = in_options(str(error)) if known else f"{type(error).__name__}: {error}"
    typer.echo(f"error: {text}", err=True)
    if not known:
        typer.echo("This should not happen; -v shows where it came from.", err=True)
    sys.exit(1)


def in_options(message: str) -> str:
    """A library message with its keyword arguments spelled as options.

    >>> in_options("Pass missing='drop', or confidence_scale=(1, 5), or labels=['a', 'b c'].")
    "Pass --missing drop, or --confidence-scale 1-5, or --labels 'a,b c'."
    """
    message = re.sub(r"form='(long|wide)'", r"--\1", message)
    message = re.sub(r"confidence_scale=\((\S+), (\S+)\)", r"--confidence-scale \1-\2", message)
    message = message.replace("annotator='the column'", "--annotator COLUMN")
    names = (
        "missing|duplicates|annotator|item|label|operator|confidence|uncertainty|reliability|"
        "smoothing|values"
    )
    message = re.sub(rf"\b({names})=([\d.]*\d)", r"--\1 \2", message)
    message = re.sub(rf"\b({names})='([^']*)'", lambda m: f"--{m[1]} {shlex.quote(m[2])}", message)
    return re.sub(r"\blabels=(\[[^\]]*\])", lambda m: f"--labels {_joined(m[1])}", message)


def _joined(listed: str) -> str:
    """A printed list as it is typed after an option."""
    words = ["OTHER" if w is ... else str(w) for w in ast.literal_eval(listed)]
    return shlex.quote(",".join(words)) if words != ["OTHER"] else "A,B"


if __name__ == "__main__":
    main()
