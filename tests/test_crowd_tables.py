"""Learned crowds inside tables: on every engine, what `votes` and `truth` make of the arrays."""

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

from slencodings import Opinion, dense, from_table, fuse_evidence, fuse_table
from slencodings.annotations import Annotations
from slencodings.choices import CrowdReading
from slencodings.tables.weights import doubt_at
from slencodings.trust import (
    Crowd,
    Ridge,
    count_each,
    crowd_from_json,
    crowd_to_json,
    learn_crowd,
)
from slencodings.trust.truth import Shrinking, TruthModel

NAMED: Roles = {"item": "item", "annotator": "who", "label": "said"}
STATED: Roles = NAMED | {"confidence": "sure"}


def rows_of(rows: int = 48, seed: int = 5) -> Columns:
    """A crowd with somebody new, an unlabelled row, and an item that nobody labelled."""
    columns = without(crowd_table(rows, seed), "p", "a")
    columns["who"][4:7] = ["eve", "fay", "eve"]
    return columns


# What every engine is held against is computed once for all of them.
READ: dict[str, Annotations] = {}
LEARNED: dict[str, Crowd] = {}


def read(columns: Columns, said: Any, **how: Any) -> Annotations:
    key = repr((columns, said, how))
    if key not in READ:
        READ[key] = from_table(columns, **said, **how)
    return READ[key]


def learn(columns: Columns, said: Any = STATED, **how: Any) -> Crowd:
    key = repr((columns, said, how))
    if key not in LEARNED:
        how = {"ridge": Ridge(0.1, 0.1, 0.1, 0.1)} | how
        LEARNED[key] = learn_crowd(read(columns, said, confidence_scale=None), **how)
    return LEARNED[key]


def expect(
    crowd: Crowd, columns: Columns, said: Any = STATED, reading: CrowdReading = "votes", **how: Any
) -> dict[Any, Opinion]:
    """The opinion of each item by way of arrays."""
    how = {"confidence_scale": None} | how
    annotations = read(columns, said, **how)
    opinion = getattr(crowd, reading)(annotations)
    return {item: opinion.rows(n) for n, item in enumerate(annotations.items)}


both_readings = pytest.mark.parametrize("reading", ["votes", "truth"])


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    """Learned from a crowd that knows neither eve nor fay, and reads votes as truth by some."""
    learned = learn(without(crowd_table(400, 1), "p", "a"))
    assert np.ptp(learned.worth) > 0
    assert len(learned.share) == 5
    assert learned.model is not None
    # Whether a vote also speaks for other labels is a close call here.
    return replace(learned, through_truth=0.4, meaning=None)


@every_engine
@both_readings
def test_every_engine_fuses_as_the_arrays_do(
    engine: Engine, crowd: Crowd, reading: CrowdReading
) -> None:
    columns = rows_of()
    fused = fuse_table(engine(columns), **STATED, crowd=crowd, reading=reading)
    assert_wide(engine, fused, expect(crowd, columns, reading=reading))


@every_engine
@both_readings
def test_the_long_form_has_all_labels(engine: Engine, crowd: Crowd, reading: CrowdReading) -> None:
    columns, expected = rows_of(), expect(crowd, rows_of(), reading=reading)
    fused = fuse_table(engine(columns), **STATED, crowd=crowd, reading=reading, form="long")
    found = assert_long(engine, fused, expected)
    # What is true may be any label, so that whoever has one has all of them.
    assert len(found["item"]) == 3 * (len(expected) - 1) + 1
    assert [i for i, k in zip(found["item"], found["label"], strict=True) if is_missing(k)] == [
        "never said"
    ]


def test_dask_may_simplify_a_plan_with_a_crowd(crowd: Crowd) -> None:
    columns, dask = rows_of(), ENGINES["dask"]
    fused = fuse_table(dask(columns), **STATED, crowd=crowd, reading="truth")
    simplified = {name: x.tolist() for name, x in fused.compute().items()}
    expected = expect(crowd, columns, reading="truth")
    assert_wide(dask._replace(read=lambda table: simplified), fused, expected)


