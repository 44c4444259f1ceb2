"""Learned trust inside tables: on every engine, what `Trust.opinion` makes of the arrays."""

import json
from dataclasses import replace
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
    SOFT,
    Columns,
    Engine,
    assert_long,
    assert_wide,
    core_engines,
    crowd_table,
    every_engine,
    every_engine_but_dask,
    in_order,
    is_missing,
    without,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import one_in

from slencodings import Opinion, dense, from_table, fuse_table
from slencodings.tables import fuse as tables
from slencodings.trust import Trust, learn_trust
from slencodings.trust.objective import Ridge

NAMED: Roles = {"item": "item", "annotator": "who", "label": "said"}
STATED: Roles = NAMED | {"confidence": "sure"}


def rows_of(rows: int = 48, seed: int = 5) -> Columns:
    """A crowd with somebody new, an unlabelled row, and an item that nobody labelled."""
    columns = without(crowd_table(rows, seed), "p", "a")
    columns["who"][4:7] = ["eve", "fay", "eve"]
    return columns


def learn(columns: Columns, said: Any = STATED, **how: Any) -> Trust:
    annotations = from_table(columns, **said, confidence_scale=None)
    how = {"ridge": Ridge(0.1, 0.1, 0.1, 0.1)} | how
    return learn_trust(annotations, **how)


def expect(trust: Trust, columns: Columns, said: Any = STATED, **how: Any) -> dict[Any, Opinion]:
    """The opinion of each item by way of arrays."""
    how = {"confidence_scale": None} | how
    annotations = from_table(columns, **said, **how)
    opinion = trust.opinion(annotations)
    return {item: opinion.rows(n) for n, item in enumerate(annotations.items)}


@pytest.fixture(scope="module")
def trust() -> Trust:
    """Learned from a crowd that knows neither eve nor fay."""
    learned = learn(without(crowd_table(400, 1), "p", "a"))
    assert np.ptp(learned.worth) > 0
    assert len(learned.share) == 5
    assert (learned.meaning > 0).all()
    return learned


@every_engine
def test_every_engine_fuses_as_the_arrays_do(engine: Engine, trust: Trust) -> None:
    columns = rows_of()
    fused = fuse_table(engine(columns), **STATED, trust=trust)
    assert_wide(engine, fused, expect(trust, columns))


@every_engine
def test_the_long_form_has_all_labels_that_are_believed(engine: Engine, trust: Trust) -> None:
    columns, expected = rows_of(), expect(trust, rows_of())
    fused = fuse_table(engine(columns), **STATED, trust=trust, form="long")
    assert_long(engine, fused, expected)
    found = engine.read(fused)
    # A vote speaks about every label, so that whoever has one has all of them.
    assert len(found["item"]) == 3 * (len(expected) - 1) + 1
    assert [i for i, k in zip(found["item"], found["label"], strict=True) if is_missing(k)] == [
        "never said"
    ]


@every_engine_but_dask
def test_evidence_is_that_of_the_arrays_and_adds_up(engine: Engine, trust: Trust) -> None:
    columns = rows_of()

    def evidence(part: Columns) -> dict[Any, float]:
        read = engine.read(fuse_table(engine(part), **STATED, trust=trust, form="evidence"))
        assert set(read["dogmatic"]) == {0.0}
        keys = zip(read["item"], read["label"], strict=True)
        named = zip(keys, read["evidence"], strict=True)
        return {key: e for key, e in named if not is_missing(key[1])}

    whole = evidence(columns)
    for item, (b, u, _) in expect(trust, columns).items():
        for k, label in enumerate(LABELS):
            assert whole.get((item, label), 0.0) == pytest.approx(2 * b[k] / u, rel=1e-12)
    first, second = (
        evidence({n: v[s] for n, v in columns.items()}) for s in (slice(20), slice(20, None))
    )
    assert set(first) | set(second) == set(whole)
    for key, e in whole.items():
        assert first.get(key, 0) + second.get(key, 0) == pytest.approx(e, rel=1e-12)


PARTS = [
    {"by_confidence": False, "meaning": False},
    {"by_annotator": False, "meaning": False},
    {"by_annotator": False, "by_confidence": False},
    {"by_annotator": False, "by_confidence": False, "meaning": False},
]


