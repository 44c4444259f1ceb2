"""A sheet of a workbook as CSV, by its own process: `python sheets.py BOOK OUT SECONDS [SHEET]`.

What reads workbooks makes room for every cell between the first and the last that hold something,
and ends its process where that is more than there is: two cells in a file of 2 kB are enough
(tafia/calamine issue 693). Of some damaged files it never comes to the end. So that process is
another one, with limits, and nothing of ours but this file is in it.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time
from importlib import import_module
from typing import Any

# The most memory that a workbook may take, or half of what the machine has.
MOST = 8 << 30


def main(path: str, out: str, seconds: str, sheet: str | None = None) -> None:
    """Write the sheet that is asked for, or the first that has anything, and tell of all."""
    _limit(int(seconds))
    calamine: Any = import_module("python_calamine")
    filled: list[str] = []
    try:
        book = calamine.CalamineWorkbook.from_path(path)
        names: list[str] = book.sheet_names
        for name in names if sheet is None else [name for name in names if name == sheet]:
            cells = texts(book.get_sheet_by_name(name).to_python())
            filled += [name] if len(cells) > 1 else []
            if sheet is not None or filled == [name]:
                with open(out, "w", encoding="utf-8", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(cells)
    except (calamine.CalamineError, OSError) as error:
        print(json.dumps({"error": str(error)}))
    else:
        print(json.dumps({"names": names, "filled": filled}))


def most_seconds(size: int) -> int:
    """The seconds of a processor that a workbook of so many bytes may take.

    A small one that is damaged is told soon; a large one is not given up for being large.
    """
    return min(5 + size // 2_000, 30 + size // 100_000)


def _limit(seconds: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits.
        import resource

        most = min(MOST, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def texts(rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    """The cells of a sheet as text, without rows and columns that hold nothing."""
    found = [[text(cell) for cell in row] for row in rows]
    found = [row for row in found if any(row)]
    used = [k for k in range(max(map(len, found), default=0)) if any(row[k] for row in found)]
    return [[row[k] for k in used] for row in found]


def text(cell: Any) -> str:
    """What a person sees in a cell: 3 for 3.0, and a day without its midnight."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)


if __name__ == "__main__":
    main(*sys.argv[1:])
