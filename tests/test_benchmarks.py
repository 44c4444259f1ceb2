"""How benchmarks are measured: rows are kept, turn by turn, by a command. No time is asserted."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmark_rows import DOCUMENT, SMALL, row

from benchmarks import encode, turns
from benchmarks.__main__ import main, parser, plan
from benchmarks.turns import Comparison, Group, Run, by_turn, keep, read, save
from experiments import tables as shared

PAIR = Group("encode", "encode", (SMALL, SMALL._replace(case="slow")), 2)


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


# What is kept and what is measured


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


# A turn


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


def test_a_process_answers_in_its_last_line(monkeypatch, capsys):
    asked = {"runs": [SMALL], "turns": [0, 1], "place": "/somewhere"}
    monkeypatch.setattr(sys, "argv", ["x", json.dumps(asked)])
    turns.answer(lambda runs, at, place: [turns.row(runs[0], t, 0.5, note=str(place)) for t in at])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [r["turn"] for r in found] == [0, 1]
    assert found[0]["note"] == "/somewhere"
    assert Run(*(found[0][name] for name in Run._fields)) == SMALL


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
