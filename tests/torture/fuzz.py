"""Readers of files against a fuzzer that is guided by coverage, atheris: read or refused in words.

A turn looks at one reader. One alone, for as long as wanted, and the corpus it grows, with what
failed beside it; and all of them, until each format has had an hour of a processor:

    PYTHONPATH=src:tests python -m torture.fuzz crowd.json 600 --corpus FOLDER
    PYTHONPATH=src:tests python -m torture.fuzz --each 3600

`fuzzed.json` keeps how many seconds each reader has had, in this run and in those before, and
`corpus.tar.xz` the files that reached something new, from which the next run goes on; `--pack` adds
those of this one. Several runs at once take different readers.
"""

import argparse
import fcntl
import hashlib
import io
import json
import os
import random
import re
import resource
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from hostile import HOSTILE, places, put

from torture import MOST_FAILURES, fail, tell

# Files of a few kB reach everything that a reader does; larger ones only take longer.
LARGEST = 1 << 14
# Of a processor, for one file, and the memory of the process with all libraries.
SECONDS, MEGABYTES = 20, 4096
# How many seconds of a processor each reader has had, and for how long one is looked at at a time.
FUZZED, SLICE = Path(__file__).with_name("fuzzed.json"), 600
CORPUS, PACKED = Path("build/fuzz"), Path(__file__).with_name("corpus.tar.xz")


def words(seeds: list[bytes]) -> str:
    """What seeds are made of, for the fuzzer to put elsewhere."""
    found = {w for data in seeds for w in re.findall(rb"[A-Za-z_][\w.:-]{2,30}|[\]\[{}:,]+", data)}
    signs = [
        b"null",
        b"true",
        b"NaN",
        b"1e999",
        b"-1",
        b"[]",
        b"{}",
        b'""',
        b"\\u0000",
        b"99999999",
    ]
    some = sorted(found, key=lambda w: hashlib.sha256(w).digest())[:300]
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in [*signs, *some])
    return "".join(f'"{word}"\n' for word in quoted)


def changed(data: bytes, rng: random.Random) -> bytes | None:
    """JSON, or a line of it, with something else in one place; None if it is none."""
    lines = data.splitlines() if b"\n{" in data else [data]
    n = rng.randrange(len(lines)) if lines else 0
    try:
        value = json.loads(lines[n])
        where = rng.choice(places(value) if isinstance(value, dict | list) else [])
    except (ValueError, IndexError, RecursionError):
        return None
    others = [x for path in places(value)[:100] if isinstance(x := at(value, path), str | int)]
    new = rng.choice([*HOSTILE, -1e308, 1e-320, 2**63, "1", "\x00", "\ud800", *others])
    lines[n] = json.dumps(put(value, where, new)).encode()
    return b"\n".join(lines)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """What stands at a place."""
    return at(value[path[0]], path[1:]) if path else value


def watched(name: str, look: Callable[[bytes], object], kept: Path) -> Callable[[bytes], None]:
    """Look at bytes, count, and keep what is neither read nor refused; the same only once."""
    seen: set[str] = set()
    count, told = 0, time.monotonic()

    def one(data: bytes) -> None:
        nonlocal count, told
        start = time.process_time()
        try:
            look(data)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            ours = [f for f in frames if "slencodings" in f.filename] or frames[:1]
            where = f"{type(error).__name__} at {ours[-1].filename}:{ours[-1].lineno}"
            note(where, data, traceback.format_exc()[-3000:])
        if (spent := time.process_time() - start) > SECONDS:
            note("time", data, f"{spent:.1f} s of a processor for {len(data)} bytes")
        count += 1
        if time.monotonic() > told + 1:
            tell(f"files of {name}", count)
            count, told = 0, time.monotonic()

    def note(where: str, data: bytes, text: str) -> None:
        if where in seen:
            return
        seen.add(where)
        path = kept / f"fuzzed-{hashlib.sha256(data).hexdigest()[:12]}-{name}"
        path.write_bytes(data)
        fail(f"{name}: {where}; the bytes are in {path}\n{text}")
        if len(seen) >= MOST_FAILURES:
            os._exit(0)

    return one


def format_of(name: str) -> str:
    """The format of a reader's files: JSON (as exports are), CSV, workbooks and others."""
    ending = name.rsplit(".")[-1]
    return {"jsonl": "json", "export": "json", "ods": "xlsx", "xls": "xlsx"}.get(ending, ending)


def by_format(seconds: dict[str, float]) -> dict[str, float]:
    """How many seconds the readers of each format have had together."""
    found: dict[str, float] = {}
    for name, some in seconds.items():
        found[format_of(name)] = found.get(format_of(name), 0) + some
    return found


def keep(name: str, seconds: float) -> None:
    """Add the seconds that a reader has had; others may add theirs."""
    with FUZZED.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        had: dict[str, float] = json.load(file)
        file.seek(0)
        file.write(json.dumps(had | {name: round(had[name] + seconds)}, indent=1) + "\n")
        file.truncate()


def pack(corpus: Path, packed: Path = PACKED) -> int:
    """Keep what readers of a corpus have reached, with what is kept already; how many files."""
    files = packed_files(packed)
    for reader in json.loads(FUZZED.read_text()):
        found = (corpus / reader).glob("*")
        files |= {f"{reader}/{p.name}": p.read_bytes() for p in found if "seed-" not in p.name}
    with tarfile.open(packed, "w:xz") as archive:
        for name in sorted(files):  # as of 1970, so that the same files are the same archive
            about = tarfile.TarInfo(name)
            about.size = len(files[name])
            archive.addfile(about, io.BytesIO(files[name]))
    return len(files)


