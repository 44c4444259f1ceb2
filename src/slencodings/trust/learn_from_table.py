"""Learn about a crowd from a table of any size, in whatever engine, and tell what was learned.

Of a large table, a sample is enough to learn whom to trust.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, cast

import narwhals as nw
import numpy as np

from slencodings.annotations import by_annotators, counted
from slencodings.tables.arrays import read_annotations
from slencodings.tables.columns import found_labels, identifier, label_column
from slencodings.tables.engines import (
    ANNOTATOR,
    ITEM,
    LABEL,
    Frame,
    distinct,
    is_database,
    is_spark,
    open_table,
    small,
    to_arrays,
)
from slencodings.tables.roles import Reading, check_names
from slencodings.trust.crowd import Crowd
from slencodings.trust.learn_crowd import MOST_LABELS, count_each, learn_crowd

# Fewer annotations that share items than these teach nothing that would hold for others.
LEAST_TO_LEARN_FROM = 30
# More annotations than these teach little more and take long: then about half as many are sampled.
MOST_TO_LEARN_FROM, SAMPLED = 200_000, 100_000
# Items that each annotator keeps in a sample, unless annotators are very many.
_ITEMS_OF_EACH = 100
# A prime below 2**31, so that products stay below 2**62, and of which 5 does not divide P - 1:
# then x -> x**5 modulo P takes every number to another one.
_P, _A = 2**31 - 1, 1_181_783_497
# Rows that may be in a sample are kept in memory if they are at most so many times those that are.
_FEW = 4
# Types whose numbers are all those of a BIGINT.
_INTEGERS = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32)


def learn_from_table(
    table: Any,
    reading: Reading,
    *,
    seed: int = 0,
    say: Callable[[str, str], None],
    progress: Callable[[int, int], None] | None = None,
) -> Crowd:
    """Learn about a crowd from a table, and tell what was learned.

    Confidence is taken as stated, and reliability is not looked at. Of a large table a sample is
    read, which is the same for any order of rows. Where there is nothing to learn, each annotation
    is one count. `progress` is as in `learn_crowd`.
    """
    table, plain = _sampled(table, plain_reading(reading), seed, say)
    annotations = read_annotations(table, plain)
    n = np.bincount(annotations.item, minlength=1)
    shared = int(n[n > 1].sum())
    if shared < LEAST_TO_LEARN_FROM:
        few = f"only {counted(shared, 'annotation')} share" if shared else "no annotations share"
        say("note", f"{few} an item with others, too few to learn from: each is one count")
        return count_each(annotations)
    crowd = learn_crowd(annotations, rng=seed, progress=progress)
    people = by_annotators(len(annotations.annotators) if annotations.named else None)
    what = f"what {counted(len(annotations.item), 'annotation')}{people} are worth"
    say("learned", f"{what}: {crowd.gain()}")
    say("detail", f"crowd:\n{crowd}")
    _note(crowd, say)
    return crowd


def plain_reading(reading: Reading) -> Reading:
    """How annotations are read to learn from them.

    Only confidence that was stated can be compared, so what is missing is not trusted.
    """
    absent = "error" if reading.missing == "error" else "drop"
    return replace(reading, reliability=None, missing=absent)


def _note(crowd: Crowd, say: Callable[[str, str], None]) -> None:
    """Tell what may surprise of what was learned."""
    if crowd.losses.get("held_out", -math.inf) >= crowd.losses["votes"]:
        say(
            "note",
            "it predicts votes no better than counting them does; weigh='stated' goes by stated "
            "confidence and reliability instead",
        )
    if not crowd.converged:
        say("note", "learning did not come to an end; what it had found by then is used")
    if crowd.model is None:
        many = f"more than {MOST_LABELS} labels" if len(crowd.labels) > MOST_LABELS else "so many"
        say("note", f"of {many}, what is said where a label is true is not learned")
    if crowd.annotators.tolist() == ["anonymous"]:
        say(
            "note",
            "no annotator column was found, so one worth is learned for all; annotator='COLUMN' "
            "names it",
        )


def _sampled(
    table: Any, reading: Reading, seed: int, say: Callable[[str, str], None]
) -> tuple[Any, Reading]:
    """The table if it is small, or else a sample of it, and how to read that."""
    item, annotator = str(reading.item), reading.annotator
    frame, _ = open_table(table, reading.wanted)
    counts = [nw.len().alias("rows")]
    counts += [] if annotator is None else [nw.col(annotator).n_unique().alias("people")]
    found = small(frame.select(*counts))
    rows = int(found["rows"][0])
    if rows <= MOST_TO_LEARN_FROM:
        return table, reading
    of_each = 0
    if annotator is not None:
        of_each = min(_ITEMS_OF_EACH, math.ceil(SAMPLED / max(int(found["people"][0]), 1)))
    say("note", f"{rows:,} annotations are many: a sample of whole items is learned from")
    if frame.implementation.is_duckdb():
        take = partial(sample_by_hash, table, size=SAMPLED)
    else:
        take = partial(sample_items, table, share=SAMPLED / rows)
    sample = _collected(take(item=item, annotator=annotator, per_annotator=of_each, seed=seed))
    if not small(open_table(sample)[0].select(nw.len().alias("rows")))["rows"][0]:
        # No item is shared, and how common labels are is all there is to see.
        sample = _collected(sample_any_items(table, item=item, share=SAMPLED / rows, seed=seed))
    # Rows of a sample have no order, and whoever repeats themselves is none the wiser for it.
    duplicates = "average" if reading.duplicates == "average" else "all"
    return sample, replace(reading, labels=_all_labels(frame, reading), duplicates=duplicates)


def _collected(sample: Any) -> Any:
    """A sample in memory, where each look at it would draw it again."""
    if isinstance(sample, dict):
        return cast("Any", sample)
    frame, _ = open_table(sample)
    lazy = frame.implementation.is_duckdb() or is_database(frame) or is_spark(frame)
    return to_arrays(frame) if lazy else sample


def _all_labels(frame: Frame, reading: Reading) -> Any:
    """The labels of the whole table, of which a sample may lack some."""
    label = reading.label
    if reading.labels is not None or not isinstance(label, str):
        return reading.labels
    schema = frame.collect_schema()
    if isinstance(schema[label], nw.List | nw.Array):
        return None
    column, _ = label_column(schema, label, None, reading)
    return found_labels(frame.select(column.alias(LABEL)), label, None)


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
    is_integer = isinstance(frame.collect_schema()[ITEM], _INTEGERS)
    plain = "BIGINT" if is_integer else "VARCHAR"
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
    pairs = distinct(frame.select(ITEM, ANNOTATOR))
    several = pairs.group_by(ITEM).agg(nw.len().alias("sle_n")).filter(nw.col("sle_n") > 1)
    pairs = pairs.join(several.select(ITEM), on=ITEM, how="semi")
    counts = pairs.group_by(ANNOTATOR).agg(nw.len().alias("sle_n"))
    return pairs.join(counts, on=ANNOTATOR, how="inner").group_by(ITEM).agg(nw.col("sle_n").min())


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
    integers = {"per_annotator": per_annotator, "seed": seed}
    for name, value in integers.items():
        if not isinstance(value, Integral) or value < 0:
            raise ValueError(f"`{name}` must be a whole number of at least 0; {value!r} came.")
