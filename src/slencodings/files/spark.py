"""From files of annotations to a folder of opinions, on a Spark cluster.

The same expression as everywhere, so the workers need neither Python nor this package. The result
is written beside its final name and then renamed, so there is never half a folder under that name.

    spark-submit --master spark://host:7077 .../slencodings/spark.py 'in/*.parquet' -o out.parquet
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import Annotated, Any, NoReturn, cast

import typer

from slencodings import __version__
from slencodings.cli import options as o
from slencodings.files import formats as readers
from slencodings.files.forms import Form, usual_form
from slencodings.files.hadoop import (
    exists,
    find_files,
    format_of,
    read_alike,
    reason,
    some,
    without_dots,
    write,
)
from slencodings.progress import notes
from slencodings.tables.fuse import as_learned, opinions
from slencodings.tables.rows import Duplicates, Missing, Rows, survey
from slencodings.trust.obtain import load
from slencodings.trust.value import Trust

# Seconds: to reach the master, and to wait for a worker when there is none.
REACH, PATIENCE = 15.0, 120.0


def encode(
    source: str | Sequence[str],
    target: str,
    *,
    master: str | None = None,
    columns: Mapping[str, Any] | None = None,
    confidence_scale: Any = None,
    labels: Sequence[str] | None = None,
    form: Form | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "all",
    format: str | None = None,
    trust: str = "none",
    patience: float = PATIENCE,
    say: Callable[[str, str], None] = lambda what, text: None,
    **how: Any,
) -> dict[str, Any]:
    """Fuse files of annotations into a folder of opinions with Spark, and return how it was done.

    Parameters
    ----------
    source : files, folders or patterns such as `crowd/*.parquet`: Parquet, CSV, TSV or JSONL
    target : a folder that is not there yet; its name ends in .parquet or .csv
    master : such as spark://host:7077 or local[*]; else the session that runs, or what
        spark-submit says
    columns : the column (or number) for each role; those left out or None are found by name
    format : parquet, csv, tsv or jsonl, if the names of the files do not tell
    trust : "none", or the name of a file with a stored one
    patience : seconds to wait for a worker when there is none
    confidence_scale, labels, form (wide or long), missing, duplicates : as in `sle encode`
    how : passed to `fuse_table`: smoothing, prior_weight, operator, values
    """
    writer = _writer(target)
    stored = _stored(trust, confidence_scale)
    sources = [source] if isinstance(source, str) else list(source)
    with session(master) as spark, _watched(spark, patience, target):
        if exists(spark, target):
            raise FileExistsError(
                f"the output must not be there yet; {target!r} is. Remove it, or name another."
            )
        files = find_files(spark, sources)
        crowd, chosen = read_alike(
            spark, files, format_of(files, format), columns or {}, stored is not None
        )
        say("columns", ", ".join(f"{role} = {_shown(c)}" for role, c in chosen.items()))
        scale = confidence_scale or (0, 1)
        crowd, plain = without_dots(crowd, chosen)
        given = _labels(crowd, plain["label"], labels)
        reading = {"labels": given, "missing": missing, "duplicates": duplicates}
        rows = _rows(crowd, plain, scale, stored, reading)
        say("read", f"{len(files):,} files: {rows.counts['rows']:,} rows, {some(rows.labels)}")
        if rows.counts["unlabelled"]:
            say("note", f"{rows.counts['unlabelled']:,} rows have no label; their items are kept")
        form = usual_form(form, len(rows.labels))
        frame, about = opinions(rows, form=cast("Any", form), name=chosen["item"], **how)
        about |= {"version": __version__, "source": sources, "files": len(files)}
        about |= {"columns": chosen, "missing": missing, "duplicates": duplicates, **rows.counts}
        if "confidence" in chosen:
            as_stated = stored is not None and not stored.from_uncertainty
            about["confidence_scale"] = "as stated" if as_stated else scale
        if stored is not None:
            about |= {"trust_from": trust, "trust": stored.to_dict()}
        about["written"] = write(spark, frame.to_native(), target, writer, about)
    say("wrote", f"{target}: {about['written']:,} rows, {form}, {about['operator']}")
    return about


def _writer(target: str) -> str:
    """How to write the target, or an error before any work is done."""
    suffix = PurePosixPath(target).suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise ValueError(
            "the name of the output chooses its format: .parquet or .csv, each a folder; "
            f"{target!r} came."
        )
    return suffix[1:]


def _stored(trust: str, scale: Any) -> Trust | None:
    if trust == "learned" or scale == "calibrated":
        raise ValueError(
            "trust and confidence scales are learned in the memory of one machine, not by Spark; "
            f"{'trust=' + repr(trust) if trust == 'learned' else 'calibrated'} came. Learn from a "
            "sample first: sle encode SAMPLE -o OUT --trust learned --save-trust trust.json; "
            "then pass trust='trust.json'."
        )
    return None if trust == "none" else load(trust)


@contextmanager
def session(master: str | None = None) -> Iterator[Any]:
    """The session that runs, or a new one that is stopped at the end."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ImportError(
            "Spark is not installed here. Install it: pip install 'slencodings[spark]'"
        ) from error
    # Sessions are known to the thread that made them, and the context to all.
    if running := SparkContext._active_spark_context:
        if master not in (None, running.master):
            raise ValueError(
                f"a session with {running.master} runs in this process; master={master!r} came. "
                "Stop that one first, or leave master out."
            )
        yield SparkSession.builder.getOrCreate()
        return
    _check_java()
    _check_master(master)
    builder = SparkSession.builder.appName("slencodings")
    builder = builder if master is None else builder.master(master)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise ConnectionError(
            f"Spark did not start with master {master or 'of spark-submit'}: {reason(error)}"
        ) from error
    try:
        yield spark
    finally:
        spark.stop()


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java", path=os.path.join(home, "bin") if home else None):
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise FileNotFoundError(
            f"Spark needs Java 17 or newer; there is no `java` {where}. Install it, for example "
            "apt install openjdk-17-jre-headless, or set JAVA_HOME."
        )


