"""Groups of annotators: how far they differ, on which items, and how sure that is."""

import json
import re
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Sle
from strategies import one_in

from slencodings import Annotations
from slencodings.annotators import compare_groups


def crowd_of(rows: list[tuple[Any, Any, Any]]) -> Annotations:
    item, who, label = zip(*rows, strict=True)
    (items, i), (people, m), (labels, y) = (
        np.unique(np.asarray(x), return_inverse=True) for x in (item, who, label)
    )
    return Annotations(i, m, y, np.zeros(len(y)), items, people, labels)


def by_hand(rows: list[tuple[int, str, int]]) -> float | None:
    """Pair after pair of answers; the group is the first letter of a name."""
    found = []
    for item in sorted({i for i, _, _ in rows}):
        here = {who: label for i, who, label in rows if i == item}
        a, b = ([label for who, label in here.items() if who[0] == g] for g in "ab")
        if len(a) > 1 and len(b) > 1:
            differ = [np.mean([x != y for x, y in pairs]) for pairs in (
                product(a, b), combinations(a, 2), combinations(b, 2))]  # fmt: skip
            found.append(differ[0] - (differ[1] + differ[2]) / 2)
    return float(np.mean(found)) if found else None


answers = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["a1", "a2", "a3", "b1", "b2", "b3"])),
    min_size=12,
    max_size=40,
    unique=True,
)


@one_in(3)
@given(answers, st.integers(0, 2**20))
def test_divergence_is_that_of_all_pairs_of_answers(pairs: list[tuple[int, str]], seed: int):
    rng = np.random.default_rng(seed)
    rows = [(i, who, int(rng.integers(0, 3))) for i, who in pairs]
    group = {who: who[0] for _, who in pairs}
    if len(set(group.values())) < 2 or len({label for _, _, label in rows}) < 2:
        return
    (found,) = compare_groups(crowd_of(rows), group).pairs
    wanted = by_hand(rows)
    if wanted is None:
        assert found.divergence is None
    else:
        assert found.divergence == pytest.approx(wanted, abs=1e-12)
        assert found.differ is not None
        assert found.left_differ is not None
        assert found.right_differ is not None
        mean = found.differ - (found.left_differ + found.right_differ) / 2
        assert mean == pytest.approx(wanted, abs=1e-12)


def simulated(rng: np.random.Generator, apart: float, items: int = 60) -> Annotations:
    """Three of each group; `apart` is how far the chance of a yes differs, up or down by item."""
    p = rng.uniform(apart / 2, 1 - apart / 2, items)
    side = rng.choice([-1, 1], items) * apart / 2
    chance = np.stack([p + side] * 3 + [p - side] * 3, axis=1)
    y = (rng.random(chance.shape) < chance).astype(int)
    i, m = np.indices(y.shape)
    return Annotations(
        i.ravel(), m.ravel(), y.ravel(), np.zeros(y.size), np.arange(items), np.arange(6),
        np.asarray([0, 1]),
    )  # fmt: skip


@pytest.mark.parametrize("apart", [0.0, 0.4])
def test_intervals_hold_the_true_divergence_as_often_as_they_say(apart: float):
    """1/2 |p - q|^2 = apart^2; 400 crowds, so that 95 % is known to 1.1 %."""
    rng = np.random.default_rng(5)
    held = list[bool]()
    means = list[float]()
    for _ in range(400):
        (pair,) = compare_groups(simulated(rng, apart), list("aaabbb")).pairs
        assert pair.low is not None
        assert pair.high is not None
        assert pair.divergence is not None
        held.append(pair.low <= apart**2 <= pair.high)
        means.append(pair.divergence)
    assert 0.92 < np.mean(held) < 0.98
    error = np.std(means) / 20
    assert abs(np.mean(means) - apart**2) < 4 * error  # without bias


def test_people_who_differ_among_themselves_are_no_groups_that_differ():
    rng = np.random.default_rng(0)
    rows = [
        (i, who, int(rng.integers(0, 2))) for i in range(200) for who in ("a1", "a2", "b1", "b2")
    ]
    groups = compare_groups(crowd_of(rows), {who: who[0] for who in ("a1", "a2", "b1", "b2")})
    (pair,) = groups.pairs
    assert pair.low is not None
    assert pair.low < 0 < (pair.high or 0)
    assert "not for sure" in str(groups) or "not seen to differ" in str(groups)


def test_what_divides_groups_comes_first_and_has_their_opinions():
    rows = [(i, who, "yes" if who[0] == "a" and i == 7 else "no") for i in range(9)
            for who in ("a1", "a2", "b1", "b2")]  # fmt: skip
    rows.append((99, "a1", "yes"))  # of this item the others know nothing
    groups = compare_groups(crowd_of(rows), {who: who[0] for _, who, _ in rows})
    first, *rest = groups.divided()
    assert (first.item, first.left, first.left_says, first.right_says) == (7, "a", "yes", "no")
    assert all(row.conflict < first.conflict for row in rest)
    assert 99 not in [row.item for row in rest]
    assert groups.opinion.uncertainty.shape == (2, 10)
    assert groups.opinion.uncertainty[1, -1] == 1
    assert groups.to_rows()[0]["conflict"] == first.conflict


