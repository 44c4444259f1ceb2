"""From files of annotations to a file of opinions, out of core, through DuckDB.

Text files are read once, large ones that are as usual into sums of their items, others into a
scratch database on disk; Parquet is queried where it is. The result is written beside its final
name and then renamed, so there is never half a file.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import narwhals as nw
import numpy as np

from slencodings import __version__
from slencodings.choices import CsvStyle
from slencodings.files import one_pass
from slencodings.files.adding import add_to_store, fuse_store
from slencodings.files.beside import BESIDE
from slencodings.files.bucket import ADDRESS, check_object, upload
from slencodings.files.duckdb import plain_errors, watch
from slencodings.files.forms import about_rows, carry, lay_out, note_open
from slencodings.files.job import Also, Input, Job, Output, Weighing, choose_weighing, read_job
from slencodings.files.locate import Relation, Source, locate, read_tool
from slencodings.files.scan import Tell, choose
from slencodings.files.store.batches import alone
from slencodings.files.values import read_chosen
from slencodings.files.write import (
    check_finite,
    check_folder,
    check_place,
    check_target,
    disk_errors,
    tell_written,
    workspace,
    writing,
    writing_parts,
)
from slencodings.progress import Progress, Say
from slencodings.tables.arrays import read_annotations
from slencodings.tables.engines import ITEM, LABEL
from slencodings.tables.fuse import Fusing, Metadata, describe
from slencodings.tables.roles import Reading
from slencodings.tables.rows import Rows
from slencodings.tables.sums import CERTAIN, COUNT
from slencodings.tables.weights import WORTH
from slencodings.trust.learn_from_table import plain_reading
from slencodings.trust.stored import crowd_to_json

# Opinions of more rows are written as they come unless they are to be sorted: to sort takes memory
# and time for an order that few who read so many need.
MOST_ROWS_TO_SORT = 1_000_000


class _Places(NamedTuple):
    """What is to be written, where and how, as in `encode_file`."""

    target: str | None
    into: str | None
    save_crowd: str | None
    partition_by: Sequence[str]
    csv_style: CsvStyle


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
) -> Metadata:
    """Fuse files of annotations into a file of opinions, and return how that was done.

    Parameters
    ----------
    source : a file, or a store; several; a folder; a pattern; an address; `-` is standard input
    target : a path, an address such as s3://bucket/out.parquet, or `-` for standard output
    into : a store of evidence to add the annotations to; the opinions are those of all it holds
    again : add them even if they were added before
    by_annotator : keep sums of each annotator in a store that is begun, so that they can be
        forgotten: `files.adding.forget`
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
    places = _Places(target, into, save_crowd, partition_by, csv_style)
    writer = _check_places(places, source)
    check_finite(writer, fusing.smoothing, fusing.values)
    reading = replace(reading, keep=list(dict.fromkeys([*reading.keep, *partition_by])))
    lock = nullcontext() if into is None else alone(Path(into))
    with disk_errors(), workspace(memory) as (connection, folder), lock:
        found = locate(connection, source, folder)
        _check_places(places, found.files)  # A pattern may stand for an output, too.
        found, reading = read_tool(found, reading, folder, say)
        if found.store or into is not None or partition_by:
            _check_order(sort)
        path, elsewhere = None if target is None else Path(target), None
        if target == "-" or ADDRESS.match(target or ""):
            # Written here first: standard output would show half of what then fails.
            path, elsewhere = folder / "output" / Path(str(target)).name, target
            path.parent.mkdir()
        output = Output(path, writer, partition_by, sort)

        def work(step: Tell) -> Metadata:
            job = Job(connection, found, reading, fusing, output, step=step, say=say, also=also)
            if into is not None:
                return add_to_store(job, Path(into), again, by_annotator)
            return _fuse_copy(job, folder) if found.store else _fuse(job, save_crowd)

        with plain_errors(found, reading.format):
            about = watch(connection, work, progress)
        if path is not None and elsewhere is not None:
            _hand_over(path, elsewhere)
    if target is not None:
        tell_written(target, about, say)
    if save_crowd is not None:
        say("wrote", f"{save_crowd}: the crowd that was learned")
    return about


