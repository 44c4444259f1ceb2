"""The files of a Spark cluster: which there are, whether they are alike, and how one is written.

All through Hadoop's file systems, so that a path may be local, hdfs:// or s3a://.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any, cast

from slencodings.annotations import counted, some
from slencodings.files.beside import ABOUT, tells_about_others
from slencodings.files.scan import common_types, header, number_columns
from slencodings.files.values import NO_NUMBER
from slencodings.progress import Say
from slencodings.tables.engines import Metadata
from slencodings.tables.roles import Reading, choose_columns

SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
}


def _place(spark: Any, name: str) -> tuple[Any, Any]:
    """A path, and the file system that it is in."""
    path = spark._jvm.org.apache.hadoop.fs.Path(name)
    return path, path.getFileSystem(spark._jsc.hadoopConfiguration())


def exists(spark: Any, name: str) -> bool:
    """Whether there is a file or folder of this name."""
    path, system = _place(spark, name)
    return system.exists(path)


def find_files(spark: Any, sources: Sequence[str]) -> list[str]:
    """All files of the sources, in order, without those that hold no data."""
    found: list[str] = []
    for source in sources:
        path, system = _place(spark, source)
        matches: list[Any] = system.globStatus(path) or []
        if not matches:
            raise FileNotFoundError(f"there is no file {source!r}.")
        for match in matches:
            listed = system.listFiles(match.getPath(), True)
            root = match.getPath().toString()
            while listed.hasNext():
                status = listed.next()
                name = status.getPath().toString()
                inner = PurePosixPath(name.removeprefix(root)).parts
                ours = tells_about_others(PurePosixPath(name).name) and name != root
                if status.getLen() and not (ours or any(p.startswith(("_", ".")) for p in inner)):
                    found.append(name)
    if not found:
        raise ValueError(f"there is no data in {some(sources, str)}; at least one row is needed.")
    return sorted(dict.fromkeys(found))


def spark_format(files: Sequence[str], format: str | None) -> str:
    """The one format of all files, as Spark calls it."""
    if format == "json":
        raise ValueError(
            "Spark reads JSON by the line, not one array; format='json' came. Write it as JSONL."
        )
    if format is not None:
        return {"tsv": "csv", "jsonl": "json"}.get(format, format)
    found: dict[str, str] = {}
    for file in files:
        suffix = PurePosixPath(file.removesuffix(".gz")).suffix.lower()
        if suffix not in SUFFIXES:
            raise ValueError(
                f"the names of files say their format: {', '.join(SUFFIXES)}; {file!r} does not. "
                "Name the `format`: csv, tsv, parquet or jsonl."
            )
        found.setdefault(SUFFIXES[suffix], file)
    if len(found) > 1:
        raise ValueError(
            f"all files must be of one format; {' and '.join(found.values())} are of several. "
            "Encode them apart."
        )
    return next(iter(found))


def read_table(
    spark: Any, files: list[str], format: str, reading: Reading, *, learned: bool, say: Say
) -> tuple[Any, Reading]:
    """The columns that play a role as a table, and the reading that says which they are."""
    # A name with brackets is no pattern.
    reader = spark.read.option("__globPaths__", "false").option("mode", "FAILFAST")
    heads: dict[str, tuple[str, list[str]]] = {}
    if format == "csv":
        heads = {file: header(file, _first_line(spark, file), ",;\t|") for file in files}
        schemas = {file: dict.fromkeys(names, "string") for file, (_, names) in heads.items()}
    else:
        schemas = _schemas(reader.parquet if format == "parquet" else reader.json, files)
    names = list(dict.fromkeys(name for schema in schemas.values() for name in schema))
    reading = choose_columns(names, reading, learned=learned, say=say)
    wanted = list(dict.fromkeys(name for _, name in reading.wanted))
    numbers = number_columns(reading)
    if format == "json":  # JSON writes 1.0 as 1.
        for schema in schemas.values():
            schema |= {n: "double" for n in numbers if schema.get(n) == "bigint"}
    types = common_types(schemas, wanted)
    if heads:
        delimiter, first = _check_order(heads)
        types = dict.fromkeys(first, "string")
        # Rows are checked whole, so that one that lacks a column is seen.
        reader = reader.option("sep", delimiter).option("header", True).option("escape", '"')
        reader = reader.option("columnPruning", "false")
    ddl = ", ".join(f"{_quote(name)} {type}" for name, type in types.items())
    table = reader.schema(ddl).format(format).load(files).selectExpr(*map(_quote, wanted))
    return _typed(table, [n for n in numbers if types[n] == "string"]), reading


def _schemas(read: Callable[[str], Any], files: Sequence[str]) -> dict[str, dict[str, str]]:
    """The columns of each file and their types."""

    def types(file: str) -> dict[str, str]:
        try:
            return dict(read(file).dtypes)
        except Exception as error:
            raise ValueError(
                f"{file} cannot be read: {reason(error)} Repair it, or copy it again."
            ) from error

    with ThreadPoolExecutor(8) as pool:
        return dict(zip(files, pool.map(types, files), strict=True))


def reason(error: Exception) -> str:
    """What a person can use of a Spark error: what it says first, and its first cause."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip(": ")] or [""]
    begin = lines[1] if lines[0].startswith("An error occurred while") else lines[0]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    parts = dict.fromkeys(x if len(x) < 400 else x[:400] + " ..." for x in [begin, *causes[-1:]])
    text = "; ".join(parts)
    return text if text.endswith(".") else text + "."


