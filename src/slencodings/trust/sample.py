"""A sample of a large table that is enough to learn whom to trust."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import narwhals as nw

from slencodings.tables.columns import identifier
from slencodings.tables.engines import (
    ANNOTATOR,
    ITEM,
    Frame,
    distinct,
    open_table,
    small,
    to_arrays,
)
from slencodings.tables.roles import check_names

# A prime below 2**31, so that products stay below 2**62, and of which 5 does not divide P - 1:
# then x -> x**5 modulo P takes every number to another one.
_P, _A = 2**31 - 1, 1_181_783_497
# Rows that may be in a sample are kept in memory if they are at most so many times those that are.
_FEW = 4
# Types whose numbers are all those of a BIGINT.
_WHOLE = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32)


def sample_items(
    table: Any,
    *,
    item: str,
    annotator: str | None = None,
    share: float = 0.1,
    per_annotator: int = 100,
    seed: int = 0,
) -> Any:
    """Take all annotations of some of the items that have two or more, by different annotators.

    p_i = max(share, per_annotator / n_i),   n_i the fewest such items that an annotator of i has

    So each annotator keeps about `per_annotator` items, or all if they have fewer, and busy ones
    `share` of theirs. Whether an item is taken depends on its place among the sorted items and on
    the seed alone: the sample is the same in every engine but SQLite, for any order of rows.

    Parameters
    ----------
    table : as in `fuse_table`; the result is of the same kind, and lazy where the table is
    item, annotator : column names; rows that lack one of them are left out. Without annotators
        each row is somebody's, and `per_annotator` means nothing
    share : in [0, 1], how many of the items to take
    per_annotator : the items that each annotator should keep
    seed : a whole number of at least 0

    Examples
    --------
    >>> said = {"item": [1, 1, 2, 2, 3], "who": ["ann", "bob", "ann", "bob", "bob"]}
    >>> sample_items(said, item="item", annotator="who", share=1)["item"]
    array([1, 1, 2, 2])
    """
    _check_sizes(share, per_annotator, seed)
    frame, give_back = open_table(table)
    schema = frame.collect_schema()
    roles = [("item", item)] if annotator is None else [("item", item), ("annotator", annotator)]
    check_names(schema.names(), roles)
    frame = frame.with_columns(identifier(schema, item).alias(ITEM)).filter(~nw.col(ITEM).is_null())
    if annotator is None:
        items = frame.group_by(ITEM).agg(nw.len().alias("sle_n")).filter(nw.col("sle_n") > 1)
        per_annotator = 0
    else:
        frame = frame.with_columns(identifier(schema, annotator).alias(ANNOTATOR))
        frame = frame.filter(~nw.col(ANNOTATOR).is_null())
        items = _shared_items(frame)
    items = items.with_row_index("sle_at", order_by=ITEM)
    enough = nw.max_horizontal(nw.lit(float(share)), per_annotator / nw.col("sle_n"))
    taken = items.filter(_lot(nw.col("sle_at"), seed) < enough).select(ITEM)
    sample = frame.join(taken, on=ITEM, how="semi").select(*schema.names())
    return give_back(sample, {"share": share, "per_annotator": per_annotator, "seed": seed})


def sample_any_items(table: Any, *, item: str, share: float, seed: int = 0) -> Any:
    """Take all annotations of some of the items, whoever gave how many."""
    frame, give_back = open_table(table)
    schema = frame.collect_schema()
    frame = frame.with_columns(identifier(schema, item).alias(ITEM)).filter(~nw.col(ITEM).is_null())
    items = distinct(frame.select(ITEM)).with_row_index("sle_at", order_by=ITEM)
    taken = items.filter(_lot(nw.col("sle_at"), seed) < share).select(ITEM)
    sample = frame.join(taken, on=ITEM, how="semi").select(*schema.names())
    return give_back(sample, {"share": share, "seed": seed})


def sample_by_hash(
    relation: Any, *, item: str, annotator: str | None, size: int, per_annotator: int, seed: int
) -> dict[str, Any]:
    """As `sample_items`, about `size` annotations of a DuckDB relation too large to sort by item.

    The lot of an item is its hash, and annotators' items count whether they are shared or not: no
    table of all items or of all pairs. Where few items are shared, more are taken, up to all.
    """
    frame, _ = open_table(relation)
    schema = frame.collect_schema()
    frame = frame.with_columns(identifier(schema, item).alias(ITEM)).filter(~nw.col(ITEM).is_null())
    if annotator is not None:
        frame = frame.with_columns(identifier(schema, annotator).alias(ANNOTATOR))
        frame = frame.filter(~nw.col(ANNOTATOR).is_null())
    rows = int(small(frame.select(nw.len().alias("n")))["n"][0])
    fewest = _fewest_by_one(frame) if annotator is not None and per_annotator else None
    several = "count(*)" if annotator is None else f"count(DISTINCT {ANNOTATOR})"
    # To make text of whole numbers takes four times as long as to hash them.
    whole = isinstance(frame.collect_schema()[ITEM], _WHOLE)
    plain = "BIGINT" if whole else "VARCHAR"
    lot = f"hash(CAST({ITEM} AS {plain}), {seed}) / {2.0**64:.1f}"
    share = size / max(rows, 1)
    while True:
        most = share if fewest is None else max(share, per_annotator / fewest)
        query = f"FROM sle_rows WHERE {lot} < {share}"
        if most > share:
            # If the few rows that may be taken are kept, all are read and hashed once.
            kept = "MATERIALIZED" if most <= _FEW * share else "NOT MATERIALIZED"
            query = (
                f"WITH sle_few AS {kept} (SELECT *, {lot} AS sle_lot FROM sle_rows "
                f"WHERE sle_lot < {most}) FROM sle_few WHERE {ITEM} IN (SELECT {ITEM} FROM sle_few "
                f"JOIN (SELECT {ANNOTATOR}, count(*) AS sle_n FROM sle_rows GROUP BY 1) "
                f"USING ({ANNOTATOR}) WHERE sle_lot < greatest({share}, {per_annotator} / sle_n))"
            )
        query = (
            f"WITH sle_taken AS MATERIALIZED ({query}) FROM sle_taken WHERE {ITEM} IN "
            f"(SELECT {ITEM} FROM sle_taken GROUP BY 1 HAVING {several} > 1)"
        )
        some = nw.from_native(frame.to_native().query("sle_rows", query)).select(*schema.names())
        found = to_arrays(some)
        if len(found[item]) >= size / 2 or share >= 1:
            return found
        share *= 4


def _fewest_by_one(frame: Frame) -> int | None:
    """How many rows the least busy annotator has; None where there is nobody."""
    counts = frame.group_by(ANNOTATOR).agg(nw.len().alias("sle_n"))
    return small(counts.select(nw.col("sle_n").min()))["sle_n"][0]


def _shared_items(frame: Frame) -> Frame:
    """The items that several annotators share, with how many the least busy of these has."""
    # Who said something twice about an item has one of it.
    said = distinct(frame.select(ITEM, ANNOTATOR))
    several = said.group_by(ITEM).agg(nw.len().alias("sle_n")).filter(nw.col("sle_n") > 1)
    said = said.join(several.select(ITEM), on=ITEM, how="semi")
    counts = said.group_by(ANNOTATOR).agg(nw.len().alias("sle_n"))
    return said.join(counts, on=ANNOTATOR, how="inner").group_by(ITEM).agg(nw.col("sle_n").min())


def _lot(place: nw.Expr, seed: int) -> nw.Expr:
    """A number in [0, 1) for each place, as if drawn at random."""
    x = (place.cast(nw.Int64) * _A + (seed * 7_919 + 1) % _P) % _P
    for _ in range(2):
        square = x * x % _P
        x = (square * square % _P * x + 12_345) % _P
    return x / _P


def _check_sizes(share: Any, per_annotator: Any, seed: Any) -> None:
    if not (isinstance(share, Real) and 0 <= float(share) <= 1):
        raise ValueError(f"`share` must be a number in [0, 1]; {share!r} came. 0.1 is usual.")
    whole = {"per_annotator": per_annotator, "seed": seed}
    for name, value in whole.items():
        if not isinstance(value, Integral) or value < 0:
            raise ValueError(f"`{name}` must be a whole number of at least 0; {value!r} came.")