def packed_files(packed: Path = PACKED) -> dict[str, bytes]:
    """What is kept, by reader and name."""
    files = dict[str, bytes]()
    if packed.exists():
        with tarfile.open(packed) as archive:
            for about in archive:
                if (member := archive.extractfile(about)) is not None:
                    files[about.name] = member.read()
    return files


def unpack(reader: str, into: Path, packed: Path = PACKED) -> None:
    """Go on from what a reader has reached in runs before."""
    for name, data in packed_files(packed).items():
        if name.startswith(f"{reader}/"):
            (into / Path(name).name).write_bytes(data)


@contextmanager
def least_fuzzed(corpus: Path) -> Iterator[tuple[str, float]]:
    """Of the format that has had least the reader that has, unless another process is at it.

    And how long its format has had. Who is at a reader holds a lock, which dies with the process.
    """
    # Not from the readers: what is imported before the fuzzer looks is not seen by it.
    had: dict[str, float] = json.loads(FUZZED.read_text())
    formats = by_format(had)
    corpus.mkdir(parents=True, exist_ok=True)
    for name in sorted(had, key=lambda name: (formats[format_of(name)], had[name])):
        with (corpus / f"{name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield name, formats[format_of(name)]
            return


def fuzz(name: str, seconds: float, seed: int, corpus: Path, *, alone: bool = False) -> int:
    """Fuzz one reader until time is up, and keep how long that was; how that process ended.

    One alone tells what it covers as it goes, and at the end. The fuzzer ends its process
    and lets nothing be cleaned up there, so it has one of its own.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        if not (child := os.fork()):
            os.environ["TMPDIR"] = folder
            tempfile.tempdir = None
            _fuzz(name, seconds, seed, corpus, Path(folder), alone)
            os._exit(0)
        _, status, used = os.wait4(child, 0)
    keep(name, used.ru_utime + used.ru_stime)
    return os.waitstatus_to_exitcode(status)


def _fuzz(name: str, seconds: float, seed: int, corpus: Path, folder: Path, alone: bool) -> None:
    try:
        atheris: Any = import_module("atheris")
    except ImportError:
        fail("fuzzing needs atheris, which is not installed. Type: pip install atheris")
        return
    with atheris.instrument_imports(include=["slencodings"]):
        from torture.readers import READERS, refused

        reader, here = READERS[name], corpus / name
        seeds = reader.seeds()
        # What a reader imports only when it reads would not be seen by the fuzzer otherwise.
        for data in seeds:
            refused(reader, data, folder)
    kept = corpus / "failed"
    for place in (here, kept):
        place.mkdir(parents=True, exist_ok=True)
    unpack(name, here)
    for n, data in enumerate(seeds):
        (here / f"seed-{n}").write_bytes(data)
    (folder / "words").write_text(words(seeds))
    how = {
        "max_total_time": max(1, int(seconds)),
        "seed": seed % 2**31 or 1,
        # Of a clock, which runs on while others have the processor; `watched` looks at the latter.
        "timeout": 10 * SECONDS,
        "report_slow_units": 10 * SECONDS,
        "rss_limit_mb": MEGABYTES,
        "max_len": max(LARGEST, *map(len, seeds)),
        "dict": folder / "words",
        "artifact_prefix": f"{kept}/{name}-",
        "verbosity": int(alone),
        "print_final_stats": int(alone),
    }
    one = watched(name, lambda data: refused(reader, data, folder), kept)
    # A file that asks for more memory than there is must be refused before that.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        new = changed(data, rng) if rng.random() < 0.5 else None
        return atheris.Mutate(data, most) if new is None or len(new) > most else new

    options = [f"-{name}={value}" for name, value in how.items()]
    atheris.Setup([sys.argv[0], str(here), *options], one, custom_mutator=mutate)
    atheris.Fuzz()


def turn(seed: int, until: float) -> None:
    """The reader that has been looked at least."""
    with least_fuzzed(CORPUS) as (name, _):
        sys.exit(fuzz(name, until - time.monotonic(), seed, CORPUS))


def fuzz_each(seconds: float, seed: int, corpus: Path) -> int:
    """Look at all readers until each format has had so many seconds; how many runs failed."""
    failed = 0
    while True:
        with least_fuzzed(corpus) as (name, had):
            if had >= seconds:
                return failed
            print(f"{name}, a format that has had {had / 60:.0f} minutes", flush=True)
            failed += bool(fuzz(name, min(SLICE, seconds - had + 1), seed, corpus))
        seed += 1


def main() -> int:
    """One reader for so long, or all of them, and what came of it: 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="torture.fuzz", description=__doc__)
    parser.add_argument("reader", nargs="?")
    parser.add_argument("seconds", type=float, nargs="?")
    parser.add_argument("--each", type=float, help="seconds of a processor for each format")
    parser.add_argument("--pack", action="store_true", help="keep the corpus, and do no more")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(31))
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    given = parser.parse_args()
    if given.pack:
        print(f"{pack(given.corpus)} files in {PACKED.name}")
        return 0
    if given.each:
        return bool(fuzz_each(given.each, given.seed, given.corpus))
    start = time.time()
    code = fuzz(given.reader, given.seconds, given.seed, given.corpus, alone=True)
    found = [p for p in (given.corpus / "failed").glob("*") if p.stat().st_mtime >= start]
    own = f"-{given.reader}", f"{given.reader}-"  # others may run beside it
    kept = [p for p in found if p.name.endswith(own[0]) or p.name.startswith(own[1])]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of a processor, failures: {len(kept)}")
    return code or bool(kept)


if __name__ == "__main__":
    sys.exit(main())
