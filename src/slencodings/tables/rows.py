"""Anyone's table to rows in our words, known to be sound.

One pass counts all that could be wrong; rows are searched only to show the first that is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import narwhals as nw

from slencodings.annotations import counted, some
from slencodings.choices import Duplicates, Missing, check_word
from slencodings.tables import engines
from slencodings.tables.checks import Check, check_now, problems_of, refuse_problems_by_label
from slencodings.tables.columns import (
    Number,
    answers_of,
    as_stated,
    check_range,
    identifier,
    misfits,
    number,
    numbers_of,
    prior_columns,
    settled,
)
from slencodings.tables.engines import (
    ANNOTATOR,
    ITEM,
    LABEL,
    RELIABILITY,
    ROW,
    SHARE,
    STATED,
    UNCERTAINTY,
    Frame,
)
from slencodings.tables.roles import Reading, one_or_several

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd

# Counting who said something twice costs more than the fusing itself, so of more rows than these it
# is counted on a part of the items.
MOST_ROWS_TO_COUNT_DUPLICATES, ENOUGH_ROWS_TO_COUNT = 1_000_000, 250_000


class Hold(Protocol):
    """What adds up expressions of rows by item at once, and counts `columns` of rows meanwhile."""

    columns: list[str]

    def __call__(self, frame: Frame, sums: Mapping[str, nw.Expr]) -> Frame:
        """The sums by item."""
        ...


class Rows(NamedTuple):
    """A crowd in our words: one row per annotation, in the engine of the table it came from.

    `frame` has ITEM, ANNOTATOR if given, UNCERTAINTY, RELIABILITY, and LABEL or, if `soft`,
    K probability columns; with `priors`, K base rate columns. A missing annotation has no label.
    UNCERTAINTY is confidence as it was stated if `crowd` has learned what that is worth.
    Where they are `averaged`, the n rows in which somebody answers an item have a SHARE of 1 / n.
    Rows that are `summed` have been added up before: they have ITEM, LABEL, WORTH and CERTAIN, and
    of a crowd that has a model of truth COUNT and LIKELIHOOD.
    Rows that can be gone through but once have what to `hold` of each item besides.
    A database, which computes for each row what is the same for all, may leave out a RELIABILITY
    that is 1 (`all_reliable`).
    """

    frame: Frame
    labels: list[Any]
    item: str
    counts: dict[str, int]
    soft: bool = False
    priors: bool = False
    give_back: engines.GiveBack = lambda frame, about: frame
    crowd: Crowd | None = None
    summed: bool = False
    averaged: bool = False
    hold: Hold | None = None
    all_reliable: bool = False

    @property
    def answer(self) -> str:
        """The column that is null in rows which say nothing."""
        return engines.probability(0) if self.soft else LABEL


def read_rows(
    table: Any,
    reading: Reading,
    *,
    crowd: Crowd | None = None,
    ordered: bool = False,
    check: Check = check_now,
) -> Rows:
    """Read and check the annotations of a table.

    `ordered` keeps the row numbers in ROW, and in STATED what was said of doubt. A `check` for
    later leaves `counts` empty until then.
    """
    label, base_rate = one_or_several(reading.label), one_or_several(reading.base_rate)
    reading = replace(reading, label=label, base_rate=base_rate)
    if crowd is not None:
        _check_crowd(reading, crowd)
    check_word("missing", reading.missing, Missing)
    check_word("duplicates", reading.duplicates, Duplicates)
    frame, give_back = engines.open_table(table, reading.wanted)
    schema, annotator = frame.collect_schema(), reading.annotator
    answers = answers_of(frame, reading, crowd)
    priors = prior_columns(frame, reading.base_rate, answers.labels)
    numbers, to_uncertainty = numbers_of(reading, crowd)
    mappings = [value for value in numbers if isinstance(value.spec, Mapping)]
    unchecked = frame.select(
        identifier(schema, str(reading.item)).alias(ITEM),
        *([] if annotator is None else [identifier(schema, annotator).alias(ANNOTATOR)]),
        *answers.columns,
        *priors,
        *(number(schema, value) for value in numbers if value not in mappings),
    )
    if ordered or reading.duplicates in ("first", "last"):
        unchecked = _in_order(unchecked)
    if mappings:
        unchecked = _looked_up(unchecked, schema, mappings, annotator)
    problems = problems_of(reading, answers, numbers, learned=crowd is not None)
    in_database, values = engines.is_database(unchecked), None
    if in_database and answers.labels is None:
        frame, (counts, values) = unchecked, refuse_problems_by_label(unchecked, problems)
    else:
        frame, counts = check(unchecked, problems, answers.names[0])
    frame, labels = settled(frame, answers, reading, counts.get("rows"), values or unchecked)
    frame = frame.with_columns(to_uncertainty(nw.col(STATED)).alias(UNCERTAINTY))
    frame = frame if ordered else frame.drop(STATED)
    frame = _without_missing(frame, answers.names, reading, _certain(reading, crowd))
    frame = _once_each(frame, answers.names, reading)
    rows = Rows(frame, labels, str(reading.item), counts, soft=answers.soft, priors=bool(priors))
    return rows._replace(
        give_back=give_back,
        crowd=crowd,
        averaged=reading.duplicates == "average",
        all_reliable=reading.reliability is None and in_database,
    )


def _check_crowd(reading: Reading, crowd: Crowd) -> None:
    """Refuse what a crowd knows better, and doubt that it does not understand."""
    if not hasattr(crowd, "typical_worth"):
        raise TypeError(
            "`crowd` must be what sle.trust.learn_crowd(annotations) gives; "
            f"{type(crowd).__name__} came. Learn it first."
        )
    if reading.reliability is not None:
        raise ValueError(
            "`crowd` knows what annotators are worth; `reliability` came too. Pass one of them."
        )
    if callable(reading.confidence_scale):
        raise ValueError(
            "`crowd` knows what confidence is worth; a map from it came as `confidence_scale` too. "
            "Leave it out, or name the ends: confidence_scale=(1, 5)."
        )
    levels = some([f"{level:g}" for level in crowd.levels], str)
    if levels and reading.uncertainty is None and reading.confidence is None:
        raise ValueError(
            f"this crowd was learned with confidence, at levels {levels}; none came. Pass "
            f"confidence='COLUMN', or one for all: confidence={crowd.levels[-1]:g}."
        )
    if levels and reading.uncertainty is not None and not crowd.from_uncertainty:
        raise ValueError(
            f"this crowd was learned with stated confidence, at levels {levels}; `uncertainty` "
            "came. Pass what was stated: confidence='COLUMN'."
        )


def _in_order(frame: Frame) -> Frame:
    with_rows = engines.numbered(frame)
    if with_rows is None:
        raise ValueError(
            "duplicates='first' and 'last' need rows in an order, which "
            f"{frame.implementation.name.lower()} does not keep. Sort and drop them there, or pass "
            "duplicates='all' or duplicates='error'."
        )
    return with_rows


def _looked_up(
    frame: Frame, schema: nw.Schema, mappings: list[Number], annotator: str | None
) -> Frame:
    """The frame with what mappings know of each annotator."""
    if ROW not in frame.collect_schema().names():
        # Looking up need not keep the order of rows.
        frame = engines.numbered(frame) or frame
    for value in mappings:
        _check_mapping(schema, value, annotator)
        frame = engines.look_up(frame, ANNOTATOR, value.spec, value.column)
    return frame


def _check_mapping(schema: nw.Schema, value: Number, annotator: str | None) -> None:
    if annotator is None:
        raise ValueError(
            f"`{value.name}` by annotator needs to know who annotated; no annotator column came. "
            "Pass annotator='COLUMN'."
        )
    if wrong := misfits(schema[annotator], list(value.spec)):
        raise ValueError(
            f"`{value.name}` must know annotators as column {annotator!r} does, by "
            f"{schema[annotator]}; {wrong[0]!r} came. Change the mapping or the column."
        )
    for name, given in value.spec.items():
        check_range(value, given, f" for {name!r}")


def _certain(reading: Reading, crowd: Crowd | None) -> float:
    """What counts as no uncertainty: for confidence as it was stated, the highest level."""
    if crowd is None or not as_stated(crowd) or not len(crowd.levels):
        return 0.0
    scale = reading.confidence_scale
    return float(crowd.levels[-1] if scale is None else scale[1])


def _without_missing(frame: Frame, answered: list[str], reading: Reading, certain: float) -> Frame:
    if reading.missing == "trust":
        trusted = nw.col(UNCERTAINTY).fill_null(certain), nw.col(RELIABILITY).fill_null(1.0)
        return frame.with_columns(*trusted)
    if reading.missing == "drop":
        absent = nw.col(UNCERTAINTY).is_null() | nw.col(RELIABILITY).is_null()
        absent = absent if reading.annotator is None else absent | nw.col(ANNOTATOR).is_null()
        return _silenced(frame, answered, absent)
    return frame


def _silenced(frame: Frame, answered: list[str], where: nw.Expr) -> Frame:
    """A dropped annotation says nothing, and its item stays."""
    return frame.with_columns(*(nw.when(~where).then(nw.col(c)).alias(c) for c in answered))


def _once_each(frame: Frame, answered: list[str], reading: Reading) -> Frame:
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
            example = engines.small(repeated.select(ITEM, ANNOTATOR).head(1))
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
    return _silenced(frame, answered, other).drop("sle_labelled", "sle_kept")


def count_repeated(rows: Rows) -> tuple[int, int]:
    """How many rows of a DuckDB table repeat an earlier pair, in one of how many parts.

    Of many rows they are counted on some of the items, chosen by a hash.
    """
    frame, parts = rows.frame, parts_counted(rows.counts["rows"])
    if parts > 1:
        frame = nw.from_native(frame.to_native().filter(f"hash({ITEM}) & {parts - 1} = 0"))
    return _more_than_once(_repeated(frame, rows.answer)), parts


def parts_counted(n: int) -> int:
    """Of how many parts of the items of n rows one is looked at: a power of two.

    So the items of many parts are among those of fewer.
    """
    if n <= MOST_ROWS_TO_COUNT_DUPLICATES:
        return 1
    return 1 << math.ceil(math.log2(n / ENOUGH_ROWS_TO_COUNT))


def _repeated(frame: Frame, first: str) -> Frame:
    """The (item, annotator) of several labelled rows, and of how many."""
    labelled = frame.filter(~nw.col(first).is_null() & ~nw.col(ANNOTATOR).is_null())
    pairs = labelled.group_by(ITEM, ANNOTATOR).agg(nw.len().alias("sle_n"))
    return pairs.filter(nw.col("sle_n") > 1)


def _more_than_once(repeated: Frame) -> int:
    """How many rows repeat an earlier one."""
    (count,) = engines.small(repeated.select((nw.col("sle_n") - 1).sum().alias("n")))["n"]
    return int(count or 0)