@every_engine_but_dask
def test_evidence_adds_up_and_serves_both_readings(engine: Engine, crowd: Crowd) -> None:
    columns = rows_of()
    columns["item"] = [str(i) for i in columns["item"]]

    def evidence(part: Columns) -> Columns:
        return engine.read(fuse_table(engine(part), **STATED, crowd=crowd, form="evidence"))

    whole = evidence(columns)
    said = read(columns, STATED, confidence_scale=None)
    known = crowd.evidence(said)
    assert known.log_likelihood is not None
    for row in zip(*whole.values(), strict=True):
        item, label, e, dogmatic, _, told = row
        if not is_missing(label):
            n, k = said.items.tolist().index(item), LABELS.index(label)
            assert e == pytest.approx(crowd.prior_weight * known.votes[n, k], rel=1e-12)
            assert told == pytest.approx(known.log_likelihood[n, k], rel=1e-12)
            assert dogmatic == 0
    parts = [{n: v[s] for n, v in columns.items()} for s in (slice(20), slice(20, None))]
    first, second = map(evidence, parts)
    below = {name: first[name] + second[name] for name in whole}
    below["label"] = [None if is_missing(label) else label for label in below["label"]]
    stacked = engine(below)
    for reading in ("votes", "truth"):
        expected = expect(crowd, columns, reading=reading)
        for form, assert_form in FORMS.items():
            fused = fuse_evidence(stacked, crowd=crowd, reading=reading, form=form)
            assert_form(engine, fused, expected)


PARTS = [{"by_confidence": False}, {"by_annotator": False}]


@pytest.mark.parametrize("off", PARTS, ids="-".join)
@both_readings
@core_engines
def test_each_part_may_be_missing(
    engine: Engine, off: dict[str, bool], reading: CrowdReading
) -> None:
    columns = rows_of()
    crowd = learn(without(crowd_table(200, 2), "p", "a"), **off)
    expected = expect(crowd, columns, reading=reading)
    for form, assert_form in FORMS.items():
        fused = fuse_table(engine(columns), **STATED, crowd=crowd, reading=reading, form=form)
        assert_form(engine, fused, expected)


@both_readings
@core_engines
def test_votes_are_the_answer_where_there_is_no_model_of_truth(
    engine: Engine, crowd: Crowd, reading: CrowdReading
) -> None:
    columns = rows_of()
    for voting in (replace(crowd, model=None), count_each(from_table(columns, **NAMED))):
        expected = expect(voting, columns, reading=reading)
        stored = fuse_table(engine(columns), **STATED, crowd=voting, form="evidence")
        for form, assert_form in FORMS.items():
            fused = fuse_table(engine(columns), **STATED, crowd=voting, reading=reading, form=form)
            assert_form(engine, fused, expected)
            fused = fuse_evidence(stored, crowd=voting, reading=reading, form=form)
            assert_form(engine, fused, expected)


@core_engines
def test_labels_that_nobody_speaks_about_have_no_row(engine: Engine, crowd: Crowd) -> None:
    columns = rows_of()
    named = {
        (item, label)
        for item, label in zip(columns["item"], columns["said"], strict=True)
        if label is not None
    }
    voting = replace(crowd, through_truth=0.0)
    fused = engine.read(fuse_table(engine(columns), **STATED, crowd=voting, form="long"))
    assert len(fused["item"]) == len(named) + 1


@core_engines
def test_uncertainty_and_scales_are_read_where_it_was_learned_from_them(engine: Engine) -> None:
    columns = rows_of()
    columns["doubt"][17] = 0.3
    doubtful: Roles = NAMED | {"uncertainty": "doubt"}
    crowd = learn(columns, doubtful)
    assert crowd.from_uncertainty
    assert_wide(
        engine,
        fuse_table(engine(columns), **doubtful, crowd=crowd),
        expect(crowd, columns, doubtful),
    )
    scale: Roles = {"confidence_scale": (1, 5)}
    fused = fuse_table(engine(columns), **STATED, **scale, crowd=crowd)
    assert_wide(engine, fused, expect(crowd, columns, STATED, **scale))


def test_confidence_between_two_levels_is_the_same_level_in_tables() -> None:
    """1 - (1 - 0.3) is more than 0.3, which is just between 0.2 and 0.4 in binary numbers."""
    columns = rows_of()
    columns["doubt"] = [0.8, 0.6] * 24
    crowd = learn(columns, NAMED | {"uncertainty": "doubt"})
    columns["doubt"] = [0.7] * 48
    expected = expect(crowd, columns, NAMED | {"uncertainty": "doubt"})
    for engine in CORE:
        fused = fuse_table(engine(columns), **NAMED, uncertainty="doubt", crowd=crowd)
        assert_wide(engine, fused, expected)


