"""`sle encode`: files of annotations to files of opinions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from slencodings.choices import Engine
from slencodings.cli import options as o
from slencodings.progress import notes

if TYPE_CHECKING:
    from slencodings.tables.fuse import Fusing
    from slencodings.tables.roles import Reading


def encode(
    source: o.In,
    target: o.Out = None,
    into: o.Into = None,
    again: o.Again = False,
    by_annotator: o.ByAnnotator = False,
    table: o.FromTable = None,
    into_table: o.IntoTable = None,
    engine: o.OnEngine = "duckdb",
    master: o.Master = None,
    patience: o.Patience = None,
    memory: o.Memory = None,
    csv_style: o.Style = "plain",
    keep: o.Keep = None,
    partition_by: o.PartitionBy = None,
    sort: o.Sort = None,
    *,
    reading: Reading,
    pairwise: o.Pairwise = None,
    scores: o.ScoresOut = None,
    weigh: o.Weigh = None,
    asked: o.Asked = "votes",
    save_crowd: o.SaveCrowd = None,
    features: o.MoreFeatures = None,
    feature_item: o.FeatureItem = None,
    feature_text: o.FeatureText = None,
    encoder: o.TextEncoder = None,
    seed: o.Seed = None,
    smoothing: o.Smoothing = None,
    prior_weight: o.PriorWeight = None,
    operator: o.HowFused = "cumulative",
    form: o.InForm = None,
    values: o.Values = "belief,uncertainty,probability",
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Fuse files of annotations into a file of opinions, one per item.

    Columns are found by their usual names (item or task, annotator or worker, label or answer,
    confidence, reliability) and what was found is said. What annotations are worth is learned from
    the crowd itself; --weigh stated takes it from these columns. With --into, the annotations are
    added to evidence that is kept, and opinions are of all that is in it; it may itself be IN.
    With --pairwise, rows compare two, and OUT has the better and the other of every pair.
    """
    database = _is_database(source, table, into_table)
    if not database:
        _check_output(target, into, {"--again": again, "--by-annotator": by_annotator})
    if features is None:
        for option, value in {
            "--feature-item": feature_item,
            "--text": feature_text,
            "--encoder": encoder,
        }.items():
            if value is not None:
                raise typer.BadParameter("it is for `--features FILE`.", param_hint=option)
    if scores is not None and pairwise is None:
        raise typer.BadParameter("it is for `--pairwise LEFT,RIGHT,WINNER`.", param_hint="--scores")
    if pairwise is not None:
        others = {"--into": into, "--keep": keep, "--weigh": weigh, "--save-crowd": save_crowd}
        others |= {"--smoothing": smoothing, "--form": form, "--multi": reading.multi}
        others |= {"--partition-by": partition_by}
        others |= {"--engine": None if engine == "duckdb" else engine, "--labels": reading.labels}
        others |= {"--features": features, "--sort": sort}
        _refuse(others, "--pairwise")
        with notes(quiet, verbose) as (say, _):
            from slencodings.files.pairs import encode_pairs

            encode_pairs(
                source,
                target or "-",
                o.words(pairwise) or [],
                reading,
                scores=scores,
                seed=seed or 0,
                csv_style=csv_style,
                say=say,
            )
        return
    alone = {
        "--form": form if form in ("lists", "weights") else None,
        "--format": None if reading.format in o.TABLES else reading.format,
        "--question": reading.question,
        "--encoding": reading.encoding,
        "--sheet": reading.sheet,
        "--into": into,
        "--memory": memory,
        "--keep": keep,
        "--partition-by": partition_by,
        "--merge-case": reading.merge_case or None,
        "--save-crowd": save_crowd,
        "--features": features,
        "--sort": sort,
    }
    style = {"--csv-style": csv_style if csv_style != "plain" else None}
    _check_engine(engine, {"--master": master, "--patience": patience}, alone | style)
    if database:
        _refuse(alone | {"--engine": None if engine == "duckdb" else engine}, "a database")
    if features is not None:
        others = {"--into": into, "--multi": reading.multi, "--partition-by": partition_by}
        _refuse(others, "--features")
    from slencodings.tables.fuse import Fusing

    fusing = Fusing(
        operator=operator,
        smoothing=smoothing,
        prior_weight=prior_weight,
        values=tuple(dict.fromkeys(o.words(values) or [])),
        form=form,
        reading=asked,
        weigh=weigh,
        seed=seed or 0,
    )
    learning = {"--save-crowd": save_crowd, "--features": features, "--seed": seed}
    _check_weighing(reading, fusing, learning)
    with notes(quiet, verbose) as (say, progress):
        if database and table is not None:
            from slencodings.files.database import encode_table

            about = encode_table(
                source[0],
                table,
                target,
                reading,
                fusing,
                into_table=into_table,
                csv_style=csv_style,
                say=say,
            )
        elif engine == "spark" and target is not None:
            from slencodings.files.spark import PATIENCE, encode_files

            patience = PATIENCE if patience is None else patience
            about = encode_files(
                source, target, reading, fusing, master=master, patience=patience, say=say
            )
        else:
            from slencodings.files.encode import encode_file

            also = None
            if features is not None:
                from slencodings.cli import models

                also = models.network_source(
                    features,
                    feature_item=feature_item,
                    text=feature_text,
                    embed=models.text_encoder(encoder, feature_text),
                    truth=asked == "truth",
                    seed=seed or 0,
                    say=say,
                    progress=progress,
                )
            about = encode_file(
                source,
                target,
                replace(reading, keep=o.words(keep) or ()),
                fusing,
                into=into,
                again=again,
                by_annotator=by_annotator,
                memory=memory,
                save_crowd=save_crowd,
                csv_style=csv_style,
                partition_by=o.words(partition_by) or (),
                sort=sort,
                also=also,
                say=say,
                progress=progress,
            )
        for name, value in about.items():
            if name != "crowd":
                say("detail", f"{name} = {value}")


