"""Spark: a real cluster of processes on this machine, in classic and Connect sessions."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from crowd_files import Roles, assert_same_table, skilled_table
from engines import (
    LABELS,
    PRIORS,
    SKILLS,
    SOFT,
    Columns,
    crowd_table,
    in_order,
    learned,
    learned_softly,
)
from flat import encode_file, encode_on_spark
from running import Sle
from strategies import assert_close

from slencodings import from_table, fuse_table
from slencodings.tables import fuse_evidence
from slencodings.trust import Ridge, crowd_to_json, learn_crowd, sample_items

pyspark = pytest.importorskip("pyspark", reason="pip install 'slencodings[spark]'")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    # JAX, which other tests import, warns whoever starts a process such as a JVM.
    pytest.mark.filterwarnings(r"ignore:os.fork\(\) was called:RuntimeWarning"),
]

HOME = Path(pyspark.__file__).parent
HERE = "127.0.0.1"
# The tests are over before the second compiler would pay off, and thousands of classes are loaded
# by each process for a few seconds: that these are sound need not be proved every time.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK += " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
QUICK += " -XX:ReservedCodeCacheSize=240m"
NAMED: Roles = {"item": "item", "label": "said"}
NUMBERS: Roles = {"uncertainty": "doubt", "reliability": "skill"}


# Seconds between two questions whether processes have begun, which are slowed down by each.
BEGINNING = 0.2


# Below those that the system gives to whoever asks for any, so that none is gone when it is used.
PORTS = iter(range(10_000 + 64 * (os.getpid() % 300), 32_000))


def free_port() -> int:
    for port in PORTS:
        with socket.socket() as s, suppress(OSError):
            s.bind((HERE, port))
            return port
    raise OSError("no port is free")


class Cluster:
    """A standalone master and its workers, each a process group of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.page, port = folder, free_port(), free_port()
        self.url = f"spark://{HERE}:{port}"
        self.processes: list[subprocess.Popen[bytes]] = []
        page = ["--port", str(port), "--webui-port", str(self.page)]
        self.start("master.Master", "--host", HERE, *page)
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        place = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": HERE}
        place |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK}
        with (self.folder / f"{len(self.processes)}-{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{name}", *options],
                env=os.environ | place,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def start_worker(self) -> subprocess.Popen[bytes]:
        work = str(self.folder / f"work{len(self.processes)}")
        size = ["--cores", "1", "--memory", "1g", "--work-dir", work]
        return self.start("worker.Worker", self.url, "--host", HERE, "--webui-port", "0", *size)

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """As if the machine were gone: the worker and what it runs."""
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        self.workers.remove(worker)

    def complete(self, count: int) -> None:
        """At least so many workers, and the master knows."""
        self.workers += [self.start_worker() for _ in range(count - len(self.workers))]
        until(lambda: self.alive() == len(self.workers), pause=BEGINNING)

    def alive(self) -> int:
        with (
            suppress(OSError, ValueError),  # it begins with an empty page
            urllib.request.urlopen(f"http://{HERE}:{self.page}/json/", timeout=5) as page,
        ):
            return sum(worker["state"] == "ALIVE" for worker in json.load(page)["workers"])
        return 0

    def stop(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until(true: Callable[[], Any], seconds: float = 120, pause: float = 0.02) -> None:
    """Wait for it; the time is a bound for a broken test, not part of it."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came about"
        time.sleep(pause)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.complete(1)
        yield cluster
    finally:
        cluster.stop()


# For a few rows, planning and compiling are all the time that Spark takes; see `as_delivered`.
FOR_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="module")
def sessions(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """A classic session, and one of Spark Connect with a server in the same JVM."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    port = free_port()
    os.environ["SPARK_LOCAL_IP"] = HERE
    settings = {
        "spark.ui.enabled": False,
        "spark.driver.host": HERE,
        "spark.driver.bindAddress": HERE,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": 2,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": HERE,
        "spark.connect.grpc.binding.port": port,
        # Where in Python an expression was made is told to Java in ten messages.
        "spark.python.sql.dataFrameDebugging.enabled": False,
        **FOR_FEW_ROWS,
    }
    classic = SparkSession.builder.master(cluster.url).config(map=settings).getOrCreate()
    connect = ConnectSession.builder.remote(f"sc://{HERE}:{port}").getOrCreate()
    yield {"classic": classic, "connect": connect}
    # Where the server is gone already, it would be asked for minutes.
    connect.client.set_retry_policies([])
    with suppress(Exception):
        connect.stop()
    classic.stop()
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.kill()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture
def spark(cluster: Cluster, sessions: dict[str, Any]) -> Any:
    cluster.complete(1)  # Whoever comes after a test that lost all of them needs one.
    return sessions["classic"]


AS_DELIVERED = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


@contextmanager
def settings(spark: Any, changed: dict[str, Any]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():  # Unset, they would be Spark's own, 200 partitions.
        spark.conf.set(name, value)


@pytest.fixture
def one_partition(spark: Any) -> Iterator[None]:
    """Sums of a stream are files of each partition, written anew by each batch."""
    with settings(spark, {"spark.sql.shuffle.partitions": 1}):
        yield


@pytest.fixture
def as_delivered(spark: Any) -> Iterator[None]:
    """Spark compiles plans and changes them at work, as it does where nobody forbids it."""
    with settings(spark, AS_DELIVERED):
        yield


class Engine(NamedTuple):
    """Makes Spark tables; the same crowd is made once."""

    session: Any
    crowd: Any

    def __call__(self, columns: Columns) -> Any:
        return self.session.createDataFrame(pa.table(columns))


@pytest.fixture(scope="module", params=["classic", "connect"])
def engine(request: pytest.FixtureRequest, sessions: dict[str, Any]) -> Engine:
    session = sessions[request.param]
    return Engine(session, session.createDataFrame(pa.table(crowd_table())))


def rows_of(table: Any) -> Columns:
    """A table of Spark or Polars as columns, by item and label."""
    if isinstance(table, pl.LazyFrame):
        columns = table.collect().to_dict(as_series=False)
    else:
        rows = table.collect()
        columns = {name: [row[i] for row in rows] for i, name in enumerate(table.columns)}
    return in_order(columns, *[n for n in list(columns)[:2] if n in (next(iter(columns)), "label")])


def assert_fused_alike(table: Any, reference: Any) -> None:
    assert_same_table(rows_of(table), rows_of(reference))


LEARNED = NAMED | {"annotator": "who", "confidence": "sure", "crowd": learned}
# Where they are not the point, labels are not looked for: that is one more job.
KNOWN = NAMED | {"labels": LABELS}
CASES: dict[str, dict[str, Any]] = {
    "certain": NAMED | NUMBERS | {"smoothing": 0.0},
    "certain, long": NAMED | NUMBERS | {"smoothing": 0.0, "form": "long"},
    "smooth, soft, long": NUMBERS | {"item": "item", "label": SOFT, "form": "long"},
    "average": KNOWN | NUMBERS | {"operator": "average", "smoothing": 0.0},
    "average, soft, long": NUMBERS
    | {"item": "item", "label": SOFT, "operator": "average", "form": "long"},
    "weighted, soft": NUMBERS
    | {"item": "item", "label": SOFT, "operator": "weighted", "smoothing": 0.0},
    "weighted, long": KNOWN | NUMBERS | {"operator": "weighted", "form": "long"},
    "constraint": KNOWN | NUMBERS | {"operator": "constraint"},
    "constraint, long": KNOWN | NUMBERS | {"operator": "constraint", "form": "long"},
    "evidence": NAMED | NUMBERS | {"form": "evidence", "prior_weight": 3.0},
    "lists": {"item": "item", "label": "p", "labels": LABELS},
    "lists, long": {"item": "item", "label": "p", "form": "long"},
    "base rates by row": KNOWN | {"base_rate": PRIORS},
    "base rates in lists": KNOWN | {"base_rate": "a", "smoothing": 0.0},
    "base rates, long": KNOWN | NUMBERS | {"base_rate": [0.2, 0.5, 0.3], "form": "long"},
    "all values": KNOWN
    | NUMBERS
    | {"values": ["alpha", "evidence", "base_rate", "uncertainty"], "smoothing": 0.0},
    "mappings": KNOWN | {"annotator": "who", "confidence": SKILLS, "reliability": SKILLS},
    "a scale": KNOWN | {"confidence": "sure", "confidence_scale": (5, 1), "reliability": 0.7},
    "missing, dropped": KNOWN
    | {"annotator": "who", "reliability": {"ann": 0.9, "bob": 0.2}, "missing": "drop"},
    "missing, trusted": KNOWN
    | {"annotator": "who", "reliability": {"ann": 0.9}, "missing": "trust"},
    "asked again, certain": NAMED
    | NUMBERS
    | {"annotator": "who", "duplicates": "average", "smoothing": 0.0},
    "asked again, long": KNOWN
    | NUMBERS
    | {"annotator": "who", "duplicates": "average", "form": "long"},
    "crowd, asked again, truth": LEARNED | {"reading": "truth", "duplicates": "average"},
    "crowd": LEARNED,
    "crowd, long": LEARNED | {"form": "long"},
    "crowd, truth": LEARNED | {"reading": "truth"},
    "crowd, truth, soft": LEARNED | {"label": SOFT, "reading": "truth", "crowd": learned_softly},
    "crowd, evidence": LEARNED | {"form": "evidence"},
}


# Connect sends the same plans to the same engine, so that one of each kind is enough for classic.
CLASSIC = ["certain", "average, soft, long", "constraint", "evidence", "lists", "crowd, truth"]
CLASSIC += ["asked again, certain"]


@pytest.mark.parametrize(
    ("engine", "case"),
    [*(("classic", case) for case in CLASSIC), *(("connect", case) for case in CASES)],
    indirect=["engine"],
)
def test_spark_fuses_as_other_engines_do(engine: Engine, case: str) -> None:
    how = {k: v() if k == "crowd" else v for k, v in CASES[case].items()}
    table = fuse_table(engine.crowd, **how)
    assert type(table) is type(engine.crowd)
    assert_fused_alike(table, fuse_table(pl.LazyFrame(crowd_table()), **how))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            {"confidence": "sure"},
            r"must lie in \[0, 1\]; .* of 48 rows do not .* for example [2-5]",
        ),
        ({"label": "sad"}, "no column 'sad' for `label`.* label='said'"),
        ({"labels": ["no", "yes"]}, "16 of 48 rows do not, for example 'maybe', item 'i"),
        (
            {"annotator": "who", "reliability": {"ann": 1.0}},
            "37 of 48 rows are by one that it does not",
        ),
        ({"annotator": "who", "duplicates": "error"}, "20 rows repeat an earlier pair, such as"),
        ({"annotator": "who", "duplicates": "first"}, "need rows in an order, which pyspark"),
    ],
)
def test_bad_values_are_counted_and_shown(engine: Engine, how: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fuse_table(engine.crowd, **(NAMED | how))


def test_a_sample_to_learn_from_is_the_same_on_spark(engine: Engine) -> None:
    columns = {name: crowd_table()[name] for name in ("item", "who", "said")}
    said: Roles = {"item": "item", "annotator": "who"}
    how = {"share": 0.5, "per_annotator": 1}
    expected = from_table(sample_items(pl.DataFrame(columns), **said, **how), **said, label="said")
    found = from_table(sample_items(engine.crowd, **said, **how), **said, label="said")
    assert 0 < len(expected.items) < len(set(columns["item"]))
    for name in ("items", "annotators", "labels"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    rows = [sorted(zip(a.item, a.annotator, a.y, strict=True)) for a in (found, expected)]
    assert rows[0] == rows[1]


def test_names_that_spark_misreads_are_refused(engine: Engine) -> None:
    dotted = engine.crowd.withColumnRenamed("said", "answer.label")
    with pytest.raises(
        ValueError, match=r"a dot .*\.withColumnRenamed\('answer.label', 'answer_lab"
    ):
        fuse_table(dotted, item="item", label="answer.label")
    alike = engine.crowd.withColumnRenamed("who", "ITEM")
    with pytest.raises(ValueError, match=r"differ by more than case.*'item' and 'ITEM'"):
        fuse_table(alike, **NAMED)


def many(rows: int, items: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "item": rng.integers(0, items, rows),
            "annotator": rng.integers(0, 500, rows),
            "label": np.asarray(["cat", "dog", "eel"])[rng.integers(0, 3, rows)],
            "confidence": rng.random(rows),
            "reliability": rng.random(rows),
        }
    )


ROLES: Roles = {
    "item": "item",
    "label": "label",
    "confidence": "confidence",
    "reliability": "reliability",
}


def write_parts(rows: pa.Table, folder: Path, parts: int) -> str:
    folder.mkdir()
    each = -(-len(rows) // parts)
    for i in range(parts):
        pq.write_table(rows.slice(i * each, each), folder / f"part{i}.parquet")
    return str(folder / "*.parquet")


SMALL = {
    "item": ["a", "a", "b"],
    "annotator": ["x", "y", "x"],
    "label": ["yes", "no", "no"],
    "confidence": [0.9, 0.5, 0.8],
}


def write(path: Path, columns: Columns = SMALL) -> str:
    path.parent.mkdir(exist_ok=True)
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return str(path)


def encode(source: Any, target: Any, **how: Any) -> dict[str, Any]:
    how = {"weigh": "stated"} | how
    return encode_on_spark(source if isinstance(source, list) else str(source), str(target), **how)


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_files_of_every_format_give_the_same_opinions(kind: str, tmp_path: Path) -> None:
    for part, rows in (("a[1]", slice(2)), ("b", slice(2, 3))):  # a name that is no pattern
        write(tmp_path / f"in/{part}.{kind}", {k: v[rows] for k, v in SMALL.items()})
    target = tmp_path / "out.csv"
    about = encode(tmp_path / "in", target, smoothing=0.1)
    found = pl.read_csv(target / "*.csv").sort("item").to_dict(as_series=False)
    expected = fuse_table(SMALL, item="item", label="label", confidence="confidence", smoothing=0.1)
    assert about["columns"] == {name: name for name in SMALL}
    assert list(found) == list(expected)
    assert_close(np.asarray(found["belief_yes"]), expected["belief_yes"])


@pytest.mark.usefixtures("sessions")
def test_names_with_dots_words_for_labels_and_stored_crowds_are_read(tmp_path: Path) -> None:
    mturk = {"Input.id": [1, 1, 2], "WorkerId": ["x", "y", "x"], "Answer.q": [1, 2, 2]}
    source = write(tmp_path / "in.parquet", mturk)
    columns = {"item": "Input.id", "label": "Answer.q"}
    about = encode(source, tmp_path / "long.csv", columns=columns, labels=["2", "1"], form="long")
    assert about["labels"] == [2, 1]
    assert pl.read_csv(tmp_path / "long.csv/*.csv").columns[:2] == ["Input.id", "label"]
    kept = tmp_path / "crowd.json"
    said: Roles = {"item": "item", "annotator": "annotator", "label": "label"}
    annotations = from_table(SMALL, **said)
    kept.write_text(crowd_to_json(learn_crowd(annotations, ridge=Ridge(0.1, 0.1, 0.1, 0.1))))
    source = write(tmp_path / "other.parquet", SMALL | {"reliability": [0.1, 0.2, 0.3]})
    about = encode(source, tmp_path / "out.parquet", weigh=str(kept), columns={"confidence": None})
    assert "reliability" not in about["columns"]
    assert about["weigh"] == str(kept)
    with pytest.raises(ValueError, match="of the type of column 'Answer_q', Int64; yes,no came"):
        encode(tmp_path / "in.parquet", tmp_path / "x.csv", columns=columns, labels=["yes", "no"])


@pytest.mark.usefixtures("sessions")
def test_a_crowd_is_learned_on_the_cluster_as_on_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parts(pa.table(skilled_table()), tmp_path / "in", 2)
    said: list[str] = []
    for reading in ("votes", "truth"):
        target, same = tmp_path / f"{reading}.parquet", str(tmp_path / f"{reading}.csv")
        how = {"weigh": "learned", "reading": reading, "say": lambda *x: said.append(" ".join(x))}
        about = encode(tmp_path / "in", target, **how)
        expected = encode_file(str(tmp_path / "in"), same, weigh="learned", reading=reading)
        assert about["crowd"] == expected["crowd"]
        found = pl.read_parquet(target / "*.parquet").sort("item")
        other = pl.read_csv(same).sort("item")
        assert found.columns == other.columns
        for name in found.columns[1:]:
            assert_close(found[name].to_numpy(), other[name].to_numpy())
    assert any(line.endswith("probability that it is true, learned weights") for line in said)
    # Of many annotations a sample is taken, of whole items.
    for name, least in (("MOST_TO_LEARN_FROM", 150), ("SAMPLED", 80)):
        monkeypatch.setattr(f"slencodings.trust.learn_from_table.{name}", least)
    about = encode(tmp_path / "in", tmp_path / "some.parquet", **how)
    assert any("a sample of whole items is learned from" in line for line in said)
    few, all_of_them = (sum(x["crowd"]["count"]) for x in (about, expected))
    assert 40 <= few < all_of_them


DRIFTS: dict[str, tuple[str, Columns, str]] = {
    "a column is missing": (
        "parquet",
        {k: v for k, v in SMALL.items() if k != "confidence"},
        r"'confidence' must be alike in all 3 files; it is double in 2, .*; missing in 1, such as "
        r"\S+/z.parquet",
    ),
    "a type differs": (
        "parquet",
        SMALL | {"item": [1, 2, 3]},
        r"'item' must be alike .* string in 2, .*; bigint in 1, such as \S+/z.parquet",
    ),
    "a type of json differs": (
        "jsonl",
        SMALL | {"label": [1, 2, 3]},
        r"'label' must be alike .*; bigint in 1, such as \S+/z.jsonl",
    ),
    "another order": (
        "csv",
        dict(reversed(SMALL.items())),
        r"the same order; \S+/0.csv begins with 'item,annot.*z.csv with 'confidence,label",
    ),
    "no number": (
        "csv",
        SMALL | {"confidence": ["0.5", "high", "n/a"]},
        "column 'confidence' must hold numbers; 1 row does not, for example 'high'",
    ),
}


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("drift", DRIFTS)
def test_a_file_that_differs_is_named_and_nothing_is_written(drift: str, tmp_path: Path) -> None:
    kind, columns, words = DRIFTS[drift]
    for name in ("0", "1"):
        write(tmp_path / f"in/{name}.{kind}")
    write(tmp_path / f"in/z.{kind}", columns)
    with pytest.raises(ValueError, match=words):
        encode(tmp_path / f"in/*.{kind}", tmp_path / "out.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("z.parquet", b"PAR1 and then something else PAR1"),
        ("z.csv", b"item,annotator,label,confidence\na,x\n"),
        ("z.jsonl", b'{"item": "a", "annotator": "x", "label": "yes", "confidence": 1}\n{"item\n'),
    ],
)
def test_a_broken_file_is_an_error_and_nothing_is_written(
    name: str, broken: bytes, tmp_path: Path
) -> None:
    write(tmp_path / f"in/a{Path(name).suffix}")
    (tmp_path / "in" / name).write_bytes(broken)
    words = r"z\.\w+ cannot be read: .*Repair|Spark could not finish: .*z\.csv.* Nothing was writ"
    with pytest.raises((ValueError, OSError), match=words):
        encode(tmp_path / "in", tmp_path / "out.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.usefixtures("sessions")
def test_sources_and_targets_are_checked_before_any_work(tmp_path: Path) -> None:
    source, target = write(tmp_path / "in/a.csv"), tmp_path / "out.parquet"
    other = write(tmp_path / "in/b.jsonl")
    (tmp_path / "empty").mkdir()
    (tmp_path / "in/c.txt").write_text("?")
    for sources, how, words in (
        (str(tmp_path / "none*.csv"), {}, "there is no file"),
        (str(tmp_path / "empty"), {}, "there is no data in"),
        ([source, other], {}, "all files must be of one format"),
        (str(tmp_path / "in/c.txt"), {}, "names of files say their format"),
        (source, {"format": "json"}, "by the line, not one array"),
        (source, {"confidence_scale": "calibrated"}, "`calibrated` came. Name the ends, conf"),
        (source, {"master": "spark://other:7077"}, "runs in this process; master='spark://oth"),
    ):
        with pytest.raises((ValueError, OSError), match=words):
            encode(sources, target, **how)
    with pytest.raises(ValueError, match=r"the output chooses its format: \.parquet or \.csv"):
        encode(source, tmp_path / "out.xlsx")
    target.mkdir()
    with pytest.raises(FileExistsError, match="must not be there yet"):
        encode(source, target)


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("labels", [["yes", "no"], None])
def test_bad_rows_are_found_while_they_are_fused(labels: Any, tmp_path: Path) -> None:
    bad = SMALL | {"confidence": [0.9, 7.0, 0.8]}
    source, words = write(tmp_path / "in.parquet", bad), "1 of 3 rows do not in column 'confidence'"
    with pytest.raises(ValueError, match=words):
        encode(source, tmp_path / "out.parquet", labels=labels)
    nobody = write(tmp_path / "nobody.parquet", SMALL | {"label": pa.nulls(3, pa.string())})
    with pytest.raises(
        ValueError, match=r"column 'label' is empty in all rows\. Name the possible"
    ):
        encode(nobody, tmp_path / "out.parquet")
    pq.write_table(pa.table(SMALL).slice(0, 0), tmp_path / "nothing.parquet")
    with pytest.raises(ValueError, match="the table has no rows"):
        encode(tmp_path / "nothing.parquet", tmp_path / "out.parquet", labels=["yes", "no"])
    assert not list(tmp_path.glob("out*"))


def finished_stages(spark: Any) -> dict[int, Any]:
    """What Spark says of all stages that came to their end."""
    context, gateway = spark._jsc.sc(), spark.sparkContext._gateway
    context.listenerBus().waitUntilEmpty()
    no_quantiles, any_task = (
        gateway.new_array(gateway.jvm.double, 0),
        gateway.jvm.java.util.ArrayList,
    )
    found = context.statusStore().stageList(None, False, False, no_quantiles, any_task())
    stages = [found.apply(i) for i in range(found.size())]
    return {stage.stageId(): stage for stage in stages if stage.status().toString() == "COMPLETE"}


@pytest.mark.usefixtures("as_delivered")
@pytest.mark.parametrize(("weigh", "passes"), [("stated", 2), ("learned", 4), ("stored", 2)])
def test_rows_are_sent_once_and_checked_on_their_way(
    spark: Any, weigh: str, passes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = many(3000, 1200)
    items = len(rows["item"].unique())  # more than annotators in each of two tasks
    source, kept = write_parts(rows, tmp_path / "in", 2), tmp_path / "crowd.json"
    how: dict[str, Any] = {"labels": ["cat", "dog", "eel"], "weigh": weigh}
    if weigh != "stated":
        how = {"weigh": weigh, "reading": "truth"}
    if weigh == "stored":
        said: Roles = {name: name for name in ("item", "annotator", "label", "confidence")}
        kept.write_text(crowd_to_json(learn_crowd(from_table(rows, **said))))
        how["weigh"] = str(kept)
    if weigh != "learned":  # To learn, what was collected is checked.
        for place in ("tables.checks", "files.spark"):
            monkeypatch.delattr(f"slencodings.{place}.refuse_problems")
    before = finished_stages(spark)
    about = encode(source, tmp_path / "out.parquet", **how)
    new = [stage for i, stage in finished_stages(spark).items() if i not in before]
    assert about["rows"] == len(rows)
    assert about["written"] == items
    # Beside them a few sums of each task are sent.
    assert sum(stage.shuffleWriteRecords() >= items for stage in new) == 1
    # To fuse, and to count them, which Parquet knows; to learn, those of annotators and themselves.
    assert sum(stage.inputRecords() == len(rows) for stage in new) == passes


@pytest.mark.usefixtures("sessions")
def test_a_folder_that_somebody_makes_meanwhile_is_not_touched(tmp_path: Path) -> None:
    source, target = write(tmp_path / "in.parquet"), tmp_path / "out.parquet"
    with pytest.raises(FileExistsError, match="somebody made it meanwhile"):
        encode(source, target, say=lambda what, text: target.mkdir(exist_ok=True))
    assert list(target.iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_without_java_pyspark_or_a_master_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    source, target, nobody = write(tmp_path / "in.csv"), tmp_path / "out.csv", free_port()
    for master, words in (
        (f"spark://{HERE}:{nobody}", rf"no Spark master answers at spark://{HERE}:{nobody}: "),
        ("spark://nowhere", "no Spark master answers at spark://nowhere: "),
        (f"sc://{HERE}", "Spark Connect cannot rename what it wrote"),
    ):
        with pytest.raises((OSError, ValueError), match=words):
            encode(source, target, master=master)

    def fail(_: Any) -> Any:
        raise RuntimeError("Could not parse Master URL: 'banana'")

    with monkeypatch.context() as patch:
        patch.setattr(SparkSession.Builder, "getOrCreate", fail)
        with pytest.raises(ConnectionError, match="not start with master banana: Could not parse"):
            encode(source, target, master="banana")
    with monkeypatch.context() as patch:
        patch.setenv("JAVA_HOME", str(tmp_path))
        with pytest.raises(FileNotFoundError, match="Java 17 or newer; there is no `java` in JAVA"):
            encode(source, target)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'slencodings[spark]'")):
        encode(source, target)
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


def run_entry(*command: str) -> subprocess.CompletedProcess[str]:
    place = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": HERE, "PYSPARK_PYTHON": sys.executable}
    place["SPARK_SUBMIT_OPTS"] = QUICK
    return subprocess.run(
        command, env=os.environ | place, capture_output=True, text=True, check=False
    )


def test_spark_submit_takes_the_options_of_the_command_line(tmp_path: Path) -> None:
    """In a process of its own, which starts Spark with the master that it is given."""
    from slencodings.cli import __file__ as cli

    source = write(tmp_path / "in.parquet", SMALL | {"confidence": [5, 3, 1]})
    run = run_entry(
        *(str(HOME / "bin/spark-submit"), "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.sql.shuffle.partitions=1"),
        *(word for name, value in FOR_FEW_ROWS.items() for word in ("--conf", f"{name}={value}")),
        *(str(Path(cli).with_name("__main__.py")), "encode", "--engine", "spark", source),
        *("--master", "local[1]", "-o", str(tmp_path / "out.parquet")),
        *("--weigh", "stated", "--labels", "yes,no"),
        *("--confidence-scale", "1-5", "--smoothing", "0", "--values", "belief,uncertainty"),
    )
    assert run.returncode == 0, run.stderr
    assert "wrote    " in run.stdout  # where spark-submit sends all that Python says
    found = pl.read_parquet(tmp_path / "out.parquet/*.parquet").sort("item")
    assert found["uncertainty"].to_list() == [0.0, 1.0]


def test_sle_encode_hands_over_to_spark(
    cluster: Cluster, spark: Any, sle: Sle, tmp_path: Path
) -> None:
    # Java does not know where Python has gone to.
    source, target = write(tmp_path / "in.csv"), str(tmp_path / "out.parquet")
    on_spark = ("--engine", "spark", "--master", cluster.url)
    run = sle("encode", source, "-o", target, *on_spark, "--smoothing", 0)
    assert run.code == 0, run.err
    assert not spark.sparkContext._jsc.sc().isStopped()  # a session that ran before goes on
    found = pl.read_parquet(f"{target}/*.parquet").sort("item")
    again = sle("encode", source, "-o", "out.csv", "--smoothing", 0)
    assert again.code == 0, again.err
    assert_close(found["uncertainty"], pl.read_csv("out.csv").sort("item")["uncertainty"])


def test_the_entry_says_errors_in_one_line_and_fails(tmp_path: Path) -> None:
    master = f"spark://{HERE}:{free_port()}"
    module = (sys.executable, "-m", "slencodings.cli", "encode", "--engine", "spark")
    run = run_entry(*module, "in.csv", "-o", str(tmp_path / "out.csv"), "--master", master)
    assert run.returncode == 1
    assert re.fullmatch(rf"error: no Spark master answers at {master}: .*\n", run.stderr)
    run = run_entry(*module, "in.csv", "-o", str(tmp_path / "o.csv"), "--master", master, "-v")
    assert "Traceback" in run.stderr


def test_a_stream_in_small_batches_adds_up_in_a_store(spark: Any, tmp_path: Path) -> None:
    """Also where files come late, and where a batch that was written is lost and comes again."""
    from pyspark.errors import StreamingQueryException

    parts = [{k: v[i : i + 16] for k, v in crowd_table().items()} for i in (0, 16, 32)]
    store, tried = str(tmp_path / "store"), list[int]()

    # The same as in docs/engines.md.
    def add(batch: Any, number: int) -> None:
        evidence = fuse_table(batch, **NAMED, **NUMBERS, labels=LABELS, form="evidence")
        # A batch that is tried again replaces its own evidence, so none counts twice.
        evidence.write.mode("overwrite").parquet(f"{store}/batch={number}")
        tried.append(number)
        if tried == [0, 1]:
            raise RuntimeError("lost before Spark knows that it is written")

    def run() -> None:
        stream = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema)
        stream = stream.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        query = stream.writeStream.foreachBatch(add).trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    write(tmp_path / "in/1.parquet", parts[1])
    run()
    for late in (2, 0):
        write(tmp_path / f"in/{late}.parquet", parts[late])
    with pytest.raises(StreamingQueryException, match="lost before Spark knows"):
        run()
    run()
    assert tried == [0, 1, 1, 2]
    assert len(list((tmp_path / "store").glob("batch=*"))) == 3
    found = fuse_evidence(spark.read.parquet(store), labels=LABELS)
    assert_fused_alike(found, fuse_table(pl.LazyFrame(crowd_table()), **NAMED, **NUMBERS))


@pytest.mark.usefixtures("one_partition")
def test_a_stream_keeps_its_own_sums(spark: Any, tmp_path: Path) -> None:
    write_parts(rows := many(2000, 50), tmp_path / "in", 2)
    stream = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema)
    stream = stream.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    # The same as in docs/engines.md: Eqs. 5, 4 and 11, and W = 2.
    belief = "(0.99 * reliability * confidence)"
    state = stream.selectExpr("item", "label", f"2 * {belief} / (1 - {belief}) AS evidence")
    state = (
        state.groupBy("item", "label").agg({"evidence": "sum"}).toDF("item", "label", "evidence")
    )
    query = state.writeStream.outputMode("complete").format("memory").queryName("sums")
    query.trigger(availableNow=True).start().awaitTermination()
    sums = spark.table("sums").selectExpr("*", "0D AS dogmatic")
    assert_fused_alike(fuse_evidence(sums), fuse_table(pl.LazyFrame(rows), **ROLES))


# With a second worker; the last tests, as they lose them, and processes that begin anew are slow.


@pytest.fixture
def two_workers(cluster: Cluster, spark: Any) -> None:
    cluster.complete(2)
    known = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
    until(lambda: known().size() == 1 + 2, pause=BEGINNING)


@pytest.mark.usefixtures("two_workers")
def test_no_result_depends_on_partitions_or_the_order_of_rows(spark: Any) -> None:
    from pyspark.sql.functions import rand

    rows = many(4_000, 300)
    table = spark.createDataFrame(rows)
    expected = fuse_table(pl.LazyFrame(rows), **ROLES)
    for dealt in (
        table.repartition(1),
        table.repartition(3, "label", "annotator"),
        table.orderBy(rand(1)),
    ):
        assert_fused_alike(fuse_table(dealt, **ROLES), expected)
    with settings(spark, AS_DELIVERED):  # It puts small partitions together.
        assert_fused_alike(fuse_table(table.repartition(7), **ROLES), expected)


def when_half_done(spark: Any, act: Callable[[], object]) -> None:
    """Act when some tasks of a stage of several are done and others are not."""
    status = spark.sparkContext.statusTracker()

    def half() -> bool:
        stages = [status.getStageInfo(i) for i in status.getActiveStageIds()]
        return any(s and 0 < s.numCompletedTasks < s.numTasks - 1 for s in stages)

    until(half)
    act()


def start_encoding(pool: ThreadPoolExecutor, source: str, target: Path, **how: Any) -> Any:
    """Encode in a thread; come back when fusing, which is all there is to do, may begin."""
    notes: list[str] = []
    how = {"labels": ["cat", "dog", "eel"], "say": lambda what, text: notes.append(what)} | how
    job = pool.submit(encode, source, target, **how)
    until(lambda: "columns" in notes or job.done())
    return job


@pytest.fixture
def one_task_each(spark: Any) -> Iterator[None]:
    """Spark puts small files together, unless they are dear to open."""
    small = {"spark.sql.files.openCostInBytes": 1 << 27, "spark.sql.shuffle.partitions": 8}
    with settings(spark, small):
        yield


@pytest.mark.usefixtures("as_delivered", "one_task_each", "two_workers")
def test_the_work_survives_the_loss_of_a_worker(
    cluster: Cluster, spark: Any, tmp_path: Path
) -> None:
    rows = many(200_000, 50_000)
    source, target = write_parts(rows, tmp_path / "crowd", 16), tmp_path / "targets.parquet"
    with ThreadPoolExecutor(1) as pool:
        job = start_encoding(pool, source, target)
        when_half_done(spark, lambda: cluster.kill(cluster.workers[0]))
        assert not job.done()
        about = job.result()
    expected = fuse_table(pl.from_arrow(rows), **ROLES)
    found = pl.read_parquet(target / "*.parquet").sort("item")
    assert found.columns == expected.columns
    assert about["written"] == len(expected)
    for name in expected.columns:
        assert_close(found[name].to_numpy(), expected[name].to_numpy())
    assert json.loads((target / "_slencodings.json").read_text())["rows"] == len(rows)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["crowd", "targets.parquet"]


@pytest.mark.usefixtures("as_delivered", "one_task_each")
def test_workers_lost_for_good_end_the_work_and_leave_nothing(
    cluster: Cluster, spark: Any, tmp_path: Path
) -> None:
    source = write_parts(many(200_000, 50_000), tmp_path / "crowd", 16)
    with ThreadPoolExecutor(1) as pool:
        job = start_encoding(pool, source, tmp_path / "targets.csv", patience=2)
        when_half_done(spark, lambda: [cluster.kill(w) for w in list(cluster.workers)])
        with pytest.raises(ConnectionError, match=r"no worker for 2 seconds .* Nothing was wri"):
            job.result()
    assert [p.name for p in tmp_path.iterdir()] == ["crowd"]
