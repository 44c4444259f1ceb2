"""From a file of annotations to a file of opinions, out of core, through DuckDB.

Text files are read once into a scratch database on disk; Parquet is queried where it is. The
result is written beside its final name and then renamed, so there is never half a file.
"""

from __future__ import annotations

import ctypes
import difflib
import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

from slencodings import __version__, readers
from slencodings.columns import ANNOTATOR, LABEL, probability
from slencodings.readers import Format, columns_of, quote
from slencodings.survey import Duplicates, Missing, Rows, count_duplicates, survey
from slencodings.tables import MOST_MEANT, as_learned, opinions
from slencodings.trust.obtain import learn_from, load
from slencodings.trust.value import Trust
from slencodings.writers import check_place, check_target, disk_errors, replacing

Connection: TypeAlias = duckdb.DuckDBPyConnection
Relation: TypeAlias = duckdb.DuckDBPyRelation
# Called with a word for what is told, and the text.
Say: TypeAlias = Callable[[str, str], None]
# Called when a step begins: its name, how much there is to do if that is known, and of what.
Step: TypeAlias = Callable[[str, float | None, str], None]
# Called while a step runs: its name, how much is done, how much there is to do, and of what.
Progress: TypeAlias = Callable[[str, float, float | None, str], None]

# Errors of DuckDB that no file can cause.
NOT_THE_FILE = (
    duckdb.InterruptException,
    duckdb.InternalException,
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
)
MOST_WIDE_LABELS = 20
# Past this, counting who said something twice costs more than the fusing itself.
MOST_ROWS_TO_COUNT_DUPLICATES = 20_000_000


def encode_file(
    source: str,
    target: str,
    *,
    say: Say = lambda what, text: None,
    progress: Progress = lambda what, done, total, unit: None,
    **options: Any,
) -> dict[str, Any]:
    """Fuse a file of annotations into a file of opinions, and return how that was done.

    Parameters
    ----------
    source, target : paths, or `-` for standard input and output
    say, progress : called with notes for people, and with what is done of each step
    options : those of `fuse_file`
    """
    writer = check_target(target, source)
    if (kept := options.get("save_trust")) is not None:
        check_place(kept, source, target, f"{target}.meta.json")
    with disk_errors(), workspace() as (connection, folder):
        path = find(source, folder)
        # Not straight to standard output, which would show half of what then fails.
        new = folder / "output.csv" if target == "-" else Path(target)

        def work(step: Step) -> dict[str, Any]:
            return fuse_file(connection, path, new, writer, step=step, say=say, **options)

        about = watch(connection, work, progress)
        if target == "-":
            with new.open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    how = f"{about['form']}, {about['operator']}, "
    how += (
        f"trust {about['trust_from']}" if "trust" in about else f"smoothing {about['smoothing']:g}"
    )
    say("wrote", f"{target}: {about['written']:,} rows, {how}")
    if kept is not None:
        say("wrote", f"{kept}: the trust that was learned")
    return about


