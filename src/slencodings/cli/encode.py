"""`sle encode`: files of annotations to files of opinions; and `sle forget`.

Options that make no sense together are refused before anything is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, get_args

import typer

from slencodings.choices import (
    CrowdReading,
    CsvStyle,
    Engine,
    FileForm,
    Form,
    Missing,
    Operator,
    TableFormat,
)
from slencodings.cli.command import as_command, parameters, words
from slencodings.cli.messages import spelled
from slencodings.progress import Progress, Say, notes

if TYPE_CHECKING:
    from slencodings.files.job import Also
    from slencodings.tables.engines import Metadata
    from slencodings.tables.fuse import Fusing
    from slencodings.tables.roles import Reading

_NOT_FOR = "it is not for `{}`. Leave one of them out."
_DATABASE = re.compile(r"(postgres|postgresql|sqlite)://", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Typed:
    """What was typed after `sle encode`; its fields are the options, in the order of the help."""

    source: list[str]
    target: str | None = None
    into: str | None = None
    again: bool = False
    by_annotator: bool = False
    table: str | None = None
    into_table: str | None = None
    engine: Engine = "duckdb"
    master: str | None = None
    patience: float | None = None
    memory: str | None = None
    csv_style: CsvStyle = "plain"
    keep: str | None = None
    partition_by: str | None = None
    sort: bool | None = None
    reading: Reading
    pairwise: str | None = None
    scores: str | None = None
    weigh: str | None = None
    asked: CrowdReading = "votes"
    save_crowd: str | None = None
    features: str | None = None
    feature_item: str | None = None
    feature_text: str | None = None
    encoder: str | None = None
    seed: int | None = None
    smoothing: float | None = None
    prior_weight: float | None = None
    operator: Operator = "cumulative"
    form: FileForm | None = None
    values: str = "belief,uncertainty,probability"

    @property
    def fusing(self) -> Fusing:
        """How rows are weighed, fused and laid out."""
        from slencodings.tables.fuse import Fusing

        return Fusing(
            operator=self.operator,
            smoothing=self.smoothing,
            prior_weight=self.prior_weight,
            values=tuple(dict.fromkeys(words(self.values) or [])),
            form=self.form,
            reading=self.asked,
            weigh=self.weigh,
            seed=self.seed or 0,
        )


def encode(typed: Typed, say: Say, progress: Progress) -> None:
    """Fuse files of annotations into a file of opinions, one per item.

    Columns are found by their usual names (item or task, annotator or worker, label or answer,
    confidence, reliability) and what was found is said. What annotations are worth is learned from
    the crowd itself; --weigh stated takes it from these columns. With --into, the annotations are
    added to evidence that is kept, and opinions are of all that is in it; it may itself be IN.
    With --pairwise, rows compare two, and OUT has the better and the other of every pair.
    """
    check(typed)
    if typed.pairwise is not None:
        _pairs(typed, typed.pairwise, say)
        return
    if typed.table is not None:
        about = _database(typed, typed.table, say)
    elif typed.engine == "spark" and typed.target is not None:
        about = _spark(typed, typed.target, say)
    else:
        from slencodings.files.encode import encode_file

        features = typed.features
        about = encode_file(
            typed.source,
            typed.target,
            replace(typed.reading, keep=words(typed.keep) or ()),
            typed.fusing,
            into=typed.into,
            again=typed.again,
            by_annotator=typed.by_annotator,
            memory=typed.memory,
            save_crowd=typed.save_crowd,
            csv_style=typed.csv_style,
            partition_by=words(typed.partition_by) or (),
            sort=typed.sort,
            also=None if features is None else _network(typed, features, say, progress),
            say=say,
            progress=progress,
        )
    for name, value in about.items():
        if name != "crowd":
            say("detail", f"{name} = {value}")


def _pairs(typed: Typed, columns: str, say: Say) -> None:
    from slencodings.files.pairs import encode_pairs

    encode_pairs(
        typed.source,
        typed.target or "-",
        words(columns) or [],
        typed.reading,
        scores=typed.scores,
        seed=typed.seed or 0,
        csv_style=typed.csv_style,
        say=say,
    )


def _database(typed: Typed, table: str, say: Say) -> Metadata:
    from slencodings.files.database import encode_table

    return encode_table(
        typed.source[0],
        table,
        typed.target,
        typed.reading,
        typed.fusing,
        into_table=typed.into_table,
        csv_style=typed.csv_style,
        say=say,
    )


def _spark(typed: Typed, target: str, say: Say) -> Metadata:
    from slencodings.files.spark import PATIENCE, encode_files

    return encode_files(
        typed.source,
        target,
        typed.reading,
        typed.fusing,
        master=typed.master,
        patience=PATIENCE if typed.patience is None else typed.patience,
        say=say,
    )


def _network(typed: Typed, features: str, say: Say, progress: Progress) -> Also:
    """What networks know of the items."""
    from slencodings.cli import models

    return models.network_source(
        features,
        feature_item=typed.feature_item,
        text=typed.feature_text,
        embed=models.text_encoder(typed.encoder, typed.feature_text),
        truth=typed.asked == "truth",
        seed=typed.seed or 0,
        say=say,
        progress=progress,
    )


def check(typed: Typed) -> None:
    """Refuse options that make no sense together."""
    reading = typed.reading
    database = _is_database(typed)
    if not database:
        _check_output(typed)
    if typed.features is None:
        text = {"--text": typed.feature_text}
        refused = _given(typed, "feature_item") | text | _given(typed, "encoder")
        _refuse(refused, "it is for `--features FILE`.")
    if typed.pairwise is None:
        _refuse(_given(typed, "scores"), "it is for `--pairwise LEFT,RIGHT,WINNER`.")
    else:
        refused = _given(typed, "into keep weigh save_crowd smoothing form")
        refused |= _given(reading, "multi") | _given(typed, "partition_by engine")
        if reading.labels is not None:
            refused[spelled(reading.named)] = reading.labels
        _refuse(refused | _given(typed, "features sort"), _NOT_FOR.format("--pairwise"))
        return
    # What one machine can do and a cluster or a database cannot.
    alone: dict[str, object] = {
        "--form": typed.form if typed.form not in (None, *get_args(Form)) else None,
        "--format": None if reading.format in get_args(TableFormat) else reading.format,
    }
    alone |= _given(reading, "question encoding sheet")
    alone |= _given(typed, "into memory keep partition_by") | _given(reading, "merge_case")
    alone |= _given(typed, "save_crowd features sort")
    if typed.engine == "spark":
        for option, value in (alone | _given(typed, "csv_style")).items():
            why = f"it is not for `--engine spark`; `{option} {value}` came. Leave one of them out."
            _refuse({option: value or None}, why)
    else:
        _refuse(_given(typed, "master patience"), "it is for `--engine spark`.")
    if database:
        _refuse(alone | _given(typed, "engine"), _NOT_FOR.format("a database"))
    if typed.features is not None:
        refused = _given(typed, "into") | _given(reading, "multi") | _given(typed, "partition_by")
        _refuse(refused, _NOT_FOR.format("--features"))
    _check_weighing(typed)


def _given(typed: Typed | Reading, names: str) -> dict[str, object]:
    """The options among these that are not as usual, with what came."""
    usual = {field.name: field.default for field in fields(typed)}
    came = {name: getattr(typed, name) for name in names.split()}
    return {spelled(name): value for name, value in came.items() if value != usual[name]}


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Refuse the first of some options that came."""
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(why, param_hint=option)