@pytest.mark.parametrize("off", PARTS, ids="-".join)
@core_engines
def test_each_part_may_be_missing(engine: Engine, off: dict[str, bool]) -> None:
    columns = rows_of()
    trust = learn(without(crowd_table(200, 2), "p", "a"), **off)
    expected = expect(trust, columns)
    for form, assert_form in FORMS.items():
        assert_form(engine, fuse_table(engine(columns), **STATED, trust=trust, form=form), expected)


@core_engines
def test_labels_that_nobody_speaks_about_have_no_row(engine: Engine) -> None:
    columns = rows_of()
    trust = learn(columns, meaning=False)
    named = {
        (item, label)
        for item, label in zip(columns["item"], columns["said"], strict=True)
        if label is not None
    }
    fused = engine.read(fuse_table(engine(columns), **STATED, trust=trust, form="long"))
    assert len(fused["item"]) == len(named) + 1


@core_engines
def test_uncertainty_and_scales_are_read_where_it_was_learned_from_them(engine: Engine) -> None:
    columns = rows_of()
    columns["doubt"][17] = 0.3
    doubtful: Roles = NAMED | {"uncertainty": "doubt"}
    trust = learn(columns, doubtful)
    assert trust.from_uncertainty
    assert_wide(
        engine,
        fuse_table(engine(columns), **doubtful, trust=trust),
        expect(trust, columns, doubtful),
    )
    scale: Roles = {"confidence_scale": (1, 5)}
    fused = fuse_table(engine(columns), **STATED, **scale, trust=trust)
    assert_wide(engine, fused, expect(trust, columns, STATED, **scale))


def test_confidence_between_two_levels_is_the_same_level_in_tables() -> None:
    """1 - (1 - 0.3) is more than 0.3, which is just between 0.2 and 0.4 in binary numbers."""
    columns = rows_of()
    columns["doubt"] = [0.8, 0.6] * 24
    trust = learn(columns, NAMED | {"uncertainty": "doubt"})
    columns["doubt"] = [0.7] * 48
    expected = expect(trust, columns, NAMED | {"uncertainty": "doubt"})
    for engine in CORE:
        fused = fuse_table(engine(columns), **NAMED, uncertainty="doubt", trust=trust)
        assert_wide(engine, fused, expected)


@pytest.mark.parametrize("form", ["wide", "long"])
@core_engines
def test_soft_labels_are_found_by_name_in_any_order(engine: Engine, form: Any) -> None:
    columns = rows_of()
    said: Roles = STATED | {"label": SOFT}
    trust = learn(columns, said)
    expected = expect(trust, columns, said)
    assert_form = assert_wide if form == "wide" else assert_long
    for order in (SOFT, SOFT[::-1]):
        fused = fuse_table(engine(columns), **{**said, "label": order}, trust=trust, form=form)
        assert_form(engine, fused, expected, SOFT)


def test_lists_of_probabilities_need_the_names_that_trust_knows(trust: Trust) -> None:
    columns = {n: v for n, v in crowd_table().items() if n in ("item", "who", "sure", "p")}
    said: Roles = STATED | {"label": "p"}
    expected = expect(trust, columns, said, labels=LABELS)
    table = pl.DataFrame(columns)
    fused = fuse_table(table, **said, labels=LABELS, trust=trust)
    assert_wide(ENGINES["polars"], fused, expected)
    with pytest.raises(
        ValueError, match=r"'maybe', 'no', 'yes'; 3 are not, first 0. Name the prob"
    ):
        fuse_table(table, **said, trust=trust)


@pytest.mark.parametrize("engine", CORE[1:], ids=lambda e: e.name)
@given(data=st.data())
@one_in(12)
def test_the_order_of_rows_does_not_matter(
    engine: Engine, trust: Trust, data: st.DataObject
) -> None:
    columns = rows_of()
    order = data.draw(st.permutations(range(len(columns["item"]))))
    shuffled = {name: [values[i] for i in order] for name, values in columns.items()}
    fused = fuse_table(engine(shuffled), **STATED, trust=trust)
    assert_wide(engine, fused, expect(trust, columns))


