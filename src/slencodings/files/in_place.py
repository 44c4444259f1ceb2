"""Tables of annotations that stay where they are, on a cluster or in a database: fused there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from slencodings import __version__
from slencodings.files.forms import about_rows, usual_form
from slencodings.files.job import Weighing, tell
from slencodings.progress import Say
from slencodings.tables.checks import Check, check_now
from slencodings.tables.columns import typed_labels
from slencodings.tables.engines import About, Frame
from slencodings.tables.fuse import Fusing, fuse_rows
from slencodings.tables.roles import Reading
from slencodings.tables.rows import Rows, read_rows
from slencodings.trust.learn_from_table import learn_from_table


def refuse_calibrated(reading: Reading, where: str) -> None:
    """Refuse to learn a scale of confidence elsewhere than `where` that is done."""
    if reading.confidence_scale == "calibrated":
        raise ValueError(
            f"confidence scales are learned {where}; `calibrated` came. Name the ends, "
            "confidence_scale=(1, 5), or leave it out: then its worth is learned with that of "
            "annotators."
        )


def fuse_in_place(
    table: Any,
    reading: Reading,
    fusing: Fusing,
    weighing: Weighing,
    *,
    name: str,
    source: About,
    named: Reading | None = None,
    check: Check = check_now,
    say: Say,
) -> tuple[Rows, Frame, Callable[[], About]]:
    """The rows of a table, their opinions, still lazy, and what tells how they were made.

    That is asked for once rows are checked, and tells people what was read.

    Parameters
    ----------
    name : what people call the table
    source : where it is from, to be told with opinions
    named : the reading by the names that people know its columns by, if those are others
    """
    named = named or reading
    reading, crowd = typed_labels(reading, table), weighing.crowd
    if weighing.learns:
        crowd = learn_from_table(table, reading, seed=fusing.seed, say=say)
    rows = read_rows(table, reading, crowd=crowd, check=check)._replace(item=str(named.item))
    form = usual_form(fusing.form, len(rows.labels))
    frame, about = fuse_rows(rows, replace(fusing, form=form))
    about |= {"version": __version__, **source}

    def describe() -> About:
        tell(rows, name, source.get("files", 1), say)
        return about | about_rows(rows, named, weighing, fusing.seed)

    return rows, frame, describe
