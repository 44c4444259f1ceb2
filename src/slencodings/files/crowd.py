"""From a file of annotations to a crowd in memory, for methods that learn from all of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slencodings.aggregate import sle
from slencodings.annotations import Annotations
from slencodings.files import formats as readers
from slencodings.files.duckdb import (
    Connection,
    Progress,
    Relation,
    Say,
    Step,
    plain_errors,
    read,
    watch,
    workspace,
)
from slencodings.files.formats import Format, columns_of, quote
from slencodings.files.intake import shown, typed_labels
from slencodings.files.locate import Source, locate, read_tool, scan
from slencodings.files.write import disk_errors
from slencodings.opinion import Opinion
from slencodings.tables.arrays import from_table
from slencodings.tables.rows import Duplicates
from slencodings.trust import learn_trust
from slencodings.trust.value import stated_confidence

Floats = NDArray[np.float64]


class Told(NamedTuple):
    """What a file tells about a crowd.

    Attributes
    ----------
    annotations : Annotations; confidence taken at its word where its scale is known
    stated : (R,), confidence as it stands in the file, on its own scale; None if there is none
    reliability : (R,), None if there is none
    truth : (N, K), what is known to be true of each item, NaN where nothing is; None if not asked
    """

    annotations: Annotations
    stated: Floats | None
    reliability: Floats | None
    truth: Floats | None


def read_crowd(
    source: str | Sequence[str],
    *,
    columns: Mapping[str, Any],
    gold: str | None = None,
    confidence_scale: tuple[float, float] | None = None,
    labels: Sequence[str] | None = None,
    missing: Literal["error", "drop"] = "error",
    duplicates: Duplicates = "all",
    format: str | None = None,
    question: str | None = None,
    say: Say = lambda what, text: None,
    progress: Progress = lambda what, done, total, unit: None,
) -> Told:
    """Read whole files of annotations.

    Parameters
    ----------
    columns : the column (or number) for each role; those left out or None are found by name
    gold : a column of true labels; K columns of probabilities with commas, in the order of the
        labels; or a file with a column for the item and one for the label
    confidence_scale : the ends of stated confidence. Left out, values in [0, 1] are taken at their
        word, and others only by their order
    missing : rows without confidence or reliability: "error" or "drop"
    question : which, where an annotation tool asked several
    """
    with disk_errors(), workspace() as (connection, folder):
        found = locate(connection, source, folder)
        found = read_tool(found, format, question, folder, say)

        def work(step: Step) -> dict[str, Any]:
            with plain_errors(found, kind := found.format(format)):
                step("reading", found.megabytes, "MB")
                crowd, chosen = read(connection, found, kind, columns)
                say("columns", ", ".join(f"{role} = {shown(c)}" for role, c in chosen.items()))
                step("checking", None, "")
                crowd = _complete(crowd, chosen, missing, say)
                common: dict[str, Any] = {
                    **{
                        role: chosen[role]
                        for role in ("item", "label", "annotator") & chosen.keys()
                    },
                    "labels": typed_labels(connection, crowd, chosen["label"], labels),
                    "missing": missing,
                    "duplicates": duplicates,
                }
                told = _told(crowd, chosen, confidence_scale, common, say)
            a = told.annotations
            say(
                "read",
                f"{found.name}: {len(a.item):,} annotations of {len(a.items):,} items by "
                f"{len(a.annotators):,} annotators, {len(a.labels):,} labels",
            )
            if gold is not None:
                told = told._replace(truth=_truth(connection, found, kind, gold, chosen["item"], a))
            return {"told": told}

        return watch(connection, work, progress)["told"]


def weigh(
    told: Told,
    *,
    seed: int = 0,
    say: Say = lambda what, text: None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Opinion, Floats, float]:
    """An opinion of each item, and how reliable each annotator is and how unsure people are.

    By the reliability that the file tells, the mean of each annotator; else by learned trust, of
    which `progress` tells how far it is.
    """
    a = told.annotations
    if told.reliability is not None:
        r = told.reliability
        rows = np.bincount(a.annotator, minlength=len(a.annotators))
        trusted = np.bincount(a.annotator, r, len(a.annotators)) / np.maximum(rows, 1)
        return sle(a, reliability=r), trusted, float(np.median(a.uncertainty))
    trust = learn_trust(a, told.stated, rng=seed, progress=progress)
    votes, held_out = trust.losses["votes"], trust.losses.get("held_out", math.nan)
    say("learned", f"trust: held-out vote log-loss {votes:.3f} (votes) -> {held_out:.3f}")
    trusted = np.asarray(list(trust.reliability.values()))
    stated = stated_confidence(a, told.stated)
    doubt = float(np.median(trust.uncertainty(stated, trusted[a.annotator])))
    return trust.opinion(a, told.stated), trusted, doubt


def _complete(crowd: Relation, chosen: dict[str, Any], missing: str, say: Say) -> Relation:
    """The rows that have every number, if the others are to be dropped."""
    numbers = [name for role in readers.NUMBERS for name in columns_of(chosen.get(role))]
    if missing != "drop" or not numbers:
        return crowd
    there = [f"({quote(n)} IS NOT NULL AND NOT isnan({quote(n)}::DOUBLE))" for n in numbers]
    kept = crowd.filter(" AND ".join(there))
    (before,), (after,) = (rows.aggregate("count(*)").fetchall()[0] for rows in (crowd, kept))
    if before > after:
        say("note", f"{before - after:,} rows have no {' or '.join(numbers)} and are left out")
    return kept


def _told(
    crowd: Relation,
    chosen: dict[str, Any],
    scale: tuple[float, float] | None,
    common: dict[str, Any],
    say: Say,
) -> Told:
    """Annotations, stated confidence and reliability; every number is checked by `from_table`."""

    def number(role: str) -> Floats:
        return from_table(crowd, **common, uncertainty=chosen[role]).uncertainty

    reliability = number("reliability") if "reliability" in chosen else None
    if "uncertainty" in chosen:
        a = from_table(crowd, **common, uncertainty=chosen["uncertainty"])
        return Told(a, None, reliability, None)
    if "confidence" not in chosen:
        return Told(from_table(crowd, **common), None, reliability, None)
    confidence = {"confidence": chosen["confidence"]}
    a = from_table(crowd, **common, **confidence, confidence_scale=lambda c: c)
    stated = a.uncertainty
    if scale is None and not (stated.min(initial=0) >= 0 and stated.max(initial=1) <= 1):
        low, high = stated.min(), stated.max()
        say(
            "note",
            f"confidence runs from {low:g} to {high:g}; its worth is learned, and "
            f"--confidence-scale {low:g}-{high:g} also takes it at its word",
        )
        return Told(from_table(crowd, **common), stated, reliability, None)
    a = from_table(crowd, **common, **confidence, confidence_scale=scale or (0, 1))
    return Told(a, stated, reliability, None)


def _truth(
    connection: Connection, source: Source, kind: Format, gold: str, item: str, a: Annotations
) -> Floats:
    """What is true of each item (N, K), from columns of the same file or from another file."""
    here = scan(connection, source, kind)
    columns: Any = gold if gold in here.names else [name.strip() for name in gold.split(",")]
    if isinstance(columns, list) and not set(columns) <= set(here.names):
        other = Path(gold)
        if not other.is_file():
            raise ValueError(
                f"--gold must be a column, columns with commas, or a file; {gold!r} came. "
                f"The columns are {', '.join(map(repr, here.names[:20]))}."
            )
        known = Source(other.name, [str(other)])
        kind = known.format()
        with plain_errors(known, kind):
            there = scan(connection, known, kind)
            chosen = readers.choose_columns(there.names, {})
            item, columns = chosen["item"], chosen["label"]
            relation = there.pick([item, columns])
            if kind in ("jsonl", "json"):
                relation = readers.from_json(relation, [])
            return _placed(relation, item, columns, a, one=False)
    relation = here.pick([item, *columns_of(columns)])
    relation = readers.from_json(relation, []) if kind in ("jsonl", "json") else relation
    if isinstance(columns, list):
        relation = readers.typed(relation, columns)
    return _placed(relation, item, columns, a, one=True)


def _placed(relation: Relation, item: str, columns: Any, a: Annotations, *, one: bool) -> Floats:
    """Gold as shares of labels, in the order of the crowd's items and labels."""
    N, K = len(a.items), len(a.labels)
    soft = isinstance(columns, list)
    if soft and len(columns) != K:
        raise ValueError(
            f"--gold needs a column for each of the {K} labels, in their order; "
            f"{len(columns)} came. The labels are {', '.join(map(str, a.labels))}."
        )
    place = {name: n for n, name in enumerate(a.items.tolist())}
    named = ", ".join(map(quote, [item, *columns_of(columns)]))
    rows = [row for row in relation.project(named).distinct().fetchall() if None not in row]
    rows = [row for row in rows if row[0] in place]
    several = [name for name, n in Counter(row[0] for row in rows).items() if n > 1]
    if one and several:
        raise ValueError(
            f"--gold must say the same in all rows of an item; {len(several)} items have "
            f"several, first {min(several)!r}."
        )
    names = {name: k for k, name in enumerate(a.labels.tolist())}
    strange = sorted({row[1] for row in rows if not soft} - names.keys())
    if strange:
        raise ValueError(
            f"--gold has {len(strange)} labels that nobody gave, first {strange[0]!r}. "
            "Name all labels that there are: --labels A,B,..."
        )
    said = np.zeros((N, K))
    for name, *told in rows:
        said[place[name]] += told if soft else np.eye(K)[names[told[0]]]
    total = said.sum(axis=1, keepdims=True)
    return np.where(total > 0, said / (1 if soft else np.where(total > 0, total, 1)), np.nan)
