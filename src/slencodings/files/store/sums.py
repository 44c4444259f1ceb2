"""What a store knows of its sums; these sums read, added to, and as rows that are fused."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw

from slencodings import __version__
from slencodings.annotations import counted
from slencodings.files.locate import Connection, Relation
from slencodings.opinion import USUAL_WEIGHT
from slencodings.tables.engines import ANNOTATOR, ITEM, LABEL, Frame
from slencodings.tables.rows import Rows
from slencodings.tables.sums import CERTAIN, COUNT
from slencodings.tables.weights import LIKELIHOOD, WORTH
from slencodings.trust.crowd import Crowd
from slencodings.trust.stored import crowd_from_dict

# The kind of store that this version writes, and the newest that it reads. The first kind is like
# it, but for crowds: these were learned otherwise. The third has sums by annotator.
KIND, BY_ANNOTATOR = 2, 3
SUMS = ["evidence", "dogmatic", "annotations"]

# What is known of a batch: name, rows, hash, when, and how it was read.
Batch: TypeAlias = dict[str, Any]


class Store(NamedTuple):
    """What a store knows of its sums.

    Attributes
    ----------
    item : the name of the item column in opinions
    confidence_scale : the ends of stated confidence, None if no column of it has come
    labels : all so far; no others may come if they are `fixed`
    crowd : `crowd_to_dict`, or None where annotations are weighed as stated
    batches : what was added: name, rows, hash, when, and the columns of it by role
    by_annotator : whether sums are kept for each annotator
    forgotten : how many annotations were added and taken out again
    """

    item: str
    smoothing: float
    confidence_scale: Any
    labels: list[Any]
    fixed: bool
    crowd: dict[str, Any] | None
    batches: list[Batch]
    by_annotator: bool = False
    forgotten: float = 0.0

    def about(self) -> dict[str, Any]:
        """The whole value, for the metadata of the file."""
        number = BY_ANNOTATOR if self.by_annotator else KIND
        kind = {"store": number, "version": __version__, "operator": "cumulative"}
        return kind | {"prior_weight": self.prior_weight} | self._asdict()

    def in_words(self) -> str:
        """How much there is, in words."""
        rows, n = sum(batch["rows"] for batch in self.batches), len(self.batches)
        batches = f"{n:,} batch{'es' * (n > 1)}"
        text = f"{counted(rows, 'row')} in {batches}, {counted(len(self.labels), 'label')}"
        gone = f", {counted(round(self.forgotten), 'annotation')} forgotten"
        return text + (gone if self.forgotten else "")

    @property
    def learned(self) -> Crowd | None:
        """The crowd that all batches are read with."""
        return None if self.crowd is None else crowd_from_dict(self.crowd)

    @property
    def prior_weight(self) -> float:
        """W of the evidence."""
        return USUAL_WEIGHT if self.crowd is None else float(self.crowd["prior_weight"])

    @property
    def keys(self) -> list[str]:
        """The columns that say whose sums they are."""
        return ["item", "annotator", "label"] if self.by_annotator else ["item", "label"]

    @property
    def sums(self) -> list[str]:
        """The columns that are added up."""
        tells = self.crowd is not None and self.crowd["model"] is not None
        return [*SUMS, "log_likelihood"] if tells else SUMS

    @property
    def columns(self) -> list[str]:
        """All columns."""
        return [*self.keys, *self.sums]


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
    integer = "INT" in type and type != "INTERVAL"
    return "number" if integer or type.startswith(("DOUBLE", "FLOAT", "DECIMAL")) else type


def as_rows(sums: Relation, store: Store) -> Rows:
    """The sums as rows that `fuse_rows` fuses."""
    theirs = ["item", "label", f"evidence / {store.prior_weight!r}", *store.sums[1:]]
    ours = [ITEM, LABEL, WORTH, CERTAIN, COUNT, LIKELIHOOD]
    named = ", ".join(f"{x} AS {column}" for x, column in zip(theirs, ours, strict=False))
    frame = nw.from_native(sums.project(named))
    return Rows(frame, store.labels, store.item, {}, crowd=store.learned, summed=True)
