"""Files to tables: what is in the file, and which column is what."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from slencodings.columns import check_names

if TYPE_CHECKING:
    import duckdb

Format: TypeAlias = Literal["csv", "tsv", "parquet", "jsonl", "json"]
FORMATS: tuple[Format, ...] = ("csv", "tsv", "parquet", "jsonl", "json")

# The usual names of columns, the likeliest first; compared without case and punctuation.
USUAL_NAMES = {
    "item": "item task example unit instance sample document doc post image sentence question text",
    "annotator": "annotator worker rater coder labeler labeller judge participant subject user",
    "label": "label answer response annotation judgment judgement choice vote class rating",
    "confidence": "confidence certainty sureness",
    "uncertainty": "uncertainty doubt",
    "reliability": "reliability trust skill",
}
NUMBERS = ("confidence", "uncertainty", "reliability")
# What other programs write in a column of numbers where there is none.
NO_NUMBER = ("", "na", "n/a", "nan", "null", "none")


def find_columns(names: Sequence[str]) -> dict[str, str]:
    """Guess which column plays which role by its name.

    >>> find_columns(["Task ID", "WorkerId", "answer", "notes"])
    {'item': 'Task ID', 'annotator': 'WorkerId', 'label': 'answer'}
    """
    plain = {_plain(name): name for name in reversed(names)}
    found: dict[str, str] = {}
    for role, usual in USUAL_NAMES.items():
        forms = [form for word in usual.split() for form in (word, f"{word}_id", f"{word}_name")]
        match = next((plain[form] for form in forms if form in plain), None)
        if match is not None and match not in found.values():
            found[role] = match
    return found


def choose_columns(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The column, columns or number for each role: what is given, and the rest by name."""
    given = {role: column for role, column in given.items() if column is not None}
    taken = {
        name for column in given.values() for name in ([column] if isinstance(column, str) else [])
    }
    found = {
        role: name
        for role, name in find_columns([n for n in names if n not in taken]).items()
        if role not in given
    }
    if {"confidence", "uncertainty"} & set(given):
        found = {
            role: name for role, name in found.items() if role not in ("confidence", "uncertainty")
        }
    elif "confidence" in found:
        found.pop("uncertainty", None)
    chosen = found | given
    for role in ("item", "label"):
        if role not in chosen:
            raise ValueError(
                f"no column looks like the {role}; the columns are {', '.join(map(repr, names))}. "
                f"Name it: --{role} COLUMN."
            )
    check_names(
        names,
        [
            (r, n)
            for r, c in chosen.items()
            for n in ([c] if isinstance(c, str) else c if isinstance(c, list) else [])
        ],
    )
    return {role: chosen[role] for role in USUAL_NAMES if role in chosen}


def _plain(name: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")


def format_of(path: Path) -> Format:
    """The format of a file, by its name or else by how it begins."""
    suffixes = [s for s in path.suffixes[-2:] if s not in (".gz", ".zst")]
    known = {f".{f}": f for f in FORMATS} | {".pq": "parquet", ".ndjson": "jsonl", ".txt": "csv"}
    if suffixes and suffixes[-1].lower() in known:
        return cast(Format, known[suffixes[-1].lower()])
    return sniff(path)


def sniff(path: Path) -> Format:
    """The format of a file by its first bytes."""
    with path.open("rb") as file:
        head = file.read(4096)
    if head[:2] == b"\x1f\x8b":
        with gzip.open(path) as file:
            head = file.read(4096)
    if head[:4] == b"PAR1":
        return "parquet"
    if b"\x00" in head:
        raise ValueError(
            f"{path.name} must be CSV, TSV, Parquet or JSONL; it is a binary file of another kind "
            f"(it begins with {head[:8]!r}). Export it to one of these first."
        )
    text = head.lstrip()
    if text[:1] == b"{":
        return "jsonl"
    if text[:1] == b"[":
        return "json"
    first = text.split(b"\n", 1)[0]
    return "tsv" if first.count(b"\t") > first.count(b",") else "csv"


def scan(
    connection: duckdb.DuckDBPyConnection, path: Path, format: Format
) -> duckdb.DuckDBPyRelation:
    """A lazy relation over a file. Text stays text, so that the item 007 stays 007."""
    name = str(path)
    if format == "parquet":
        return connection.read_parquet(name)
    compression = "gzip" if _is_gzip(path) else None
    if format in ("jsonl", "json"):
        lines = "newline_delimited" if format == "jsonl" else "auto"
        return connection.read_json(name, format=lines, compression=compression)
    delimiter = "\t" if format == "tsv" else None
    return connection.read_csv(
        name, header=True, all_varchar=True, compression=compression, delimiter=delimiter
    )


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def typed(relation: duckdb.DuckDBPyRelation, numbers: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """The relation with text turned into numbers in some columns; other words are refused."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    for name in numbers:
        if types.get(name) != "VARCHAR":
            continue
        text = '"' + name.replace('"', '""') + '"'
        none = ", ".join(f"'{word}'" for word in NO_NUMBER)
        number = f"TRY_CAST({text} AS DOUBLE)"
        wrong = f"{text} IS NOT NULL AND {number} IS NULL AND lower(trim({text})) NOT IN ({none})"
        numbered = relation.project(
            f"row_number() OVER () - 1 AS row, {text} AS value, {wrong} AS wrong"
        )
        bad = numbered.filter("wrong")
        count, row, value = bad.aggregate("count(*), min(row), arg_min(value, row)").fetchall()[0]
        if count:
            raise ValueError(
                f"column {name!r} must hold numbers; {count} rows do not, first {value!r} at row "
                f"{row} (from 0). Map its words to numbers first, or name another column."
            )
        relation = relation.project(f"* REPLACE ({number} AS {text})")
    return relation