def _check_output(typed: Typed) -> None:
    """Refuse to read a file for nothing."""
    if typed.into is not None:
        return
    if typed.target is None:
        raise typer.BadParameter(
            "a file for opinions is needed, or --into STORE.parquet to keep evidence; "
            "neither came.",
            param_hint="--output",
        )
    _refuse(_given(typed, "again by_annotator"), "it is for `--into STORE.parquet`.")


def _is_database(typed: Typed) -> bool:
    """Whether annotations are in a database; options of one are refused where there is none."""
    n, found = len(typed.source), any(map(_DATABASE.match, typed.source))
    if not found:
        of_databases = _given(typed, "table into_table")
        _refuse(of_databases, "it is for a database, postgresql://... or sqlite:///FILE.")
    if found and (typed.table is None or n > 1):
        came = f"{n} inputs came" if n > 1 else "no table came"
        raise typer.BadParameter(
            f"one table of one database is read, `--table annotations`; {came}.",
            param_hint="--table",
        )
    return found


def _check_weighing(typed: Typed) -> None:
    """Refuse what learning makes meaningless, and options of learning where nothing is learned."""
    weigh, needs_stated = typed.weigh, list[str]()
    if weigh != "stated":
        from slencodings.files.job import only_stated

        needs_stated = only_stated(typed.reading, typed.fusing)
    learns = weigh == "learned" or (weigh is None and not needs_stated)
    if not learns:
        came = f"--weigh {weigh}" if weigh else spelled(needs_stated[0])
        of_learning = _given(typed, "save_crowd features seed")
        _refuse(of_learning, f"it is for `--weigh learned`; `{came}` came.")
    if weigh is not None and needs_stated:
        raise typer.BadParameter(
            f"what annotations are worth is learned; it came with `--weigh {weigh}`. "
            "Leave one of them out, or type --weigh stated.",
            param_hint=spelled(needs_stated[0]),
        )


def forget(store: str, annotator: list[str], quiet: bool = False, verbose: bool = False) -> None:
    """Take annotators out of a store of evidence, as if they had never been in it."""
    with notes(quiet, verbose) as (say, _):
        from slencodings.files.adding import forget as take_out

        take_out(store, annotator, say)


def _run(say: Say, progress: Progress, in_words: object, **given: Any) -> None:
    encode(Typed(**given), say, progress)


command = as_command(encode, _run, parameters(Typed), learned=True, missing=Missing)
