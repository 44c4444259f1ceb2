"""Where annotations lie: a file, a pipe, several files, a folder, a pattern, or an address."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeAlias, cast, get_args

import duckdb

from slencodings.annotations import counted, some
from slencodings.choices import TableFormat
from slencodings.files import exports
from slencodings.files.beside import tells_about_others
from slencodings.files.bucket import ADDRESS, file_system, objects
from slencodings.files.readable import WORKBOOKS, readable
from slencodings.progress import Say
from slencodings.tables.roles import Reading, nearest

Connection: TypeAlias = duckdb.DuckDBPyConnection
Relation: TypeAlias = duckdb.DuckDBPyRelation

# The extension of DuckDB for each kind of address, without which it does not know them.
EXTENSIONS = {
    scheme: extension
    for extension, schemes in {
        "httpfs": "s3 s3a s3n gcs gs r2 hf http https",
        "azure": "az azure abfss",
    }.items()
    for scheme in schemes.split()
}
SUFFIXES = (*(f".{f}" for f in get_args(TableFormat)), ".pq", ".ndjson", *WORKBOOKS)
# The column by which readers of exports say which label a yes or no is about.
QUESTION = "question"


class Source(NamedTuple):
    """Files of annotations, in the order of their rows.

    Attributes
    ----------
    name : what people call them all
    files : paths or, if they are not on this machine, addresses
    local : whether they are on this machine
    folders : whether names of folders hold columns, as day=2026-11-16 does
    empty : how many files have nothing in them, and are not among `files`
    twice : those that several names stand for
    root : the one file or folder of this machine that was named, if it was one
    known : columns that nobody need be told of when they are not used
    store : whether it is a store of evidence, and not annotations
    """

    name: str
    files: list[str]
    local: bool = True
    folders: bool = False
    empty: int = 0
    twice: Sequence[str] = ()
    root: str | None = None
    known: tuple[str, ...] = ()
    store: bool = False


def locate(connection: Connection, names: str | Sequence[str], folder: Path) -> Source:
    """Find the files that names stand for; what comes through a pipe is copied into the folder."""
    names = [names] if isinstance(names, str) else list(names)
    names, same = _once(names)
    remote = [name for name in names if ADDRESS.match(name)]
    if remote and len(remote) < len(names):
        raise ValueError(
            f"files must all be on this machine, or none; {remote[0]!r} is not. Encode them apart."
        )
    if remote:
        files = [file for name in names for file in _addresses(connection, name)]
    elif len(names) == 1 and not _is_many(names[0]):
        path = _one(names[0], folder)
        store = is_store(connection, path)
        return Source(path.name, [str(path)], twice=same, root=str(path), store=store)
    else:
        files = [str(path) for name in names for path in _paths(name)]
    files, again = _once(files)
    filled = [file for file in files if remote or Path(file).stat().st_size]
    if not filled:
        raise ValueError(
            f"there is no data in {names[0]!r}; at least a header and one row are needed."
        )
    called = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    folders = any("=" in part for file in filled for part in _below(names, file))
    root = names[0] if len(names) == 1 and Path(names[0]).is_dir() else None
    store = not remote and len(filled) == 1 and is_store(connection, Path(filled[0]))
    empty, twice = len(files) - len(filled), sorted({*same, *again})
    return Source(called, filled, not remote, folders, empty, twice, root, store=store)


def _once(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Each file or address once, and those that came again, in the same words or others."""
    found: dict[str, str] = {}
    again: set[str] = set()
    for name in names:
        place = name if ADDRESS.match(name) else os.path.abspath(name)
        if place in found:
            again.add(found[place])
        found.setdefault(place, name)
    return list(found.values()), sorted(again)


def converted(source: Source, reading: Reading, folder: Path, say: Say) -> Source:
    """The source with copies in the folder of what the engine could not read."""
    if source.empty:
        say("note", f"{counted(source.empty, 'empty file')} left out")
    if source.twice:
        say("note", f"named more than once, read once: {some(source.twice)}")
    if not source.local:
        return source
    how = {"encoding": reading.encoding, "sheet": reading.sheet}
    new = {file: str(readable(Path(file), folder, say, **how)) for file in source.files}
    root = source.root and new.get(source.root, source.root)
    return source._replace(files=list(new.values()), root=root)


