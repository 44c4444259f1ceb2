"""What a store knows of its sums."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from slencodings import __version__
from slencodings.annotations import counted
from slencodings.tables.fuse import USUAL_WEIGHT
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
