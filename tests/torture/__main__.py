"""`python -m torture --minutes 10`, with `tests` on the path: turns of all kinds, side by side."""

import argparse
import importlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
# How many seconds a turn of each kind takes.
SECONDS = {"laws": 90, "kills": 90, "fuzz": 60, "suite": 30, "tables": 15, "exports": 10}
# A turn may finish what it is at. One that takes so much longer hangs.
GRACE = 600


class Torture:
    """Turns until time is up, and what they told."""

    def __init__(self, seed: int, minutes: float, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.until = time.monotonic() + 60 * minutes
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.running: set[subprocess.Popen[bytes]] = set()

    def work(self, worker: int) -> None:
        """One turn after the other; the workers begin at different kinds."""
        rng = random.Random(f"{self.seed} {worker}")
        kinds = itertools.islice(itertools.cycle(SECONDS), worker, None)
        for n, kind in enumerate(kinds):
            seconds = min(SECONDS[kind], self.until - time.monotonic())
            if seconds <= 0:
                return
            self.turn(kind, rng.getrandbits(32), seconds, self.folder / f"{worker}-{n}")

    def turn(self, kind: str, seed: int, seconds: float, told: Path) -> None:
        """A process of its own, which may crash or hang without taking the others along."""
        told.touch()
        how = [f"--turn={kind}", f"--seed={seed}", f"--seconds={seconds:.0f}"]
        command = [sys.executable, "-m", "torture", *how]
        paths = f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"
        environment = os.environ | {"SLENCODINGS_TOLD": str(told), "PYTHONPATH": paths}
        with told.with_suffix(".log").open("wb") as log:
            run = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            self.running.add(run)
            try:
                code = run.wait(seconds + GRACE)
            except subprocess.TimeoutExpired:
                code = "a hang"
                os.killpg(run.pid, signal.SIGKILL)
            self.running.remove(run)
        self.read(told, f"PYTHONPATH=src:tests python -m torture {' '.join(how)}")
        if code != 0 and time.monotonic() < self.until + GRACE:
            said = told.with_suffix(".log").read_text(errors="replace")[-3000:]
            self.fail(f"a turn ended with {code}\n{said}", " ".join(command[1:]))

    def read(self, told: Path, command: str) -> None:
        """Add up what a turn told."""
        for line in told.read_text().splitlines():
            said = json.loads(line)
            if "failure" in said:
                self.fail(said["failure"], command)
            else:
                self.counts.update(said)

    def fail(self, what: str, command: str) -> None:
        """Say it at once, and remember it."""
        self.failures.append(f"{what}\n    again: {command}")
        print(f"FAILED {self.failures[-1]}", flush=True)

    def stop(self) -> None:
        """End what runs, by the group of processes that each turn is."""
        self.until = 0.0
        for run in list(self.running):
            os.killpg(run.pid, signal.SIGKILL)


def main(seed: int, minutes: float, workers: int) -> int:
    """Torture for so long; 1 if something failed, 130 if somebody stopped it before its time."""
    print(f"seed {seed}, {minutes:g} minutes, {workers} workers", flush=True)
    start, code = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        torture = Torture(seed, minutes, Path(folder))
        threads = [threading.Thread(target=torture.work, args=[i]) for i in range(workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            code = 130
            torture.stop()
            for thread in threads:
                thread.join()
    print(f"\n{(time.monotonic() - start) / 60:.1f} minutes")
    examples = sum(n for what, n in torture.counts.items() if what.startswith("examples"))
    kills = sum(n for what, n in torture.counts.items() if what.startswith("kills"))
    rows = {"examples": examples, "kills": kills, "failures": len(torture.failures)}
    for what, n in [*sorted(torture.counts.items()), *rows.items()]:
        print(f"{n:>12,} {what}")
    for failure in torture.failures:
        print(f"\nFAILED {failure}")
    return 1 if torture.failures else code


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--turn", choices=SECONDS, help="one turn alone, told on this terminal")
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    if given.turn is None:
        sys.exit(main(given.seed, given.minutes, given.workers))
    module = importlib.import_module(f"torture.{given.turn}")
    module.turn(given.seed, time.monotonic() + given.seconds)
