"""Opinions in the forms that other libraries train on, with what goes with them.

That is columns of their items, and how they were made: in plain values, and in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from slencodings.annotations import counted
from slencodings.choices import FileForm, Value, check_word
from slencodings.tables.fuse import Fusing, Metadata, describe, fuse_rows
from slencodings.trust.stored import crowd_to_dict

if TYPE_CHECKING:
    from slencodings.files.job import Weighing
    from slencodings.files.locate import Relation
    from slencodings.opinion import Opinion
    from slencodings.progress import Say
    from slencodings.tables.roles import Reading
    from slencodings.tables.rows import Rows
    from slencodings.trust.crowd import Crowd

MOST_WIDE_LABELS = 20
# Items with more uncertainty than this have next to no evidence; in so many rows they are counted.
OPEN, MOST_ROWS = 0.9, 1_000_000
# So many numbers of a crowd are written with opinions; larger ones only in short.
_MOST_WRITTEN = 10_000


class WeightedRows(NamedTuple):
    """Hard labels and what they weigh: positions of items (R,) and labels (R,), weights (R,)."""

    item: NDArray[np.intp]
    label: NDArray[np.intp]
    weight: NDArray[np.float64]


def weighted_rows(opinion: Opinion) -> WeightedRows:
    """Every label of every item with its projected probability as weight; those of 0 are left out.

    sum_k p_ik loss(x_i, k) = E[loss(x_i, y)],   y ~ p_i

    So what takes hard labels and weights alone (XGBoost, LightGBM, scikit-learn) learns from soft
    ones, exactly: `model.fit(X[rows.item], rows.label, sample_weight=rows.weight)`. Weights of an
    item add up to one.

    Examples
    --------
    >>> from slencodings import encode
    >>> rows = weighted_rows(encode([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.0]))
    >>> rows.item, rows.label, rows.weight
    (array([0, 0, 1]), array([0, 1, 1]), array([0.75, 0.25, 1.  ]))
    """
    p = np.asarray(opinion.probability, dtype=float)
    if p.ndim != 2:
        raise ValueError(
            f"opinions of N items are needed, (N, K); {p.shape} came. Fuse them first: fuse(...)."
        )
    item, label = np.nonzero(p)
    return WeightedRows(item, label, p[item, label])


def lay_out(rows: Rows, fusing: Fusing) -> tuple[Relation, Metadata]:
    """Fused opinions in a form of files, and how they were made."""
    form = usual_form(fusing.form, len(rows.labels))
    if form in ("wide", "long"):
        frame, about = fuse_rows(rows, replace(fusing, form=form))
        return frame.to_native(), about
    values = ("probability",) if form == "weights" else fusing.values
    frame, about = fuse_rows(rows, replace(fusing, form="wide", values=values))
    return _shaped(frame.to_native(), form, about["labels"]), about | {"form": form}


def usual_form(form: Any, labels: int) -> FileForm:
    """The form that was asked for, or wide up to 20 labels."""
    if form is None:
        return "wide" if labels <= MOST_WIDE_LABELS else "long"
    check_word("form", form, FileForm)
    return form


def _shaped(wide: Relation, form: FileForm, labels: Sequence[Any]) -> Relation:
    """Opinions in the wide form as lists, or as weighted rows."""
    from slencodings.files.write import literal, quote

    name, *columns = wide.columns
    first = {f"{value}_{labels[0]}": value for value in get_args(Value)} | {
        "uncertainty": "uncertainty"
    }
    values = [first[column] for column in columns if column in first]
    if name.casefold() in (values if form == "lists" else ("label", "weight")):
        raise ValueError(
            f"the item column needs a name of its own beside {name.casefold()!r}; {name!r} came. "
            "Rename it, for example to 'item'."
        )
    item = quote(name)

    def in_sql(label: Any) -> str:
        return repr(label) if isinstance(label, bool | int | float) else literal(str(label))

    def of(value: str) -> list[str]:
        return [quote(f"{value}_{label}") for label in labels]

    if form == "lists":
        lists = [v if v == "uncertainty" else f"[{', '.join(of(v))}] AS {v}" for v in values]
        return wide.project(", ".join([item, *lists]))
    rows = ", ".join(
        f"{{'label': {in_sql(label)}, 'weight': {column}}}"
        for label, column in zip(labels, of("probability"), strict=True)
    )
    return wide.project(f"{item}, unnest([{rows}], recursive := true)").filter("weight > 0")


def carry(opinions: Relation, crowd: Relation, reading: Reading, say: Say) -> Relation:
    """Opinions with the columns that are to be kept: what the first row of each item has there."""
    from slencodings.files.write import quote

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


def note_open(opinions: Relation, rows: int, say: Say) -> None:
    """Tell how many items have next to no evidence."""
    if "uncertainty" not in opinions.columns or rows > MOST_ROWS:
        return
    from duckdb import ColumnExpression

    item = ColumnExpression(opinions.columns[0])
    found = opinions.filter(f"uncertainty > {OPEN}").select(item).distinct()
    if n := len(found):
        items = counted(n, "item")
        say("note", f"{items} with next to no evidence: uncertainty above {OPEN:g}")


def about_rows(rows: Rows, reading: Reading, weighing: Weighing, seed: int) -> Metadata:
    """How rows were read and weighed, in plain values."""
    about: Metadata = {"columns": reading.columns}
    if reading.confidence is not None:
        as_stated = rows.crowd is not None and not rows.crowd.from_uncertainty
        scale: Any = reading.confidence_scale or (0, 1)
        ends: Any = scale.to_rows() if hasattr(scale, "to_rows") else list(scale)
        about["confidence_scale"] = "as stated" if as_stated else ends
    about |= {"missing": reading.missing, "duplicates": reading.duplicates, **rows.counts}
    about["weigh"] = weighing.how
    return about | ({} if rows.crowd is None else about_crowd(rows.crowd, weighing.how, seed))


def about_crowd(crowd: Crowd, weigh: str, seed: int) -> Metadata:
    """What was learned and how, for what is kept with opinions."""
    size = len(crowd.annotators) * (1 if crowd.model is None else len(crowd.labels) ** 2)
    known = crowd_to_dict(crowd) if size <= _MOST_WRITTEN else describe(crowd)
    learned = {"seed": seed} if weigh == "learned" else {}
    return {"weigh": weigh, **learned, "crowd": known}
