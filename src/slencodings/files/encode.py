"""From files of annotations to a file of opinions, out of core, through DuckDB.

Text files are read once into a scratch database on disk; Parquet is queried where it is. The
result is written beside its final name and then renamed, so there is never half a file.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from slencodings import __version__
from slencodings.annotations import Annotations, counted
from slencodings.choices import CsvStyle
from slencodings.files import store as kept_evidence
from slencodings.files.beside import BESIDE
from slencodings.files.bucket import check_object, is_address, upload
from slencodings.files.duckdb import plain_errors, watch
from slencodings.files.forms import lay_out
from slencodings.files.keep import carry
from slencodings.files.locate import Connection, Source, is_store, locate, read_tool
from slencodings.files.lost import note_lost, note_open
from slencodings.files.scan import Relation, Step, quote, read
from slencodings.files.store import Store, alone, check_additive, open_store
from slencodings.files.weigh import Weighing, about_crowd, choose_weighing, how_written
from slencodings.files.write import (
    WRITERS,
    check_folder,
    check_place,
    check_target,
    disk_errors,
    workspace,
    writing,
    writing_parts,
)
from slencodings.opinion import Opinion
from slencodings.progress import Progress, Say
from slencodings.tables.arrays import read_annotations
from slencodings.tables.engines import ITEM, LABEL
from slencodings.tables.fuse import About, Fusing, add_rows, describe
from slencodings.tables.roles import Reading
from slencodings.tables.rows import Rows, count_repeated, read_rows, tell
from slencodings.tables.sums import CERTAIN, COUNT
from slencodings.tables.weights import WORTH
from slencodings.trust.crowd import Crowd
from slencodings.trust.learn_from_table import learn_from_table, plain_reading
from slencodings.trust.stored import crowd_to_json


class Known(NamedTuple):
    """What is known of items in the end, which may be more than were annotated.

    Attributes
    ----------
    items : (N,), names
    opinion : Opinion (N,), of one base rate
    """

    items: NDArray[Any]
    opinion: Opinion


# Opinions of more rows are written as they come unless they are to be sorted: that takes longer
# than it helps who reads them.
MOST_ROWS_TO_SORT = 1_000_000

# What knows more of items than their annotations tell: from these and what was learned of them.
Also: TypeAlias = Callable[[Annotations, Crowd], Known]


class Job(NamedTuple):
    """What is to be done with files of annotations, and whom to tell how far it is."""

    connection: Connection
    source: Source
    reading: Reading
    fusing: Fusing
    target: Path | None
    writer: str
    step: Step
    say: Say
    parts: Sequence[str] = ()
    also: Also | None = None
    sort: bool | None = None

    def in_order(self, rows: int) -> bool:
        """Whether opinions of so many rows are written in the order of items."""
        return rows <= MOST_ROWS_TO_SORT if self.sort is None else self.sort


class Input(NamedTuple):
    """What was read: the table, how, and its rows, known to be sound."""

    crowd: Relation
    reading: Reading
    rows: Rows


def encode_file(
    source: str | Sequence[str],
    target: str | None = None,
    reading: Reading | None = None,
    fusing: Fusing | None = None,
    *,
    into: str | None = None,
    again: bool = False,
    by_annotator: bool = False,
    memory: str | None = None,
    save_crowd: str | None = None,
    csv_style: CsvStyle = "plain",
    partition_by: Sequence[str] = (),
    sort: bool | None = None,
    also: Also | None = None,
    say: Say = lambda what, text: None,
    progress: Progress = lambda what, done, total, unit: None,
) -> About:
    """Fuse files of annotations into a file of opinions, and return how that was done.

    Parameters
    ----------
    source : a file, or a store; several; a folder; a pattern; an address; `-` is standard input
    target : a path, an address such as s3://bucket/out.parquet, or `-` for standard output
    into : a store of evidence to add the annotations to; the opinions are those of all it holds
    again : add them even if they were added before
    by_annotator : keep sums of each annotator in a store that is begun, so that they can be
        forgotten: `files.store.forget`
    memory : about as much as may be used, such as "2GB"; what does not fit goes to disk. Left out,
        most of what the machine has
    save_crowd : where to keep what was learned
    csv_style : how a target that is CSV is written
    partition_by : columns, kept as `keep` of the reading does, by whose values the target is a
        folder of parts, day=2026-11-16/part-0.parquet
    sort : whether to write items in order; if not said, of up to a million annotations. Parts, what
        is read from a store and what is written there always are
    also : what knows more of items than their annotations tell, such as a network
    say, progress : called with notes for people, and with what is done of each step
    """
    reading, fusing = reading or Reading(), fusing or Fusing()
    if target is None and into is None:
        raise ValueError(
            "an output is needed, for opinions or for evidence to add to; neither came. "
            "Pass a target, or into='store.parquet'."
        )
    stores = [] if into is None else [into]
    writer, remote = "", target is not None and is_address(target)
    if partition_by:
        _check_parts(target, into, csv_style)
        reading = replace(reading, keep=list(dict.fromkeys([*reading.keep, *partition_by])))
        writer = check_folder(str(target), source)
    elif target is not None:
        writer = check_target(target, source, *stores, style=csv_style)
    if remote:
        check_object(str(target), [source] if isinstance(source, str) else source)
    for store in stores:
        kept_evidence.check_place_of_store(store, source)
    if save_crowd is not None:
        outputs = [target, f"{target}{BESIDE}"] if target else []
        check_place(save_crowd, source, *stores, *outputs)
    with disk_errors(), workspace(memory) as (connection, folder), ExitStack() as held:
        for store in stores:
            held.enter_context(alone(Path(store)))
        found = locate(connection, source, folder)
        files = (None if partition_by else target, save_crowd)
        for output in [*stores, *(name for name in files if name not in (None, "-"))]:
            # A pattern may stand for what is to be replaced.
            (check_object if is_address(output) else check_place)(output, found.files)
        found, reading = read_tool(found, reading, folder, say)
        kept = len(found.files) == 1 and found.local and is_store(connection, Path(*found.files))
        # Not straight to standard output, which would show half of what then fails.
        new = None if target is None else folder / "output.csv" if target == "-" else Path(target)
        if remote:
            (folder / "upload").mkdir()
            new = folder / "upload" / PurePosixPath(str(target)).name

        def work(step: Step) -> About:
            job = Job(
                connection, found, reading, fusing, new, writer, step, say, partition_by, also, sort
            )
            if into is not None:
                return _add(job, Path(into), again, by_annotator)
            if kept:
                # A copy, because somebody may add to it meanwhile.
                copy = shutil.copyfile(found.files[0], folder / f"copy of {found.name}")
                return _fuse_store(job, Path(copy))
            return _fuse(job, save_crowd)

        with plain_errors(found, reading.format):
            about = watch(connection, work, progress)
        if remote and new is not None:
            upload(sorted(new.parent.iterdir(), key=lambda file: file == new), str(target))
        if target == "-" and new is not None:
            with new.open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    if target is not None:
        say("wrote", f"{target}: {counted(about['written'], 'row')}, {how_written(about)}")
    if save_crowd is not None:
        say("wrote", f"{save_crowd}: the crowd that was learned")
    return about


def _fuse(job: Job, save_crowd: str | None) -> About:
    """Read, check, fuse and write."""
    fusing, source = job.fusing, job.source
    _check_finite(job, fusing.smoothing)
    weighing = choose_weighing(job.reading, fusing, job.say)
    if save_crowd is not None and not weighing.learns:
        raise ValueError(
            f"a crowd is kept once it is learned; weigh={weighing.how!r} came with `save_crowd`. "
            "Leave one of them out."
        )
    given = _read(job, weighing)
    reading, rows = given.reading, given.rows
    if job.also is None:
        opinions, about = lay_out(rows, fusing)
    else:
        opinions, about = _lay_out_known(job, given, job.also)
    opinions = carry(opinions, given.crowd, reading, job.say)
    note_open(opinions, rows.counts["rows"], job.say)
    about |= {"version": __version__, "source": source.name}
    about |= {"files": len(source.files)} if len(source.files) > 1 else {}
    about |= about_reading(reading, rows)
    about["weigh"] = weighing.how
    beside: dict[Path, str] = {}
    if rows.crowd is not None:
        about |= about_crowd(rows.crowd, weighing.how, fusing.seed)
        beside |= {Path(save_crowd): crowd_to_json(rows.crowd)} if save_crowd else {}
    job.step("fusing", rows.counts["rows"], "rows")
    if job.parts and job.target is not None:
        about["partition_by"] = list(job.parts)
        place = (job.connection, opinions, job.target, job.writer, about)
        with writing_parts(*place, job.parts, beside) as count:
            about["written"] = count
        return about
    place = (job.connection, opinions, job.target, job.writer, about, beside)
    with writing(*place, in_order=job.in_order(rows.counts["rows"])) as count:
        about["written"] = count
    return about


def _check_parts(target: str | None, into: str | None, style: CsvStyle) -> None:
    """Refuse what cannot be a folder of parts."""
    if target is None:
        raise ValueError("parts need a folder to be in; none came. Name it: target='folder'.")
    if into is not None:
        raise ValueError(
            f"a store has no columns to part opinions by; into={into!r} came with `partition_by`. "
            "Leave one of them out."
        )
    if style != "plain":
        raise ValueError(
            f"csv_style={style!r} is for one file; `partition_by` writes a folder of many. "
            "Leave one of them out."
        )


def _lay_out_known(job: Job, given: Input, also: Also) -> tuple[Relation, About]:
    """What is known in the end, in a form of files, and how it was made.

    Opinions are rows again: what they believe is as much evidence, b / u.
    """
    rows, fusing = given.rows, job.fusing
    if rows.crowd is None:
        raise ValueError(
            "what is known besides is fused with what was learned of a crowd, and annotations are "
            "weighed as stated; weigh='stated' came. Leave one of them out."
        )
    items, opinion = also(read_annotations(given.crowd, plain_reading(given.reading)), rows.crowd)
    labels = rows.crowd.labels.tolist()
    b, u, a = (np.asarray(part, dtype=float) for part in opinion)
    N, K = b.shape
    certain = (u == 0)[:, None]
    worth = b / np.where(certain, 1, u[:, None])
    columns = {
        ITEM: np.repeat(np.asarray(items, dtype=object), K),
        LABEL: np.tile(np.asarray(labels, dtype=object), N),
        WORTH: np.where(certain, 0, worth).ravel(),
        CERTAIN: np.where(certain, b, 0).ravel(),
        COUNT: np.zeros(N * K),
    }
    job.connection.register("sle_known", columns)
    frame = nw.from_native(job.connection.table("sle_known"))
    summed = Rows(frame, labels, rows.item, rows.counts, summed=True)
    weight = fusing.prior_weight or rows.crowd.prior_weight
    plain = replace(
        fusing, smoothing=0.0, base_rate=a[0].tolist(), prior_weight=weight, reading="votes"
    )
    opinions, about = lay_out(summed, plain)
    return opinions, about | {"reading": fusing.reading, "crowd": describe(rows.crowd)}


def _add(job: Job, path: Path, again: bool, by_annotator: bool) -> About:
    """Add files of annotations to a store; with a target, also write the opinions of all in it.

    What the store was begun with (smoothing, the scale of confidence, the crowd) need not be said
    again, and cannot be changed.
    """
    reading, fusing, source = job.reading, job.fusing, job.source
    check_additive(fusing, reading)
    known = open_store(job.connection, path)
    weighing = kept_evidence.weighing_of(known, reading, fusing, job.say)
    if known is not None and known.crowd is None:
        fusing = replace(fusing, smoothing=known.smoothing)
    given = _read(job, weighing, known)
    rows, found = given.rows, given.reading
    by_annotator = kept_evidence.check_annotators(known, by_annotator, found, source.name)
    batch = kept_evidence.describe_batch(source.name, given.crowd, found)
    batch["when"] = datetime.now(UTC).isoformat(timespec="seconds")
    if known is not None and not again:
        kept_evidence.check_new(known, batch, path)
    apart = kept_evidence.by_annotator(rows) if by_annotator else rows
    new, smoothing = add_rows(apart, replace(fusing, reading="votes"))
    scale = found.confidence_scale or (0, 1) if isinstance(found.confidence, str) else None
    store = kept_evidence.with_batch(
        known,
        batch,
        rows,
        smoothing,
        scale,
        given=reading.labels is not None,
        by_annotator=by_annotator,
    )
    job.step("adding", rows.counts["rows"], "rows")
    old = None if known is None else kept_evidence.read_sums(job.connection, path, known)
    total = kept_evidence.add(job.connection, old, new, source.name, store)
    about = store.about()
    job.step("writing", None, "")
    with ExitStack() as both:  # Neither takes its place before both are there.
        if job.target is not None:
            opinions, about = _fuse_sums(job, total, store, path.name)
            targets = writing(job.connection, opinions, job.target, job.writer, about)
            about["written"] = both.enter_context(targets)
        parquet = WRITERS[".parquet"]
        both.enter_context(writing(job.connection, total, path, parquet, store.about()))
    job.say("added", f"{source.name} to {path}: {store.in_words()}")
    return about


def _fuse_store(job: Job, path: Path) -> About:
    """Write the opinions of all that is in a store."""
    name, reading = job.source.name, job.reading
    check_additive(job.fusing, reading)
    known = open_store(job.connection, path)
    assert known is not None, "it was recognised before"
    kept_evidence.weighing_of(known, reading, job.fusing, job.say)
    for role, spec in {**reading.columns, "labels": reading.labels}.items():
        if spec is not None:
            raise ValueError(
                f"{name} is a store, and was read when it was made; {role}={spec!r} came. "
                "Leave it out."
            )
    job.say("read", f"{name}: {known.in_words()}")
    job.step("fusing", None, "")
    sums = kept_evidence.read_sums(job.connection, path, known)
    opinions, about = _fuse_sums(job, sums, known, name)
    with writing(job.connection, opinions, job.target, job.writer, about) as count:
        about["written"] = count
    return about


def _fuse_sums(job: Job, total: Relation, store: Store, name: str) -> tuple[Relation, About]:
    """The opinions of all that is in a store, and how they were made."""
    smoothing = store.smoothing if store.crowd is None else None
    _check_finite(job, smoothing)
    rows = kept_evidence.as_rows(total, store)
    opinions, about = lay_out(rows, replace(job.fusing, smoothing=smoothing))
    about |= {"version": __version__, "source": name, "batches": store.batches}
    about |= {"rows": sum(batch["rows"] for batch in store.batches)}
    about["weigh"] = "stated"
    if rows.crowd is not None:
        about |= about_crowd(rows.crowd, name, job.fusing.seed)
    return opinions, about


def _check_finite(job: Job, smoothing: float | None) -> None:
    if smoothing == 0 and "json" in job.writer and {"evidence", "alpha"} & {*job.fusing.values}:
        raise ValueError(
            "JSON cannot hold the infinite evidence of certain annotations; smoothing=0 came. "
            "Write .parquet or .csv, or pass a smoothing such as 0.01."
        )


def _read(job: Job, weighing: Weighing, known: Store | None = None) -> Input:
    """Read files and look at their values, and tell what was read and what of it may surprise.

    They must be like what is in a store, if that is known.
    """
    source, say, stored = job.source, job.say, weighing.crowd
    crowd, reading = read(
        job.connection, source, job.reading, learned=not weighing.stated, say=say, step=job.step
    )
    if source.empty:
        say("note", f"{source.empty:,} empty files are left out")
    job.step("checking", None, "")
    if known is not None:
        kept_evidence.check_roles(known, reading, source.name)
        if reading.confidence_scale is None and isinstance(reading.confidence, str):
            reading = replace(reading, confidence_scale=known.confidence_scale)
        if stored is None:
            labels = kept_evidence.known_labels(known, crowd, reading.label, reading.labels)
            reading = replace(reading, labels=labels)
    if reading.confidence_scale is not None:
        reading = replace(reading, confidence_scale=_scale(crowd, reading, say))
    if weighing.learns:
        stored = _learn(job, crowd, reading)
    elif stored is not None and reading.annotator is not None:
        _note_new(crowd, reading.annotator, stored, weighing.how, say)
    rows = read_rows(crowd, reading, crowd=stored)
    note_lost(crowd, reading, stated=stored is None, say=say)
    tell(rows, source.name, len(source.files), say)
    if reading.duplicates == "all" and reading.annotator is not None:
        repeated, exact = count_repeated(rows)
        if repeated:
            about, where = ("", "") if exact else ("about ", ", counted on some of the items")
            they = f"{about}{counted(repeated, 'row')} repeat{'s' * (repeated == 1)}"
            say(
                "note",
                f"{they} an earlier (item, annotator) pair{where}; all are kept. "
                "--duplicates average|first|last|error changes that",
            )
    return Input(crowd, reading, rows)


def _learn(job: Job, crowd: Relation, reading: Reading) -> Crowd:
    job.step("learning", None, "")
    learned = learn_from_table(
        crowd,
        reading,
        seed=job.fusing.seed,
        say=job.say,
        progress=lambda done, total: job.step("learning", total, "", done),
    )
    job.step("checking", None, "")
    return learned


def _note_new(crowd: Relation, annotator: str, stored: Crowd, name: str, say: Say) -> None:
    """Tell how many annotators a stored crowd does not know."""
    found = crowd.project(quote(annotator)).distinct().fetchall()
    here = {name for (name,) in found if name is not None}
    if new := here - set(stored.annotators.tolist()):
        say(
            "note",
            f"{len(new):,} of {len(here):,} annotators are new to {name}, such as {min(new)!r}; "
            "they get its typical worth",
        )


def _scale(crowd: Relation, reading: Reading, say: Say) -> Any:
    """The ends of the confidence scale; or what it is worth, learned from the crowd."""
    scale = reading.confidence_scale
    if not isinstance(reading.confidence, str):
        raise ValueError(
            "a confidence scale needs a column of confidence; none was found. "
            "Name it: confidence='COLUMN'."
        )
    if scale != "calibrated":
        return scale
    from slencodings.confidence import calibrate
    from slencodings.tables.arrays import from_table

    columns = {role: spec for role, spec in reading.columns.items() if role != "reliability"}
    # Only confidence that was stated can be compared, so what is missing is not trusted here.
    absent = "error" if reading.missing == "error" else "drop"
    learned = calibrate(from_table(crowd, **columns, confidence_scale=None, missing=absent))
    say("learned", f"what stated confidence is worth:\n{learned}")
    return learned


def about_reading(reading: Reading, rows: Rows) -> About:
    """How rows were read, in plain values."""
    about: About = {"columns": reading.columns}
    if reading.confidence is not None:
        as_stated = rows.crowd is not None and not rows.crowd.from_uncertainty
        scale: Any = reading.confidence_scale or (0, 1)
        ends: Any = scale.to_rows() if hasattr(scale, "to_rows") else list(scale)
        about["confidence_scale"] = "as stated" if as_stated else ends
    return about | {"missing": reading.missing, "duplicates": reading.duplicates, **rows.counts}
