"""Flaws of rows, counted while Spark goes through these to fuse them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import narwhals as nw

from slencodings.tables.checks import Flaw, any_of, refuse_flaws
from slencodings.tables.engines import Frame

_FLAWED, _UNLABELLED = "sle_flawed", "sle_unlabelled"


@dataclass
class Later:
    """A check of a table whose rows are gone through but once."""

    table: Any
    seen: Any = field(init=False)
    recount: Callable[[], dict[str, int]] = field(init=False)

    def check(self, frame: Frame, flaws: list[Flaw], first: str) -> tuple[Frame, dict[str, int]]:
        """The rows, which are counted wherever they are first used; as `checks.Check`."""
        sql: Any = import_module("pyspark.sql")
        self.seen = sql.Observation()
        self.recount = lambda: refuse_flaws(frame, flaws, first)
        marked = frame.with_columns(
            any_of(flaws).cast(nw.Int64).alias(_FLAWED),
            nw.col(first).is_null().cast(nw.Int64).alias(_UNLABELLED),
        ).to_native()
        count, add, one = sql.functions.count, sql.functions.sum, sql.functions.lit(1)
        counted = [count(one).alias("rows"), *(add(c).alias(c) for c in (_FLAWED, _UNLABELLED))]
        observed = nw.from_native(marked.observe(self.seen, *counted))
        return observed.drop(_FLAWED, _UNLABELLED), {}

    def counts(self) -> dict[str, int]:
        """What was counted; an error that shows the first flaw if there are any.

        Who takes over from a worker that is lost counts its rows again. Then, and where something
        is wrong, all are gone through once more.
        """
        found, rows = self.seen.get, self.table.count()
        if rows == 0 or found.get("rows") != rows or found.get(_FLAWED):
            return self.recount()
        return {"rows": rows, "unlabelled": int(found.get(_UNLABELLED) or 0)}
