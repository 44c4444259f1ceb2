"""From a file of annotations to a file of opinions, out of core, through DuckDB.

Text files are read once into a scratch database on disk; Parquet is queried where it is. The
result is written beside its final name and then renamed, so there is never half a file.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from slencodings import __version__
from slencodings.files.duckdb import (
    Connection,
    Progress,
    Relation,
    Say,
    Step,
    is_store,
    literal,
    plain_errors,
    watch,
    workspace,
)
from slencodings.files.formats import quote
from slencodings.files.forms import Form, shaped, usual_form
from slencodings.files.intake import Reading, described, survey_files
from slencodings.files.locate import Source, locate, read_tool
from slencodings.files.store import (
    Store,
    add,
    alone,
    check_additive,
    check_alike,
    check_new,
    check_store,
    fingerprint,
    grown,
    open_store,
    read_sums,
    rows_of,
)
from slencodings.files.write import WRITERS, check_place, check_target, disk_errors, replacing
from slencodings.tables.columns import ANNOTATOR, LABEL, probability
from slencodings.tables.fuse import opinions, sums
from slencodings.tables.rows import Duplicates, Rows, count_duplicates
from slencodings.trust.obtain import load

# Past this, counting who said something twice costs more than the fusing itself.
MOST_ROWS_TO_COUNT_DUPLICATES = 20_000_000


def encode_file(
    source: str | Sequence[str],
    target: str | None = None,
    *,
    into: str | None = None,
    again: bool = False,
    memory: str | None = None,
    question: str | None = None,
    say: Say = lambda what, text: None,
    progress: Progress = lambda what, done, total, unit: None,
    **options: Any,
) -> dict[str, Any]:
    """Fuse files of annotations into a file of opinions, and return how that was done.

    Parameters
    ----------
    source : a file, or a store; several; a folder; a pattern; an address; `-` is standard input
    target : a path, or `-` for standard output
    into : a store of evidence to add the annotations to; the opinions are those of all it holds
    again : add them even if they were added before
    memory : about as much as may be used, such as "2GB"; what does not fit goes to disk. Left out,
        most of what the machine has
    question : which, where the source is what an annotation tool exported and asked several
    say, progress : called with notes for people, and with what is done of each step
    options : those of `fuse_files`
    """
    if target is None and into is None:
        raise ValueError(
            "an output is needed, for opinions or for evidence to add to; neither came. "
            "Pass a target, or into='store.parquet'."
        )
    stores = [] if into is None else [into]
    writer = None if target is None else check_target(target, source, *stores)
    for store in stores:
        check_store(store, source)
    if (kept := options.get("save_trust")) is not None:
        check_place(kept, source, *stores, *([target, f"{target}.meta.json"] if target else []))
    reading = Reading(**{name: options.pop(name) for name in Reading._fields if name in options})
    with disk_errors(), workspace(memory) as (connection, folder), ExitStack() as held:
        for store in stores:
            held.enter_context(alone(Path(store)))
        found = locate(connection, source, folder)
        for output in [*stores, *(name for name in (target, kept) if name not in (None, "-"))]:
            check_place(output, found.files)  # A pattern may stand for what is to be replaced.
        found = read_tool(found, reading.format, question, folder, say)
        # Not straight to standard output, which would show half of what then fails.
        new = None if target is None else folder / "output.csv" if target == "-" else Path(target)

        def work(step: Step) -> dict[str, Any]:
            how = {"target": new, "writer": writer, "step": step, "say": say} | options
            if into is not None:
                return add_files(connection, found, reading, Path(into), again=again, **how)
            if len(found.files) == 1 and found.local and is_store(connection, Path(*found.files)):
                # A copy, because somebody may add to it meanwhile.
                copy = Path(shutil.copyfile(found.files[0], folder / f"copy of {found.name}"))
                return fuse_store(connection, copy, reading, name=found.name, **how)
            return fuse_files(connection, found, reading, **how)

        about = watch(connection, work, progress)
        if target == "-" and new is not None:
            with new.open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    if target is not None:
        say("wrote", f"{target}: {about['written']:,} rows, {_told(about)}")
    if kept is not None:
        say("wrote", f"{kept}: the trust that was learned")
    return about


def _told(about: Mapping[str, Any]) -> str:
    """How opinions were made, in short."""
    if "trust" in about:
        return f"{about['form']}, {about['operator']}, trust {about['trust_from']}"
    return f"{about['form']}, {about['operator']}, smoothing {about['smoothing']:g}"


def fuse_files(
    connection: Connection,
    source: Source,
    reading: Reading,
    *,
    target: Path,
    writer: str,
    form: Form | None = None,
    save_trust: str | None = None,
    step: Step,
    say: Say,
    **how: Any,
) -> dict[str, Any]:
    """Read, check, fuse and write.

    Parameters
    ----------
    form : one of `targets.FORMS`; wide up to 20 labels and long beyond, if not said
    save_trust : where to keep what was learned
    how : passed to `fuse_table`: smoothing, prior_weight, operator, values
    """
    _check_finite(how.get("smoothing"), writer, how)
    trust = reading.trust
    stored = None if trust in ("none", "learned") else load(trust)
    with plain_errors(source, source.format(reading.format)):
        found = survey_files(connection, source, reading, stored=stored, step=step, say=say)
        chosen, rows = found.chosen, found.rows
        _note(rows, source, reading.duplicates, say)
        opined, about = _opinions(rows, form, name=chosen["item"], **how)
        about |= {"version": __version__, "source": source.name, "columns": chosen}
        about |= {"files": len(source.files)} if len(source.files) > 1 else {}
        about |= {"confidence_scale": described(found.scale)} if "confidence" in chosen else {}
        about |= {"missing": reading.missing, "duplicates": reading.duplicates, **rows.counts}
        beside: dict[Path, str] = {}
        if rows.trust is not None:
            about |= {"trust_from": trust, "trust": rows.trust.to_dict()}
            about |= {"seed": reading.seed} if trust == "learned" else {}
            about |= {} if rows.trust.from_uncertainty else {"confidence_scale": "as stated"}
            beside |= {Path(save_trust): rows.trust.to_json()} if save_trust else {}
        step("fusing", rows.counts["rows"], "rows")
        about["written"] = write(connection, opined, target, writer, about, beside)
        if trust == "none" and "annotator" in chosen and "reliability" not in chosen:
            _recommend_trust(rows.counts, about["written"], say)
    return about


def add_files(
    connection: Connection,
    source: Source,
    reading: Reading,
    store: Path,
    *,
    again: bool = False,
    target: Path | None = None,
    smoothing: float | None = None,
    operator: str = "cumulative",
    step: Step,
    say: Say,
    **output: Any,
) -> dict[str, Any]:
    """Add files of annotations to a store; with a target, also write the opinions of all in it.

    What the store was begun with (smoothing, the scale of confidence, trust) need not be said
    again, and cannot be changed.
    """
    check_additive(operator, reading.trust, reading.confidence_scale)
    known = open_store(connection, store)
    stored = None if reading.trust == "none" else load(reading.trust)
    if known is not None:
        check_alike(known, smoothing, reading.confidence_scale, stored)
        stored = known.learned
        smoothing = known.smoothing if stored is None else smoothing
    with plain_errors(source, source.format(reading.format)):
        found = survey_files(
            connection, source, reading, stored=stored, known=known, step=step, say=say
        )
        rows = found.rows
        _note(rows, source, reading.duplicates, say)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        batch = {"name": source.name, **fingerprint(found.crowd, found.chosen), "when": when}
        batch |= {"columns": found.chosen, "missing": reading.missing}
        if known is not None and not again:
            check_new(known, batch, store)
        new, smoothing = sums(rows, smoothing=smoothing)
        scale = found.scale if isinstance(found.chosen.get("confidence"), str) else None
        kept = grown(known, batch, rows, smoothing, scale, given=reading.labels is not None)
        step("adding", rows.counts["rows"], "rows")
        old = None if known is None else read_sums(connection, store)
        total = add(connection, old, new, source.name)
    about = kept.about()
    step("writing", None, "")
    with ExitStack() as both:  # Neither takes its place before both are there.
        if target is not None:
            fused, about = _fuse_sums(total, kept, name=store.name, **output)
            out = written(connection, fused, target, output["writer"], about, {})
            about["written"] = both.enter_context(out)
        both.enter_context(written(connection, total, store, WRITERS[".parquet"], kept.about(), {}))
    say("added", f"{source.name} to {store}: {kept.told()}")
    return about


def fuse_store(
    connection: Connection,
    path: Path,
    reading: Reading,
    *,
    name: str,
    target: Path,
    smoothing: float | None = None,
    operator: str = "cumulative",
    step: Step,
    say: Say,
    **output: Any,
) -> dict[str, Any]:
    """Write the opinions of all that is in a store."""
    check_additive(operator, reading.trust, reading.confidence_scale)
    known = open_store(connection, path)
    assert known is not None, "it was recognised before"
    stored = None if reading.trust == "none" else load(reading.trust)
    check_alike(known, smoothing, reading.confidence_scale, stored)
    for role, spec in {**reading.columns, "labels": reading.labels}.items():
        if spec is not None:
            raise ValueError(
                f"{name} is a store, and was read when it was made; {role}={spec!r} came. "
                "Leave it out."
            )
    say("read", f"{name}: {known.told()}")
    step("fusing", None, "")
    fused, about = _fuse_sums(read_sums(connection, path), known, name=name, **output)
    about["written"] = write(connection, fused, target, output["writer"], about, {})
    return about


def _fuse_sums(
    total: Relation,
    store: Store,
    *,
    name: str,
    writer: str,
    form: Form | None = None,
    save_trust: None = None,
    **how: Any,
) -> tuple[Relation, dict[str, Any]]:
    """The opinions of all that is in a store, and how they were made."""
    smoothing = store.smoothing if store.trust is None else None
    _check_finite(smoothing, writer, how)
    how |= {"smoothing": smoothing, "name": store.item, "summed": True}
    opined, about = _opinions(rows_of(total, store), form, **how)
    about |= {"version": __version__, "source": name, "batches": store.batches}
    about |= {"rows": sum(batch["rows"] for batch in store.batches)}
    about |= {"trust_from": "of the store", "trust": store.trust} if store.trust else {}
    return opined, about


def _opinions(rows: Rows, form: Form | None, **how: Any) -> tuple[Relation, dict[str, Any]]:
    """Fused opinions in a form, and how they were made."""
    form = usual_form(form, len(rows.labels))
    if form in ("wide", "long"):
        frame, about = opinions(rows, form=form, **how)
        return frame.to_native(), about
    if form == "weights":
        how["values"] = ["probability"]
    frame, about = opinions(rows, form="wide", **how)
    return shaped(frame.to_native(), form, about["labels"]), about | {"form": form}


def _check_finite(smoothing: float | None, writer: str, how: Mapping[str, Any]) -> None:
    if smoothing == 0 and "json" in writer and {"evidence", "alpha"} & {*how.get("values", ())}:
        raise ValueError(
            "JSON cannot hold the infinite evidence of certain annotations; smoothing=0 came. "
            "Write .parquet or .csv, or pass a smoothing such as 0.01."
        )


def _recommend_trust(counts: Mapping[str, int], written: int, say: Say) -> None:
    # More annotations than rows that were written means that some item has several.
    if counts["rows"] - counts["unlabelled"] - counts.get("repeated", 0) > written:
        say("note", "all annotators are trusted alike; --trust learned tells them apart")


def _note(rows: Rows, source: Source, duplicates: Duplicates, say: Say) -> None:
    """Tell what was read, and what of it may surprise."""
    count, K = rows.counts["rows"], len(rows.labels)
    names = ", ".join(map(str, rows.labels[:10])) + (", ..." if K > 10 else "")
    files = f"{len(source.files):,} files, " if len(source.files) > 1 else ""
    say("read", f"{source.name}: {files}{count:,} rows, {K} labels: {names}")
    if rows.counts["unlabelled"]:
        say("note", f"{rows.counts['unlabelled']:,} rows have no label; their items are kept")
    if duplicates != "all" or ANNOTATOR not in rows.frame.collect_schema().names():
        return
    if count > MOST_ROWS_TO_COUNT_DUPLICATES:
        say("note", "repeated (item, annotator) pairs are kept; so many rows are not counted")
        return
    repeated, _ = count_duplicates(rows.frame, probability(0) if rows.soft else LABEL)
    rows.counts["repeated"] = repeated
    if repeated:
        say(
            "note",
            f"{repeated:,} rows repeat an earlier (item, annotator) pair; all are kept. "
            "--duplicates first|last|error changes that",
        )


def write(
    connection: Connection,
    relation: Relation,
    target: Path,
    how: str,
    about: dict[str, Any],
    beside: Mapping[Path, str],
) -> int:
    """Write a relation in the order of its identifiers, all of it or nothing; count its rows.

    `beside` are texts for other files, which come with it or not at all.
    """
    with written(connection, relation, target, how, about, beside) as count:
        return count


@contextmanager
def written(
    connection: Connection,
    relation: Relation,
    target: Path,
    how: str,
    about: dict[str, Any],
    beside: Mapping[Path, str],
) -> Iterator[int]:
    """What `write` does, but for taking its place, which is left for the end."""
    order = [c for c in relation.columns[:2] if c in (relation.columns[0], "label")]
    ordered = relation.order(", ".join(map(quote, order)))  # noqa: F841 (the query reads it)
    described = json.dumps(about, default=str)
    if parquet := how.startswith("FORMAT parquet"):
        how += f", KV_METADATA {{slencodings: {literal(described)}}}"
    if not parquet:
        # CSV and JSONL have no place to say how they were made.
        meta = json.dumps(about, indent=1, default=str)
        beside = {**beside, Path(f"{target}.meta.json"): meta}
    with replacing(target) as path, ExitStack() as others:
        for other, text in beside.items():
            new = others.enter_context(replacing(other))
            new.write_text(text + "\n", encoding="utf-8")
        # We write beside the target ourselves; DuckDB would do so once more.
        copy = f"COPY (FROM ordered) TO {literal(str(path))} ({how}, USE_TMP_FILE false)"
        yield connection.execute(copy).fetchall()[0][0]
