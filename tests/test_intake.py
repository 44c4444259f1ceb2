"""Whatever people have: their words for columns, their spreadsheets, their odd bytes."""

from pathlib import Path

import pytest
from running import Sle


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, *lines: str) -> None:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_what_steers_a_terminal_never_reaches_it(here: Path, sle: Sle):
    write("a.csv", "item,label,n\x1b[2Jote", "a,y\x1b]0;owned\x07es,1", "b,no,2", "b,no\x9b1m,3")
    run = sle("encode", "a.csv", "-o", "out.csv")
    assert run.code == 0
    assert r"3 labels: no, no\x9b1m, y\x1b]0;owned\x07es" in run.err
    assert r"not used: 'n\x1b[2Jote'" in run.err
    for arguments in (
        ["compare", "a.csv", "--gold", "a\x1bb"],
        ["encode", "a\x1bb", "-o", "x.csv"],
    ):
        run = sle(*arguments)
        assert run.code == 1
        assert "a\\x1bb" in run.err
        assert "\x1b" not in run.err + run.out


def test_tables_and_verdicts_show_names_without_what_steers_a_terminal(here: Path, sle: Sle):
    rows = [f"i{n},{who},{'yes' if n % 3 else 'no'}" for n in range(9) for who in ("a\x1b[1m", "b")]
    write("a.csv", "item,annotator,label", *rows)
    for verb in ("reliability", "triage", "compare"):
        run = sle(verb, "a.csv")
        assert run.code == 0, run.err
        assert "\x1b" not in run.err + run.out
    assert r"a\x1b[1m" in sle("reliability", "a.csv").out


def test_labels_with_commas_are_told_apart_and_can_be_typed_as_they_are_shown(here: Path, sle: Sle):
    write("a.csv", "item,label", '1,"yes, but"', "1,yes", "2,no")
    assert "3 labels: no, yes, 'yes, but'" in sle("encode", "a.csv", "-o", "out.csv").err
    write("one.csv", "item,label", '1,"yes, but"')
    run = sle("encode", "one.csv", "-o", "out.csv")
    assert run.code == 1
    assert """name them all: --labels '"yes, but",...'.""" in run.err


def test_one_of_a_kind_is_not_several(here: Path, sle: Sle):
    write("a.csv", "item,annotator,label", "1,ann,yes")
    run = sle("encode", "a.csv", "-o", "out.csv", "--labels", "yes,no")
    assert "a.csv: 1 row, 2 labels: yes, no" in run.err
    write("b.csv", "item,annotator,label", "1,ann,yes", "2,ann,no")
    assert "b.csv: 2 annotations of 2 items by 1 annotator, 2 labels" in sle("triage", "b.csv").err
