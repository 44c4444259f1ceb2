"""From a file of annotations to a file of opinions, out of core, through DuckDB.

Text files are read once into a scratch database on disk; Parquet is queried where it is. The
result is written beside its final name and then renamed, so there is never half a file.
"""

from __future__ import annotations

import difflib
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from slencodings import __version__, readers
from slencodings.columns import ANNOTATOR, LABEL, probability
from slencodings.readers import Format
from slencodings.survey import Duplicates, Missing, Rows, count_duplicates, survey
from slencodings.tables import opinions

if TYPE_CHECKING:
    import duckdb

    Connection: TypeAlias = duckdb.DuckDBPyConnection
    Relation: TypeAlias = duckdb.DuckDBPyRelation

# Called with what is being done and the share of it that is done.
Progress: TypeAlias = Callable[[str, float], None]

WRITERS = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


MOST_WIDE_LABELS = 20
# Past this, counting who said something twice costs more than the fusing itself.
MOST_ROWS_TO_COUNT_DUPLICATES = 20_000_000


def encode_file(
    source: str,
    target: str,
    *,
    columns: Mapping[str, Any],
    confidence_scale: Any = (0, 1),
    labels: Sequence[str] | None = None,
    wide: bool | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "all",
    format: Format | None = None,
    say: Callable[[str, str], None] = lambda what, text: None,
    progress: Progress = lambda what, share: None,
    **how: Any,
) -> dict[str, Any]:
    """Fuse a file of annotations into a file of opinions, and return how that was done.

    Parameters
    ----------
    source, target : paths, or `-` for standard input and output
    columns : the column (or number) for each role; those left out or None are found by name
    wide : a row per item, or per item and label; wide up to 20 labels if not said
    say, progress : called with notes for people, and with the share done of each step
    how : passed to `fuse_table`: smoothing, prior_weight, operator, values
    """
    writer = check_target(target, source)
    with workspace() as (connection, folder):
        path = find(source, folder)
        crowd, chosen = read(connection, path, format, columns, progress)
        say("columns", ", ".join(f"{role} = {_shown(c)}" for role, c in chosen.items()))
        if confidence_scale == "calibrated":
            confidence_scale = _calibrated(crowd, chosen, missing, say)
        rows = survey(
            crowd,
            **chosen,
            confidence_scale=confidence_scale,
            labels=labels,
            missing=missing,
            duplicates=duplicates,
        )
        _note(rows, source, duplicates, say)
        wide = len(rows.labels) <= MOST_WIDE_LABELS if wide is None else wide
        form = "wide" if wide else "long"
        frame, about = opinions(rows, form=form, name=chosen["item"], **how)
        about |= {
            "version": __version__,
            "source": source,
            "columns": chosen,
            "confidence_scale": str(confidence_scale),
            "missing": missing,
            "duplicates": duplicates,
            **rows.counts,
        }
        write(connection, frame.to_native(), target, writer, about, progress)
    say("wrote", f"{target}: {form}, {about['operator']}, smoothing {about['smoothing']:g}")
    return about


def _shown(column: Any) -> str:
    return ", ".join(column) if isinstance(column, list) else f"{column}"


def _calibrated(crowd: Relation, chosen: dict[str, Any], missing: Missing, say: Any) -> Any:
    """Learn from the crowd what its stated confidence is worth."""
    from slencodings.annotations import from_table
    from slencodings.confidence import calibrate

    if not isinstance(chosen.get("confidence"), str):
        raise ValueError(
            "a calibrated confidence scale needs a column of confidence; none was found. "
            "Name it: --confidence COLUMN."
        )
    said = {k: v for k, v in chosen.items() if k != "reliability"}
    stated = from_table(crowd, **said, confidence_scale=lambda c: c, missing=missing)
    scale = calibrate(stated, stated.uncertainty)
    say("learned", f"what stated confidence is worth:\n{scale}")
    return scale


def _note(rows: Rows, source: str, duplicates: Duplicates, say: Any) -> None:
    """Tell what was read, and what of it may surprise."""
    count, K = rows.counts["rows"], len(rows.labels)
    names = ", ".join(map(str, rows.labels[:10])) + (", …" if K > 10 else "")
    say("read", f"{source}: {count:,} rows, {K} labels: {names}")
    if rows.counts["unlabelled"]:
        say("note", f"{rows.counts['unlabelled']:,} rows have no label; their items are kept")
    if duplicates != "all" or ANNOTATOR not in rows.frame.collect_schema().names():
        return
    if count > MOST_ROWS_TO_COUNT_DUPLICATES:
        say(
            "note", "repeated (item, annotator) pairs are kept and, in so large a file, not counted"
        )
        return
    repeated, _ = count_duplicates(rows.frame, probability(0) if rows.soft else LABEL)
    rows.counts["repeated"] = repeated
    if repeated:
        say(
            "note",
            f"{repeated:,} rows repeat an earlier (item, annotator) pair; all are kept. "
            "--duplicates first|last|error changes that",
        )


