"""The sums of a store: read, added to, and as rows that are fused."""

from __future__ import annotations

import glob
from pathlib import Path

import narwhals as nw

from slencodings.files.locate import Connection, Relation
from slencodings.files.store.value import Store
from slencodings.tables.engines import ANNOTATOR, ITEM, LABEL, Frame
from slencodings.tables.rows import Rows
from slencodings.tables.sums import CERTAIN, COUNT
from slencodings.tables.weights import LIKELIHOOD, WORTH


def read_sums(connection: Connection, path: Path, store: Store) -> Relation:
    """The sums of a store."""
    relation = connection.read_parquet(glob.escape(str(path)))
    sums = (f"{column}::DOUBLE AS {column}" for column in store.sums)
    return relation.project(", ".join([*store.keys, *sums]))


def add(
    connection: Connection, old: Relation | None, new: Frame, name: str, store: Store
) -> Relation:
    """The sums of a store and of new annotations, which `add_rows` gave, added up."""
    whose = [f"{ITEM}.item", f"{ITEM}.who"] if store.by_annotator else [ITEM]
    sums = [f"{store.prior_weight!r}::DOUBLE * {WORTH}", CERTAIN, COUNT, LIKELIHOOD]
    pairs = zip([*whose, LABEL, *sums], store.columns, strict=False)
    relation = new.to_native().project(", ".join(f"{x} AS {column}" for x, column in pairs))
    if old is not None:
        _check_types(old, relation, name)
        keys, sums = ", ".join(store.keys), ", ".join(f"sum({n}) AS {n}" for n in store.sums)
        relation = old.union(relation).aggregate(f"{keys}, {sums}", keys)
    relation.create("evidence")
    if not store.by_annotator:
        # An item that nobody labelled has a row without label, until somebody does. Of those who
        # may be forgotten each keeps theirs.
        labelled = "SELECT item FROM evidence WHERE label IS NOT NULL"
        connection.execute(f"DELETE FROM evidence WHERE label IS NULL AND item IN ({labelled})")
    return connection.table("evidence")


def by_annotator(rows: Rows) -> Rows:
    """Rows of which each annotator's are added up apart: an item is then one of an annotator."""
    whose = f"struct_pack(item := {ITEM}, who := {ANNOTATOR}) AS {ITEM}"
    relation = rows.frame.to_native().project(f"{whose}, * EXCLUDE ({ITEM})")
    return rows._replace(frame=nw.from_native(relation))


def _check_types(old: Relation, relation: Relation, name: str) -> None:
    for role, kept, came in zip(old.columns, old.types, relation.types, strict=True):
        if role in ("item", "annotator") and _family(str(kept)) != _family(str(came)):
            # DuckDB would make 1 and "1" the same item.
            raise ValueError(
                f"{role}s must be of the type they have in the store, {kept}; {came} came from "
                f"{name}. Write them alike, for example all as CSV."
            )


def _family(type: str) -> str:
    whole = "INT" in type and type != "INTERVAL"
    return "number" if whole or type.startswith(("DOUBLE", "FLOAT", "DECIMAL")) else type


def as_rows(sums: Relation, store: Store) -> Rows:
    """The sums as rows that `fuse_rows` fuses."""
    theirs = ["item", "label", f"evidence / {store.prior_weight!r}", *store.sums[1:]]
    ours = [ITEM, LABEL, WORTH, CERTAIN, COUNT, LIKELIHOOD]
    named = ", ".join(f"{x} AS {column}" for x, column in zip(theirs, ours, strict=False))
    frame = nw.from_native(sums.project(named))
    return Rows(frame, store.labels, store.item, {}, crowd=store.learned, summed=True)
