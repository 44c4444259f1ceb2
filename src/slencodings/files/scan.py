"""Files as one table: of which format they are, which columns they have, and of what type."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from itertools import groupby
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeAlias

import duckdb

from slencodings.annotations import counted
from slencodings.choices import Format, TableFormat
from slencodings.files.heads import LINES, Head, common_format, head_of
from slencodings.files.json_columns import from_json, json_keys
from slencodings.files.labels import (
    FOUND,
    check_answers,
    found_order,
    merge_spellings,
    note_items,
    one_of_lists,
)
from slencodings.files.locate import Connection, Source, is_store
from slencodings.files.write import literal, quote
from slencodings.progress import Say
from slencodings.tables.columns import typed_labels
from slencodings.tables.roles import NUMBERS, Reading, check_names, choose_columns, listed

Relation: TypeAlias = duckdb.DuckDBPyRelation
# Called when a step begins: its name, how much there is to do if that is known, and of what; and
# again with how much is done, where that is not for DuckDB to say.
Step: TypeAlias = Callable[..., None]

# Between the parts of an item's name, as in exports with several questions.
BETWEEN = " / "
# What other programs write in a column of numbers where there is none.
NO_NUMBER = ("", "na", "n/a", "nan", "null", "none")
DECIMAL_COMMA = "[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?"


class Chosen(NamedTuple):
    """The columns of files that play a role, not yet read.

    Attributes
    ----------
    table : all that the files have
    relation : these columns, of text those that are to be `numbers` as well
    reading : which column plays which role
    parts : the columns that name an item together, if several do
    found : whether the column of items was found by its name
    """

    table: Table
    relation: Relation
    reading: Reading
    numbers: list[str]
    parts: list[str]
    found: bool


def choose(
    connection: Connection,
    source: Source,
    reading: Reading,
    *,
    learned: bool = False,
    used: Sequence[str] = (),
    say: Say,
    step: Step,
) -> Chosen:
    """The columns that play a role, whose values `read_chosen` reads.

    `learned`: what annotators are worth is learned, so a column of reliability is not looked for.
    `used`: columns that are read for something else, such as gold.
    """
    size = sum(Path(file).stat().st_size for file in source.files) if source.local else None
    step("reading", size and size / 1e6, "MB")
    for file in source.files if source.local else ():
        if is_store(connection, Path(file)):
            name = PurePath(file).name
            raise ValueError(
                f"annotations are needed; {name} is a store of evidence, which has only their "
                f"sums. Its opinions: sle encode {shlex.quote(name)} -o OUT"
            )
    table = scan(connection, source, reading.format)
    found, parts = reading.item is None, item_parts(reading.item, table.names)
    check_names(table.names, [("item", name) for name in parts])
    used = [*used, *source.known, *reading.keep, *parts]
    if parts:
        reading = replace(
            reading, item=_joined_name(parts, table.names), keep=[*parts, *reading.keep]
        )
    made = [str(reading.item)] if parts else []
    reading = choose_columns([*table.names, *made], reading, learned=learned, used=used, say=say)
    check_names(table.names, [("keep", name) for name in reading.keep])
    numbers = number_columns(reading)
    played = [name for _, name in reading.wanted if name not in made]
    texts = [name for name in reading.keep if name not in played]
    relation = table.pick([*played, *texts], numbers, texts)
    return Chosen(table, relation, reading, numbers, parts, found)


def read_chosen(connection: Connection, chosen: Chosen, say: Say) -> tuple[Relation, Reading]:
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
    check_answers(relation, reading.label, say, named=named, ordered=reading.ordered)
    if found:
        note_items(relation, str(reading.item), table.names, say)
    return relation, reading if reading.labels is None else typed_labels(reading, relation)


def read_numbers(connection: Connection, source: Source, chosen: Chosen) -> Relation:
    """The columns that were chosen of CSV, with what are to be numbers read as that.

    It is faster than to make text into numbers; what is none stops the engine.
    """
    table = scan(connection, source, chosen.reading.format, chosen.numbers)
    return table.pick(chosen.relation.columns)


def scan(
    connection: Connection,
    source: Source,
    asked: Format | None = None,
    numbers: Sequence[str] = (),
) -> Table:
    """A lazy table over files, and what each of them has; of CSV some columns as `numbers`."""
    format = common_format(source, asked)
    schemas: dict[str, dict[str, str]] = {}
    parts: list[Relation] = []
    look = partial(head_of, connection, source.local, format)
    # DuckDB wants the same columns in all names of folders that it reads at once.
    for (head, _), run in groupby(source.files, lambda file: (look(file), _folder_columns(file))):
        files = list(run)
        keys: dict[str, list[str]] = {}
        if format in LINES:
            keys = json_keys(connection, files, format, head)
            head = head._replace(names=tuple(sorted({k for each in keys.values() for k in each})))
        part = _read_files(connection, files, format, head, numbers, folders=source.folders)
        parts.append(part)
        types = dict(zip(part.columns, map(str, part.types), strict=True))
        for file in files:
            # A key may be missing from some rows of a JSON file, but not from all.
            lacks: set[str] = set(head.names) - set(keys[file]) if keys else set()
            schemas[file] = {name: type for name, type in types.items() if name not in lacks}
    return Table(format, schemas, parts)


class Table(NamedTuple):
    """Files as one table, whose columns may differ where nobody reads them.

    Attributes
    ----------
    format : of all files
    schemas : for each file its columns and their types
    parts : one for each run of files that have the same columns
    """

    format: TableFormat
    schemas: dict[str, dict[str, str]]
    parts: list[Relation]

    @property
    def names(self) -> list[str]:
        """The columns of all files."""
        return list(dict.fromkeys(name for schema in self.schemas.values() for name in schema))

    def pick(
        self, names: Iterable[str], numbers: Sequence[str] = (), texts: Sequence[str] = ()
    ) -> Relation:
        """Some columns, which must be alike in all files; those of no file are left to others.

        Of JSON, numbers stay text here, as they are in a CSV file; `texts` may hold anything.
        """
        names = list(dict.fromkeys(names))
        common_types(self.schemas, names)
        picked = (part.select(*map(duckdb.ColumnExpression, names)) for part in self.parts)
        relation = reduce(lambda rows, part: rows.union(part), picked)
        return from_json(relation, numbers, texts) if self.format in LINES else relation


def common_types(schemas: Mapping[str, Mapping[str, str]], names: Sequence[str]) -> dict[str, str]:
    """The types of columns, which must be there in all files and of one type."""
    types: dict[str, str] = {}
    for name in names:
        found: dict[str | None, list[str]] = {}
        for file, schema in schemas.items():
            found.setdefault(schema.get(name), []).append(file)
        if len(found) > 1:
            came = [
                f"{'missing' if type is None else type} in {len(these)}, such as {these[0]}"
                for type, these in sorted(found.items(), key=lambda kind: -len(kind[1]))
            ]
            raise ValueError(
                f"column {name!r} must be alike in all {len(schemas)} files; it is "
                f"{'; '.join(came)}. Leave out or repair the files that differ."
            )
        types[name] = str(next(iter(found)))
    return types


def _folder_columns(file: str) -> list[str]:
    return [part.split("=")[0] for part in PurePath(file).parts if "=" in part]


def _read_files(
    connection: Connection,
    files: Sequence[str],
    format: TableFormat,
    head: Head,
    numbers: Sequence[str],
    *,
    folders: bool = False,
) -> Relation:
    """A lazy relation over files that have the same head; `folders` may hold columns as well.

    Text stays text, so that the item 007 stays 007, but for columns of CSV that are `numbers`.
    """
    names: Any = [glob.escape(file) for file in files]
    hive: dict[str, Any] = {"hive_partitioning": folders, "hive_types_autocast": False}
    if format == "parquet":
        listed = ", ".join(map(literal, names))
        how = ", ".join(f"{option} = {value}" for option, value in hive.items())
        return connection.sql(f"FROM read_parquet([{listed}], {how})")
    hive["compression"] = head.compression
    if format in LINES:
        columns = dict.fromkeys(head.names, "JSON")
        return connection.read_json(names, format=LINES[format], columns=columns, **hive)
    # All is said here, because DuckDB guesses another delimiter when one row is ragged.
    return connection.read_csv(
        names,
        header=True,
        auto_detect=False,
        columns={name: "DOUBLE" if name in numbers else "VARCHAR" for name in head.names},
        delimiter=head.delimiter,
        quotechar='"',
        escapechar='"',
        **hive,
    )


def number_columns(reading: Reading) -> list[str]:
    """The columns that must hold numbers."""
    numbers = {*NUMBERS, "label"} if isinstance(reading.label, list) else {*NUMBERS}
    return [name for role, name in reading.wanted if role in numbers]


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
        others = {f"sle_other_{i}": name for i, name in enumerate(numbers)}
        other = (f"if({_as_number(n)} IS NULL, {quote(n)}, NULL) AS {o}" for o, n in others.items())
        _rows = relation.project(f"* REPLACE ({read}), {', '.join(other)}")
        connection.execute("CREATE TEMP TABLE crowd AS FROM _rows")
        words = " OR ".join(map(_is_word, others))
        if not connection.execute(f"SELECT bool_or({words}) FROM crowd").fetchall()[0][0]:
            return connection.table("crowd").select(*columns.values())
    # Which words, and in which row, is told of the text.
    connection.execute("CREATE OR REPLACE TEMP TABLE crowd AS FROM relation")
    return connection.table("crowd")


def _texts(relation: Relation) -> list[str]:
    types = zip(relation.columns, map(str, relation.types), strict=True)
    return [name for name, type in types if type == "VARCHAR"]


def _as_number(name: str) -> str:
    return f"TRY_CAST({quote(name)} AS DOUBLE)"


def _is_word(name: str) -> str:
    """Whether text that is no number says more than that there is none."""
    text = quote(name)
    return f"({text} IS NOT NULL AND lower(trim({text})) NOT IN {NO_NUMBER})"


def typed(
    relation: Relation, numbers: Sequence[str], say: Say = lambda what, text: None
) -> Relation:
    """The relation with text turned into numbers in some columns; other words are refused.

    Where no number has a point, commas may part decimals, and that is said.
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
            raise ValueError(
                f"column {name!r} must hold numbers; {counted(count, 'row')} {do} not, first "
                f"{value!r} in row {row} of the data. Map its words to numbers first, or name "
                "another column."
            )
        if count:
            say("note", f"column {name!r} has decimal commas: {value} is {value.replace(',', '.')}")
            number = f"TRY_CAST(replace({text}, ',', '.') AS DOUBLE)"
        relation = relation.project(f"* REPLACE ({number} AS {text})")
    return relation


def item_parts(item: Any, names: Sequence[str]) -> list[str]:
    """The columns that name an item together; none if one does."""
    if not isinstance(item, str) or item in names or "," not in item:
        return []
    return [name.strip() for name in item.split(",")]


def _joined_name(parts: Sequence[str], names: Sequence[str]) -> str:
    """What the column of items that several columns name is called."""
    taken = {name.casefold() for name in names}
    choices = ["item", "_".join(parts)]
    while choices[-1].casefold() in taken:
        choices.append(choices[-1] + "_")
    return next(name for name in choices if name.casefold() not in taken)


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