def fuse_file(
    connection: Connection,
    path: Path,
    target: Path,
    writer: str,
    *,
    columns: Mapping[str, Any],
    confidence_scale: Any = None,
    labels: Sequence[str] | None = None,
    wide: bool | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "all",
    format: Format | None = None,
    trust: str = "none",
    seed: int = 0,
    save_trust: str | None = None,
    step: Step,
    say: Say,
    **how: Any,
) -> dict[str, Any]:
    """Read, check, fuse and write.

    Parameters
    ----------
    columns : the column (or number) for each role; those left out or None are found by name
    wide : a row per item, or per item and label; wide up to 20 labels if not said
    trust : "none", "learned" from the file with this seed, or the name of a stored one
    save_trust : where to keep what was learned
    how : passed to `fuse_table`: smoothing, prior_weight, operator, values
    """
    if (
        how.get("smoothing") == 0
        and "json" in writer
        and {"evidence", "alpha"} & {*how.get("values", ())}
    ):
        raise ValueError(
            "JSON cannot hold the infinite evidence of certain annotations; smoothing=0 came. "
            "Write .parquet or .csv, or pass a smoothing such as 0.01."
        )
    stored = None if trust in ("none", "learned") else load(trust)
    with plain_errors(path, format := format or readers.format_of(path)):
        step("reading", path.stat().st_size / 1e6, "MB")
        crowd, chosen = read(connection, path, format, columns)
        found = trust != "none" and columns.get("reliability") is None
        unused = chosen.pop("reliability", None) if found else None
        say("columns", ", ".join(f"{role} = {shown(c)}" for role, c in chosen.items()))
        if unused is not None:
            say("note", f"column {unused!r} is not used: trust says how reliable annotators are")
        step("checking", None, "")
        scale = _scale(crowd, chosen, confidence_scale, missing, say)
        reading = {
            "labels": typed_labels(connection, crowd, chosen["label"], labels),
            "missing": missing,
            "duplicates": duplicates,
        }
        if trust == "learned":
            stored = _learned(crowd, chosen, reading, seed, step, say)
        elif stored is not None and "annotator" in chosen:
            _note_new(crowd, chosen["annotator"], stored, trust, say)
        rows = _rows(crowd, chosen, scale, stored, reading)
        _note(rows, path.name, duplicates, say)
        wide = len(rows.labels) <= MOST_WIDE_LABELS if wide is None else wide
        form = "wide" if wide else "long"
        frame, about = opinions(rows, form=form, name=chosen["item"], **how)
        about |= {"version": __version__, "source": path.name, "columns": chosen}
        about |= {"confidence_scale": _described(scale)} if "confidence" in chosen else {}
        about |= {"missing": missing, "duplicates": duplicates, **rows.counts}
        beside: dict[Path, str] = {}
        if rows.trust is not None:
            about |= {"trust_from": trust, "trust": rows.trust.to_dict()}
            about |= {"seed": seed} if trust == "learned" else {}
            about |= {} if rows.trust.from_uncertainty else {"confidence_scale": "as stated"}
            beside |= {Path(save_trust): rows.trust.to_json()} if save_trust else {}
        step("fusing", rows.counts["rows"], "rows")
        about["written"] = write(connection, frame.to_native(), target, writer, about, beside)
        if trust == "none" and "annotator" in chosen and "reliability" not in chosen:
            _recommend_trust(rows.counts, about["written"], say)
    return about


def _learned(
    crowd: Relation,
    chosen: dict[str, Any],
    reading: dict[str, Any],
    seed: int,
    step: Step,
    say: Say,
) -> Trust:
    roles = {role: spec for role, spec in chosen.items() if role != "reliability"}
    how = {"seed": seed, "most_meant": MOST_MEANT, "say": say, "step": step}
    trust = learn_from(crowd, roles, **how, **reading)
    step("checking", None, "")
    return trust


def _rows(
    crowd: Relation,
    chosen: dict[str, Any],
    scale: Any,
    trust: Trust | None,
    reading: dict[str, Any],
) -> Rows:
    said = {role: spec for role, spec in chosen.items() if role not in readers.NUMBERS}
    doubt = {role: spec for role, spec in chosen.items() if role in readers.NUMBERS}
    doubt["confidence_scale"] = scale
    doubt = doubt if trust is None else as_learned(trust, **doubt)
    return survey(crowd, **said, **doubt, **reading, trust=trust)


def _recommend_trust(counts: Mapping[str, int], written: int, say: Say) -> None:
    # More annotations than rows that were written means that some item has several.
    if counts["rows"] - counts["unlabelled"] - counts.get("repeated", 0) > written:
        say("note", "all annotators are trusted alike; --trust learned tells them apart")


def _note_new(crowd: Relation, annotator: str, trust: Trust, name: str, say: Say) -> None:
    """Tell how many annotators a stored trust does not know."""
    found = crowd.project(quote(annotator)).distinct().fetchall()
    here = {name for (name,) in found if name is not None}
    if new := here - set(trust.annotators.tolist()):
        say(
            "note",
            f"{len(new):,} of {len(here):,} annotators are new to {name}, such as {min(new)!r}; "
            "they get its typical worth",
        )


def shown(column: Any) -> str:
    """The column, columns or number of a role, as people write them."""
    return ", ".join(column) if isinstance(column, list) else f"{column}"


