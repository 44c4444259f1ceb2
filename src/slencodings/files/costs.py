"""What annotations cost, from a file."""

from __future__ import annotations

from slencodings.annotations import counted
from slencodings.files.duckdb import opened
from slencodings.files.values import typed
from slencodings.tables.roles import Reading, find_columns, listed

# Other names for what something costs.
_COST = ("cost", "costs", "price", "rate", "wage", "fee")


def read_costs(source: str) -> dict[str, float]:
    """What an annotation of each annotator costs, by name, for `triage(costs=...)`.

    A table with a column of annotators, found by its usual names, and one called cost or price.
    """
    with opened(source, Reading()) as (_, table):
        who = find_columns(table.names).get("annotator")
        cost = next((name for name in table.names if name.strip().lower() in _COST), None)
        if who is None or cost is None:
            raise ValueError(
                "`costs` must be a table with the columns annotator and cost; the columns are "
                f"{listed(table.names)}."
            )
        pairs = typed(table.pick([who, cost], [cost]), [cost]).fetchall()
    costs = {str(name): value for name, value in pairs if name is not None and value is not None}
    if len(costs) < len(pairs):
        raise ValueError(
            f"`costs` must name each annotator once, with a cost; {counted(len(pairs), 'row')} "
            f"came for {counted(len(costs), 'annotator')}."
        )
    return costs
