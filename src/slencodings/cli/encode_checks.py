"""Options of `sle encode` that make no sense together, refused before anything is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

import typer

from slencodings.cli import options as o
from slencodings.cli.encode_options import Typed
from slencodings.cli.messages import spelled

if TYPE_CHECKING:
    from slencodings.tables.roles import Reading

_DATABASE = re.compile(r"(postgres|postgresql|sqlite)://", re.IGNORECASE)


def check(typed: Typed) -> None:
    """Refuse options that make no sense together."""
    reading = typed.reading
    database = _is_database(typed)
    if not database:
        _check_output(typed)
    if typed.features is None:
        text = {"--text": typed.feature_text}
        _only_for(
            _given(typed, "feature_item") | text | _given(typed, "encoder"), "--features FILE"
        )
    if typed.pairwise is None:
        _only_for(_given(typed, "scores"), "--pairwise LEFT,RIGHT,WINNER")
    else:
        others = _given(typed, "into keep weigh save_crowd smoothing form")
        others |= _given(reading, "multi") | _given(typed, "partition_by engine")
        if reading.labels is not None:
            others[spelled(reading.named)] = reading.labels
        _refuse(others | _given(typed, "features sort"), "--pairwise")
        return
    # What one machine can do and a cluster or a database cannot.
    alone: dict[str, object] = {
        "--form": typed.form if typed.form in ("lists", "weights") else None,
        "--format": None if reading.format in o.TABLES else reading.format,
    }
    alone |= _given(reading, "question encoding sheet")
    alone |= _given(typed, "into memory keep partition_by") | _given(reading, "merge_case")
    alone |= _given(typed, "save_crowd features sort")
    if typed.engine == "spark":
        _check_spark(alone | _given(typed, "csv_style"))
    else:
        _only_for(_given(typed, "master patience"), "--engine spark")
    if database:
        _refuse(alone | _given(typed, "engine"), "a database")
    if typed.features is not None:
        others = _given(typed, "into") | _given(reading, "multi") | _given(typed, "partition_by")
        _refuse(others, "--features")
    _check_weighing(typed)


def _given(typed: Typed | Reading, names: str) -> dict[str, object]:
    """The options among these that are not as usual, with what came."""
    usual = {field.name: field.default for field in fields(typed)}
    came = {name: getattr(typed, name) for name in names.split()}
    return {spelled(name): value for name, value in came.items() if value != usual[name]}


def _only_for(given: Mapping[str, object], other: str) -> None:
    """Refuse options that say something only beside another, which did not come."""
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"it is for `{other}`.", param_hint=option)


def _refuse(given: Mapping[str, object], other: str) -> None:
    """Refuse options that make no sense beside another, which came."""
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(
                f"it is not for `{other}`. Leave one of them out.", param_hint=option
            )


def _check_spark(given: Mapping[str, object]) -> None:
    """Refuse with Spark what one machine alone can do."""
    for option, value in given.items():
        if value:
            raise typer.BadParameter(
                f"it is not for `--engine spark`; `{option} {value}` came. Leave one of them out.",
                param_hint=option,
            )


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
    _only_for(_given(typed, "again by_annotator"), "--into STORE.parquet")


def _is_database(typed: Typed) -> bool:
    """Whether annotations are in a database; options of one are refused where there is none."""
    n, found = len(typed.source), any(map(_DATABASE.match, typed.source))
    for option in _given(typed, "table into_table") if not found else ():
        raise typer.BadParameter(
            "it is for a database, postgresql://... or sqlite:///FILE.", param_hint=option
        )
    if found and (typed.table is None or n > 1):
        came = f"{n} inputs came" if n > 1 else "no table came"
        raise typer.BadParameter(
            f"one table of one database is read, `--table annotations`; {came}.",
            param_hint="--table",
        )
    return found


def _check_weighing(typed: Typed) -> None:
    """Refuse what learning makes meaningless, and options of learning where nothing is learned."""
    from slencodings.files.weigh import only_stated

    needs_stated, weigh = only_stated(typed.reading, typed.fusing), typed.weigh
    learns = weigh == "learned" or (weigh is None and not needs_stated)
    if not learns:
        came = f"--weigh {weigh}" if weigh else spelled(needs_stated[0])
        for option in _given(typed, "save_crowd features seed"):
            raise typer.BadParameter(
                f"it is for `--weigh learned`; `{came}` came.", param_hint=option
            )
    if weigh not in (None, "stated") and needs_stated:
        raise typer.BadParameter(
            f"what annotations are worth is learned; it came with `--weigh {weigh}`. "
            "Leave one of them out, or type --weigh stated.",
            param_hint=spelled(needs_stated[0]),
        )
