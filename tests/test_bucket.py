"""Objects of a real S3 server, read and written: folders, patterns, failures, and kills."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from flat import encode_as_stated
from fsspec.registry import _registry
from test_sources import COLUMNS, ROWS, encode, write

from slencodings.files import bucket as bucket_room

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore"),
    # Looked for, not imported: every process of a run collects this file, and one runs it.
    pytest.mark.skipif(not find_spec("s3fs"), reason="pip install 'slencodings[s3]'"),
    pytest.mark.skipif(not find_spec("moto"), reason="pip install 'moto[s3]' flask flask-cors"),
]
KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us-east-1"}


class Server:
    """An S3 server that can be told to fail, or to wait, when some requests come."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self.app = DomainDispatcherApplication(create_backend_app)
        self.failures: dict[str, int] = {}
        self.waits, self.seen = "", []
        self.server = make_server("127.0.0.1", 0, self.answer, threaded=True)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, environ: dict[str, Any], start: Any) -> Any:
        what = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ['QUERY_STRING']}"
        self.seen.append(what)
        if self.waits and self.waits in what:
            time.sleep(60)
        for words, left in self.failures.items():
            if words in what and left:
                self.failures[words] -= 1
                start("503 Slow Down", [("Content-Type", "application/xml")])
                return [b"<Error><Code>SlowDown</Code><Message>slower</Message></Error>"]
        return self.app(environ, start)


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    yield server
    server.server.shutdown()


@pytest.fixture
def server(running: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    """An empty bucket `crowd`."""
    import boto3
    from s3fs import S3FileSystem

    monkeypatch.chdir(tmp_path)
    for name, value in (KEYS | {"AWS_ENDPOINT_URL": running.address}).items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="crowd")
    S3FileSystem.clear_instance_cache()
    running.failures, running.waits, running.seen = {}, "", []
    yield running
    running.failures, running.waits = {}, ""
    for one in client.list_multipart_uploads(Bucket="crowd").get("Uploads", []):
        client.abort_multipart_upload(Bucket="crowd", Key=one["Key"], UploadId=one["UploadId"])
    for key in list((inside := behind()).buckets["crowd"].keys):
        inside.delete_object("crowd", key)
    client.delete_bucket(Bucket="crowd")


def behind() -> Any:
    """What the server answers from: ten thousand requests to it would take half a minute."""
    from moto.s3.models import s3_backends

    partition, account = s3_backends.bucket_accounts["crowd"]
    return s3_backends[account][partition]


