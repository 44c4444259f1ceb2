"""Anyone's table to rows in our words, known to be sound.

One pass counts all that could be wrong; rows are searched only to show the first that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import narwhals as nw

from slencodings.annotations import counted, plainly
from slencodings.choices import Duplicates, Missing, check_word
from slencodings.tables import columns as col
from slencodings.tables import engines
from slencodings.tables.checks import (
    Flaw,
    id_flaws,
    label_flaws,
    number_flaws,
    prior_flaws,
    refuse_flaws,
    soft_flaws,
)
from slencodings.tables.engines import (
    ANNOTATOR,
    ITEM,
    LABEL,
    RELIABILITY,
    ROW,
    STATED,
    UNCERTAINTY,
    Frame,
)
from slencodings.tables.repeated import once_each, silenced
from slencodings.tables.roles import Reading

if TYPE_CHECKING:
    from slencodings.trust.crowd import Crowd


class Rows(NamedTuple):
    """A crowd in our words: one row per annotation, in the engine of the table it came from.

    `frame` has ITEM, ANNOTATOR if given, UNCERTAINTY, RELIABILITY, and LABEL or, if `soft`,
    K probability columns; with `priors`, K base rate columns. A missing annotation has no label.
    UNCERTAINTY is confidence as it was stated if `crowd` has learned what that is worth.
    Where they are `averaged`, the n rows in which somebody answers an item have a SHARE of 1 / n.
    Rows that are `summed` have been added up before: they have ITEM, LABEL, WORTH and CERTAIN, and
    of a crowd that has a model of truth COUNT and LIKELIHOOD.
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

    @property
    def answer(self) -> str:
        """The column that is null in rows which say nothing."""
        return engines.probability(0) if self.soft else LABEL


def read_rows(
    table: Any, reading: Reading, *, crowd: Crowd | None = None, ordered: bool = False
) -> Rows:
    """Read and check the annotations of a table.

    `ordered` keeps the row numbers in ROW, and in STATED what was said of doubt.
    """
    reading = replace(reading, label=_names(reading.label), base_rate=_names(reading.base_rate))
    check_word("missing", reading.missing, Missing)
    check_word("duplicates", reading.duplicates, Duplicates)
    if crowd is not None:
        _check_crowd(reading, crowd)
    frame, give_back = engines.open_table(table, reading.wanted)
    numbers, to_uncertainty = _numbers(reading, crowd)
    answers = _answers(frame, reading, crowd)
    priors = col.prior_columns(frame, reading.base_rate, answers.labels)
    frame = _selected(frame, reading, [*answers.columns, *priors], numbers, ordered)
    flaws = _flaws(reading, answers, numbers, learned=crowd is not None)
    counts = refuse_flaws(frame, flaws, answers.names[0])
    frame, labels = _labelled(frame, answers, reading, counts["rows"])
    frame = frame.with_columns(to_uncertainty(nw.col(STATED)).alias(UNCERTAINTY))
    frame = frame if ordered else frame.drop(STATED)
    frame = _without_missing(frame, answers.names, reading, _certain(reading, crowd))
    return Rows(
        once_each(frame, answers.names, reading),
        labels,
        str(reading.item),
        counts,
        answers.soft,
        bool(priors),
        give_back,
        crowd,
        averaged=reading.duplicates == "average",
    )


class Answers(NamedTuple):
    """What rows answer: `columns` to be called by our `names`, and the labels, if they are known.

    They are one column of labels or, if `soft`, one of probabilities for each.
    """

    columns: list[nw.Expr]
    names: list[str]
    labels: list[Any] | None
    soft: bool


def _numbers(
    reading: Reading, crowd: Crowd | None
) -> tuple[list[col.Number], Callable[[Any], Any]]:
    """What was said of doubt and of annotators, and how the first becomes uncertainty."""
    stated, to_uncertainty = col.stated(reading)
    if crowd is not None and _as_stated(crowd) and reading.confidence is not None:
        # Its worth was learned as it is; the ends of a scale say what may come.
        to_uncertainty = _unchanged
        stated = (
            stated if reading.confidence_scale else stated._replace(low=-math.inf, high=math.inf)
        )
    return [stated, col.reliability(reading.reliability)], to_uncertainty


def _answers(frame: Frame, reading: Reading, crowd: Crowd | None) -> Answers:
    """Labels or probabilities, whichever the columns hold."""
    schema, label, labels = frame.collect_schema(), reading.label, reading.labels
    soft = not isinstance(label, str) or isinstance(schema[label], nw.List | nw.Array)
    if crowd is not None:
        hard = None if soft else str(label)
        labels = _known_names(crowd, schema, reading.annotator, hard, labels)
    if not soft:
        column, labels = col.label_column(schema, str(label), labels, reading.named)
        return Answers([column.alias(LABEL)], [LABEL], labels, soft=False)
    names = col.soft_names(frame, cast("Any", label), labels)
    p = engines.probability
    columns = col.soft_columns(schema, "label", cast("Any", label), len(names), p)
    return Answers(columns, [p(k) for k in range(len(names))], names, soft=True)


def _selected(
    frame: Frame,
    reading: Reading,
    columns: list[nw.Expr],
    numbers: list[col.Number],
    ordered: bool,
) -> Frame:
    """The columns in our words, in the order of rows where that is needed."""
    schema, annotator = frame.collect_schema(), reading.annotator
    mappings = [value for value in numbers if isinstance(value.spec, Mapping)]
    frame = frame.select(
        col.identifier(schema, str(reading.item)).alias(ITEM),
        *([] if annotator is None else [col.identifier(schema, annotator).alias(ANNOTATOR)]),
        *columns,
        *(col.number(schema, value) for value in numbers if value not in mappings),
    )
    if ordered or reading.duplicates in ("first", "last"):
        frame = _in_order(frame)
    return _looked_up(frame, schema, mappings, annotator) if mappings else frame


