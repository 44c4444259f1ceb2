"""`sle report` and the end of `sle demo`: one page, or one plain sentence and no page."""

import errno
import re
import sys
from pathlib import Path

import pytest
from reporting import two_methods
from running import Sle

CSV = "item,annotator,label,confidence\n" + "".join(
    f"i{i},{who},{'yes' if (i + m) % 3 else 'no'},0.{5 + m}\n"
    for i in range(12)
    for m, who in enumerate(("ann", "bob", "cyd"))
)


__all__ = ["two_methods"]


@pytest.fixture
def sle(sle: Sle) -> Sle:
    """Run the command in a folder with crowd.csv in it."""
    Path("crowd.csv").write_text(CSV)
    return sle


@pytest.mark.slow
def test_the_command_writes_one_page(sle: Sle):
    Path("report.html").write_text("old")
    code, out, told = sle("report", "crowd.csv", "-o", "report.html", "--seed", "3")
    assert (code, out) == (0, ""), told
    assert re.search(r"wrote    report.html: a page of \d\.\d MB, to open in a browser\n", told)
    page = Path("report.html").read_text()
    assert "<title>crowd.csv – report</title>" in page
    assert "sle report crowd.csv -o report.html --seed 3" in page
    assert "36 annotations of 12 items by 3 annotators" in page
    assert sorted(path.name for path in Path().iterdir()) == ["crowd.csv", "report.html"]


@pytest.mark.parametrize("verb", ["report", "triage"])
def test_the_help_says_that_reliability_is_taken_only_if_its_column_is_named(sle: Sle, verb: str):
    words = " ".join(sle(verb, "--help").out.split())
    assert "are learned from the crowd; --reliability COLUMN is taken instead." in words


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_the_page_says_which_rows_were_left_out(sle: Sle, quiet: tuple[str, ...]):
    lines = CSV.splitlines()
    for i in (1, 5, 9):
        lines[i] = lines[i].rpartition(",")[0] + ","
    lines[13] = lines[13].replace("yes", "").replace("no", "")
    Path("crowd.csv").write_text("\n".join(lines) + "\n")
    code, out, told = sle("report", "crowd.csv", "-o", "page.html", "--missing", "drop", *quiet)
    assert (code, out) == (0, ""), told
    page = Path("page.html").read_text()
    made = page[page.index('id="made"') :].partition("<h3>")[0]
    noted = re.search(r"<dt>noted while reading</dt><dd>(.*?)</dd>", made)
    assert noted is not None
    dropped = "3 rows without confidence or annotator left out (--missing drop)"
    assert f"{dropped}. 1 row without a label" in noted[1]
    assert quiet or f"{dropped}\n" in told
    Path("crowd.csv").write_text(CSV)
    assert sle("report", "crowd.csv", "-o", "page.html").code == 0
    assert "noted while reading" not in Path("page.html").read_text()


def test_a_crowd_through_a_pipe_has_a_title_too(sle: Sle):
    assert sle("report", "-", "-o", "page.HTM", "-q", stdin=CSV.encode()) == (0, "", "")
    assert "<title>standard input – report</title>" in Path("page.HTM").read_text()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("-o", "-"), 1, "its name must end in .html; '-' came. Name it report.html"),
        (("-o", "."), 1, "its name must end in .html; '.' came. Name it report.html"),
        (("-o", "report.pdf"), 1, "its name must end in .html; 'report.pdf' came. Name it report"),
        (("-o", "none/report.html"), 1, "needs a folder that is there"),
        ((), 2, "Missing option '--output'"),
        (("-o", "report.html", "--least-votes", "0"), 1, "--least-votes must be 1 or more"),
        (("-o", "report.html", "--text", "words"), 1, "there is no column 'words' to show; the"),
        (("-o", "report.html", "--show", "words"), 1, "the columns are 'item', 'annotator', "),
        (("-o", "report.html", "--label", "nothing"), 1, "nothing"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    sle: Sle, args: tuple[str, ...], code: int, words: str
):
    run = sle("report", "crowd.csv", *args)
    assert (run.code, run.out) == (code, "")
    assert words in run.err
    assert [path.name for path in Path().iterdir()] == ["crowd.csv"]


def test_items_are_shown_with_their_text_and_scored_by_gold(sle: Sle):
    lines = CSV.splitlines()
    rows = [f"{line},text of {line.split(',')[0]},yes" for line in lines[1:]]
    rows[0] = rows[0].replace("text of", "another text of")
    Path("crowd.csv").write_text("\n".join([f"{lines[0]},words,true", *rows]) + "\n")
    code, out, told = sle(
        "report", "crowd.csv", "-o", "page.html", "--text", "words", "--show", "true",
        "--gold", "true", "--least-probability", "0.6",
    )  # fmt: skip
    assert (code, out) == (0, ""), told
    assert "note     1 item with several 'words'; the first is shown" in told
    page = Path("page.html").read_text()
    assert '"text":"text of i3"' in page
    assert '"text":"another text of i0"' in page
    assert '"fields":["yes"]' in page
    assert "Gold labels are known of 12 items" in page


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_in_words_and_leaves_the_old_page(
    sle: Sle, monkeypatch: pytest.MonkeyPatch, number: int
):
    Path("report.html").write_text("old")

    def full(path: Path, data: bytes) -> int:
        raise OSError(number, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    code, out, told = sle("report", "crowd.csv", "-o", "report.html", "-q")
    assert (code, out) == (1, "")
    assert told.startswith(
        "error: report.html could not be written: No space left on device. "
        "What was there before is untouched. Free some space, choose another place"
    )
    assert Path("report.html").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["crowd.csv", "report.html"]


def test_without_what_draws_charts_it_says_what_to_install(
    sle: Sle, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    code, out, told = sle("report", "crowd.csv", "-o", "report.html")
    assert (code, out) == (1, "")
    assert told.startswith("error: the charts of a report need vl-convert")
    assert "pip install 'slencodings[report]'" in told


@pytest.mark.slow
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