def put(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    import boto3

    path = write(folder / Path(name).name, rows)
    boto3.client("s3").put_object(Bucket="crowd", Key=name, Body=path.read_bytes())
    path.unlink()


def keys() -> list[str]:
    import boto3

    found = boto3.client("s3").list_objects_v2(Bucket="crowd").get("Contents", [])
    return [one["Key"] for one in found]


def unfinished() -> list[str]:
    import boto3

    found = boto3.client("s3").list_multipart_uploads(Bucket="crowd").get("Uploads", [])
    return [one["Key"] for one in found]


def test_folders_and_patterns_of_objects_are_one_table(server: Server, tmp_path: Path) -> None:
    whole, _ = encode(str(write(tmp_path / "whole.parquet", ROWS)))
    for n in range(6):
        put(tmp_path, f"in/day={n % 2}/{n}.parquet", ROWS[n * 10 : n * 10 + 10])
    put(tmp_path, "in/_tmp.parquet", ROWS)
    for source in ("s3://crowd/in", "s3://crowd/in/", "s3://crowd/in/day=*/*.parquet"):
        rows, about = encode(source)
        assert rows == whole
        assert about["files"] == 6
    with pytest.raises(FileNotFoundError, match="there is no file 's3://crowd/none'"):
        encode("s3://crowd/none")


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_an_object_is_written_as_the_file_would_be(
    server: Server, tmp_path: Path, format: str
) -> None:
    source = str(write(tmp_path / "in.csv", ROWS))
    encode_as_stated(source, f"out.{format}", columns=COLUMNS)
    encode_as_stated(source, f"s3://crowd/to/out.{format}", columns=COLUMNS)
    import boto3

    got = boto3.client("s3").get_object(Bucket="crowd", Key=f"to/out.{format}")["Body"].read()
    assert got == Path(f"out.{format}").read_bytes()
    beside = ["to/out.csv.meta.json"] if format == "csv" else []
    assert keys() == [f"to/out.{format}", *beside]
    assert unfinished() == []


def test_requests_that_fail_are_made_again(server: Server, tmp_path: Path) -> None:
    put(tmp_path, "in/a.parquet", ROWS)
    failures = {"GET /crowd/in/a.parquet": 2, "uploads": 1, "partNumber=1": 2, "list-type": 1}
    server.failures = dict(failures)
    encode_as_stated("s3://crowd/in/*.parquet", "s3://crowd/out.parquet", columns=COLUMNS)
    assert server.failures == dict.fromkeys(failures, 0)
    assert keys() == ["in/a.parquet", "out.parquet"]


def test_only_the_part_that_fails_is_sent_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import boto3

    monkeypatch.setattr(bucket_room, "PART", 5 * 2**20)  # S3 takes no smaller ones, but the last
    path, content = tmp_path / "out.parquet", os.urandom(12 * 2**20)
    path.write_bytes(content)
    server.failures = {"partNumber=2": 1}
    bucket_room.upload([path], "s3://crowd/to/out.parquet")
    sent = [what.partition("partNumber=")[2][:1] for what in server.seen if "partNumber" in what]
    assert sorted(sent) == ["1", "2", "2", "3"]
    assert keys() == ["to/out.parquet"]
    got = boto3.client("s3").get_object(Bucket="crowd", Key="to/out.parquet")["Body"].read()
    assert got == content
    assert unfinished() == []


def test_thousands_of_objects_are_listed_by_the_thousand(server: Server) -> None:
    names, store = [f"in/day={n % 7}/{n:05}.parquet" for n in range(2_999)], behind()
    for name in [*names, "in/_begun.parquet"]:
        store.put_object("crowd", name, b"")
    server.failures = {"continuation-token": 1}
    found = bucket_room.objects("s3://crowd/in", [".parquet"])
    assert found == sorted(f"s3://crowd/{name}" for name in names)
    assert server.failures == {"continuation-token": 0}  # one page was asked for again
    assert sum("list-type" in what for what in server.seen) == 3 + 1


def test_a_server_that_keeps_failing_leaves_what_was_there(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    source = str(write(tmp_path / "in.csv", ROWS))
    put(tmp_path, "out.parquet", ROWS[:3])
    server.failures = {"partNumber=1": 100}
    with pytest.raises(OSError, match=r"'s3://crowd/out.parquet' cannot be reached: .*untouched"):
        encode_as_stated(source, "s3://crowd/out.parquet", columns=COLUMNS)
    assert unfinished() == []
    import boto3

    boto3.client("s3").download_file("crowd", "out.parquet", "got.parquet")
    assert pq.read_table("got.parquet").num_rows == 3


def test_a_killed_run_leaves_no_object_and_the_next_takes_its_parts_back(
    server: Server, tmp_path: Path
) -> None:
    source = str(write(tmp_path / "in.csv", ROWS))
    words = [source, "-o", "s3://crowd/out.parquet", "--weigh", "stated", "--annotator", "who"]
    server.waits = "POST /crowd/out.parquet?uploadId"  # all parts are there, and not yet complete
    process = subprocess.Popen(
        [sys.executable, "-m", "slencodings.cli", "encode", *words], env=os.environ
    )
    end = time.monotonic() + 60
    while not any(server.waits in one for one in server.seen):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    server.waits = ""
    assert keys() == []
    assert unfinished() == ["out.parquet"]
    encode_as_stated(source, "s3://crowd/out.parquet", columns=COLUMNS)
    assert keys() == ["out.parquet"]
    assert unfinished() == []


def test_where_no_object_can_be_written_is_said_before_any_work(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(write(tmp_path / "in.csv", ROWS))
    put(tmp_path, "in.parquet", ROWS)
    for source_, target, words in (
        (source, "s3://other/out.parquet", "needs a bucket that is there; 'other' is not"),
        (source, "s3://crowd/out.txt", "the name of the output chooses its format"),
        (source, "s9://crowd/out.csv", "nothing here can reach s9://"),
        ("s3://crowd/in.parquet", "s3://crowd/in.parquet", "must not replace its own input"),
        ("s3://crowd/*.parquet", "s3://crowd/in.parquet", "must not replace its own input"),
    ):
        with pytest.raises((OSError, ValueError, ImportError), match=words):
            encode_as_stated(source_, target, columns=COLUMNS)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(_registry, "s3", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'slencodings\[s3\]'"):
        bucket_room.file_system("s3://crowd/out.csv")
