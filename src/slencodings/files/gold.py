"""What is known to be true of items: from columns of the same file, or from another file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from slencodings.annotations import Annotations, counted, plainly
from slencodings.files.crowd_columns import Columns
from slencodings.files.duckdb import plain_errors
from slencodings.files.locate import Connection, Relation, Source, converted
from slencodings.files.scan import scan
from slencodings.files.values import typed
from slencodings.files.write import quote
from slencodings.opinion import Floats
from slencodings.tables.roles import Reading, choose_columns


def read_gold(connection: Connection, folder: Path, more: Columns, gold: str) -> Floats:
    """What is true of each item, (N, K), NaN where nothing is known; see `read_crowd`."""
    names, a = more.table.names, more.annotations
    soft = gold not in names
    columns = [name.strip() for name in gold.split(",")] if soft else [gold]
    if set(columns) <= set(names):
        relation = more.of_items(columns)
        relation = typed(relation, columns) if soft else relation
        return _placed(relation, str(more.reading.item), columns, a, soft=soft, one=True)
    if not Path(gold).is_file():
        raise ValueError(
            f"`gold` must be a column, columns with commas, or a file; {gold!r} came. "
            f"The columns are {', '.join(map(repr, names[:20]))}."
        )
    other = converted(Source(Path(gold).name, [gold]), Reading(), folder, more.say)
    with plain_errors(other):
        there = scan(connection, other)
        chosen = choose_columns(there.names, Reading())
        item, label = str(chosen.item), str(chosen.label)
        return _placed(there.pick([item, label]), item, [label], a, soft=False, one=False)


def _placed(
    relation: Relation, item: str, columns: list[str], a: Annotations, *, soft: bool, one: bool
) -> Floats:
    """Gold as shares of labels, in the order of the crowd's items and labels."""
    N, K = len(a.items), len(a.labels)
    if soft and len(columns) != K:
        raise ValueError(
            f"`gold` needs a column for each of the {K} labels, in their order; "
            f"{len(columns)} came. The labels are {', '.join(map(plainly, a.labels))}."
        )
    place = {name: n for n, name in enumerate(a.items.tolist())}
    named = ", ".join(map(quote, [item, *columns]))
    rows = [row for row in relation.project(named).distinct().fetchall() if None not in row]
    rows = [row for row in rows if row[0] in place]
    several = [name for name, n in Counter(row[0] for row in rows).items() if n > 1]
    if one and several:
        raise ValueError(
            f"`gold` must say the same in all rows of an item; of {counted(len(several), 'item')} "
            f"there are several, first {min(several)!r}."
        )
    names = {name: k for k, name in enumerate(a.labels.tolist())}
    strange = sorted({row[1] for row in rows if not soft} - names.keys())
    if strange:
        raise ValueError(
            f"`gold` has {counted(len(strange), 'label')} that nobody gave, first {strange[0]!r}. "
            "Name all labels that there are: labels=[...]"
        )
    truth = np.zeros((N, K))
    for name, *values in rows:
        truth[place[name]] += values if soft else np.eye(K)[names[values[0]]]
    total = truth.sum(axis=1, keepdims=True)
    return np.where(total > 0, truth / (1 if soft else np.where(total > 0, total, 1)), np.nan)