def _scale(crowd: Relation, chosen: dict[str, Any], scale: Any, missing: Missing, say: Say) -> Any:
    """The ends of the confidence scale; or what it is worth, learned from the crowd."""
    if scale is not None and not isinstance(chosen.get("confidence"), str):
        raise ValueError(
            "a confidence scale needs a column of confidence; none was found. "
            "Name it: --confidence COLUMN."
        )
    if scale != "calibrated":
        return scale or (0, 1)
    from slencodings.annotations import from_table
    from slencodings.confidence import calibrate

    said = {role: spec for role, spec in chosen.items() if role != "reliability"}
    # Only confidence that was stated can be compared, so what is missing is not trusted here.
    absent = "error" if missing == "error" else "drop"
    stated = from_table(crowd, **said, confidence_scale=lambda c: c, missing=absent)
    learned = calibrate(stated, stated.uncertainty)
    say("learned", f"what stated confidence is worth:\n{learned}")
    return learned


def _described(scale: Any) -> Any:
    return list(scale) if isinstance(scale, tuple) else scale.to_rows()


def typed_labels(
    connection: Connection, crowd: Relation, label: Any, labels: Sequence[str] | None
) -> list[Any] | None:
    """Labels from the command line, which are text, in the type of their column."""
    types = dict(zip(crowd.columns, map(str, crowd.types), strict=True))
    type = types[label] if isinstance(label, str) else "DOUBLE[]"
    if labels is None or type.endswith("]"):  # Lists of probabilities have labels of any type.
        return None if labels is None else list(labels)
    try:
        cast = f"SELECT CAST(? AS {type})"
        return [connection.execute(cast, [word]).fetchall()[0][0] for word in labels]
    except duckdb.ConversionException as error:
        raise ValueError(
            f"--labels must be of the type of column {label!r}, {type}; {','.join(labels)} came."
        ) from error


def _note(rows: Rows, name: str, duplicates: Duplicates, say: Say) -> None:
    """Tell what was read, and what of it may surprise."""
    count, K = rows.counts["rows"], len(rows.labels)
    names = ", ".join(map(str, rows.labels[:10])) + (", ..." if K > 10 else "")
    say("read", f"{name}: {count:,} rows, {K} labels: {names}")
    if rows.counts["unlabelled"]:
        say("note", f"{rows.counts['unlabelled']:,} rows have no label; their items are kept")
    if duplicates != "all" or ANNOTATOR not in rows.frame.collect_schema().names():
        return
    if count > MOST_ROWS_TO_COUNT_DUPLICATES:
        say("note", "repeated (item, annotator) pairs are kept; so many rows are not counted")
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
    with tempfile.TemporaryDirectory(prefix="slencodings-") as name:
        folder = Path(name)
        connection = duckdb.connect(str(folder / "scratch.duckdb"))
        try:
            connection.execute(f"SET temp_directory = {literal(name)}")
            # Without a bar DuckDB does not say how far it is; we draw our own.
            connection.execute("SET enable_progress_bar = true")
            connection.execute("SET enable_progress_bar_print = false")
            yield connection, folder
        finally:
            connection.close()


def watch(
    connection: Connection, work: Callable[[Step], dict[str, Any]], progress: Progress
) -> dict[str, Any]:
    """Do the work in a thread and tell how far it is; DuckDB does not hear signals by itself."""
    steps: list[tuple[str, float | None, str]] = [("reading", None, "")]
    worker: list[int] = []

    def begin() -> dict[str, Any]:
        worker.append(threading.get_ident())
        return work(lambda *step: steps.append(step))

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(begin)
        try:
            while wait([future], timeout=0.1).not_done:
                what, total, unit = steps[-1]
                share = max(0.0, connection.query_progress() / 100)
                progress(what, share * (total or 0), total, unit)
        except BaseException:
            # Learning is no query, and is stopped by an error that comes out of nowhere.
            if steps[-1][0] == "learning":
                stop = ctypes.pythonapi.PyThreadState_SetAsyncExc
                stop(ctypes.c_ulong(worker[0]), ctypes.py_object(KeyboardInterrupt))
            # Between two queries there is nothing to interrupt, so it is said until it is heard.
            while not future.done():
                connection.interrupt()
                wait([future], timeout=0.05)
            raise
        return future.result()