@pytest.mark.parametrize("form", ["wide", "long"])
@core_engines
def test_soft_labels_are_found_by_name_in_any_order(engine: Engine, form: Any) -> None:
    columns = rows_of()
    said: Roles = STATED | {"label": SOFT}
    crowd = learn(columns, said)
    expected = expect(crowd, columns, said)
    assert_form = assert_wide if form == "wide" else assert_long
    for order in (SOFT, SOFT[::-1]):
        fused = fuse_table(engine(columns), **{**said, "label": order}, crowd=crowd, form=form)
        assert_form(engine, fused, expected, SOFT)


def test_lists_of_probabilities_need_the_names_that_the_crowd_knows(crowd: Crowd) -> None:
    columns = {n: v for n, v in crowd_table().items() if n in ("item", "who", "sure", "p")}
    said: Roles = STATED | {"label": "p"}
    expected = expect(crowd, columns, said, labels=LABELS)
    table = pl.DataFrame(columns)
    fused = fuse_table(table, **said, labels=LABELS, crowd=crowd)
    assert_wide(ENGINES["polars"], fused, expected)
    with pytest.raises(
        ValueError, match=r"'maybe', 'no', 'yes'; 3 are not, first 0. Name the prob"
    ):
        fuse_table(table, **said, crowd=crowd)


@pytest.mark.parametrize("engine", CORE[1:], ids=lambda e: e.name)
@given(data=st.data())
@one_in(12)
def test_the_order_of_rows_does_not_matter(
    engine: Engine, crowd: Crowd, data: st.DataObject
) -> None:
    columns = rows_of()
    order = data.draw(st.permutations(range(len(columns["item"]))))
    shuffled = {name: [values[i] for i in order] for name, values in columns.items()}
    fused = fuse_table(engine(shuffled), **STATED, crowd=crowd)
    assert_wide(engine, fused, expect(crowd, columns))


