"""What goes with an item: the columns that name it together, and those kept beside its opinion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import duckdb

from slencodings.annotations import counted
from slencodings.files.write import quote
from slencodings.progress import Say
from slencodings.tables.roles import Reading

Relation: TypeAlias = duckdb.DuckDBPyRelation

# Between the parts of an item's name, as in exports with several questions.
BETWEEN = " / "


def item_parts(item: Any, names: Sequence[str]) -> list[str]:
    """The columns that name an item together; none if one does."""
    if not isinstance(item, str) or item in names or "," not in item:
        return []
    return [name.strip() for name in item.split(",")]


def joined_name(parts: Sequence[str], names: Sequence[str]) -> str:
    """What the column of items that several columns name is called."""
    taken = {name.casefold() for name in names}
    choices = ["item", "_".join(parts)]
    while choices[-1].casefold() in taken:
        choices.append(choices[-1] + "_")
    return next(name for name in choices if name.casefold() not in taken)


def join_item(relation: Relation, parts: Sequence[str], name: str) -> Relation:
    """The relation with a column of items that several columns name."""
    texts = [f"CAST({quote(part)} AS VARCHAR)" for part in parts]
    joined = relation.project(f"*, {f' || {BETWEEN!r} || '.join(texts)} AS {quote(name)}")
    pairs = joined.project(", ".join(map(quote, [name, *parts]))).distinct()
    alike = pairs.aggregate(f"{quote(name)} AS name, count(*) AS n", quote(name))
    found = alike.filter("n > 1 AND name IS NOT NULL").limit(1).fetchall()
    if found:
        raise ValueError(
            f"items that {', '.join(map(repr, parts))} name must differ when these are joined with "
            f"{BETWEEN!r}; several are {found[0][0]!r} then. Write them otherwise."
        )
    return joined


def carry(opinions: Relation, crowd: Relation, reading: Reading, say: Say) -> Relation:
    """Opinions with the columns that are to be kept: what the first row of each item has there."""
    kept = [name for name in dict.fromkeys(reading.keep) if name != reading.item]
    if not kept:
        return opinions
    for name in kept:
        if name.casefold() in [column.casefold() for column in opinions.columns]:
            raise ValueError(
                f"a column to keep must not be called like one of opinions; keep={name!r} came. "
                "Rename it."
            )
    item = quote(str(reading.item))
    rows = crowd.project("*, row_number() OVER () AS sle_row")
    columns = [
        f"arg_min({quote(n)}, sle_row) AS {quote(n)}, "
        f"min({quote(n)}) IS DISTINCT FROM max({quote(n)}) AS several{k}"
        for k, n in enumerate(kept)
    ]
    firsts = rows.aggregate(f"{item} AS sle_item, {', '.join(columns)}", item)
    several = ", ".join(f"count_if(several{k})" for k in range(len(kept)))
    for name, count in zip(kept, firsts.aggregate(several).fetchall()[0], strict=True):
        if count:
            say(
                "note", f"{counted(count, 'item')} with several {name!r}; the first of each is kept"
            )
    lead = [c for c in opinions.columns[:2] if c in (opinions.columns[0], "label")]
    rest = [c for c in opinions.columns if c not in lead]
    on = f"{quote(opinions.columns[0])} = sle_item"
    joined = opinions.set_alias("sle_o").join(firsts.set_alias("sle_k"), on, how="left")
    return joined.project(", ".join(map(quote, [*lead, *kept, *rest])))
