"""The values of columns that were chosen: numbers, names of items, and what the answers are.

Answers are one of a few names, or something that only looks like that.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, cast

import duckdb

from slencodings.annotations import counted, plainly, some
from slencodings.files.exports.fields import SEPARATORS, split_cell
from slencodings.files.locate import Connection, Relation, Source
from slencodings.files.scan import Picked, scan
from slencodings.files.write import literal, quote
from slencodings.progress import Say
from slencodings.tables.columns import typed_labels
from slencodings.tables.roles import Reading, find_columns, listed

# So many different values are looked at, the most frequent first.
MOST_VALUES = 5000
# More different labels than this are no few names.
MANY = 1000
# More different numbers than this are no steps if some are not whole; whole ones may be names.
MANY_NUMBERS = 20
# What is typed instead of labels whose order is to be found.
FOUND = "found"
# Free text is longer than labels are, or hardly ever comes twice.
LONG_TEXT, MANY_TEXTS = 60, 100
# Usual words of scales, from lowest to highest; some of one of them have its order.
SCALES = (
    ("very low", "low", "medium", "high", "very high"),
    ("very bad", "bad", "ok", "good", "very good"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("none", "mild", "moderate", "severe"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("very negative", "negative", "neutral", "positive", "very positive"),
)
RATINGS = re.compile("rating|score|grade|stars|likert|scale|level", re.IGNORECASE)
# What other programs write in a column of numbers where there is none.
NO_NUMBER = ("", "na", "n/a", "nan", "null", "none")
DECIMAL_COMMA = "[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?"
# Between the parts of an item's name, as in exports with several questions.
BETWEEN = " / "


def read_chosen(connection: Connection, chosen: Picked, say: Say) -> tuple[Relation, Reading]:
    """The values of columns that were chosen, and the reading with labels in their type."""
    table, relation, reading, numbers, parts, found = chosen
    if table.format != "parquet":
        relation = _read_once(connection, relation, numbers)
    relation = typed(relation, numbers, say)
    if parts:
        name = str(reading.item)
        relation = join_item(relation, parts, name)
        say("note", f"{name!r} is made of {listed(parts)}, joined with {BETWEEN!r}")
    relation = one_of_lists(relation, reading.label)
    if reading.merge_case:
        relation = merge_spellings(relation, reading.label)
    if reading.ordered and list(reading.labels or []) == [FOUND]:
        in_order = found_order(relation, reading.label)
        reading = replace(reading, labels=in_order)
        say("note", f"the order of labels: {listed(in_order)}")
    named = reading.labels is not None
    check_answers(relation, reading.label, table.names, say, named=named, ordered=reading.ordered)
    if found:
        note_items(relation, str(reading.item), table.names, say)
    return relation, reading if reading.labels is None else typed_labels(reading, relation)


def read_numbers(connection: Connection, source: Source, chosen: Picked) -> Relation:
    """The columns that were chosen of CSV, with what are to be numbers read as that.

    It is faster than to make text into numbers; what is none stops the engine.
    """
    table = scan(connection, source, chosen.reading.format, chosen.numbers)
    return table.pick(chosen.relation.columns)


def _read_once(connection: Connection, relation: Relation, numbers: Sequence[str]) -> Relation:
    """The relation as a table in scratch, with numbers in some columns if all words are that.

    A temporary one: others are packed to last, and written once more at the end.
    """
    numbers = [name for name in _texts(relation) if name in numbers]
    if numbers:
        # Nearly always all are numbers or missing, and then this takes a third less.
        columns = {name: duckdb.ColumnExpression(name) for name in relation.columns}
        plain = {name: columns[name].cast("DOUBLE").alias(name) for name in numbers}
        _rows = relation.select(*(columns | plain).values())
        with suppress(duckdb.ConversionException, duckdb.InvalidInputException):
            connection.execute("CREATE TEMP TABLE crowd AS FROM _rows")
            return connection.table("crowd")
        read = ", ".join(f"{_as_number(name)} AS {quote(name)}" for name in numbers)
        # Most are numbers, and whether the rest are words is asked later.
        leftovers = {f"sle_other_{i}": name for i, name in enumerate(numbers)}
        other = (
            f"if({_as_number(n)} IS NULL, {quote(n)}, NULL) AS {o}" for o, n in leftovers.items()
        )
        _rows = relation.project(f"* REPLACE ({read}), {', '.join(other)}")
        connection.execute("CREATE TEMP TABLE crowd AS FROM _rows")
        words = " OR ".join(map(_is_word, leftovers))
        if not connection.execute(f"SELECT bool_or({words}) FROM crowd").fetchall()[0][0]:
            return connection.table("crowd").select(*columns.values())
    # Which words, and in which row, is told of the text.
    connection.execute("CREATE OR REPLACE TEMP TABLE crowd AS FROM relation")
    return connection.table("crowd")


def _texts(relation: Relation) -> list[str]:
    return [name for name, type in _types(relation).items() if type == "VARCHAR"]


def _as_number(name: str) -> str:
    return f"TRY_CAST({quote(name)} AS DOUBLE)"


def _is_word(name: str) -> str:
    """Whether text that is no number says more than that there is none."""
    text = quote(name)
    return f"({text} IS NOT NULL AND lower(trim({text})) NOT IN {NO_NUMBER})"


def typed(
    relation: Relation,
    numbers: Sequence[str],
    say: Say = lambda what, text: None,
    *,
    or_else: str = "name another column",
) -> Relation:
    """The relation with text turned into numbers in some columns; other words are refused.

    Where no number has a point, commas may part decimals, and that is said. `or_else` is what else
    may be done about words in a column {}.
    """
    texts = _texts(relation)
    for name in numbers:
        if name not in texts:
            continue
        text, number = quote(name), _as_number(name)
        wrong = f"{_is_word(name)} AND {number} IS NULL"
        numbered = relation.project(
            f"row_number() OVER () AS row, {text} AS value, {wrong} AS wrong, "
            f"wrong AND regexp_full_match(trim({text}), '{DECIMAL_COMMA}') AS comma"
        )
        found = numbered.aggregate(
            "count_if(wrong), min(row) FILTER (wrong), arg_min(value, row) FILTER (wrong), "
            "count_if(comma), count_if(value LIKE '%.%')"
        )
        count, row, value, commas, points = found.fetchall()[0]
        if count and (count > commas or points):
            do = "does" if count == 1 else "do"
            percent = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value)
            mend = "Map its words to numbers first"
            if percent:
                mend = f"Write {value.strip()} as {float(percent[1]) / 100:g}"
            raise ValueError(
                f"column {name!r} must hold numbers; {counted(count, 'row')} {do} not, first "
                f"{value!r} in row {row} of the data. {mend}, or {or_else.format(repr(name))}."
            )
        if count:
            say("note", f"column {name!r} has decimal commas: {value} is {value.replace(',', '.')}")
            number = f"TRY_CAST(replace({text}, ',', '.') AS DOUBLE)"
        relation = relation.project(f"* REPLACE ({number} AS {text})")
    return relation


def join_item(relation: Relation, parts: Sequence[str], name: str) -> Relation:
    """The relation with a column of items that several columns name."""
    texts = [f"CAST({quote(part)} AS VARCHAR)" for part in parts]
    joined = relation.project(f"*, {f' || {BETWEEN!r} || '.join(texts)} AS {quote(name)}")
    pairs = joined.project(", ".join(map(quote, [name, *parts]))).distinct()
    alike = pairs.aggregate(f"{quote(name)} AS name, count(*) AS n", quote(name))
    found = alike.filter("n > 1 AND name IS NOT NULL").limit(1).fetchall()
    if found:
        raise ValueError(
            f"items that {', '.join(map(repr, parts))} name must differ when these are joined with "
            f"{BETWEEN!r}; several are {found[0][0]!r} then. Write them otherwise."
        )
    return joined


class AnswerCounts(NamedTuple):
    """The different values of a column of labels, the most frequent first, and how often each."""

    values: list[str]
    counts: list[int]


def check_answers(
    relation: Relation,
    label: Any,
    columns: Sequence[str],
    say: Say,
    *,
    named: bool,
    ordered: bool,
) -> None:
    """Tell if labels are not one of a few names, nor `ordered`, and what to type then.

    They may be the names of other `columns`. Spans, and numbers without steps that nobody `named`
    one by one, are refused.
    """
    if not isinstance(label, str) or _types(relation)[label].endswith("]"):
        return  # Probabilities.
    answers = _count_answers(relation, label)
    judge_answers(label, answers, columns, say, named=named, ordered=ordered)


def judge_answers(
    label: str,
    answers: AnswerCounts,
    columns: Sequence[str],
    say: Say,
    *,
    named: bool,
    ordered: bool,
) -> None:
    """The same of answers that have been counted."""
    if not named and (why := _cannot_be_fused(label, answers)):
        raise ValueError(why)
    if spellings := _spellings(answers):
        shown = "; ".join(", ".join(map(repr, variants)) for variants in spellings[:3])
        more = f" and {len(spellings) - 3} more" if len(spellings) > 3 else ""
        say(
            "note",
            f"some labels differ in case and spaces alone ({shown}{more}); merge_case=True makes "
            "them one",
        )
    if not ordered and (kind := _what_instead(label, answers)):
        say("note", kind)
    sides = [name for name in columns if name != label and name in answers.values]
    if len(sides) == 2:
        pairwise = ",".join([*sides, label])
        say(
            "note",
            f"{label!r} names the columns {listed(sides)}, and each is taken for a label; if rows "
            f"compare what stands in them: sle encode --pairwise {shlex.quote(pairwise)}",
        )


def are_plain(label: str, answers: AnswerCounts) -> bool:
    """Whether a few answers are told of alike however often each of them came."""
    odd = _cannot_be_fused(label, answers) or _spellings(answers) or _parts(answers.values)
    return not odd


def may_number_rows(item: str) -> bool:
    """Whether what names items is called as numbers of rows often are."""
    return re.sub(r"[^a-z]", "", item.lower()) in ("id", "uid", "uuid", "guid", "idx")


def note_items(relation: Relation, item: str, names: Sequence[str], say: Say) -> None:
    """Tell if what is called an id may number rows, where nobody said that it names items."""
    if not may_number_rows(item):
        return
    rows, items = relation.aggregate(f"count(*), count(DISTINCT {quote(item)})").fetchall()[0]
    if rows == items > 1:
        other = find_columns([name for name in names if name != item]).get("item", "COLUMN")
        say(
            "note",
            f"every row has its own {item!r}; if that numbers rows and not items, name the items: "
            f"item={other!r}",
        )


def merge_spellings(relation: Relation, label: Any) -> Relation:
    """Labels that differ in case and spaces alone as one, the most frequent spelling of them."""
    if not isinstance(label, str) or _types(relation)[label] != "VARCHAR":
        return relation
    spellings = _spellings(_count_answers(relation, label))
    cases = [f"WHEN {literal(x)} THEN {literal(best)}" for best, *rest in spellings for x in rest]
    name = quote(label)
    merged = f"CASE {name} {' '.join(cases)} ELSE {name} END"
    return relation.project(f"* REPLACE ({merged} AS {name})") if cases else relation


def one_of_lists(relation: Relation, label: Any) -> Relation:
    """Labels that stand alone in lists, as they are; several in one are refused."""
    if not isinstance(label, str) or _types(relation)[label] != "VARCHAR[]":
        return relation
    name = quote(label)
    longest, example = relation.aggregate(
        f"max(len({name})), arg_max({name}, len({name}))"
    ).fetchall()[0]
    if (longest or 0) > 1:
        raise ValueError(
            f"column {label!r} must hold one label in each row; lists of several came, such as "
            f"{json.dumps(example, ensure_ascii=False)}. If each was one person's choice of "
            "several, ask for a yes or no to each label: multi=';'. If each of them is "
            "the label of another person, write a row for each."
        )
    return relation.project(f"* REPLACE ({name}[1] AS {name})")


def _types(relation: Relation) -> dict[str, str]:
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def _count_answers(relation: Relation, label: str) -> AnswerCounts:
    text = duckdb.ColumnExpression(label).cast("VARCHAR").alias("value")
    found = relation.select(text).filter("value IS NOT NULL")
    counted = found.aggregate("value, count(*) AS n", "value").order("n DESC, value")
    rows = counted.limit(MOST_VALUES + 1).fetchall()
    return AnswerCounts([value for value, _ in rows], [n for _, n in rows])


def _spellings(answers: AnswerCounts) -> list[list[str]]:
    """Values that differ in case and spaces alone, those that are one together."""
    alike: dict[str, list[str]] = {}
    for value in answers.values:
        alike.setdefault(" ".join(value.casefold().split()), []).append(value)
    return [values for values in alike.values() if len(values) > 1]


def found_order(relation: Relation, label: Any) -> list[str]:
    """The labels of a column from lowest to highest, as far as their names tell."""
    answers = _count_answers(relation, label) if isinstance(label, str) else AnswerCounts([], [])
    values = answers.values
    in_order = sorted(values, key=float) if _numbers(values) else _scale(values)
    if not in_order or _cannot_be_fused(str(label), answers):
        raise ValueError(
            "an order is found of a few numbers, or of words of a usual scale, such as low, medium "
            f"and high; {listed(values) or 'probabilities'} came. Name all labels from lowest to "
            "highest: ordered=[...]."
        )
    return in_order


def _cannot_be_fused(label: str, answers: AnswerCounts) -> str | None:
    """Why there can be no opinions about labels, and what to do; None if there can be."""
    values, K = answers.values, len(answers.values)
    if any(_is_span(value) for value in values[:20]):
        return (
            f"{label!r} holds spans (start and end of a part), which cannot be fused. Make each "
            "part, such as a token, an item with a label of its own; or name a column with one of "
            "a few labels: label='COLUMN'."
        )
    numbers = _numbers(values)
    integers = all(x.is_integer() for x in numbers)
    if numbers and (K > MANY_TEXTS and _seldom(answers) if integers else K > MANY_NUMBERS):
        return (
            f"{label!r} holds {_many(K)} different numbers from {min(numbers):g} to "
            f"{max(numbers):g}; an opinion is about a few labels, so numbers without steps cannot "
            "be fused. Round them to a few levels and name those in their order: "
            "ordered=['low', ..., 'high']; ask whether it is at least so much, as yes or no; or "
            "name a column with one of a few labels: label='COLUMN'."
        )
    return None


def _many(K: int) -> str:
    return f"{MOST_VALUES:,} or more" if K > MOST_VALUES else f"{K:,}"


def _seldom(answers: AnswerCounts) -> bool:
    """Whether answers hardly ever come twice."""
    return sum(answers.counts) / 2 < len(answers.values)


def _what_instead(label: str, answers: AnswerCounts) -> str | None:
    """What labels are instead of a few names, in words; None if they are that."""
    values, K = answers.values, len(answers.values)
    many, other = _many(K), "name a column with one of a few labels: label='COLUMN'"
    numbers = _numbers(values)
    if parts := _parts(values):
        return (
            f"{label!r} seems to hold several labels in a cell, such as {parts.example!r}, and "
            f"takes each combination for one label; multi={parts.separator!r} asks a yes or no to "
            f"each of {some(parts.labels, plainly)}"
        )
    if numbers and (K > MANY_NUMBERS or not all(x.is_integer() for x in numbers)):
        return (
            f"{label!r} holds {many} different numbers from {min(numbers):g} to {max(numbers):g}, "
            "each taken for a name without an order; round them to a few levels and name those in "
            f"their order: ordered=['LOW', ..., 'HIGH']; or {other}"
        )
    if numbers and K > 2 and (min(numbers) == 1 or RATINGS.search(label)):
        low, high = f"{min(numbers):g}", f"{max(numbers):g}"
        # What is written as 3.0 is a label 3.0.
        in_order = sorted(values, key=float)
        return (
            f"{label!r} looks like a rating from {low} to {high}; each is taken for a name without "
            f"an order. If it has one: ordered={in_order!r}. If it is how sure people are: "
            f"confidence={label!r}"
        )
    if scale := _scale(values):
        return (
            f"{label!r} looks like a scale from {scale[0]} to {scale[-1]}; each is taken for a "
            f"name without an order. If it has one: ordered={scale!r}"
        )
    length = sum(len(v) * n for v, n in zip(*answers, strict=True)) / max(1, sum(answers.counts))
    # A few long labels that come again and again are no free text.
    rare = _seldom(answers)
    free = (length > LONG_TEXT or K > MANY_TEXTS) if rare else length > LONG_TEXT and K > MANY
    if not numbers and free:
        return f"{label!r} looks like free text ({many} different values); {other}"
    return f"{label!r} has {many} different values; {other}" if K > MANY else None


def _scale(values: Sequence[str]) -> list[str]:
    """Three values or more that are words of one scale, in its order; none if they are not."""
    words = {" ".join(value.casefold().split()): value for value in values}
    for scale in SCALES:
        if 3 <= len(words) == len(values) and words.keys() <= set(scale):
            return [words[word] for word in scale if word in words]
    return []


def _numbers(values: Sequence[str]) -> list[float]:
    """The values as numbers; none if some are not."""
    with suppress(ValueError):
        return [float(value) for value in values]
    return []


def _is_span(value: str) -> bool:
    if not value.lstrip().startswith(("[", "{")):
        return False
    with suppress(ValueError, RecursionError):
        found = json.loads(value)
        first = cast("list[Any]", found)[:1] if isinstance(found, list) else [found]
        return any(isinstance(x, dict) and {"start", "end"} <= x.keys() for x in first)
    return False


class _Parts(NamedTuple):
    labels: list[str]
    example: str
    separator: str


def _parts(values: Sequence[str]) -> _Parts | None:
    """The labels that cells combine; None if they are no combinations.

    Combinations have fewer parts than there are of them, and parts that come more than once.
    """
    for separator in ("[", *SEPARATORS):
        joined = [value for value in values if separator in value.strip()[1:] or value[:1] == "["]
        if len(joined) < 2:
            continue
        split = [split_cell(v, None if separator == "[" else separator) for v in joined]
        alone = [value.strip() for value in values if value not in joined]
        labels = sorted({*alone, *(part for parts in split for part in parts)})
        if any(len(parts) > 1 for parts in split) and len(labels) < len(values):
            return _Parts(labels, joined[0], "," if separator == "[" else separator)
    return None
