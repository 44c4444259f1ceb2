"""The property tests of the suite, with other examples every time."""

import os
import random
import re
import time
from pathlib import Path

import pytest

from torture import fail, tell

TESTS = Path(__file__).parents[1]
EXAMPLES = "100"
FILES = 3


class Count:
    """Run the property tests only, in any order, until time is up, and count their examples."""

    def __init__(self, seed: int, until: float) -> None:
        self.seed, self.until = seed, until

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        from hypothesis import is_hypothesis_test  # not before pytest has seen it

        items[:] = [item for item in items if is_hypothesis_test(getattr(item, "obj", None))]
        random.Random(self.seed).shuffle(items)

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        # What Hypothesis itself counted, without what it threw away.
        said = getattr(item, "hypothesis_statistics", "")
        looked = sum(map(int, re.findall(r"(\d+) (?:passing|failing)", said)))
        tell("examples of the suite", looked)
        tell("property tests of the suite")
        if time.monotonic() > self.until:
            item.session.shouldstop = "time is up"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            how = f"SLENCODINGS_TORTURE=1 SLENCODINGS_EXAMPLES={EXAMPLES} pytest -n 0"
            how += f" '{report.nodeid}' --hypothesis-seed={self.seed}"
            fail(f"{how}\n{report.longreprtext[-3000:]}")


def turn(seed: int, until: float) -> None:
    """Some of the files that have property tests."""
    os.environ |= {"SLENCODINGS_TORTURE": "1", "SLENCODINGS_EXAMPLES": EXAMPLES}
    files = sorted(path for path in TESTS.glob("test_*.py") if "@given" in path.read_text())
    chosen = map(str, random.Random(seed).sample(files, FILES))
    how = ["-n", "0", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}"]
    code = pytest.main([*how, *chosen], [Count(seed, until)])
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
