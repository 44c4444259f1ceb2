"""Files as the engine reads them: workbooks as CSV, and text as UTF-8 whatever it was.

What is so already is left where it is.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import signal
import subprocess
import sys
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from slencodings.annotations import counted
from slencodings.files import sheets
from slencodings.progress import Say
from slencodings.tables.roles import listed, nearest

CHUNK = 1 << 20
# Larger files are looked at where they begin; what comes later is for the engine to meet.
LARGEST_LOOKED_AT = 1 << 28
# Tables of text become a tenth of their size when they are packed, or a hundredth. What becomes far
# larger than it was, and large at all, was made to fill a disk.
LARGEST_UNPACKED, MOST_TIMES = 1 << 30, 300
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
    packed: Any = Gzipped(path) if is_gzip(path) else None
    return packed or path.open("rb")


class Gzipped(gzip.GzipFile):
    """A gzipped file to read, which is refused where it unpacks to what no table has."""

    def __init__(self, path: Path) -> None:
        """Open the file."""
        super().__init__(path)
        self.path = path

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes."""
        return self._in_bounds(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        """At most so many bytes, without waiting for more."""
        return self._in_bounds(super().read1(size))

    def _in_bounds(self, data: bytes) -> bytes:
        check_unpacked(self.path, self.tell())
        return data


def check_unpacked(path: Path, size: int) -> None:
    """Refuse a packed file that becomes far larger than it is."""
    if size > LARGEST_UNPACKED and size > MOST_TIMES * path.stat().st_size:
        raise ValueError(
            f"{path.name} unpacks to {size:,} bytes or more from {path.stat().st_size:,}, which no "
            f"table does; at most {MOST_TIMES} times its size is read. If it is meant so, unpack "
            "it yourself (save a workbook as CSV), and name what comes out."
        )


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
            f"{path.name} is read as {encoding}, for it is not UTF-8; `encoding` names another",
        )
    if removed:
        say("note", f"{counted(removed, 'NUL byte')} in {path.name} left out")


def _as_latin1(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


def _size_of_parts(path: Path) -> int:
    """What the parts of a workbook say they unpack to; its reader refuses those that say less."""
    try:
        with zipfile.ZipFile(path) as parts:
            return sum(part.file_size for part in parts.infolist())
    except Exception:  # What is no zip file, as .xls is none, or is damaged in many ways.
        return 0


def _write_sheet(path: Path, sheet: str | None, copy: Path, say: Say) -> None:
    """One sheet of a workbook as CSV: what was asked for, or the first that has anything."""
    if find_spec("python_calamine") is None:
        raise ImportError(
            f"{path.name} is a workbook, which needs a package to be read: "
            "pip install 'slencodings[excel]'. Or save it as CSV."
        )
    check_unpacked(path, _size_of_parts(path))
    asked = [] if sheet is None else [sheet]
    # -P, or modules beside that file would be taken for Python's own.
    seconds = sheets.most_seconds(path.stat().st_size)
    command = [sys.executable, "-P", sheets.__file__, str(path), str(copy), str(seconds), *asked]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    found: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    if "names" not in found:
        broken = "its parts do not fit together"
        if "memory" in done.stderr.lower():
            broken = "it takes more memory than it may"
        elif -done.returncode == getattr(signal, "SIGXCPU", None):
            broken = "it takes more time than it may"
        raise ValueError(
            f"{path.name} cannot be read as a workbook: {found.get('error', broken)}. Is it locked "
            "with a password, or damaged, or is a cell filled far from the others? Open it and "
            "save it again, or as CSV."
        )
    names, filled = found["names"], found["filled"]
    if sheet is None and not filled:
        raise ValueError(
            f"{path.name} has no sheet with a header and one row; at least that is needed."
        )
    if sheet is not None and sheet not in names:
        near = nearest(sheet, names)
        hint = f" Did you mean sheet={near!r}?" if near else ""
        raise ValueError(f"{path.name} has no sheet {sheet!r}; it has {listed(names)}.{hint}")
    if sheet is None and len(filled) > 1:
        say("note", f"sheet {filled[0]!r} of {listed(filled)} is read; `sheet` names another")
