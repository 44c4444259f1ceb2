"""Trust over time: the alarm sounds for who got worse, and rarely for anybody else."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Sle
from strategies import one_in

from slencodings import Annotations
from slencodings.annotators import describe_annotators, drift
from slencodings.annotators.drift import LEAST_ON_A_SIDE


def simulated(
    rng: np.random.Generator,
    *,
    items: int = 60,
    people: int = 6,
    votes: int = 3,
    harder: float = 0.0,
    worse: int | None = None,
    dice: float = 1.0,
) -> tuple[Annotations, np.ndarray]:
    """Items in the order of time, and who is right 80 % of the time, some differently by item.

    `harder` is how much that falls from the first item to the last; from the middle on, `worse`
    throws dice so often.
    """
    order = np.argsort(rng.random((items, people)), axis=1)[:, :votes]
    i = np.repeat(np.arange(items), votes)
    m = order.ravel()
    skill = np.clip(0.8 + rng.normal(0, 0.1, items)[i] - harder * i / items, 0, 1)
    throws = (m == worse) & (i >= items / 2) & (rng.random(len(i)) < dice)
    right = np.where(throws, rng.random(len(i)) < 1 / 3, rng.random(len(i)) < skill)
    truth = rng.integers(0, 3, items)[i]
    y = np.where(right, truth, (truth + rng.integers(1, 3, len(i))) % 3)
    names = np.asarray([f"p{k}" for k in range(people)], dtype=object)
    a = Annotations(i, m, y, np.zeros(len(i)), np.arange(items), names, np.arange(3))
    return a, i.astype(float)


@pytest.mark.parametrize("harder", [0.0, 0.5])
def test_crowds_that_do_not_change_alarm_nobody_but_one_time_in_twenty(harder: float):
    """100 crowds of 6; if 5 % alarm, more than 11 do one time in 200. Harder items are no alarm."""
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(100):
        found = drift(*simulated(rng, items=80, harder=harder), rng=rng)
        assert all(row.p_value is not None for row in found)
        alarms += any(row.alarm for row in found)
    assert alarms <= 11


def test_p_values_of_who_does_not_change_are_no_smaller_than_they_should_be():
    rng = np.random.default_rng(3)
    rows = [row for _ in range(60) for row in drift(*simulated(rng, items=80), rng=rng)]
    p = np.asarray([row.p_value for row in rows])
    for level in (0.05, 0.2, 0.5):
        assert np.mean(p <= level) <= level + 3 * np.sqrt(level * (1 - level) / len(p))


def test_who_turns_to_dice_is_found_and_nobody_else():
    rng = np.random.default_rng(0)
    found = others = near = 0
    for _ in range(12):
        a, time = simulated(rng, items=400, worse=2)
        rows = drift(a, time, rng=rng)
        found += rows[2].alarm
        others += sum(row.alarm for row in rows if row.annotator != "p2")
        near += rows[2].alarm and 150 <= rows[2].since <= 250
        assert rows[2].before is not None
        assert rows[2].after is not None
        assert rows[2].agreement[0] > rows[2].agreement[-1]
    assert found >= 9
    assert near >= 8
    assert others <= 2


@one_in(10)
@given(st.integers(0, 2**20))
def test_the_order_of_rows_and_the_unit_of_time_do_not_matter(seed: int):
    rng = np.random.default_rng(seed)
    a, time = simulated(rng, items=40, worse=1)
    mixed = rng.permutation(len(time))
    first = np.datetime64("2026-01-01")
    days = first + time.astype("timedelta64[D]")
    one = drift(a, time)
    assert drift(a.rows(mixed), time[mixed]) == one
    for row, other in zip(one, drift(a, days), strict=True):
        assert other._replace(since=None) == row._replace(since=None)
        if row.since is not None:
            assert other.since == f"{first + np.timedelta64(int(row.since), 'D')}T00:00:00"


def test_quarters_and_sides_are_means_of_agreement():
    names = np.asarray(["ann", "bob"])
    i = np.repeat(np.arange(40), 2)
    y = np.where((i >= 30) & (np.arange(80) % 2 == 1), 1, 0)
    a = Annotations(i, np.tile([0, 1], 40), y, np.zeros(80), np.arange(40), names, np.arange(2))
    ann, bob = drift(a, i)
    assert bob.agreement == [1, 1, 1, 0]
    assert (bob.since, bob.before, bob.after, bob.alarm) == (30, 1, 0, True)
    assert ann[1:] == (40, [1, 1, 1, 0], 30, 1, 0, ann.p_value, True)  # of two, whose fault it is?


def test_who_answers_too_little_or_at_one_time_is_not_tested():
    rng = np.random.default_rng(1)
    a, time = simulated(rng, items=2 * LEAST_ON_A_SIDE, people=4)
    assert all(row.p_value is None and not row.alarm for row in drift(a, time))
    a, time = simulated(rng)
    rows = drift(a, np.zeros(len(time)))
    assert all(row.since is None and row.p_value is None for row in rows)
    unknown = np.full(len(time), np.nan)
    assert [row.annotations for row in drift(a, unknown)] == [0] * 6
    nothing = np.full(len(time), np.datetime64("NaT", "s"))
    assert [row.agreement for row in drift(a, nothing)] == [[]] * 6


def test_an_answer_that_is_given_again_later_counts_at_its_first_time():
    rng = np.random.default_rng(2)
    a, time = simulated(rng, worse=1)
    again = a.rows(np.concatenate([np.arange(len(time)), np.arange(20)]))
    assert drift(again, np.concatenate([time, np.full(20, 1e9)])) == drift(a, time)


@pytest.mark.parametrize(
    ("time", "how", "words"),
    [
        ([1.0], {}, r"one for each of the 180 annotations, \(180,\); shape \(1,\) came"),
        (None, {"level": 0}, "`level` must lie between 0 and 1; 0 came"),
        ("mixed", {}, "must be of one kind, to be sorted; (int and str|str and int) came"),
    ],
)
def test_times_that_make_no_sense_are_refused(time: Any, how: dict[str, Any], words: str):
    a, when = simulated(np.random.default_rng(0))
    given = np.asarray([1, "x"] * 90, dtype=object) if time == "mixed" else time or when
    with pytest.raises(ValueError, match=words):
        drift(a, given, **how)


def test_a_roster_says_who_got_worse_and_rows_have_it():
    a, time = simulated(np.random.default_rng(0), items=120, worse=2)
    roster = describe_annotators(a, time=time)
    row = next(row for row in roster.to_rows() if row["annotator"] == "p2")
    assert row["drift"] is True
    assert row["agreement_before"] > row["agreement_after"]
    words = str(roster)
    assert re.search(r"got worse over time, for sure \(6 tested\)\np2: since \d+\.0 others", words)
    calm = str(describe_annotators(a.rows(a.item < 50), time=time[a.item < 50]))
    assert calm.split("for sure (")[1].splitlines()[1] == "nobody"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    a, time = simulated(np.random.default_rng(0), items=120, worse=2)
    day = np.datetime64("2026-01-01") + time.astype(int)
    lines = ["item,annotator,label,when,second,note"]
    for q in range(len(time)):
        what = f"i{a.item[q]},{a.annotators[a.annotator[q]]},{'abc'[a.y[q]]}"
        lines.append(f"{what},{day[q]},{time[q]},{'noon' if q == 5 else day[q]}")
    path = tmp_path_factory.mktemp("drift") / "crowd.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("column", ["when", "second"])
def test_the_command_line_reads_dates_and_numbers(
    sle: Sle, file: Path, tmp_path: Path, column: str
):
    out = tmp_path / "rows.json"
    run = sle("reliability", str(file), "--time", column, "-o", str(out), "-q")
    assert run.code == 0, run.err
    rows = {row["annotator"]: row for row in json.loads(out.read_text())["rows"]}
    assert [name for name, row in rows.items() if row["drift"]] == ["p2"]
    since = rows["p2"]["drift_since"]
    assert since.startswith("2026-0") if column == "when" else 45 <= since <= 75


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--time", "wen"], "no column 'wen' of times; .* Did you mean --time when"),
        (["--time", "note"], "1 row does not fit the others, such as 'noon'"),
        (["--time", "label"], "'label' must hold times, .* 360 rows do not fit .* such as 'a'"),
    ],
)
def test_a_column_that_is_no_time_is_refused_in_options(
    sle: Sle, file: Path, typed: list[str], words: str
):
    run = sle("reliability", str(file), *typed, "-q")
    assert run.code == 1
    assert re.search(words, " ".join(run.err.split())), run.err


def test_time_needs_annotators_and_some_times(sle: Sle, tmp_path: Path):
    path = tmp_path / "nobody.csv"
    path.write_text("item,label,when\n1,a,1\n1,b,2\n2,a,3\n")
    run = sle("reliability", str(path), "--time", "when", "-q")
    assert "--time is of what somebody said, and no column says who" in " ".join(run.err.split())
    path.write_text("item,annotator,label,when\n1,ann,a,\n1,bob,b,\n2,ann,a,\n")
    run = sle("reliability", str(path), "--time", "when", "-q")
    assert "'when' must hold times; it is empty" in " ".join(run.err.split())
