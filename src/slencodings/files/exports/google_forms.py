"""Forms of Google (and others): a row for each person who answered, a column for each item.

Questions in a grid have columns such as "How rude is it? [post 7]"; without a grid each column is
an item. A form with a row for each person and item is a long table, and needs no reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from slencodings.files.exports.answers import Answer, Reader, chosen
from slencodings.files.exports.fields import is_nothing, person
from slencodings.files.exports.record import Exported, Object
from slencodings.tables.roles import find_columns

GRID = re.compile(r"(.*\S) \[(.+)\]")
# The first column, in the language of whoever made the form.
TIMESTAMPS = {
    "Timestamp",
    "Zeitstempel",
    "Horodateur",
    "Marca temporal",
    "Informazioni cronologiche",
    "Carimbo de data/hora",
    "Tijdstempel",
    "Отметка времени",
    "タイムスタンプ",
}
# What a form counts and does not ask.
NOT_ASKED = {*TIMESTAMPS, "Score", "Total score"}


def _dialect(record: Object) -> str | None:
    grid = sum(GRID.fullmatch(name) is not None for name in record)
    return "google-forms, a grid" if grid > 1 and TIMESTAMPS & record.keys() else None


def _answers(export: Exported) -> Iterator[Answer]:
    for n, (where, _, row, _) in enumerate(export.records, 1):
        if export.item is not None:
            raise ValueError(
                f"{where}: the items of a form are its columns; item={export.item!r} came. "
                "Leave it out."
            )
        column = find_columns(list(row)).get("annotator")
        named = person(row.get(column), where) if column else None
        who = f"respondent {n}" if named is None else named
        grid = {name: found for name in row if (found := GRID.fullmatch(name))}
        for name, value in row.items():
            if name in NOT_ASKED or name == column or (grid and name not in grid):
                continue
            question, about = grid[name].groups() if grid else ("answer", name)
            if is_nothing(value):
                export.left_out["empty cells"] += 1
                continue
            yield Answer((n, about), question, about, who, chosen(value, where, name))


READER = Reader([{"*]"}], _dialect, _answers, plain=(set(), "google-forms, a column for each item"))
