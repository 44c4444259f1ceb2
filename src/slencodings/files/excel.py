"""Tables for people who open them in a spreadsheet: workbooks, and CSV that Excel understands.

Text that a spreadsheet would take for a formula is made safe: an apostrophe goes before it in CSV,
and in a workbook it is a cell of text.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from slencodings.choices import CsvStyle

# The rows of a sheet, its header among them.
MOST_ROWS = 1 << 20
# XML has no such characters.
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def safe(cell: Any) -> Any:
    """A cell of CSV that no spreadsheet takes for a formula.

    >>> [safe(cell) for cell in ("=1+1", "-0.5", "- no", "yes", -0.5)]
    ["'=1+1", '-0.5', "'- no", 'yes', -0.5]
    """
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    with suppress(ValueError):
        float(cell)
        return cell  # A number is safe.
    return "'" + cell


def write_csv(
    path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], style: CsvStyle
) -> int:
    """Write CSV that Excel opens at a double click, and count the rows.

    A byte order mark says that it is UTF-8. Where semicolons part cells, commas part decimals.
    """
    semicolon = style == "excel-semicolon"

    def cell(value: Any) -> Any:
        if isinstance(value, float):
            return repr(value).replace(".", ",") if semicolon else value
        return safe(_as_cell(value))

    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=";" if semicolon else ",", lineterminator="\r\n")
        writer.writerow([safe(name) for name in names])
        written = [writer.writerow([cell(value) for value in row]) for row in rows]
    return len(written)


def check_workbook() -> Any:
    """What writes workbooks, or an error that says how to get it."""
    try:
        return import_module("openpyxl")
    except ImportError as error:
        raise ImportError(
            "a workbook needs a package to be written: pip install 'slencodings[excel]'. "
            "Or name the output .csv."
        ) from error


def write_workbook(
    path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], about: Mapping[str, object]
) -> int:
    """Write a workbook of one table and, in a second sheet, how that was made; count the rows."""
    openpyxl = check_workbook()
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("table")
    sheet.freeze_panes = "A2"

    def cell(value: Any) -> Any:
        plain = _as_cell(value)
        if isinstance(plain, float) and plain - plain != 0:
            plain = str(plain)  # Not finite, which no cell can be.
        if not isinstance(plain, str):
            return plain
        made = WriteOnlyCell(sheet, _NOT_IN_XML.sub("\ufffd", plain)[:32_767])
        made.data_type = "s"  # Even if it looks like a formula.
        return made

    count = 0
    for count, row in enumerate(chain([names], rows)):
        if count == MOST_ROWS:
            sheet.close()  # Or its writer complains when it is collected, to whoever runs then.
            raise ValueError(
                f"a sheet has {MOST_ROWS:,} rows at most; there are more. "
                "Name the output .csv or .parquet."
            )
        sheet.append([cell(value) for value in row])
    notes = book.create_sheet("about")
    for name, value in about.items():
        notes.append([cell(name), cell(value)])
    book.save(path)
    book.close()
    return count


def _as_cell(value: Any) -> Any:
    """What a cell can hold: lists and objects as JSON, times as text."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple | Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
