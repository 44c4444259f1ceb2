"""When annotations were made: how a column of times is read, and what annotators do over time."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowds import make, named_crowd
from hypothesis import given, settings
from hypothesis import strategies as st
from reporting import COMPARED

from slencodings.files.crowd import read_crowd
from slencodings.files.scan import scan
from slencodings.report import render, summarise
from slencodings.report.people import FEWEST_IN_PART, MOST_PARTS, fell, trends
from slencodings.report.without import without_each
from slencodings.tables.roles import Reading
from slencodings.trust import weigh

pytestmark = pytest.mark.usefixtures("here")


def crowd(column: str, values: list[str]) -> str:
    """Two people on each item, and a column with these values."""
    lines = [f"doc,part,annotator,label,{column}"]
    lines += [f"{n // 4},{n // 2 % 2},a{n % 2},{'xy'[n % 3 % 2]},{v}" for n, v in enumerate(values)]
    Path("crowd.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "crowd.csv"


def times(column: str, values: list[str], time: str | bool = True) -> tuple[Any, str]:
    """The times of annotations in the order of items and annotators, and what was said."""
    said: list[str] = []
    reading = Reading(item="doc,part")
    found = read_crowd(
        crowd(column, values), reading, time=time, say=lambda _, text: said.append(text)
    )
    a = found.annotations
    if found.times is None:
        return None, "\n".join(said)
    return found.times[np.lexsort((a.annotator, a.item))].tolist(), "\n".join(said)


def day(n: int, hour: int = 10) -> str:
    return f"2026-11-{n:02} {hour:02}:30:00"


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("timestamp", [day(16), day(17), day(18), day(19)]),
        ("Created At", [f"2026-11-{n}T10:30:00Z" for n in range(16, 20)]),
        ("Timestamp", [f"11/{n}/2026 10:30:00" for n in range(16, 20)]),
        ("Timestamp", [f"11/{n}/2026 10:30:00 AM" for n in range(16, 20)]),
        ("date", [f"{n}/11/2026 10:30" for n in range(16, 20)]),
        ("date", [f"{n}.11.2026 10:30:00" for n in range(16, 20)]),
        ("time", [str(1794825000 + 86400 * n) for n in range(4)]),
        ("time", [str(1000 * (1794825000 + 86400 * n)) for n in range(4)]),
        ("time", [str(1e6 * (1794825000 + 86400 * n)) for n in range(4)]),
    ],
)
def test_times_are_read_as_people_and_tools_write_them(column: str, values: list[str]):
    found, said = times(column, values)
    assert [str(np.datetime64(t, "s")).replace("T", " ") for t in found] == [
        day(n) for n in range(16, 20)
    ]
    assert "not used" not in said


def test_a_time_that_is_missing_is_unknown_and_the_first_of_a_pair_counts():
    found, _ = times("time", [day(16), "", day(18), day(19)])
    assert [t is None for t in found] == [False, True, False, False]
    Path("crowd.csv").write_text(
        f"item,annotator,label,time\np,a,x,{day(17)}\np,a,y,{day(16)}\np,b,y,{day(18)}\n"
    )
    twice = read_crowd("crowd.csv", time=True)
    assert twice.times is not None
    assert np.datetime_as_string(twice.times, unit="D").tolist() == [
        "2026-11-16",
        "2026-11-16",
        "2026-11-18",
    ]


def test_numbers_that_may_be_durations_are_times_only_if_that_is_said():
    found, said = times("time", ["9", "30.5", "12", "8"])
    assert found is None
    assert "'time' holds numbers from 8 to 30.5, which may be how long it took; time='time'" in said
    assert times("time", ["9", "30.5", "12", "8"], "time")[0] == [9, 30.5, 12, 8]


def test_a_date_of_the_item_is_no_time_of_its_annotations_unless_that_is_said():
    dates = [day(16), day(16), day(18), day(18)]
    found, said = times("date", dates)
    assert found is None
    assert "'date' has one value for all annotations of an item, so it may tell of the item" in said
    assert "time='date' takes it for when it was annotated" in said
    assert len(times("date", dates, "date")[0]) == 4


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1/2/2026", "3/4/2026", "5/6/2026", ""], "the day or the month may come first, such as"),
        ([day(16), "soon", day(18), day(19)], r"1 row does not fit the others, such as 'soon'"),
        (["a", "b", day(16), day(17)], r"2 rows do not fit the others, such as 'a'"),
        ([""] * 4, "must hold times; it is empty"),
    ],
)
def test_what_is_no_time_is_refused_if_it_was_named_and_else_told(values: list[str], words: str):
    with pytest.raises(ValueError, match=words + r".* Name another: time='COLUMN'\."):
        times("date", values, "date")
    found, said = times("date", values)
    assert found is None
    assert re.search(words + ".* It is not used; time='COLUMN' names another", said)


def test_a_column_of_times_must_be_there_and_no_name_is_guessed_for_a_role():
    with pytest.raises(ValueError, match=r"no column 'dat' of times; .* Did you mean time='date'"):
        times("date", [day(16)] * 4, "dat")
    with pytest.raises(
        ValueError, match=r"no column 'zzz' of times; the columns are 'doc', [^?]*$"
    ):
        times("date", [day(16)] * 4, "zzz")
    crowd("x", ["1"] * 4)
    assert read_crowd("crowd.csv", Reading(item="doc"), time=True).times is None
    Path("crowd.csv").write_text("date,label,annotator\n1,x,a\n1,y,b\n")
    assert read_crowd("crowd.csv", Reading(item="date"), time=True).times is None
    Path("crowd.csv").write_text(f"item,label,date\n1,x,{day(16)}\n1,y,{day(17)}\n")
    assert read_crowd("crowd.csv", time=True).times is None, "nobody is named"


def test_columns_are_shown_and_gold_is_read_of_items_that_several_columns_name():
    name = crowd("text,truth", [f"text {n // 2},x" for n in range(4)])
    found = read_crowd(name, Reading(item="doc,part"), gold="truth", show=["text"])
    assert found.annotations.items.tolist() == ["0 / 0", "0 / 1"]
    assert found.fields == {"text": ["text 0", "text 1"]}
    assert found.truth is not None
    assert found.truth.tolist() == [[1, 0], [1, 0]]
    with pytest.raises(ValueError, match=r"no column 'tex' to show; .* Did you mean 'text'\?"):
        read_crowd(name, Reading(item="doc,part"), show=["tex"])


@settings(max_examples=30)
@given(st.integers(0, 80), st.integers(1, 40), st.integers(0, 2**16))
def test_parts_hold_all_of_the_time_in_order_and_enough_of_it(n: int, moments: int, seed: int):
    rng = np.random.default_rng(seed)
    said = make([*range(80), *range(n)], [0] * 80 + [1] * n, rng.integers(0, 2, 80 + n), K=2, M=2)
    when = rng.integers(0, moments, len(said.item)).astype(float)
    when[rng.random(len(when)) < 0.1] = np.nan
    weighed = weigh(said.completed(0.7))
    without = without_each(said, weighed)
    for m, parts in enumerate(trends(said, without, when)):
        # Items of one annotator tell nothing.
        own = (said.annotator == m) & (said.item < n) & ~np.isnan(when)
        assert len(parts) != 1
        assert len(parts) <= MOST_PARTS
        if not parts:
            continue
        assert sum(part["annotations"] for part in parts) == own.sum()
        assert min(part["annotations"] for part in parts) >= FEWEST_IN_PART
        ends = [float(part[end]) for part in parts for end in ("begin", "end")]
        assert ends == sorted(ends)
        assert all(a < b for a, b in zip(ends[1:-1:2], ends[2::2], strict=True))
        for part in parts:
            inside = own & (when >= float(part["begin"])) & (when <= float(part["end"]))
            right = [
                said.y[q]
                == np.argmax(weighed.crowd.truth_of(_others(said, weighed, int(q))).probability)
                for q in np.flatnonzero(inside)
            ]
            assert part["annotations"] == len(right)
            assert part["right"] == pytest.approx(np.mean(right), abs=1e-9)
            assert 0 <= part["right_low"] <= part["right"] <= part["right_high"] <= 1


def _others(said: Any, weighed: Any, q: int) -> Any:
    """What all others on its item say together."""
    keep = (said.item == said.item[q]) & (said.annotator != said.annotator[q])
    left = said.rows(keep)
    votes = left.sums(weighed.weight[keep])[said.item[q]][None]
    evidence = weighed.crowd.evidence(left)
    return evidence._replace(votes=votes, n=evidence.n[[said.item[q]]])


def test_nothing_is_told_of_too_little_time():
    said = named_crowd(n=30)
    without = without_each(said, weigh(said))
    nobody: list[list[Any]] = [[] for _ in said.annotators]
    assert trends(said, without, None) == nobody
    assert trends(said, without, np.full(len(said.item), np.nan)) == nobody
    assert trends(said, without, np.zeros(len(said.item))) == nobody


def test_who_becomes_worse_is_named_and_days_are_told_by_the_day(monkeypatch: pytest.MonkeyPatch):
    # Encodings are not compared here, which takes longer than all else.
    monkeypatch.setattr(COMPARED, "FEWEST_COMPARED", 10**6)
    rng = np.random.default_rng(0)
    n = 120
    truth, item = rng.integers(0, 2, n), np.repeat(np.arange(n), 5)
    who = np.tile(np.arange(5), n)
    # The last is right at first, and then says anything.
    wrong = rng.random(len(item)) < np.where((who == 4) & (item >= n // 2), 0.9, 0.1)
    said = make(item, who, np.where(wrong, 1 - truth[item], truth[item]), N=n)
    when = np.datetime64("2026-03-01T09:00", "s") + item * np.timedelta64(2, "h")
    found = summarise(said, times=when)
    rows = found["annotators"]["rows"]
    assert {row["annotator"]: fell(row["trend"]) for row in rows} == {
        "0": False, "1": False, "2": False, "3": False, "4": True,
    }  # fmt: skip
    trend = next(row["trend"] for row in rows if row["annotator"] == "4")
    assert [trend[0]["begin"], trend[-1]["end"]] == ["2026-03-01", "2026-03-11"]
    assert {part["annotations"] for part in trend} == {20}
    page = render(found)
    at = next(n for n, row in enumerate(rows) if row["annotator"] == "4")
    link = f'<a href="#annotator-{at}"><bdi dir="auto">4</bdi></a>'
    assert f"; less often right than at first: {link}." in page
    assert f"1 is clearly less often right in the last part of it than in the first: {link}" in page
    # By the minute within a few days, and nobody is named who only seems to become worse.
    without = without_each(said, weigh(said))
    short = trends(said, without, when[0] + item * np.timedelta64(2, "m"))
    assert {trend[0]["begin"] for trend in short} == {"2026-03-01 09:00"}
    mixed = trends(said, without, when[rng.permutation(n)[item] * 5])
    for row in rows:
        row["trend"] = mixed[int(row["annotator"])]
    steady = render(found)
    assert "none is clearly less often right" in steady
    assert "less often right than at first" not in steady


def test_the_times_of_an_export_are_found():
    made = [
        {"id": n, "created_at": day(16 + n), "completed_by": n, "result": [choice]}
        for n, choice in enumerate(
            {"type": "choices", "from_name": "q", "value": {"choices": [label]}}
            for label in ("yes", "no")
        )
    ]
    Path("export.json").write_text(json.dumps([{"id": 1, "data": {}, "annotations": made}]))
    crowd = read_crowd("export.json", time=True)
    assert crowd.times is not None
    assert np.datetime_as_string(crowd.times, unit="D").tolist() == ["2026-11-16", "2026-11-17"]


def test_files_of_a_crowd_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []

    def counted(*given: Any) -> Any:
        looks.append(given)
        return scan(*given)

    monkeypatch.setattr("slencodings.files.scan.scan", counted)
    monkeypatch.setattr("slencodings.files.crowd.scan", counted)
    read_crowd(crowd("time", [str(n) for n in range(8)]), Reading(item="doc,part"), time=True)
    assert len(looks) == 1
