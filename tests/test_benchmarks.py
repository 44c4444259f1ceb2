"""The benchmarks: rows, ratios, exponents and tables. No time is asserted."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

from benchmarks import (
    aggregate,
    crowds,
    encode,
    growth,
    lost,
    moved,
    peers,
    start,
    tables,
    train,
    turns,
)
from benchmarks.__main__ import QUESTIONS, main, parser, plan
from benchmarks.turns import (
    Comparison,
    Group,
    Run,
    by_turn,
    exponent,
    keep,
    ratios,
    read,
    save,
    with_spread,
)
from experiments import tables as shared
from slencodings import fuse_table

DOCUMENT = shared.DOCS / "benchmarks.md"
SMALL = Run("fast", 10, 5, 10, 3)
PAIR = Group("encode", "encode", (SMALL, SMALL._replace(case="slow")), 2)


def row(case="fast", turn=0, seconds: float | None = 1.0, **more):
    about = {"question": "encode", "versions": "v", "python": "3", "machine": "m", "cores": 2}
    about |= {"date": "2026-01-01 00:00", "loading": None, "megabytes": 1.0, "note": None}
    return (
        dict.fromkeys(turns.COLUMNS)
        | about
        | turns.row(SMALL, turn, seconds)
        | {
            "case": case,
            **more,
        }
    )


@pytest.fixture
def counted(monkeypatch):
    """Calls of processes, which say that they took as many seconds as there were calls."""
    calls = []

    def call(python, module, runs, asked, place):
        calls.append((module, [run.case for run in runs], asked))
        if getattr(call, "stop_at", None) == len(calls):
            raise KeyboardInterrupt
        if module == "crowds":
            place.touch()
        return [turns.row(run, turn, float(len(calls))) for turn in asked for run in runs]

    monkeypatch.setattr(turns, "_call", call)
    monkeypatch.setattr(turns, "_versions_of", lambda python: f"of {Path(python).parts[-3]}")
    turns._here.cache_clear()
    yield calls, call
    turns._here.cache_clear()


# Rows


def test_rows_come_back_as_they_were_saved(tmp_path):
    path = tmp_path / "deep" / "rows.parquet"
    rows = [row(), row("slow", 1, None, note="out of memory"), row(rows=None, labels=None)]
    save(path, rows)
    assert sorted(read(path), key=str) == sorted(rows, key=str)
    assert [p.name for p in path.parent.iterdir()] == ["rows.parquet"]


def test_no_file_has_no_rows(tmp_path):
    assert read(tmp_path / "none.parquet") == []


def test_what_is_there_is_not_measured_again(tmp_path, counted):
    calls, _ = counted
    first = keep(tmp_path / "r.parquet", [PAIR])
    assert calls == [("encode", [case], [turn]) for turn in (0, 1) for case in ("fast", "slow")]
    assert len(first) == 4
    again = keep(tmp_path / "r.parquet", [PAIR])
    assert len(calls) == 4
    assert sorted(again, key=str) == sorted(first, key=str)


def test_a_run_that_is_interrupted_goes_on_with_the_turn_that_was_not_whole(tmp_path, counted):
    calls, call = counted
    call.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        keep(tmp_path / "r.parquet", [PAIR])
    kept = read(tmp_path / "r.parquet")
    assert [(r["case"], r["turn"]) for r in kept] == [("fast", 0), ("slow", 0)]
    call.stop_at = None
    rows = keep(tmp_path / "r.parquet", [PAIR])
    # Both sides of the second turn's ratio are measured anew, and nothing of the first.
    assert calls[4:] == [("encode", ["fast"], [1]), ("encode", ["slow"], [1])]
    assert by_turn(rows, "fast") == {0: 1.0, 1: 5.0}


def test_again_forgets_the_cases_and_sizes_that_are_asked_and_no_other(tmp_path, counted):
    calls, _ = counted
    path = tmp_path / "r.parquet"
    other, larger = row("other", question="start"), row("slow", rows=99)
    save(path, [other, larger, row("slow", seconds=-1.0), row("slow", turn=7)])
    rows = keep(path, [PAIR], again=True)
    assert other in rows
    assert larger in rows
    assert {(r["case"], r["rows"], r["turn"]) for r in read(path)} == {
        ("other", 10, 0),
        ("slow", 99, 0),
        *((case, 10, turn) for case in ("fast", "slow") for turn in (0, 1)),
    }
    assert all(seconds > 0 for seconds in by_turn(rows, "slow", rows=10).values())
    keep(path, [PAIR], again=True)
    assert len(calls) == 8


def test_rows_of_another_machine_or_other_versions_are_measured_anew(tmp_path, counted):
    calls, _ = counted
    path = tmp_path / "r.parquet"
    rows = keep(path, [PAIR])
    for column in ("machine", "versions", "python"):
        save(path, [r | {column: "another"} if r["turn"] == 1 else r for r in rows])
        calls.clear()
        new = keep(path, [PAIR])
        assert calls == [("encode", ["fast"], [1]), ("encode", ["slow"], [1])]
        assert len(new) == 4
        assert "another" not in {r[column] for r in new}


def test_a_group_that_runs_together_is_asked_once_for_all_turns(tmp_path, counted):
    calls, _ = counted
    rows = keep(tmp_path / "r.parquet", [PAIR._replace(together=True)])
    assert calls == [("encode", ["fast", "slow"], [0, 1])]
    assert len(rows) == 4


def test_data_is_made_once_for_a_size(tmp_path, counted):
    calls, _ = counted
    keep(tmp_path / "r.parquet", [PAIR._replace(data="npz", turns=1)])
    assert [module for module, _, _ in calls] == ["crowds", "encode", "encode"]


def test_peers_that_are_not_there_are_left_out(tmp_path, counted):
    calls, _ = counted
    runs = (SMALL, SMALL._replace(case="crowd-kit Wawa"), SMALL._replace(case="cleanlab x"))
    python = tmp_path / "cleanlab" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    group = PAIR._replace(runs=runs, turns=1)
    rows = keep(tmp_path / "r.parquet", [group], peers=tmp_path)
    assert [cases for _, cases, _ in calls] == [["fast"], ["cleanlab x"]]
    assert {r["case"]: r["versions"] for r in rows}["cleanlab x"] == "of cleanlab"
    assert keep(tmp_path / "q.parquet", [group])[0]["case"] == "fast"
    # When one comes, its whole group is measured anew.
    calls.clear()
    other = tmp_path / "crowdkit" / "bin" / "python"
    other.parent.mkdir(parents=True)
    other.touch()
    keep(tmp_path / "r.parquet", [group], peers=tmp_path)
    assert len(calls) == 3


def answering(monkeypatch, returncode, stdout="", stderr=""):
    done = subprocess.CompletedProcess([], returncode, stdout, stderr)
    monkeypatch.setattr(turns.subprocess, "run", lambda *words, **how: done)
    return turns._call("python", "encode", [SMALL], [0], Path())


def test_a_case_that_fails_ends_the_run_and_says_why(monkeypatch):
    with pytest.raises(SystemExit, match=r"(?s)case='fast'.* failed:\nno such thing"):
        answering(monkeypatch, 1, stderr="no such thing")


@pytest.mark.parametrize(
    ("code", "words"),
    [(-9, ""), (1, "numpy MemoryError: 9 GB"), (1, "died with <Signals.SIGKILL: 9>")],
)
def test_a_case_that_has_not_enough_memory_is_a_row_that_says_so(monkeypatch, code, words):
    (found,) = answering(monkeypatch, code, stderr=words)
    assert (found["seconds"], found["note"]) == (None, "out of memory")


def test_the_last_line_is_what_counts(monkeypatch):
    assert answering(monkeypatch, 0, stdout='hello\n[{"seconds": 1}]\n') == [{"seconds": 1}]


def test_a_command_has_a_time_and_a_peak_of_its_own():
    # From a process that is small itself, as those are that measure.
    code = "import sys; from benchmarks.turns import command; print(*command(sys.executable, '-c', "
    took = {}
    for eaten in ("pass", "b'x' * 200_000_000"):
        words = [sys.executable, "-c", f"{code}{eaten!r}))"]
        said = subprocess.run(words, capture_output=True, check=True, cwd=turns.ROOT).stdout.split()
        took[eaten] = [float(x) for x in said]
    (seconds, small), (_, large) = took.values()
    assert seconds > 0
    assert 190 < large - small < 250
    with pytest.raises(subprocess.CalledProcessError, match="status 3"):
        turns.command(sys.executable, "-c", "raise SystemExit(3)")


def test_steps_take_turns_and_two_turns_do_not_count():
    said, clock = [], iter(range(1000))
    runs = [SMALL, SMALL._replace(case="slow")]
    steps = [lambda: said.append("a"), lambda: (said.append("b"), next(clock))]
    rows = turns.alternate(runs, steps, [0, 1, 2], lambda: next(clock))
    assert "".join(said) == "ab" * 5
    assert [(r["case"], r["turn"], r["seconds"]) for r in rows] == [
        (case, turn, seconds) for turn in range(3) for case, seconds in (("fast", 1), ("slow", 2))
    ]


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


# The questions


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_run_of_a_plan_is_asked_for_twice(name, full):
    groups = QUESTIONS[name].plan(full)
    runs = [run for group in groups for run in group.runs]
    assert len(runs) == len(set(runs)) > 0
    assert {group.question for group in groups} == {name}


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("module", [encode, aggregate, train, start])
def test_both_sides_of_a_comparison_stand_in_one_group(module, full):
    groups = [{run.case for run in group.runs} for group in module.plan(full)]
    for one in module.COMPARED:
        assert any({one.case, one.floor} <= group for group in groups), one


def test_every_sweep_has_its_sizes_in_one_group():
    for full, most in ((False, 10_000_000), (True, 100_000_000)):
        groups: dict[str, list[turns.Run]] = {}
        for group in growth.plan(full):
            groups.setdefault(group.runs[0].case, []).extend(group.runs)
        for case in growth.ENGINES:
            assert max(run.rows or 0 for run in groups[case]) == most
            assert {run.labels for run in groups[case]} == {2, 5, 20, 100}
            assert {run.per_item for run in groups[case]} == {1, 10, 100, 1000}
        assert max(run.rows or 0 for run in groups[growth.METHODS[0]]) == most // 10
        for case in growth.VERBS:
            rows = max(run.rows or 0 for run in groups[case])
            assert rows == (10_000_000 if full else 100_000)
            assert {run.labels for run in groups[case]} == {
                2,
                5,
                20,
                *([100, 1000] if full else []),
            }
            assert {10, 1000} <= {run.annotators for run in groups[case]}


def test_a_table_has_the_size_that_was_asked_for(tmp_path):
    import polars as pl

    crowds.make([Run("", 3000, 7, 30, 11)], [0], tmp_path / "t.parquet")
    table = pl.read_parquet(tmp_path / "t.parquet")
    assert table.height == 3000
    assert table["item"].value_counts()["count"].to_list() == [30] * 100
    assert table["label"].n_unique() == 7
    assert table["annotator"].n_unique() == 11
    certain = table.filter(uncertainty=0, reliability=1)
    assert certain.height >= 30
    assert table["uncertainty"].is_between(0, 0.9).all()
    assert table["reliability"].is_between(0.1, 1).all()
    assert pl.read_parquet(crowds.few(tmp_path / "t.parquet")).height == 1000


def test_nobody_annotates_an_item_twice_and_all_are_numbered_as_they_appear(tmp_path):
    crowds.make([Run("", 600, 4, 6, 9)], [0], tmp_path / "c.npz")
    codes = np.load(tmp_path / "c.npz")
    assert len({*zip(codes["item"], codes["annotator"], strict=True)}) == 600
    assert (np.bincount(codes["item"]) == 6).all()
    for column in ("annotator", "label"):
        first = list(dict.fromkeys(codes[column].tolist()))
        assert first == list(range(len(first)))


def test_every_way_to_fuse_a_table_is_compared_with_that_of_its_engine():
    names = {*encode.CASES, *encode.COMMANDS, "spark GROUP BY", "spark fuse_table"}
    compared = {one.case for one in (*encode.COMPARED, *encode.LARGE)}
    assert compared <= names
    assert {one.floor for one in encode.COMPARED} <= names


def test_results_are_compared_with_those_of_the_peer(tmp_path):
    run = Run("majority_vote", 20, 2, 5, 9)
    crowds.make([run], [0], tmp_path / f"{turns.stem(run)}.npz")
    (alone,) = aggregate.measure([run], [0], tmp_path)
    assert alone["note"] is None
    theirs = run._replace(case="crowd-kit MajorityVote")
    np.savez(aggregate.result(theirs, tmp_path), label=np.full(4, 9))
    (found,) = aggregate.measure([run], [0], tmp_path)
    assert re.fullmatch(r"4 of 4 labels differ; \d items tie", found["note"])
    assert found["megabytes"] > 0


def test_the_difference_of_probabilities_is_the_largest(tmp_path):
    run = Run("wawa", 20, 2, 5, 9)
    crowds.make([run], [0], tmp_path / f"{turns.stem(run)}.npz")
    made = {"probability": np.full((4, 2), 0.5)}
    theirs = run._replace(case="crowd-kit Wawa")
    np.savez(aggregate.result(theirs, tmp_path), probability=[[0.5, 0.5]] * 3 + [[0.3, 0.7]])
    assert aggregate.difference(run, made, tmp_path) == "2e-01"


def test_the_log_posterior_is_that_of_glad():
    # Two annotators, one item, three labels of which they say the first and the last; written out.
    ability, log_ease = np.asarray([0.5, 2.0]), np.asarray([0.3])
    right = [1 / (1 + math.exp(-x * math.exp(0.3))) for x in ability]
    wrong = [(1 - p) / 2 for p in right]
    likelihood = (right[0] * wrong[1] + wrong[0] * wrong[1] + wrong[0] * right[1]) / 3
    prior = ((0.5 - 1) ** 2 + (2.0 - 1) ** 2 + (0.3 - 1) ** 2) / 2
    rows = {"item": np.zeros(2, int), "annotator": np.arange(2), "label": np.asarray([0, 2])}
    value = aggregate.log_posterior(rows, ability, log_ease)
    assert value == pytest.approx((math.log(likelihood) - prior) / 2)


def test_peers_need_what_their_oracles_need():
    for name in turns.PEERS.values():
        assert all("==" in package for package in peers.needs(name))
    assert peers.needs("crowdkit")[0].startswith("crowd-kit==")


def test_an_oracle_that_does_not_say_what_it_needs_is_an_error(tmp_path, monkeypatch):
    oracle = tmp_path / "scripts" / "oracles" / "crowdkit.py"
    oracle.parent.mkdir(parents=True)
    oracle.write_text("import crowdkit\n")
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=r"crowdkit\.py must begin with '# needs: PACKAGE"):
        peers.needs("crowdkit")


def test_environments_that_are_there_are_not_made_again(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(
        peers.venv, "create", lambda place, **how: (made.append(place), place.mkdir())
    )
    monkeypatch.setattr(peers.subprocess, "run", lambda words, check: made.append(words[-1]))
    peers.make(tmp_path)
    assert len(made) == 6
    peers.make(tmp_path)
    assert len(made) == 6


# What is printed and kept


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


# The command


def test_groups_of_one_size_can_be_asked_and_then_no_other_is_measured():
    asked = ["encode", "--full", "--cases", "sle encode", "--at"]
    for size in (encode.USUAL, encode.MOST):
        groups = plan(parser().parse_args([*asked, str(size)]))
        assert groups != []
        assert {run.rows for group in groups for run in group.runs} == {size}
    assert plan(parser().parse_args([*asked, "7"])) == []


def test_the_command_measures_a_small_table_and_then_has_it(capsys, tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    one = Comparison("duckdb fuse_table", "duckdb GROUP BY")
    monkeypatch.setattr(encode, "COMPARED", (one,))
    words = ["encode", "--cases", "duckdb", "--size", "1000", "--repeats", "1"]
    words += ["--rows", str(path), "--peers", str(tmp_path)]
    main(words)
    out, err = capsys.readouterr()
    rows = read(path)
    assert {(r["question"], r["rows"], r["turn"]) for r in rows} == {("encode", 1000, 0)}
    assert [r["case"] for r in rows] == [one.floor, one.case]
    assert all(r["seconds"] > 0 and r["megabytes"] > 10 for r in rows)
    assert re.search(r"slencodings \S+, .*duckdb \d", rows[0]["versions"])
    assert "| duckdb fuse_table | 1,000 |" in out
    assert "without crowdkit, crowdtruth, cleanlab: `make bench-peers`" in err
    before = path.stat().st_mtime_ns
    main(words)
    assert path.stat().st_mtime_ns == before
    assert capsys.readouterr().out == out


def test_the_command_refuses_what_it_does_not_know(capsys):
    with pytest.raises(SystemExit, match=r"questions are encode, .*; speed came"):
        main(["speed"])
    with pytest.raises(SystemExit):
        main(["--repeats", "no"])
    assert "must be a whole number, at least 1; 'no' came" in capsys.readouterr().err


def test_write_puts_tables_and_figure_where_the_documents_are(tmp_path, monkeypatch, counted):
    monkeypatch.setattr(shared, "DOCS", tmp_path)
    monkeypatch.setattr("experiments.figures.FOLDER", tmp_path)
    (tmp_path / "benchmarks.md").write_text(DOCUMENT.read_text(encoding="utf-8"))
    main(["start", "--write", "--rows", str(tmp_path / "own.parquet"), "--repeats", "1"])
    text = (tmp_path / "benchmarks.md").read_text()
    assert "`benchmarks/rows/own.parquet`: " in text
    assert {"benchmarks.png", "benchmarks.svg"} <= {p.name for p in tmp_path.iterdir()}


def test_a_process_answers_in_its_last_line(monkeypatch, capsys):
    asked = {"runs": [SMALL], "turns": [0, 1], "place": "/somewhere"}
    monkeypatch.setattr(sys, "argv", ["x", json.dumps(asked)])
    turns.answer(lambda runs, at, place: [turns.row(runs[0], t, 0.5, note=str(place)) for t in at])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [r["turn"] for r in found] == [0, 1]
    assert found[0]["note"] == "/somewhere"
    assert Run(*(found[0][name] for name in Run._fields)) == SMALL


def test_what_a_cluster_moves_is_told_from_the_kept_rows():
    text = (turns.ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for name, part in (moved.parts() | lost.parts()).items():
        assert f"<!-- {name} -->\n{part}\n<!-- end of {name} -->" in text


def test_a_cluster_is_sized_by_products():
    sizes = {"read": 2 * moved.ROWS, "bytes": 3 * moved.ROWS, "written": 4 * moved.ROWS}
    rows = [{"labels": 5, "together": x, "form": "wide"} | sizes for x in (False, True)]
    line = moved.sizing(rows, seconds=36.0, of=10**7, cores=2).splitlines()[-1]
    assert line == ("| 10,000,000,000 | 60 GB | 30 GB | 30 GB | 48 GB | 40 GB | 20 | 120 |")


def test_a_row_that_is_lost_or_counted_twice_is_seen(tmp_path):
    import duckdb
    import polars as pl

    (source := tmp_path / "crowd").mkdir()
    (tmp_path / "targets.parquet").mkdir()
    moved.crowd(source, lost.LABELS, False, rows=1000, files=2, least=1)
    columns: dict[str, Any] = {name: name for name in encode.COLUMNS}
    opinions = fuse_table(duckdb.read_parquet(f"{source}/*.parquet"), **columns)
    opinions.write_parquet(str(tmp_path / "targets.parquet" / "part-0.parquet"))
    whole = {"rows": 1000, "written_rows": 100, "beside": ["targets.parquet"]}
    whole |= {"inside": ["_SUCCESS", "_slencodings.json"]}
    whole |= {"killed": 1, "before": lost.WORKERS, "target_there": False}
    lost.check(whole | lost.compared(tmp_path, source), 1000)
    said = pl.read_parquet(first := source / "00.parquet")
    for rows in (said[1:], pl.concat([said, said[:1]])):
        rows.write_parquet(first)
        found = lost.compared(tmp_path, source)
        with pytest.raises(SystemExit, match=r"not all there once: \{\}, difference .*"):
            lost.check(whole | found, 1000)
    with pytest.raises(SystemExit, match=r"once: \{'rows': 999, 'killed': 0\}"):
        lost.check(whole | found | {"rows": 999, "killed": 0}, 1000)
