"""The five published panels from a shell: what is written is what Python has."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import Sle

from benchmarks.panels import SETS, asked_table, kept, read_set, same, write_set
from slencodings import from_table, panel


@pytest.mark.parametrize("name", SETS)
def test_a_published_panel_is_the_same_from_a_shell(
    sle: Sle, name: str, monkeypatch: pytest.MonkeyPatch
):
    """Some items and one model; all of it is for `python -m benchmarks.panels --shell`.

    What Python is asked is held against the table as Python reads it, so that it is asked once.
    """
    try:
        models = write_set(name, Path("set.csv"), items=8)[:1]
    except FileNotFoundError as error:
        pytest.skip(str(error))
    lines = Path("set.csv").read_text().splitlines()
    kept = [x for x in lines if not x.endswith(",model") or f",{models[0]}," in x]
    Path("set.csv").write_text("\n".join(kept) + "\n")
    describe, calls = panel.describe_panel, list[tuple[Any, Any, Any]]()

    def asked(annotations: Any, **how: Any) -> Any:
        calls.append((annotations, how, describe(annotations, **how)))
        return calls[-1][2]

    monkeypatch.setattr(panel, "describe_panel", asked)
    run = sle("panel", "set.csv", "--people", "kind=person", "--folds", "2", "--bootstrap", "10",
              "-q", "-o", "rows.json")  # fmt: skip
    assert run.code == 0, run.err
    ((a, how, found),) = calls
    columns = read_set(Path("set.csv"))
    kind = dict(zip(columns["annotator"], columns.pop("kind"), strict=True))
    crowd = from_table(columns, item="item", annotator="annotator", label="label")

    def rows(x: Any) -> list[tuple[str, str, str]]:
        names = x.items[x.item], x.annotators[x.annotator], x.labels[x.y]
        return sorted(zip(*([str(name) for name in column] for column in names), strict=True))

    assert rows(a) == rows(crowd)
    people = [kind[str(name)] == "person" for name in a.annotators]
    assert np.asarray(how["people"]).tolist() == people
    assert (how["folds"], how["bootstrap"], how["seed"]) == (2, 10, 0)
    written = json.loads(Path("rows.json").read_text())
    assert same(found, written)
    written["rows"][0]["votes"] += 1e-3
    assert not same(found, written)


def test_the_document_has_the_rows_that_were_kept_and_models_never_make_it_worse():
    rows = kept()
    assert set(rows) == set(SETS)
    page = (Path(__file__).parents[1] / "docs" / "panels.md").read_text(encoding="utf-8")
    table = page.split("<!-- asked -->\n")[1].split("\n<!-- end of asked -->")[0]
    assert table == asked_table(rows[name] for name in SETS)
    assert all(row.together <= row.alone for row in rows.values())
