"""Evidence that is kept in a file and added to: the sums, how they were made, what was added.

A store is a Parquet file with a row per item and label. Cumulative fusion adds evidence up, so
that is all it takes to go on, and annotations that were added once are never read again:

| column | is the sum of |
|---|---|
| item, label | (whose; no label where an item was shown and nobody said anything) |
| evidence | pseudo-counts of annotations with some doubt, for a prior weight of 2 or the crowd's |
| dogmatic | certain annotations, which are worth infinitely much and so are counted apart |
| annotations | annotations; soft ones share theirs among their labels |
| log_likelihood | of all annotations of the item if the label is true, by a crowd that knows |

So both readings of a learned crowd come out of a store, which is begun with it.

Sums do not know who said what: an annotator who says the same in two batches is counted twice. A
store may be begun with the sums of each annotator, in a column of that name: then it is larger, and
annotators can be forgotten.
"""

from __future__ import annotations

import glob
import math
import os
import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import duckdb
import narwhals as nw

from slencodings import __version__
from slencodings.annotations import counted
from slencodings.files.duckdb import brief
from slencodings.files.locate import Connection, metadata
from slencodings.files.scan import Relation, quote
from slencodings.files.weigh import Weighing, choose_weighing
from slencodings.files.write import check_place, literal
from slencodings.progress import Say
from slencodings.tables.columns import natural
from slencodings.tables.engines import ANNOTATOR, ITEM, LABEL, Frame, some
from slencodings.tables.fuse import USUAL_WEIGHT, Fusing
from slencodings.tables.roles import NUMBERS, Reading, columns_of
from slencodings.tables.rows import Rows
from slencodings.tables.sums import CERTAIN, COUNT
from slencodings.tables.weights import LIKELIHOOD, WORTH
from slencodings.trust.crowd import Crowd
from slencodings.trust.stored import crowd_from_dict, crowd_to_dict, load_crowd

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
        return text + (f", {self.forgotten:,g} annotations forgotten" if self.forgotten else "")

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


def check_place_of_store(store: str, source: str | Sequence[str]) -> None:
    """Refuse a place where no store can be, before any work is done."""
    if Path(store).suffix.lower() != ".parquet":
        raise ValueError(
            f"a store is a Parquet file; {Path(store).name!r} came. Name it store.parquet."
        )
    check_place(store, source)


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
    kinds = {_kind(label) for label in store.labels}
    if len(kinds) != 1 or not kinds <= _KINDS.keys() or len({*store.labels}) < len(store.labels):
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


def check_annotators(store: Store | None, wanted: bool, reading: Reading, name: str) -> bool:
    """Whether sums are kept for each annotator, as the store was begun; then there must be some."""
    if wanted and store is not None and not store.by_annotator:
        raise ValueError(
            "sums of this store are of all annotators together, and cannot be told apart; "
            "by_annotator=True came. Leave it out, or begin another store with it."
        )
    kept = wanted if store is None else store.by_annotator
    if kept and reading.annotator is None:
        raise ValueError(
            f"sums of each annotator need to know who annotated; no column of {name} looks like "
            "it. Name it: annotator='COLUMN'."
        )
    return kept


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


def check_additive(fusing: Fusing, reading: Reading) -> None:
    """Refuse what needs all annotations at once: a store has no more than sums."""
    if reading.keep:
        raise ValueError(
            f"a store holds items and sums alone; keep={list(reading.keep)!r} came. Leave it out, "
            "or encode the file without a store."
        )
    if fusing.operator != "cumulative":
        raise ValueError(
            "a store holds evidence that adds up, which is that of the cumulative operator; "
            f"operator={fusing.operator!r} came. Leave it out."
        )
    if fusing.weigh == "learned":
        raise ValueError(
            "a crowd is learned from all annotations at once, and a store does not have them; "
            "weigh='learned' came. Learn it from a file, save_crowd='crowd.json', and pass "
            "weigh='crowd.json'."
        )
    if reading.confidence_scale == "calibrated":
        raise ValueError(
            "what confidence is worth is learned from all annotations at once, and a store does "
            "not have them; `calibrated` came. Name the ends of the scale: confidence_scale=(1, 5)."
        )


def weighing_of(store: Store | None, reading: Reading, fusing: Fusing, say: Say) -> Weighing:
    """How annotations of a store are weighed; settings other than its own are refused.

    One that is begun is weighed as stated unless a stored crowd is named: to learn from its first
    batch would make it depend on which that is.
    """
    if store is None:
        if fusing.weigh is None:
            say(
                "note",
                "annotations of this store are weighed as stated; to weigh them by a learned "
                "crowd, begin it with --weigh FILE that --save-crowd wrote",
            )
        weigh = fusing.weigh or "stated"
        return choose_weighing(reading, replace(fusing, weigh=weigh, reading="votes"), say)
    asked = None if fusing.weigh in (None, "stated") else load_crowd(fusing.weigh)
    kept = "none" if store.crowd is None else "its own"
    if asked is not None and crowd_to_dict(asked) != store.crowd:
        _differs(f"{kept} as crowd", "another one")
    if fusing.weigh == "stated" and store.crowd is not None:
        _differs("a crowd of its own", "weigh='stated'")
    smoothing, scale = fusing.smoothing, reading.confidence_scale
    if smoothing is not None and smoothing != store.smoothing:
        _differs(f"smoothing={store.smoothing:g}", f"smoothing={smoothing:g}")
    if None not in (scale, store.confidence_scale):
        kept, came = (
            "confidence_scale=({:g}, {:g})".format(*ends)
            for ends in (store.confidence_scale, scale)
        )
        if kept != came:
            _differs(kept, came)
    if store.crowd is None:
        return Weighing("stated", learns=False, crowd=None)
    return Weighing("the crowd of the store", learns=False, crowd=store.learned)


def _differs(kept: str, came: str) -> None:
    raise ValueError(
        f"sums can be added up if they were made alike; the store has {kept}, and {came} came. "
        "Leave it out, or begin another store."
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
    kinds = {_kind(v): v for v in labels}
    if len(kinds) > 1:
        raise ValueError(
            f"labels must be of one type, as in the store; {' and '.join(sorted(kinds))} came, "
            f"such as {' and '.join(repr(kinds[k]) for k in sorted(kinds))}. Write them alike."
        )
    if any(isinstance(v, float) for v in labels):
        labels = [float(v) for v in labels]
    return sorted(labels, key=natural(labels))


_KINDS: dict[str, Any] = {"text": str, "truth values": bool, "numbers": int | float}


def _kind(label: Any) -> str:
    return next((k for k, t in _KINDS.items() if isinstance(label, t)), type(label).__name__)