def test_without_two_answers_of_each_nothing_is_said_of_how_far_groups_differ():
    rows = [(i, who, i % 2) for i in range(5) for who in ("a1", "b1", "c1", "c2", "a2")]
    rows = [row for row in rows if row[1] != "a2" or row[0] == 0]
    group = {who: who[0] for _, who, _ in rows}
    pairs = {(p.left, p.right): p for p in compare_groups(crowd_of(rows), group).pairs}
    assert pairs["a", "b"].divergence is None
    assert pairs["a", "c"].items == 1
    assert pairs["a", "c"].low is None
    assert "No item has two answers of each of a and b, b and c" in str(
        compare_groups(crowd_of(rows), group)
    )


def test_asking_one_person_again_changes_nothing():
    rows = [(i, who, (i * len(who)) % 3) for i in range(12) for who in ("a1", "a22", "b1", "b2222")]
    group = {who: who[0] for _, who, _ in rows}
    one, other = (compare_groups(crowd_of(x), group) for x in (rows, rows + rows[:7] * 3))
    assert one.pairs == other.pairs


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ({"ann": 1}, "2 to 20 are needed; 1 came"),
        ({}, r"0 came\. Is another column"),
        (["x"], r"one for each of the 2 annotators, \(2,\), or a mapping; 1 came"),
        ({"ann": 1, "bob": 2, "eve": 3}, "1 of 3 are not, first 'eve'. Leave them out"),
    ],
)
def test_groups_that_make_no_sense_are_refused(group: Any, words: str):
    with pytest.raises(ValueError, match=words):
        compare_groups(crowd_of([(1, "ann", 0), (1, "bob", 1)]), group)


def test_a_share_of_intervals_is_between_0_and_1():
    with pytest.raises(ValueError, match="`coverage` must lie between 0 and 1; 2 came"):
        compare_groups(crowd_of([(1, "ann", 0), (1, "bob", 1)]), ["a", "b"], coverage=2)


def test_a_column_of_every_annotators_own_is_no_group():
    rows = [(i, f"p{m}", (i + m) % 2) for i in range(3) for m in range(21)]
    with pytest.raises(ValueError, match=r"21 came \('p0', 'p1', 'p10', \.\.\.\)"):
        compare_groups(crowd_of(rows), [f"p{m}" for m in range(21)])


@pytest.fixture
def file(tmp_path: Path) -> str:
    lines = ["item,annotator,label,country,mood"]
    for i in range(16):
        for m, who in enumerate(("ann", "bob", "cyd", "dan", "eve")):
            country = "" if who == "eve" else "abroad" if m < 2 else "here"
            label = "rude" if m < 2 and i % 2 == 0 else "fine" if i % 3 else "odd"
            lines.append(f"i{i},{who},{label},{country},{i % 2}")
    path = tmp_path / "crowd.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_the_command_line_says_how_far_groups_differ_and_writes_what_divides_them(
    sle: Sle, file: str, tmp_path: Path
):
    run = sle("groups", file, "--group", "country", "--limit", "3", "-q")
    assert run.code == 0, run.err
    assert run.out.startswith("Annotators: abroad 2, here 2\n")
    assert "abroad and here differ: divergence 0." in run.out
    assert "What divides them most" in run.out
    run = sle("groups", file, "--group", "country", "-o", str(tmp_path / "rows.json"), "-q")
    written = json.loads((tmp_path / "rows.json").read_text())
    assert len(written["rows"]) == 16
    assert written["rows"][0]["left_says"] == "rude"
    assert written["about"]["pairs"][0]["low"] > 0


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("contry", "no column 'contry' for --group; .*Did you mean --group country"),
        ("mood", "for --group must say the same in all rows of an annotator; 'mood'"),
    ],
)
def test_a_column_that_is_no_group_is_refused_in_options(
    sle: Sle, file: str, column: str, words: str
):
    run = sle("groups", file, "--group", column, "-q")
    assert run.code == 1
    assert re.search(words, " ".join(run.err.split())), run.err


def test_groups_need_annotators(sle: Sle, tmp_path: Path):
    path = tmp_path / "nobody.csv"
    path.write_text("item,label,team\n1,a,x\n1,b,y\n2,a,x\n")
    run = sle("groups", str(path), "--group", "team", "-q")
    assert run.code == 1
    assert "--group is of annotators, and no column says who annotated" in " ".join(run.err.split())