def _check_master(master: str | None) -> None:
    """Refuse a master that nobody listens at; Spark itself would try for minutes."""
    if master is None or not master.startswith(("spark://", "sc://")):
        return
    if master.startswith("sc://"):
        raise ValueError(
            f"files need a master such as spark://host:7077; {master!r} came, and Spark Connect "
            "cannot rename what it wrote. Use sle.fuse_table on its tables instead."
        )
    why = ""
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=REACH).close()
            return
        except (OSError, ValueError) as error:
            why = str(error)
    raise ConnectionError(
        f"no Spark master answers at {master}: {why}. Is it running, and is this its URL, as its "
        "log and its web page say?"
    )


@contextmanager
def _watched(spark: Any, patience: float, target: str) -> Iterator[None]:
    """Give up when there has been no worker for so long; say in words what Spark could not do."""
    context = spark.sparkContext
    done, lost = threading.Event(), threading.Event()

    def watch() -> None:
        seen = time.monotonic()
        while not done.wait(0.5):
            with suppress(Exception):  # A context that has stopped tells nothing.
                # The driver is one of them.
                if context._jsc.sc().getExecutorMemoryStatus().size() > 1:
                    seen = time.monotonic()
            if time.monotonic() - seen > patience:
                lost.set()
                with suppress(Exception):
                    context.cancelAllJobs()

    watcher = threading.Thread(target=watch, daemon=True)
    if not context.master.startswith("local"):
        watcher.start()
    try:
        yield
    except Exception as error:
        nothing = f"Nothing was written to {target!r}."
        if lost.is_set():
            raise ConnectionError(
                f"Spark has had no worker for {patience:g} seconds at {context.master}. Start "
                f"workers with memory and cores to spare, then run this again. {nothing}"
            ) from error
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        raise OSError(f"Spark could not finish: {reason(error)} {nothing}") from error
    finally:
        done.set()


