"""Cases take turns, each in a process of its own, and every run is one flat row.

What is compared stands in one group, whose turns are measured whole or not at all: both sides of a
ratio have met the same machine, and a run that is interrupted goes on with the next turn. Peers
import this file in environments of their own, so that it needs nothing but Python to begin with.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "rows"
# How the name of a peer's case begins, and what its environment is called.
PEERS = {"crowd-kit": "crowdkit", "CrowdTruth package": "crowdtruth", "cleanlab": "cleanlab"}
PACKAGES = (
    *("slencodings", "numpy", "scipy", "duckdb", "polars", "pandas", "pyarrow", "dask", "pyspark"),
    *("narwhals", "torch", "crowd-kit", "crowdtruth", "cleanlab"),
)

Row = dict[str, Any]
Step = Callable[[], Any]


class Run(NamedTuple):
    """A case, and the size of what it is given."""

    case: str
    rows: int | None = None
    labels: int | None = None
    per_item: int | None = None
    annotators: int | None = None


class Group(NamedTuple):
    """Runs that are compared with each other, and how often.

    by : the module here whose `measure` does it
    data : the kind of file from `crowds` that the runs need, or none
    together : all turns in one process, where starting it would cost more than the work
    """

    question: str
    by: str
    runs: tuple[Run, ...]
    turns: int
    data: str = ""
    together: bool = False


class Comparison(NamedTuple):
    """A case, what it is compared with, and how much slower or larger it may be.

    fast : at least so many times as fast, where the other is a peer
    memory : at most so many times the memory
    megabytes : at most so many
    at : the rows from which on these are meant; smaller tables pay for starting
    """

    case: str
    floor: str
    slow: float | None = None
    fast: float | None = None
    memory: float | None = None
    megabytes: float | None = None
    at: int = 0


COLUMNS = {
    "question": str,
    "case": str,
    "rows": int,
    "labels": int,
    "per_item": int,
    "annotators": int,
    "turn": int,
    "seconds": float,
    "loading": float,  # seconds from a table to what the method takes, where that is apart
    "megabytes": float,  # peak of the process
    "note": str,  # how far the result is from the peer's; or that memory was not enough
    "versions": str,
    "python": str,
    "machine": str,
    "cores": int,
    "date": str,
}


# -- in the process that measures --------------------------------------------------------------


def answer(measure: Callable[[list[Run], list[int], Path], Iterable[Row]]) -> None:
    """Measure what the first argument asks for, and say it in the last line."""
    asked = json.loads(sys.argv[1])
    runs = [Run(*run) for run in asked["runs"]]
    print("\n" + json.dumps(list(measure(runs, asked["turns"], Path(asked["place"])))))


def row(run: Run, turn: int, seconds: float | None, **more: Any) -> Row:
    return {**run._asdict(), "turn": turn, "seconds": seconds, **more}


def timed(step: Step, clock: Callable[[], float] = time.perf_counter) -> tuple[float, Any]:
    """Seconds that a step took, and what it gave."""
    start = clock()
    made = step()
    return clock() - start, made


def peak_megabytes() -> float:
    """Not `ru_maxrss`, which begins at the peak of the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def command(*words: str) -> tuple[float, float]:
    """Seconds and peak megabytes of a command. Started from here its peak begins at next to 0."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=tempfile.gettempdir())
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return seconds, used.ru_maxrss * 1024 / 1e6


def alternate(
    runs: list[Run], steps: list[Step], turns: list[int], clock: Callable[[], float]
) -> list[Row]:
    """The runs of all turns in this process, after two turns that do not count."""
    found: list[Row] = []
    for turn in (-2, -1, *turns):
        for run, step in zip(runs, steps, strict=True):
            start = clock()
            step()
            seconds = clock() - start
            if turn >= 0:
                found.append(row(run, turn, seconds))
    return found


def versions() -> str:
    """Of the packages that matter and are installed beside this Python."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


# -- in the process that asks ------------------------------------------------------------------


def keep(
    path: Path, groups: list[Group], *, peers: Path | None = None, again: bool = False
) -> list[Row]:
    """Measure the turns whose rows are not there yet, keep all rows, and return them.

    Rows count as there if they are of this machine, this Python and these versions. `again`
    forgets the rows of the cases asked, of the sizes asked.

    Parameters
    ----------
    peers : a folder with environments, as `python -m benchmarks.peers` makes it; the runs of
        peers that are not there are left out
    """
    kept = read(path)
    if again:
        asked = {(group.question, *run) for group in groups for run in group.runs}
        kept = [row for row in kept if _key(row)[:-1] not in asked]
    groups = [with_peers(group, peers) for group in groups]
    todo = [(group, turns) for group in groups for turns in _missing(group, kept, peers)]
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        for done, (group, turns) in enumerate(todo):
            _show(f"{done}/{len(todo)} {group.question}: {group.runs[-1].case}")
            new = _measured(group, turns, Path(name), peers)
            replaced = {_key(row) for row in new}
            kept = [row for row in kept if _key(row) not in replaced] + new
            save(path, kept)
    _show("")
    return kept


def with_peers(group: Group, peers: Path | None) -> Group:
    """Without the runs of peers that are not there."""
    there = [run for run in group.runs if Path(interpreter(run.case, peers)).exists()]
    return group._replace(runs=tuple(there))


