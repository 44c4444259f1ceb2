"""Files of annotations added to a store of evidence, and annotators taken out of it again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from slencodings import __version__
from slencodings.annotations import counted, some
from slencodings.files.forms import about_crowd, lay_out
from slencodings.files.job import Job, Weighing, choose_weighing, read_job
from slencodings.files.locate import Relation
from slencodings.files.scan import choose
from slencodings.files.store import batches, sums
from slencodings.files.store.batches import alone, open_store
from slencodings.files.store.sums import Store, read_sums
from slencodings.files.values import read_chosen
from slencodings.files.write import STORED, check_finite, disk_errors, literal, workspace, writing
from slencodings.progress import Say
from slencodings.tables.fuse import Fusing, Metadata, add_rows
from slencodings.tables.roles import Reading, nearest
from slencodings.trust.stored import crowd_to_dict, load_crowd


def add_to_store(job: Job, path: Path, again: bool, by_annotator: bool) -> Metadata:
    """Add files of annotations to a store; with a target, also write the opinions of all in it.

    What the store was begun with (smoothing, the scale of confidence, the crowd) need not be said
    again, and cannot be changed. One that is not there is begun.
    """
    reading, fusing, source = job.reading, job.fusing, job.source
    _check_additive(fusing, reading)
    if (known := open_store(job.connection, path)) is None:
        weighing = _weighing_of_new(reading, fusing, job.say)
    else:
        weighing = _weighing_of(known, reading, fusing)
    if known is not None and known.crowd is None:
        fusing = replace(fusing, smoothing=known.smoothing)
    learned = weighing.how != "stated"
    chosen = choose(job.connection, source, reading, learned=learned, say=job.say, step=job.step)
    crowd, found = read_chosen(job.connection, chosen, job.say)
    if known is not None:
        found = _as_before(known, weighing, source.name, crowd, found)
    given = read_job(job, weighing, crowd, found)
    rows, found = given.rows, given.reading
    by_annotator = _check_annotators(known, by_annotator, found, source.name)
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
        if job.output.path is not None:
            opinions, about = _fuse_sums(job, total, store, path.name)
            targets = writing(job.connection, opinions, job.output.path, job.output.writer, about)
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


def fuse_store(job: Job, path: Path) -> Metadata:
    """Write the opinions of all that is in a store."""
    name, reading = job.source.name, job.reading
    _check_additive(job.fusing, reading)
    known = open_store(job.connection, path)
    assert known is not None, "it was recognised before"
    _weighing_of(known, reading, job.fusing)
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
    with writing(job.connection, opinions, job.output.path, job.output.writer, about) as count:
        about["written"] = count
    return about


def _fuse_sums(job: Job, total: Relation, store: Store, name: str) -> tuple[Relation, Metadata]:
    """The opinions of all that is in a store, and how they were made."""
    if store.crowd is None and job.fusing.reading == "truth":
        raise ValueError(
            f"what is true is a question to a learned crowd, and {name} was begun without one; "
            "reading='truth' came. Leave it out, or begin another store with weigh='FILE' that "
            "`save_crowd` wrote."
        )
    smoothing = store.smoothing if store.crowd is None else None
    check_finite(job.output.writer, smoothing, job.fusing.values)
    rows = sums.as_rows(total, store)
    opinions, about = lay_out(rows, replace(job.fusing, smoothing=smoothing))
    about |= {"version": __version__, "source": name, "batches": store.batches}
    about |= {"rows": sum(batch["rows"] for batch in store.batches)}
    about["weigh"] = "stated"
    if rows.crowd is not None:
        about |= about_crowd(rows.crowd, name, job.fusing.seed)
    return opinions, about


def _check_additive(fusing: Fusing, reading: Reading) -> None:
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


def _check_annotators(store: Store | None, wanted: bool, reading: Reading, name: str) -> bool:
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


def _weighing_of_new(reading: Reading, fusing: Fusing, say: Say) -> Weighing:
    """How annotations of a store that is begun are weighed: as stated, or by a stored crowd.

    To learn from its first batch would make it depend on which that is.
    """
    if fusing.weigh is None:
        say(
            "note",
            "annotations of this store are weighed as stated; to weigh them by a learned "
            "crowd, begin it with weigh='FILE' that `save_crowd` wrote",
        )
    weigh = fusing.weigh or "stated"
    return choose_weighing(reading, replace(fusing, weigh=weigh, reading="votes"), say)


def _weighing_of(store: Store, reading: Reading, fusing: Fusing) -> Weighing:
    """How annotations of a store are weighed; settings other than its own are refused."""
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


def forget(path: str, annotators: Sequence[str], say: Say = lambda what, text: None) -> Store:
    """Take annotators out of a store, as if they had never been in it.

    What is left is what the others alone would have given; of a crowd that the store was begun
    with, which was learned before, nothing is changed.

    Parameters
    ----------
    path : a store that was begun with `by_annotator`
    annotators : their names, as text
    """
    place = Path(path)
    with disk_errors(), workspace() as (connection, _), alone(place):
        store = open_store(connection, place)
        if store is None:
            raise FileNotFoundError(f"there is no store {path!r}.")
        if not store.by_annotator:
            raise ValueError(
                f"{place.name} has sums of all annotators together, so that nobody can be taken "
                "out. Begin one of which they can: sle encode IN --into STORE.parquet "
                "--by-annotator"
            )
        sums = read_sums(connection, place, store)
        named = f"CAST(annotator AS VARCHAR) IN ({', '.join(map(literal, annotators))})"
        _check_known(sums, named, annotators, place.name)
        left, gone = sums.filter(f"({named}) IS NOT TRUE"), sums.filter(named)
        taken = float(gone.aggregate("sum(annotations)").fetchall()[0][0])
        labels = store.labels if store.fixed else _labels_left(store, left, gone)
        store = store._replace(labels=labels, forgotten=store.forgotten + taken)
        with writing(connection, left, place, STORED, store.about()):
            pass
    gone = counted(round(taken), "annotation")
    say("forgot", f"{', '.join(annotators)}: {gone}; {path}: {store.in_words()}")
    if store.crowd is not None:
        say(
            "note",
            "the crowd of this store was learned before, perhaps from them too: to forget them "
            "there, learn without them and begin another store",
        )
    return store


def _check_known(sums: Relation, named: str, annotators: Sequence[str], name: str) -> None:
    found = sums.filter(named).project("CAST(annotator AS VARCHAR)").distinct().fetchall()
    if strange := [who for who in annotators if (who,) not in found]:
        all_of_them = sums.project("CAST(annotator AS VARCHAR)").distinct().fetchall()
        near = nearest(strange[0], [who for (who,) in all_of_them if who is not None])
        meant = f" Did you mean {near!r}?" if near else ""
        raise ValueError(
            f"there is no annotator {strange[0]!r} among the {len(all_of_them):,} of {name}; "
            f"nothing was changed.{meant}"
        )


def _labels_left(store: Store, left: Relation, gone: Relation) -> list[Any]:
    """The labels of a store without those that only annotators who are gone have given."""
    given, theirs = (
        part.filter("annotations > 0").project("label").distinct().fetchall()
        for part in (left, gone)
    )
    labels = [v for v in store.labels if (v,) in given or (v,) not in theirs]
    if len(labels) < 2:
        raise ValueError(
            f"at least two labels must be left; only {some(labels)} would be. Nothing was "
            "changed. Begin another store, and name all labels that are possible: labels=[...]."
        )
    return labels
