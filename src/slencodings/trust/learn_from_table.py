"""Learn about a crowd from a table of any size, in whatever engine, and tell what was learned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import narwhals as nw
import numpy as np

from slencodings.annotations import by_annotators, counted
from slencodings.tables.arrays import read_annotations
from slencodings.tables.columns import found_labels, label_column
from slencodings.tables.engines import LABEL, is_database, is_spark, open_table, small, to_arrays
from slencodings.tables.roles import Reading
from slencodings.trust.crowd import Crowd
from slencodings.trust.learn_crowd import MOST_LABELS, count_each, learn_crowd
from slencodings.trust.sample import sample_any_items, sample_by_hash, sample_items

# Fewer annotations that share items than these teach nothing that would hold for others.
LEAST_TO_LEARN_FROM = 30
# More annotations than these teach little more and take long: then about half as many are sampled.
MOST_TO_LEARN_FROM, SAMPLED = 200_000, 100_000
# Items that each annotator keeps in a sample, unless annotators are very many.
_ITEMS_OF_EACH = 100


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
        say("note", "it predicts votes no better than counting them does")
    if not crowd.converged:
        say("note", "learning did not come to an end; what it had found by then is used")
    if crowd.model is None:
        many = f"more than {MOST_LABELS} labels" if len(crowd.labels) > MOST_LABELS else "so many"
        say("note", f"of {many}, what is said where a label is true is not learned")
    if crowd.annotators.tolist() == ["anonymous"]:
        say("note", "no annotator column was found, so one worth is learned for all")


def _sampled(
    table: Any, reading: Reading, seed: int, say: Callable[[str, str], None]
) -> tuple[Any, Reading]:
    """The table if it is small, or else a sample of it, and how to read that."""
    item, annotator = str(reading.item), reading.annotator
    frame, _ = open_table(table)
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
    how: Any = {"item": item, "annotator": annotator, "per_annotator": of_each, "seed": seed}
    if frame.implementation.is_duckdb():
        sample = sample_by_hash(table, size=SAMPLED, **how)
    else:
        sample = _collected(sample_items(table, share=SAMPLED / rows, **how))
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


def _all_labels(frame: nw.LazyFrame[Any], reading: Reading) -> Any:
    """The labels of the whole table, of which a sample may lack some."""
    label = reading.label
    if reading.labels is not None or not isinstance(label, str):
        return reading.labels
    schema = frame.collect_schema()
    if isinstance(schema[label], nw.List | nw.Array):
        return None
    column, _ = label_column(schema, label, None, reading)
    return found_labels(frame.select(column.alias(LABEL)), label, None)
