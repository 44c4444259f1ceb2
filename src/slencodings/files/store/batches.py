"""A store opened, by one process at a time and only if it is sound; and its batches.

What is kept of each, so that none is added twice, and what one may bring: the labels of all so far,
and those that are new.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import UnionType
from typing import Any

import duckdb

from slencodings import __version__
from slencodings.annotations import some
from slencodings.files.duckdb import brief
from slencodings.files.locate import Connection, Relation, metadata
from slencodings.files.store.sums import BY_ANNOTATOR, KIND, Batch, Store, read_sums
from slencodings.files.write import literal, quote
from slencodings.tables.columns import natural
from slencodings.tables.roles import NUMBERS, Reading, columns_of
from slencodings.tables.rows import Rows
from slencodings.trust.stored import crowd_from_dict, crowd_to_dict

KINDS: dict[str, type | UnionType] = {"text": str, "truth values": bool, "numbers": int | float}


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
        columns = [(quote(c), c if soft else role) for c in sorted(columns_of(spec))]
        for x, name in columns or [(repr(spec), role)]:
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
    return Store(
        item=batch["columns"]["item"],
        smoothing=smoothing,
        confidence_scale=scale,
        labels=labels,
        fixed=given or rows.soft or rows.crowd is not None,
        crowd=None if rows.crowd is None else crowd_to_dict(rows.crowd),
        batches=[batch],
        by_annotator=by_annotator,
    )


def known_labels(
    store: Store, crowd: Relation, label: Any, given: Sequence[Any] | None
) -> list[Any] | None:
    """The labels that a batch may have: those that it names and those in the store."""
    known = set(store.labels)
    if given is not None:
        if known != set(given) if store.fixed else not known <= set(given):
            raise ValueError(
                f"the store has labels={store.labels!r}; labels={list(given)!r} came. "
                "Leave them out, or begin another store."
            )
        return list(given)
    types = dict(zip(crowd.columns, map(str, crowd.types), strict=True))
    if isinstance(label, list):
        return None  # Probabilities are named by their columns,
    if types[label].endswith("]"):
        return store.labels if store.fixed else None  # or else by their places in a list.
    if store.fixed:
        return store.labels
    found = [v for (v,) in crowd.project(quote(label)).distinct().fetchall()]
    return _joined(store.labels, [v for v in found if v is not None and v == v])


def labels_to_keep(store: Store | None, labels: list[Any], given: bool) -> list[Any]:
    """The labels of a store once a batch that has these is in it."""
    if strange := [v for v in labels if not isinstance(v, str | bool | int | float)]:
        raise ValueError(
            "labels in a store must be text, numbers or truth values; "
            f"{type(strange[0]).__name__} came. Make them text first."
        )
    if store is None:
        return labels
    if store.fixed:
        if new := [v for v in labels if v not in store.labels]:
            raise ValueError(
                f"the labels of this store are fixed, {some(store.labels)}; {len(new)} others "
                f"came, first {new[0]!r}. Begin another store for them."
            )
        return store.labels
    return labels if given else _joined(labels, store.labels)


def _joined(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Both in the order in which labels of one file are found."""
    labels = list(dict.fromkeys([*first, *second]))
    # The first of each, whatever order an engine found them in.
    kinds = {kind_of(v): v for v in sorted(labels, key=repr, reverse=True)}
    if len(kinds) > 1:
        raise ValueError(
            f"labels must be of one type, as in the store; {' and '.join(sorted(kinds))} came, "
            f"such as {' and '.join(repr(kinds[k]) for k in sorted(kinds))}. Write them alike."
        )
    if any(isinstance(v, float) for v in labels):
        labels = [float(v) for v in labels]
    return sorted(labels, key=natural(labels))


def kind_of(label: Any) -> str:
    """Which of the kinds a label is, or the name of its type."""
    return next((k for k, t in KINDS.items() if isinstance(label, t)), type(label).__name__)


