"""What one annotator said several times of one item: counted, refused, shared, or kept once."""

from __future__ import annotations

import math

import narwhals as nw

from slencodings.annotations import counted
from slencodings.choices import Duplicates
from slencodings.tables.engines import ANNOTATOR, ITEM, ROW, SHARE, Frame, small
from slencodings.tables.roles import Reading

# Counting who said something twice costs more than the fusing itself, so of more rows than these it
# is counted on a part of the items.
MOST_ROWS_TO_COUNT_DUPLICATES, ENOUGH_ROWS_TO_COUNT = 1_000_000, 250_000


def silenced(frame: Frame, answered: list[str], where: nw.Expr) -> Frame:
    """A dropped annotation says nothing, and its item stays."""
    return frame.with_columns(*(nw.when(~where).then(nw.col(c)).alias(c) for c in answered))


def once_each(frame: Frame, answered: list[str], reading: Reading) -> Frame:
    """What an annotator said several times of an item, as the reading takes it."""
    if reading.duplicates == "all":
        return frame
    check_named(reading)
    if reading.duplicates == "average":
        return _shared(frame, answered[0])
    return _without_duplicates(frame, answered, reading.duplicates)


def check_named(reading: Reading) -> None:
    """Refuse to look for what an annotator said twice where nobody is named."""
    if reading.annotator is None:
        raise ValueError(
            f"duplicates={reading.duplicates!r} needs to know who annotated; no annotator column "
            "came. Pass annotator='COLUMN'."
        )


def _shared(frame: Frame, first: str) -> Frame:
    """Each row with its SHARE: one source is one annotation, however often it was asked."""
    answered = nw.when(~nw.col(first).is_null()).then(1.0).otherwise(0.0)
    frame = with_sum_of_source(frame.with_columns(answered.alias(SHARE)), SHARE, SHARE)
    # Of who says nothing at all there is nothing to share.
    several = nw.col(SHARE) > 1
    return frame.with_columns(nw.when(several).then(1 / nw.col(SHARE)).otherwise(1.0).alias(SHARE))


def with_sum_of_source(frame: Frame, column: str, name: str) -> Frame:
    """Add what the rows of an item by one annotator add up to; those by nobody are one each."""
    # Dask takes a sum over rows for a table of its own until it is a column.
    frame = frame.with_columns(nw.col(column).sum().over(ITEM, ANNOTATOR).alias("sle_sum"))
    alone = nw.col(ANNOTATOR).is_null()
    found = nw.when(alone).then(nw.col(column)).otherwise(nw.col("sle_sum"))
    return frame.with_columns(found.alias(name)).drop("sle_sum")


def _without_duplicates(frame: Frame, answered: list[str], duplicates: Duplicates) -> Frame:
    if duplicates == "error":
        repeated = _repeated(frame, answered[0])
        if count := _more_than_once(repeated):
            example = small(repeated.select(ITEM, ANNOTATOR).head(1))
            raise ValueError(
                f"an annotator may label an item once; {counted(count, 'row')} "
                f"repeat{'s' * (count == 1)} an earlier pair, such as item {example[ITEM][0]!r} "
                f"by annotator {example[ANNOTATOR][0]!r}. Pass duplicates='first' or "
                "duplicates='last' to keep one of each, duplicates='average' to make one of them, "
                "duplicates='all' to keep them all."
            )
        return frame
    labelled = nw.when(~nw.col(answered[0]).is_null()).then(nw.col(ROW))
    frame = frame.with_columns(labelled.alias("sle_labelled"))
    at = nw.col("sle_labelled")
    kept = (at.min() if duplicates == "first" else at.max()).over(ITEM, ANNOTATOR)
    frame = frame.with_columns(kept.alias("sle_kept"))
    other = (nw.col(ROW) != nw.col("sle_kept")) & ~nw.col(ANNOTATOR).is_null()
    return silenced(frame, answered, other).drop("sle_labelled", "sle_kept")


def count_repeated(frame: Frame, first: str, rows: int) -> tuple[int, bool]:
    """How many rows of a DuckDB table repeat an earlier (item, annotator); whether that is exact.

    Of many rows they are counted on some of the items, chosen by a hash.
    """
    parts = 1 if rows <= MOST_ROWS_TO_COUNT_DUPLICATES else math.ceil(rows / ENOUGH_ROWS_TO_COUNT)
    if parts > 1:
        frame = nw.from_native(frame.to_native().filter(f"hash({ITEM}) % {parts} = 0"))
    return parts * _more_than_once(_repeated(frame, first)), parts == 1


def _repeated(frame: Frame, first: str) -> Frame:
    """The (item, annotator) of several labelled rows, and of how many."""
    labelled = frame.filter(~nw.col(first).is_null() & ~nw.col(ANNOTATOR).is_null())
    pairs = labelled.group_by(ITEM, ANNOTATOR).agg(nw.len().alias("sle_n"))
    return pairs.filter(nw.col("sle_n") > 1)


def _more_than_once(repeated: Frame) -> int:
    """How many rows repeat an earlier one."""
    (count,) = small(repeated.select((nw.col("sle_n") - 1).sum().alias("n")))["n"]
    return int(count or 0)
