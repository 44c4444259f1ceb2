"""Rows of plain values, such as those of a verb, to a file that people or programs read."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from slencodings.choices import CsvStyle
from slencodings.files.excel import check_workbook
from slencodings.files.write import AnyRow, check_place, check_style, replacing, write_for_people


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


def write_rows(
    rows: Sequence[AnyRow], target: str, about: AnyRow, style: CsvStyle = "plain"
) -> None:
    """Write rows of plain values; JSON also says how they were made, under "about".

    Lists are JSON in a cell of CSV. JSON has no number for infinity, so it is the text "inf".
    """
    kind = Path(target).suffix.lower()
    if target == "-":
        sys.stdout.write(_as_csv(rows, ","))
        return
    if kind == ".xlsx" or style != "plain":
        names = list(dict.fromkeys(name for row in rows for name in row))
        cells = ([row.get(name) for name in names] for row in rows)
        with replacing(Path(target)) as new:
            write_for_people(new, names, cells, "xlsx" if kind == ".xlsx" else style, about)
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


def _as_csv(rows: Sequence[AnyRow], delimiter: str) -> str:
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


def _finite(row: AnyRow) -> AnyRow:
    return {k: str(v) if isinstance(v, float) and math.isinf(v) else v for k, v in row.items()}