@contextmanager
def workspace() -> Iterator[tuple[Connection, Path]]:
    """A scratch database on disk, gone at the end."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="slencodings-") as name:
        folder = Path(name)
        connection = duckdb.connect(str(folder / "scratch.duckdb"))
        try:
            connection.execute(f"SET temp_directory = '{name}'")
            yield connection, folder
        finally:
            connection.close()


def find(source: str, folder: Path) -> Path:
    """The path of a source; standard input, `-`, is first copied into the folder."""
    if source == "-":
        path = folder / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if path.stat().st_size == 0:
            raise ValueError("standard input is empty; pipe a CSV, TSV, Parquet or JSONL into it.")
        return path
    path = Path(source)
    if not path.is_file():
        here = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, here, 1)
        raise FileNotFoundError(
            f"there is no file {source!r}." + (f" Did you mean {near[0]!r}?" if near else "")
        )
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty; at least a header and one row are needed.")
    return path


def read(
    connection: Connection,
    path: Path,
    format: Format | None,
    columns: Mapping[str, Any],
    progress: Progress,
) -> tuple[Relation, dict[str, Any]]:
    """The columns that play a role, as a relation, and which they are."""
    import duckdb

    format = format or readers.format_of(path)
    try:
        relation = readers.scan(connection, path, format)
        chosen = readers.choose_columns(relation.columns, columns)
        wanted = dict.fromkeys(
            name
            for spec in chosen.values()
            for name in (spec if isinstance(spec, list) else [spec])
        )
        named = [name for name in wanted if isinstance(name, str)]
        relation = relation.project(", ".join(quote(name) for name in named))
        if format != "parquet":
            load = "CREATE TABLE crowd AS FROM relation"
            run(connection, load, progress, "reading", relation=relation)
            relation = connection.table("crowd")
    except duckdb.Error as error:
        raise ValueError(
            f"{path.name} cannot be read as {format.upper()}: {brief(error)} Repair the file, or "
            "name its format: --format csv|tsv|parquet|jsonl|json."
        ) from error
    numbers = [name for role in readers.NUMBERS if isinstance(name := chosen.get(role), str)]
    soft = chosen["label"] if isinstance(chosen["label"], list) else []
    return readers.typed(relation, [*numbers, *soft]), chosen


def quote(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def brief(error: Exception) -> str:
    """The lines of an engine's message that a person can use."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = ("Line", "Expected", "Original", "Error")
    kept = [line for line in lines[:8] if any(word in line for word in telling)] or lines[:1]
    text = "; ".join(kept[:3])
    return text if text.endswith(".") else text + "."


def run(
    connection: Connection, sql: str, progress: Progress, what: str, *, relation: Relation
) -> None:
    """Execute a statement over `relation` while telling how far it is."""
    failure: list[BaseException] = []

    def work(relation: Relation) -> None:
        try:
            connection.execute(sql)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, args=(relation,), daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
            progress(what, max(0.0, connection.query_progress() / 100))
    except BaseException:
        connection.interrupt()
        thread.join()
        raise
    progress(what, 1.0)
    if failure:
        raise failure[0]


def check_target(target: str, source: str) -> str:
    """How to write the target, or an error before any work is done."""
    if target == "-":
        return WRITERS[".csv"]
    path = Path(target)
    suffix = next((s for s in reversed(path.suffixes) if s != ".gz"), "")
    if suffix not in WRITERS:
        raise ValueError(
            f"the name of the output chooses its format: {', '.join(WRITERS)} (also with .gz, "
            f"except Parquet); {path.name!r} came."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"the output needs a folder that is there; {str(path.parent)!r} is not. "
            f"Make it first: mkdir -p {path.parent}"
        )
    if not os.access(path.parent, os.W_OK) or path.is_dir():
        raise PermissionError(f"the output {target!r} cannot be written. Choose another place.")
    if source != "-" and path.exists() and Path(source).exists() and path.samefile(source):
        raise ValueError(f"the output must not replace its own input {source!r}. Name another.")
    return WRITERS[suffix] + (", COMPRESSION gzip" if path.suffix == ".gz" else "")


def write(
    connection: Connection,
    relation: Relation,
    target: str,
    how: str,
    about: dict[str, Any],
    progress: Progress,
) -> None:
    """Write a relation in the order of its first columns, all of it or nothing."""
    order = ", ".join(quote(c) for c in relation.columns[:2] if c in (relation.columns[0], "label"))
    ordered = relation.order(order)
    if target == "-":
        # Not straight to standard output, which may be a file that others are writing to.
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            copy = f"COPY (FROM relation) TO {literal(file.name)} ({how})"
            run(connection, copy, progress, "writing", relation=ordered)
            with Path(file.name).open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
        return
    described = json.dumps(about, default=str)
    if how.startswith("FORMAT parquet"):
        how += f", KV_METADATA {{slencodings: {literal(described)}}}"
    with replacing(Path(target)) as path:
        copy = f"COPY (FROM relation) TO {literal(str(path))} ({how})"
        run(connection, copy, progress, "writing", relation=ordered)
    if not how.startswith("FORMAT parquet"):
        # CSV and JSONL have no place to say how they were made.
        with replacing(Path(target + ".meta.json")) as path:
            path.write_text(json.dumps(about, indent=1, default=str) + "\n")


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file to fill, which replaces `path` at the end, or is gone if that fails."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    new = Path(name)
    try:
        yield new
        with new.open("rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        new.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask)
        new.replace(path)
    finally:
        with suppress(FileNotFoundError):
            new.unlink()
