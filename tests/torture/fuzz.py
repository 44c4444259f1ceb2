"""Readers of files against a fuzzer that is guided by coverage, atheris: read or refused in words.

A turn looks at one reader. One alone, for as long as wanted, and the corpus it grows, with what
failed beside it:

    PYTHONPATH=src:tests python -m torture.fuzz crowd.json 600 --corpus FOLDER
"""

import argparse
import hashlib
import json
import os
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from hostile import HOSTILE, places, put

from torture import MOST_FAILURES, fail, tell

# Files of a few kB reach everything that a reader does; larger ones only take longer.
LARGEST = 1 << 14
# Of a processor, for one file, and the memory of the process with all libraries.
SECONDS, MEGABYTES = 20, 4096


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


def fuzz(name: str | None, seconds: float, seed: int, corpus: Path) -> int:
    """Fuzz one reader, by the seed if none is named, until time is up; how that process ended.

    One that is named tells what it covers as it goes, and at the end. The fuzzer ends its process
    and lets nothing be cleaned up there, so it has one of its own.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        if not (child := os.fork()):
            os.environ["TMPDIR"] = folder
            tempfile.tempdir = None
            _fuzz(name, seconds, seed, corpus, Path(folder))
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _fuzz(name: str | None, seconds: float, seed: int, corpus: Path, folder: Path) -> None:
    try:
        atheris: Any = import_module("atheris")
    except ImportError:
        fail("fuzzing needs atheris, which is not installed. Type: pip install atheris")
        return
    with atheris.instrument_imports(include=["slencodings"]):
        from torture.readers import READERS, refused

        alone, name = name is not None, name or list(READERS)[seed % len(READERS)]
        reader, here = READERS[name], corpus / name
        seeds = reader.seeds()
        # What a reader imports only when it reads would not be seen by the fuzzer otherwise.
        for data in seeds:
            refused(reader, data, folder)
    kept = corpus / "failed"
    for place in (here, kept):
        place.mkdir(parents=True, exist_ok=True)
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
    """One of the readers, by the seed."""
    sys.exit(fuzz(None, until - time.monotonic(), seed, Path("build/fuzz")))


def main() -> int:
    """One reader for so long, and what came of it: 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="torture.fuzz", description=__doc__)
    parser.add_argument("reader")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    start = time.time()
    code = fuzz(given.reader, given.seconds, given.seed, given.corpus)
    found = [p for p in (given.corpus / "failed").glob("*") if p.stat().st_mtime >= start]
    own = f"-{given.reader}", f"{given.reader}-"  # others may run beside it
    kept = [p for p in found if p.name.endswith(own[0]) or p.name.startswith(own[1])]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of a processor, failures: {len(kept)}")
    return code or bool(kept)


if __name__ == "__main__":
    sys.exit(main())
