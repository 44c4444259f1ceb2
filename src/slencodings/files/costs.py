"""What annotations cost, from a file."""

from __future__ import annotations

from slencodings.annotations import counted
from slencodings.files.duckdb import plain_errors
from slencodings.files.locate import converted, locate
from slencodings.files.scan import scan, typed
from slencodings.files.write import quote, workspace
from slencodings.tables.roles import Reading, find_columns, listed

# Other names for what something costs.
_COST = ("cost", "costs", "price", "rate", "wage", "fee")


def read_costs(source: str) -> dict[str, float]:
    """What an annotation of each annotator costs, by name, for `triage(costs=...)`.

    A table with a column of annotators, found by its usual names, and one called cost or price.
    """
    with workspace() as (connection, folder):
        found = locate(connection, source, folder)
        found = converted(found, Reading(), folder, lambda what, text: None)
        with plain_errors(found):
            table = scan(connection, found)
            who = find_columns(table.names).get("annotator")
            cost = next((name for name in table.names if name.strip().lower() in _COST), None)
            if who is None or cost is None:
                raise ValueError(
                    "`costs` must be a table with the columns annotator and cost; the columns are "
                    f"{listed(table.names)}."
                )
            rows = typed(table.pick([who, cost], [cost]), [cost])
            pairs = rows.project(f"{quote(who)}, {quote(cost)}").fetchall()
    costs = {str(name): value for name, value in pairs if name is not None and value is not None}
    if len(costs) < len(pairs):
        raise ValueError(
            f"`costs` must name each annotator once, with a cost; {counted(len(pairs), 'row')} "
            f"came for {counted(len(costs), 'annotator')}."
        )
    return costs
