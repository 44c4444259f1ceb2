"""What only a process of its own can show: signals, full disks, pipes, a terminal, start-up."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

import slencodings

CSV = "item,annotator,label\na,ann,yes\na,bob,no\nb,ann,no\n"


def start(
    *args: str | Path, cwd: Path, under: tuple[str, ...] = (), **how: Any
) -> "subprocess.Popen[str]":
    command = [*under, sys.executable, "-m", "slencodings.cli", *map(str, args)]
    pipe = subprocess.PIPE
    how = {"stdout": pipe, "stderr": pipe, "text": True} | how
    # A scratch folder of its own shows what is left behind.
    (cwd / "scratch").mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(cwd / "scratch")}
    # A shell lets what it runs in the background ignore Ctrl-C, and so all that this runs.
    heard = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(command, cwd=cwd, env=environment, **how)
    finally:
        signal.signal(signal.SIGINT, heard)


def crowd_of(path: Path, items: int) -> Path:
    """A crowd in which every item is there once."""
    rows = f"SELECT range AS item, range % 7 AS annotator, range % 3 AS label FROM range({items})"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    return path


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crowd that takes a while."""
    return crowd_of(tmp_path_factory.mktemp("big") / "big.parquet", 2_000_000)


@pytest.fixture(scope="module")
def middling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crowd whose output is larger than pipes and small disks."""
    return crowd_of(tmp_path_factory.mktemp("middling") / "middling.parquet", 100_000)


def wait_for_new_file(folder: Path) -> None:
    """Until the output is being written, beside its name."""
    for _ in range(6000):
        if list(folder.glob(".out.csv.*")):
            return
        time.sleep(0.005)
    raise AssertionError("no output was begun")


@pytest.mark.parametrize(
    ("stop", "code", "message"),
    [
        (signal.SIGINT, 130, "stopped; no file was changed.\n"),
        (signal.SIGTERM, 143, ""),
    ],
)
@pytest.mark.parametrize("moment", ["while checking", "while writing"])
def test_a_stop_in_the_middle_changes_nothing_and_leaves_nothing(
    tmp_path: Path, big: Path, stop: int, code: int, message: str, moment: str
):
    (tmp_path / "out.csv").write_text("old")
    run = start("encode", big, "-o", "out.csv", "--weigh", "stated", cwd=tmp_path)
    assert run.stderr is not None
    assert run.stderr.readline().startswith("columns")
    if moment == "while writing":
        wait_for_new_file(tmp_path)
    run.send_signal(stop)
    out, err = run.communicate()
    assert (run.returncode, out) == (code, ""), err
    assert err.endswith(message)
    assert "Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.csv", "scratch"]
    assert (tmp_path / "out.csv").read_text() == "old"
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_kill_in_the_middle_leaves_the_old_output_byte_for_byte(tmp_path: Path, big: Path):
    (tmp_path / "out.csv").write_bytes(b"old \x00 bytes")
    (tmp_path / "out.csv.meta.json").write_text("{}")
    run = start("encode", big, "-o", "out.csv", "--weigh", "stated", cwd=tmp_path)
    wait_for_new_file(tmp_path)
    run.kill()
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    assert (tmp_path / "out.csv").read_bytes() == b"old \x00 bytes"
    assert (tmp_path / "out.csv.meta.json").read_text() == "{}"
    left = {p.name for p in tmp_path.iterdir()} - {"out.csv", "out.csv.meta.json", "scratch"}
    assert all(name.startswith(".out.csv.") for name in left), left


# No file may grow past 100 kB, as on a disk that is nearly full. Set by a shell, because a fork
# that runs Python code in between is not safe where another test has started JAX.
SMALL_FILES_ONLY = ("bash", "-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "bash")


@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.jsonl.gz"])
def test_a_full_disk_is_one_clear_message_and_the_old_output_stays(
    tmp_path: Path, middling: Path, target: str
):
    (tmp_path / target).write_text("old")
    words = ("encode", middling, "-o", target, "--weigh", "stated")
    run = start(*words, cwd=tmp_path, under=SMALL_FILES_ONLY)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 1
    assert re.search(r"error: \S+ could not be written: File too large. What was there", err), err
    assert "Free some space" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([target, "scratch"])
    assert (tmp_path / target).read_text() == "old"


def test_a_full_scratch_disk_names_the_variable_to_set(tmp_path: Path):
    rows = "".join(f"item-{i * 7919 % 100_003},{i % 3}\n" for i in range(50_000))
    (tmp_path / "crowd.csv").write_text("item,label\n" + rows)
    run = start("encode", "crowd.csv", "-o", "out.csv", cwd=tmp_path, under=SMALL_FILES_ONLY)
    _, err = run.communicate()
    assert run.returncode == 1
    assert re.search(r"scratch\S* could not be written: File too large.*set TMPDIR", err), err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["crowd.csv", "scratch"]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_codes_and_streams_are_those_of_the_shell(tmp_path: Path):
    (tmp_path / "crowd.csv").write_text(CSV)
    for args, code in (
        (["encode", "crowd.csv", "-o", "-"], 0),
        (["encode", "nope.csv", "-o", "-"], 1),
        (["encode", "crowd.csv"], 2),
    ):
        run = start(*args, cwd=tmp_path)
        out, err = run.communicate()
        assert run.returncode == code
        assert out.startswith("item,belief_no") if code == 0 else out == ""
        # No bar, no colours, and nothing that DuckDB says at the end.
        assert "\x1b" not in err
        assert "\r" not in err
        assert "nanobind" not in err


def test_a_reader_that_has_enough_ends_it_quietly(tmp_path: Path, middling: Path):
    run = start("encode", middling, "-q", "-o", "-", "--weigh", "stated", cwd=tmp_path)
    assert run.stdout is not None
    assert run.stdout.readline().startswith("item,belief_0")
    run.stdout.close()
    assert run.stderr is not None
    assert run.stderr.read() == ""
    assert run.wait() == 141
    run.stderr.close()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_terminal_sees_a_bar_with_rate_and_time_left(tmp_path: Path):
    pty = pytest.importorskip("pty")
    master, terminal = pty.openpty()
    crowd = crowd_of(tmp_path / "crowd.parquet", 3_000_000)
    how = ("--weigh", "stated")
    run = start("encode", crowd, "-o", "out.csv", *how, cwd=tmp_path, stderr=terminal)
    os.close(terminal)
    seen = b""
    try:
        while chunk := os.read(master, 65536):
            seen += chunk
    except OSError:
        pass  # Linux says so when the other end is closed.
    os.close(master)
    run.communicate()
    assert run.returncode == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert "checking" in shown
    assert re.search(r"fusing +\S+ [\d,]+ rows/s \d:\d\d:\d\d", shown), shown[-2000:]
    assert "wrote    out.csv: 3,000,000 rows" in shown


HEAVY = "numpy duckdb narwhals pandas polars pyarrow torch scipy sklearn"


def loaded(code: str) -> set[str]:
    """Which of the heavy packages a piece of code imports."""
    shown = f"{code}\nimport sys\nprint(*(set('{HEAVY}'.split()) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import slencodings",
        "from slencodings import __version__",
        "import slencodings.cli.main",
        "import sys; sys.argv = ['sle', 'encode', '--help']\n"
        "from slencodings.cli.main import main\ntry: main()\nexcept SystemExit: pass",
    ],
)
def test_a_start_loads_nothing_heavy(code: str):
    assert loaded(code) == set()


def test_the_public_names_load_what_they_need_and_no_more():
    assert loaded("import slencodings; slencodings.fuse") == {"numpy"}
    assert loaded("from slencodings import *") <= {"numpy", "narwhals"}


def test_every_public_name_is_there_and_no_other_is():
    assert slencodings.__all__ == sorted(slencodings.__all__)
    assert all(hasattr(slencodings, name) for name in slencodings.__all__)
    assert set(slencodings.__all__) <= set(dir(slencodings))
    assert slencodings.fuse.__module__ == "slencodings.fusion"
    with pytest.raises(AttributeError, match="module 'slencodings' has no attribute 'fuze'"):
        _ = slencodings.fuze  # type: ignore[attr-defined]