@core_engines
@pytest.mark.parametrize("missing", ["drop", "trust"])
def test_missing_annotators_are_typical_and_missing_confidence_is_the_highest(
    engine: Engine, trust: Trust, missing: Any
) -> None:
    columns = rows_of()
    columns["who"][8], columns["who"][9], columns["sure"][10] = None, None, None
    filled = {name: list(values) for name, values in columns.items()}
    if missing == "trust":
        filled["who"][8:10], filled["sure"][10] = ["nobody", "nobody"], 5
    else:
        for row in (8, 9, 10):
            filled["said"][row], filled["who"][row], filled["sure"][row] = None, "ann", 1
    with pytest.raises(ValueError, match="name its annotator; 2 of 48 rows have none"):
        fuse_table(engine(columns), **STATED, trust=trust)
    fused = fuse_table(engine(columns), **STATED, trust=trust, missing=missing)
    assert_wide(engine, fused, expect(trust, filled))


@core_engines
def test_those_without_a_name_are_known_if_they_were_learned(engine: Engine) -> None:
    columns = rows_of()
    columns["who"][::4] = [None] * 12
    annotations = from_table(columns, **NAMED, missing="trust")
    trust = learn_trust(annotations, ridge=Ridge(0.1, 0.1, 0.1, 0.1))
    assert None in trust.annotators.tolist()
    assert trust.reliability[None] != pytest.approx(trust.reliability_of(["new"])["new"])
    expected = expect(trust, columns, NAMED, missing="trust")
    fused = fuse_table(engine(columns), **NAMED, missing="trust", trust=trust)
    assert_wide(engine, fused, expected)


@core_engines
def test_without_annotators_all_are_typical(engine: Engine, trust: Trust) -> None:
    columns = rows_of()
    said: Roles = {"item": "item", "label": "said", "confidence": "sure"}
    fused = fuse_table(engine(columns), **said, trust=trust)
    assert_wide(engine, fused, expect(trust, columns, said))


@core_engines
def test_repeats_are_dropped_before_they_count(engine: Engine, trust: Trust) -> None:
    columns = rows_of()
    if engine.name == "pandas":
        columns = {name: values[::-1] for name, values in columns.items()}
    expected = expect(trust, columns, STATED, duplicates="first")
    fused = fuse_table(engine(columns), **STATED, trust=trust, duplicates="first")
    assert_wide(engine, fused, expected)


@core_engines
def test_great_worth_keeps_all_its_digits(engine: Engine, trust: Trust) -> None:
    columns = rows_of()
    great = replace(trust, worth=np.asarray([1e8, 3e7, 1e-6, 2.0]))
    opinions = expect(great, columns)
    fused = fuse_table(engine(columns), **STATED, trust=great, values=["evidence", "uncertainty"])
    found = in_order(engine.read(fused), "item")
    for i, item in enumerate(found["item"]):
        b, u, _ = opinions[item]
        assert found["uncertainty"][i] == pytest.approx(u, rel=1e-12)
        assert found["evidence_no"][i] == pytest.approx(2 * b[1] / u, rel=1e-11)


@every_engine_but_dask
def test_names_may_be_numbers_and_come_back_from_storage(engine: Engine) -> None:
    columns = rows_of()
    columns["who"] = [ord(who[0]) for who in columns["who"]]
    columns["said"] = [None if v is None else LABELS.index(v) for v in columns["said"]]
    trust = Trust.from_json(learn(columns).to_json())
    fused = fuse_table(engine(columns), **STATED, trust=trust)
    assert_wide(engine, fused, expect(trust, columns), [0, 1, 2])


