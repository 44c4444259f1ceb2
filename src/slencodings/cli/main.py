"""The command line `sle`: each verb is a few library calls."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from functools import cache
from typing import Annotated, Any, NoReturn

import typer

from slencodings.cli.crowd import compare, groups, reliability, report, triage
from slencodings.cli.encode import command as encode
from slencodings.cli.encode import forget
from slencodings.cli.messages import in_options, with_what_came
from slencodings.cli.options import SUMMARIES, Grouped, described
from slencodings.cli.panel import panel
from slencodings.cli.train import evaluate, train
from slencodings.progress import notes, printable

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    help="Turn what annotators said, how sure they were and how far you trust them into "
    "Dirichlet training targets.",
    epilog="Exit codes: 0 done, 1 bad data, 2 wrong usage, 130 or 143 stopped by a signal. "
    "Nothing is half written.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from slencodings import __version__

        typer.echo(f"slencodings {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
]


@app.callback()
def options(version: Version = False) -> None:
    """Options before the verb."""


def demo(
    seed: int = 0, save: str | None = None, report: str = "sle-demo.html", verbose: bool = False
) -> None:
    """Tell the whole story on real handwritten digits and simulated annotators."""
    from slencodings.cli.demo import make_report, tell
    from slencodings.report.render import check_page

    check_page(report, save or "-")
    tell(seed, save)
    with notes(quiet=False) as (_, progress):
        make_report(seed, report, progress)


VERBS = (encode, forget, compare, reliability, groups, triage, panel, report, train, evaluate, demo)
for verb in VERBS:
    app.command(cls=Grouped, short_help=SUMMARIES[verb.__name__])(described(verb))


@cache
def _group() -> Any:
    """The verbs as commands of one group; typer takes long to read all their options."""
    return typer.main.get_command(app)


def main() -> NoReturn:
    """Run a command; bad input ends in one message and exit code 1, a stop in 130 or 143."""
    # Threads that wait by running in circles take three times the processor time, and are no faster
    # where others work, too. PyTorch reads this once, when it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Our vectors are too short for threads to pay, and those of BLAS always spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    # Where a terminal knows ASCII only, help and labels are shown as far as they can be.
    out: Any = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="replace")
    if "_SLE_COMPLETE" in os.environ:
        app(prog_name="sle")  # a shell asks how to complete a line
    # Not `app()`, which turns a stop or a closed pipe into codes of its own.
    group = _group()
    context: Any = None
    try:
        with group.make_context("sle", sys.argv[1:]) as context:
            group.invoke(context)
        out.flush()
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
        # None if there is no such verb.
        verb = None if context is None else context.invoked_subcommand
        _fail(error, group.commands.get(verb, group))
    finally:
        # All is done: what libraries do at exit may be cut short, without their saying so.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(0)


def _fail(error: Exception, command: Any) -> NoReturn:
    if hasattr(error, "exit_code") and hasattr(error, "show"):
        usage: Any = error  # a usage error, which knows how to say itself
        usage.message = with_what_came(usage)
        usage.show()
        sys.exit(usage.exit_code)
    if {"-v", "--verbose"} & set(sys.argv):
        traceback.print_exception(error)
    known = isinstance(error, ValueError | OSError | ImportError | MemoryError)
    text = in_options(_in_words(error), command) if known else f"{type(error).__name__}: {error}"
    typer.echo(printable(f"error: {text}"), err=True)
    if not known:
        typer.echo("This should not happen; -v shows where it came from.", err=True)
    sys.exit(1)


def _in_words(error: Exception) -> str:
    """What an error says; of a file that the system would not open, a sentence."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    who = " `ls -l` shows who may read it." if isinstance(error, PermissionError) else ""
    return f"{str(error.filename)!r} cannot be opened: {error.strerror}.{who}"


if __name__ == "__main__":
    main()
