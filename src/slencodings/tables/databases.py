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

from slencodings.annotations import counted

# What is smaller is 0: PostgreSQL refuses products that come out below 1e-308.
_LEAST_LOGARITHM = -300.0
# Among so many values PostgreSQL looks one up; with fewer it compares it, one after the other.
_LOOKED_UP = 9
# What SQLite may keep in a column, by what Ibis takes its declared type for. It keeps anything.
_KEPT = {
    "boolean": ["integer"],
    "integer": ["integer"],
    "floating": ["real", "integer"],
    "decimal": ["real", "integer"],
    "string": ["text"],
    "binary": ["blob"],
    "temporal": ["text", "integer", "real"],
}


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


def check_types(table: Any) -> None:
    """Refuse values that are not of the type which their column declares.

    SQLite keeps any value in any column. Such a value would equal no other, or be cut to fit, and
    so be lost without a word.
    """
    if table.get_backend().name != "sqlite":
        return
    kept = {
        name: fit
        for name, dtype in table.schema().items()
        for kind, fit in _KEPT.items()
        if getattr(dtype, f"is_{kind}")()
    }
    if not kept:
        return
    strange = {name: table[name].typeof().notin([*fit, "null"]) for name, fit in kept.items()}
    sums = {f"sle_{k}": condition.sum() for k, condition in enumerate(strange.values())}
    *counts, rows = rows_of(table.aggregate(**sums, sle_rows=table.count())).values()
    for (name, condition), (count,) in zip(strange.items(), counts, strict=True):
        if count:
            many = f"{kept[name][0]}; {count} of {counted(rows[0], 'row')} hold"
            _refuse_value(table.filter(condition).limit(1), name, many)


def _refuse_value(found: Any, name: str, many: str) -> None:
    kind = found[name].typeof()
    text = (kind == "blob").ifelse("", found[name].cast("string"))  # Bytes may be no text.
    (kind,), (text,) = rows_of(found.select(kind=kind, text=text)).values()
    example = f", for example {text!r}" if text else ""
    meant = "REAL" if kind == "real" else "TEXT"
    raise ValueError(
        f"column {name!r} must hold what its type says, {many} {kind}{example}. Mend them, or say "
        f'in a query what is meant: SELECT CAST("{name}" AS {meant}) AS "{name}", ... FROM ...'
    )


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
