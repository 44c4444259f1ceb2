"""Tables in databases, through Ibis: expressions as SQL that all of them know.

narwhals writes them for DuckDB. PostgreSQL makes no number of a truth value and stops where one is
too small to be written; SQLite has no NaN and divides whole numbers without a rest. So what they do
not know is replaced before it is sent.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

# What is smaller is 0: PostgreSQL refuses products that come out below 1e-308.
_LEAST_LOGARITHM = -300.0
# Among so many values PostgreSQL looks one up; with fewer it compares it, one after the other.
_LOOKED_UP = 9


def portable(table: Any) -> Any:
    """The same table in words that its database knows."""
    ops: Any = import_module("ibis.expr.operations")
    name: str = table.get_backend().name

    def known(node: Any, arguments: dict[str, Any] | None) -> Any:
        node = node.__recreate__(arguments) if arguments else node
        if isinstance(node, ops.Cast) and node.arg.dtype.is_boolean() and node.to.is_integer():
            return ops.IfElse(node.arg, *(ops.Literal(n, dtype=node.to) for n in (1, 0)))
        if isinstance(node, ops.Log):  # Of which narwhals always says the base, even if it is e.
            return ops.Ln(node.arg)
        if name == "postgres":
            if isinstance(node, ops.Literal) and node.dtype.is_floating():
                return ops.Cast(node, to="float64")  # Else it is a decimal number.
            if isinstance(node, ops.InValues) and len(node.options) < _LOOKED_UP:
                return ops.InValues(node.value, (node.options * _LOOKED_UP)[:_LOOKED_UP])
            if isinstance(node, ops.Exp):
                least, nothing = (ops.Literal(x, dtype="float64") for x in (_LEAST_LOGARITHM, 0.0))
                return ops.IfElse(ops.Less(node.arg, least), nothing, node)
        if name == "sqlite":
            if isinstance(node, ops.IsNan):
                return ops.Literal(False, dtype="boolean")
            if isinstance(node, ops.Divide) and node.left.dtype.is_integer():
                return ops.Divide(ops.Cast(node.left, to="float64"), node.right)
        return node

    return table.op().replace(known).to_expr()


def rows_of(table: Any) -> dict[str, list[Any]]:
    """A few rows as Python values."""
    return portable(table).to_pyarrow().to_pydict()


def few(columns: Mapping[str, Any]) -> Any:
    """A table of few rows, which goes to the database with the query that needs it."""
    ibis: Any = import_module("ibis")
    pa: Any = import_module("pyarrow")
    return ibis.memtable(pa.table({name: pa.array(values) for name, values in columns.items()}))


def stacked(table: Any, columns: Sequence[str], variable: str, value: str) -> Any:
    """A row per row and column, with the column's name in `variable` and what it held in `value`.

    By a join with the names, which reads the rows once; not all databases can do it otherwise.
    """
    ibis: Any = import_module("ibis")
    joined = table.cross_join(few({variable: list(columns)}))
    held = ibis.cases(*((joined[variable] == name, joined[name]) for name in columns))
    kept = [name for name in table.columns if name not in columns]
    return _named(joined.select(*kept, variable, held.name(value)))


def computed(table: Any) -> Any:
    """The table, whose columns are computed once however often they are used.

    Databases put an expression in the place of each column that is made by it, and again, until
    they plan for minutes. Rows that are numbered they leave as they are, and then number none.
    """
    ibis: Any = import_module("ibis")
    return _named(table.mutate(sle_computed=ibis.row_number())).select(*table.columns)


def _named(table: Any) -> Any:
    """The table under a name of its own: SQLite reads queries inside others only so deep."""
    return table.alias(f"sle_{uuid.uuid4().hex[:12]}")
