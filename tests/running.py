"""What comes of running the command `sle`; the fixture `sle` of conftest.py runs it."""

from collections.abc import Callable
from typing import NamedTuple


class Run(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


Sle = Callable[..., Run]
