"""Tables in, tables of opinions out: the same on every engine, and as arrays would have it."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from crowd_files import Roles
from engines import (
    CORE,
    ENGINES,
    FORMS,
    LABELS,
    PRIORS,
    SKILLS,
    SOFT,
    Columns,
    Engine,
    assert_long,
    assert_wide,
    core_engines,
    crowd_table,
    every_engine,
    every_engine_but_dask,
    fuse_items,
    in_order,
    is_missing,
    one_hot,
    soft,
    without,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_close, one_in

from slencodings import Opinion, aggregate, alpha, from_table, fuse_table
from slencodings.confidence import Calibration
from slencodings.tables import long as long_form

HARD: Roles = {"item": "item", "label": "said"}
NUMBERS: Roles = {"uncertainty": "doubt", "reliability": "skill"}
OPERATORS = [
    (operator, smoothing)
    for operator in ("cumulative", "average", "weighted", "constraint")
    for smoothing in (0.0, 0.01)
    if (operator, smoothing) != ("constraint", 0.0)
]


def hard_crowd() -> Columns:
    """Plain columns, which every engine holds alike."""
    return without(crowd_table(), "p", "a")


def expect(columns: Columns, **how: Any) -> dict[Any, Opinion]:
    how = {"uncertainty": columns["doubt"], "reliability": columns["skill"]} | how
    return fuse_items(columns["item"], one_hot(columns["said"]), **how)


@every_engine
def test_all_engines_fuse_as_arrays_do(engine: Engine) -> None:
    columns = hard_crowd()
    table = fuse_table(engine(columns), **HARD, **NUMBERS)
    assert_wide(engine, table, expect(columns))


@every_engine
def test_certain_annotations_silence_all_others_without_smoothing(engine: Engine) -> None:
    columns = hard_crowd()
    table = fuse_table(engine(columns), **HARD, **NUMBERS, smoothing=0, form="long")
    expected = expect(columns, smoothing=0)
    assert any(opinion.uncertainty == 0 for opinion in expected.values())
    assert_long(engine, table, expected)


@core_engines
@pytest.mark.parametrize(("operator", "smoothing"), OPERATORS)
def test_every_operator_is_that_of_the_arrays(
    engine: Engine, operator: str, smoothing: float
) -> None:
    columns = hard_crowd()
    how = {"operator": operator, "smoothing": smoothing}
    table, expected = engine(columns), expect(columns, **how)
    assert_wide(engine, fuse_table(table, **HARD, **NUMBERS, **how), expected)
    assert_long(engine, fuse_table(table, **HARD, **NUMBERS, **how, form="long"), expected)


@core_engines
@pytest.mark.parametrize(("operator", "smoothing"), OPERATORS)
def test_every_operator_takes_soft_labels(engine: Engine, operator: str, smoothing: float) -> None:
    columns = without(crowd_table(), "p", "a")
    how = {"operator": operator, "smoothing": smoothing}
    y = soft(crowd_table()["p"])
    numbers = {"uncertainty": columns["doubt"], "reliability": columns["skill"]}
    expected = fuse_items(columns["item"], y, **numbers, **how)
    table = engine(columns)
    for form, assert_form in FORMS.items():
        result = fuse_table(table, item="item", label=SOFT, form=form, **NUMBERS, **how)
        assert_form(engine, result, expected, SOFT)


@pytest.mark.parametrize(("operator", "smoothing"), OPERATORS)
def test_duckdb_gives_the_same_long_form_of_labels_too_many_to_stack(
    monkeypatch: pytest.MonkeyPatch, operator: str, smoothing: float
) -> None:
    engine, columns = ENGINES["duckdb"], hard_crowd()
    how = {"operator": operator, "smoothing": smoothing}
    expected = expect(columns, **how)
    for most in (long_form.MOST_STACKED, 0):
        monkeypatch.setattr(long_form, "MOST_STACKED", most)
        result = fuse_table(engine(columns), **HARD, **NUMBERS, **how, form="long")
        assert_long(engine, result, expected)


def test_dask_takes_soft_labels_and_other_operators() -> None:
    engine, columns = ENGINES["dask"], hard_crowd()
    numbers = {"uncertainty": columns["doubt"], "reliability": columns["skill"]}
    how = {"operator": "weighted", "smoothing": 0.0}
    expected = fuse_items(columns["item"], soft(crowd_table()["p"]), **numbers, **how)
    result = fuse_table(engine(columns), item="item", label=SOFT, form="long", **NUMBERS, **how)
    assert_long(engine, result, expected, SOFT)
    how = {"operator": "constraint", "smoothing": 0.1}
    assert_wide(
        engine, fuse_table(engine(columns), **HARD, **NUMBERS, **how), expect(columns, **how)
    )


@every_engine_but_dask
def test_soft_labels_come_in_one_column_of_lists_too(engine: Engine) -> None:
    columns = crowd_table()
    expected = fuse_items(columns["item"], soft(columns["p"]))
    named = fuse_table(engine(columns), item="item", label="p", labels=LABELS)
    assert_wide(engine, named, expected)
    assert_long(
        engine,
        fuse_table(engine(columns), item="item", label="p", form="long"),
        expected,
        [0, 1, 2],
    )


@pytest.mark.parametrize("kind", ["polars array", "pyarrow fixed", "numpy rows", "2-d array"])
def test_lists_of_fixed_length_are_lists(kind: str) -> None:
    p = [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]
    table: Any = {"item": ["a", "b", "b"], "p": np.asarray(p)}
    if kind == "polars array":
        table = pl.DataFrame(table, schema_overrides={"p": pl.Array(pl.Float32, 2)})
    elif kind == "pyarrow fixed":
        table = pa.table({"item": table["item"], "p": pa.array(p, type=pa.list_(pa.float64(), 2))})
    elif kind == "numpy rows":
        table = pd.DataFrame({"item": table["item"], "p": list(np.asarray(p))})
    result = fuse_table(table, item="item", label="p")
    expected = fuse_items(["a", "b", "b"], np.asarray(p))
    assert_close(np.asarray(result["belief_1"]), np.asarray([expected[i].belief[1] for i in "ab"]))


def test_pandas_objects_are_read_to_the_last_row() -> None:
    """DuckDB takes the type of objects from a sample, and would round 0.5 to 0 in this one."""
    rows = 5000
    p: list[list[float]] = [[1, 0]] * rows
    sure: list[float] = [1] * rows
    p[1234], sure[1234] = [0.25, 0.75], 0.5
    table = pd.DataFrame(
        {"item": [q == 1234 for q in range(rows)], "p": p, "sure": sure}, dtype=object
    )
    for columns in (table, dict(table)):
        result = fuse_table(columns, item="item", label="p", confidence="sure", smoothing=0)
        assert_close(np.asarray(result["uncertainty"]), np.asarray([0.0, 0.5]))
        assert_close(np.asarray(result["belief_1"]), np.asarray([0.0, 0.375]))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"uncertainty": 0.3, "reliability": 0.7},
        {"confidence": 4, "confidence_scale": (1, 5)},
        {"confidence": "sure", "confidence_scale": (1, 5)},
        {"confidence": "sure", "confidence_scale": (5, 1), "reliability": SKILLS},
        {"confidence": "skill", "missing": "trust"},
        {"confidence": SKILLS, "reliability": "skill"},
        {"uncertainty": SKILLS, "reliability": SKILLS},
        {
            "confidence": "sure",
            "confidence_scale": Calibration(
                level=np.asarray([2.0, 4.0]),
                agreement=np.asarray([0.5, 0.75]),
                count=np.asarray([3, 4]),
                uncertainty=np.asarray([0.6, 0.2]),
            ),
        },
    ],
    ids=lambda spec: "-".join(spec) or "nothing",
)
@core_engines
def test_doubt_and_trust_are_columns_numbers_mappings_or_absent(
    engine: Engine, spec: dict[str, Any]
) -> None:
    columns = hard_crowd()
    by_skill = np.asarray([SKILLS[who] for who in columns["who"]])

    def numbers(given: Any, absent: float) -> Any:
        if isinstance(given, str):
            return np.asarray(columns[given], dtype=float)
        return by_skill if isinstance(given, dict) else absent if given is None else given

    uncertainty = numbers(spec.get("uncertainty"), 0.0)
    if "confidence" in spec:
        stated, scale = numbers(spec["confidence"], 0.0), spec.get("confidence_scale", (0, 1))
        calibrated = [0.2 if score >= 4 else 0.6 for score in columns["sure"]]
        uncertainty = (
            calibrated
            if isinstance(scale, Calibration)
            else np.interp(stated, sorted(scale), [1, 0] if scale[0] < scale[1] else [0, 1])
        )
    reliability = numbers(spec.get("reliability"), 1.0)
    expected = expect(columns, uncertainty=uncertainty, reliability=reliability)
    assert_wide(engine, fuse_table(engine(columns), **HARD, annotator="who", **spec), expected)


@every_engine
def test_what_a_mapping_does_not_know_follows_the_missing_policy(engine: Engine) -> None:
    columns = hard_crowd()
    known = {"ann": 0.9, "bob": 0.2}
    table = engine(columns)
    by_who = {"annotator": "who", "reliability": known}
    trusted = [known.get(who, 1.0) for who in columns["who"]]
    expected = expect(columns, uncertainty=0.0, reliability=trusted)
    assert_wide(engine, fuse_table(table, **HARD, **by_who, missing="trust"), expected)
    if engine.name == "dask":
        return  # one query is enough of its time
    said = [v if w in known else None for v, w in zip(columns["said"], columns["who"], strict=True)]
    expected = expect(columns | {"said": said}, uncertainty=0.0, reliability=trusted)
    assert_wide(engine, fuse_table(table, **HARD, **by_who, missing="drop"), expected)


@core_engines
def test_base_rates_are_shared_by_name_or_by_order(engine: Engine) -> None:
    columns = hard_crowd()
    a = [0.2, 0.5, 0.3]
    expected = expect(columns, base_rate=np.asarray(a))
    for base_rate in (a, np.asarray(a), dict(zip(LABELS, a, strict=True))):
        table = fuse_table(engine(columns), **HARD, **NUMBERS, base_rate=base_rate)
        assert_wide(engine, table, expected)
        assert "base_rate_yes" in engine.read(table)
    for a in ([0.2, 0.5, 0.3], [0.25, 0.5, 0.25]):  # Two that are alike among others, too.
        long = fuse_table(engine(columns), **HARD, **NUMBERS, base_rate=a, form="long")
        assert_long(engine, long, expect(columns, base_rate=np.asarray(a)))


@core_engines
@pytest.mark.parametrize("smoothing", [0.0, 0.01])
@pytest.mark.parametrize("label", ["said", SOFT], ids=["hard", "soft"])
def test_base_rates_by_row_are_fused_like_those_of_opinions(
    engine: Engine, smoothing: float, label: Any
) -> None:
    columns = crowd_table()
    y = one_hot(columns["said"]) if label == "said" else soft(columns["p"])
    doubt = [1.0 if v is None else v for v in columns["doubt"]]
    how = {"uncertainty": doubt, "base_rate": np.asarray(columns["a"]), "smoothing": smoothing}
    expected = fuse_items(columns["item"], y, **how)
    names = LABELS if label == "said" else SOFT
    for base_rate in (PRIORS, "a"):
        table = fuse_table(
            engine(columns),
            item="item",
            label=label,
            labels=names,
            uncertainty="doubt",
            base_rate=base_rate,
            smoothing=smoothing,
        )
        assert_wide(engine, table, expected, names)


@core_engines
@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_every_value_can_be_asked_for(engine: Engine, smoothing: float) -> None:
    columns = hard_crowd()
    values = ["alpha", "evidence", "base_rate", "belief", "uncertainty", "probability", "belief"]
    how = {"smoothing": smoothing, "prior_weight": 3.0, "base_rate": [0.2, 0.3, 0.5]}
    table = engine(columns)
    expected = expect(columns, smoothing=smoothing, base_rate=np.asarray([0.2, 0.3, 0.5]))
    found = in_order(
        engine.read(fuse_table(table, **HARD, **NUMBERS, **how, values=values)), "item"
    )
    for i, item in enumerate(found["item"]):
        opinion = expected[item]
        a = opinion.base_rate
        evidence = alpha(opinion, prior_weight=3.0) - 3.0 * a
        for k, label in enumerate(LABELS):
            row = {kind: found[f"{kind}_{label}"][i] for kind in set(values) - {"uncertainty"}}
            assert_close(np.asarray(row["alpha"]), alpha(opinion, prior_weight=3.0)[k])
            assert_close(np.asarray(row["evidence"]), evidence[k])
            assert_close(np.asarray(row["base_rate"]), a[k])
    only = engine.read(fuse_table(table, **HARD, values="alpha"))
    assert list(only) == ["item", "alpha_maybe", "alpha_no", "alpha_yes"]


@pytest.mark.parametrize("engine", [e for e in CORE if e.name != "pandas"], ids=lambda e: e.name)
@given(data=st.data())
@one_in(4)
def test_the_order_of_rows_does_not_matter(engine: Engine, data: st.DataObject) -> None:
    columns = hard_crowd()
    order = data.draw(st.permutations(range(len(columns["item"]))))
    shuffled = {name: [values[i] for i in order] for name, values in columns.items()}
    assert_wide(engine, fuse_table(engine(shuffled), **HARD, **NUMBERS), expect(columns))


@given(st.integers(0, 2**32 - 1), st.integers(4, 60), st.sampled_from(OPERATORS))
def test_any_crowd_is_fused_as_arrays_do(seed: int, rows: int, how: tuple[str, float]) -> None:
    engine, columns = ENGINES["polars-lazy"], without(crowd_table(max(rows, 20), seed), "p", "a")
    chosen: Roles = dict(zip(("operator", "smoothing"), how, strict=True))
    table = fuse_table(engine(columns), **HARD, **NUMBERS, **chosen, labels=LABELS)
    assert_wide(engine, table, expect(columns, **chosen))


@core_engines
def test_certain_annotations_are_counted_beside_the_evidence_of_the_others(engine: Engine) -> None:
    columns = {"item": ["p"] * 4, "said": ["no", "no", "yes", "no"], "doubt": [0.0, 0.5, 0.0, 0.8]}
    how = {"uncertainty": "doubt", "smoothing": 0.0, "form": "evidence"}
    rows = engine.read(fuse_table(engine(columns), item="item", label="said", **how))
    found = dict(
        zip(rows["label"], zip(rows["evidence"], rows["dogmatic"], strict=True), strict=True)
    )
    assert_close(np.asarray(found["no"]), np.asarray([2 * (1 + 0.25), 1]))
    assert_close(np.asarray(found["yes"]), np.asarray([0.0, 1.0]))


@every_engine_but_dask
@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_evidence_of_halves_adds_up_to_that_of_the_whole(engine: Engine, smoothing: float) -> None:
    columns = hard_crowd()
    half = len(columns["item"]) // 2
    halves = [{n: v[s] for n, v in columns.items()} for s in (slice(half), slice(half, None))]

    def evidence(part: Columns) -> dict[Any, np.ndarray]:
        table = fuse_table(
            engine(part), **HARD, **NUMBERS, smoothing=smoothing, labels=LABELS, form="evidence"
        )
        assert type(table) is engine.kind
        rows = engine.read(table)
        named = zip(rows["item"], rows["label"], rows["evidence"], rows["dogmatic"], strict=True)
        return {
            (item, None if is_missing(label) else label): np.asarray([e, d])
            for item, label, e, d in named
        }

    first, second, whole = (evidence(part) for part in (*halves, columns))
    added = {
        key: first.get(key, np.zeros(2)) + second.get(key, np.zeros(2)) for key in first | second
    }
    for key in whole | added:
        # A row without label says that the item was there, and adds nothing.
        assert_close(added.get(key, np.zeros(2)), whole.get(key, np.zeros(2)))
    assert ("never said", None) in whole
    expected = expect(columns, smoothing=smoothing)
    for (item, label), (e, dogmatic) in whole.items():
        b, u, _ = expected[item]
        if label is not None and dogmatic == 0 and u > 0:
            k = LABELS.index(label)
            assert_close(np.asarray(e), np.asarray(2 * b[k] / u))


@every_engine_but_dask
def test_the_array_path_gives_the_same_opinions(engine: Engine) -> None:
    columns = hard_crowd()
    annotations = from_table(engine(columns), **HARD, uncertainty="doubt")
    said = [v is not None for v in columns["said"]]
    skill = np.asarray(columns["skill"], dtype=float)[said]
    opinions = aggregate.sle(annotations, reliability=skill)
    expected = {item: opinions.rows(n) for n, item in enumerate(annotations.items)}
    assert_wide(engine, fuse_table(engine(columns), **HARD, **NUMBERS), expected)
