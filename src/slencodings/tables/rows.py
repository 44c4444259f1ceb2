"""Anyone's table to rows in our words, known to be sound.

One pass counts all that could be wrong; rows are searched only to show the first that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import narwhals as nw

from slencodings.choices import Duplicates, Format, Missing, check_word
from slencodings.confidence import linear
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

if TYPE_CHECKING:
    from slencodings.trust.value import Trust

# The roles that columns play.
ROLES = ("item", "annotator", "label", "confidence", "uncertainty", "reliability")


@dataclass(frozen=True)
class Reading:
    """How rows are read: which column plays which role, and what becomes of what is missing.

    Attributes
    ----------
    item, label, annotator, uncertainty, confidence, reliability : as in `fuse_table`; of files,
        those left out are found by name
    confidence_scale : as in `fuse_table`, (0, 1) if not said; of files also "calibrated"
    base_rate : K columns, or one of lists, where base rates are given by row
    labels, missing, duplicates : as in `fuse_table`
    format, question : of files, if their names and content do not tell; see `sle encode --help`
    """

    item: str | None = None
    label: str | Sequence[str] | None = None
    annotator: str | None = None
    confidence: Any = None
    uncertainty: Any = None
    reliability: Any = None
    confidence_scale: Any = None
    base_rate: str | Sequence[str] | None = None
    labels: Sequence[Any] | None = None
    missing: Missing = "error"
    duplicates: Duplicates = "all"
    format: Format | None = None
    question: str | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The column, columns or number for each role that is played."""
        return {role: spec for role in ROLES if (spec := getattr(self, role)) is not None}


class Rows(NamedTuple):
    """A crowd in our words: one row per annotation, in the engine of the table it came from.

    `frame` has ITEM, ANNOTATOR if given, UNCERTAINTY, RELIABILITY, and LABEL or, if `soft`,
    K probability columns; with `priors`, K base rate columns. A missing annotation has no label.
    UNCERTAINTY is confidence as it was stated if `trust` has learned what that is worth.
    Rows that are `summed` have been added up before: they have ITEM, LABEL, WORTH and CERTAIN.
    """

    frame: Frame
    labels: list[Any]
    item: str
    counts: dict[str, int]
    soft: bool = False
    priors: bool = False
    give_back: Callable[[Frame, dict[str, Any]], Any] = lambda frame, about: frame
    trust: Trust | None = None
    summed: bool = False


def read_rows(
    table: Any, reading: Reading, *, trust: Trust | None = None, ordered: bool = False
) -> Rows:
    """Read and check the annotations of a table.

    `ordered` keeps the row numbers in ROW, and in STATED what was said of doubt.
    """
    check_word("missing", reading.missing, Missing)
    check_word("duplicates", reading.duplicates, Duplicates)
    if trust is not None:
        reading = _as_learned(reading, trust)
    stated, to_uncertainty = _stated(reading)
    numbers = [stated, _reliability(reading.reliability)]
    label, base_rate = _names(reading.label), _names(reading.base_rate)
    item, annotator, labels = reading.item, reading.annotator, reading.labels
    frame, give_back = engines.open_table(
        table, _wanted(item, label, annotator, base_rate, numbers)
    )
    schema = frame.collect_schema()
    soft = not isinstance(label, str) or isinstance(schema[label], nw.List | nw.Array)
    if trust is not None:
        labels = _trusted_names(trust, schema, annotator, None if soft else str(label), labels)
    if soft:
        labels = col.soft_names(frame, label, labels)
        answers = col.soft_columns(schema, "label", label, len(labels), engines.probability)
    else:
        column, labels = col.label_column(schema, str(label), labels)
        answers = [column.alias(LABEL)]
    priors = col.prior_columns(frame, base_rate, labels)
    mappings = [value for value in numbers if isinstance(value.spec, Mapping)]
    frame = frame.select(
        col.identifier(schema, str(item)).alias(ITEM),
        *([] if annotator is None else [col.identifier(schema, annotator).alias(ANNOTATOR)]),
        *answers,
        *priors,
        *(col.number(schema, value) for value in numbers if value not in mappings),
    )
    if ordered or reading.duplicates in ("first", "last"):
        frame = _in_order(frame)
    frame = _looked_up(frame, schema, mappings, annotator)

    K = len(labels or ())
    answered = [engines.probability(k) for k in range(K)] if soft else [LABEL]
    counts = refuse_flaws(
        frame,
        [
            *id_flaws(str(item), annotator, answered[0], reading.missing),
            *(soft_flaws(label, K) if soft else [] if trust else label_flaws(label, labels)),
            *(_untaught_labels(label, labels or []) if trust and not soft else []),
            *(prior_flaws(base_rate, K) if priors else []),
            *(f for value in numbers for f in number_flaws(value, answered[0], reading.missing)),
        ],
        answered[0],
    )
    if labels is None:
        labels = _found_labels(frame, label, counts["rows"])
    col.check_count(labels, counts["rows"])
    if soft:
        frame = _normalised(frame, answered)
    else:
        frame, labels = _whole_numbers(frame, labels)
    frame = frame.with_columns(to_uncertainty(nw.col(STATED)).alias(UNCERTAINTY))
    frame = frame if ordered else frame.drop(STATED)
    certain = _certain(trust)
    frame = _without_missing(frame, answered, reading.missing, annotator is not None, certain)
    if reading.duplicates != "all":
        frame = _without_duplicates(frame, answered, reading.duplicates, annotator)
    return Rows(frame, labels, str(item), counts, soft, bool(priors), give_back, trust)


