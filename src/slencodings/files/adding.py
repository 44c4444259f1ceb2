"""Files of annotations added to a store of evidence, and the opinions of all that is in one."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from slencodings import __version__
from slencodings.files.forms import about_crowd, lay_out
from slencodings.files.job import Job, Weighing, read_job
from slencodings.files.locate import Relation
from slencodings.files.scan import choose
from slencodings.files.store import batches, settings, sums
from slencodings.files.store.opening import open_store
from slencodings.files.store.value import Store
from slencodings.files.values import read_chosen
from slencodings.files.write import STORED, check_finite, writing
from slencodings.tables.fuse import About, add_rows
from slencodings.tables.roles import Reading


def add_to_store(job: Job, path: Path, again: bool, by_annotator: bool) -> About:
    """Add files of annotations to a store; with a target, also write the opinions of all in it.

    What the store was begun with (smoothing, the scale of confidence, the crowd) need not be said
    again, and cannot be changed. One that is not there is begun.
    """
    reading, fusing, source = job.reading, job.fusing, job.source
    settings.check_additive(fusing, reading)
    if (known := open_store(job.connection, path)) is None:
        weighing = settings.weighing_of_new(reading, fusing, job.say)
    else:
        weighing = settings.weighing_of(known, reading, fusing)
    if known is not None and known.crowd is None:
        fusing = replace(fusing, smoothing=known.smoothing)
    learned = weighing.how != "stated"
    chosen = choose(job.connection, source, reading, learned=learned, say=job.say, step=job.step)
    crowd, found = read_chosen(job.connection, chosen, job.say)
    if known is not None:
        found = _as_before(known, weighing, source.name, crowd, found)
    given = read_job(job, weighing, crowd, found)
    rows, found = given.rows, given.reading
    by_annotator = settings.check_annotators(known, by_annotator, found, source.name)
    batch = batches.describe_batch(source.name, given.crowd, found)
    batch["when"] = datetime.now(UTC).isoformat(timespec="seconds")
    if known is not None and not again:
        batches.check_new(known, batch, path)
    apart = sums.by_annotator(rows) if by_annotator else rows
    new, smoothing = add_rows(apart, replace(fusing, reading="votes"))
    scale = found.confidence_scale or (0, 1) if isinstance(found.confidence, str) else None
    named = reading.labels is not None
    store = batches.with_batch(
        known, batch, rows, smoothing, scale, given=named, by_annotator=by_annotator
    )
    job.step("adding", rows.counts["rows"], "rows")
    old = None if known is None else sums.read_sums(job.connection, path, known)
    total = sums.add(job.connection, old, new, source.name, store)
    about = store.about()
    job.step("writing", None, "")
    with ExitStack() as both:  # Neither takes its place before both are there.
        if job.target is not None:
            opinions, about = _fuse_sums(job, total, store, path.name)
            targets = writing(job.connection, opinions, job.target, job.writer, about)
            about["written"] = both.enter_context(targets)
        both.enter_context(writing(job.connection, total, path, STORED, store.about()))
    job.say("added", f"{source.name} to {path}: {store.in_words()}")
    return about


def _as_before(
    known: Store, weighing: Weighing, name: str, crowd: Relation, reading: Reading
) -> Reading:
    """The reading of a batch as that of those before it, which it must be like."""
    batches.check_roles(known, reading, name)
    if reading.confidence_scale is None and isinstance(reading.confidence, str):
        reading = replace(reading, confidence_scale=known.confidence_scale)
    if weighing.crowd is not None:
        return reading
    labels = batches.known_labels(known, crowd, reading.label, reading.labels)
    return replace(reading, labels=labels)


def fuse_store(job: Job, path: Path) -> About:
    """Write the opinions of all that is in a store."""
    name, reading = job.source.name, job.reading
    settings.check_additive(job.fusing, reading)
    known = open_store(job.connection, path)
    assert known is not None, "it was recognised before"
    settings.weighing_of(known, reading, job.fusing)
    for role, spec in {**reading.columns, "labels": reading.labels}.items():
        if spec is not None:
            raise ValueError(
                f"{name} is a store, and was read when it was made; {role}={spec!r} came. "
                "Leave it out."
            )
    job.say("read", f"{name}: {known.in_words()}")
    job.step("fusing", None, "")
    total = sums.read_sums(job.connection, path, known)
    opinions, about = _fuse_sums(job, total, known, name)
    with writing(job.connection, opinions, job.target, job.writer, about) as count:
        about["written"] = count
    return about


def _fuse_sums(job: Job, total: Relation, store: Store, name: str) -> tuple[Relation, About]:
    """The opinions of all that is in a store, and how they were made."""
    smoothing = store.smoothing if store.crowd is None else None
    check_finite(job.writer, smoothing, job.fusing.values)
    rows = sums.as_rows(total, store)
    opinions, about = lay_out(rows, replace(job.fusing, smoothing=smoothing))
    about |= {"version": __version__, "source": name, "batches": store.batches}
    about |= {"rows": sum(batch["rows"] for batch in store.batches)}
    about["weigh"] = "stated"
    if rows.crowd is not None:
        about |= about_crowd(rows.crowd, name, job.fusing.seed)
    return opinions, about
