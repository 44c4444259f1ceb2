"""What rows of benchmarks say: ratios, exponents, tables, figures and documents."""

import re

import numpy as np
import pytest
from benchmark_rows import DOCUMENT, row
from matplotlib import pyplot as plt

from benchmarks import encode, growth, lost, moved, tables, turns
from benchmarks.__main__ import QUESTIONS
from benchmarks.turns import by_turn, exponent, ratios, read, with_spread

# What rows say


def test_a_ratio_is_taken_within_a_turn():
    rows = [row("fast", t, x) for t, x in enumerate((1.0, 10.0, 4.0))]
    rows += [row("slow", t, x) for t, x in enumerate((2.0, 30.0))]
    # The third turn has one side only.
    assert ratios(by_turn(rows, "slow"), by_turn(rows, "fast")) == [2.0, 3.0]
    assert ratios(by_turn(rows, "fast"), by_turn(rows, "slow")) == [0.5, pytest.approx(1 / 3)]


def test_only_rows_of_the_size_count():
    rows = [row(seconds=1.0), row(seconds=2.0, rows=20), row("fast", 1, None)]
    assert by_turn(rows, "fast", rows=20) == {0: 2.0}
    assert by_turn(rows, "fast", rows=10) == {0: 1.0}
    assert by_turn(rows, "fast", "megabytes", rows=20) == {0: 1.0}


def test_few_turns_show_their_ends_and_many_their_middle_half():
    assert with_spread([]) == ""
    assert with_spread([1.5]) == "1.50"
    assert with_spread([1.0, 4.0, 2.0]) == "2.00 (1.00 to 4.00)"
    # 0, 1, ..., 100: the quarters are at 24.5 and 75.5 of 102 places.
    assert with_spread(list(range(101)), 1) == "50.0 (24.5 to 75.5)"


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_is_that_power(power):
    sizes = [10.0**k for k in range(2, 9)]
    assert exponent(sizes, [3e-6 * n**power for n in sizes]) == pytest.approx(power)


def test_the_exponent_is_that_of_the_upper_decades():
    # Starting takes 1 s whatever the size: seen over all sizes it hides how the rest grows.
    sizes = [10.0**k for k in range(2, 9)]
    seconds = [1 + 1e-6 * n for n in sizes]
    slope, _ = np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)
    assert exponent(sizes, seconds) == pytest.approx(slope)
    assert exponent(sizes, seconds, decades=6) < slope
    assert 0.8 < slope < 1


# Tables and figures


def test_a_limit_that_is_missed_is_bold_and_stands_only_where_it_is_meant():
    floor, case = "duckdb GROUP BY", "duckdb fuse_table"
    size = {"labels": 5, "per_item": 10, "annotators": 1000}
    rows = [
        row(name, turn, seconds, megabytes=2.0, **size, rows=n)
        for n in (1_000_000, 10_000_000)
        for turn in (0, 1)
        for name, seconds in ((floor, 1.0), (case, 3.0))
    ]
    _, cells = tables.engines(rows)
    assert cells == [
        [case, "1,000,000", "3", floor, "3.00 (3.00 to 3.00)", "", "1.00 (1.00 to 1.00)", ""],
        [
            case,
            "10,000,000",
            "3",
            floor,
            "**3.00 (3.00 to 3.00)**",
            "1.4",
            "1.00 (1.00 to 1.00)",
            "1.7",
        ],
    ]


def test_the_largest_table_shows_gigabytes_and_their_limit():
    size = {"rows": encode.MOST, "labels": 5, "per_item": 10, "annotators": 1000}
    rows = [
        row("duckdb GROUP BY", 0, 9.0, megabytes=5000.0, **size),
        row("duckdb COPY of GROUP BY", 0, 10.0, megabytes=5000.0, **size),
        row("sle encode --weigh stated", 0, 15.0, megabytes=4600.0, **size),
    ]
    _, cells = tables.largest(rows)
    copy = "duckdb COPY of GROUP BY"
    assert cells == [
        ["duckdb GROUP BY", "9", "", "", "", "5.00", ""],
        [copy, "10", "", "", "", "5.00", ""],
        ["sle encode --weigh stated", "15", copy, "**1.50**", "1.2", "**4.60**", "4.5"],
    ]


