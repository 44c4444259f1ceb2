"""Files as the engine reads them: workbooks as CSV, and text as UTF-8 whatever it was.

What is so already is left where it is.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from slencodings.annotations import counted
from slencodings.progress import Say
from slencodings.tables.roles import listed, nearest

CHUNK = 1 << 20
# Larger files are looked at where they begin; what comes later is for the engine to meet.
LARGEST_LOOKED_AT = 1 << 28
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
# How other kinds of files begin; a zip file may be an export.
_KNOWN = (b"PAR1", b"PK\x03\x04", b"\x93NUMPY")
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Text has hardly any control characters; more than this share of them is no text.
MOST_CONTROLS = 0.1


def readable(
    path: Path, folder: Path, say: Say, *, encoding: str | None = None, sheet: str | None = None
) -> Path:
    """The file itself if the engine can read it, else a copy in the folder that it can.

    `encoding` and `sheet` say what is found out otherwise, and told.
    """
    # With all its folders, whose names may hold columns.
    copy = folder / "readable" / path.absolute().relative_to(path.absolute().anchor)
    if path.suffix.lower() in WORKBOOKS:
        copy = copy.with_name(copy.name + ".csv")
        copy.parent.mkdir(parents=True, exist_ok=True)
        _write_sheet(path, sheet, copy, say)
        return copy
    found = _encoding_of(path) if encoding is None else encoding
    if found is None:
        return path
    if copy.suffix.lower() == ".gz":
        copy = copy.with_suffix("")
    copy.parent.mkdir(parents=True, exist_ok=True)
    _write_utf8(path, found, copy, say, asked=encoding is not None)
    return copy


def is_gzip(path: Path) -> bool:
    """Whether a file is gzipped, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def unpacked(path: Path) -> IO[bytes]:
    """A file to read, unpacked if it is gzipped."""
    packed: Any = gzip.GzipFile(path) if is_gzip(path) else None
    return packed or path.open("rb")


def _encoding_of(path: Path) -> str | None:
    """The encoding of text that is not plain UTF-8; None if it is that, or no text at all."""
    try:
        with unpacked(path) as file:
            head = file.read(CHUNK)
            if head.startswith(_KNOWN):
                return None
            if found := _wide(head):
                return found
            controls = sum(head.count(byte) for byte in _CONTROLS)
            if controls > MOST_CONTROLS * len(head):
                return None
            marked = head.startswith(codecs.BOM_UTF8) and head[3:].lstrip()[:1] in (b"{", b"[")
            decoder, nul = codecs.getincrementaldecoder("utf-8")(), b"\0" in head
            decoder.decode(head)
            while path.stat().st_size <= LARGEST_LOOKED_AT and (chunk := file.read(CHUNK)):
                decoder.decode(chunk)
                nul = nul or b"\0" in chunk
            # JSON with a byte order mark and text with stray NUL bytes have to be cleaned.
            return "utf-8-sig" if nul or marked else None
    except UnicodeDecodeError:
        return "cp1252"
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return None  # Whoever reads it says that it is damaged.


_CONTROLS = [bytes([n]) for n in range(32) if n not in b"\t\n\r\x0b\x0c\x1b"]


def _wide(head: bytes) -> str | None:
    """The encoding of text in which each character takes two bytes or four, marked or not."""
    for mark, name in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return name
    # Of letters, digits and commas every second byte is zero, and of those between none.
    even, odd = (head[start:4096:2].count(0) for start in (0, 1))
    most = max(1, len(head[:4096:2])) / 2
    if odd > most and even == 0:
        return "utf-16-le"
    return "utf-16-be" if even > most and odd == 0 else None


def _write_utf8(path: Path, encoding: str, copy: Path, say: Say, *, asked: bool) -> None:
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ValueError(
            f"`encoding` must be one that Python knows, such as cp1252, latin-2, utf-16 or "
            f"shift-jis; {encoding!r} came."
        ) from None
    # Some bytes mean nothing in cp1252; they are kept as what they are in Latin-1.
    codecs.register_error("sle_latin1", _as_latin1)
    errors = "sle_latin1" if encoding == "cp1252" else "strict"
    removed = 0
    try:
        with (
            unpacked(path) as raw,
            io.TextIOWrapper(raw, encoding, errors, newline="") as text,
            copy.open("w", encoding="utf-8", newline="") as out,
        ):
            # A mark of the byte order is no part of the text.
            while chunk := text.read(CHUNK):
                removed += chunk.count("\0")
                out.write(chunk.replace("\0", "").removeprefix("\ufeff"))
    except UnicodeError as error:
        why = getattr(error, "reason", error)
        raise ValueError(
            f"{path.name} cannot be read as {encoding}: {why}. Name another: encoding='cp1252'."
        ) from error
    if not asked and encoding != "utf-8-sig":
        say(
            "note",
            f"{path.name} is read as {encoding}, for it is not UTF-8; --encoding names another",
        )
    if removed:
        say("note", f"{counted(removed, 'NUL byte')} in {path.name} left out")


def _as_latin1(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


def _write_sheet(path: Path, sheet: str | None, copy: Path, say: Say) -> None:
    """One sheet of a workbook as CSV: what was asked for, or the first that has anything."""
    try:
        calamine: Any = import_module("python_calamine")
    except ImportError as error:
        raise ImportError(
            f"{path.name} is a workbook, which needs a package to be read: "
            "pip install 'slencodings[excel]'. Or save it as CSV."
        ) from error
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
        names: list[str] = book.sheet_names
        sheets = {name: book.get_sheet_by_name(name).to_python() for name in names}
    except (calamine.CalamineError, OSError) as error:
        raise ValueError(
            f"{path.name} cannot be read as a workbook: {error}. Is it locked with a password, or "
            "damaged? Open it and save it again, or as CSV."
        ) from error
    filled = [name for name in names if len(_cells(sheets[name])) > 1]
    if sheet is None and not filled:
        raise ValueError(
            f"{path.name} has no sheet with a header and one row; at least that is needed."
        )
    if sheet is not None and sheet not in names:
        near = nearest(sheet, names)
        hint = f" Did you mean sheet={near!r}?" if near else ""
        raise ValueError(f"{path.name} has no sheet {sheet!r}; it has {listed(names)}.{hint}")
    chosen = filled[0] if sheet is None else sheet
    if sheet is None and len(filled) > 1:
        say("note", f"sheet {chosen!r} of {listed(filled)} is read; --sheet names another")
    with copy.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows(_cells(sheets[chosen]))


def _cells(rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    """The cells of a sheet as text, without rows and columns that hold nothing."""
    texts = [[_text(cell) for cell in row] for row in rows]
    texts = [row for row in texts if any(row)]
    used = [k for k in range(max(map(len, texts), default=0)) if any(row[k] for row in texts)]
    return [[row[k] for k in used] for row in texts]


def _text(cell: Any) -> str:
    """What a person sees in a cell: 3 for 3.0, and a day without its midnight."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)