def _hand_over(new: Path, target: str) -> None:
    """Bring what was written to where it is to be."""
    if target != "-":
        upload(sorted(new.parent.iterdir(), key=lambda file: file == new), target)
        return
    with new.open("rb") as written:
        shutil.copyfileobj(written, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _fuse_copy(job: Job, folder: Path) -> Metadata:
    """Fuse what is in a store: a copy of it, because somebody may add to it meanwhile."""
    source = job.source
    return fuse_store(
        job, Path(shutil.copyfile(source.files[0], folder / f"copy of {source.name}"))
    )


def _fuse(job: Job, save_crowd: str | None) -> Metadata:
    """Read, check, fuse and write."""
    source = job.source
    weighing, rows, reading, opinions, about = _opinions(job, keep=save_crowd is not None)
    note_open(opinions, rows.counts["rows"], job.say)
    about |= {"version": __version__, "source": source.name}
    about |= {"files": len(source.files)} if len(source.files) > 1 else {}
    about |= about_rows(rows, reading, weighing, job.fusing.seed)
    beside: dict[Path, str] = {}
    if rows.crowd is not None and save_crowd is not None:
        beside[Path(save_crowd)] = crowd_to_json(rows.crowd)
    job.step("fusing", rows.counts["rows"], "rows")
    path, writer, parts, sort = job.output
    if parts and path is not None:
        about["partition_by"] = list(parts)
        written = writing_parts(job.connection, opinions, path, writer, about, parts, beside)
    else:
        in_order = rows.counts["rows"] <= MOST_ROWS_TO_SORT if sort is None else sort
        written = writing(job.connection, opinions, path, writer, about, beside, in_order=in_order)
    with written as count:
        about["written"] = count
    return about


class _Fused(NamedTuple):
    """How rows were weighed, these, how they were read, their opinions, and how those were made."""

    weighing: Weighing
    rows: Rows
    reading: Reading
    opinions: Relation
    about: Metadata


def _opinions(job: Job, *, keep: bool) -> _Fused:
    """Read, check and fuse, large and plain files in one pass; the crowd may be there to `keep`."""
    large, weighing = _are_large(job.source), choose_weighing(job.reading, job.fusing, job.say)
    if keep and not weighing.learns:
        raise ValueError(
            f"a crowd is kept once it is learned; weigh={weighing.how!r} came with `save_crowd`. "
            "Leave one of them out."
        )
    chosen = choose(
        job.connection,
        job.source,
        job.reading,
        learned=weighing.how != "stated",
        say=job.say,
        step=job.step,
    )
    if large and (fused := one_pass.fuse_in_one_pass(job, weighing, chosen)):
        rows, opinions, about = fused
        return _Fused(weighing, rows, chosen.reading, opinions, about)
    crowd, reading = read_chosen(job.connection, chosen, job.say)
    given = read_job(job, weighing, crowd, reading)
    if job.also is None:
        opinions, about = lay_out(given.rows, job.fusing)
    else:
        opinions, about = _lay_out_known(job, given, job.also)
    opinions = carry(opinions, given.crowd, given.reading, job.say)
    return _Fused(weighing, given.rows, given.reading, opinions, about)


def _are_large(source: Source) -> bool:
    """Whether files may have so many rows that one pass pays: a row has four bytes or more."""
    sizes = (Path(file).stat().st_size for file in source.files)
    return source.local and sum(sizes) >= 4 * one_pass.LEAST_ROWS


def _lay_out_known(job: Job, given: Input, also: Also) -> tuple[Relation, Metadata]:
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


def _check_places(places: _Places, source: str | Sequence[str]) -> str:
    """How opinions are written, or an error if they cannot be, or would replace what is read."""
    target, into, crowd, parts, style = places
    if target is None and into is None:
        raise ValueError(
            "an output is needed, for opinions or for evidence to add to; neither came. "
            "Pass a target, or into='store.parquet'."
        )
    writer, stores = "", [] if into is None else [into]
    if parts:
        _check_parts(target, into, style)
        writer = check_folder(str(target), source)
    elif target is not None:
        writer = check_target(target, source, *stores, style=style)
    if target is not None and ADDRESS.match(target):
        check_object(target, [source] if isinstance(source, str) else source)
    if into is not None:
        _check_store(into, source)
    if crowd is not None:
        outputs = [target, f"{target}{BESIDE}"] if target else []
        check_place(crowd, source, *stores, *outputs)
    return writer


def _check_order(sort: bool | None) -> None:
    """Refuse to leave in any order what has one."""
    if sort is False:
        raise ValueError(
            "parts, and what is in a store, are written in the order of items; sort=False "
            "came. Leave it out."
        )


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


def _check_store(store: str, source: str | Sequence[str]) -> None:
    """Refuse a place where no store can be, before any work is done."""
    if Path(store).suffix.lower() != ".parquet":
        raise ValueError(
            f"a store is a Parquet file; {Path(store).name!r} came. Name it store.parquet."
        )
    if ADDRESS.match(store):
        # Of two who add at once, the one who is first to write would be lost.
        here = Path(store).name
        raise ValueError(
            f"a store is locked while it is added to, which objects elsewhere cannot be; {store!r} "
            f"came. Copy it here, add to it with into={here!r}, and copy it back, one after the "
            "other."
        )
    check_place(store, source)
