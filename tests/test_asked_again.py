"""One source asked several times is one annotation: averaging within, cumulating across."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import (
    CORE,
    ENGINES,
    FORMS,
    LABELS,
    Columns,
    Engine,
    assert_wide,
    core_engines,
    crowd_table,
    one_hot,
    soft,
    without,
)
from hypothesis import example, given
from hypothesis import strategies as st
from running import Sle
from strategies import ANY, assert_close, one_in, present

from slencodings import (
    Annotations,
    Opinion,
    discount,
    encode,
    from_table,
    fuse,
    fuse_average,
    fuse_table,
    smooth,
)
from slencodings.trust import Crowd, learn_crowd

NAMED: dict[str, Any] = {"item": "item", "annotator": "who"}
FUSE = {"cumulative": fuse, "average": fuse_average}


def stacked(opinions: list[Opinion]) -> Opinion:
    return Opinion(*(np.stack(x) for x in zip(*opinions, strict=True)))


def expected(
    columns: Columns,
    y: np.ndarray,
    *,
    smoothing: float = 0.01,
    operator: str = "cumulative",
    reliability: Any = 1.0,
) -> dict[Any, Opinion]:
    """Item after item and source after source, in arrays; nobody is a source of their own."""
    R, K = y.shape
    r = np.broadcast_to(np.asarray(reliability, dtype=float), (R,))
    u = np.asarray([0.0 if x is None else x for x in columns["doubt"]])
    said = smooth(discount(encode(y, u), r), smoothing)
    fused: dict[Any, Opinion] = {}
    for item in dict.fromkeys(columns["item"]):
        sources: dict[Any, list[int]] = {}
        for q in range(R):
            if columns["item"][q] == item and not np.isnan(y[q]).any():
                who = columns["who"][q]
                sources.setdefault(q if who is None else who, []).append(q)
        each = [fuse_average(said.rows(rows)) for rows in sources.values()]
        nothing = Opinion(np.zeros(K), np.asarray(1.0), np.full(K, 1 / K))
        fused[item] = FUSE[operator](stacked(each)) if each else nothing
    return fused


def table() -> Columns:
    """Certain, vacuous and missing answers; most pairs several times, some by nobody."""
    columns = without(crowd_table(), "a", "a0", "a1", "a2", "sure")
    columns["doubt"] = [0.3 if x is None else x for x in columns["doubt"]]
    columns["skill"] = [0.3 if x is None else x for x in columns["skill"]]
    columns["who"] = [None if q % 11 == 5 else who for q, who in enumerate(columns["who"])]
    pairs = [pair for pair in zip(columns["item"], columns["who"], strict=True) if pair[1]]
    assert len(set(pairs)) < 0.7 * len(pairs)
    return columns


def given_roles(**how: Any) -> dict[str, Any]:
    return NAMED | {"uncertainty": "doubt", "missing": "trust", "duplicates": "average"} | how


# Without smoothing there is another way to compute, and the core engines are the ways.
@pytest.mark.parametrize(
    ("engine", "smoothing"),
    [*((engine, 0.01) for engine in ENGINES.values()), *((engine, 0) for engine in CORE)],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_every_engine_averages_within_a_source_and_cumulates_across(
    engine: Engine, smoothing: float
) -> None:
    columns = table()
    wanted = expected(
        columns, one_hot(columns["said"]), smoothing=smoothing, reliability=columns["skill"]
    )
    asked = engine(without(columns, "p", "p0", "p1", "p2"))
    forms = {"wide": assert_wide} if engine.name == "dask" else FORMS  # It takes seconds a query.
    for name, assert_form in forms.items():
        form: Any = name
        result = fuse_table(
            asked, label="said", form=form, smoothing=smoothing, reliability="skill",
            **given_roles(),
        )  # fmt: skip
        assert_form(engine, result, wanted)


@core_engines
@pytest.mark.parametrize("operator", ["cumulative", "average"])
def test_soft_answers_and_sources_that_depend_on_each_other_are_averaged_too(
    engine: Engine, operator: Any
) -> None:
    columns = table()
    result = fuse_table(
        engine(without(columns, "p")), label=["p0", "p1", "p2"], labels=LABELS, operator=operator,
        **given_roles(),
    )  # fmt: skip
    wanted = expected(columns, soft(columns["p"]), operator=operator)
    assert_wide(engine, result, wanted)


@core_engines
def test_of_certain_answers_those_of_one_source_count_once(engine: Engine) -> None:
    columns: Columns = {"item": ["i"] * 3, "who": ["a", "a", "b"], "said": ["x", "x", "y"]}
    fused = fuse_table(engine(columns), **NAMED, label="said", smoothing=0, duplicates="average")
    assert engine.read(fused)["belief_x"] == [0.5]


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    return learn_crowd(from_table(crowd_table(400, 1), **NAMED, label="said"))


ROLES: Any = NAMED | {"label": "said", "missing": "trust", "duplicates": "average"}


@pytest.fixture(scope="module")
def arrays() -> Annotations:
    return from_table(table(), **ROLES)


@core_engines
@pytest.mark.parametrize("reading", ["votes", "truth"])
def test_a_learned_crowd_averages_in_tables_as_in_arrays(
    engine: Engine, reading: Any, crowd: Crowd, arrays: Annotations
) -> None:
    columns = without(table(), "p", "p0", "p1", "p2", "doubt", "skill")
    for some in (crowd, replace(crowd, through_truth=0.4)):
        opinion = getattr(some, reading)(arrays)
        wanted = {item: opinion.rows(n) for n, item in enumerate(arrays.items)}
        result = fuse_table(engine(columns), **ROLES, crowd=some, reading=reading)
        assert_wide(engine, result, wanted)


def test_evidence_of_averaged_answers_adds_up_and_is_fused_to_the_same():
    from slencodings import fuse_evidence

    columns = without(table(), "p", "p0", "p1", "p2")
    roles = given_roles(label="said")
    wide = fuse_table(columns, **roles)
    again = fuse_evidence(fuse_table(columns, **roles, form="evidence"))
    for name in wide:
        if name != "item":
            assert_close(wide[name], again[name])


def annotations_of(y: np.ndarray, u: np.ndarray, source: list[int]) -> Annotations:
    R, K = y.shape
    return Annotations(
        item=np.zeros(R, dtype=int),
        annotator=np.asarray(source),
        y=y,
        uncertainty=u,
        items=np.asarray(["i"]),
        annotators=np.arange(3),
        labels=np.arange(K),
    )


@given(st.lists(st.tuples(st.integers(0, 2), ANY, st.integers(0, 2)), min_size=1, max_size=9))
@example([(1, 0.2, 0), (0, 0.5, 1), (1, 0.6, 1), (1, 1.0, 2), (2, 0.0, 0), (2, 0.3, 1)])
def test_arrays_hold_just_what_averaging_fusion_of_each_source_gives(
    rows: list[tuple[int, float, int]],
):
    y, u = np.eye(3)[[k for _, _, k in rows]], np.asarray([u for _, u, _ in rows])
    source = [m for m, _, _ in rows]
    merged = annotations_of(y, u, source).averaged()
    assert merged.annotator.tolist() == list(dict.fromkeys(source))
    said, found = encode(y, u), encode(merged.vectors, merged.uncertainty)
    for n, m in enumerate(merged.annotator):
        wanted = fuse_average(said.rows(np.flatnonzero(np.asarray(source) == m)))
        assert_close(found.rows(n).belief, wanted.belief)
        assert_close(found.rows(n).uncertainty, wanted.uncertainty)


def test_those_without_a_name_are_averaged_with_nobody():
    who = np.asarray(["ann", "bob", None], dtype=object)
    item, source = np.asarray([0, 0, 1, 1, 0, 1, 0, 0]), np.asarray([2, 0, 2, 1, 2, 1, 1, 0])
    for first in range(8):  # Whichever comes first.
        rows = np.roll(np.arange(8), first)
        y, u = np.eye(3)[rows % 3], np.linspace(0.1, 0.9, 8)[rows]
        a = annotations_of(y, u, source[rows].tolist())
        a = replace(a, item=item[rows], items=np.asarray(["i", "j"]), annotators=who)
        merged, nobody = a.averaged(), a.rows(a.annotator == 2)
        alone = merged.rows(merged.annotator == 2)
        assert alone.item.tolist() == nobody.item.tolist()
        assert_close(alone.vectors, nobody.vectors)
        assert_close(alone.uncertainty, nobody.uncertainty)
        named = zip(a.item.tolist(), a.annotator.tolist(), strict=True)
        pairs = {(i, m) for i, m in named if m != 2}
        assert len(merged.item) == len(pairs) + len(nobody.item)


def test_who_says_the_same_each_time_keeps_one_label_and_what_they_stated_is_averaged():
    a = annotations_of(np.eye(3)[[2, 1, 2, 2]], np.full(4, 0.5), [1, 0, 1, 1])
    stated, reliability = np.asarray([1.0, 4, 2, 6]), np.asarray([0.2, 1, 0.4, 0.3])
    hard = replace(a, y=np.asarray([2, 1, 2, 2]), stated=stated, reliability=reliability)
    merged = hard.averaged()
    assert merged.y.tolist() == [2, 1]
    assert present(merged.stated).tolist() == [3, 4]
    assert_close(present(merged.reliability), np.asarray([0.3, 1]))
    unlike = replace(hard, y=np.asarray([2, 1, 2, 0])).averaged()
    assert_close(unlike.y, np.asarray([[1 / 3, 0, 2 / 3], [0, 1, 0]]))


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 2), ANY), min_size=1, max_size=4))
def test_asking_again_for_the_same_answer_changes_nothing(n: int, rows: list[tuple[int, float]]):
    y, u = np.eye(3)[[k for k, _ in rows]], np.asarray([u for _, u in rows])
    once = annotations_of(y, u, list(range(len(rows)))[:3] + [0] * (len(rows) - 3))
    often = once.rows(np.tile(np.arange(len(rows)), n)).averaged()
    once = once.averaged()
    assert often.annotator.tolist() == once.annotator.tolist()
    assert_close(often.vectors, once.vectors)
    assert_close(often.uncertainty, once.uncertainty)


@given(st.permutations(range(8)))
@one_in(5)
def test_the_order_of_answers_does_not_matter(order: list[int]):
    columns = {name: values[:8] for name, values in table().items()}
    mixed = {name: [values[q] for q in order] for name, values in columns.items()}
    roles = given_roles(label="said", labels=LABELS)
    one, other = (fuse_table(without(c, "p"), **roles) for c in (columns, mixed))
    for name in one:
        if name != "item":
            assert_close(one[name], other[name])


def test_pairs_that_are_not_repeated_are_read_as_ever():
    columns: Columns = {"item": [1, 1, 2], "who": ["a", "b", "a"], "said": ["x", "y", "x"]}
    plain = from_table(columns, **NAMED, label="said")
    averaged = from_table(columns, **NAMED, label="said", duplicates="average")
    assert averaged.y.tolist() == plain.y.tolist()
    one, other = (
        fuse_table(columns, **NAMED, label="said", duplicates=how) for how in ("all", "average")
    )
    assert all(one[name].tolist() == other[name].tolist() for name in one)
    # More items than people, each asked once of each.
    item, who = np.divmod(np.arange(12), 3)
    every = annotations_of(np.eye(2)[who % 2], np.zeros(12), who.tolist())
    every = replace(every, item=item, items=np.arange(4))
    assert every.averaged() is every


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"operator": "weighted"}, "cumulative and average; operator='weighted' came. Pass dupl"),
        ({"operator": "constraint"}, "operator='constraint' came"),
        ({"annotator": None}, "duplicates='average' needs to know who annotated; no annotator"),
        (
            {"base_rate": ["a0", "a1", "a2"], "labels": LABELS},
            "by row cannot be averaged with duplicates='average'",
        ),
    ],
)
def test_what_cannot_be_averaged_is_said(how: dict[str, Any], words: str):
    columns = crowd_table()
    with pytest.raises(ValueError, match=words):
        fuse_table(columns, **given_roles(label="said", **how))
    if "annotator" in how:
        with pytest.raises(ValueError, match=words):
            from_table(columns, **given_roles(label="said", **how))


def test_rows_of_dask_without_an_order_can_be_averaged():
    dask = ENGINES["dask"](without(table(), "p", "p0", "p1", "p2"))
    annotations = from_table(dask, **given_roles(label="said"))
    pairs = list(zip(annotations.item, annotations.annotator, strict=True))
    named = [(i, m) for i, m in pairs if annotations.annotators[m] is not None]
    assert len(named) == len(set(named))


def test_the_command_line_makes_one_source_of_one_judge(sle: Sle, tmp_path: Path):
    rows = [["item", "annotator", "label"], *(["p", "gpt", "yes"] for _ in range(9))]
    rows += [["p", "ann", "no"], ["p", "bob", "no"], ["q", "ann", "yes"]]
    path = tmp_path / "asked.csv"
    path.write_text("\n".join(map(",".join, rows)) + "\n")
    asked = ["encode", str(path), "--weigh", "stated", "--values", "probability"]
    run = sle(*asked, "-o", str(tmp_path / "all.jsonl"))
    assert "--duplicates average|first|last|error" in run.err
    assert sle(*asked, "--duplicates", "average", "-o", str(tmp_path / "one.jsonl")).code == 0
    yes = [
        json.loads((tmp_path / name).read_text().splitlines()[0])["probability_yes"]
        for name in ("all.jsonl", "one.jsonl")
    ]
    assert yes[0] > 0.8
    assert yes[1] < 0.4