def _flaws(
    reading: Reading, answers: Answers, numbers: list[col.Number], *, learned: bool
) -> list[Flaw]:
    """All that may be wrong with a row."""
    label, labels, first, missing = reading.label, answers.labels, answers.names[0], reading.missing
    K = len(labels or ())
    return [
        *id_flaws(str(reading.item), reading.annotator, first, missing),
        *(
            soft_flaws(label, K)
            if answers.soft
            else label_flaws(label, labels, learned=learned, named=reading.named)
        ),
        *([] if reading.base_rate is None else prior_flaws(reading.base_rate, K)),
        *(flaw for value in numbers for flaw in number_flaws(value, first, missing)),
    ]


def _labelled(
    frame: Frame, answers: Answers, reading: Reading, rows: int
) -> tuple[Frame, list[Any]]:
    """The frame with answers as they are to be, and all labels."""
    labels = answers.labels
    if labels is None:
        labels = col.found_labels(frame, reading.label, rows)
    col.check_count(labels, rows, reading.named)
    if answers.soft:
        return _normalised(frame, answers.names), labels
    return col.whole_numbers(frame, labels)


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
    levels = engines.some([f"{level:g}" for level in crowd.levels], str)
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


def _unchanged(confidence: Any) -> Any:
    return confidence


def _as_stated(crowd: Crowd) -> bool:
    """Whether confidence is read as it was stated, on whatever scale; or not at all."""
    return not crowd.from_uncertainty or not len(crowd.levels)


def _in_order(frame: Frame) -> Frame:
    with_rows = engines.numbered(frame)
    if with_rows is None:
        raise ValueError(
            "duplicates='first' and 'last' need rows in an order, which "
            f"{frame.implementation.name.lower()} does not keep. Sort and drop them there, or pass "
            "duplicates='all' or duplicates='error'."
        )
    return with_rows


def _names(spec: Any) -> Any:
    """One name, or a list of several."""
    if isinstance(spec, str) or not isinstance(spec, Iterable):
        return cast("Any", spec)
    return list(cast("Iterable[Any]", spec))


def _looked_up(
    frame: Frame, schema: nw.Schema, mappings: list[col.Number], annotator: str | None
) -> Frame:
    """The frame with what mappings know of each annotator."""
    if ROW not in frame.collect_schema().names():
        # Looking up need not keep the order of rows.
        frame = engines.numbered(frame) or frame
    for value in mappings:
        _check_mapping(schema, value, annotator)
        frame = engines.look_up(frame, ANNOTATOR, value.spec, value.column)
    return frame


def _normalised(frame: Frame, answered: list[str]) -> Frame:
    """Sums of exactly one, so that all forms agree on what was written with few digits."""
    frame = frame.with_columns(engines.fold(add, map(nw.col, answered)).alias("sle_sum"))
    return frame.with_columns(*(nw.col(p) / nw.col("sle_sum") for p in answered)).drop("sle_sum")


def _check_mapping(schema: nw.Schema, value: col.Number, annotator: str | None) -> None:
    if annotator is None:
        raise ValueError(
            f"`{value.name}` by annotator needs to know who annotated; no annotator column came. "
            "Pass annotator='COLUMN'."
        )
    if wrong := col.misfits(schema[annotator], list(value.spec)):
        raise ValueError(
            f"`{value.name}` must know annotators as column {annotator!r} does, by "
            f"{schema[annotator]}; {wrong[0]!r} came. Change the mapping or the column."
        )
    for name, given in value.spec.items():
        col.check_range(value, given, f" for {name!r}")


def _known_names(
    crowd: Crowd, schema: nw.Schema, annotator: str | None, label: str | None, labels: Any
) -> Any:
    """The labels, and an error if columns and crowd know them or the annotators by other names."""
    known = {"annotators": crowd.annotators.tolist(), "labels": crowd.labels.tolist()}
    if known["annotators"] == ["anonymous"]:  # Nobody was told apart.
        known["annotators"] = []
    for role, column in (("annotators", annotator), ("labels", label)):
        names = [name for name in known[role] if name is not None]
        if column is not None and (wrong := col.misfits(schema[column], names)):
            raise ValueError(
                f"`crowd` must know {role} as column {column!r} does, by {schema[column]}; "
                f"{wrong[0]!r} came. Change the column, or learn from a table like this one."
            )
    if label is None:  # Names say which probability is whose.
        return labels
    if labels is not None and list(labels) != known["labels"]:
        raise ValueError(
            f"`labels` are those that the crowd was learned for, {engines.some(known['labels'])}; "
            f"{engines.some(labels)} came. Leave labels out."
        )
    return known["labels"]


def _certain(reading: Reading, crowd: Crowd | None) -> float:
    """What counts as no uncertainty: for confidence as it was stated, the highest level."""
    if crowd is None or not _as_stated(crowd) or not len(crowd.levels):
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
        return silenced(frame, answered, absent)
    return frame


def tell(rows: Rows, name: str, files: int, say: Callable[[str, str], None]) -> None:
    """Tell how much was read."""
    several = f"{files:,} files, " if files > 1 else ""
    how_many = f"{counted(rows.counts['rows'], 'row')}, {counted(len(rows.labels), 'label')}"
    say("read", f"{name}: {several}{how_many}: {engines.some(rows.labels, plainly)}")
    if n := rows.counts["unlabelled"]:
        say("note", f"{counted(n, 'row')} without a label; their items are kept")