def _labels(table: Any, label: Any, labels: Sequence[str] | None) -> list[Any] | None:
    """Labels from the command line, which are text, in the type of their column."""
    type = dict(table.dtypes)[label] if isinstance(label, str) else "array"
    kinds = dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int)
    kinds |= {"float": float, "double": float}
    kinds |= {"boolean": {"true": True, "false": False}.__getitem__}
    if labels is None or type not in kinds:
        return None if labels is None else list(labels)
    try:
        return [kinds[type](word.lower()) for word in labels]
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"--labels must be of the type of column {label!r}, {type}; {','.join(labels)} came."
        ) from error


def _rows(
    crowd: Any, chosen: dict[str, Any], scale: Any, trust: Trust | None, reading: dict[str, Any]
) -> Rows:
    said = {role: spec for role, spec in chosen.items() if role not in readers.NUMBERS}
    doubt = {role: spec for role, spec in chosen.items() if role in readers.NUMBERS}
    doubt["confidence_scale"] = scale
    doubt = doubt if trust is None else as_learned(trust, **doubt)
    return survey(crowd, **said, **doubt, **reading, trust=trust)


def _shown(column: Any) -> str:
    return ", ".join(column) if isinstance(column, list) else f"{column}"


def main() -> NoReturn:
    """The entry for spark-submit and `python -m slencodings.spark`; options as in `sle encode`."""
    try:
        typer.run(_command)
    except Exception as error:
        if {"-v", "--verbose"} & set(sys.argv):
            raise
        known = isinstance(error, ValueError | OSError | ImportError | MemoryError)
        typer.echo(f"error: {o.in_options(str(error)) if known else repr(error)}", err=True)
        sys.exit(1)
    sys.exit(0)


def _command(
    source: Annotated[list[str], typer.Argument(metavar="IN...", help="Files, folders, patterns.")],
    target: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT", help="A folder, .parquet or .csv.")
    ],
    master: Annotated[str | None, typer.Option(metavar="URL", help="Of the cluster.")] = None,
    format: o.InFormat = None,
    item: o.Column = None,
    annotator: o.Column = None,
    label: o.LabelColumn = None,
    confidence: o.Number = None,
    uncertainty: o.Number = None,
    reliability: o.Number = None,
    confidence_scale: o.Ends = None,
    labels: o.Labels = None,
    missing: o.IfMissing = o.Missing.error,
    duplicates: o.IfDuplicate = o.Duplicates.all,
    trust: Annotated[str, typer.Option(metavar="none|FILE", help="A stored trust.")] = "none",
    smoothing: o.Smoothing = None,
    prior_weight: o.PriorWeight = 2.0,
    operator: o.HowFused = o.Operator.cumulative,
    form: o.InForm = None,
    values: o.Values = "belief,uncertainty,probability",
    patience: Annotated[float, typer.Option(help="Seconds to wait for workers.")] = PATIENCE,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Fuse files of annotations into a folder of opinions, on a Spark cluster."""
    columns = {"item": item, "annotator": annotator, "label": label}
    columns |= {"confidence": confidence, "uncertainty": uncertainty, "reliability": reliability}
    how: dict[str, Any] = {
        "columns": columns,
        "confidence_scale": o.scale_of(confidence_scale, learned=False),
        "labels": o.words(labels),
        "form": form.value if form else None,
        "missing": missing.value,
        "duplicates": duplicates.value,
        "format": format.value if format else None,
        "trust": trust,
        "patience": patience,
        "smoothing": smoothing,
        "prior_weight": prior_weight,
        "operator": operator.value,
        "values": list(dict.fromkeys(o.words(values) or [])),
    }
    with notes(quiet) as (say, _):
        encode(source, target, master=master, say=say, **how)


if __name__ == "__main__":
    main()