def _check_weighing(reading: Reading, fusing: Fusing, learning: Mapping[str, object]) -> None:
    """Refuse what learning makes meaningless, and options of learning where nothing is learned."""
    from slencodings.files.weigh import only_stated

    needs_stated, weigh = only_stated(reading, fusing), fusing.weigh
    learns = weigh == "learned" or (weigh is None and not needs_stated)
    for option, value in learning.items():
        if value is not None and not learns:
            came = f"--weigh {weigh}" if weigh else o.spelled(needs_stated[0])
            raise typer.BadParameter(
                f"it is for `--weigh learned`; `{came}` came.", param_hint=option
            )
    if weigh not in (None, "stated") and needs_stated:
        raise typer.BadParameter(
            f"what annotations are worth is learned; it came with `--weigh {weigh}`. "
            "Leave one of them out, or type --weigh stated.",
            param_hint=o.spelled(needs_stated[0]),
        )


def _check_output(target: str | None, into: str | None, of_stores: dict[str, bool]) -> None:
    """Refuse to read a file for nothing."""
    if target is None and into is None:
        raise typer.BadParameter(
            "a file for opinions is needed, or --into STORE.parquet to keep evidence; "
            "neither came.",
            param_hint="--output",
        )
    for option, asked in of_stores.items():
        if asked and into is None:
            raise typer.BadParameter("it is for `--into STORE.parquet`.", param_hint=option)


def _is_database(source: list[str], table: str | None, into_table: str | None) -> bool:
    """Whether annotations are in a database; options of one are refused where there is none."""
    from slencodings.files.database import is_database

    found = [name for name in source if is_database(name)]
    for option, value in {"--table": table, "--into-table": into_table}.items():
        if value is not None and not found:
            raise typer.BadParameter(
                "it is for a database, postgresql://... or sqlite:///FILE.", param_hint=option
            )
    if found and (table is None or len(source) > 1):
        came = f"{len(source)} inputs came" if len(source) > 1 else "no table came"
        raise typer.BadParameter(
            f"one table of one database is read, `--table annotations`; {came}.",
            param_hint="--table",
        )
    return bool(found)


def _refuse(given: Mapping[str, object], other: str) -> None:
    """Refuse options that make no sense beside another."""
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(
                f"it is not for `{other}`. Leave one of them out.", param_hint=option
            )


def _check_engine(engine: Engine, spark: Mapping[str, object], alone: Mapping[str, object]) -> None:
    """Refuse a cluster without Spark, and with Spark what one machine alone can do."""
    for option, value in spark.items() if engine != "spark" else ():
        if value is not None:
            raise typer.BadParameter("it is for `--engine spark`.", param_hint=option)
    for option, value in alone.items() if engine == "spark" else ():
        if value:
            raise typer.BadParameter(
                f"it is not for `--engine spark`; `{option} {value}` came. Leave one of them out.",
                param_hint=option,
            )


def forget(
    store: o.StoreFile, annotator: o.Forgotten, quiet: o.Quiet = False, verbose: o.Verbose = False
) -> None:
    """Take annotators out of a store of evidence, as if they had never been in it."""
    with notes(quiet, verbose) as (say, _):
        from slencodings.files.forget import forget as take_out

        take_out(store, annotator, say)


command = o.as_command(
    encode,
    encode,
    o.parameters(encode),
    learned=True,
    confidence_scale=o.Scale,
    missing=o.IfMissing,
)