@contextmanager
def alone(store: Path) -> Generator[None]:
    """Keep others from adding to the same store; the lock of a process ends with it."""
    try:
        import fcntl
    except ImportError as error:
        raise OSError(
            "adding to a store needs file locks, which this system does not have. "
            "Run it under Linux, macOS or WSL."
        ) from error
    path = store.resolve()
    lock = path.with_name(f".{path.name}.lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it before may have taken the file away since it was opened.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(lock)):
                    break
        except BlockingIOError as error:
            os.close(handle)
            raise BlockingIOError(
                f"{store} is being added to by another process; nothing was changed. "
                "Wait for it to end, and type the same again."
            ) from error
        os.close(handle)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def open_store(connection: Connection, path: Path) -> Store | None:
    """What is known of the store to add to; None if it is yet to be begun."""
    if not path.exists():
        return None
    try:
        about = metadata(connection, path)
        if about.get("store") == 1 and about.get("trust") is None:
            about |= {"store": KIND, "crowd": None}
        if about.get("store") in (KIND, BY_ANNOTATOR):
            store = _store_that_says(about, path.name)
            # All of it, so that damage is not met in the middle and taken for that of new rows.
            checksum = f"bit_xor(hash({', '.join(store.columns)}))"
            read_sums(connection, path, store).aggregate(checksum).fetchall()
            return store
    except duckdb.Error as error:
        raise ValueError(
            f"{path.name} cannot be read as a store: {brief(error)} Nothing was changed. "
            "Take the last copy that you have of it, or name another file."
        ) from error
    if "store" not in about:
        raise ValueError(
            f"{path.name} is a file of another kind, not a store of evidence; nothing was "
            "changed. Name another file, and it is begun there."
        )
    raise ValueError(
        f"{path.name} is a store of kind {about['store']!r:.20}, written by slencodings "
        f"{about.get('version')!s:.20}; slencodings {__version__} knows kinds {KIND} and "
        f"{BY_ANNOTATOR}, and kind 1 if nothing was learned. Nothing was changed. "
        "Install the version that wrote it."
    )


def _store_that_says(about: Mapping[str, Any], name: str) -> Store:
    """The store that the metadata of a file tells of, checked: anybody can write them."""
    try:
        known = {**Store._field_defaults, **about}
        store = Store(**{field: known[field] for field in Store._fields})
        wrong = _wrong_field(store)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        store, wrong = None, f"{type(error).__name__}, {error}"
    if store is None or wrong is not None:
        raise ValueError(
            f"{name} cannot be read as a store: what it says of itself is damaged ({wrong:.200}). "
            "Nothing was changed. Take the last copy that you have of it, or name another file."
        )
    return store


def _wrong_field(store: Store) -> str | None:
    """The first field that no store has so; values that are not even of its type may raise."""
    if type(store.item) is not str:
        return "item"
    if type(store.smoothing) not in (int, float) or not 0 <= store.smoothing <= 1:
        return "smoothing"
    if store.confidence_scale is not None:
        low, high = map(float, store.confidence_scale)
        if low == high or not math.isfinite(high - low):
            return "confidence_scale"
    if type(store.labels) is not list:
        return "labels"
    kinds = {kind_of(label) for label in store.labels}
    if len(kinds) != 1 or not kinds <= KINDS.keys() or len({*store.labels}) < len(store.labels):
        return "labels"
    if type(store.fixed) is not bool:
        return "fixed"
    if type(store.by_annotator) is not bool:
        return "by_annotator"
    if type(store.forgotten) not in (int, float) or not 0 <= store.forgotten < math.inf:
        return "forgotten"
    if store.crowd is not None and crowd_from_dict(store.crowd).labels.tolist() != store.labels:
        return "crowd"
    for batch in store.batches:
        texts = [batch["name"], batch["hash"], batch["when"], *batch["columns"]]
        if type(batch["rows"]) is not int or not all(type(text) is str for text in texts):
            return "batches"
    return None
