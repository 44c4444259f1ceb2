"""The labels of a store: all so far, and those that a batch may bring."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType
from typing import Any

from slencodings.annotations import some
from slencodings.files.scan import Relation, quote
from slencodings.files.store.value import Store
from slencodings.tables.columns import natural

KINDS: dict[str, type | UnionType] = {"text": str, "truth values": bool, "numbers": int | float}


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