def read_tool(source: Source, reading: Reading, folder: Path, say: Say) -> tuple[Source, Reading]:
    """What an annotation tool exported, as a file of rows in the folder; other files as they are.

    With it comes the reading of what is left to say: rows have columns of our own names.
    """
    tool = reading.format if reading.format in exports.FORMATS else None
    if reading.multi is not None:
        _check_several(tool, reading)
        tool = "several"
    source = converted(source, reading, folder, say)
    if tool is None and reading.format is None and source.root is not None:
        tool = exports.recognise(source.root)
    if tool is None:
        if reading.question is not None:
            raise ValueError(
                f"a question is for what annotation tools export; {source.name} is none. "
                "Leave it out, or name the tool: format='label-studio'."
            )
        return source, reading
    if source.root is None:
        raise ValueError(
            f"an export is read alone, from one file or folder; {source.name} came. "
            "Encode them apart."
        )
    export = _read_export(source.root, tool, reading)
    say("export", f"{source.name} is of {export.tool}")
    for note in export.notes:
        say("note", note)
    path = folder / "export.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in export.rows())
    ours = replace(reading, item=None, annotator=None, label=None)
    if tool == "several":  # Other columns stand beside these, and may have such names too.
        who = "annotator" if "annotator" in export.columns else None
        ours = replace(ours, item="item", annotator=who, label="label")
    if _named(reading.confidence) and "confidence" in export.columns:
        ours = replace(ours, confidence=None)
    return Source(source.name, [str(path)], known=(QUESTION,)), ours


def _check_several(tool: str | None, reading: Reading) -> None:
    """Refuse what makes no sense where people choose several labels in a cell."""
    if tool not in (None, "several"):
        raise ValueError(
            f"`multi` is for tables with several labels in a cell; format={tool!r} came, which "
            "tells itself where people may choose several. Leave one of them out."
        )
    if reading.labels is not None:
        raise ValueError(
            f"with `multi` each label is a yes or no; {reading.named}={list(reading.labels)!r} "
            f"came too. Leave `{reading.named}` out."
        )


def _read_export(root: Any, tool: str, reading: Reading) -> exports.Export:
    """Read an export by what was said of its columns."""
    read = partial(
        exports.read_export, root, format=tool, question=reading.question, item=reading.item
    )
    people, labels, confidence = reading.annotator, reading.label, _named(reading.confidence)
    if tool == "several":
        return read(
            annotator=people,
            label=cast("str | None", labels),
            confidence=confidence,
            separator=reading.multi,
        )
    if tool == "wide" and people is not None:
        return read(annotators=[name.strip() for name in people.split(",")])
    if tool == "counts" and isinstance(labels, str):
        return read(labels=[name.strip() for name in labels.split(",")])
    for role, name in (("annotator", people), ("label", labels)):
        if name not in (None, role):
            raise ValueError(
                f"an export says itself what its {role} is; {role}={name!r} came. Leave it out."
            )
    return read(confidence=confidence)


def _named(spec: Any) -> str | None:
    """The name of a column or question; None for a number that is one for all."""
    with suppress(TypeError, ValueError):
        float(spec)
        return None
    return spec


def is_store(connection: Connection, path: Path) -> bool:
    """Whether a file is a store of evidence, of whatever kind."""
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return False
    with suppress(duckdb.Error):  # Whoever reads it says what is wrong with it.
        return "store" in metadata(connection, path)
    return False


def metadata(connection: Connection, path: Path) -> dict[str, Any]:
    """What we have written about a Parquet file into itself; nothing if it is not ours."""
    query = "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'slencodings'"
    found = connection.execute(query, [glob.escape(str(path))]).fetchall()
    with suppress(ValueError, RecursionError):  # We write none that cannot be read.
        about: Any = json.loads(found[0][0]) if found else {}
        return cast("dict[str, Any]", about) if isinstance(about, dict) else {}
    return {}


def _is_many(name: str) -> bool:
    """Whether a name is a folder, or a pattern (and not that of a file that is called so)."""
    return Path(name).is_dir() or (bool(glob.has_magic(name)) and not Path(name).exists())