def _first_line(spark: Any, file: str) -> str:
    """The first line of a text file, unpacked."""
    path, system = _place(spark, file)
    java = spark._jvm.java
    stream = system.open(path)
    try:
        if file.endswith(".gz"):
            stream = java.util.zip.GZIPInputStream(stream)
        lines = java.io.BufferedReader(java.io.InputStreamReader(stream, "UTF-8"))
        return (lines.readLine() or "").removeprefix("\ufeff") + "\n"
    finally:
        stream.close()


def _check_order(heads: Mapping[str, tuple[str, list[str]]]) -> tuple[str, list[str]]:
    """Spark reads CSV by place, so that all files must have the same first line."""
    file, head = next(iter(heads.items()))
    for other, found in heads.items():
        if found != head:
            raise ValueError(
                f"CSV files must have the same columns in the same order; {file} begins with "
                f"{head[0].join(head[1])!r}, {other} with {found[0].join(found[1])!r}. "
                "Encode them apart, or write them alike."
            )
    return head


def _typed(table: Any, numbers: Sequence[str]) -> Any:
    """The table with text turned into numbers in some columns; other words are refused."""
    none = ", ".join(f"'{word}'" for word in NO_NUMBER)
    for name in numbers:
        text, number = _quote(name), f"try_cast({_quote(name)} AS double)"
        wrong = f"{text} IS NOT NULL AND {number} IS NULL AND lower(trim({text})) NOT IN ({none})"
        count, value = table.selectExpr(
            f"count_if({wrong})", f"min(CASE WHEN {wrong} THEN {text} END)"
        ).head()
        if count:
            raise ValueError(
                f"column {name!r} must hold numbers; {counted(count, 'row')} "
                f"do{'es' * (count == 1)} not, for example {value!r}. "
                "Map its words to numbers first, or name another column."
            )
        kept = [number + f" AS {text}" if n == name else _quote(n) for n in table.columns]
        table = table.selectExpr(*kept)
    return table


def without_dots(table: Any, reading: Reading) -> tuple[Any, Reading]:
    """Spark takes a dot in a name for a field of a column, so here names have none."""

    def plain(spec: Any) -> Any:
        if isinstance(spec, list):
            return [plain(name) for name in cast("list[Any]", spec)]
        return spec.replace(".", "_") if isinstance(spec, str) else spec

    named = [f"{_quote(name)} AS {_quote(plain(name))}" for name in table.columns]
    columns = {role: plain(spec) for role, spec in reading.columns.items()}
    return table.selectExpr(*named), replace(reading, **columns)


def write(
    spark: Any, table: Any, target: str, format: str, describe: Callable[[], Metadata]
) -> Metadata:
    """Write all of a table, or nothing, with how it was made, which is asked at the end."""
    sql: Any = import_module("pyspark.sql")
    path, system = _place(spark, target)
    new = f"{target.rstrip('/')}.{uuid.uuid4().hex[:8]}.unfinished"
    beside, _ = _place(spark, new)
    seen, one = sql.Observation(), sql.functions.lit(1)
    try:
        rows = table.observe(seen, sql.functions.count(one).alias("written"))
        rows.write.format(format).option("header", True).save(new)
        about = describe() | {"written": seen.get["written"]}
        with closing(system.create(_place(spark, f"{new}/{ABOUT}")[0])) as file:
            file.write(bytearray(json.dumps(about, indent=1, default=str).encode()))
        # What Hadoop renames to a folder that is there goes into it.
        if system.exists(path) or not system.rename(beside, path):
            raise FileExistsError(
                f"{target!r} could not be written: somebody made it meanwhile, or the place takes "
                "no files. Name another."
            )
        return about
    finally:
        with suppress(Exception):
            system.delete(beside, True)


def _quote(name: str) -> str:
    """An identifier in Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"
