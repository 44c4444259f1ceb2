"""What readers of exports are given: records, and where each of them stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"
Object: TypeAlias = dict[str, Json]
# What items, annotators and labels are called.
Name: TypeAlias = str | float
# A value, and the key that it stands under where it has one.
Keyed: TypeAlias = tuple[str | None, Json]


class ExportFile(NamedTuple):
    """One file of an export, what it and its folder are called, and how it is opened."""

    name: str
    folder: str
    open: Callable[[], IO[bytes]]
    path: Path | None = None


class Record(NamedTuple):
    """A record, where it stands, the key it stands under, and the part that it is in."""

    where: str
    key: str | None
    value: Object
    part: ExportFile


class Exported(NamedTuple):
    """The records of a tool, and what is asked of them.

    Attributes
    ----------
    dialect : the tool and dialect in words, such as "argilla v2"
    item : the field that names the item, if one was asked for
    left_out : how many of what are left out, which whoever reads the records counts
    """

    records: Iterable[Record]
    dialect: str
    item: str | None
    left_out: Counter[str]


def shown(value: object) -> str:
    """A value in a message: short, whatever it is."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
