"""Confidence of several sources: what else columns tell of how sure each annotation was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slencodings.annotations import Annotations, counted
from slencodings.files.scan import Relation, Table
from slencodings.files.write import quote
from slencodings.opinion import Floats


def lacks_some(rows: Relation, column: str, label: str) -> bool:
    """Whether some who answered did not say how sure they are, as people beside models do not."""
    x = quote(column)
    ((some, all),) = rows.aggregate(
        f"count({x}) FILTER ({quote(label)} IS NOT NULL), count({quote(label)})"
    ).fetchall()
    return 0 < some < all


def read_sources(
    table: Table, item: str, annotator: str | None, columns: Sequence[str], a: Annotations
) -> dict[str, Floats]:
    """Confidence in [0, 1] of each annotation, (R,), NaN where there is none, by column.

    Of who answered an item several times, the mean.
    """
    found: dict[str, Floats] = {}
    for column in columns:
        who = annotator or item
        rows = table.pick([item, who, column], texts=[column])
        text = f"nullif(trim({quote(column)}::VARCHAR), '')"
        x = f"try_cast({text} AS DOUBLE)"
        ((bad, example),) = rows.aggregate(
            f"count({text}) - count(CASE WHEN {x} BETWEEN 0 AND 1 THEN 1 END), "
            f"min(CASE WHEN {x} BETWEEN 0 AND 1 THEN NULL ELSE {text} END)"
        ).fetchall()
        if bad:
            raise ValueError(
                "`sources` of confidence must be numbers in [0, 1]; column "
                f"{column!r} has {counted(bad, 'row')} with something else, such as {example!r}. "
                "Divide a scale by its highest level first."
            )
        means = rows.aggregate(
            f"{quote(item)}, {quote(who)}, avg({x})", f"{quote(item)}, {quote(who)}"
        ).fetchall()
        known = {(i, m): c for i, m, c in means if c is not None}
        items, people = a.items.tolist(), a.annotators.tolist()
        each = (known.get((items[i], people[m])) for i, m in zip(a.item, a.annotator, strict=True))
        found[column] = np.asarray([np.nan if c is None else c for c in each], dtype=float)
    return found