def find(source: str, folder: Path) -> Path:
    """The path of a source; what comes through a pipe is first copied into the folder."""
    path = Path(source)
    if path.is_dir():
        raise IsADirectoryError(
            f"the input must be a file; {source!r} is a folder. Name one in it."
        )
    if source == "-" or (path.exists() and not path.is_file()):
        copy = folder / "stdin"
        with (
            copy.open("wb") as file,
            sys.stdin.buffer if source == "-" else path.open("rb") as pipe,
        ):
            shutil.copyfileobj(pipe, file)
        path = copy
    elif not path.exists():
        here = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, here, 1)
        meant = f" Did you mean {str(path.with_name(near[0]))!r}?" if near else ""
        raise FileNotFoundError(f"there is no file {source!r}.{meant}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty; at least a header and one row are needed.")
    return path


def read(
    connection: Connection, path: Path, format: Format, columns: Mapping[str, Any]
) -> tuple[Relation, dict[str, Any]]:
    """The columns that play a role, as a relation, and which they are."""
    relation = readers.scan(connection, path, format)
    chosen = readers.choose_columns(relation.columns, columns)
    named = dict.fromkeys(name for spec in chosen.values() for name in columns_of(spec))
    relation = relation.project(", ".join(quote(name) for name in named))
    numbers = [name for role in readers.NUMBERS for name in columns_of(chosen.get(role))]
    numbers += chosen["label"] if isinstance(chosen["label"], list) else []
    if format in ("jsonl", "json"):
        relation = readers.from_json(relation, numbers)
    if format != "parquet":
        connection.execute("CREATE TABLE crowd AS FROM relation")
        relation = connection.table("crowd")
    return readers.typed(relation, numbers), chosen


@contextmanager
def plain_errors(path: Path, format: Format) -> Iterator[None]:
    """What DuckDB says of a file it cannot read, in words for people."""
    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, NOT_THE_FILE) or "Could not write" in str(error):
            raise
        if isinstance(error, duckdb.OutOfMemoryException):
            raise MemoryError(
                f"{path.name} needs more memory than there is: {brief(error)} "
                "Close other programs, or split the file by item."
            ) from error
        why = (readers.broken_line(path) if format == "jsonl" else "") or brief(error)
        what_next = "Repair it or copy it again, or name its format if that is another: --format "
        what_next += "|".join(readers.FORMATS) + "."
        if "utf-8" in why.lower():
            what_next = readers.convert(path.name)
        raise ValueError(
            f"{path.name} cannot be read as {format.upper()}: {why} {what_next}"
        ) from error


def brief(error: Exception) -> str:
    """The lines of an engine's message that a person can use."""
    text = str(error).split("Possible")[0].split("Try ")[0]
    if "state machine" in text:
        return "its quotes or its ends of lines do not follow the rules of CSV."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [x if len(x) < 160 else f"{x[:80]} ... {x[-60:]}" for x in lines]
    lines[0] = lines[0].split(" Error: ", 1)[-1]
    text = "; ".join(dict.fromkeys([*lines[:2], lines[-1]]))
    return text if text.endswith(".") else text + "."


def write(
    connection: Connection,
    relation: Relation,
    target: Path,
    how: str,
    about: dict[str, Any],
    beside: Mapping[Path, str],
) -> int:
    """Write a relation in the order of its identifiers, all of it or nothing; count its rows.

    `beside` are texts for other files, which come with it or not at all.
    """
    order = [c for c in relation.columns[:2] if c in (relation.columns[0], "label")]
    ordered = relation.order(", ".join(map(quote, order)))  # noqa: F841 (the query reads it)
    described = json.dumps(about, default=str)
    if parquet := how.startswith("FORMAT parquet"):
        how += f", KV_METADATA {{slencodings: {literal(described)}}}"
    if not parquet:
        # CSV and JSONL have no place to say how they were made.
        meta = json.dumps(about, indent=1, default=str)
        beside = {**beside, Path(f"{target}.meta.json"): meta}
    with replacing(target) as path, ExitStack() as others:
        for other, text in beside.items():
            new = others.enter_context(replacing(other))
            new.write_text(text + "\n", encoding="utf-8")
        # We write beside the target ourselves; DuckDB would do so once more.
        copy = f"COPY (FROM ordered) TO {literal(str(path))} ({how}, USE_TMP_FILE false)"
        return connection.execute(copy).fetchall()[0][0]


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"
