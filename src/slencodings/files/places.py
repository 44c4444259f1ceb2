"""Where what is made may be written, and in which format: refused before any work is done."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from slencodings.choices import CsvStyle
from slencodings.files.beside import BESIDE
from slencodings.files.bucket import ADDRESS, check_object
from slencodings.files.excel import check_workbook
from slencodings.files.write import WRITERS


class Places(NamedTuple):
    """Where what is made goes: opinions, evidence that is kept, the crowd, and by what to part."""

    target: str | None
    into: str | None
    crowd: str | None
    parts: Sequence[str]


def check_places(places: Places, source: str | Sequence[str], style: CsvStyle) -> str:
    """How opinions are written, or an error if they cannot be, or would replace what is read."""
    target, into, crowd, parts = places
    if target is None and into is None:
        raise ValueError(
            "an output is needed, for opinions or for evidence to add to; neither came. "
            "Pass a target, or into='store.parquet'."
        )
    writer, stores = "", [] if into is None else [into]
    if parts:
        _check_parts(target, into, style)
        writer = check_folder(str(target), source)
    elif target is not None:
        writer = check_target(target, source, *stores, style=style)
    if target is not None and ADDRESS.match(target):
        check_object(target, [source] if isinstance(source, str) else source)
    if into is not None:
        _check_store(into, source)
    if crowd is not None:
        outputs = [target, f"{target}{BESIDE}"] if target else []
        check_place(crowd, source, *stores, *outputs)
    return writer


def _check_parts(target: str | None, into: str | None, style: CsvStyle) -> None:
    """Refuse what cannot be a folder of parts."""
    if target is None:
        raise ValueError("parts need a folder to be in; none came. Name it: target='folder'.")
    if into is not None:
        raise ValueError(
            f"a store has no columns to part opinions by; into={into!r} came with `partition_by`. "
            "Leave one of them out."
        )
    if style != "plain":
        raise ValueError(
            f"csv_style={style!r} is for one file; `partition_by` writes a folder of many. "
            "Leave one of them out."
        )


def check_target(
    target: str, source: str | Sequence[str], *others: str, style: CsvStyle = "plain"
) -> str:
    """How to write the target, or an error before any work is done."""
    if target == "-":
        check_style(style, "standard output")
        return WRITERS[".csv"]
    path = Path(target)
    if path.is_dir():
        raise IsADirectoryError(
            f"the output must be a file; {target!r} is a folder. "
            f"Name a file in it: {shlex.quote(str(path / 'targets.parquet'))}"
        )
    packed = path.suffix.lower() == ".gz"
    suffix = (Path(path.stem).suffix if packed else path.suffix).lower()
    if suffix not in WRITERS or (packed and suffix in (".parquet", ".xlsx")):
        raise ValueError(
            f"the name of the output chooses its format: {', '.join(WRITERS)} (also with .gz, "
            f"except Parquet and .xlsx); {path.name!r} came."
        )
    check_style(style, path.suffix.lower())
    if suffix == ".xlsx":
        check_workbook()
    if "://" not in target:  # Whether an object can be there is asked elsewhere.
        check_place(target, source, *others)
    return style if style != "plain" else WRITERS[suffix] + ", COMPRESSION gzip" * packed


def check_folder(target: str, source: str | Sequence[str]) -> str:
    """How to write the files of a folder that is not there yet, or an error before any work."""
    path = Path(target)
    suffix = path.suffix.lower() or ".parquet"
    if target == "-" or suffix not in WRITERS or suffix == ".xlsx":
        kinds = ", ".join(kind for kind in WRITERS if kind != ".xlsx")
        raise ValueError(
            "parts go into a folder, whose name may choose the format of its files: "
            f"{kinds}, or Parquet without an ending; {target!r} came."
        )
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise FileExistsError(
            f"the output must not be there yet; {target!r} is. Remove it, or name another."
        )
    if not path.is_dir():
        check_place(target, source)
    return WRITERS[suffix]


def check_style(style: CsvStyle, kind: str) -> None:
    """Refuse a style of CSV for what is none."""
    if style != "plain" and kind != ".csv":
        raise ValueError(f"csv_style={style!r} is for a file that ends in .csv; {kind} came.")


def check_place(target: str, source: str | Sequence[str], *others: str) -> None:
    """Refuse a place where no file can be written, or that of an input or another output."""
    path = Path(target)
    if "://" in target:
        raise ValueError(
            f"the output must be on this machine; {target!r} is not. Name a file here, and copy it "
            "there afterwards."
        )
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


def _check_store(store: str, source: str | Sequence[str]) -> None:
    """Refuse a place where no store can be, before any work is done."""
    if Path(store).suffix.lower() != ".parquet":
        raise ValueError(
            f"a store is a Parquet file; {Path(store).name!r} came. Name it store.parquet."
        )
    if ADDRESS.match(store):
        # Of two who add at once, the one who is first to write would be lost.
        here = Path(store).name
        raise ValueError(
            f"a store is locked while it is added to, which objects elsewhere cannot be; {store!r} "
            f"came. Copy it here, add to it with into={here!r}, and copy it back, one after the "
            "other."
        )
    check_place(store, source)


def check_rows_target(target: str, source: str | Sequence[str], style: CsvStyle = "plain") -> None:
    """Refuse a name for rows that says no format, before any work is done."""
    kind = Path(target).suffix.lower()
    check_style(style, "standard output" if target == "-" else kind)
    if target == "-":
        return
    if kind not in (".csv", ".tsv", ".json", ".jsonl", ".xlsx"):
        raise ValueError(
            "the name of the output chooses its format: .csv, .tsv, .json, .jsonl or .xlsx; "
            f"{Path(target).name!r} came."
        )
    if kind == ".xlsx":
        check_workbook()
    check_place(target, source)