def test_the_result_has_base_rates_and_goes_to_arrays(trust: Trust) -> None:
    columns = rows_of()
    fused = fuse_table(columns, **STATED, trust=trust)
    items, labels, opinion = dense(fused)
    expected = expect(trust, columns)
    assert labels.tolist() == LABELS
    for n, item in enumerate(items):
        for x, y in zip(opinion.rows(n), expected[item], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    alpha = fuse_table(columns, **STATED, trust=trust, values="alpha", prior_weight=5)
    b, u, a = expected["i0"]
    given = [alpha[f"alpha_{label}"][alpha["item"].tolist().index("i0")] for label in LABELS]
    np.testing.assert_allclose(given, 5 * b / u + 5 * a, rtol=1e-12)


def test_the_result_says_what_trust_was_used(trust: Trust) -> None:
    frame = fuse_table(pd.DataFrame(rows_of()), **STATED, trust=trust)
    about = frame.attrs["slencodings"]
    assert (about["smoothing"], about["labels"]) == (0.0, LABELS)
    assert about["base_rate"] == trust.base_rate.tolist()
    assert about["trust"] == {
        "annotators": 4,
        "typical_worth": trust.typical_worth,
        "levels": [1.0, 2.0, 3.0, 4.0, 5.0],
        "meaning": True,
        "ridge": {"annotator": 0.1, "level": 0.1, "meaning": 0.1, "scale": 0.1},
        "losses": trust.losses,
        "converged": True,
    }
    table = fuse_table(pa.table(rows_of()), **STATED, trust=trust)
    assert json.loads(table.schema.metadata[b"slencodings"]) == about


# What contradicts


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"reliability": 0.5}, r"`trust` knows how reliable.*`reliability` came too. Pass one"),
        ({"smoothing": 0.01}, r"doubted; smoothing=0.01 came too. Leave one of them out"),
        ({"base_rate": [0.2, 0.3, 0.5]}, r"label is given; `base_rate` came too. Leave one"),
        ({"base_rate": ["a0", "a1", "a2"], "labels": LABELS}, r"`base_rate` came too"),
        ({"operator": "average"}, r"cumulative operator.*operator='average' came. Leave one"),
        ({"labels": ["no", "yes"]}, r"learned for, 'maybe', 'no', 'yes'; 'no', 'yes' came. Leave"),
        ({"confidence_scale": (1, 5)}, r"as it was stated, and needs no scale; `confidence_scale`"),
        ({"confidence_scale": abs}, r"needs no scale; `confidence_scale` came. Leave it out"),
        (
            {"confidence": None, "uncertainty": "doubt"},
            r"stated confidence, at levels 1, 2, 3, 4, 5; `uncertainty` came. Pass what was stated",
        ),
        (
            {"confidence": None},
            r"at levels 1, 2, 3, 4, 5; none came. Pass confidence='COLUMN', or one for all: "
            r"confidence=5",
        ),
    ],
    ids=str,
)
def test_what_trust_knows_better_is_refused(trust: Trust, how: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fuse_table(crowd_table(), **(STATED | how), trust=trust)


def test_what_says_the_same_as_trust_is_taken(trust: Trust) -> None:
    columns = rows_of()
    same = fuse_table(columns, **STATED, trust=trust, smoothing=0, labels=LABELS)
    expected = fuse_table(columns, **STATED, trust=trust)
    for name, values in expected.items():
        assert np.array_equal(same[name], values)


def test_what_is_no_trust_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"what sle.trust.learn_trust\(annotations\) gives; str came"
    ):
        fuse_table(rows_of(), **STATED, trust="learned")  # type: ignore[arg-type]


@core_engines
def test_labels_that_trust_does_not_know_are_counted_and_shown(
    engine: Engine, trust: Trust
) -> None:
    columns = rows_of()
    columns["said"][11] = "perhaps"
    message = (
        r"column 'said' must hold labels that trust was learned for, 'maybe', 'no', 'yes'; 1 of 48 "
        r"rows do not, (first|for example) 'perhaps' .*Learn trust from annotations that have them"
    )
    with pytest.raises(ValueError, match=message):
        fuse_table(engine(columns), **STATED, trust=trust)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("who", [1, 2] * 24, r"know annotators as column 'who' does, by Int64; 'ann' came"),
        ("said", [1.0, 2.0] * 24, r"know labels as column 'said' does, by Float64; 'maybe' came"),
    ],
)
def test_names_of_another_type_are_refused(
    trust: Trust, column: str, values: list[Any], message: str
) -> None:
    table = pl.DataFrame(rows_of() | {column: values})
    with pytest.raises(ValueError, match=message):
        fuse_table(table, **STATED, trust=trust)


def test_the_meaning_of_very_many_labels_is_for_arrays(
    trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_MEANT", 2)
    with pytest.raises(ValueError, match=r"at most 2 labels in a table; 3 came. .*meaning=False"):
        fuse_table(rows_of(), **STATED, trust=trust)
    plain = replace(trust, meaning=np.eye(3))
    assert len(fuse_table(rows_of(), **STATED, trust=plain)["item"]) == 9
