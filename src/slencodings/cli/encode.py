"""`sle encode`: files of annotations to files of opinions; and `sle forget`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slencodings.cli import encode_options as e
from slencodings.cli import options as o
from slencodings.cli.command import as_command, parameters, words
from slencodings.cli.encode_checks import check
from slencodings.cli.encode_options import Typed
from slencodings.progress import Progress, Say, notes

if TYPE_CHECKING:
    from slencodings.files.job import Also
    from slencodings.tables.fuse import About


def encode(typed: Typed) -> None:
    """Fuse files of annotations into a file of opinions, one per item.

    Columns are found by their usual names (item or task, annotator or worker, label or answer,
    confidence, reliability) and what was found is said. What annotations are worth is learned from
    the crowd itself; --weigh stated takes it from these columns. With --into, the annotations are
    added to evidence that is kept, and opinions are of all that is in it; it may itself be IN.
    With --pairwise, rows compare two, and OUT has the better and the other of every pair.
    """
    check(typed)
    with notes(typed.quiet, typed.verbose) as (say, progress):
        if typed.pairwise is not None:
            _pairs(typed, typed.pairwise, say)
            return
        if typed.table is not None:
            about = _database(typed, typed.table, say)
        elif typed.engine == "spark" and typed.target is not None:
            about = _spark(typed, typed.target, say)
        else:
            about = _files(typed, say, progress)
        for name, value in about.items():
            if name != "crowd":
                say("detail", f"{name} = {value}")


def _pairs(typed: Typed, columns: str, say: Say) -> None:
    """Rows that compare two."""
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


def _database(typed: Typed, table: str, say: Say) -> About:
    """A table of a database, where it is."""
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


def _spark(typed: Typed, target: str, say: Say) -> About:
    """Files on a cluster."""
    from slencodings.files.spark import PATIENCE, encode_files

    patience = PATIENCE if typed.patience is None else typed.patience
    return encode_files(
        typed.source,
        target,
        typed.reading,
        typed.fusing,
        master=typed.master,
        patience=patience,
        say=say,
    )


def _files(typed: Typed, say: Say, progress: Progress) -> About:
    """Files, folders and addresses on one machine."""
    from slencodings.files.encode import encode_file

    return encode_file(
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
        also=None if typed.features is None else _network(typed, typed.features, say, progress),
        say=say,
        progress=progress,
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


def forget(
    store: e.StoreFile, annotator: e.Forgotten, quiet: o.Quiet = False, verbose: o.Verbose = False
) -> None:
    """Take annotators out of a store of evidence, as if they had never been in it."""
    with notes(quiet, verbose) as (say, _):
        from slencodings.files.forget import forget as take_out

        take_out(store, annotator, say)


def _run(**given: Any) -> None:
    encode(Typed(**given))


command = as_command(
    encode,
    _run,
    parameters(Typed),
    learned=True,
    confidence_scale=e.Scale,
    missing=e.IfMissing,
)