def interpreter(case: str, peers: Path | None) -> str:
    """The Python that a case runs in."""
    peer = next((name for begin, name in PEERS.items() if case.startswith(begin)), "")
    return str((peers or Path("nowhere")) / peer / "bin" / "python") if peer else sys.executable


def _missing(group: Group, kept: list[Row], peers: Path | None) -> list[list[int]]:
    """The turns to measure, one by one or all at once."""
    there = {(_key(row), *(row[name] for name in _here(""))) for row in kept}
    turns = list(range(group.turns))
    wanted = [(run, _here(interpreter(run.case, peers)).values()) for run in group.runs]
    left = [
        turn
        for turn in turns
        if any(((group.question, *run, turn), *here) not in there for run, here in wanted)
    ]
    if group.together:
        return [turns] if left else []
    return [[turn] for turn in left]


def _measured(group: Group, turns: list[int], folder: Path, peers: Path | None) -> list[Row]:
    found: list[Row] = []
    at_once = [group.runs] if group.together else [(run,) for run in group.runs]
    for runs in at_once:
        data = folder / f"{stem(runs[0])}.{group.data}"
        if group.data and not data.exists():
            _call(sys.executable, "crowds", runs, turns, data)
        python = interpreter(runs[0].case, peers)
        about = dict.fromkeys(COLUMNS) | _here(python) | {"question": group.question}
        about["date"] = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
        found += [about | row for row in _call(python, group.by, runs, turns, folder)]
    return found


def _call(
    python: str, module: str, runs: Sequence[Run], turns: list[int], place: Path
) -> list[Row]:
    """What a module here measures in a process of its own."""
    asked = json.dumps({"runs": runs, "turns": turns, "place": str(place)})
    words = [python, "-m", f"benchmarks.{module}", asked]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    if done.returncode == -9 or re.search("MemoryError|SIGKILL|more memory", done.stderr):
        return [row(run, turn, None, note="out of memory") for run in runs for turn in turns]
    raise SystemExit(f"\n{runs[0]} failed:\n{done.stderr}")


def stem(run: Run) -> str:
    """The name of the data of a run, without its ending."""
    return "-".join(str(size) for size in run[1:])


def _key(row: Row) -> tuple[Any, ...]:
    return (row["question"], *(row[name] for name in Run._fields), row["turn"])


@cache
def _here(python: str) -> Row:
    """What a time depends on beside the code that is measured."""
    processors = Path("/proc/cpuinfo")
    text = processors.read_text() if processors.exists() else ""
    named = re.search(r"model name\s*: (.*)", text)
    return {
        "versions": _versions_of(python) if python else "",
        "python": platform.python_version(),
        "machine": named[1] if named else platform.machine(),
        "cores": os.cpu_count(),
    }


def _versions_of(python: str) -> str:
    code = "from benchmarks.turns import versions; print(versions())"
    words = [python, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True)
    return done.stdout.strip()


def _show(text: str) -> None:
    """A line on a terminal that is written over; nothing in a pipe."""
    if sys.stderr.isatty():
        print(f"\r{text[:78]:78}\r", end="", file=sys.stderr, flush=True)


def read(path: Path) -> list[Row]:
    """The rows that are kept in a file; none where there is no file."""
    import polars as pl

    return pl.read_parquet(path).to_dicts() if path.exists() else []


def save(path: Path, rows: list[Row]) -> None:
    """Replace the file by one with these rows, whole or not at all."""
    import polars as pl

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    order = ["question", *Run._fields, "turn"]
    pl.DataFrame(rows, schema=COLUMNS).sort(order).write_parquet(part, compression="zstd")
    part.replace(path)


# -- what rows say -----------------------------------------------------------------------------


def by_turn(rows: list[Row], case: str, what: str = "seconds", /, **size: Any) -> dict[int, float]:
    """What the runs of a case took, by turn."""
    wanted = {"case": case, **size}
    return {
        row["turn"]: row[what]
        for row in rows
        if row.get(what) is not None and all(row[name] == value for name, value in wanted.items())
    }


def ratios(over: dict[int, float], under: dict[int, float]) -> list[float]:
    """One ratio per turn, so that both sides met the same machine."""
    return [over[turn] / under[turn] for turn in sorted(over) if turn in under]


def limits(values: Sequence[float]) -> tuple[float, float]:
    """Lowest and highest; of 20 and more the limits of the middle half."""
    if len(values) < 20:
        return min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def with_spread(values: Sequence[float], digits: int = 2) -> str:
    """Median and limits, in words; one value has none."""
    if not values:
        return ""
    middle, low, high = (f"{x:,.{digits}f}" for x in (statistics.median(values), *limits(values)))
    return middle if len(values) == 1 else f"{middle} ({low} to {high})"


def exponent(sizes: Sequence[float], seconds: Sequence[float], decades: float = 2) -> float:
    """The p of seconds ~ size^p by least squares of the logarithms, over the upper decades.

    p = sum (x - mean x) (y - mean y) / sum (x - mean x)^2,   x = log size,   y = log seconds
    """
    least = max(sizes) / 10**decades * (1 - 1e-9)
    upper = [(math.log(n), math.log(s)) for n, s in zip(sizes, seconds, strict=True) if n >= least]
    x, y = zip(*upper, strict=True)
    return statistics.linear_regression(x, y).slope
