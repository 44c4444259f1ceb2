"""A store opened: where it may be, by one process at a time, and only if it is sound."""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from slencodings import __version__
from slencodings.files.duckdb import brief
from slencodings.files.locate import Connection, metadata
from slencodings.files.store.batches import KINDS, kind_of
from slencodings.files.store.sums import BY_ANNOTATOR, KIND, Store, read_sums
from slencodings.trust.stored import crowd_from_dict


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
            whole = f"bit_xor(hash({', '.join(store.columns)}))"
            read_sums(connection, path, store).aggregate(whole).fetchall()
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