@core_engines
@pytest.mark.parametrize("missing", ["drop", "trust"])
def test_missing_annotators_are_typical_and_missing_confidence_is_the_highest(
    engine: Engine, crowd: Crowd, missing: Any
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
        fuse_table(engine(columns), **STATED, crowd=crowd)
    fused = fuse_table(engine(columns), **STATED, crowd=crowd, missing=missing)
    assert_wide(engine, fused, expect(crowd, filled))


@core_engines
def test_those_without_a_name_are_known_if_they_were_learned(engine: Engine) -> None:
    columns = rows_of()
    columns["who"][::4] = [None] * 12
    annotations = from_table(columns, **NAMED, missing="trust")
    crowd = learn_crowd(annotations, ridge=Ridge(0.1, 0.1, 0.1, 0.1))
    nobody = crowd.annotators.tolist().index(None)
    assert crowd.worth[nobody] != pytest.approx(crowd.typical_worth)
    expected = expect(crowd, columns, NAMED, missing="trust")
    fused = fuse_table(engine(columns), **NAMED, missing="trust", crowd=crowd)
    assert_wide(engine, fused, expected)


@core_engines
def test_without_annotators_all_are_typical(engine: Engine, crowd: Crowd) -> None:
    columns = rows_of()
    said: Roles = {"item": "item", "label": "said", "confidence": "sure"}
    fused = fuse_table(engine(columns), **said, crowd=crowd)
    assert_wide(engine, fused, expect(crowd, columns, said))


@core_engines
def test_repeats_are_dropped_before_they_count(engine: Engine, crowd: Crowd) -> None:
    columns = rows_of()
    if engine.name == "pandas":
        columns = {name: values[::-1] for name, values in columns.items()}
    expected = expect(crowd, columns, STATED, duplicates="first")
    fused = fuse_table(engine(columns), **STATED, crowd=crowd, duplicates="first")
    assert_wide(engine, fused, expected)


@core_engines
def test_great_worth_keeps_all_its_digits(engine: Engine, crowd: Crowd) -> None:
    columns = rows_of()
    great = replace(crowd, through_truth=0.0, worth=np.asarray([1e8, 3e7, 1e-6, 2.0]))
    opinions = expect(great, columns)
    fused = fuse_table(engine(columns), **STATED, crowd=great, values=["evidence", "uncertainty"])
    found = in_order(engine.read(fused), "item")
    for i, item in enumerate(found["item"]):
        b, u, _ = opinions[item]
        assert found["uncertainty"][i] == pytest.approx(u, rel=1e-12)
        expected = great.prior_weight * b[1] / u
        assert found["evidence_no"][i] == pytest.approx(expected, rel=1e-11)


@every_engine_but_dask
def test_names_may_be_numbers_and_come_back_from_storage(engine: Engine) -> None:
    columns = rows_of()
    columns["who"] = [ord(who[0]) for who in columns["who"]]
    columns["said"] = [None if v is None else LABELS.index(v) for v in columns["said"]]
    crowd = crowd_from_json(crowd_to_json(learn(columns)))
    fused = fuse_table(engine(columns), **STATED, crowd=crowd)
    assert_wide(engine, fused, expect(crowd, columns), [0, 1, 2])


def test_the_result_has_base_rates_and_goes_to_arrays(crowd: Crowd) -> None:
    columns = rows_of()
    fused = fuse_table(columns, **STATED, crowd=crowd)
    items, labels, opinion = dense(fused)
    expected = expect(crowd, columns)
    assert labels.tolist() == LABELS
    for n, item in enumerate(items):
        for x, y in zip(opinion.rows(n), expected[item], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    alpha = fuse_table(columns, **STATED, crowd=crowd, values="alpha", prior_weight=5)
    b, u, a = expected["i0"]
    at = alpha["item"].tolist().index("i0")
    given = [alpha[f"alpha_{label}"][at] for label in LABELS]
    np.testing.assert_allclose(given, 5 * b / u + 5 * a, rtol=1e-12)
    alpha = fuse_table(columns, **STATED, crowd=crowd, values="alpha")
    given, W = [alpha[f"alpha_{label}"][at] for label in LABELS], crowd.prior_weight
    np.testing.assert_allclose(given, W * b / u + W * a, rtol=1e-12)


def test_the_result_says_which_crowd_was_asked_what(crowd: Crowd) -> None:
    frame = fuse_table(pd.DataFrame(rows_of()), **STATED, crowd=crowd, reading="truth")
    about = frame.attrs["slencodings"]
    assert (about["smoothing"], about["labels"], about["reading"]) == (0.0, LABELS, "truth")
    assert about["base_rate"] == crowd.prior.tolist()
    assert about["crowd"] == {
        "annotators": 4,
        "typical_worth": crowd.typical_worth,
        "levels": [1.0, 2.0, 3.0, 4.0, 5.0],
        "share": crowd.share.tolist(),
        "through_truth": 0.4,
        "truth": True,
        "ridge": crowd.ridge._asdict(),
        "losses": crowd.losses,
        "converged": True,
    }
    table = fuse_table(pa.table(rows_of()), **STATED, crowd=crowd, reading="truth")
    assert json.loads(table.schema.metadata[b"slencodings"]) == about


# What contradicts


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"reliability": 0.5}, r"`crowd` knows what annotators.*`reliability` came too. Pass one"),
        ({"smoothing": 0.01}, r"doubted; smoothing=0.01 came too. Leave one of them out"),
        ({"base_rate": [0.2, 0.3, 0.5]}, r"label is given; `base_rate` came too. Leave one"),
        ({"base_rate": ["a0", "a1", "a2"], "labels": LABELS}, r"`base_rate` came too"),
        ({"operator": "average"}, r"cumulative operator.*operator='average' came. Leave one"),
        ({"labels": ["no", "yes"]}, r"learned for, 'maybe', 'no', 'yes'; 'no', 'yes' came. Leave"),
        ({"confidence_scale": abs}, r"a map from it came as `confidence_scale` too. Leave it out"),
        ({"confidence_scale": (1, 4)}, r"`confidence` must lie in \[1, 4\]"),
        ({"reading": "truths"}, r"`reading` must be one of votes, truth; 'truths' came"),
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
def test_what_a_crowd_knows_better_is_refused(crowd: Crowd, how: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fuse_table(crowd_table(), **(STATED | how), crowd=crowd)


def test_what_is_true_needs_somebody_to_ask() -> None:
    with pytest.raises(ValueError, match=r"a learned crowd, and none came; reading='truth' came"):
        fuse_table(rows_of(), **NAMED, reading="truth")


def test_what_says_the_same_as_the_crowd_is_taken(crowd: Crowd) -> None:
    columns = rows_of()
    same = fuse_table(
        columns, **STATED, crowd=crowd, smoothing=0, labels=LABELS, confidence_scale=(1, 5)
    )
    expected = fuse_table(columns, **STATED, crowd=crowd)
    for name, values in expected.items():
        assert np.array_equal(same[name], values)


def test_what_is_no_crowd_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"what sle.trust.learn_crowd\(annotations\) gives; str came"
    ):
        fuse_table(rows_of(), **STATED, crowd="learned")  # type: ignore[arg-type]


