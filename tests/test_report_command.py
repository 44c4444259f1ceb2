"""`sle report` and the end of `sle demo`: one page, or one plain sentence and no page."""

import io
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_report import QUICK, SUMMARISE

from slencodings.cli import main as cli

CSV = "item,annotator,label,confidence\n" + "".join(
    f"i{i},{who},{'yes' if (i + m) % 3 else 'no'},0.{5 + m}\n"
    for i in range(12)
    for m, who in enumerate(("ann", "bob", "cyd"))
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SUMMARISE, "METHODS", QUICK)


@pytest.fixture
def sle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Any]:
    """Run the command in a folder with crowd.csv in it: its exit code and what it said."""
    monkeypatch.chdir(tmp_path)
    Path("crowd.csv").write_text(CSV)
    before = signal.getsignal(signal.SIGTERM)

    def run(*args: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["sle", *args])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        assert out == ""
        assert isinstance(stop.value.code, int)
        return stop.value.code, err

    yield run
    signal.signal(signal.SIGTERM, before)


def test_the_command_writes_one_page(sle: Any):
    Path("report.html").write_text("old")
    code, told = sle("report", "crowd.csv", "-o", "report.html", "--seed", "3")
    assert code == 0, told
    assert re.search(r"wrote    report.html: a page of \d\.\d MB, to open in a browser\n", told)
    page = Path("report.html").read_text()
    assert "<title>crowd.csv – report</title>" in page
    assert "sle report crowd.csv -o report.html --seed 3" in page
    assert "36 annotations of 12 items by 3 annotators" in page
    assert sorted(path.name for path in Path().iterdir()) == ["crowd.csv", "report.html"]


def test_a_crowd_through_a_pipe_has_a_title_too(sle: Any):
    code, told = sle("report", "-", "-o", "page.HTM", "-q")
    assert (code, told) == (0, "")
    assert "<title>standard input – report</title>" in Path("page.HTM").read_text()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("-o", "report.pdf"), 1, "its name must end in .html; 'report.pdf' came. Name it report"),
        (("-o", "none/report.html"), 1, "needs a folder that is there"),
        ((), 2, "Missing option '--output'"),
        (("-o", "report.html", "--target", "0"), 1, "an uncertainty to reach"),
        (("-o", "report.html", "--label", "nothing"), 1, "nothing"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    sle: Any, args: tuple[str, ...], code: int, words: str
):
    assert sle("report", "crowd.csv", *args)[0] == code
    assert words in sle("report", "crowd.csv", *args)[1]
    assert [path.name for path in Path().iterdir()] == ["crowd.csv"]


def test_without_what_draws_charts_it_says_what_to_install(
    sle: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    code, told = sle("report", "crowd.csv", "-o", "report.html")
    assert code == 1
    assert told.startswith("error: the charts of a report need vl-convert")
    assert "pip install 'slencodings[report]'" in told


def test_the_demo_ends_with_a_page_and_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from slencodings.cli import demo
    from slencodings.datasets import digits_crowd

    whole = digits_crowd(rng=0)
    some = whole._replace(annotations=whole.annotations.rows(whole.annotations.item < 30))
    monkeypatch.setattr(demo, "digits_crowd", lambda rng: some)
    told: list[str] = []
    demo.make_report(0, str(tmp_path / "demo.html"), say=told.append)
    assert str(tmp_path / "demo.html") in told[0]
    assert "simulated people" in (tmp_path / "demo.html").read_text()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    demo.make_report(0, str(tmp_path / "other.html"), say=told.append)
    assert "pip install 'slencodings[report]'" in told[-1]
    assert not (tmp_path / "other.html").exists()
