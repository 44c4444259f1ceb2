"""Large text files to opinions in one pass, where nothing in them asks for a second look.

To parse text takes longer than to add it up, and to hold what was parsed is half as long again. So
labels are guessed from some of the lines, and rows are checked and counted while they are added up.
Where the guess was wrong or a check fails the engine stops, nothing has been told or written, and
files are read the usual way, which finds the words for it.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import narwhals as nw

from slencodings.files.forms import MOST_WIDE_LABELS, lay_out, usual_form
from slencodings.files.job import Job, Weighing, end_of_scale, note_end, tell
from slencodings.files.locate import Connection, Relation
from slencodings.files.scan import HEAD, Picked, head_of
from slencodings.files.values import (
    FOUND,
    AnswerCounts,
    are_plain,
    judge_answers,
    may_number_rows,
    read_numbers,
)
from slencodings.files.write import in_any_order, literal
from slencodings.tables.checks import Problem, any_of
from slencodings.tables.columns import natural
from slencodings.tables.engines import ANNOTATOR, ITEM, LABEL, RELIABILITY, STATED, Frame, Metadata
from slencodings.tables.rows import (
    ENOUGH_ROWS_TO_COUNT,
    MOST_ROWS_TO_COUNT_DUPLICATES,
    Rows,
    parts_counted,
    read_rows,
)
from slencodings.tables.sums import certain, worth

# Fewer rows are read in no time.
LEAST_ROWS = 500_000
# Lines are looked at in so many places of the files.
PLACES = 16
# What the engine says of a row that was not expected.
AT_END = "at the end of the scale"
_END, _WHO, _PROBLEM = "sle_end", "sle_who", "sle_problem"
_ROWS, _LABELLED, _ENDS, _PEOPLE = "sle_rows", "sle_labelled", "sle_ends", "sle_people"


class Guess(NamedTuple):
    """What some lines show: answers, about how many rows, and whether one is at an end of 0."""

    answers: AnswerCounts
    rows: float
    at_end: bool


class Fused(NamedTuple):
    """Rows that have been gone through, their opinions, and how these were made."""

    rows: Rows
    opinions: Relation
    about: Metadata


def fuse_in_one_pass(job: Job, weighing: Weighing, chosen: Picked) -> Fused | None:
    """Fuse large text files that are as usual, and tell what was read; None if they are not."""
    reading, say = chosen.reading, job.say
    label = str(reading.label)
    if not _is_usual(job, weighing, chosen) or (guess := _look(job, chosen, label)) is None:
        return None
    answers, rows_about, _ = guess
    named = reading.labels is not None
    labels = list(reading.labels or sorted(answers.values, key=natural(answers.values)))
    few = (
        2 <= len(labels) <= MOST_WIDE_LABELS and usual_form(job.fusing.form, len(labels)) != "long"
    )
    if rows_about < LEAST_ROWS or not few or not are_plain(label, answers):
        return None
    # Up to half as many parts as it seems, because there may be fewer rows than that.
    many = rows_about > 2 * MOST_ROWS_TO_COUNT_DUPLICATES
    parts = 1 << math.floor(math.log2(rows_about / ENOUGH_ROWS_TO_COUNT)) if many else 1
    end = end_of_scale(reading)
    tally = _Tally(job.connection, labels, parts, None if end is None else end[1])
    # To count what is not there takes a tenth of the time.
    tally.counts_ends = end is None or guess.at_end
    if (made := _add_up(job, chosen, tally)) is None:
        return None
    rows, opinions, about = made
    n, labelled, ends = tally.counts()
    seen = {labels[k] for k in tally.given()}
    people = reading.annotator is not None
    if seen != set(answers.values) or (people and parts_counted(n) % parts):
        return None
    names = chosen.table.names
    judge_answers(label, answers, names, say, named=named, ordered=reading.ordered)
    rows = rows._replace(counts={"rows": n, "unlabelled": n - labelled})
    if end is not None:
        note_end(ends, end[2], say)
    parts = parts_counted(n)
    repeated = (tally.repeated(parts), parts) if people else None
    rows = tell(rows, job.source.name, len(job.source.files), say, repeated)
    return Fused(rows, opinions, about)


def _add_up(job: Job, chosen: Picked, tally: _Tally) -> Fused | None:
    """Go through the rows; None if they stopped the engine."""
    reading = replace(chosen.reading, labels=tally.labels)
    rows = read_rows(read_numbers(job.connection, job.source, chosen), reading, check=tally.check)
    try:
        opinions, about = lay_out(rows._replace(hold=tally), job.fusing)
    except (duckdb.InvalidInputException, duckdb.ConversionException) as error:
        if tally.counts_ends or AT_END not in str(error):
            return None
        tally.counts_ends = True  # There is something to count.
        return _add_up(job, chosen, tally)
    return Fused(rows, opinions, about)


def _is_usual(job: Job, weighing: Weighing, chosen: Picked) -> bool:
    """Whether one pass can do all that is asked of files such as these."""
    reading, source = chosen.reading, job.source
    scale = reading.confidence_scale
    stated = weighing.how == "stated" and job.also is None
    as_text = chosen.table.format in ("csv", "tsv") and source.local and not source.folders
    one_label = isinstance(reading.label, str) and not reading.merge_case
    one_item = not (
        chosen.parts or reading.keep or (chosen.found and may_number_rows(str(reading.item)))
    )
    all_rows = (
        reading.duplicates == "all" and reading.missing != "drop" and reading.base_rate is None
    )
    known = scale is None or (isinstance(reading.confidence, str) and scale != "calibrated")
    in_order = reading.ordered and list(reading.labels or []) == [FOUND]
    return stated and as_text and one_label and one_item and all_rows and known and not in_order


def _look(job: Job, chosen: Picked, label: str) -> Guess | None:
    """Look at some lines of the files; None if they cannot be read."""
    end = end_of_scale(chosen.reading)
    files = [Path(file) for file in job.source.files]
    size = sum(file.stat().st_size for file in files)
    found: Counter[str] = Counter()
    stated: set[str] = set()
    bytes_seen = rows_seen = 0
    for file in files[:: math.ceil(len(files) / PLACES)]:
        head = head_of(job.connection, True, chosen.table.format, str(file))
        if head.compression != "none":
            return None
        at, width = head.names.index(label), len(head.names)
        for lines in _lines(file, max(1, PLACES // len(files))):
            bytes_seen += sum(len(line) for line in lines)
            rows_seen += len(lines)
            try:
                text = csv.reader([line.decode() for line in lines], delimiter=head.delimiter)
                rows = [row for row in text if len(row) == width]
            except (UnicodeDecodeError, csv.Error):
                return None
            found.update(row[at] for row in rows if row[at])
            if end is not None:
                stated.update(row[head.names.index(end[0])] for row in rows)
    if not rows_seen:
        return None
    answers = AnswerCounts([v for v, _ in found.most_common()], [n for _, n in found.most_common()])
    at_end = end is not None and any(_equals(text, end[1]) for text in stated)
    return Guess(answers, size * rows_seen / bytes_seen, at_end)


def _equals(text: str, number: float) -> bool:
    with suppress(ValueError):
        return float(text) == number
    return False


def _lines(file: Path, places: int) -> Sequence[list[bytes]]:
    """Whole lines in some places of a file, without its first."""
    size = file.stat().st_size
    found: list[list[bytes]] = []
    with file.open("rb") as opened:
        for place in range(places):
            opened.seek(size * place // places)
            # What comes before the first end of a line is part of one.
            found.append(opened.read(HEAD).splitlines(keepends=True)[1:-1])
    return found


@dataclass
class _Tally:
    """What rows are counted by while they are added up by item, which is done once; a `Hold`."""

    connection: Connection
    labels: list[Any]
    parts: int
    end: float | None
    counts_ends: bool = True
    columns: list[str] = field(default_factory=list[str])
    worths: list[list[str]] = field(default_factory=list[list[str]])

    def check(
        self, frame: Frame, problems: list[Problem], first: str
    ) -> tuple[Frame, dict[str, int]]:
        """The rows, which stop the engine where one has a problem; as `checks.Check`."""
        of_rows = [problem for problem in problems if problem.shown != LABEL]
        marked = frame.with_columns(any_of(of_rows).alias(_PROBLEM)).to_native()
        # A label is found faster by one after the other than by IN, and compared by its number.
        kind = f"ENUM ({', '.join(map(literal, self.labels))})"
        known = " ".join(f"WHEN {x} THEN CAST({x} AS {kind})" for x in map(literal, self.labels))
        unknown = f"CAST(error('another label') AS {kind})"
        found = f"CASE {first} {known} ELSE if({first} IS NULL, NULL, {unknown}) END"
        sound, more = f"WHEN {_PROBLEM} THEN CAST(error('a problem') AS DOUBLE)", dict[str, str]()
        at_end = f"({first} IS NOT NULL AND {STATED} = {self.end!r})"
        if self.end is not None and self.counts_ends:
            more[_END] = at_end
        elif self.end is not None:
            sound += f" WHEN {at_end} THEN CAST(error('{AT_END}') AS DOUBLE)"
        sound = f"CASE {sound} ELSE {RELIABILITY} END"
        if ANNOTATOR in marked.columns:
            # A part of the items, as in `count_repeated`.
            one_part = f"hash({ITEM}) & {self.parts - 1} = 0" if self.parts > 1 else "true"
            more[_WHO] = f"if({one_part} AND {first} IS NOT NULL, {ANNOTATOR}, NULL)"
        self.columns = list(more)
        added = "".join(f", {sql} AS {name}" for name, sql in more.items())
        rows = marked.project(
            f"* EXCLUDE ({_PROBLEM}) REPLACE ({found} AS {first}, {sound} AS {RELIABILITY}){added}"
        )
        return nw.from_native(rows), {}

    def __call__(self, frame: Frame, sums: Mapping[str, nw.Expr]) -> Frame:
        """Add up by item what rows bring and what they are counted by, in scratch."""
        K = range(len(self.labels))
        self.worths = [[c for c in (worth(k), certain(k)) if c in sums] for k in K]
        brought = frame.select(
            ITEM, LABEL, *self.columns, *(x.alias(name) for name, x in sums.items())
        )
        counts = [f"count(*) AS {_ROWS}", f"count({LABEL}) AS {_LABELLED}"]
        if _END in self.columns:
            counts.append(f"count(*) FILTER ({_END}) AS {_ENDS}")
        if _WHO in self.columns:
            counts.append(f"list({_WHO}) FILTER ({_WHO} IS NOT NULL) AS {_PEOPLE}")
        added = [f"coalesce(sum({name}), 0) AS {name}" for name in sums]
        # DuckDB finds the variable by its name.
        _brought = brought.to_native()
        with in_any_order(self.connection, any_order=True):
            self.connection.execute(
                f"CREATE OR REPLACE TEMP TABLE sle_added AS SELECT {ITEM}, "
                f"{', '.join(added + counts)} FROM _brought GROUP BY {ITEM}"
            )
        return nw.from_native(self.connection.table("sle_added")).select(ITEM, *sums)

    def counts(self) -> tuple[int, int, int]:
        """How many rows there are, how many with a label, and how many at the end of a scale."""
        ends = f"sum({_ENDS})" if _END in self.columns else "0"
        n, labelled, at_end = self._asked(f"sum({_ROWS}), sum({_LABELLED}), {ends}")
        return int(n or 0), int(labelled or 0), int(at_end or 0)

    def given(self) -> list[int]:
        """The places of labels that some row is worth something to."""
        asked = ", ".join(f"sum({' + '.join(columns)})" for columns in self.worths)
        return [k for k, total in enumerate(self._asked(asked)) if total]

    def repeated(self, parts: int) -> int:
        """How many rows repeat an earlier pair in one of so many parts of the items."""
        one_part = f"WHERE hash({ITEM}) & {parts - 1} = 0" if parts > 1 else ""
        (n,) = self._asked(f"sum(len({_PEOPLE}) - len(list_distinct({_PEOPLE})))", one_part)
        return int(n or 0)

    def _asked(self, what: str, where: str = "") -> tuple[Any, ...]:
        return self.connection.execute(f"SELECT {what} FROM sle_added {where}").fetchall()[0]
