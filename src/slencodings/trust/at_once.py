"""Fits that do not need each other, two at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def at_once(work: Callable[[Job], Result], jobs: Iterable[Job], *, many: bool) -> list[Result]:
    """What the work makes of each job, in their order.

    Of `many` annotations two jobs are done at a time: NumPy lets go of the interpreter while it
    goes through long arrays. Through short ones it is sooner than a thread that waits for it.
    """
    if not many:
        return [work(job) for job in jobs]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, jobs))
