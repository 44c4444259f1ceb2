"""What chance finds: examples, tables, exports, files and kills until time is up (`make torture`).

Each kind of trouble has a module with a function `turn(seed, until)`, which goes on until that
time (of `time.monotonic`) and tells what it did.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

# After so many a turn ends: there is enough to look into.
MOST_FAILURES = 5


def tell(what: str, count: int = 1) -> None:
    """Note how many of what were done, in the file that the turn was given, or on the terminal."""
    _note({what: count})


def fail(what: str) -> None:
    """Note what failed, and how to see it again."""
    _note({"failure": what})


def _note(line: dict[str, object]) -> None:
    place = os.environ.get("SLENCODINGS_TOLD")
    # `/dev/stdout` would be another way into the same file, over which the next line is written.
    with open(place, "a") if place else nullcontext(sys.stdout) as told:
        print(json.dumps(line), file=told, flush=True)


def again(what: str, law: Callable[[np.random.Generator], None], seed: int, until: float) -> None:
    """Look at a law with new numbers until time is up, or until it is known not to hold."""
    looked, failed = 0, 0
    while failed < MOST_FAILURES and (now := time.monotonic()) < until:
        done = looked
        while time.monotonic() < now + 1:  # so often it is told how far we are
            numbers = [seed, looked]
            looked += 1
            try:
                law(np.random.default_rng(numbers))
            except Exception:
                failed += 1
                where = f"{law.__module__}.{law.__name__}(np.random.default_rng({numbers}))"
                fail(f"{where}\n{traceback.format_exc()}")
                break
        tell(what, looked - done)