def test_a_sweep_shows_the_exponent_of_each_turn():
    rows = [
        row(
            "duckdb fuse_table",
            turn,
            1e-6 * n**power,
            question="growth",
            megabytes=100 + n / 1e5,
            **(growth.TABLE | {"rows": n}),
        )
        for turn, power in enumerate((0.5, 1.0, 1.5))
        for n in growth.SIZES["rows"]
    ]
    heads, (cells,) = tables.sweep_table(rows, growth.SWEEPS[0])
    assert heads[1:4] == ["100,000", "1,000,000", "10,000,000"]
    assert cells[1:4] == ["0.1", "1", "10"]
    assert cells[4:] == ["1.00 (0.50 to 1.50)", "10"]


def test_memory_that_was_not_enough_is_said_in_the_table():
    size = {"rows": 10, "labels": 5, "per_item": 5, "annotators": 3, "question": "aggregate"}
    rows = [
        row("crowd-kit Wawa", 0, None, note="out of memory", **size),
        row("wawa", 0, 0.25, loading=0.0, **size),
        row("wawa, from the table", 0, 0.25, loading=0.5, **size),
    ]
    _, (cells,) = tables.speed(rows)
    ours = ["10 of 3 annotators", "0.25", "0.75"]
    assert cells[1:] == [*ours, "crowd-kit Wawa", "out of memory", "", "", ""]


def test_no_rows_give_tables_that_say_so():
    parts = tables.parts([], "none.parquet")
    assert "never" in parts.pop("about")
    assert all(part.startswith("Not measured yet") for part in parts.values())


# The kept rows and their documents


def kept():
    """The rows that the document is made of, which it names."""
    name = re.search(r"`benchmarks/rows/(\w+\.parquet)`", DOCUMENT.read_text(encoding="utf-8"))
    assert name
    return read(turns.FOLDER / name[1]), name[1]


def test_the_document_shows_the_rows():
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, part in tables.parts(*kept()).items():
        assert f"<!-- {name} -->\n{part}\n<!-- end of {name} -->" in text, name


def test_every_question_has_kept_rows():
    rows, _ = kept()
    assert {r["question"] for r in rows} == set(QUESTIONS) == set(tables.QUESTIONS)


def test_the_figure_has_a_bar_for_each_engine():
    rows, _ = kept()
    figure = tables.figure(rows)
    (ax,) = figure.axes
    assert len(ax.patches) == len(ax.get_yticklabels()) == 9
    plt.close(figure)


def test_the_figure_of_growth_has_a_curve_for_whatever_was_measured():
    rows, _ = kept()
    figure = tables.growth_figure(rows)
    for ax, column in zip(figure.axes, ("rows", "labels", "annotators"), strict=True):
        sweeps = [sweep for sweep in growth.SWEEPS if sweep.column == column]
        drawn = [
            case for sweep in sweeps for case in sweep.cases if tables.swept(rows, sweep, case)
        ]
        assert len(ax.lines) == len(drawn)
    assert all(ax.lines for ax in figure.axes)
    plt.close(figure)


def test_what_a_cluster_moves_is_told_from_the_kept_rows():
    text = (turns.ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for name, part in (moved.parts() | lost.parts()).items():
        assert f"<!-- {name} -->\n{part}\n<!-- end of {name} -->" in text


def test_what_was_measured_with_an_earlier_version_is_told():
    row = {"machine": "m", "cores": 2, "python": "3", "date": "2026", "question": "train"}
    rows = [row | {"versions": f"slencodings 0.{n}.0, numpy 2"} for n in (1, 1, 2)]
    assert "Runs by version: 0.1.0 in 2 of train; 0.2.0 in 1 of train." in tables.about(rows, "x")
    assert "Runs by version" not in tables.about(rows[:2], "x")