def _as_learned(reading: Reading, trust: Trust) -> Reading:
    """What is to be read of doubt so that `trust` understands it; an error if nothing is."""
    if not hasattr(trust, "typical_worth"):
        raise TypeError(
            "`trust` must be what sle.trust.learn_trust(annotations) gives; "
            f"{type(trust).__name__} came. Learn it first."
        )
    if reading.reliability is not None:
        raise ValueError(
            "`trust` knows how reliable annotators are; `reliability` came too. Pass one of them."
        )
    levels = engines.some([f"{level:g}" for level in trust.levels], str)
    if levels and reading.uncertainty is None and reading.confidence is None:
        raise ValueError(
            f"this trust was learned with confidence, at levels {levels}; none came. Pass "
            f"confidence='COLUMN', or one for all: confidence={trust.levels[-1]:g}."
        )
    if trust.from_uncertainty:
        return reading
    scale = reading.confidence_scale
    if scale is not None and scale not in ((0, 1), [0, 1]):
        raise ValueError(
            "`trust` reads confidence as it was stated, and needs no scale; `confidence_scale` "
            "came. Leave it out."
        )
    if levels and reading.uncertainty is not None:
        raise ValueError(
            f"this trust was learned with stated confidence, at levels {levels}; `uncertainty` "
            "came. Pass what was stated: confidence='COLUMN'."
        )
    return replace(reading, confidence_scale=_as_stated)


def _as_stated(confidence: Any) -> Any:
    return confidence


def _stated(reading: Reading) -> tuple[col.Number, Callable[[Any], Any]]:
    """What the annotators said of their doubt, and how it becomes uncertainty."""
    uncertainty, confidence = reading.uncertainty, reading.confidence
    scale = (0, 1) if reading.confidence_scale is None else reading.confidence_scale
    if uncertainty is not None and confidence is not None:
        raise ValueError(
            "`uncertainty` and `confidence` say the same thing twice; both came. Pass one of them."
        )
    if confidence is None:
        spec = 0.0 if uncertainty is None else uncertainty
        hint = "If it is confidence on a scale, pass it as `confidence`, confidence_scale=(1, 5)."
        return col.Number("uncertainty", STATED, spec, 0.0, 1.0, hint), lambda u: u
    if callable(scale):
        return col.Number("confidence", STATED, confidence, -float("inf"), float("inf"), ""), scale
    try:
        low, high = (float(end) for end in scale)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low != high):
        raise ValueError(
            "`confidence_scale` must be the two ends of the scale, or a map from confidence to "
            f"uncertainty; {scale!r} came. For 1 (guessed) to 5 (sure): confidence_scale=(1, 5)."
        )
    hint = "Name the ends of the scale if they are others: confidence_scale=(1, 5)."
    return (
        col.Number("confidence", STATED, confidence, min(low, high), max(low, high), hint),
        lambda c: linear(c, low=low, high=high),
    )


def _reliability(reliability: Any) -> col.Number:
    """What is said of the annotators by somebody else; full trust if nothing is."""
    spec = 1.0 if reliability is None else reliability
    hint = "Map a score such as kappa first: clip it to [0, 1]."
    return col.Number("reliability", RELIABILITY, spec, 0.0, 1.0, hint)


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


def _wanted(
    item: str | None,
    label: str | Sequence[str],
    annotator: str | None,
    base_rate: str | Sequence[str] | None,
    numbers: list[col.Number],
) -> list[tuple[str, Any]]:
    wanted: list[tuple[str, Any]] = [("item", item)]
    wanted += [("annotator", annotator)] if annotator is not None else []
    for role, spec in (("label", label), ("base_rate", base_rate or [])):
        wanted += [(role, name) for name in (spec if isinstance(spec, list) else [spec])]
    return wanted + [(n.name, n.spec) for n in numbers if isinstance(n.spec, str)]


def _whole_numbers(frame: Frame, labels: list[Any]) -> tuple[Frame, list[Any]]:
    """Whole numbers turn into floats where some are missing; turn them back."""
    if not all(isinstance(v, float) and v.is_integer() for v in labels):
        return frame, labels
    # Dask has no whole numbers among nulls.
    if not frame.implementation.is_dask():
        frame = frame.with_columns(nw.col(LABEL).cast(nw.Int64))
    return frame, [int(v) for v in labels]


def _looked_up(
    frame: Frame, schema: nw.Schema, mappings: list[col.Number], annotator: str | None
) -> Frame:
    """The frame with what mappings know of each annotator."""
    if mappings and ROW not in frame.collect_schema().names():
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


