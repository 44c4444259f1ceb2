"""What is kept of each batch that was added, so that none is added twice by mistake."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slencodings.files.scan import Relation, quote
from slencodings.files.store.labels import labels_to_keep
from slencodings.files.store.value import Batch, Store
from slencodings.files.write import literal
from slencodings.tables.roles import NUMBERS, Reading, columns_of
from slencodings.tables.rows import Rows
from slencodings.trust.stored import crowd_to_dict


def describe_batch(name: str, crowd: Relation, reading: Reading) -> Batch:
    """What is kept of a batch, with a hash of what it says in whatever order and format."""
    count, digest = _fingerprint(crowd, reading.columns)
    columns, missing = reading.columns, reading.missing
    return {"name": name, "rows": count, "hash": digest, "columns": columns, "missing": missing}


def _fingerprint(crowd: Relation, chosen: Mapping[str, Any]) -> tuple[int, str]:
    """The number of rows and a hash of what they say."""
    parts: list[str] = []
    for role, spec in sorted(chosen.items()):
        soft = isinstance(spec, list)
        said = [(quote(c), c if soft else role) for c in sorted(columns_of(spec))]
        for x, name in said or [(repr(spec), role)]:
            number = f"nullif(CAST({x} AS DOUBLE), 'nan'::DOUBLE)"
            text = f"CAST({number if soft or role in NUMBERS else x} AS VARCHAR)"
            # With their lengths, so that no two rows look alike that are not.
            parts += [literal(name), f"coalesce(strlen({text}) || ':' || {text}, '-')"]
    # DuckDB's own hash may be another in its next version. Sums, because they know no order, and
    # unlike exclusive or they see what comes twice.
    hashes = crowd.project(f"md5_number(concat({', '.join(parts)})) AS row").aggregate(
        f"count(*), sum(CAST(row & {2**64 - 1} AS HUGEINT)), sum(CAST(row >> 64 AS HUGEINT))"
    )
    count, low, high = hashes.fetchall()[0]
    return count, f"{int(low) % 2**64:016x}{int(high) % 2**64:016x}"


def check_new(store: Store, batch: Batch, path: Path) -> None:
    """Refuse what was added before."""
    for other in store.batches:
        if (other["rows"], other["hash"]) == (batch["rows"], batch["hash"]):
            raise ValueError(
                f"the rows of {batch['name']} ({batch['rows']:,}) are in {path.name} already, "
                f"added as {other['name']} on {other['when']}; nothing was changed. To count them "
                "twice pass again=True; to write opinions, type: "
                f"sle encode {shlex.quote(str(path))} -o OUT"
            )


def check_roles(store: Store, reading: Reading, name: str) -> None:
    """Refuse a batch that lacks what others had: a column may just be called otherwise."""
    chosen = reading.columns
    before = {role for batch in store.batches for role in batch["columns"]}
    doubt = {"confidence", "uncertainty"}
    lacks = [] if doubt & chosen.keys() else sorted(doubt & before)
    lacks += [role for role in ("reliability",) if role in before and role not in chosen]
    for role in lacks:
        one = "0" if role == "uncertainty" else "1"
        raise ValueError(
            f"what is in the store came with {role}; no column of {name} looks like it. "
            f"Name it: {role}='COLUMN'; or give one number for all: {role}={one}."
        )


def with_batch(
    store: Store | None,
    batch: Batch,
    rows: Rows,
    smoothing: float,
    scale: Any,
    *,
    given: bool,
    by_annotator: bool = False,
) -> Store:
    """What is known of a store once a batch is in it; `given` are labels that somebody named."""
    labels = labels_to_keep(store, rows.labels, given)
    scale = None if scale is None or rows.crowd is not None else list(scale)
    if store is not None:
        return store._replace(
            confidence_scale=store.confidence_scale or scale,
            labels=labels,
            fixed=store.fixed or given,
            batches=[*store.batches, batch],
        )
    fixed = given or rows.soft or rows.crowd is not None
    crowd = None if rows.crowd is None else crowd_to_dict(rows.crowd)
    item = batch["columns"]["item"]
    return Store(item, smoothing, scale, labels, fixed, crowd, [batch], by_annotator)
