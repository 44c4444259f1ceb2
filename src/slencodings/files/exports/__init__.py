"""Exports of annotation tools to long tables, found by their content, and one way back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from slencodings.choices import Layout, Tool, check_word
from slencodings.files.exports import tables
from slencodings.files.exports.answers import Export, tabulate
from slencodings.files.exports.label_studio import to_label_studio
from slencodings.files.exports.load import (
    READERS,
    Dialect,
    dialect_of,
    look,
    parts,
    recognise,
    records,
)
from slencodings.files.exports.memory import records_in
from slencodings.files.exports.record import Exported, Object, Record

__all__ = ["FORMATS", "Export", "read_export", "recognise", "to_label_studio"]

# What `format` may be.
FORMATS = get_args(Literal[Tool, Layout])


def read_export(
    source: Any,
    *,
    format: str | None = None,
    question: str | None = None,
    item: str | None = None,
    annotator: str | None = None,
    label: str | None = None,
    confidence: str | None = None,
    annotators: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    separator: str | None = None,
) -> Export:
    """Read what an annotation tool exported into a long table for `fuse_table` and `from_table`.

    A question where several labels may be chosen becomes one question for each label: the item
    is "7 / sports", the label yes or no. `question="topic=sports"` reads that one label alone, and
    the items stay what they are. An annotator who did not choose a label said no to it.

    Parameters
    ----------
    source : a file, a zip file or a folder of files; or a Hugging Face data set, a list of
        records, a data frame, or a dict of columns
    format : one of FORMATS; left out, it is found by content. "wide" is a table with a column for
        each annotator, "counts" one with a column for each label, "several" a long one whose cells
        hold several labels
    question : which question, where there are several
    item : the field that names the item, if that is not the id that the tool gives it
    annotator, label : with "several", the columns of these, if their names do not tell
    confidence : the question that tells how sure annotators are, on its own scale; left out, one
        that is called confidence, certainty or sureness and answered with numbers
    annotators, labels : which columns of a wide table are annotators, of a count table labels
    separator : with "several", what stands between labels; found among ; | and , when absent

    Examples
    --------
    >>> task = {"_input_hash": 7, "_annotator_id": "ann", "answer": "accept", "accept": ["cat"]}
    >>> read_export([task, task | {"_annotator_id": "bob", "accept": ["dog"]}]).columns
    {'item': [7, 7], 'annotator': ['ann', 'bob'], 'label': ['cat', 'dog']}
    >>> table = {"item": ["a", "b"], "ann": ["yes", "no"], "bob": ["yes", None]}
    >>> read_export(table, format="wide").columns["annotator"]
    ['ann', 'bob', 'ann']
    """
    if format is not None:
        check_word("format", format, Literal[Tool, Layout])
    name, stream, in_memory = _open(source)
    first, found = look(stream(name))
    if first is None:
        raise ValueError(f"{name} has no records. Export it again.")
    if format in get_args(Layout):
        who = f"{name} ({format})"
        if format == "several":
            given = {"item": item, "annotator": annotator, "label": label, "confidence": confidence}
            return tables.several(stream(who), who, given, question, separator)
        if format == "wide":
            return tables.wide(stream(who), who, item, annotators)
        return tables.counts(stream(who), who, item, labels)
    plain = READERS[format].plain if found is None and format else None
    if format and plain and plain[0] <= first.value.keys():
        found = Dialect(format, plain[1])
    if found is None or format not in (None, found.tool):
        if found is None and format is None and in_memory:
            return tables.long(stream(name), name, item)
        raise ValueError(_unknown(name, format, found, first.value))
    who, left_out = f"{name} ({found.words})", Counter[str]()
    same = _of_one_tool(stream(who), found, first.value)
    answers = READERS[found.tool].answers(Exported(same, found.words, item, left_out))
    return tabulate(
        answers, who=who, tool=found.words, question=question, confidence=confidence,
        left_out=left_out,
    )  # fmt: skip


def _unknown(name: str, format: str | None, found: Dialect | None, first: Object) -> str:
    keys = ", ".join(map(repr, list(first)[:12])) or "nothing"
    if found is not None:
        return (
            f"{name} must be an export of {format}; it looks like {found.words}. "
            f"Say format={found.tool!r}, or leave it out."
        )
    wanted = f"an export of {format}" if format else "an export of a tool that is known"
    return (
        f"{name} must be {wanted}; its first record has {keys}. Known are {', '.join(FORMATS)}; "
        "a table with a column for the item and one for the label needs no format: "
        "sle encode FILE, fuse_table(table, item=..., label=...)."
    )


def _open(source: Any) -> tuple[str, Callable[[str], Iterator[Record]], bool]:
    """What the source is called, how its records are read anew, and whether it is in memory."""
    if isinstance(source, str | Path):
        files = parts(Path(source))
        if len(files) == 1:
            return files[0].name, lambda who: records(files[0], who), False
        each = [(f, f"{f.folder}/{f.name}" if f.folder else f.name) for f in files]

        def all_parts(who: str) -> Iterator[Record]:
            dialect = who.removeprefix(name)
            many = [
                (f._replace(folder=f.folder or name), f"{name}, {at}{dialect}") for f, at in each
            ]
            return chain.from_iterable(records(f, at) for f, at in many)

        name = Path(source).name
        return name, all_parts, False
    name = "the records" if isinstance(source, list | tuple) else f"the {type(source).__name__}"
    return name, lambda who: records_in(source, who), True


def _of_one_tool(stream: Iterable[Record], tool: Dialect, known: Object) -> Iterator[Record]:
    """The records, as long as none is of another tool or dialect."""
    for record in stream:
        found = dialect_of(record.value)
        # A record that tells nothing (no answers yet) is for the tool to judge.
        if (found and found != tool) or not record.value.keys() & known.keys():
            kind = (
                found.words
                if found
                else f"it has {', '.join(map(repr, record.value)) or 'nothing'}"
            )
            raise ValueError(
                f"{record.where} is of another kind: {kind:.200}. Export each to its own file."
            )
        yield record