@core_engines
def test_labels_that_the_crowd_does_not_know_are_counted_and_shown(
    engine: Engine, crowd: Crowd
) -> None:
    columns = rows_of()
    columns["said"][11] = "perhaps"
    message = (
        r"column 'said' must hold labels that the crowd was learned for, 'maybe', 'no', 'yes'; 1 "
        r"of 48 rows do not, (first|for example) 'perhaps' .*Learn from annotations that have them"
    )
    with pytest.raises(ValueError, match=message):
        fuse_table(engine(columns), **STATED, crowd=crowd)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("who", [1, 2] * 24, r"know annotators as column 'who' does, by Int64; 'ann' came"),
        ("said", [1.0, 2.0] * 24, r"know labels as column 'said' does, by Float64; 'maybe' came"),
    ],
)
def test_names_of_another_type_are_refused(
    crowd: Crowd, column: str, values: list[Any], message: str
) -> None:
    table = pl.DataFrame(rows_of() | {column: values})
    with pytest.raises(ValueError, match=message):
        fuse_table(table, **STATED, crowd=crowd)


# Laws, by any crowd


@given(seed=st.integers(0, 2**32 - 1), reading=st.sampled_from(["votes", "truth"]))
@one_in(4)
def test_tables_are_arrays_for_any_crowd(seed: int, reading: CrowdReading) -> None:
    rng = np.random.default_rng(seed)
    columns = rows_of(seed=seed % 1000)
    known = from_table(columns, **STATED, confidence_scale=None)
    crowd = some_crowd(rng, known)
    expected = expect(crowd, columns, reading=reading)
    for engine in (ENGINES["polars"], ENGINES["duckdb-own"]):
        for form, assert_form in FORMS.items():
            fused = fuse_table(engine(columns), **STATED, crowd=crowd, reading=reading, form=form)
            assert_form(engine, fused, expected, crowd.labels.tolist())


def some_crowd(rng: np.random.Generator, known: Annotations) -> Crowd:
    """A crowd that might have been learned, of some of the annotators, with labels in any order."""
    crowd, K = count_each(known), len(known.labels)
    M = int(rng.integers(1, len(known.annotators)))
    confusion = rng.dirichlet(np.ones(K), (M, K)) * 0.98 + 0.02 / K
    shared = confusion.mean(axis=0)
    model = TruthModel(
        prior=rng.dirichlet(np.ones(K)),
        confusion=confusion,
        crowd=shared,
        habits=rng.dirichlet(np.ones(K), K),
        correlation=float(rng.random()),
        shrinking=Shrinking(3.0, along_order=False),
    )
    some = rng.random() < 0.8
    return replace(
        crowd,
        annotators=rng.permutation(known.annotators)[:M],
        worth=rng.gamma(1.0, size=M),
        count=np.ones(M, dtype=np.intp),
        typical_worth=float(rng.gamma(1.0)),
        levels=np.asarray([1.0, 3.0]),
        share=np.asarray([float(rng.random()), 1.0]),
        labels=rng.permutation(known.labels),
        base_rate=rng.dirichlet(np.ones(K)),
        through_truth=float(rng.choice([0.0, 0.3, 1.0])),
        prior_weight=float(rng.gamma(2.0)),
        meaning=rng.dirichlet(np.ones(K), K) if some and rng.random() < 0.5 else None,
        model=model if some else None,
        from_uncertainty=False,
    )


@both_readings
def test_sums_are_the_same_to_the_last_bit_in_any_order(
    crowd: Crowd, reading: CrowdReading
) -> None:
    columns = rows_of(400)
    backwards = {name: values[::-1] for name, values in columns.items()}
    one, other = (
        fuse_table(rows, **STATED, crowd=crowd, reading=reading) for rows in (columns, backwards)
    )
    for name, values in one.items():
        assert np.array_equal(values, other[name]), name


@core_engines
def test_unanimous_items_are_believed_by_that_label_alone(engine: Engine, crowd: Crowd) -> None:
    columns: Columns = {"item": ["i"] * 4, "who": ["ann", "bob", "cem", "eve"], "sure": [5] * 4}
    columns["said"] = ["yes"] * 4
    voting = replace(crowd, through_truth=0.0)
    fused = engine.read(fuse_table(engine(columns), **STATED, crowd=voting))
    assert [fused[f"belief_{label}"][0] for label in ("maybe", "no")] == [0, 0]
    assert fused["belief_yes"][0] > 0


@given(st.floats(1e-13, 1, exclude_max=True))
def test_confidence_is_above_a_level_below_the_doubt_at_it_and_nowhere_else(level):
    doubt = doubt_at(level)
    below = np.nextafter(doubt, 0)
    assert np.round(1 - doubt, 12) <= level < np.round(1 - below, 12)