def _found_labels(frame: Frame, label: Any, rows: int) -> list[Any]:
    found = [
        v for v in engines.small(frame.select(LABEL).unique())[LABEL] if v is not None and v == v
    ]
    if not found:
        raise ValueError(
            f"no annotation has a label: column {label!r} is empty in all {rows} rows. "
            "Name the possible labels to get vacuous opinions all the same: labels=[...]."
        )
    return sorted(found, key=natural(found))


def natural(labels: list[Any]) -> Any:
    """Sort key: numbers written as text by value, all else as it is."""
    digits = all(isinstance(v, str) and v.isdecimal() for v in labels)
    return _by_value if digits else None


def _by_value(text: str) -> tuple[int, str]:
    return int(text), text


def _trusted_names(
    trust: Trust, schema: nw.Schema, annotator: str | None, label: str | None, labels: Any
) -> Any:
    """The labels, and an error if columns and trust know them or the annotators by other names."""
    known = {"annotators": trust.annotators.tolist(), "labels": trust.labels.tolist()}
    for role, column in (("annotators", annotator), ("labels", label)):
        names = [name for name in known[role] if name is not None]
        if column is not None and (wrong := col.misfits(schema[column], names)):
            raise ValueError(
                f"`trust` must know {role} as column {column!r} does, by {schema[column]}; "
                f"{wrong[0]!r} came. Change the column, or learn trust from a table like this one."
            )
    if label is None:  # Names say which probability is whose.
        return labels
    if labels is not None and list(labels) != known["labels"]:
        raise ValueError(
            f"`labels` are those that trust was learned for, {engines.some(known['labels'])}; "
            f"{engines.some(labels)} came. Leave labels out."
        )
    return known["labels"]


def _untaught_labels(label: Any, labels: Sequence[Any]) -> list[Flaw]:
    untaught = Flaw(
        ~nw.col(LABEL).is_in(list(labels)) & ~nw.col(LABEL).is_null(),
        f"column {label!r} must hold labels that trust was learned for, {engines.some(labels)}",
        "do not",
        "Learn trust from annotations that have them, or leave these rows out.",
        LABEL,
    )
    return [untaught]


def _certain(trust: Trust | None) -> float:
    """What counts as no uncertainty: for confidence as it was stated, the highest level."""
    as_stated = trust is not None and not trust.from_uncertainty and len(trust.levels)
    return float(trust.levels[-1]) if trust is not None and as_stated else 0.0


def _without_missing(
    frame: Frame, answered: list[str], missing: Missing, annotator: bool, certain: float
) -> Frame:
    if missing == "trust":
        trusted = nw.col(UNCERTAINTY).fill_null(certain), nw.col(RELIABILITY).fill_null(1.0)
        return frame.with_columns(*trusted)
    if missing == "drop":
        absent = nw.col(UNCERTAINTY).is_null() | nw.col(RELIABILITY).is_null()
        absent = absent | nw.col(ANNOTATOR).is_null() if annotator else absent
        return _silent(frame, answered, absent)
    return frame


def _silent(frame: Frame, answered: list[str], where: nw.Expr) -> Frame:
    """A dropped annotation says nothing, and its item stays."""
    return frame.with_columns(*(nw.when(~where).then(nw.col(c)).alias(c) for c in answered))


def _without_duplicates(
    frame: Frame, answered: list[str], duplicates: Duplicates, annotator: str | None
) -> Frame:
    if annotator is None:
        raise ValueError(
            f"duplicates={duplicates!r} needs to know who annotated; no annotator column came. "
            "Pass annotator='COLUMN'."
        )
    if duplicates == "error":
        count, example = count_duplicates(frame, answered[0])
        if count:
            raise ValueError(
                f"an annotator may label an item once; {count} rows repeat an earlier pair, such "
                f"as item {example[0]!r} by annotator {example[1]!r}. Pass duplicates='first' or "
                "duplicates='last' to keep one of each, duplicates='all' to keep them all."
            )
        return frame
    labelled = nw.when(~nw.col(answered[0]).is_null()).then(nw.col(ROW))
    frame = frame.with_columns(labelled.alias("sle_labelled"))
    at = nw.col("sle_labelled")
    kept = (at.min() if duplicates == "first" else at.max()).over(ITEM, ANNOTATOR)
    frame = frame.with_columns(kept.alias("sle_kept"))
    other = (nw.col(ROW) != nw.col("sle_kept")) & ~nw.col(ANNOTATOR).is_null()
    return _silent(frame, answered, other).drop("sle_labelled", "sle_kept")


def count_duplicates(frame: Frame, first: str) -> tuple[int, tuple[Any, Any]]:
    """How many labelled rows repeat an earlier (item, annotator), and one such pair."""
    labelled = frame.filter(~nw.col(first).is_null() & ~nw.col(ANNOTATOR).is_null())
    pairs = labelled.group_by(ITEM, ANNOTATOR).agg(nw.len().alias("sle_n"))
    repeated = pairs.filter(nw.col("sle_n") > 1)
    (count,) = engines.small(repeated.select((nw.col("sle_n") - 1).sum().alias("n")))["n"]
    example = engines.small(repeated.head(1)) if count else {ITEM: [None], ANNOTATOR: [None]}
    return int(count or 0), (example[ITEM][0], example[ANNOTATOR][0])