def _one(name: str, folder: Path) -> Path:
    """A file that has something in it, copied if it can be read but once."""
    path = Path(name)
    if name == "-" or (path.exists() and not path.is_file()):
        copy = folder / "stdin"
        with (
            copy.open("wb") as file,
            sys.stdin.buffer if name == "-" else path.open("rb") as pipe,
        ):
            shutil.copyfileobj(pipe, file)
        path = copy
    _check_there(path)
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty; at least a header and one row are needed.")
    return path


def _check_there(path: Path) -> None:
    if path.exists():
        return
    if path.is_symlink():
        raise FileNotFoundError(
            f"{str(path)!r} is a link to {str(path.readlink())!r}, which is not there."
        )
    here = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    # Endings that are alike make no names alike.
    stems = {PurePath(name).stem: name for name in reversed(here)}
    near = stems.get(nearest(path.stem, list(stems)) or "")
    meant = f" Did you mean {str(path.with_name(near))!r}?" if near else ""
    raise FileNotFoundError(f"there is no file {str(path)!r}.{meant}")


def _paths(name: str) -> list[Path]:
    """The files of a folder that look like data, or all that a pattern stands for."""
    if not _is_many(name):
        _check_there(Path(name))
        return [Path(name)]
    folder = Path(name).is_dir()
    found = Path(name).rglob("*") if folder else map(Path, glob.glob(name, recursive=True))
    files = sorted(
        path
        for path in found
        if path.is_file()
        and not tells_about_others(path.name)
        and not any(part.startswith(("_", ".")) for part in _below([name], str(path)))
        and (not folder or path.name.lower().removesuffix(".gz").endswith(SUFFIXES))
    )
    if not files:
        what = f"that ends in {', '.join(SUFFIXES)} (also .gz)" if folder else "that matches"
        raise FileNotFoundError(f"there is no file {what} in {name!r}. Name one, or a pattern.")
    return files


def _below(names: Sequence[str], file: str) -> tuple[str, ...]:
    """The parts of a path that nobody named: those below a folder, or that a pattern matched."""
    for name in names:
        parts = PurePath(name).parts
        fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        below = PurePath(file).parts
        if below[:fixed] == parts[:fixed]:
            return below[fixed:]
    return ()


def _addresses(connection: Connection, name: str) -> list[str]:
    """The files that an address stands for, once the engine can reach it."""
    match = ADDRESS.match(name)
    assert match is not None, "it was recognised before"
    scheme = match[1].lower()
    try:
        if not _has_extension(connection, scheme):
            _through_fsspec(connection, scheme, name)
        found = connection.execute("SELECT file FROM glob(?) ORDER BY file", [name]).fetchall()
    except (duckdb.Error, OSError) as error:
        # Of an error in Python, DuckDB tells where it was before it tells what.
        found = re.findall(r"^\w+Error: .*", str(error), re.MULTILINE) or [str(error)]
        why = found[-1 if str(error).startswith("Traceback") else 0].removesuffix(".")
        raise OSError(
            f"{name!r} cannot be reached: {why}. Check the address, and that its credentials are "
            "where DuckDB (CREATE PERSISTENT SECRET) or fsspec (environment) look for them."
        ) from error
    files: list[str] = [file for (file,) in found]
    if not glob.has_magic(name) and not name.lower().removesuffix(".gz").endswith(SUFFIXES):
        with suppress(ImportError):  # A folder, of which DuckDB says nothing or its name.
            files = objects(name, SUFFIXES) or files
    if not files:
        raise FileNotFoundError(f"there is no file {name!r}.")
    return [f for f in files if f == name or not tells_about_others(PurePath(f).name)]


def _has_extension(connection: Connection, scheme: str) -> bool:
    """Whether DuckDB can read such addresses by itself; nothing is downloaded for it."""
    query = "SELECT installed FROM duckdb_extensions() WHERE extension_name = ?"
    return (True,) in connection.execute(query, [EXTENSIONS.get(scheme)]).fetchall()


def _through_fsspec(connection: Connection, scheme: str, name: str) -> None:
    if connection.filesystem_is_registered(scheme):
        return
    try:
        connection.register_filesystem(file_system(name))
    except ImportError as error:
        if own := EXTENSIONS.get(scheme):
            raise ImportError(
                f"{error}; or, once, duckdb.sql('INSTALL {own}') in Python"
            ) from error
        raise
