"""Where to write: all of a new file in place of the old one, or nothing."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import duckdb

from slencodings.files.scratch import scratch_file

# Plain values by name.
Row: TypeAlias = Mapping[str, object]
# How DuckDB writes each kind of file.
WRITERS = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}

_FAILED_WRITE = re.compile(r'Could not write file \\?"(.*?)\\?": ([^"]+)')


def check_target(target: str, source: str | Sequence[str], *others: str) -> str:
    """How to write the target, or an error before any work is done."""
    if target == "-":
        return WRITERS[".csv"]
    path = Path(target)
    if path.is_dir():
        raise IsADirectoryError(
            f"the output must be a file; {target!r} is a folder. "
            f"Name a file in it: {shlex.quote(str(path / 'targets.parquet'))}"
        )
    packed = path.suffix.lower() == ".gz"
    suffix = (Path(path.stem).suffix if packed else path.suffix).lower()
    if suffix not in WRITERS or (packed and suffix == ".parquet"):
        raise ValueError(
            f"the name of the output chooses its format: {', '.join(WRITERS)} (also with .gz, "
            f"except Parquet); {path.name!r} came."
        )
    check_place(target, source, *others)
    return WRITERS[suffix] + (", COMPRESSION gzip" if packed else "")


def check_place(target: str, source: str | Sequence[str], *others: str) -> None:
    """Refuse a place where no file can be written, or that of an input or another output."""
    path = Path(target)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"the output needs a folder that is there; {str(path.parent)!r} is not. "
            f"Make it first: mkdir -p {shlex.quote(str(path.parent))}"
        )
    if path.is_dir():
        raise IsADirectoryError(f"the output must be a file; {target!r} is a folder. Name another.")
    inputs = [source] if isinstance(source, str) else list(source)
    for other in [*inputs, *others]:
        if path == Path(other) or (path.exists() and Path(other).exists() and path.samefile(other)):
            what = "its own input" if other in inputs else "the other output"
            raise ValueError(f"the output must not replace {what} {other!r}. Name another.")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise PermissionError(
            f"the output {target!r} cannot be written: {error.strerror}. Choose another place."
        ) from error


def check_rows_target(target: str, source: str | Sequence[str]) -> None:
    """Refuse a name for rows that says no format, before any work is done."""
    if target == "-":
        return
    if Path(target).suffix.lower() not in (".csv", ".tsv", ".json", ".jsonl"):
        raise ValueError(
            "the name of the output chooses its format: .csv, .tsv, .json or .jsonl; "
            f"{Path(target).name!r} came."
        )
    check_place(target, source)


def write_rows(rows: Sequence[Row], target: str, about: Row) -> None:
    """Write rows of plain values; JSON also says how they were made, under "about".

    Lists are JSON in a cell of CSV. JSON has no number for infinity, so it is the text "inf".
    """
    kind = Path(target).suffix.lower()
    if target == "-":
        sys.stdout.write(_as_csv(rows, ","))
        return
    if kind in (".csv", ".tsv"):
        text = _as_csv(rows, "\t" if kind == ".tsv" else ",")
    elif kind == ".jsonl":
        text = "".join(json.dumps(_finite(row), ensure_ascii=False) + "\n" for row in rows)
    else:
        content = {"about": _finite(about), "rows": [_finite(row) for row in rows]}
        text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    with replacing(Path(target)) as new:
        new.write_text(text, encoding="utf-8", newline="")


def _as_csv(rows: Sequence[Row], delimiter: str) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        lists = {
            k: json.dumps(v, ensure_ascii=False) for k, v in row.items() if isinstance(v, list)
        }
        writer.writerow({**row, **lists})
    return out.getvalue()


def _finite(row: Row) -> Row:
    return {k: str(v) if isinstance(v, float) and math.isinf(v) else v for k, v in row.items()}


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A new file to fill, which replaces `path` at the end, or is gone if that fails."""
    # A link stays a link, and what it points to is replaced.
    path = path.resolve()
    with scratch_file(path) as new:
        yield new
        with new.open("rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        new.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask)
        new.replace(path)


@contextmanager
def disk_errors() -> Generator[None]:
    """What goes wrong while writing, in words for people."""
    try:
        yield
    except duckdb.Error as error:
        if not is_of_disk(error):
            raise
        found = _FAILED_WRITE.search(str(error))
        what = f"{found[1]} could not be written: {found[2]}" if found else "the disk is full"
        raise OSError(
            f"{what}. What was there before is untouched. "
            "Free some space, choose another place, or set TMPDIR for scratch files."
        ) from error


def is_of_disk(error: duckdb.Error) -> bool:
    """Whether an engine could not write, be it to its scratch files."""
    return bool(_FAILED_WRITE.search(str(error))) or "max_temp_directory_size" in str(error)
